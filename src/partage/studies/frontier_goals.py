"""The goals of the study `frontier`: upper limits on regret and broadcasts, and whether they are reached."""

from typing import NamedTuple

import numpy as np

from partage.simulate.result import Estimate
from partage.studies.frontier_bars import best_alone, one_learner, plus_minus
from partage.studies.frontier_games import BETTING, ETC, OWN, PLACES, SHARED, game
from partage.studies.results import Played
from partage.studies.study import FAILS, HOLDS, Claim, Table

FIGURES = {"overall_regret": "overall regret", "broadcasts": "broadcasts"}


class Goal(NamedTuple):
    """A goal: an upper limit on a figure of merit of a rule on a game."""

    rule: str
    place: int
    figure: str
    at_most: float

    @property
    def says(self) -> str:
        """The goal in a few words."""
        name = next(name for name, place in PLACES.items() if place == self.place)
        return f"{FIGURES[self.figure]}, {name}"

    def measured(self, played: Played, rule: str | None = None) -> Estimate:
        """Return the figure of the goal's rule, or of another one."""
        return Estimate.of(played.by_run(self.figure, self.place, rule or self.rule))

    @property
    def claim(self) -> Claim:
        """The goal as a claim to check."""
        return Claim(f"{self.rule}: {self.says}", "mean over runs", self.measured, at_most=self.at_most)


def _both(rule: str, game_name: str, regret: float, broadcasts: float) -> tuple[Goal, Goal]:
    """Return the goals on regret and broadcasts for a rule on a game."""
    place = PLACES[game_name]
    return Goal(rule, place, "overall_regret", regret), Goal(rule, place, "broadcasts", broadcasts)


GOALS = (
    *_both(SHARED, "balanced, M = 100", 130, 1900),
    Goal(SHARED, PLACES["balanced, M = 10"], "overall_regret", 115),
    Goal(OWN, PLACES["imbalanced, M = 1,000"], "overall_regret", 1250),
    *_both(BETTING, "balanced, M = 100", 190, 3000),
    *_both(BETTING, "Beta arms, M = 100", 100, 1000),
    *_both(SHARED, "0.9/0.8/0.7, M = 3, T = 3,000", 21, 800),
    *_both(SHARED, "0.9/0.8/0.7, M = 12, T = 3,000", 25, 1000),
)


def goals(played: Played) -> Table:
    """Return the table of goals and measurements, beside the best alone, one learner and the paper's rule."""
    rows = []
    for goal in GOALS:
        ours, paper = goal.measured(played), goal.measured(played, ETC)
        middle = float(np.median(played.by_run(goal.figure, goal.place, goal.rule)))
        bars = ["–", "–"]
        if goal.figure == "overall_regret":
            together = best_alone(played, goal.place).times(game(goal.place).agents)
            one = one_learner(goal.place)
            bars = [f"{plus_minus(bar.regret)} ({bar.learner})" for bar in (together, one)]
        rows.append(
            [
                goal.says,
                *bars,
                plus_minus(paper),
                f"at most {goal.at_most:,g}",
                goal.rule,
                f"{plus_minus(ours)} (median {middle:,.0f})",
                {HOLDS: "reached", FAILS: "missed"}.get(goal.claim.verdict(ours), "undecided"),
            ]
        )
    headings = ("", "best alone, all agents", "one learner (M·T pulls)", ETC, "goal", "rule", "measured", "")
    return Table("Goals", headings, rows)

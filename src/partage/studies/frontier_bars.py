"""What a group is compared with: the best that an agent can do alone, and one learner that makes all pulls itself."""

from typing import NamedTuple

import numpy as np

from partage.simulate.result import Estimate
from partage.studies import centralised
from partage.studies.frontier_games import ETC, STRONG, TWO_UCB_ALONE, game
from partage.studies.results import Played, quotient
from partage.studies.study import TWO_UCB


class Bar(NamedTuple):
    """A learner to compare with, how often it was played, and its regret."""

    name: str
    runs: int
    regret: Estimate
    median: float

    @property
    def learner(self) -> str:
        """The name of the learner alone, for example "IMED"."""
        return self.name.removeprefix("centralised ").removesuffix(" (M·T pulls)").removesuffix(" alone")

    def times(self, agents: int) -> "Bar":
        """Return the bar for this many agents that do the same, each for itself."""
        mean, stderr = self.regret
        together = Estimate(agents * mean, None if stderr is None else agents * stderr)
        return Bar(self.name, self.runs, together, agents * self.median)


def alone(played: Played, place: int) -> list[Bar]:
    """Return what one agent loses alone, by each learner."""
    bars = []
    for name in (*STRONG, TWO_UCB_ALONE):
        line, figure = (ETC, TWO_UCB) if name == TWO_UCB_ALONE else (name, "overall_regret")
        regrets = played.by_run(figure, place, line)
        bars.append(Bar(name, len(regrets), Estimate.of(regrets), float(np.median(regrets))))
    return bars


def best_alone(played: Played, place: int) -> Bar:
    """Return the learner that loses least alone."""
    return min(alone(played, place), key=lambda bar: bar.regret.mean)


def one_learner(place: int) -> Bar:
    """Return the centralised learner that loses least."""
    best = min(centralised.on(game(place)), key=lambda each: each.regret.mean)
    return Bar(best.name, best.runs, best.regret, best.median)


def over_one_learner(played: Played, place: int, name: str) -> Estimate:
    """Return a rule's overall regret as a multiple of what one learner loses."""
    return quotient(played.result(place, name).overall_regret, one_learner(place).regret)


def worst_over_best_alone(played: Played, place: int, name: str) -> Estimate:
    """Return the mean highest individual regret as a multiple of what the best learner loses alone."""
    return quotient(played.result(place, name).max_individual_regret, best_alone(played, place).regret)


def rationality(played: Played, place: int, name: str) -> Estimate:
    """Return the highest mean incentive regret of an agent, as a multiple of what the best learner loses alone.

    Individual rationality holds in expectation if this is at most 1.
    """
    result = played.result(place, name)
    return quotient(result.incentive_regret(result.worst_agent), best_alone(played, place).regret)


def held(rationality: Estimate) -> str:
    """Return whether individual rationality holds by two standard errors, as one word."""
    mean, stderr = rationality
    if stderr is None:
        return "?"
    return "yes" if mean + 2 * stderr <= 1 else "no" if mean - 2 * stderr > 1 else "?"


def plus_minus(value: Estimate) -> str:
    """Return a mean and its standard error as text, with a digit after the point if the mean is below 100."""
    digits = 1 if abs(value.mean) < 100 else 0
    return f"{value.mean:,.{digits}f}" + ("" if value.stderr is None else f" ± {value.stderr:,.{digits}f}")

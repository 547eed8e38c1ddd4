"""Beyond the paper: rules side by side on balanced, imbalanced, neighbouring and random games.

The places of the axis are the games of `GAMES`, counted from 1. The lines are the rules of `RULES`, without a
settlement and, with fewer runs, with `equal-share`. Regret is compared with the Lai-Robbins limit and with one
learner that makes all M T pulls itself, which `bench/centralised.py` measured.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from partage.arms import Beta, Constant, Discrete, RandomBernoulli
from partage.game import Game
from partage.rules import KLETC, BalancedETC, BalancedGLR, FullSharing, NoProtocol
from partage.rules.rule import Rule
from partage.sharing import Sharing
from partage.simulate.result import Estimate
from partage.studies import centralised, over_time, random
from partage.studies.paper import ARMS, HORIZON
from partage.studies.results import Played
from partage.studies.study import Claim, Dots, Line, Panel, Study, Table
from partage.theory.limits import lai_robbins

SHORT = 10**5  # the horizon at which sharing without a protocol is played too, whose cost grows with M T
SHADES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
FIVE_STARS = (0.0, 0.25, 0.5, 0.75, 1.0)
STARS = tuple(
    Discrete(FIVE_STARS, [weight / 16 for weight in weights])
    for weights in ([1, 1, 2, 4, 8], [1, 2, 3, 5, 5], [2, 3, 6, 3, 2], [5, 5, 3, 2, 1], [8, 4, 2, 1, 1])
)


class Setting(NamedTuple):
    """A game of the study, whether sharing without a protocol is played on it, and the largest number of runs."""

    name: str
    game: Game
    no_protocol: bool = False
    most_runs: int | None = 100


class Contestant(NamedTuple):
    """A rule of the study, its colour, and the largest number of runs of a game."""

    name: str
    rule: Rule
    colour: str
    most_runs: int | None = None


BETAS: tuple[Beta | Constant, ...] = (*(Beta(4 * mean, 4 * (1 - mean)) for mean in SHADES), Constant(0.0))

GAMES: Sequence[Setting] = (
    Setting("balanced, M = 100", Game(ARMS, Sharing.round_robin(100, 10), HORIZON), most_runs=None),
    Setting("balanced, M = 10", Game(ARMS, Sharing.round_robin(10, 10), HORIZON), most_runs=None),
    Setting("imbalanced, M = 100", Game(ARMS, Sharing.scarce_best(100, 10), HORIZON), most_runs=None),
    Setting("imbalanced, M = 1,000", Game(ARMS, Sharing.scarce_best(1000, 10), HORIZON), most_runs=None),
    Setting(
        "Beta arms, M = 100",
        Game(BETAS, Sharing.round_robin(100, 10), HORIZON),
        most_runs=40,
    ),
    Setting("five stars, M = 100", Game(STARS, Sharing.round_robin(100, 5), HORIZON), most_runs=40),
    Setting("balanced, M = 100, T = 1e5", Game(ARMS, Sharing.round_robin(100, 10), SHORT), True),
    Setting("imbalanced, M = 100, T = 1e5", Game(ARMS, Sharing.scarce_best(100, 10), SHORT), True),
    Setting("neighbours-2, M = 20, T = 1e5", over_time.game(20), True),
    Setting("random, M = 100, T = 1e5", Game(random.ARMS, Sharing.random(100, 10), SHORT), True),
    Setting("random, M = 100", random.game(100)),
)
ARMS_OF = {  # the arms that the games are played on, for `bench/centralised.py`
    "paper's arms": ARMS,
    "Beta arms": BETAS,
    "five stars": STARS,
    "appendix's arms": over_time.game(20).arms,
    "random arms": random.ARMS,
}
PLACES = {setting.name: place for place, setting in enumerate(GAMES, 1)}

ETC, GLR, NO_PROTOCOL = "Balanced-ETC", "Balanced-GLR", "no protocol"
RULES: Sequence[Contestant] = (
    Contestant("full sharing", FullSharing(), "grey", 100),
    Contestant("B = inf", BalancedETC(math.inf), "ink", 100),
    Contestant(ETC, BalancedETC(), "orange"),
    Contestant("KL-ETC", KLETC(), "green", 100),
    Contestant(GLR, BalancedGLR(), "blue"),
    Contestant(NO_PROTOCOL, NoProtocol(), "purple", 5),
)
ALONE, CENTRALISED = "2-UCB alone", "centralised IMED"
SETTLED = ", settled"
SETTLED_RUNS = 10


def game(place: int) -> Game:
    """Return the game at a place."""
    return GAMES[place - 1].game


def _most(*limits: int | None) -> int | None:
    """Return the lowest limit; None if there is none."""
    return min((limit for limit in limits if limit is not None), default=None)


def _most_runs(most: int | None) -> Callable[[int], int | None]:
    return lambda place: _most(most, GAMES[place - 1].most_runs)


def _lines() -> list[Line]:
    plain, settled = [], []
    for name, rule, _, most in RULES:
        places = [place for place in PLACES.values() if name != NO_PROTOCOL or GAMES[place - 1].no_protocol]
        plain.append(Line(name, rule, game, "none", places=places, most_runs=_most_runs(most)))
        if name != NO_PROTOCOL:  # it eliminates no arm, so there is nothing to compensate
            settled.append(Line(name + SETTLED, rule, game, "equal-share", most_runs=_most_runs(SETTLED_RUNS)))
    return plain + settled


# --- what is measured -----------------------------------------------------------------------------------------


@cache
def limit(place: int) -> float | None:
    """Return the Lai-Robbins limit of a game; None if arms are random, as its mean over games is infinite."""
    arms = [arm for arm in game(place).arms if not isinstance(arm, RandomBernoulli)]
    if len(arms) < len(game(place).arms):
        return None
    return lai_robbins(arms, game(place).agents * game(place).horizon)


def over_limit(played: Played, place: int, name: str) -> Estimate | None:
    """Return the overall regret as a multiple of the limit; None if there is no limit or no result."""
    bound = limit(place)
    if bound is None or (name not in (ALONE, CENTRALISED) and (name, place) not in played.results):
        return None
    if name == CENTRALISED:
        mean, stderr = imed(place).regret
    elif name == ALONE:
        mean, stderr = played.alone(place, ETC).overall_regret
        bound /= game(place).agents
    else:
        mean, stderr = played.result(place, name).overall_regret
    return Estimate(mean / bound, None if stderr is None else stderr / bound)


def imed(place: int) -> centralised.Centralised:
    """Return what one learner loses by IMED that makes all pulls of the game itself."""
    return next(each for each in centralised.on(game(place)) if each.rule == "IMED")


def held(rationality: Estimate) -> str:
    """Return whether individual rationality holds by two standard errors, as one word."""
    mean, stderr = rationality
    if stderr is None:
        return "?"
    return "yes" if mean + 2 * stderr <= 1 else "no" if mean - 2 * stderr > 1 else "?"


def _settled(played: Played, place: int, name: str) -> str:
    if (name + SETTLED, place) not in played.results:
        return "–"
    result = played.result(place, name + SETTLED)
    finished = "" if result.finished == 1 else f" (finished in {result.finished:.0%})"
    return held(played.rationality(place, name + SETTLED)) + finished


def _cells(played: Played, place: int, name: str) -> list[str]:
    """Return the row of one rule on one game."""
    result = played.result(place, name)
    multiple, share = over_limit(played, place, name), played.against_two_ucb("max_individual_regret", place, name)
    return [
        name,
        f"{result.runs:,}",
        _plus_minus(result.overall_regret),
        f"{np.median(played.by_run('overall_regret', place, name)):,.0f}",
        "–" if multiple is None else f"{multiple.mean:.1f}",
        f"{result.broadcasts.mean:,.0f}",
        f"{share.mean:.2f}",
        held(played.rationality(place, name)),
        _settled(played, place, name),
    ]


def _alone_cells(played: Played, place: int) -> list[str]:
    alone, agents = played.alone(place, ETC), game(place).agents
    multiple, each = over_limit(played, place, ALONE), alone.overall_regret
    together = Estimate(agents * each.mean, None if each.stderr is None else agents * each.stderr)
    middle = agents * float(np.median(played.by_run("two_ucb_regret", place, ETC)))
    of_limit = "–" if multiple is None else f"{multiple.mean:.0f}"
    return [ALONE, f"{alone.runs:,}", _plus_minus(together), f"{middle:,.0f}", of_limit, "0", "1", "–", "–"]


def _centralised_cells(place: int) -> list[list[str]]:
    """Return a row for each rule of one learner. It shares nothing, because it sees everything."""
    bound, rows = limit(place), []
    for each in centralised.on(game(place)):
        of_limit = "–" if bound is None else f"{each.regret.mean / bound:.1f}"
        shown = [f"{each.runs:,}", _plus_minus(each.regret), f"{each.median:,.0f}", of_limit]
        rows.append([each.name, *shown, "–", "–", "–", "–"])
    return rows


def _plus_minus(value: Estimate) -> str:
    return f"{value.mean:,.0f}" + ("" if value.stderr is None else f" ± {value.stderr:,.0f}")


def side_by_side(played: Played) -> Table:
    """Return the table of every rule on every game."""
    rows = []
    for place in PLACES.values():
        rows += [[GAMES[place - 1].name], _alone_cells(played, place)]
        rows += [_cells(played, place, rule.name) for rule in RULES if (rule.name, place) in played.results]
        rows += _centralised_cells(place)
    headings = (
        "rule",
        "runs",
        "overall regret",
        "median",
        "× limit",
        "broadcasts",
        "worst / alone",
        "IR unpaid",
        "IR settled",
    )
    return Table("Rules side by side (settled by equal-share)", headings, rows)


# --- the goals ------------------------------------------------------------------------------------------------


class Goal(NamedTuple):
    """A goal: an upper limit on a figure of merit on a game."""

    says: str
    place: int
    figure: str
    at_most: float
    relative: bool = False  # to 2-UCB alone

    def measured(self, played: Played, name: str) -> Estimate:
        """Return the figure of this rule."""
        if self.relative:
            return played.against_two_ucb(self.figure, self.place, name)
        return Estimate.of(played.by_run(self.figure, self.place, name))


BALANCED, IMBALANCED = PLACES["balanced, M = 100"], PLACES["imbalanced, M = 100"]
GOALS = (
    Goal("overall regret, balanced, M = 100", BALANCED, "overall_regret", 270),
    Goal("overall regret, imbalanced, M = 100", IMBALANCED, "overall_regret", 450),
    Goal("overall regret, imbalanced, M = 1,000", PLACES["imbalanced, M = 1,000"], "overall_regret", 1700),
    Goal("broadcasts, balanced, M = 100", BALANCED, "broadcasts", 3400),
    Goal("worst agent / 2-UCB alone, M = 10", PLACES["balanced, M = 10"], "max_individual_regret", 0.15, True),
)


def _claim(goal: Goal) -> Claim:
    return Claim(
        f"Balanced-GLR, {goal.says}",
        "mean over runs" if not goal.relative else "mean highest individual regret, as a fraction of 2-UCB alone",
        lambda played: goal.measured(played, GLR),
        at_most=goal.at_most,
    )


def goals(played: Played) -> Table:
    """Return the table of goals and measurements."""
    rows = []
    for goal in GOALS:
        paper, ours = goal.measured(played, ETC), goal.measured(played, GLR)
        digits = 3 if goal.relative else 0
        scale = played.alone(goal.place, GLR).overall_regret.mean if goal.relative else 1.0
        middle = float(np.median(played.by_run(goal.figure, goal.place, GLR))) / scale
        rows.append(
            [
                goal.says,
                f"{paper.mean:,.{digits}f} ± {paper.stderr or 0:,.{digits}f}",
                f"at most {goal.at_most:,g}",
                f"{ours.mean:,.{digits}f} ± {ours.stderr or 0:,.{digits}f} (median {middle:,.{digits}f})",
                _plus_minus(imed(goal.place).regret) if goal.figure == "overall_regret" else "–",
                {"holds": "reached", "does not hold": "missed"}.get(_claim(goal).verdict(ours), "undecided"),
            ]
        )
    return Table("Goals", ("", "Balanced-ETC", "goal", "Balanced-GLR", imed(BALANCED).name, ""), rows)


# --- the study ------------------------------------------------------------------------------------------------


def dots(played: Played) -> list[Dots]:
    """Return the regret of each rule on each game that has a limit."""
    shapes = {"full sharing": "ring", "B = inf": "square", ALONE: "diamond", CENTRALISED: "diamond"}
    order = [CENTRALISED, GLR, "KL-ETC", ETC, "full sharing", "B = inf", NO_PROTOCOL, ALONE]
    colours = {rule.name: rule.colour for rule in RULES} | {ALONE: "grey", CENTRALISED: "ink"}
    return [
        Dots(
            name,
            colours[name],
            [over_limit(played, place, name) for place in ROWS.values()],
            shapes.get(name, "dot"),
        )
        for name in order
    ]


ROWS = {name: place for name, place in PLACES.items() if limit(place) is not None}


def title(played: Played) -> str:
    """The finding."""
    ours, theirs = (played.result(BALANCED, name).overall_regret.mean for name in (GLR, ETC))
    best = imed(BALANCED).regret.mean
    return f"Balanced-GLR: {ours / best:.1f} times the regret of one learner; Balanced-ETC: {theirs / best:.0f}"


def text(played: Played) -> str:
    """What the figure shows."""
    glr, etc = (played.result(BALANCED, name) for name in (GLR, ETC))
    short = PLACES["balanced, M = 100, T = 1e5"]
    loose, even, tight = (played.result(short, name).overall_regret.mean for name in (NO_PROTOCOL, ETC, GLR))
    loud = played.result(short, NO_PROTOCOL).broadcasts.mean
    worst = played.against_two_ucb("max_individual_regret", PLACES["balanced, M = 10"], GLR)
    return (
        f"In the paper's balanced game, 100 agents together lose {glr.overall_regret.mean:,.0f} and share "
        f"{glr.broadcasts.mean:,.0f} rewards; with Balanced-ETC they lose {etc.overall_regret.mean:,.0f} and share "
        f"{etc.broadcasts.mean:,.0f}. Even among ten agents, the worst off loses {worst.mean:.0%} of what 2-UCB "
        f"alone does. By step 100,000, sharing without a protocol loses {loose:,.0f} and shares {loud:,.0f} rewards; "
        f"Balanced-ETC loses {even:,.0f} and Balanced-GLR {tight:,.0f}. One learner that makes all 10^8 pulls itself "
        f"and sees every reward loses {imed(BALANCED).regret.mean:,.0f} by IMED, less than the limit of "
        f"{limit(BALANCED):,.0f}: the limit is asymptotic and does not bind at a finite horizon. It is that of M T "
        "pulls of arms with rewards in [0, 1]; random games have none, as its mean over games is infinite."
    )


STUDY = Study(
    name="frontier",
    question="How near does each rule come to the Lai-Robbins limit, and to one learner that sees everything?",
    values=tuple(PLACES.values()),
    lines=_lines(),
    sharing="Balanced: agent m shares arm m mod 10. Imbalanced: the two best arms have one sharer each, which acts "
    "first. Neighbours-2: two arms each. Random: means and sharing drawn for each run.",
    panels=(
        Panel(
            curves=(),
            shows="overall regret / Lai-Robbins limit",
            rows=tuple(ROWS),
            dots=dots,
        ),
    ),
    title=title,
    text=text,
    claims=tuple(map(_claim, GOALS)),
    axis="game",
    tables=lambda played: (goals(played), side_by_side(played)),
)

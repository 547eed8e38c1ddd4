"""Regret against broadcasts: which rule to take if a broadcast has a price.

Each rule is played along its `lead` or `balance`, and Shared-IMED also along the factor of its `clock`. At a price p,
the cost of a group is its regret plus p times its broadcasts. The places of the axis are the games of `GAMES`,
counted from 1. Thompson sampling, IMED and KL-UCB alone broadcast nothing, so the price does not change their cost.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from partage.game import Game
from partage.rules import KLETC, BalancedETC, BalancedGLR, SharedIMED
from partage.rules.rule import Rule
from partage.sharing import Sharing
from partage.simulate.result import Estimate
from partage.studies.frontier_games import STRONG, THREE
from partage.studies.paper import ARMS
from partage.studies.results import Played
from partage.studies.study import Claim, Level, Line, Panel, Path, Point, Study, Table

GAMES = {
    "balanced, M = 100, T = 1e5": Game(ARMS, Sharing.round_robin(100, 10), 10**5),
    "imbalanced, M = 100, T = 1e5": Game(ARMS, Sharing.scarce_best(100, 10), 10**5),
    "0.9/0.8/0.7, M = 12, T = 3,000": Game(THREE, Sharing.round_robin(12, 3), 3000),
}
PLACES = {name: place for place, name in enumerate(GAMES, 1)}
PRICES = (0.0, 0.01, 0.1, 1.0)
LEADS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0)
CLOCKS = (0.01, 0.1, 0.3, 1.0, 10.0)
BALANCES = (1.0, 2.0, 4.0, math.inf)
ALONE = "alone"
ALONE_RUNS = 100  # at most, of games with 10^5 steps


class Family(NamedTuple):
    """A rule along one of its parameters, and its colour."""

    name: str
    make: Callable[[float], Rule]
    parameter: str
    values: Sequence[float]
    colour: str

    def line(self, value: float) -> str:
        """Return the name of the line with this value of the parameter."""
        return f"{self.name}, {self.parameter} {value:g}"


FAMILIES = (
    Family("Shared-IMED", lambda lead: SharedIMED(lead=lead), "lead", LEADS, "green"),
    Family("Shared-IMED, lead 2", lambda clock: SharedIMED(lead=2.0, clock=clock), "clock", CLOCKS, "good"),
    Family("Balanced-GLR, betting", lambda lead: BalancedGLR(lead=lead, evidence="betting"), "lead", LEADS, "purple"),
    Family("Balanced-GLR", lambda lead: BalancedGLR(lead=lead), "lead", LEADS, "blue"),
    Family("KL-ETC", KLETC, "B", BALANCES, "grey"),
    Family("Balanced-ETC", BalancedETC, "B", BALANCES, "orange"),
)
SHARED, BETTING = FAMILIES[0], FAMILIES[2]


def game(place: int) -> Game:
    """Return the game at a place."""
    return list(GAMES.values())[place - 1]


def _alone_runs(place: int) -> int | None:
    return ALONE_RUNS if game(place).horizon >= 10**5 else None


# --- what a price chooses -------------------------------------------------------------------------------------


class Choice(NamedTuple):
    """What costs least at a price: a line (or `ALONE`), and its mean cost."""

    line: str
    cost: Estimate


def cost(played: Played, place: int, line: str, price: float) -> Estimate:
    """Return the mean of regret plus price times broadcasts."""
    regret, broadcasts = (played.by_run(figure, place, line) for figure in ("overall_regret", "broadcasts"))
    return Estimate.of(regret + price * broadcasts)


def alone(played: Played, place: int) -> Estimate:
    """Return what all agents lose by the best learner alone."""
    best = min((played.result(place, name).overall_regret for name in STRONG), key=lambda each: each.mean)
    agents = game(place).agents
    return Estimate(agents * best.mean, None if best.stderr is None else agents * best.stderr)


def best_of(played: Played, place: int, price: float, family: Family) -> Choice:
    """Return the value of the parameter with which a rule costs least."""
    every = [Choice(line, cost(played, place, line, price)) for line in map(family.line, family.values)]
    return min(every, key=lambda choice: choice.cost.mean)


def best(played: Played, place: int, price: float) -> Choice:
    """Return what costs least at a price, the best learner alone included."""
    every = [best_of(played, place, price, family) for family in FAMILIES]
    return min([*every, Choice(ALONE, alone(played, place))], key=lambda choice: choice.cost.mean)


def highest_price(played: Played, place: int) -> float:
    """Return the price above which no rule costs less than the best learner alone."""
    apart = alone(played, place).mean
    return max(
        (apart - played.result(place, line).overall_regret.mean) / played.result(place, line).broadcasts.mean
        for family in FAMILIES
        for line in map(family.line, family.values)
    )


def by_price(played: Played) -> Table:
    """Return the table of what each rule costs at each price, with the value of its parameter that costs least."""
    rows = []
    for name, place in PLACES.items():
        rows.append([f"{name} (sharing pays up to a price of {highest_price(played, place):.2g})"])
        for price in PRICES:
            every = [best_of(played, place, price, family) for family in FAMILIES]
            chosen = best(played, place, price)
            cells = [f"{_shown(each.cost)} ({each.line.rpartition(', ')[2]})" for each in every]
            rows.append([f"{price:g}", chosen.line, *cells, _shown(alone(played, place))])
    headings = ("price", "costs least", *(family.name for family in FAMILIES), "best alone")
    return Table("Regret plus price times broadcasts, at the best lead, clock or B", headings, rows)


def along_lead(played: Played) -> Table:
    """Return the table of regret and broadcasts of every line."""
    rows = []
    for family in FAMILIES:
        rows.append([family.name])
        for value in family.values:
            results = [played.result(place, family.line(value)) for place in PLACES.values()]
            cells = [_shown(figure) for each in results for figure in (each.overall_regret, each.broadcasts)]
            rows.append([f"{family.parameter} {value:g}", *cells])
    headings = ["", *(f"{figure}, {name}" for name in GAMES for figure in ("regret", "broadcasts"))]
    return Table("Regret and broadcasts", headings, rows)


def _shown(value: Estimate) -> str:
    digits = 1 if value.mean < 100 else 0
    return f"{value.mean:,.{digits}f}" + ("" if value.stderr is None else f" ± {value.stderr:,.{digits}f}")


# --- the figure -----------------------------------------------------------------------------------------------


def _paths(place: int) -> Callable[[Played], list[Path]]:
    def paths(played: Played) -> list[Path]:
        shown = []
        for family in FAMILIES:
            results = [(value, played.result(place, family.line(value))) for value in family.values]
            points = [Point(each.broadcasts, each.overall_regret, f"{value:g}") for value, each in results]
            shown.append(Path(f"{family.name} (along {family.parameter})", family.colour, points))
        return shown

    return paths


def _levels(place: int) -> Callable[[Played], list[Level]]:
    return lambda played: [Level(alone(played, place), "best alone, all agents", "ink")]


def title(played: Played) -> str:
    """The finding."""
    cheap = sorted({best(played, place, 0.01).line for place in PLACES.values()})
    prices = [highest_price(played, place) for place in PLACES.values()]
    return (
        f"At 0.01 per broadcast take {' or '.join(cheap)}; above {min(prices):.2g} to {max(prices):.2g}, learn alone"
    )


def text(played: Played) -> str:
    """What the figure shows."""
    sentences = []
    for name, place in PLACES.items():
        chosen = "; ".join(f"at {price:g}, {best(played, place, price).line}" for price in PRICES)
        most = highest_price(played, place)
        sentences.append(f"{name}: {chosen}. Above a price of {most:.2g} the best learner alone costs less.")
    return (
        "What costs least at a price per broadcast, in units of reward. "
        + " ".join(sentences)
        + f" The highest lead tried is {LEADS[-1]:g}. If every arm has equally many sharers, B makes no difference."
    )


def _saving(place: int, price: float) -> Callable[[Played], Estimate]:
    """Return the measure of a claim: the cost of Shared-IMED less that of the best certified rule, at its best."""

    def measure(played: Played) -> Estimate:
        lines = [best_of(played, place, price, family).line for family in (SHARED, BETTING)]
        ours, theirs = (
            played.by_run("overall_regret", place, line) + price * played.by_run("broadcasts", place, line)
            for line in lines
        )
        return Estimate.of(ours - theirs)

    return measure


STUDY = Study(
    name="broadcasts",
    question="Which rule should a group take if a broadcast has a price?",
    values=tuple(PLACES.values()),
    lines=(
        *(
            Line(family.line(value), family.make(value), game, "none")
            for family in FAMILIES
            for value in family.values
        ),
        *(
            Line(name, rule, lambda at: game(at).alone(), "none", most_runs=_alone_runs)
            for name, rule in STRONG.items()
        ),
    ),
    sharing="Balanced and 0.9/0.8/0.7: agent m shares arm m mod N. Imbalanced: the two best arms have one sharer "
    "each, which acts first.",
    panels=tuple(
        Panel(
            curves=(),
            shows=f"overall regret,\n{name.partition(', T')[0]}",
            paths=_paths(place),
            levels=_levels(place),
            across="broadcasts",
        )
        for name, place in PLACES.items()
    ),
    title=title,
    text=text,
    claims=tuple(
        Claim(
            f"At a price of {price:g}, Shared-IMED costs less than Balanced-GLR with betting: {name}",
            "difference of regret plus price times broadcasts, each at its best lead",
            _saving(place, price),
            at_most=0,
        )
        for name, place in PLACES.items()
        for price in PRICES
    ),
    axis="game",
    tables=lambda played: (by_price(played), along_lead(played)),
)

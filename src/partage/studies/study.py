"""What a study is: a family of games along an axis, the rules to play, what to draw, and claims to check.

A study is data. What depends on results, such as a title or the value that a claim measures, is a small function of
the `Played` study.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from partage.checks import count
from partage.errors import InputError
from partage.game import Game
from partage.rules.rule import Rule
from partage.simulate.fold import FIGURES
from partage.simulate.result import Estimate
from partage.simulate.trial import Trial

if TYPE_CHECKING:
    from partage.studies.results import Played

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
TWO_UCB = "two_ucb_regret"
STANDARD_ERRORS = 2  # how far from its limit a measured value must be for a verdict


@dataclass(frozen=True)
class Line:
    """A rule on a family of games: one curve, or one group of curves.

    Parameters
    ----------
    name
        Its name in tables.
    rule
        How agents decide.
    game
        The game at each place of the study's axis, for example with this many agents.
    settlement
        "paper", "equal-share", "equal-share-expected", "none", "pool", "dues", or "default": the paper's if it is
        defined for the rule, otherwise none.
    fee
        What the controller of an equal share or a pool adds to the bill, as a fraction of all compensations.
    places
        The places of the axis at which the line is played; all by default.
    most_runs
        The largest number of runs at a place, if runs take long; None for no limit.
    prepaid
        What everyone prepays at each place; a pool and dues need it.
    underwriting
        The most that the controller may lose; None for the settlement's default.
    alone
        The learner alone that limits the charges of an equal share, as for `partage.play`; by default the best.
    """

    name: str
    rule: Rule
    game: Callable[[int], Game]
    settlement: str = "default"
    fee: float = 0.0
    places: Sequence[int] | None = None
    most_runs: Callable[[int], int | None] = lambda at: None
    prepaid: Callable[[int], float | None] = lambda at: None
    underwriting: float | None = None
    alone: str | None = None


class Curve(NamedTuple):
    """A curve: a figure of merit of a line (by default the first) along the axis, or over time.

    `figure` is one of `partage.simulate.fold.FIGURES`, or "two_ucb_regret" for 2-UCB alone. `colour` is a name from
    the report's palette; `label` is drawn beside the curve.
    """

    figure: str
    label: str
    colour: str = "blue"
    line: str | None = None
    dashed: bool = False


class Mark(NamedTuple):
    """A mark on the horizontal axis, with its uncertainty to either side and a label below or on top."""

    at: float
    label: str
    colour: str = "ink"
    stderr: float | None = None
    on_top: bool = False


class Dots(NamedTuple):
    """A kind of dot in a panel of rows: one estimate per row, or None.

    `shape` is one of "dot", "ring", "square" and "diamond".
    """

    label: str
    colour: str
    estimates: Sequence[Estimate | None]
    shape: str = "dot"


class Point(NamedTuple):
    """A point of a path: two estimates, and the value of the parameter that gives it, unless the axis shows it."""

    x: Estimate
    y: Estimate
    label: str = ""


class Path(NamedTuple):
    """A path through the plane, such as regret against broadcasts along a parameter of a rule."""

    label: str
    colour: str
    points: Sequence[Point]


class Level(NamedTuple):
    """A horizontal line across a panel of paths."""

    at: Estimate
    label: str
    colour: str = "ink"


class Table(NamedTuple):
    """A table below a figure, as text. A row with a single cell is a heading for the rows that follow."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Panel:
    """One set of axes: its curves, the label of the vertical axis, and whether axes are logarithmic.

    With `rows`, it shows `dots` in these rows instead of curves; the dotted line at 1 is what `dotted` says. With
    `linear_to`, the axis is linear up to that value on both sides of 0, and logarithmic beyond; the dotted line of a
    panel of rows is then at 0. With `across`, it shows `paths` and `levels` against what that names, on logarithmic
    axes.
    """

    curves: Sequence[Curve]
    shows: str = "regret"
    log_x: bool = True
    log_y: bool = True
    over_time: bool = False
    marks: "Callable[[Played], Sequence[Mark]]" = lambda played: ()
    rows: Sequence[str] = ()
    dots: "Callable[[Played], Sequence[Dots]]" = lambda played: ()
    dotted: str = "the limit"
    across: str = ""
    paths: "Callable[[Played], Sequence[Path]]" = lambda played: ()
    levels: "Callable[[Played], Sequence[Level]]" = lambda played: ()
    linear_to: float | None = None


@dataclass(frozen=True)
class Claim:
    """A claim about a study, the value that is measured for it, and the limits within which it holds.

    Parameters
    ----------
    says
        What is claimed, in a few words.
    measures
        What is measured, in a few words.
    measure
        The function that measures it, with a standard error.
    at_least, at_most
        The claim holds if the measured value is within these limits by two standard errors, and does not hold if
        it is outside them by as much. In between it is undecided, and more runs are needed.
    source
        Where the paper makes the claim; "Partage" if the claim is ours.
    expected
        Whether it held at full size when the study was written. If a verdict contradicts this, `partage reproduce`
        ends with exit code 1.
    note
        A remark on the verdict.
    percent
        Whether to show the measured value as a percentage.
    """

    says: str
    measures: str
    measure: "Callable[[Played], Estimate]"
    at_least: float = -math.inf
    at_most: float = math.inf
    source: str = "Partage"
    expected: bool = True
    note: str = ""
    percent: bool = False

    def __post_init__(self) -> None:
        if not self.at_least <= self.at_most or math.inf in (self.at_least, -self.at_most):
            raise InputError(f"The claim {self.says!r} has limits that no value can be within.")
        if math.isinf(self.at_least) and math.isinf(self.at_most):
            raise InputError(f"The claim {self.says!r} has no limit; it must have at_least, at_most or both.")

    @property
    def rule(self) -> str:
        """The limits, in words."""
        low, high = (
            f"{100 * limit:g}%" if self.percent else f"{limit:,.6g}" for limit in (self.at_least, self.at_most)
        )
        if math.isinf(self.at_least):
            return f"at most {high}"
        return f"at least {low}" if math.isinf(self.at_most) else f"{low} to {high}"

    def verdict(self, measured: Estimate) -> str:
        """Return whether the claim holds, does not hold, or is undecided (as it always is for a single run)."""
        if measured.stderr is None or math.isnan(measured.mean) or math.isnan(measured.stderr):
            return UNDECIDED
        reach = STANDARD_ERRORS * measured.stderr
        low, high = measured.mean - reach, measured.mean + reach
        if self.at_least <= low and high <= self.at_most:
            return HOLDS
        return FAILS if high < self.at_least or self.at_most < low else UNDECIDED


@dataclass(frozen=True)
class Study:
    """An experiment, as data.

    Parameters
    ----------
    name
        Its name for `partage reproduce`.
    question
        The question, in one sentence.
    values
        The places of the axis: whole numbers, in increasing order.
    lines
        What is played at each place.
    sharing
        Who shares which arms, in one sentence.
    panels
        What is drawn.
    title
        The finding, in one line, from the results.
    text
        What the figure shows, in two sentences, from the results.
    claims
        The claims to check.
    axis
        What the axis counts.
    checkpoints
        Steps up to which the regret over time is recorded.
    tables
        Tables to show below the figure.
    trials
        Runs that are not of a rule on a game; a study may have them instead of lines.
    """

    name: str
    question: str
    values: Sequence[int]
    lines: Sequence[Line]
    sharing: str
    panels: Sequence[Panel]
    title: "Callable[[Played], str]"
    text: "Callable[[Played], str]"
    claims: Sequence[Claim] = ()
    axis: str = "agents"
    checkpoints: Sequence[int] = ()
    tables: "Callable[[Played], Sequence[Table]]" = lambda played: ()
    trials: Sequence[Trial] = ()

    def places(self, line: Line) -> Sequence[int]:
        """Return the places of the axis at which a line is played."""
        return self.values if line.places is None else line.places

    def __post_init__(self) -> None:
        where = f"The study {self.name!r}"
        if not self.name or not all(letter.isalnum() or letter in "-_" for letter in self.name):
            raise InputError(f"{where} has a name that cannot be a file name; use letters, digits, - and _.")
        values = [count(f"A place on the axis of the study {self.name!r}", value) for value in self.values]
        if not values or values != sorted(set(values)):
            raise InputError(f"{where} has the places {values} on its axis; they must be increasing.")
        names = [*(line.name for line in self.lines), *(trial.name for trial in self.trials)]
        if not names or len(set(names)) != len(names):
            raise InputError(f"{where} has the lines {names}; it needs at least one, and names must differ.")
        for line in self.lines:
            if not set(self.places(line)) <= set(values):
                raise InputError(f"{where} plays the line {line.name!r} at {line.places}; its axis has {values}.")
        for curve in (curve for panel in self.panels for curve in panel.curves):
            if curve.figure not in (*FIGURES, TWO_UCB):
                allowed = ", ".join((*FIGURES, TWO_UCB))
                raise InputError(f"{where} draws {curve.figure!r}; it must be one of {allowed}.")
            if curve.line is not None and curve.line not in names:
                raise InputError(f"{where} draws the line {curve.line!r}; it must be one of {', '.join(names)}.")
        if any(panel.over_time for panel in self.panels) and not self.checkpoints:
            raise InputError(f"{where} draws regret over time; it needs checkpoints.")

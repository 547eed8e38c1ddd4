"""What a part of the bench yields: rows, each with its goal, and charts.

A part is a function without arguments that yields these, and one line in `bench/parts.py`. It may also yield plain
tuples (what, measured, goal, more_is_better, unit), which become rows.
"""

import math
import statistics
from collections.abc import Sequence
from typing import Any

import msgspec

MET, MISSED = "met", "missed"


class Row(msgspec.Struct, frozen=True, tag="row"):
    """One measurement.

    Attributes
    ----------
    what
        What is measured, e.g. "a broadcast / a step of the bare loop".
    measured
        The median of the repeats; None if there is no measurement, and then `note` says why.
    goal
        The limit that the project sets itself: the most, or the least if `more_is_better`.
    more_is_better
        Whether larger values are better.
    unit
        "x" for a ratio of two measurements of one run of the bench, which is recorded; otherwise e.g. "ms".
    low, high
        The lowest and the highest of the repeats.
    repeats
        How many there were.
    above
        Whether the true value is above `measured`: the measurement was stopped there.
    note
        What a reader should know, e.g. why a measurement was stopped.
    """

    what: str
    measured: float | None = None
    goal: float | None = None
    more_is_better: bool = False
    unit: str = "x"
    low: float | None = None
    high: float | None = None
    repeats: int = 1
    above: bool = False
    note: str = ""

    @classmethod
    def of(cls, what: str, values: Sequence[float], goal: float | None = None, **fields: Any) -> "Row":
        """Return the row of several repeats.

        >>> Row.of("a", [3.0, 1.0, 2.0], goal=2.0).measured
        2.0
        """
        spread = {"low": min(values), "high": max(values), "repeats": len(values)}
        return cls(what, statistics.median(values), goal, **spread, **fields)

    @property
    def verdict(self) -> str | None:
        """Whether the goal is met; None without a goal, or if the measurement does not say."""
        if self.goal is None or self.measured is None:
            return None
        if self.above and self.measured < self.goal:
            return None
        reached = self.measured >= self.goal if self.more_is_better else self.measured <= self.goal and not self.above
        return MET if reached else MISSED


class Point(msgspec.Struct, frozen=True):
    """A place on a line: the median of the repeats, the lowest and the highest."""

    x: float
    y: float
    low: float
    high: float

    @classmethod
    def of(cls, x: float, values: Sequence[float]) -> "Point":
        """Return the point of several repeats."""
        return cls(x, statistics.median(values), min(values), max(values))


class Line(msgspec.Struct, frozen=True):
    """A line of a chart."""

    label: str
    points: tuple[Point, ...]


class Chart(msgspec.Struct, frozen=True, tag="chart"):
    """A chart with two logarithmic axes."""

    title: str
    x_axis: str
    y_axis: str
    lines: tuple[Line, ...]
    note: str = ""


def as_row_or_chart(found: Any) -> Row | Chart:
    """Return what a part yielded, with a tuple as a row."""
    return found if isinstance(found, Row | Chart) else Row(*found)


def size_of(value: float) -> str:
    """Format a size; powers of 10 from a million on as such.

    >>> size_of(1e15), size_of(30_000)
    ('10^15', '30,000')
    """
    power = round(math.log10(value)) if value > 0 else 0
    return f"10^{power}" if power >= 6 and math.isclose(value, 10.0**power) else f"{value:,.12g}"

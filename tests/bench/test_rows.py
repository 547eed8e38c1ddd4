"""Rows and their verdicts."""

import pytest
from bench.rows import MET, MISSED, Chart, Point, Row, as_row_or_chart, size_of


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (Row("a", 7.9, 8), MET),
        (Row("a", 8.1, 8), MISSED),
        (Row("a", 0.6, 0.5, True), MET),
        (Row("a", 0.4, 0.5, True), MISSED),
        (Row("a", 8.0), None),
        (Row("a", None, 8), None),
        # A measurement that was stopped says only that the value is larger.
        (Row("a", 20.0, 1, above=True), MISSED),
        (Row("a", 0.5, 1, above=True), None),
        (Row("a", 1.0, 1, above=True), MISSED),
        (Row("a", 20.0, 1, True, above=True), MET),
        (Row("a", 0.5, 1, True, above=True), None),
    ],
)
def test_the_verdict_compares_with_the_goal(row, verdict):
    assert row.verdict == verdict


def test_repeats_become_a_median_and_its_spread():
    row = Row.of("a", [5.0, 1.0, 3.0, 100.0, 2.0], goal=4, unit="ms")
    assert (row.measured, row.low, row.high, row.repeats, row.unit, row.verdict) == (3.0, 1.0, 100.0, 5, "ms", MET)
    point = Point.of(10, [5.0, 1.0, 3.0])
    assert (point.x, point.y, point.low, point.high) == (10, 3.0, 1.0, 5.0)


def test_a_tuple_becomes_a_row():
    assert as_row_or_chart(("a", 2.0, 1.5, True, "/s")) == Row("a", 2.0, 1.5, True, "/s")
    chart = Chart("a", "x", "y", ())
    assert as_row_or_chart(chart) is chart


def test_sizes_are_short():
    assert [size_of(size) for size in (2, 30_000, 10**6, 3 * 10**6, 1e15, 0.5)] == [
        "2", "30,000", "10^6", "3,000,000", "10^15", "0.5",
    ]  # fmt: skip

"""Small parts of a bench."""

from bench.parts import Part
from bench.rows import Chart, Line, Point, Row

ABOUT = "What <this> part shows."


def measure():
    yield "a ratio", 2.0, 3, False, "x"
    yield Row.of("many repeats", [1.0, 2.0, 4.0], 1.5, unit="ms", note="a note")
    yield Row("stopped", 20.0, 1, unit="s", above=True)
    yield Row("nothing", None, 5, note="not measured: too slow")
    points = tuple(Point(10.0**power, 2.0**power, 1.9**power, 2.1**power) for power in range(4, 16))
    yield Chart("Growth", "T", "a run, ms", (Line("one", points), Line("other", points[:3])), "A caption.")


def broken():
    yield "first", 2.0, None, False, "x"
    raise OSError("no such thing")


def twice():
    yield "first", 2.0, None, False, "x"
    yield "second", 2.0, None, False, "x"
    yield "first", 3.0, None, False, "x"


def prepare():
    yield True
    raise OSError("what is prepared may fail")


SMALL = (
    Part("small", "A small part", "tests.bench.small_parts:measure", 120, "scale.md#starts"),
    Part("broken", "A broken part", "tests.bench.small_parts:broken", 120),
    Part("long", "A long part", "tests.bench.small_parts:measure", 120, long=True),
)

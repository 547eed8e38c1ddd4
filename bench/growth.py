"""How the time of a run grows with T, M, N and 1/gap."""

from functools import partial

from bench.elsewhere import TooLong, one_by_one
from bench.evidence_rules import RULES, compile_, evenly_spaced, near_tie, played
from bench.rows import Chart, Line, Point, Row, size_of
from bench.timing import over, repeated

ABOUT = (
    "How much longer a run takes if one size grows. A line ends before a size that takes too long; its caption "
    "says so."
)
MEMORY = 8 * 2**30
UNIT = "a run, ms"
AXES = {  # the name of the axis, the title, the game of each size
    "T": ("horizon T", "Growth in the horizon: 10 arms, 10 agents", lambda size: evenly_spaced(10, 10, size)),
    "M": (
        "agents M",
        "Growth in the number of agents: 10 arms, T = 10^6",
        lambda size: evenly_spaced(10, size, 10**6),
    ),
    "N": (
        "arms N",
        "Growth in the number of arms: 10,000 agents, T = 10^5",
        lambda size: evenly_spaced(size, 10_000, 10**5),
    ),
    "1/gap": ("1/gap", "Growth as two arms get closer: 1,000 agents, T = 10^9", lambda size: near_tie(1 / size)),
}
SIZES = {
    "T": [10**power for power in (4, 6, 8, 10, 12, 15)],
    "M": [10**power for power in range(1, 8)],
    "N": [2, 10, 100, 1000, 10_000],
    "1/gap": [10, 30, 100, 300, 1000],
}
LONG_SIZES = {
    "T": [10**power for power in range(4, 16)],
    "M": [10**power for power in range(1, 8)],
    "N": [2, 5, 10, 30, 100, 300, 1000, 3000, 10_000],
    "1/gap": [10, 30, 100, 300, 1000, 3000, 10_000],
}
SHOWN = ("balanced-etc", "balanced-glr", "shared-imed")


def sweep(name, cases):
    """Yield True once the rule is compiled, and then the seconds of every repeat of each case (axis, size)."""
    rule = RULES[name]
    compile_(rule)
    yield True
    for axis, size in cases:
        work = played(AXES[axis][2](size), rule)
        yield repeated({"run": work}, times=3, within=0.5, compiled=True)["run"]


def measure(sizes=SIZES, rules=SHOWN, each=2.0, seconds=55.0):
    """Yield rows with the ratios of the ends of each axis, and a chart for each axis."""
    lines = {axis: [] for axis in sizes}
    notes = {axis: [] for axis in sizes}
    for name in rules:
        cases = [(axis, size) for axis in sizes for size in sizes[axis]]
        found = {axis: {} for axis in sizes}  # the milliseconds of every repeat, by size
        for (axis, size), values in one_by_one(
            "bench.growth:sweep", [name], cases, seconds / len(rules), each, MEMORY, hopeless=_same_axis
        ):
            if isinstance(values, list):
                found[axis][size] = [1e3 * value for value in values]
            else:
                notes[axis].append(_why(name, axis, size, values))
        for axis, repeats in found.items():
            lines[axis].append(Line(name, tuple(Point.of(size, values) for size, values in repeats.items())))
            if len(repeats) > 1:
                yield _ends(name, axis, repeats)
    for axis in sizes:
        label, title, _ = AXES[axis]
        yield Chart(title, label, UNIT, tuple(lines[axis]), " ".join(notes[axis]))


def _same_axis(case, failed):
    """Whether a case is a larger size of the axis on which another was too slow."""
    return case[0] == failed[0]


def _ends(name, axis, repeats):
    """Return the row that compares the largest size with the smallest."""
    first, last = min(repeats), max(repeats)
    pairs = min(len(repeats[first]), len(repeats[last]))
    return Row.of(
        f"{name}: a run with {axis} = {size_of(last)} / {size_of(first)}",
        over(repeats[last][:pairs], repeats[first][:pairs]),
        note=f"{axis} is {size_of(last / first)} times as large",
    )


def _why(name, axis, size, error):
    """Say why a line ends early."""
    at = f"{axis} = {size_of(size)}"
    if isinstance(error, TooLong):
        return f"{name} ends before {at}, which takes over {error.seconds:.3g} s."
    return f"{name} ends before {at}: {error}."


measure_long = partial(measure, LONG_SIZES, tuple(RULES), 8.0, 150.0)

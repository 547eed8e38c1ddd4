"""How the time of a run grows with T, M, N and 1/gap."""

from functools import partial

from bench.elsewhere import TooLong, one_by_one
from bench.evidence_rules import RULES, compile_, evenly_spaced, near_tie, played
from bench.rows import Chart, Line, Point, Row, size_of
from bench.timing import over, processor_seconds, repeated

ABOUT = (
    "How much longer a run takes if one size grows, up to the largest size that a run reaches within the limit. "
    "Exploring grows with log T, and log 10^15 is 3.75 times log 10^4: so should the time of a run. The other "
    "rows have no goal and show the trend. More arms and closer arms need more broadcasts, by a factor that "
    "differs between rules, and each agent has a tally. What these should cost is judged elsewhere: a broadcast "
    "with 1,000 arms and a near tie under Evidence rules, many agents under Balanced-ETC and Ten million agents."
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
ENDS = {  # what the recorded ratio compares, small enough for every run, and its goal
    "T": (10**4, 10**15, 3.75),
    "M": (10, 10**6, None),
    "N": (2, 100, None),
    "1/gap": (10, 1000, None),
}
UNITS = {"T": "steps", "M": "agents", "N": "arms", "1/gap": ""}
SHORT = 0.02  # seconds: of shorter runs, each repeat plays up to `RUNS`, since a call of `play` takes 0.5 ms
RUNS = 20
WITHIN = 0.5  # seconds of repeats after which no other begins
SHOWN = ("balanced-etc", "balanced-glr", "shared-imed")


def sweep(name, cases):
    """Yield True once the rule is compiled, and then the seconds of a run in each repeat, by case (axis, size)."""
    rule = RULES[name]
    compile_(rule)
    yield True
    for axis, size in cases:
        game = AXES[axis][2](size)
        first = processor_seconds(played(game, rule))
        if first > WITHIN:
            yield [first]
            continue
        runs = max(1, min(RUNS, int(SHORT / first)))
        repeats = repeated({"run": played(game, rule, runs)}, times=3, within=WITHIN, compiled=True)["run"]
        yield [value / runs for value in repeats]


def measure(sizes=SIZES, rules=SHOWN, each=4.0, seconds=42.0):
    """Yield rows with the ratio of the ends and the largest size of each axis, and a chart for each axis."""
    lines = {axis: [] for axis in sizes}
    notes = {axis: [] for axis in sizes}
    for name in rules:
        cases = [(axis, size) for axis in sizes for size in sizes[axis]]
        found = {axis: {} for axis in sizes}  # the milliseconds of every repeat, by size
        ended = {}  # why an axis ends early
        for (axis, size), values in one_by_one(
            "bench.growth:sweep", [name], cases, seconds / len(rules), each, MEMORY, hopeless=_same_axis
        ):
            if isinstance(values, list):
                found[axis][size] = [1e3 * value for value in values]
            else:
                ended.setdefault(axis, _why(name, axis, size, values))
        for axis, repeats in found.items():
            lines[axis].append(Line(name, tuple(Point.of(size, values) for size, values in repeats.items())))
            yield _ratio(name, axis, repeats, ended.get(axis, ""))
            yield _largest(name, axis, repeats, ended.get(axis, ""))
        for axis, why in ended.items():
            notes[axis].append(why)
    for axis in sizes:
        label, title, _ = AXES[axis]
        yield Chart(title, label, UNIT, tuple(lines[axis]), " ".join(notes[axis]))


def _same_axis(case, failed):
    """Whether a case is a larger size of the axis on which another was too slow."""
    return case[0] == failed[0]


def _ratio(name, axis, repeats, ended):
    """Return the row that compares the ends of an axis."""
    small, large, goal = ENDS[axis]
    what = f"{name}: a run with {axis} = {size_of(large)} / {size_of(small)}"
    if small not in repeats or large not in repeats:
        return Row(what, None, goal, note=ended or "not measured: not among the sizes")
    pairs = min(len(repeats[large]), len(repeats[small]))
    return Row.of(what, over(repeats[large][:pairs], repeats[small][:pairs]), goal)


def _largest(name, axis, repeats, ended):
    """Return the row with the largest size that was reached."""
    what = f"{name}: the largest {axis} that was reached"
    return Row(what, float(max(repeats)) if repeats else None, more_is_better=True, unit=UNITS[axis], note=ended)


def _why(name, axis, size, error):
    """Say why a line ends early."""
    at = f"{axis} = {size_of(size)}"
    if isinstance(error, TooLong):
        return f"{name} ends before {at}, which takes over {error.seconds:.3g} s."
    return f"{name} ends before {at}, which was not measured: {error}."


measure_long = partial(measure, LONG_SIZES, tuple(RULES), 8.0, 140.0)

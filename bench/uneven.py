"""What uneven games cost, against the even game and a bare loop, and by T.

`python -m bench.uneven` prints tables of all features; `make bench PART=uneven` measures less.

Every game is played once in each repeat, and ratios are taken within a repeat. The tables show medians of them.
"""

import argparse
import json
import statistics
import time

from bench.loops import bare_loop
from bench.rows import Chart, Line, Point, Row
from rich.console import Console
from rich.table import Table

from partage import BalancedETC, BalancedGLR, Game, NetworkGLR, Sharing, Traits, bernoulli
from partage.arms import Bernoulli
from partage.engine import play_runs
from partage.engine.rewards import run_keys
from partage.traits import Change, Delay

ABOUT = (
    "Nine arms and 27 agents, three of which share each arm and differ from each other: how much longer a run "
    "takes than the even game of the same repeat. T = 10^6; for Network-GLR, T = 10^4 and two arms for each "
    "agent. These rows have no goal and show the trend: an even game skips what an uneven one has to play, so the "
    "ratio rises when even games become faster."
)
MEANS = [0.85, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25, 0.15, 0.05]
AGENTS = 27  # three of each arm, and each of them differs from the other two
BARE = 1_000_000
COMPARING = Sharing.neighbours(AGENTS, len(MEANS), 2)  # network-glr needs agents that share two arms


def features(horizon):
    """Return what makes each game uneven: the traits of the three kinds of agents, and fields of the game."""
    delays = [Traits(delay=2), Traits(delay=5), Traits()]
    drawn = [Traits(delay=Delay("exponential", 5)), Traits(delay=Delay("uniform", 5)), Traits()]
    stays = [Traits(joins=1 + horizon // 10), Traits(leaves=horizon // 2), Traits()]
    everything = [
        Traits(pace=1 / 3, delay=Delay("exponential", 5), offset=0.05, joins=1 + horizon // 10),
        Traits(pace=2.5, horizon=horizon // 2, delay=2, offset=-0.05, leaves=horizon // 2),
        Traits(),
    ]
    return {
        "even": ([Traits()] * 3, {}),
        "pace 1/3, 2.5 and 1": ([Traits(pace=1 / 3), Traits(pace=2.5), Traits()], {}),
        "horizons T/10, T/2 and T": ([Traits(horizon=horizon // 10), Traits(horizon=horizon // 2), Traits()], {}),
        "offsets 0.05, -0.05 and 0": ([Traits(offset=0.05), Traits(offset=-0.05), Traits()], {}),
        "delay 2, 5 and 0 steps": (delays, {}),
        "random delay, mean 5": (drawn, {}),
        "late joiners, early leavers": (stays, {}),
        "an arm changes at T/2": ([Traits()] * 3, {"changes": [Change(horizon // 2, 8, Bernoulli(0.5))]}),
        "all at once, and lapses": (
            everything,
            {"changes": [Change(horizon // 2, 8, Bernoulli(0.5))], "claim_steps": 8},
        ),
    }


def game_with(feature, horizon, sharing=None):
    """Return the game with this feature."""
    kinds, fields = features(horizon)[feature]
    traits = [kinds[agent // len(MEANS) % 3] for agent in range(AGENTS)]
    sharing = sharing or Sharing.round_robin(AGENTS, len(MEANS))
    return Game(bernoulli(MEANS), sharing, horizon, traits=traits, **fields)


def timed(work):
    """Return the processor time that `work` takes, and what it returns."""
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


def played(game, rule, runs):
    """Play some runs; return the seconds per run and the broadcasts per run."""
    seconds, broadcasts = timed(
        lambda: sum(int(run.outcome.counts.sum()) for run in play_runs(game, rule, run_keys(0, 0, runs)))
    )
    return seconds / runs, broadcasts / runs


def by_feature(rule, horizon, runs, repeats, sharing=None, names=None):
    """Return for each feature the seconds per run and per broadcast, and both as ratios."""
    games = {name: game_with(name, horizon, sharing) for name in names or features(horizon)}
    found = repeats_of(games, rule, runs, repeats)
    keys = ("seconds", "broadcasts", "seconds_per_broadcast", "times_even", "broadcast_times_bare")
    return {
        name: {
            key: statistics.median(values) for key, values in zip(keys, zip(*found[name], strict=True), strict=True)
        }
        for name in games
    }


def repeats_of(games, rule, runs, repeats):
    """Return for each game what every repeat measured, in the order of the columns of `by_feature`."""
    for game in games.values():
        played(game, rule, 1)  # compiles
    rows = {name: [] for name in games}
    for _ in range(repeats):
        bare = timed(lambda: bare_loop(BARE, 0.5, 27.6))[0] / BARE
        even = None
        for name, game in games.items():
            seconds, broadcasts = played(game, rule, runs)
            even = even or seconds
            each = seconds / max(1, broadcasts)
            rows[name].append((seconds, broadcasts, each, seconds / even, each / bare))
    return rows


def prepare():
    """Compile the kernels, which keeps them on disk."""
    for rule, sharing in ((BalancedETC(), None), (BalancedGLR(), None), (NetworkGLR(), COMPARING)):
        for name in ("even", "pace 1/3, 2.5 and 1"):
            played(game_with(name, 100, sharing), rule, 1)
        yield rule.name


def measure(horizon=10**6, repeats=3, most=9):
    """Yield the rows of three rules, and the chart of Balanced-GLR on uneven games."""
    alike = {name: game_with(name, horizon) for name in features(horizon)}
    shorter = min(horizon, 10**4)
    compared = {name: game_with(name, shorter, COMPARING) for name in features(shorter)}
    for rule, runs, games in (
        (BalancedETC(), 2, alike),
        (BalancedGLR(), 10, alike),
        (NetworkGLR(), 1, compared),
    ):
        found = repeats_of(games, rule, runs, repeats)
        for name, values in [*found.items()][1:]:
            _, _, each, times_even, times_bare = zip(*values, strict=True)
            note = f"a broadcast takes {1e9 * statistics.median(each):,.0f} ns"
            note += f", {statistics.median(times_bare):,.0f} steps of the bare loop"
            yield Row.of(f"{rule.name}: {name} / even", times_even, note=note)
    lines = []
    for name in ("even", "pace 1/3, 2.5 and 1", "all at once, and lapses"):
        points = []
        for power in range(4, most + 1):
            game = game_with(name, 10**power)
            points.append(Point.of(10**power, [1e3 * played(game, BalancedGLR(), 1)[0] for _ in range(3)]))
        lines.append(Line(name, tuple(points)))
    yield Chart("Balanced-GLR on uneven games, by horizon", "horizon T", "a run, ms", tuple(lines))


def by_horizon(rule, horizons, repeats, sharing=None, names=None):
    """Return the median seconds per run by feature and horizon."""
    return {
        name: {
            horizon: statistics.median(played(game_with(name, horizon, sharing), rule, 1)[0] for _ in range(repeats))
            for horizon in horizons
        }
        for name in names or features(10)
    }


def main(arguments=None):
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--most", type=int, default=9, help="horizons up to this power of 10")
    given = parser.parse_args(arguments)
    found = {
        "balanced-etc, T = 10^6": by_feature(BalancedETC(), 10**6, 5, given.repeats),
        "balanced-glr, T = 10^6": by_feature(BalancedGLR(), 10**6, 20, given.repeats),
        "network-glr, T = 10^4, two arms each": by_feature(NetworkGLR(), 10**4, 1, given.repeats, COMPARING),
        "balanced-glr, T = 10^4, two arms each": by_feature(BalancedGLR(), 10**4, 20, given.repeats, COMPARING),
    }
    steps = [10**power for power in range(4, given.most + 1)]
    horizons = {
        "balanced-glr": by_horizon(BalancedGLR(), steps, given.repeats),
        "network-glr, two arms each": by_horizon(NetworkGLR(), steps, 1, COMPARING, ["even", "pace 1/3, 2.5 and 1"]),
    }
    if given.json:
        print(json.dumps({"features": found, "horizons": horizons}))
        return
    for title, rows in found.items():
        table = Table("", "a run, ms", "broadcasts", "a broadcast, ns", "run / even", "broadcast / bare", title=title)
        for name, row in rows.items():
            ms, ns = 1e3 * row["seconds"], 1e9 * row["seconds_per_broadcast"]
            ratios = f"{row['times_even']:.2f}", f"{row['broadcast_times_bare']:.1f}"
            table.add_row(name, f"{ms:,.2f}", f"{row['broadcasts']:,.0f}", f"{ns:,.0f}", *ratios)
        Console().print(table)
    powers = [f"10^{power}" for power in range(4, given.most + 1)]
    for title, rows in horizons.items():
        table = Table("a run, ms, by T", *powers, title=title)
        for name, row in rows.items():
            table.add_row(name, *(f"{1e3 * seconds:,.2f}" for seconds in row.values()))
        Console().print(table)


if __name__ == "__main__":
    main()

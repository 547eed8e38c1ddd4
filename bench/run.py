"""Speed and memory of the engine, of starting up and of the live controller: `make bench`.

Most figures are ratios measured in one run. Each time is the best of several, because other work on the machine can
only slow it down.
"""

import argparse
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench import freezing, service, soak, uneven
from bench.loops import bare_loop, pull_by_pull
from rich.console import Console
from rich.table import Table

import partage
from partage import BalancedETC, Game, Sharing, TwoUCB, bernoulli, play
from partage.engine import rewards as tape
from partage.rules import RULES

ARMS = bernoulli([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])


def balanced(agents, horizon=10**6):
    return Game(ARMS, Sharing.round_robin(agents, len(ARMS)), horizon)


def best(work, times=7):
    """Return the shortest time of `work` in seconds, after one call that compiles it."""
    work()
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def seconds_a_run(game, rule=None, runs=64, jobs=1, times=7):
    """Return the seconds per run, played as a user would: settled and folded."""
    return best(lambda: play(game, rule or BalancedETC(), runs=runs, baseline=False, jobs=jobs), times) / runs


def loop_seconds(agents, horizon, share_of_horizon):
    """Return the seconds that the plain loop would take for one run, estimated from a part of it."""
    key = tape.run_keys(0, 0, 1)[0]
    tie_order = tape.permutation(key[0], key[1], tape.TIE_ORDER, len(ARMS))
    rank = np.argsort(tie_order)
    means = np.array([arm.mean for arm in ARMS])
    shares = np.arange(agents) % len(ARMS)
    steps = horizon // share_of_horizon
    timed = best(lambda: pull_by_pull(means, shares, horizon, steps, key[0], key[1], rank), times=3)
    return timed * share_of_horizon


MEMORY = """
import resource
from partage import BalancedETC, Game, Sharing, bernoulli, play
game = Game(bernoulli([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]), Sharing.round_robin(10**6, 10), 10**6)
play(game, BalancedETC(), runs=1, baseline=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def memory_bytes():
    """Return the peak memory of a process that plays one run of a million agents."""
    return int(subprocess.run([sys.executable, "-c", MEMORY], check=True, capture_output=True, text=True).stdout)


def measure():
    """Yield (what, measured, limit, whether more is better, unit)."""
    ten, crowd = seconds_a_run(balanced(10)), seconds_a_run(balanced(10_000))
    trillion = seconds_a_run(balanced(10, 10**12))
    broadcasts = play(balanced(10), BalancedETC(), runs=64, baseline=False).broadcasts.mean
    bare = best(lambda: bare_loop(5_000_000, 0.5, 27.6)) / 5_000_000
    yield "a run with 10,000 agents / with 10", crowd / ten, 2, False, "x"
    yield "a run of T = 10^12 / of T = 10^6, 10 agents", trillion / ten, 3, False, "x"
    yield "honest compiled loop / engine, 10,000 agents", loop_seconds(10_000, 10**6, 100) / crowd, 1000, True, "x"
    yield "a broadcast / a bare draw-update-root loop", ten / broadcasts / bare, 8, False, "x"
    yield "bare loop, a step", bare * 1e9, None, False, "ns"
    yield "engine, a broadcast", ten / broadcasts * 1e9, None, False, "ns"
    yield "engine, a run with 10 agents", ten * 1e3, None, False, "ms"
    yield "engine, a run with 10,000 agents", crowd * 1e3, None, False, "ms"
    yield "memory of one run with 1,000,000 agents", memory_bytes() / 2**20, 1024, False, "MiB"
    few = seconds_a_run(balanced(1), TwoUCB(), runs=8, times=3)
    wide = Game(bernoulli(np.linspace(0.9, 0, 1000)), Sharing.nothing(1, 1000), 10**6)
    many = seconds_a_run(wide, TwoUCB(), runs=2, times=3)
    yield "2-UCB alone, a step with 10 arms", few / 10**6 * 1e9, None, False, "ns"
    yield "2-UCB alone, a step with 1,000 arms", many / 10**6 * 1e9, None, False, "ns"
    for name in ("kl-ucb", "imed", "thompson"):
        alone = seconds_a_run(balanced(1), RULES[name](), runs=2, times=3)
        yield f"{name} alone, a step with 10 arms", alone / 10**6 * 1e9, None, False, "ns"
    one = best(lambda: play(balanced(1000), BalancedETC(), runs=1024, baseline=False, jobs=1), 5)
    two = best(lambda: play(balanced(1000), BalancedETC(), runs=1024, baseline=False, jobs=2), 5)
    yield "one thread / two threads", one / two, 1.8, True, "x"


SIMULATE = ("-m", "partage.cli", "simulate", "--means", "0.9,0.8,0.7", "--agents", "30", "--horizon", "1e6")


def processor_seconds(home, *arguments):
    """Return the processor time of a Python process and its children, with the package from `home`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(home), "HOME": str(home)}
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start_up():
    """Yield the time from start to answer, for a fresh copy of the package whose kernels are not compiled yet."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        shutil.copytree(Path(partage.__file__).parent, home / "partage", ignore=shutil.ignore_patterns("__pycache__"))
        yield "first simulate after an install, processor time", processor_seconds(home, *SIMULATE), 12, False, "s"
        warm = [
            ("simulate, processor time", SIMULATE, None),
            ("partage --help, processor time", ("-m", "partage.cli", "--help"), 0.3),
            ("import partage.client, processor time", ("-c", "import partage.client"), 0.3),
        ]
        for what, arguments, limit in warm:
            processor_seconds(home, *arguments)
            yield what, min(processor_seconds(home, *arguments) for _ in range(5)), limit, False, "s"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    alone = {
        "freezing": freezing.main,
        "soak": soak.main,
        "uneven": uneven.main,
    }  # with tables of their own, by name only
    parts = ("engine", "cold", "service", *alone)
    parser.add_argument("part", nargs="?", choices=parts, help="one part only")
    given = parser.parse_args()
    if given.part in alone:
        alone[given.part]([])
        return
    as_json, parts = given.json, {"engine": measure, "cold": start_up, "service": service.measure}
    rows = []
    for row in itertools.chain.from_iterable(parts[part]() for part in parts if given.part in (None, part)):
        rows.append(row)
        if not as_json:
            print(f"\r{len(rows)} measured", end="", file=sys.stderr, flush=True)
    if as_json:
        print(
            json.dumps(
                {what: {"measured": value, "limit": limit, "unit": unit} for what, value, limit, _, unit in rows}
            )
        )
        return
    table = Table(title="Partage on this machine", caption="limits from the project's goals")
    for column in ("what", "measured", "limit", ""):
        table.add_column(column, justify="left" if column == "what" else "right")
    for what, value, limit, more, unit in rows:
        met = "" if limit is None else ("met" if (value >= limit if more else value <= limit) else "MISSED")
        bound = "" if limit is None else f"{'at least' if more else 'at most'} {limit:,}"
        table.add_row(what, f"{value:,.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}", bound, met)
    print(file=sys.stderr)
    Console().print(table)


if __name__ == "__main__":
    main()

"""Play many seeds on all cores, or one with its whole trace.

make faults SEEDS=10000
python -m tests.simulator.run 4711
"""

import argparse
import gc
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import NamedTuple

from tests.simulator.scenario import Trial

CHUNK = 20  # seeds that a worker plays before it reports


class Report(NamedTuple):
    """What happened in some seeds."""

    seeds: int
    steps: int
    counts: Counter[str]
    outcomes: Counter[str]
    failed: int | None = None  # the first seed that failed
    why: str = ""


def play(seeds: range) -> Report:
    """Play some seeds, up to the first that fails."""
    steps, counts, outcomes = 0, Counter[str](), Counter[str]()
    gc.freeze()  # what is imported stays, and need not be looked through
    for place, seed in enumerate(seeds):
        trial = Trial(seed)
        try:
            trial.run()
        except Exception as error:
            why = "".join(traceback.format_exception_only(error)).strip()
            return Report(place + 1, steps, counts, outcomes, seed, why)
        steps += trial.world.steps
        counts += trial.world.counts
        outcomes += trial.witness.outcomes
    return Report(len(seeds), steps, counts, outcomes)


def add(one: Report, other: Report) -> Report:
    """Return two reports as one."""
    first = one if one.failed is not None and (other.failed is None or one.failed < other.failed) else other
    sums = (one.seeds + other.seeds, one.steps + other.steps, one.counts + other.counts)
    return Report(*sums, one.outcomes + other.outcomes, first.failed, first.why)


def play_all(seeds: int, first: int, workers: int, until: float) -> Iterator[Report]:
    """Play seeds from `first` on, in several processes; yield the sum so far after each chunk."""
    left = iter(range(first, first + seeds, CHUNK))
    total = Report(0, 0, Counter(), Counter())
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        running: set[Future[Report]] = set()
        while True:
            while len(running) < workers and total.failed is None and time.monotonic() < until:
                start = next(left, None)
                if start is None:
                    break
                running.add(pool.submit(play, range(start, min(start + CHUNK, first + seeds))))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for one in done:
                total = add(total, one.result())
            yield total


def summary(total: Report, seconds: float) -> str:
    """Return what happened, for a person."""
    faults = {name.removeprefix("fault: "): times for name, times in total.counts.items() if name.startswith("fault")}
    others = {name: times for name, times in total.counts.items() if not name.startswith("fault")}
    lines = [f"{total.seeds:,} seeds, {total.steps:,} steps, {sum(faults.values()):,} faults, {seconds:,.0f} s"]
    for title, table in (("faults", faults), ("events", others), ("answers", total.outcomes)):
        lines.append(f"{title}:")
        lines += [f"{times:>12,}  {name}" for name, times in sorted(table.items(), key=lambda one: (-one[1], one[0]))]
    return "\n".join(lines)


def main() -> None:
    """Play the seeds that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", nargs="?", type=int, help="play one seed and print its trace")
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds to play")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--minutes", type=float, default=24 * 60.0, help="begin no more seeds after this time")
    given = parser.parse_args()
    if given.seed is not None:
        trial = Trial(given.seed, print)
        print(trial.plan)
        trial.run()
        print(f"The trace is {trial.world.trace}.")
        return
    began = shown = time.monotonic()
    total = Report(0, 0, Counter(), Counter())
    for total in play_all(given.seeds, given.first, given.workers, began + 60 * given.minutes):
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(f"{total.seeds:,} seeds, {total.steps:,} steps, {shown - began:,.0f} s", flush=True)
    print(summary(total, time.monotonic() - began))
    if total.failed is not None:
        print(f"\nSeed {total.failed} failed: {total.why}\nReplay it: python -m tests.simulator.run {total.failed}")
        sys.exit(1)


if __name__ == "__main__":
    main()

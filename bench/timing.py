"""Timing: processor time, medians of repeats, and ratios within a repeat."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from bench.loops import bare_loop

BARE = 1_000_000  # steps of the bare loop in each repeat


def processor_seconds(work: Callable[[], object]) -> float:
    """Return the processor time that `work` takes, which other programs hardly change."""
    started = time.process_time()
    work()
    return time.process_time() - started


def wall_seconds(work: Callable[[], object]) -> float:
    """Return how long one waits for `work`."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def bare() -> None:
    """Run the bare loop."""
    bare_loop(BARE, 0.5, 27.6)


def repeated(
    works: Mapping[Any, Callable[[], object]],
    times: int = 7,
    within: float = 20.0,
    clock: Callable[[Callable[[], object]], float] = processor_seconds,
    compiled: bool = False,
) -> dict[Any, list[float]]:
    """Return the seconds of each work in every repeat, after one call of each unless all is `compiled`.

    In a repeat they take turns, so that a ratio of two of them compares the same moment. Repeats end after `times`,
    or when those that were made took `within` seconds of wall time.
    """
    for work in works.values() if not compiled else ():
        work()
    seconds: dict[Any, list[float]] = {name: [] for name in works}
    ends = time.perf_counter() + within
    for _ in range(times):
        for name, work in works.items():
            seconds[name].append(clock(work))
        if time.perf_counter() > ends:
            break
    return seconds


def over(seconds: list[float], others: list[float]) -> list[float]:
    """Return the ratio of each repeat.

    >>> over([2.0, 9.0], [1.0, 3.0])
    [2.0, 3.0]
    """
    return [one / other for one, other in zip(seconds, others, strict=True)]

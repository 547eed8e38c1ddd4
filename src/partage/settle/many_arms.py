"""Gaps and costs of many arms, by the compiled twins of `find_gaps` and `least_cost`, which give the same bits.

Each separated arm is compared with each arm left. With hundreds of arms, plain Python would take minutes
and keep other threads from running.

This module needs numba; `partage.settle.core` imports it where there are many arms and numba is installed.
"""

from collections.abc import Callable, Sequence

import numpy as np

from partage.settle.equal_share import find_gaps
from partage.settle.noiseless import least_cost


def gaps(
    counts: Sequence[int], sums: Sequence[float], left: Sequence[bool], public: Sequence[bool], coverage: float
) -> tuple[list[float], list[float]]:
    """Return both ends of the gap of every separated arm."""
    ends = np.zeros((2, len(counts)))
    record = np.array(counts, np.int64), np.array(sums, np.float64)
    find_gaps.compiled(*record, np.array(left, np.bool_), np.array(public, np.bool_), coverage, ends[0], ends[1])
    return ends[0].tolist(), ends[1].tolist()


def cost_of(lower: Sequence[float], upper: Sequence[float]) -> Callable[..., float]:
    """Return `least_cost` for gaps between these ends, whatever ends it is called with."""
    low_ends, high_ends = np.array(lower, np.float64), np.array(upper, np.float64)

    def cost(low: float, high: float, _lower: object, _upper: object, steps: float) -> float:
        return float(least_cost.compiled(low, high, low_ends, high_ends, steps))

    return cost

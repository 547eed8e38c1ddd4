"""What kernels for agents that play alone have in common: one agent's record, and the regret over time."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.compiled import inlined, inner, uncounted
from partage.engine.rewards import next_reward


class Own(NamedTuple):
    """One agent's own record of each arm, and the last word of rewards that was read (see `bernoulli_sum`)."""

    counts: NDArray[np.int64]
    sums: NDArray[np.float64]
    word: NDArray[np.uint64]
    group_of: NDArray[np.int64]


@inner
def new_own(arms):
    """Return an empty record."""
    return Own(np.zeros(arms, np.int64), np.zeros(arms), np.zeros(arms, np.uint64), np.full(arms, np.int64(-1)))


@inlined
def pull(k0, k1, table, agent, arm, own):
    """Pull an arm and record its reward."""
    own.sums[arm] += next_reward(k0, k1, table, arm, own.counts[arm], 1 + agent, own.word, own.group_of)
    own.counts[arm] += 1


@uncounted
def add_to_curve(checkpoint, pulls, checkpoints, gaps, counts, curve):
    """Add an agent's regret at all checkpoints up to its pull number `pulls`; return the next checkpoint."""
    while checkpoint < len(checkpoints) and checkpoints[checkpoint] <= pulls:
        for arm in range(len(gaps)):
            curve[checkpoint] += gaps[arm] * counts[arm]
        checkpoint += 1
    return checkpoint

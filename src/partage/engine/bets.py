"""The bets of Balanced-GLR on arrays: the same steps as `partage.rules.betting`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.betting import GRID, is_beaten, largest_bet, lost, pooled_mean, won
from partage.compiled import inner


class Bets(NamedTuple):
    """The rule's public state, as `partage.rules.betting.first_state` describes it; the sum of leaders comes last."""

    against: NDArray[np.float64]
    own: NDArray[np.float64]
    own_counts: NDArray[np.int64]
    own_sums: NDArray[np.float64]


@inner
def new_bets(arms):
    """Make room for all arms, and in the last row for all leaders together."""
    rows = arms + 1
    return Bets(np.zeros((rows, GRID)), np.zeros((rows, GRID)), np.zeros(rows, np.int64), np.zeros(rows))


@inner
def settle_bets(arm, reward, led, bets):
    """Add a reward of `arm` to the bets; `led` says whether it was the leader's."""
    for g in range(GRID):
        bets.against[arm, g] += lost(g, reward)
    if led:
        every = len(bets.own_counts) - 1
        for g in range(GRID):
            gain = won(g, reward)
            bets.own[every, g] += gain
            bets.own[arm, g] += gain
        for row in (every, arm):
            bets.own_counts[row] += 1
            bets.own_sums[row] += reward


@inner
def judge(arm, threshold, counts, sums, bets):
    """Return the evidence against an arm, and whether it is beaten."""
    every = len(bets.own_counts) - 1
    count, led = counts[arm], bets.own_counts[every] - bets.own_counts[arm]
    q = pooled_mean(count, sums[arm], led, bets.own_sums[every] - bets.own_sums[arm])
    against, on, own = bets.against[arm], bets.own[every], bets.own[arm]
    evidence = largest_bet(q, count, against, led, on, own)
    beaten = evidence >= threshold and is_beaten(threshold, q, count, against, led, on, own)
    return max(0.0, evidence), beaten

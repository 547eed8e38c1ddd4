"""The bets of Balanced-GLR on arrays: the same steps as `partage.rules.betting`, without those that cannot matter."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.betting import GRID, contest, largest_bet, lost, most_lost, most_won, pooled_mean, won
from partage.compiled import inner

_MARGIN = 1e-6  # far above what rounding adds to a bound


class Bets(NamedTuple):
    """The rule's public state (`partage.rules.betting.first_state`) and, for each arm, a bound on the wealth.

    The last row of `led`, `led_counts` and `led_sums` is that of all leaders together; the last row of `on` is empty.
    At `bound_at` the logarithm of the wealth is at most `bound`.
    """

    against: NDArray[np.float64]
    on: NDArray[np.float64]
    led: NDArray[np.float64]
    led_counts: NDArray[np.int64]
    led_sums: NDArray[np.float64]
    bound: NDArray[np.float64]
    bound_at: NDArray[np.float64]


@inner
def new_bets(arms):
    """Make room for all arms."""
    rows = np.zeros((arms + 1, GRID)), np.zeros((arms + 1, GRID)), np.zeros((arms + 1, GRID))
    return Bets(*rows, np.zeros(arms + 1, np.int64), np.zeros(arms + 1), np.zeros(arms), np.full(arms, 0.5))


@inner
def settle_bets(arm, reward, led, bets):
    """Add a reward of `arm` to the bets; `led` says whether it came from the leader."""
    every = len(bets.bound)
    for g in range(GRID):
        gain = won(g, reward)
        bets.against[arm, g] += lost(g, reward)
        bets.on[arm, g] += gain
        if led:
            bets.led[every, g] += gain
            bets.led[arm, g] += gain
    if led:
        for row in (every, arm):
            bets.led_counts[row] += 1
            bets.led_sums[row] += reward
        for i in range(every):
            if i != arm:
                bets.bound[i] += most_won(reward, bets.bound_at[i])
    bets.bound[arm] += most_lost(reward, bets.bound_at[arm])


@inner
def is_beaten(arm, threshold, counts, sums, bets):
    """Whether the wealth of betting against an arm, and on the leaders other than it, reaches the threshold.

    One q at which the wealth is below it is enough to say no. So the last such q serves until the bound on the wealth
    there reaches the threshold, and most broadcasts need no more than that.
    """
    if bets.bound[arm] < threshold - _MARGIN:
        return False
    every = len(bets.bound)
    count, led = counts[arm], bets.led_counts[every] - bets.led_counts[arm]
    q = pooled_mean(count, sums[arm], led, bets.led_sums[every] - bets.led_sums[arm])
    beaten, bets.bound_at[arm], bets.bound[arm] = contest(
        threshold, q, count, bets.against[arm], led, bets.led[every], bets.led[arm]
    )
    return beaten


@inner
def evidence_against(arm, leader, counts, sums, bets):
    """Return the largest bet against an arm and on the leader's whole record, at their pooled mean; at least 0."""
    q = pooled_mean(counts[arm], sums[arm], counts[leader], sums[leader])
    largest = largest_bet(q, counts[arm], bets.against[arm], counts[leader], bets.on[leader], bets.on[-1])
    return max(0.0, largest)

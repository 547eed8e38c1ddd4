"""The bets of Balanced-GLR on an array: the same steps as `partage.rules.betting`, without those that cannot matter.

The array has one row per arm, and a last one for all leaders together. Its columns are the rule's public state
(`partage.rules.betting.first_state`): the bets against the arm and on it, and the bets on leaders from the time when
it led, with their count and sum. Two more columns hold a bound on the logarithm of the wealth, and the q at which it
holds. It is a single array because every further one would slow down all calls, also those of other rules.
"""

import numpy as np

from partage.betting import GRID, contest, largest_bet, lost, most_lost, most_won, pooled_mean, won
from partage.compiled import inner

_AGAINST, _ON, _LED = 0, GRID, 2 * GRID
_COUNT, _SUM, _BOUND, _BOUND_AT, _COLUMNS = range(3 * GRID, 3 * GRID + 5)
_MARGIN = 1e-6  # far above what rounding adds to a bound


@inner
def new_bets(arms):
    """Make room for all arms. Without bets the wealth is 1 for every q."""
    bets = np.zeros((arms + 1, _COLUMNS))
    bets[:, _BOUND_AT] = 0.5
    return bets


@inner
def settle_bets(arm, reward, led, bets):
    """Add a reward of `arm` to the bets; `led` says whether it came from the leader."""
    every = len(bets) - 1
    for g in range(GRID):
        gain = won(g, reward)
        bets[arm, _AGAINST + g] += lost(g, reward)
        bets[arm, _ON + g] += gain
        if led:
            bets[arm, _LED + g] += gain
            bets[every, _LED + g] += gain
    bets[arm, _BOUND] += most_lost(reward, bets[arm, _BOUND_AT])
    if led:
        for row in (every, arm):
            bets[row, _COUNT] += 1.0
            bets[row, _SUM] += reward
        for i in range(every):
            if i != arm:
                bets[i, _BOUND] += most_won(reward, bets[i, _BOUND_AT])


@inner
def is_beaten(arm, threshold, counts, sums, bets):
    """Whether the wealth of betting against an arm, and on the leaders other than it, reaches the threshold.

    One q at which the wealth is below it is enough to say no. So the last such q serves until the bound on the wealth
    there reaches the threshold, and most broadcasts need no more than that.
    """
    if bets[arm, _BOUND] < threshold - _MARGIN:
        return False
    row, every = bets[arm], bets[len(bets) - 1]
    count, led = counts[arm], every[_COUNT] - row[_COUNT]
    q = pooled_mean(count, sums[arm], led, every[_SUM] - row[_SUM])
    beaten, row[_BOUND_AT], row[_BOUND] = contest(
        threshold, q, count, row[_AGAINST : _AGAINST + GRID], led, every[_LED : _LED + GRID], row[_LED : _LED + GRID]
    )
    return beaten


@inner
def evidence_against(arm, leader, counts, sums, bets):
    """Return the largest bet against an arm and on the leader's whole record, at their pooled mean; at least 0."""
    q = pooled_mean(counts[arm], sums[arm], counts[leader], sums[leader])
    against, on = bets[arm, _AGAINST : _AGAINST + GRID], bets[leader, _ON : _ON + GRID]
    none = bets[len(bets) - 1, _ON : _ON + GRID]
    return max(0.0, largest_bet(q, counts[arm], against, counts[leader], on, none))

"""The bets of Balanced-GLR on an array: the same steps as `partage.rules.betting`, without those that cannot matter.

The array has one row per arm, and a last one for all leaders together. Its columns are the rule's public state
(`partage.rules.betting.first_state`): the bets against the arm and on it, and the bets on leaders from the time when
it led, with their count and sum. Three more columns hold a bound on the logarithm of the wealth at some q, and what a
bet with the largest stake gains there by a reward of q. It is a single array because every further one would slow down all calls, also those of other rules.
"""

import numpy as np

from partage.betting import GRID, contest, largest_bet, lost, pooled_mean, won
from partage.compiled import inner, uncounted

_AGAINST, _ON, _LED = 0, GRID, 2 * GRID
_COUNT, _SUM, _BOUND, _LOST_AT, _WON_AT, _COLUMNS = range(3 * GRID, 3 * GRID + 6)
_MARGIN = 1e-6  # far above what rounding adds to a bound
# What rewards of 0 and of 1 add to each bet: most rewards are one of these.
_LOST = np.array([[lost(g, reward) for g in range(GRID)] for reward in (0.0, 1.0)])
_WON = np.array([[won(g, reward) for g in range(GRID)] for reward in (0.0, 1.0)])


@inner
def new_bets(arms):
    """Make room for all arms. Without bets the wealth is 1 for every q, 1/2 among them."""
    return np.zeros((arms + 1, _COLUMNS))


@uncounted
def settle_bets(arm, reward, led, bets):
    """Add a reward of `arm` to the bets; `led` says whether it came from the leader."""
    every, known = len(bets) - 1, reward == 0.0 or reward == 1.0
    which = np.int64(reward) if known else np.int64(0)
    loss, gain = 0.0, 0.0
    for g in range(GRID):
        loss = _LOST[which, g] if known else lost(g, reward)
        gain = _WON[which, g] if known else won(g, reward)
        bets[arm, _AGAINST + g] += loss
        bets[arm, _ON + g] += gain
        if led:
            bets[arm, _LED + g] += gain
            bets[every, _LED + g] += gain
    # The last stake is the largest: no other bet gains more. The bound on the wealth at an arm's q rises by as much.
    bets[arm, _BOUND] += max(0.0, loss - bets[arm, _LOST_AT])
    if led:
        for row in (every, arm):
            bets[row, _COUNT] += 1.0
            bets[row, _SUM] += reward
        for i in range(every):
            if i != arm:
                bets[i, _BOUND] += max(0.0, gain - bets[i, _WON_AT])


@uncounted
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
    beaten, q, row[_BOUND] = contest(
        threshold, q, count, row[_AGAINST : _AGAINST + GRID], led, every[_LED : _LED + GRID], row[_LED : _LED + GRID]
    )
    row[_LOST_AT], row[_WON_AT] = lost(GRID - 1, q), won(GRID - 1, q)
    return beaten


@uncounted
def evidence_against(arm, leader, counts, sums, bets):
    """Return the largest bet against an arm and on the leader's whole record, at their pooled mean; at least 0."""
    q = pooled_mean(counts[arm], sums[arm], counts[leader], sums[leader])
    against, on = bets[arm, _AGAINST : _AGAINST + GRID], bets[leader, _ON : _ON + GRID]
    none = bets[len(bets) - 1, _ON : _ON + GRID]
    return max(0.0, largest_bet(q, counts[arm], against, counts[leader], on, none))

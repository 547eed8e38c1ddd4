"""The bets of Balanced-GLR on an array: the same steps as `partage.rules.betting`, without those that cannot matter.

The array has one row per arm, and a last one for all leaders together. Its columns are the rule's public state
(`partage.rules.betting.first_state`): the bets against the arm and on it, and the bets on leaders from the time when
it led, with their count and sum. Three more columns hold a bound on the logarithm of the wealth at some q, and what a
bet with the largest stake gains there by a reward of q. It is a single array because every further one would slow
down all calls, also those of other rules.
"""

import math

import numpy as np

from partage.betting import GRID, STAKES, contest, largest_bet, lost, pooled_mean, won
from partage.compiled import inner, uncounted

_AGAINST, _ON, _LED = 0, GRID, 2 * GRID
_COUNT, _SUM, _BOUND, _LOST_AT, _WON_AT, _COLUMNS = range(3 * GRID, 3 * GRID + 6)
_MARGIN = 1e-6  # far above what rounding adds to a bound
# What rewards of 0 and of 1 add to each bet: most rewards are one of these.
_LOST = np.array([[lost(g, reward) for g in range(GRID)] for reward in (0.0, 1.0)])
_WON = np.array([[won(g, reward) for g in range(GRID)] for reward in (0.0, 1.0)])
# The logarithms of what fair prices are, at every 256th of q. They are concave in q, so chords lie below them.
_CELLS = 256
_PRICE_AGAINST = np.array([[lost(g, cell / _CELLS) for g in range(GRID)] for cell in range(_CELLS + 1)])
_PRICE_ON = np.array([[won(g, cell / _CELLS) for g in range(GRID)] for cell in range(_CELLS + 1)])
_NOBODY = np.int64(-1)


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
    """Return the largest bet against an arm and on the leader's whole record, at their pooled mean; at least 0.

    Chords bound each of the 64 parts from above. If one part is larger than the bounds of all others, only that part
    is computed, and otherwise all are, as the rule does.
    """
    count, led = counts[arm], counts[leader]
    q = pooled_mean(count, sums[arm], led, sums[leader])
    cell = min(np.int64(q * _CELLS), _CELLS - 1)
    share = q * _CELLS - cell
    rounding = 1e-9 + 1e-12 * (count + led)
    largest, runner_up, stake, other = -math.inf, -math.inf, _NOBODY, _NOBODY
    second, second_1, second_2, second_3, second_4 = 0.0, 0.0, 0.0, 0.0, 0.0
    for g in range(GRID):
        second_4, second_3, second_2, second_1 = second_3, second_2, second_1, second
        low, high = _PRICE_ON[cell, g], _PRICE_ON[cell + 1, g]
        second = bets[leader, _ON + g] - led * (low + share * (high - low))
        low, high = _PRICE_AGAINST[cell, g], _PRICE_AGAINST[cell + 1, g]
        first = bets[arm, _AGAINST + g] - count * (low + share * (high - low))
        best, next_best, with_stake = 0.0, -math.inf, _NOBODY
        for part, its in ((second, g), (second_2, g - 2), (second_4, g - 4)):
            if its >= 0:
                if part > best:
                    best, next_best, with_stake = part, best, its
                else:
                    next_best = max(next_best, part)
        if first + best > largest:
            largest, runner_up, stake, other = first + best, max(largest, first + next_best), g, with_stake
        else:
            runner_up = max(runner_up, first + best)
    if largest < -rounding:
        return 0.0
    at = q - 0.5
    found = bets[arm, _AGAINST + stake] - count * math.log(1.0 - STAKES[stake] * at)
    if other >= 0:
        found += bets[leader, _ON + other] - led * math.log(1.0 + STAKES[other] * at)
    if found > runner_up + rounding:
        return max(0.0, found)
    against, on = bets[arm, _AGAINST : _AGAINST + GRID], bets[leader, _ON : _ON + GRID]
    none = bets[len(bets) - 1, _ON : _ON + GRID]
    return max(0.0, largest_bet(q, count, against, led, on, none))

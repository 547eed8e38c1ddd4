"""Evidence by betting: what rewards in [0, 1] say against "this arm is best", whatever their distribution.

A gambler bets that an arm's mean is below q and that the leader's is above q. With a stake of beta, a reward X of the
arm multiplies its money by (1 - beta (X - 1/2)) / (1 - beta (q - 1/2)), and a reward of the leader by
(1 + beta (X - 1/2)) / (1 + beta (q - 1/2)). If the arm's mean is at least q and the leader's at most q, no bet is
favourable. The best stake depends on means and variances, so the gambler divides its money among many. The evidence
is its wealth for the q that makes it smallest (docs/betting.md has the argument).

A row of bets is the sum, over some rewards, of log(1 - beta (X - 1/2)) or of log(1 + beta (X - 1/2)), for each beta
in `STAKES`. These functions are shared: plain Python and kernels compute the same bits (see `partage.compiled`).
"""

import math
from collections.abc import Sequence

from partage.compiled import shared

LOWEST, HIGHEST, GRID = -5.0, 4.0, 16
# Between 0 and 2, so that no single reward in [0, 1] takes all the money; dense at both ends.
STAKES = tuple(2.0 / (1.0 + math.exp(-(LOWEST + (HIGHEST - LOWEST) * g / (GRID - 1)))) for g in range(GRID))
MIXED = 4.0 * GRID  # stake g against the arm goes with stakes g, g - 2 and g - 4 on the leader, and with none
LOG_MIXED = math.log(MIXED)  # what the wealth falls short of its largest part, at most
_NEGLIGIBLE = -40.0  # a part of the wealth below exp(-40) of the largest part
_ROUNDS = 60


@shared
def lost(stake: int, reward: float) -> float:
    """Return what a bet against the arm gains by a reward, before it is divided by the fair price."""
    return math.log(1.0 - STAKES[stake] * (reward - 0.5))


@shared
def won(stake: int, reward: float) -> float:
    """Return what a bet on the leader gains by a reward, before it is divided by the fair price."""
    return math.log(1.0 + STAKES[stake] * (reward - 0.5))


@shared
def pooled_mean(count: int, total: float, led: int, led_total: float) -> float:
    """Return the mean of two records, with half a success and half a failure added: never 0 or 1."""
    return (total + led_total + 0.5) / (count + led + 1.0)


@shared
def largest_bet(
    q: float, count: int, against: Sequence[float], led: int, on: Sequence[float], own: Sequence[float]
) -> float:
    """Return the logarithm of the largest part of the wealth at q.

    Parameters
    ----------
    q
        The mean that separates arm and leader under the null hypothesis.
    count, against
        The arm's broadcasts, and the row of bets against it.
    led, on, own
        The leaders' broadcasts that count, the row of bets on leaders, and the part of that row that does not count:
        from the time when the arm itself was the leader.
    """
    at, highest = q - 0.5, -math.inf
    # Bets on the leader with stakes g, g - 1, ..., g - 4; no bet where there is no such stake.
    second, second_1, second_2, second_3, second_4 = 0.0, 0.0, 0.0, 0.0, 0.0
    for g in range(GRID):
        second_4, second_3, second_2, second_1 = second_3, second_2, second_1, second
        second = on[g] - own[g] - led * math.log(1.0 + STAKES[g] * at)
        first = against[g] - count * math.log(1.0 - STAKES[g] * at)
        highest = max(highest, first + max(max(0.0, second), max(second_2, second_4)))
    return highest


@shared
def log_wealth(
    q: float, count: int, against: Sequence[float], led: int, on: Sequence[float], own: Sequence[float]
) -> tuple[float, float, float]:
    """Return the logarithm of the wealth at q, and its first and second derivative in q.

    Parameters as in `largest_bet`. The wealth is the mean over all combinations of stakes. Parts that are negligible
    beside the largest are left out, which makes it smaller and is therefore safe.
    """
    at, largest = q - 0.5, largest_bet(q, count, against, led, on, own)
    total, slope, curve = 0.0, 0.0, 0.0
    second, second_1, second_2, second_3, second_4 = 0.0, 0.0, 0.0, 0.0, 0.0
    price, price_1, price_2, price_3, price_4 = 0.0, 0.0, 0.0, 0.0, 0.0  # beta / (1 + beta (q - 1/2)): the slopes
    for g in range(GRID):
        second_4, second_3, second_2, second_1 = second_3, second_2, second_1, second
        price_4, price_3, price_2, price_1 = price_3, price_2, price_1, price
        second = on[g] - own[g] - led * math.log(1.0 + STAKES[g] * at)
        price = STAKES[g] / (1.0 + STAKES[g] * at)
        first = against[g] - count * math.log(1.0 - STAKES[g] * at) - largest
        first_price = STAKES[g] / (1.0 - STAKES[g] * at)
        for part, its in (
            (first, 0.0),
            (first + second, price),
            (first + second_2, price_2),
            (first + second_4, price_4),
        ):
            if part > _NEGLIGIBLE:
                weight = math.exp(part)
                rise = count * first_price - led * its
                bend = count * (first_price * first_price) + led * (its * its)
                total += weight
                slope += weight * rise
                curve += weight * (bend + rise * rise)
    slope /= total
    return largest + math.log(total / MIXED), slope, curve / total - slope * slope


@shared
def contest(
    threshold: float,
    q: float,
    count: int,
    against: Sequence[float],
    led: int,
    on: Sequence[float],
    own: Sequence[float],
) -> tuple[bool, float, float]:
    """Return whether the logarithm of the wealth is at least `threshold` for every q in [0, 1].

    If it is not, also return some q at which it is below, and a bound on it there that is below, too. The search
    starts at the given `q`; other parameters as in `largest_bet`. The logarithm is convex in q, so a tangent bounds
    it from below. The search ends as soon as one value is below the threshold, or a tangent is above it wherever the
    minimum may be.
    """
    largest = largest_bet(q, count, against, led, on, own)
    if largest < threshold:  # so is their mean, which takes longer to compute
        return False, q, largest
    low, high = 0.0, 1.0  # the minimum is between them
    for _ in range(_ROUNDS):
        value, slope, curve = log_wealth(q, count, against, led, on, own)
        if value < threshold:
            return False, q, value
        if slope > 0.0:
            high = q
        else:
            low = q
        reach = q - low if slope > 0.0 else high - q
        if value - abs(slope) * reach >= threshold:
            return True, q, value
        q = q - slope / curve if curve > 0.0 else low
        if not low < q < high:
            q = 0.5 * (low + high)
    return False, q, math.inf  # the minimum is at the threshold, up to rounding: not proven

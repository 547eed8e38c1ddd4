"""The gaps of collaborations of formats 1 and 2, whose equal shares leave out what the rule eliminated.

Let C be the arms left at the close: active and public. A pull of an eliminated arm is compensated with its gap to C:
the largest gap that the record allows (`equal-share`), or the difference of the observed means
(`equal-share-expected`).

- One arm left: with d = 1 / ((N - 1) T) the inequality for pairs (`partage.settle.ends`) holds for the best arm and
  every other arm at once, except with probability 1/T. It bounds each gap from above. From below, which matters to
  the ceiling only, a mixture over the half with a larger gap is enough (its prior mass is at most 1/2). As in
  Balanced-GLR this takes off log 2, for another 1/T.
- Several arms left: each mean is bounded with d = 1 / (2 N T). The settlement is unfinished: it does not cover the
  regret on the arms left.

All functions here are shared between plain Python and kernels.
"""

import math
from collections.abc import MutableSequence, Sequence

from partage.compiled import shared
from partage.evidence import mixture_loss
from partage.settle.ends import gap_end, mean_end


@shared
def gaps_of(
    counts: Sequence[int],
    sums: Sequence[float],
    active: Sequence[bool],
    public: Sequence[bool],
    horizon: int,
    expected: bool,
    lower: MutableSequence[float],
    upper: MutableSequence[float],
) -> float:
    """Write both ends of each arm's gap to the arms left into `lower` and `upper`; return the leader's mean.

    - Eliminated arms: both ends of the gap, or with `expected` the difference of the means. Never below 0, although
      a late report in live play may show an eliminated arm to be better than the arms left.
    - Arms left: `lower` is 0 and `upper` is the most that the arm may fall short of another arm left: 0 if it is the
      only one. With `expected` both are 0.
    - Arms that nobody shares, and eliminated arms that were never broadcast: 0.

    If no arm left was broadcast, nothing is known: everything is 0.
    """
    arms, left, leader, leader_mean = len(counts), 0, -1, -math.inf
    for arm in range(arms):
        lower[arm], upper[arm] = 0.0, 0.0
        if active[arm] and public[arm]:
            left += 1
            mean = sums[arm] / counts[arm] if counts[arm] > 0 else -1.0
            if mean > leader_mean:
                leader, leader_mean = arm, mean
    if leader < 0 or counts[leader] == 0:
        return 0.0
    if expected:
        for arm in range(arms):
            if public[arm] and not active[arm] and counts[arm] > 0:
                gap = max(0.0, leader_mean - sums[arm] / counts[arm])
                lower[arm], upper[arm] = gap, gap
    elif left == 1:
        _gaps_to_one(counts, sums, active, public, horizon, leader, lower, upper)
    else:
        _gaps_to_several(counts, sums, active, public, horizon, lower, upper)
    return leader_mean


@shared
def _gaps_to_one(
    counts: Sequence[int],
    sums: Sequence[float],
    active: Sequence[bool],
    public: Sequence[bool],
    horizon: int,
    leader: int,
    lower: MutableSequence[float],
    upper: MutableSequence[float],
) -> None:
    """Write both ends of the gaps of eliminated arms to the only arm left, by the inequality for pairs."""
    arms, n = len(counts), counts[leader]
    level = math.log(arms - 1.0) + math.log(horizon) if arms > 1 else 0.0
    level_below = math.log((math.exp(level) + 1.0) / 2.0)  # one-sided, as in Balanced-GLR
    best, loss = sums[leader] / n, mixture_loss(n, sums[leader])
    for arm in range(arms):
        if public[arm] and not active[arm] and counts[arm] > 0:
            mean, losses = sums[arm] / counts[arm], loss + mixture_loss(counts[arm], sums[arm])
            upper[arm] = min(1.0, max(0.0, gap_end(n, best, counts[arm], mean, level + losses, 1.0)))
            lower[arm] = max(0.0, gap_end(n, best, counts[arm], mean, level_below + losses, -1.0))


@shared
def _gaps_to_several(
    counts: Sequence[int],
    sums: Sequence[float],
    active: Sequence[bool],
    public: Sequence[bool],
    horizon: int,
    lower: MutableSequence[float],
    upper: MutableSequence[float],
) -> None:
    """Write the gaps of public arms to several arms left, by bounds on each mean."""
    arms = len(counts)
    level = math.log(2.0 * arms) + math.log(horizon)
    highest_low, highest = 0.0, 0.0
    for arm in range(arms):  # first the bounds on each mean, then the gaps in their place
        upper[arm] = 1.0
        if counts[arm] > 0:
            mean, spend = sums[arm] / counts[arm], level + mixture_loss(counts[arm], sums[arm])
            lower[arm] = mean_end(counts[arm], mean, spend, -1.0)
            upper[arm] = mean_end(counts[arm], mean, spend, 1.0)
        if public[arm] and active[arm]:
            highest_low, highest = max(highest_low, lower[arm]), max(highest, upper[arm])
    for arm in range(arms):
        low, high = lower[arm], upper[arm]
        lower[arm], upper[arm] = 0.0, 0.0
        if public[arm] and (active[arm] or counts[arm] > 0):
            upper[arm] = min(1.0, max(0.0, highest - low))
            if not active[arm]:
                lower[arm] = max(0.0, highest_low - high)

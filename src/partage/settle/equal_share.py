"""What a record says about gaps, for the equal-share settlements. docs/equal-share.md has the proofs.

Let b be the best public arm. With d = (1 - coverage) / (N - 1), the inequality for pairs (`partage.settle.ends`)
holds for b and every other arm at once, at all times, except with probability 1 - coverage. Everything here follows
from it:

- An arm is *separated* if the inequality allows it no mean as high as the leader's: the public arm of the highest
  mean. The arms left are the leader and all public arms that are not separated. The best arm is one of them.
- A separated arm has a gap to each arm left. The best of these is not known, so the upper end of the arm's gap is the
  largest, and the lower end the smallest, that the inequality allows.
- An arm left may fall short of another by the difference between their means at most.

All functions here are shared between plain Python and kernels.
"""

import math
from collections.abc import MutableSequence, Sequence

from partage.compiled import shared
from partage.evidence import apart, mixture_loss
from partage.settle.ends import gap_end, mean_end


@shared
def level_of(arms: int, coverage: float) -> float:
    """Return log(1 / d) = log((N - 1) / (1 - coverage))."""
    return math.log(max(1.0, arms - 1.0) / (1.0 - coverage))


@shared
def leader_of(counts: Sequence[int], sums: Sequence[float], public: Sequence[bool]) -> int:
    """Return the public arm of the highest mean; -1 if no public arm was broadcast."""
    leader, highest = -1, -math.inf
    for arm in range(len(counts)):
        if public[arm] and counts[arm] > 0 and sums[arm] / counts[arm] > highest:
            leader, highest = arm, sums[arm] / counts[arm]
    return leader


@shared
def find_left(
    counts: Sequence[int],
    sums: Sequence[float],
    public: Sequence[bool],
    coverage: float,
    left: MutableSequence[bool],
    slack: float = 0.0,
) -> int:
    """Write which arms are left; return how many. `slack` widens the threshold.

    The least that a pair of records spends on two equal means is `apart`, at their pooled mean. An arm whose mean is
    the leader's spends nothing, so it is left.
    """
    arms, leader, found = len(counts), leader_of(counts, sums, public), 0
    level = level_of(arms, coverage)
    for arm in range(arms):
        left[arm] = public[arm]
        if left[arm] and leader >= 0 and arm != leader and counts[arm] > 0:
            losses = mixture_loss(counts[leader], sums[leader]) + mixture_loss(counts[arm], sums[arm])
            left[arm] = apart(counts[leader], sums[leader], counts[arm], sums[arm]) <= level + losses + slack
        if left[arm]:
            found += 1
    return found


@shared
def find_means(
    counts: Sequence[int],
    sums: Sequence[float],
    coverage: float,
    lower: MutableSequence[float],
    upper: MutableSequence[float],
) -> None:
    """Write both ends of every arm's mean, as the inequality for pairs allows if the other mean spends nothing."""
    arms, largest_loss = len(counts), 0.0
    level = level_of(arms, coverage)
    for arm in range(arms):
        largest_loss = max(largest_loss, mixture_loss(counts[arm], sums[arm]))
    for arm in range(arms):
        lower[arm], upper[arm] = 0.0, 1.0
        if counts[arm] > 0:
            mean, spend = sums[arm] / counts[arm], level + mixture_loss(counts[arm], sums[arm]) + largest_loss
            lower[arm] = mean_end(counts[arm], mean, spend, -1.0)
            upper[arm] = mean_end(counts[arm], mean, spend, 1.0)


@shared
def find_gaps(
    counts: Sequence[int],
    sums: Sequence[float],
    left: Sequence[bool],
    public: Sequence[bool],
    coverage: float,
    lower: MutableSequence[float],
    upper: MutableSequence[float],
) -> None:
    """Write both ends of the gap of every separated arm; 0 for other arms.

    If an arm left was never broadcast, a gap may be as large as 1 less the arm's own mean. The lower ends ignore such
    an arm: they matter to ceilings only, and no ceiling is promised while several arms are left.
    """
    arms = len(counts)
    level = level_of(arms, coverage)
    for arm in range(arms):
        lower[arm], upper[arm] = 0.0, 0.0
        if left[arm] or not public[arm]:
            continue
        n, mean, loss = counts[arm], sums[arm] / counts[arm], mixture_loss(counts[arm], sums[arm])
        least, most = 1.0, 0.0
        for other in range(arms):
            if left[other] and counts[other] == 0:
                most = max(most, 1.0 - mean_end(n, mean, level + loss, -1.0))
            elif left[other]:
                m, best = counts[other], sums[other] / counts[other]
                spend = level + loss + mixture_loss(m, sums[other])
                most = max(most, gap_end(m, best, n, mean, spend, 1.0))
                if least > 0.0:
                    least = min(least, gap_end(m, best, n, mean, spend, -1.0))
        lower[arm], upper[arm] = max(0.0, least), min(1.0, most)


@shared
def find_risks(
    left: Sequence[bool],
    lower: Sequence[float],
    upper: Sequence[float],
    risks: MutableSequence[float],
) -> None:
    """Write the most that each arm left may fall short of another, given the ends of all means; 0 if it is alone."""
    highest, leading, second = 0.0, -1, 0.0
    for arm in range(len(left)):
        if left[arm] and (leading < 0 or upper[arm] > highest):
            highest, leading, second = upper[arm], arm, highest
        elif left[arm]:
            second = max(second, upper[arm])
    for arm in range(len(left)):
        risks[arm] = max(0.0, (second if arm == leading else highest) - lower[arm]) if left[arm] else 0.0

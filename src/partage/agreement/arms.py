"""The first test: have all members the same mean of an arm."""

import math
from collections.abc import Hashable, Sequence

from partage.agreement.cells import ENOUGH, MOST_NAMED, Cell, Cells, Disagreement, pooled_mean, together
from partage.evidence import apart, kl, mixture_loss

_HALVINGS = 45


def arm_evidence(cells: Sequence[Cell], arms: int) -> float:
    """Return the evidence that the members of these cells do not have one mean of the arm.

    Half of the arm's share is for the comparison of all members with each other, and half for those of one member
    with the others taken together.
    """
    if len(cells) < 2:
        return -math.inf
    return max(_joint_evidence(cells, arms), max(_one_evidence(cells, arms)))


def may_disagree(cells: Sequence[Cell], arms: int) -> bool:
    """Whether `arm_evidence` may be enough: a bound that takes less time, by kl(p, q) <= (p - q)^2 / (q (1 - q))."""
    if len(cells) < 2:
        return False
    count, mean = sum(cell.told for cell in cells), pooled_mean(cells)
    variance, level, joint = mean * (1.0 - mean), ENOUGH + math.log(4.0 * arms), 0.0
    if variance <= 0.0:
        return False
    one_level = (level + _log_members(len(cells))) * variance
    for _, n, total, loss in cells:
        squares = (total - n * mean) ** 2 / n
        if squares * (1.0 + n / (count - n)) >= one_level:
            return True
        joint += squares / variance - loss
    return joint >= level


def _joint_evidence(cells: Sequence[Cell], arms: int) -> float:
    pooled = pooled_mean(cells)
    apart_all = 0.0 if pooled in (0.0, 1.0) else math.fsum(cell.told * kl(cell.mean, pooled) for cell in cells)
    return apart_all - math.fsum(cell.loss for cell in cells) - math.log(4.0 * arms)


def _one_evidence(cells: Sequence[Cell], arms: int) -> list[float]:
    """Return the evidence that one member differs from all others, for each member."""
    count, total = sum(cell.told for cell in cells), math.fsum(cell.total for cell in cells)
    share = math.log(4.0 * arms) + _log_members(len(cells))
    found = []
    for cell in cells:
        n, s = count - cell.told, _rest(total, cell.total, count - cell.told)
        found.append(apart(cell.told, cell.total, n, s) - cell.loss - mixture_loss(n, s) - share)
    return found


def _log_members(members: int) -> float:
    """Return -log of the share of one of so many members, 1 / (k (k + 1)), which sums to 1 over all k."""
    return math.log(members * (members + 1.0))


def on_arms(cells: Cells) -> list[Disagreement]:
    """Return who differs from the others in the mean of an arm, for each arm."""
    return [one for arm, of_arm in enumerate(cells) for one in _on_arm(arm, of_arm, len(cells))]


def _on_arm(arm: int, cells: Sequence[Cell], arms: int) -> list[Disagreement]:
    """Name the member who differs most, then, without that member, the next, until the rest may agree."""
    if not may_disagree(cells, arms):
        return []
    left: list[Cell] = list(cells)
    found: list[Disagreement] = []
    while len(found) < MOST_NAMED and (evidence := arm_evidence(left, arms)) >= ENOUGH:
        if len(left) == 2:
            first, second = left
            found.append(_differs(arm, (first.member, second.member), first, second, math.log(4.0 * arms), evidence))
            break
        by_member = _one_evidence(left, arms)
        at = by_member.index(max(by_member))
        one = left.pop(at)
        share = math.log(4.0 * arms) + _log_members(len(left) + 1)
        found.append(_differs(arm, (one.member,), one, together(left), share, evidence))
    return found


def _differs(
    arm: int, members: tuple[Hashable, ...], one: Cell, others: Cell, share: float, evidence: float
) -> Disagreement:
    low, high = difference_of_means(one, others, ENOUGH + share)
    return Disagreement(arm, None, members, one.mean - others.mean, low, high, evidence)


def difference_of_means(one: Cell, other: Cell, level: float) -> tuple[float, float]:
    """Return the differences of means against which two records have less evidence than `level`, losses included."""
    level += one.loss + other.loss
    middle = one.mean - other.mean
    ends = []
    for end in (-1.0, 1.0):
        inside, outside = middle, end
        if _against(one, other, end) < level:
            inside = end
        else:
            for _ in range(_HALVINGS):
                between = 0.5 * (inside + outside)
                if _against(one, other, between) < level:
                    inside = between
                else:
                    outside = between
        ends.append(inside)
    return ends[0], ends[1]


def _against(one: Cell, other: Cell, difference: float) -> float:
    """Return the evidence against this difference p - q of means: the least n kl(mean, p) + n' kl(mean', q)."""
    low, high = max(0.0, difference), min(1.0, 1.0 + difference)
    for _ in range(_HALVINGS):
        p = 0.5 * (low + high)
        q = p - difference
        if not 0.0 < p < 1.0 or not 0.0 < q < 1.0:
            break
        slope = one.told * (p - one.mean) / (p * (1.0 - p)) + other.told * (q - other.mean) / (q * (1.0 - q))
        if slope > 0.0:
            high = p
        else:
            low = p
    p = 0.5 * (low + high)
    q = min(max(p - difference, 0.0), 1.0)
    return one.told * kl(one.mean, p) + other.told * kl(other.mean, q)


def _rest(total: float, part: float, left: int) -> float:
    """Return what is left of a sum; rounding must not move it out of [0, left]."""
    return min(max(total - part, 0.0), float(left))

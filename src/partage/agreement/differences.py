"""The second test: members may differ by a constant each; do they agree on the differences between arms."""

import math
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from partage.agreement.cells import ENOUGH, MOST_NAMED, Cell, Cells, Disagreement, pooled_mean
from partage.agreement.fit import Fit

MOST_COMPARED = 30  # arms that are compared: those that members disagree on most
MOST_SUSPECTS = 40  # members that are left out in turn to see who differs
_ROUNDING = 1e-9


class Contrast(NamedTuple):
    """One member's difference between two arms: the estimate, 1/n + 1/n', and both losses."""

    member: Hashable
    value: float
    width: float
    loss: float


def difference_evidence(cells: Cells) -> float:
    """Return the evidence that members do not agree on differences between arms.

    Half of the share is for the comparison of all members on all arms, by weighted least squares, and half for those
    of two members on two arms.
    """
    compared = _most_apart(cells)
    return max(_fit_evidence(cells, compared), _pair_evidence(cells, compared))


def _most_apart(cells: Cells) -> list[int]:
    """Return the arms on which members are farthest apart, at most `MOST_COMPARED`."""
    several = [arm for arm, of_arm in enumerate(cells) if len(of_arm) > 1]
    if len(several) > MOST_COMPARED:
        several = sorted(several, key=lambda arm: (-_spread(cells[arm]), arm))[:MOST_COMPARED]
    return sorted(several)


def _distances(cells: Sequence[Cell]) -> list[float]:
    """Return 2 n (mean - pooled mean)^2 for each member."""
    pooled = pooled_mean(cells)
    return [2.0 * (total - n * pooled) ** 2 / n for _, n, total, _ in cells]


def _spread(cells: Sequence[Cell]) -> float:
    return math.fsum(_distances(cells))


def _fit_evidence(cells: Cells, compared: Sequence[int]) -> float:
    """Return the evidence against `mean = offset of the member + value of the arm`, of all members together.

    Arms that are not compared fit by themselves, but their losses count: which arms are compared depends on rewards.
    """
    price = math.fsum(cell.loss for of_arm in cells for cell in of_arm) + math.log(4.0)
    if math.fsum(_spread(cells[arm]) for arm in compared) - price < ENOUGH:
        return -math.inf  # no offsets at all fit well enough, and the best ones fit at least as well
    return 2.0 * Fit([cells[arm] for arm in compared]).squares - price


def _pair_evidence(cells: Cells, compared: Sequence[int]) -> float:
    """Return the strongest evidence that two members disagree on the difference between two arms."""
    strongest = -math.inf
    farthest = {arm: sum(sorted(_distances(cells[arm]))[-2:]) for arm in compared}
    for i, j in combinations(compared, 2):
        if farthest[i] + farthest[j] < ENOUGH + _log_pairs(len(cells), max(len(cells[i]), len(cells[j]))):
            continue  # no two members are farther apart on both arms than the farthest two are on each
        share = _pair_share(cells, i, j)
        found = _contrasts(cells[i], cells[j])
        for one, other in _apart_at_least(found, ENOUGH + share):
            evidence = 2.0 * (one.value - other.value) ** 2 / (one.width + other.width) - one.loss - other.loss
            strongest = max(strongest, evidence - share)
    return strongest


def _pair_share(cells: Cells, i: int, j: int) -> float:
    """Return -log of the share of two members and two arms, of all members that told one of these arms."""
    return _log_pairs(len(cells), len({cell.member for arm in (i, j) for cell in cells[arm]}))


def _log_pairs(arms: int, members: int) -> float:
    """Return -log of the share of two of so many members and two of so many arms.

    A pair of members, the later one number l, has the share 2 / ((l - 1) l (l + 1)), which sums to 1 over all pairs.
    """
    return math.log(2.0 * arms * (arms - 1)) + math.log((members - 1) * members * (members + 1) / 2.0)


def _contrasts(cells: Sequence[Cell], others: Sequence[Cell]) -> list[Contrast]:
    """Return the difference between two arms for each member that told both."""
    told = {cell.member: cell for cell in others}
    found = []
    for one in cells:
        if one.member in told:
            other = told[one.member]
            width = 1.0 / one.told + 1.0 / other.told
            found.append(Contrast(one.member, one.mean - other.mean, width, one.loss + other.loss))
    return found


def _apart_at_least(contrasts: Sequence[Contrast], level: float) -> Iterable[tuple[Contrast, Contrast]]:
    """Yield the pairs whose evidence may be at least `level`, losses included.

    sqrt(u + v) >= (sqrt(u) + sqrt(v)) / sqrt(2), so the intervals of such a pair do not meet. Mostly all of them do,
    which takes no time per pair.
    """
    halves = [0.5 * math.sqrt(one.width * (level + one.loss)) for one in contrasts]
    lows = [one.value - half for one, half in zip(contrasts, halves, strict=True)]
    highs = [one.value + half for one, half in zip(contrasts, halves, strict=True)]
    most, least = max(lows, default=0.0), min(highs, default=0.0)
    if most < least:
        return
    below = [one for one, high in zip(contrasts, highs, strict=True) if high <= most]
    above = [one for one, low in zip(contrasts, lows, strict=True) if low >= least]
    yield from ((one, other) for one in below for other in above if one.member != other.member)


def on_differences(cells: Cells) -> list[Disagreement]:
    """Name the member without whom the rest fit best, then the next, until the rest may agree.

    Two members, or members whose arms form a ring, may be named together: without any one of them the rest fit
    equally well.
    """
    left = cells
    found: list[Disagreement] = []
    while len(found) < MOST_NAMED and (evidence := difference_evidence(left)) >= ENOUGH:
        compared = _most_apart(left)
        among = [left[arm] for arm in compared]
        without = {member: Fit(_without(among, (member,))).squares for member in _suspects(among)}
        least = min(without.values()) * (1.0 + _ROUNDING) + _ROUNDING
        members = tuple(member for member, squares in without.items() if squares <= least)
        found.append(_explained(left, compared, members, evidence))
        left = _without(left, members)
    return found


def _without(cells: Cells, members: tuple[Hashable, ...]) -> Cells:
    return [[cell for cell in of_arm if cell.member not in members] for of_arm in cells]


def _suspects(cells: Cells) -> list[Hashable]:
    """Return the members that may be named: those that told several of these arms.

    Of very many, only those with most rewards and those that fit worst.
    """
    told: dict[Hashable, int] = {}
    for cell in (cell for of_arm in cells for cell in of_arm):
        told[cell.member] = told.get(cell.member, 0) + 1
    several = [member for member, arms in told.items() if arms > 1]
    if len(several) <= MOST_SUSPECTS:
        return several
    counts, misfits = dict.fromkeys(several, 0), dict.fromkeys(several, 0.0)
    fit = Fit(cells)
    for arm, of_arm in enumerate(cells):
        for cell in of_arm:
            if cell.member in counts:
                counts[cell.member] += cell.told
                misfits[cell.member] += fit.misfit(arm, cell)
    half = MOST_SUSPECTS // 2
    most = sorted(several, key=lambda member: -counts[member])[:half]
    worst = sorted((one for one in several if one not in most), key=lambda member: -misfits[member])[:half]
    return [member for member in several if member in most or member in worst]


def _explained(cells: Cells, compared: Sequence[int], members: tuple[Hashable, ...], evidence: float) -> Disagreement:
    """Return on which two arms the first of these members differs most from the others, and by how much."""
    own = {place: cell for place, arm in enumerate(compared) for cell in cells[arm] if cell.member == members[0]}
    rest = Fit(_without([cells[arm] for arm in compared], members[:1]))
    found = []
    for i, j in combinations(own, 2):
        if rest.connected(i, j):
            difference = own[i].mean - own[j].mean - rest.between(i, j)
            width = 1.0 / own[i].told + 1.0 / own[j].told + rest.factor(i, j)
            found.append((difference**2 / width, compared[i], compared[j], difference, width))
    _, i, j, difference, width = max(found)
    low, high = _difference_of_contrasts(cells, i, j, members[0], difference, width)
    return Disagreement(i, j, members, _possible(difference), low, high, evidence)


def _possible(difference: float) -> float:
    """Return the difference of contrasts, at most 2: estimates add up along paths of members, and may exceed it."""
    return max(-2.0, min(2.0, difference))


def _difference_of_contrasts(
    cells: Cells, i: int, j: int, member: Hashable, difference: float, width: float
) -> tuple[float, float]:
    """Return where a member's contrast less that of the others is: the narrowest interval of those that hold.

    One follows from the comparison of all members on all arms, and one from each comparison with another member.
    """
    losses = math.fsum(cell.loss for of_arm in cells for cell in of_arm)
    middle, half = difference, math.sqrt(0.5 * width * (ENOUGH + math.log(4.0) + losses))
    contrasts, level = _contrasts(cells[i], cells[j]), ENOUGH + _pair_share(cells, i, j)
    (own,) = (one for one in contrasts if one.member == member)
    for other in contrasts:
        reach = math.sqrt(0.5 * (own.width + other.width) * (level + own.loss + other.loss))
        if other is not own and reach < half:
            middle, half = own.value - other.value, reach
    return _possible(min(difference, middle - half)), _possible(max(difference, middle + half))

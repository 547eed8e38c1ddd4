"""Contrasts: how arms differ within members, where each member has a level of its own.

The mean of member m's arm i is alpha_m + beta_i. A member that told n_i rewards of arm i, with sum S_i, says nothing
about beta_i alone; it says how its arms differ. Over all members,

    L = sum_m (diag(n_m) - n_m n_m' / |n_m|)        b = sum_m (S_m - n_m |S_m| / |n_m|)

L is the weighted Laplacian of the graph that connects two arms if somebody told both. Weighted least squares of the
whole model estimates beta_i - beta_j by c' L^+ b with c = e_i - e_j, and the variance of that is sigma^2 c' L^+ c.
It exists if a path connects the two arms.
"""

from collections.abc import Collection, Iterable, MutableSequence, Sequence

from partage.compiled import shared
from partage.errors import InputError


@shared
def add_member(
    counts: Sequence[int],
    sums: Sequence[float],
    arms: int,
    laplacian: MutableSequence[float],
    scores: MutableSequence[float],
) -> None:
    """Add what one member told to L, stored row by row, and to b."""
    pulls, total = 0, 0.0
    for arm in range(arms):
        pulls += counts[arm]
        total += sums[arm]
    for i in range(arms):
        if counts[i] > 0:
            scores[i] += sums[i] - counts[i] * total / pulls
            for j in range(arms):
                laplacian[i * arms + j] -= counts[i] * counts[j] / pulls
            laplacian[i * arms + i] += counts[i]


@shared
def label_pieces(laplacian: Sequence[float], arms: int, piece: MutableSequence[int]) -> None:
    """Write for each arm the first arm that a path connects it with; -1 if it has no weight at all."""
    for arm in range(arms):
        piece[arm] = -1
    stack = [0] * arms
    for first in range(arms):
        if piece[first] >= 0 or laplacian[first * arms + first] <= 0.0:
            continue
        piece[first], stack[0], waiting = first, first, 1
        while waiting > 0:
            waiting -= 1
            arm = stack[waiting]
            for other in range(arms):
                if piece[other] < 0 and laplacian[arm * arms + other] < 0.0:
                    piece[other], stack[waiting] = first, other
                    waiting += 1


@shared
def invert(laplacian: Sequence[float], arms: int, piece: Sequence[int], inverse: MutableSequence[float]) -> None:
    """Write a generalised inverse of L: within each piece, the first arm has effect 0.

    Gauss-Jordan without pivoting: L without the rows of these arms is positive definite.
    """
    left = [0.0] * (arms * arms)
    for i in range(arms):
        for j in range(arms):
            both = piece[i] >= 0 and piece[i] != i and piece[j] >= 0 and piece[j] != j
            left[i * arms + j] = laplacian[i * arms + j] if both else 0.0
            inverse[i * arms + j] = 1.0 if both and i == j else 0.0
    for k in range(arms):
        if piece[k] < 0 or piece[k] == k:
            continue
        pivot = left[k * arms + k]
        for j in range(arms):
            left[k * arms + j] /= pivot
            inverse[k * arms + j] /= pivot
        for i in range(arms):
            factor = left[i * arms + k]
            if i != k and factor != 0.0:
                for j in range(arms):
                    left[i * arms + j] -= factor * left[k * arms + j]
                    inverse[i * arms + j] -= factor * inverse[k * arms + j]


class Contrasts:
    """The contrasts of arms, estimated by weighted least squares.

    Parameters
    ----------
    told
        For each member, how often it told each arm, and the sums of these rewards.
    arms
        How many arms there are.
    names
        Names of the arms, for errors.

    Attributes
    ----------
    piece
        For each arm the first arm that a path connects it with; -1 if nobody told both it and another arm.
    effects
        The estimated beta of each arm, less that of the first arm of its piece.

    >>> found = Contrasts([([4, 4, 0], [3.0, 1.0, 0.0]), ([0, 2, 2], [0.0, 2.0, 1.0])], arms=3)
    >>> found.between(0, 2), found.factor(0, 2)
    (1.0, 1.5)
    """

    def __init__(
        self,
        told: Iterable[tuple[Sequence[int], Sequence[float]]],
        arms: int,
        names: Sequence[str] | None = None,
    ) -> None:
        self.arms, self._names = arms, names
        self.laplacian, self.scores = [0.0] * (arms * arms), [0.0] * arms
        for counts, sums in told:
            if sum(count > 0 for count in counts) > 1:
                add_member(counts, sums, arms, self.laplacian, self.scores)
        self.piece = [-1] * arms
        label_pieces(self.laplacian, arms, self.piece)
        self._inverse = [0.0] * (arms * arms)
        invert(self.laplacian, arms, self.piece, self._inverse)
        self.effects = [sum(self._inverse[i * arms + j] * self.scores[j] for j in range(arms)) for i in range(arms)]

    def connected(self, arm: int, other: int) -> bool:
        """Whether a path connects two arms."""
        return self.piece[arm] >= 0 and self.piece[arm] == self.piece[other]

    def between(self, arm: int, other: int) -> float:
        """Return the estimate of beta_arm - beta_other."""
        self._check(arm, other)
        return self.effects[arm] - self.effects[other]

    def factor(self, arm: int, other: int) -> float:
        """Return c' L^+ c: the variance of `between`, for rewards of variance 1."""
        self._check(arm, other)
        inverse, arms = self._inverse, self.arms
        return inverse[arm * arms + arm] + inverse[other * arms + other] - 2.0 * inverse[arm * arms + other]

    def _check(self, arm: int, other: int) -> None:
        if not self.connected(arm, other):
            one, two = (self._names[i] if self._names else f"arm {i + 1}" for i in (arm, other))
            raise InputError(f"Nobody told rewards that connect {one} with {two}; their contrast is not known.")


def pieces(shared_arms: Iterable[Collection[int]], arms: Iterable[int]) -> list[list[int]]:
    """Return these arms by connected piece: two arms are connected if some member shares both.

    >>> pieces([{0, 1}, {1, 2}, {3}], range(4))
    [[0, 1, 2], [3]]
    """
    found = {arm: {arm} for arm in arms}
    for shares in set(map(frozenset, shared_arms)):
        first, *others = [arm for arm in shares if arm in found] or [-1]
        for other in others:
            if found[other] is not found[first]:
                found[first] |= found[other]
                for arm in found[other]:
                    found[arm] = found[first]
    return sorted({id(piece): sorted(piece) for piece in found.values()}.values())


def check_connected(shared_arms: Iterable[Collection[int]], names: Sequence[str]) -> None:
    """Refuse a sharing that does not connect all arms that somebody shares.

    >>> check_connected([{0, 1}, {2}], ["SMS", "Mail", "Letter"])
    Traceback (most recent call last):
    partage.errors.InputError: Nobody shares both Letter and any other arm; members must connect all arms.
    """
    if apart := unconnected(shared_arms):
        raise InputError(f"{nobody_shares_both(apart, names)}; members must connect all arms.")


def unconnected(shared_arms: Iterable[Collection[int]]) -> list[int]:
    """Return the arms, of those that somebody shares, that no member compares with the others.

    >>> unconnected([{0, 1}, {2}])
    [2]
    """
    shares = [frozenset(one) for one in shared_arms]
    found = pieces(shares, sorted(frozenset[int]().union(*shares)))
    return [] if len(found) < 2 else min(found, key=lambda piece: (len(piece), piece))


def nobody_shares_both(apart: Sequence[int], names: Sequence[str]) -> str:
    """Return in words that these arms are not connected to the others."""
    arms = ", ".join(names[arm] for arm in apart)
    return f"Nobody shares both {arms if len(apart) == 1 else f'one of {arms}'} and any other arm"

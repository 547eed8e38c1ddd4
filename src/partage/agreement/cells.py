"""Who told what, by arm, and what is said about members who differ."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from partage.board import Record
from partage.evidence import mixture_loss

ALPHA = 0.01  # the probability that anything is ever said without reason, in the whole game
ENOUGH = math.log(1.0 / ALPHA)
MOST_NAMED = 5  # disagreements on one arm, and on differences between arms: where many differ, there is no "others"


class Disagreement(NamedTuple):
    """Members who see an arm, or the difference of two arms, in another way than others do.

    Attributes
    ----------
    arm, against
        The arm. If members disagree on the difference between two arms, `against` is the other one; otherwise None.
    members
        Who differs: one member, or several if nothing says which of them it is, as with two members.
    difference
        The member's mean less that of the others taken together, without those that were named before. If several
        members are named, that of the first. With `against`, the same of the difference between the two arms.
    low, high
        Where that difference is, at all times at once, if the others agree.
    evidence
        How strong the evidence is, at least log(1 / ALPHA).
    """

    arm: int
    against: int | None
    members: tuple[Hashable, ...]
    difference: float
    low: float
    high: float
    evidence: float


class Cell(NamedTuple):
    """What one member told of one arm: how often, the sum of the rewards, and what the mixture loses on them."""

    member: Hashable
    told: int
    total: float
    loss: float

    @property
    def mean(self) -> float:
        """The mean of the rewards."""
        return self.total / self.told


Cells = list[list[Cell]]  # by arm


def cells_of(records: Mapping[Any, Record], arms: int) -> Cells:
    """Return the records by arm, without members that told nothing of it."""
    cells: Cells = [[] for _ in range(arms)]
    for member, record in records.items():
        for arm, told in enumerate(record.counts):
            if told:
                total = min(max(record.sums[arm], 0.0), float(told))
                cells[arm].append(Cell(member, told, total, mixture_loss(told, total)))
    return cells


def together(cells: Sequence[Cell]) -> Cell:
    """Return several members' cells as one."""
    count, total = sum(cell.told for cell in cells), math.fsum(cell.total for cell in cells)
    return Cell(None, count, min(total, float(count)), mixture_loss(count, min(total, float(count))))


def pooled_mean(cells: Sequence[Cell]) -> float:
    """Return the mean of all members' rewards together."""
    return min(math.fsum(cell.total for cell in cells) / sum(cell.told for cell in cells), 1.0)

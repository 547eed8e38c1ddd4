"""The least squares of `mean = offset of the member + value of the arm`, weighted by how many rewards were told."""

import math
from collections.abc import Hashable

from partage.agreement.cells import Cell, Cells
from partage.board import Record
from partage.contrasts import Contrasts


class Fit(Contrasts):
    """The best fit to some cells, by arm: the contrasts between arms, and the offset of each member."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        told: dict[Hashable, Record] = {}
        for arm, of_arm in enumerate(cells):
            for cell in of_arm:
                record = told.setdefault(cell.member, Record.empty(len(cells)))
                record.counts[arm], record.sums[arm] = cell.told, cell.total
        super().__init__([(record.counts, record.sums) for record in told.values()], len(cells))
        self.offsets = {member: self._offset(record) for member, record in told.items()}

    def _offset(self, record: Record) -> float:
        values = zip(record.counts, record.sums, self.effects, strict=True)
        return math.fsum(total - count * effect for count, total, effect in values) / sum(record.counts)

    def misfit(self, arm: int, cell: Cell) -> float:
        """Return n (mean - offset of the member - value of the arm)^2."""
        return cell.told * (cell.mean - self.effects[arm] - self.offsets[cell.member]) ** 2

    @property
    def squares(self) -> float:
        """The sum of all misfits, which is the least possible."""
        return math.fsum(self.misfit(arm, cell) for arm, of_arm in enumerate(self._cells) for cell in of_arm)

"""The transparent log of a table: its tree, signed checkpoints, proofs and receipts, as the controller makes them."""

from collections.abc import Sequence

import msgspec
from tests.support.sequences import Table

from partage.ledger.chain import Row, row_hash
from partage.ledger.checkpoints import Checkpoint, origin_of, signed_checkpoint
from partage.ledger.keys import Key
from partage.ledger.merkle import Tree
from partage.ledger.receipts import Receipt, encoded_proof


class Log:
    """The log of a collaboration's rows, with the key that signs it."""

    def __init__(self, table: Table, key: Key, rows: Sequence[Row] | None = None) -> None:
        self.table, self.key = table, key
        self._rows = rows
        self._tree = Tree()

    @property
    def rows(self) -> Sequence[Row]:
        """The rows: those of the table, unless others were given."""
        return self.table.rows if self._rows is None else self._rows

    @property
    def tree(self) -> Tree:
        """The tree of all rows so far."""
        for row in self.rows[self._tree.size :]:
            self._tree.append(row_hash(row.salt, row.body))
        return self._tree

    def checkpoint(self, size: int | None = None) -> Checkpoint:
        """The checkpoint after this many rows, or after all."""
        tree = self.tree
        size = tree.size if size is None else size
        return Checkpoint(origin_of(self.table.state.config.collaboration), size, tree.root(size))

    def note(self, size: int | None = None) -> str:
        """The same, signed."""
        return signed_checkpoint(self.checkpoint(size), self.key)

    def receipt(self, seq: int, seen: int | None = None, size: int | None = None) -> Receipt:
        """The receipt of a row, for a member that has seen a checkpoint of this size."""
        size = self.tree.size if size is None else size
        row = self.rows[seq - 1]
        consistency = [] if seen is None else self.tree.consistency(seen, size)
        inclusion = encoded_proof(self.tree.inclusion(seq - 1, size))
        return Receipt(msgspec.Raw(row.body), row.salt.hex(), self.note(size), inclusion, encoded_proof(consistency))

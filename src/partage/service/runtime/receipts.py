"""Receipts, checkpoints and proofs. None of them covers a row that is not on disk."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from partage.ledger.chain import GENESIS, Row, hidden, next_head, row_hash
from partage.ledger.events import decode
from partage.ledger.keys import Key
from partage.ledger.merkle import BLOCK, Tree, Unknown, leaf_hash
from partage.ledger.receipts import Receipt, encoded_proof
from partage.ledger.refusals import Refused, conflict, forbidden
from partage.service.runtime.book import Book
from partage.service.runtime.damage import Damaged, changed, lost, unreadable
from partage.service.runtime.library import Library
from partage.service.runtime.system import System
from partage.service.store import Corrupt, Store

T = TypeVar("T")

ATTEMPTS = 50  # to prove something; each reads a block of rows


class Receipts:
    """The receipts of all collaborations, signed by one key."""

    def __init__(self, store: Store, system: System, library: Library, key: Key) -> None:
        self.key = key
        self._store = store
        self._library = library
        self._call = system.store_calls(store.several)

    async def of(self, book: Book, seq: int, seen: int | None = None, rows: Sequence[Row] = ()) -> Receipt:
        """Return the receipt of a row, for a member whose checkpoint has `seen` rows.

        The row must be on disk, and the member's own: a receipt shows its salt. `rows` are those that the request
        wrote; a row that is not among them is read from the store.
        """
        await self.expect(book, max(seq, seen or 0))
        row = next((row for row in rows if row.seq == seq), None) or await self.row(book, seq)

        def receipt(tree: Tree) -> Receipt:
            checkpoint, note = book.checkpoint(self.key)
            return Receipt(
                row=msgspec.Raw(row.body),
                salt=row.salt.hex(),
                checkpoint=note,
                inclusion=encoded_proof(tree.inclusion(seq - 1, checkpoint.size)),
                consistency=encoded_proof(tree.consistency(seen or 0, checkpoint.size)),
            )

        return await self.proven(book, receipt)

    async def consistency(self, book: Book, old: int, new: int) -> list[str]:
        """Return the proof that the checkpoint of `new` rows continues the one of `old` rows."""
        await self.expect(book, new)
        return encoded_proof(await self.proven(book, lambda tree: tree.consistency(old, new)))

    async def inclusion(self, book: Book, seq: int, size: int, reader: str | None) -> list[str]:
        """Return the proof that a row is in the checkpoint of `size` rows, to a reader who may see the row."""
        await self.expect(book, size)
        if reader is not None and hidden(decode((await self.row(book, seq)).body), reader):
            raise forbidden("hidden_row", "This row is another agent's report of commit pulls.")
        return encoded_proof(await self.proven(book, lambda tree: tree.inclusion(seq - 1, size)))

    async def expect(self, book: Book, size: int | None) -> None:
        """Refuse a request of someone who has seen more rows than this ledger has."""
        if size is not None and size > book.durable:
            await self._library.fresh(book.id)
            if size > book.durable:
                sentence = (
                    f"This ledger has {book.durable:,} rows, fewer than the checkpoint that you have seen: "
                    "it is not the same ledger, or it lost rows."
                )
                raise conflict("checkpoint_ahead", sentence)

    async def row(self, book: Book, seq: int) -> Row:
        """Return a row from the store, if it is the one that was written."""
        try:
            before: Row | None = await self._call(self._store.row, book.id, seq - 1) if seq > 1 else None
            row: Row | None = await self._call(self._store.row, book.id, seq)
            if row is None or (before is None and seq > 1):
                raise lost(seq if row is None else seq - 1)
            hashed = row_hash(row.salt, row.body)
            follows = row.head == next_head(before.head if before else GENESIS, hashed)
        except (Corrupt, TypeError, ValueError) as error:  # a damaged database may even return values of other types
            raise unreadable(seq) from error
        if await self.proven(book, lambda tree: tree.node(0, seq - 1)) != leaf_hash(hashed):
            raise changed(seq)
        if not follows:
            raise Damaged(f"the head of row {seq} or of the row before is not the one that was written")
        return row

    async def proven(self, book: Book, prove: Callable[[Tree], T]) -> T:
        """Return what `prove` returns, with the rows in memory that it needs."""
        for _ in range(ATTEMPTS):
            try:
                return prove(book.tree)
            except Unknown as unknown:
                await self._recall(book, unknown.block)
        raise Refused(503, "busy", "The controller is busy; try again.")

    async def _recall(self, book: Book, block: int) -> None:
        """Read the rows of a block, and keep their hashes in memory."""
        hashes: list[bytes] = []
        start = block * BLOCK
        while len(hashes) < BLOCK:
            after = start + len(hashes)
            try:
                rows: list[Row] = await self._call(self._store.some_rows, book.id, after, start + BLOCK)
                hashes += [row_hash(row.salt, row.body) for row in rows]
            except (Corrupt, TypeError) as error:
                raise unreadable(after + 1) from error
            if not rows:
                raise lost(after + 1)
        if not book.tree.recall(block, hashes):
            raise Damaged(f"one of the rows {start + 1} to {start + BLOCK} is not the one that was written")

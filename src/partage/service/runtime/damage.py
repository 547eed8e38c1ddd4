"""Damaged ledgers: rows are checked whenever they are read, and nothing is served that is not what was written."""

import logging
from collections.abc import Callable

from partage.ledger.chain import GENESIS, Row, next_head, row_hash
from partage.ledger.refusals import Refused
from partage.service.store import Corrupt, Store

log = logging.getLogger("partage.service")

SALT_BYTES = 16
REMEMBERED = 10_000  # ms


class Damaged(Refused):
    """The stored ledger is not the one that was written. The argument ends a sentence and names the place."""

    def __init__(self, what: str) -> None:
        sentence = f"The stored ledger of this collaboration is damaged: {what}; restore the database from a backup."
        super().__init__(503, "damaged_ledger", sentence)


def changed(seq: int) -> Damaged:
    """Return the refusal of a ledger with a row that was changed."""
    return Damaged(f"row {seq} is not the one that was written")


def lost(seq: int) -> Damaged:
    """Return the refusal of a ledger that lacks a row."""
    return Damaged(f"row {seq} is missing")


def unreadable(seq: int) -> Damaged:
    """Return the refusal of a ledger with a row that cannot be read."""
    return Damaged(f"row {seq} cannot be read")


class Chain:
    """Follows a ledger row by row, from the first or from a known head, and refuses the first wrong one."""

    def __init__(self, seq: int = 0, head: str = GENESIS) -> None:
        self.seq = seq
        self.head = head

    def follow(self, row: Row) -> bytes:
        """Return the hash of the next row."""
        seq = self.seq + 1
        if row.seq != seq:
            raise lost(seq)
        # A damaged database may even return values of other types.
        if not isinstance(row.body, bytes) or not isinstance(row.salt, bytes) or len(row.salt) != SALT_BYTES:
            raise changed(seq)
        hashed = row_hash(row.salt, row.body)
        head = next_head(self.head, hashed)
        if row.head != head:
            raise changed(seq)
        self.seq, self.head = seq, head
        return hashed


def next_rows(store: Store, collaboration: str, chain: Chain, last: int | None = None) -> list[tuple[Row, bytes]]:
    """Return the next rows of a ledger with their hashes, each checked; empty only where no row is left."""
    try:
        rows = store.some_rows(collaboration, chain.seq, last)
    except Corrupt as error:
        raise unreadable(chain.seq + 1) from error
    return [(row, chain.follow(row)) for row in rows]


def check_end(store: Store, collaboration: str, chain: Chain) -> bool:
    """Whether a ledger that was read to its end is whole; False if another process wrote more meanwhile.

    The place of its last row is stored apart from the rows, in the same transactions.
    """
    try:
        kept = store.head(collaboration)
        if kept is None or kept[0] < chain.seq:
            raise Damaged(f"the record of its last row, {chain.seq}, is wrong")
        if kept[0] > chain.seq:
            if not store.rows(collaboration, chain.seq, 1):
                raise lost(chain.seq + 1)
            return False
    except Corrupt as error:
        raise unreadable(chain.seq + 1) from error
    if kept[1] != chain.head:
        raise changed(chain.seq)
    return True


class Damages:
    """Remembers for a while which ledgers are damaged: finding out reads a whole ledger."""

    def __init__(self, monotonic: Callable[[], int]) -> None:
        self._monotonic = monotonic
        self._found: dict[str, tuple[Damaged, int]] = {}

    def check(self, collaboration: str) -> None:
        """Refuse a ledger that was found damaged a moment ago."""
        if collaboration in self._found:
            damaged, until = self._found[collaboration]
            if self._monotonic() < until:
                raise damaged
            del self._found[collaboration]

    def note(self, collaboration: str, error: Refused) -> None:
        """Log that a ledger is damaged, and remember it."""
        if isinstance(error, Damaged) and collaboration not in self._found:
            self._found[collaboration] = error, self._monotonic() + REMEMBERED
            log.error("damaged ledger", extra={"collaboration": collaboration, "reason": error.sentence})

"""Witnesses: the newest checkpoint that each member cosigned, which the server relays to the others.

Nobody has to trust the relay: readers check the signatures, and whether a checkpoint is of the ledger they know.
"""

import logging

from partage.ledger.checkpoints import (
    LONGEST_COSIGNED,
    read_checkpoint,
    read_cosignature,
    signed_alone,
    with_cosignatures,
)
from partage.ledger.messages import Cosignature
from partage.ledger.refusals import conflict, invalid
from partage.service.runtime.book import Book
from partage.service.runtime.library import Library
from partage.service.runtime.receipts import Receipts
from partage.service.runtime.system import System
from partage.service.store import Store

log = logging.getLogger("partage.service")


class Witnesses:
    """The cosigned checkpoints of all collaborations."""

    def __init__(self, store: Store, system: System, library: Library, receipts: Receipts) -> None:
        self._store = store
        self._library = library
        self._receipts = receipts
        self._call = system.store_calls(store.several)

    async def checkpoint(self, collaboration: str) -> str:
        """Return the checkpoint of the ledger as it is now, with the cosignatures of this very checkpoint."""
        book = await self._library.fresh(collaboration)
        notes = await self._call(self._store.cosignatures, collaboration)
        return with_cosignatures(book.checkpoint(self._receipts.key)[1], notes.values())

    async def keep(self, book: Book, agent: str, note: str) -> None:
        """Keep a checkpoint that an agent cosigned, unless it gave a newer one."""
        await self._library.fresh(book.id)  # another process may have let the agent join
        key = book.state.members[agent].key
        if not key:
            raise conflict("no_key", "You joined without a key, so you cannot cosign a checkpoint.")
        public = self._receipts.key.public
        found = read_checkpoint(note, book.id, public) if len(note) <= LONGEST_COSIGNED else None
        if found is None:
            raise invalid(
                "checkpoint",
                "The field checkpoint must be a checkpoint that this ledger's key signed, of at most "
                f"{LONGEST_COSIGNED:,} characters.",
            )
        if read_cosignature(note, book.id, agent, key) is None:
            sentence = "The field checkpoint must be cosigned by the key that you joined with."
            raise invalid("checkpoint", sentence, "not_cosigned")
        await self._receipts.expect(book, found.size)
        if await self._receipts.proven(book, lambda tree: tree.root(found.size)) != found.root:
            # It is relayed all the same: the members must learn of it.
            log.error("checkpoint of another history", extra={"collaboration": book.id, "agent": agent})
        alone = signed_alone(note, book.id, public, agent, key)
        await self._call.write(self._store.keep_cosignature, book.id, agent, found.size, alone)

    async def cosignatures(self, collaboration: str) -> list[Cosignature]:
        """Return the newest checkpoint that each member cosigned, in order of joining."""
        book = await self._library.fresh(collaboration)
        notes: dict[str, str] = await self._call(self._store.cosignatures, collaboration)
        members = book.state.members.values()
        return [Cosignature(one.id, one.name, notes[one.id]) for one in members if one.id in notes]

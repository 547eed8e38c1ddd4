"""Settlements: what a collaboration's settlement is, or would be now, and its close.

A settlement that measures ceilings can take seconds, so it is computed in a thread, and few at a time.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from partage.ledger import moves
from partage.ledger.accounts import account_view
from partage.ledger.messages import AccountView, SettlementView
from partage.ledger.refusals import Refused, missing
from partage.ledger.settlement import Inputs, closing, inputs, settled, settlement_view
from partage.ledger.state import State
from partage.ledger.tallies import salts_of
from partage.service.runtime.book import Book, Preview
from partage.service.runtime.library import Library
from partage.service.runtime.server_secret import ServerSecret
from partage.service.runtime.system import System
from partage.settle.money import Settled

PREVIEW_PAUSE = 2000  # ms between two previews of the settlement for a page
PREVIEW_SHARE = 5  # and at least this many times what the last one took
ATTEMPTS = 4  # to close a collaboration to which other processes write
AT_ONCE = 2  # previews, and closes, that are computed at a time


class Stale(Refused):
    """The state changed while its settlement was computed."""

    def __init__(self) -> None:
        super().__init__(409, "stale", "The collaboration changed while its settlement was computed; try again.")


def previewed(given: Inputs) -> tuple[Settled, SettlementView]:
    """Return a settlement, and its view. Both may take long: one measures ceilings, the other compares members."""
    found = settled(given)
    return found, settlement_view(given, found)


class Settlements:
    """The settlements of all collaborations."""

    def __init__(self, system: System, library: Library, secret: ServerSecret) -> None:
        self._library = library
        self._system = system
        self._secret = secret
        # Each kind has few threads, so that settlements leave the others to everything else that needs one.
        self._previews, self._closes = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(AT_ONCE)

    async def account(self, collaboration: str, agent: str, *, recent: bool = False) -> AccountView:
        """Return how the amounts of one agent come about."""
        preview = await self.preview(collaboration, recent=recent)
        if agent not in {row.agent for row in preview.given.agents}:
            raise missing("no_such_agent", "There is no such agent in this collaboration.")
        currency = self._library.books[collaboration].state.config.currency
        return account_view(preview.given, preview.found, agent, "" if currency is UNSET else currency)

    async def view(self, collaboration: str, *, recent: bool = False) -> SettlementView:
        """Return the settlement, or what it would be now; with `recent`, one from the last seconds is enough."""
        return (await self.preview(collaboration, recent=recent)).view

    async def preview(self, collaboration: str, *, recent: bool = False) -> Preview:
        """Return the settlement as `view` does, with the event after which it is computed."""
        book = await self._library.book(collaboration)
        clock = self._system.clock
        async with book.settling:
            await self._library.fresh(collaboration)  # here: the state may change while others have the lock
            state = book.state
            kept = book.preview
            recent = recent and state.closed is None  # after the close nothing changes any more to show it later
            if kept is not None and (kept.seq == state.seq or (recent and clock() < kept.good_until)):
                return kept
            async with self._previews:
                await self._library.fresh(collaboration)  # again: others may have taken long
                state = book.state
                began, given = clock(), inputs(state)
                found, view = await self._system.in_thread(previewed, given)
            view.salts = {agent: salt.hex() for agent, salt in self.salts(state).items()}
            now = clock()
            good_until = now + max(PREVIEW_PAUSE, PREVIEW_SHARE * (now - began))
            made = Preview(given.seq, good_until, view, given._replace(told={}), found)
            if book.state is state:  # otherwise the state was reloaded, and `seq` may count other events
                book.preview = made
            return made

    async def close(self, collaboration: str) -> SettlementView:
        """Close a collaboration and return its settlement; closing it again returns the same.

        While it is settled, its moves wait. Other processes do not know that: if one of them wrote meanwhile, it is
        settled again, and the last time while it is locked in the store.
        """
        book = await self._library.fresh(collaboration)
        async with book.closing, self._closes:
            for attempt in range(1, ATTEMPTS + 1):
                await self._library.fresh(collaboration)
                if book.state.closed is not None:
                    break
                with contextlib.suppress(Stale):
                    await (self._close_held(book) if attempt < ATTEMPTS else self._close_locked(book))
                    break
        return await self.view(collaboration)

    async def _close_held(self, book: Book) -> None:
        """Settle a collaboration while this process holds its moves back, then write the close before them."""
        async with self._library.hold(book):
            if not book.valid:  # a write failed
                raise Stale
            state = book.state
            given = inputs(state, told=False)
            stated = await self._system.in_thread(self._closing, given, book.id)

            def move(turn: moves.Turn) -> None:
                if turn.state.closed is None and (turn.state is not state or state.seq != given.seq):
                    raise Stale
                moves.close(turn, stated)

            closed = self._library.put(book, move, first=True)
        await closed

    async def _close_locked(self, book: Book) -> None:
        """Settle and close a collaboration in one transaction, for which other processes wait."""
        stated: dict[str, Any] = {}

        async def prepare(state: State) -> None:
            if state.closed is None:
                stated.update(await self._system.in_thread(self._closing, inputs(state, told=False), book.id))

        await self._library.put(book, lambda turn: moves.close(turn, stated), prepare=prepare)

    def _closing(self, given: Inputs, collaboration: str) -> dict[str, Any]:
        return closing(given, settled(given), self._secret.tallies(collaboration))

    def salts(self, state: State) -> Mapping[str, bytes]:
        """Return the salts of the members in the tallies of a close, by agent; empty where nothing is tallied."""
        if state.closed is None or not state.closed.tallies:
            return {}
        return salts_of(self._secret.tallies(state.config.collaboration), state.members)

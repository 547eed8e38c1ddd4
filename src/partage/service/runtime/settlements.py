"""Settlements: what a collaboration's settlement is, or would be now, and its close.

A settlement that measures ceilings can take seconds, so it is computed in a thread.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

from partage.ledger import moves
from partage.ledger.messages import SettlementView
from partage.ledger.refusals import Refused
from partage.ledger.settlement import Inputs, closing, inputs, settled, settlement_view
from partage.ledger.state import State
from partage.ledger.tallies import salts_of
from partage.service.runtime.book import Preview
from partage.service.runtime.library import Library
from partage.service.runtime.server_secret import ServerSecret
from partage.service.runtime.system import System

PREVIEW_PAUSE = 2000  # ms between two previews of the settlement for a page
PREVIEW_SHARE = 5  # and at least this many times what the last one took
ATTEMPTS = 4  # to close a collaboration that keeps changing


class Stale(Refused):
    """The state changed while its settlement was computed."""

    def __init__(self) -> None:
        super().__init__(409, "stale", "The collaboration changed while its settlement was computed; try again.")


class Settlements:
    """The settlements of all collaborations."""

    def __init__(self, system: System, library: Library, secret: ServerSecret) -> None:
        self._library = library
        self._system = system
        self._secret = secret

    async def view(self, collaboration: str, *, recent: bool = False) -> SettlementView:
        """Return the settlement, or what it would be now; with `recent`, one from the last seconds is enough."""
        book = await self._library.book(collaboration)
        clock = self._system.clock
        async with book.settling:
            await self._library.fresh(collaboration)  # here: the state may change while others have the lock
            state = book.state
            kept = book.preview
            if kept is not None and (kept.seq == state.seq or (recent and clock() < kept.good_until)):
                return kept.view
            began, given = clock(), inputs(state)
            view = settlement_view(given, await self._system.in_thread(settled, given))
            view.salts = {agent: salt.hex() for agent, salt in self.salts(state).items()}
            now = clock()
            if book.state is state:  # otherwise the state was reloaded, and `seq` may count other events
                book.preview = Preview(given.seq, now + max(PREVIEW_PAUSE, PREVIEW_SHARE * (now - began)), view)
            return view

    async def close(self, collaboration: str) -> SettlementView:
        """Close a collaboration and return its settlement; closing it again returns the same."""
        book, secret = await self._library.fresh(collaboration), self._secret.tallies(collaboration)
        for attempt in range(1, ATTEMPTS + 1):
            state = book.state
            given = inputs(state)
            # The last time, the state waits for its settlement: a busy board could otherwise delay the close forever.
            found = await self._system.in_thread(self._closing, given, secret) if attempt < ATTEMPTS else None

            def move(
                turn: moves.Turn, state: State = state, given: Inputs = given, found: dict[str, Any] | None = found
            ) -> None:
                if turn.state.closed is None:
                    if found is not None and (turn.state is not state or state.seq != given.seq):
                        raise Stale
                    moves.close(turn, found or self._closing(inputs(turn.state), secret))

            with contextlib.suppress(Stale):
                await self._library.put(book, move)
                break
        return await self.view(collaboration)

    @staticmethod
    def _closing(given: Inputs, secret: bytes) -> dict[str, Any]:
        return closing(given, settled(given), secret)

    def salts(self, state: State) -> Mapping[str, bytes]:
        """Return the salts of the members in the tallies of a close, by agent; empty where nothing is tallied."""
        if state.closed is None or not state.closed.tallies:
            return {}
        return salts_of(self._secret.tallies(state.config.collaboration), state.members)

"""Whether the database takes writes, looked at from time to time."""

import asyncio

from partage.service.runtime.system import System
from partage.service.store import Store, StoreError

EVERY = 3000  # ms between two looks; anybody may ask at any rate


class Readiness:
    """Tries a small durable write, at most once per `EVERY`; all who ask in between get its outcome."""

    def __init__(self, store: Store, system: System) -> None:
        self._store, self._system = store, system
        self._looked: int | None = None
        self._failure: StoreError | None = None
        self._turn = asyncio.Lock()

    async def check(self) -> None:
        """Raise `StoreError` if the database did not take the last write."""
        async with self._turn:
            now = self._system.clock()
            if self._looked is None or not 0 <= now - self._looked < EVERY:
                try:
                    await self._system.in_thread(self._store.ready)
                    self._failure = None
                except StoreError as error:
                    self._failure = error
                self._looked = now
        if self._failure is not None:
            raise self._failure.with_traceback(None)

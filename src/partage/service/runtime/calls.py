"""How the runtime calls a store without making the event loop wait.

With SQLite a read takes microseconds and is called directly. A write waits for the disk, and for any other process
that has the file locked (a shell, a backup): it runs in a thread, and a locked file is tried again a little later,
with the loop free for everything else in between.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from partage.ledger.refusals import Refused
from partage.service.store import Busy

LONGEST = 10.0  # seconds for which writes wait for a lock; after that they are refused at once, until it is released
FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.1  # seconds between two attempts
FORGET = 1.0  # seconds without an attempt after which nobody knows whether the file is still locked
RETRY_AFTER = 2  # seconds, for the requests that are refused


class Calls:
    """Calls a store: `await calls(work, *given)` to read or to begin, `await calls.write(work, *given)` to write.

    With `several` processes any call may wait for the others, and runs in a thread.
    """

    def __init__(self, in_thread: Callable[..., Awaitable[Any]], several: bool) -> None:
        self._in_thread, self._several = in_thread, several
        self._locked = self._tried = -LONGEST  # since when the file has been found locked, and when last

    async def __call__(self, work: Callable[..., Any], *given: Any) -> Any:
        """Call something that waits for no disk."""
        return await self._patiently(self._in_thread if self._several else _directly, work, given)

    async def write(self, work: Callable[..., Any], *given: Any) -> Any:
        """Call something that writes. If it raises `Busy`, it is called again, so it must not have changed anything.

        Raises
        ------
        Refused
            The file has been locked for too long; nothing was written.
        """
        return await self._patiently(self._in_thread, work, given)

    async def _patiently(
        self, how: Callable[..., Awaitable[Any]], work: Callable[..., Any], given: tuple[Any, ...]
    ) -> Any:
        pause, time = FIRST_PAUSE, asyncio.get_running_loop().time
        while True:
            try:
                answer = await how(work, *given)
            except Busy as busy:
                now = time()
                if now - self._tried > FORGET:
                    self._locked = now
                self._tried = now
                if now - self._locked >= LONGEST:
                    sentence = "Another process has locked the database; try again later."
                    raise Refused(503, "busy", sentence, retry_after=RETRY_AFTER) from busy
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                if how is self._in_thread:  # a read says nothing about the lock
                    self._tried = -LONGEST
                return answer


async def _directly(work: Callable[..., Any], *given: Any) -> Any:
    return work(*given)

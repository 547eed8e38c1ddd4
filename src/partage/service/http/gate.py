"""A gate for streams: many clients that open one at the same moment get in some at a time.

Otherwise all of them would be served in one turn of the event loop, and everybody else would wait for its end.
"""

import asyncio
from collections import deque

AT_ONCE = 20  # streams that are opened in one turn of the loop: some ten milliseconds of work


class Gate:
    """Lets `AT_ONCE` callers in with each turn of the event loop, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._next: asyncio.Handle | None = None

    async def enter(self) -> None:
        """Wait for one's turn."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if self._next is None:
            self._next = loop.call_soon(self._open)
        await turn

    def _open(self) -> None:
        for _ in range(min(AT_ONCE, len(self._waiting))):
            turn = self._waiting.popleft()
            if not turn.done():  # the client hung up
                turn.set_result(None)
        self._next = asyncio.get_running_loop().call_soon(self._open) if self._waiting else None

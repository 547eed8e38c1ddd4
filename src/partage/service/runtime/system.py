"""What the controller takes from the machine it runs on: the time, threads and randomness.

Everything in `runtime` gets them from a `System`, so that a simulation can replace all of them.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from partage.service.runtime.calls import Calls

AsyncCall = Callable[..., Awaitable[Any]]


def wall_clock() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def monotonic_clock() -> int:
    """Return the milliseconds since some moment, by a clock that nobody can set.

    Where the machine has one, it is a clock that goes on while the machine sleeps.
    """
    return time.clock_gettime_ns(_UPTIME) // 1_000_000 if _UPTIME is not None else time.monotonic_ns() // 1_000_000


_UPTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


@dataclass(frozen=True)
class System:
    """The time, threads and randomness of this process.

    Attributes
    ----------
    clock
        Returns the time in milliseconds since 1970.
    in_thread
        `await in_thread(work, *given)` runs a blocking function beside the event loop.
    random_bytes
        Returns this many unpredictable bytes, for secrets, salts and ids.
    monotonic
        Returns the milliseconds since some moment. A simulation that replaces `clock` replaces it too.
    """

    clock: Callable[[], int] = wall_clock
    in_thread: AsyncCall = asyncio.to_thread
    random_bytes: Callable[[int], bytes] = secrets.token_bytes
    monotonic: Callable[[], int] = monotonic_clock

    def store_calls(self, several: bool) -> Calls:
        """Return how to call a store, of one process or of `several`."""
        return Calls(self.in_thread, several)

"""The ledger's time: it follows the clock, and goes on at its own pace when somebody sets the clock.

Claims lapse and intervals end by this time. If it were the clock's, a clock set back by an hour would stop both for
an hour, and one set ahead would let every open claim lapse at once. The monotonic clock, which nobody can set,
measures how long something took, so the ledger's time

- always advances by at least what the monotonic clock measured;
- runs ahead of a clock that was set back, until the clock catches up with it;
- follows a clock that was set ahead by steps of at most `LARGEST_STEP`, and in the long run by no more than a second
  in a second: a claim has at least half its time, less one step.

After a restart nobody knows how much time has passed, and the clock is believed.
"""

import logging

from partage.service.runtime.book import Book
from partage.service.runtime.system import System

log = logging.getLogger("partage.service")

LARGEST_STEP = 60_000  # ms beyond what was measured: clocks are seldom wrong by more, and claims wait longer
NOTICED = 1000  # ms; smaller differences are how clocks are, and are not logged


class Timekeeper:
    """The time of all ledgers of this process.

    With `several` processes the clock is the database's, which comes with each transaction.

    Attributes
    ----------
    stepped
        The sum of all steps beyond what the monotonic clock measured, in ms.
    """

    def __init__(self, system: System, several: bool) -> None:
        self.stepped = 0
        self._system, self._several = system, several
        self._measured = system.monotonic()
        self._time: int | None = None if several else system.clock()
        self._room = LARGEST_STEP  # how far it may step now
        self._behind = 0  # how far the clock was behind when that was last logged

    def now(self, read: int | None = None) -> int:
        """Return the time in ms, given what the database's clock says if it was read."""
        clock = self._system.clock() if read is None and not self._several else read
        if self._time is None:
            if clock is None:  # the database's clock has not been read yet
                return self._system.clock()
            self._time, self._measured = clock, self._system.monotonic()
        measured = max(self._measured, self._system.monotonic())
        elapsed, self._measured = measured - self._measured, measured
        self._room = min(LARGEST_STEP, self._room + elapsed)
        self._time += elapsed
        if clock is not None:
            self._follow(clock - self._time)
        return self._time

    def of(self, book: Book, read: int | None = None) -> int:
        """Return the time of a book: it goes on from its last event, even if that was written by a wrong clock."""
        now = self.now(read)
        book.ahead = max(0, book.ahead - (self.stepped - book.stepped))  # a step takes away what it is ahead, first
        book.stepped = self.stepped
        if book.state.time > now + book.ahead:
            further = book.state.time - now - book.ahead
            if further >= NOTICED:
                log.warning("ledger ahead of the clock", extra={"collaboration": book.id, "ms": further})
            book.ahead += further
        return now + book.ahead

    def _follow(self, ahead: int) -> None:
        """Follow the clock, which is this far ahead, as far as there is room."""
        assert self._time is not None
        if ahead > 0:
            step = min(ahead, LARGEST_STEP)
            if step <= self._room:
                self._time += step
                self.stepped += step
                self._room -= step
                if step >= NOTICED:
                    log.warning("clock set ahead", extra={"step_ms": step, "left_ms": ahead - step})
        if -ahead < NOTICED:
            self._behind = 0
        elif -ahead >= self._behind + NOTICED:
            self._behind = -ahead
            log.warning("clock set back", extra={"ms": -ahead})

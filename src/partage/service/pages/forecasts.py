"""The forecast on the join page: what a member of this collaboration can expect.

A simulation keeps a core busy for some seconds, and it is for anybody who has an invite. So it runs in a process of
its own, one at a time, with a time limit, and a collaboration's forecast is kept for a while. If there is none, for
whatever reason, the page does without.
"""

import asyncio
import hashlib
import logging
import math
import sys
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import UNSET

from partage import environment
from partage.ledger.events import encode
from partage.service.pages.forecast_process import Question
from partage.service.runtime.book import Book
from partage.service.runtime.system import System

log = logging.getLogger("partage.service")

WAITING = 2.0  # times its processor time, a simulation may take
PAUSE = 60_000  # ms that a forecast is kept at least, even if members have joined since
SHARE = 10  # and at least this many times what it took
MOST_KEPT, MOST_WAITING = 1000, 8  # collaborations
COMMAND = (sys.executable, "-m", "partage.service.pages.forecast_process")


class Row(msgspec.Struct):
    """What a member misses in one case: the amount, and its share of the largest in percent."""

    label: str
    amount: str
    percent: float


class Shown(msgspec.Struct):
    """A forecast as the page shows it."""

    members: int
    runs: int
    unit: str
    rows: list[Row]
    shared: str
    horizon: int
    everyone_gains: bool
    settled: bool
    assumptions: list[str]


class Kept(msgspec.Struct):
    """A collaboration's last forecast, None if it failed, and until when it is used for another question too."""

    question: bytes  # its digest: a question may be long
    found: Shown | None
    good_until: int


class Forecasts:
    """The forecasts of all collaborations, each in so many seconds of processor time; none if that is 0."""

    def __init__(self, system: System, seconds: float, command: Sequence[str] = COMMAND) -> None:
        self._system, self._command, self._seconds = system, command, seconds
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._running: dict[str, asyncio.Task[Shown | None]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def of(self, book: Book, invited: int) -> Shown | None:
        """Return the forecast of a collaboration if `invited` more members join, or None if there is none."""
        if not self._seconds:
            return None
        kept = self._kept.get(book.id)
        if kept is not None and self._system.monotonic() < kept.good_until:
            return kept.found
        state = book.state
        shares = [sorted(member.shares) for member in state.members.values() if not member.left]
        members = max(2, len(shares) + invited)
        question = msgspec.json.encode(Question(msgspec.Raw(encode(state.config)), len(state.arms), members, shares))
        if kept is not None and kept.question == _digest(question):
            return kept.found
        running = self._running.get(book.id)
        if running is None:
            if len(self._running) >= MOST_WAITING:
                return None
            currency = "" if state.config.currency is UNSET else state.config.currency
            task = self._made(book.id, question, state.config.value, currency)
            running = self._running[book.id] = asyncio.create_task(task)
        return await asyncio.shield(running)  # others may wait for it too

    async def stop(self) -> None:
        """End the simulations that are still running."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _made(self, id: str, question: bytes, value: float, currency: str) -> Shown | None:
        try:
            async with self._one_at_a_time:
                began, found = self._system.monotonic(), None
                try:
                    found = shown(msgspec.json.decode(await self._simulated(question)), value, currency)
                except (OSError, TimeoutError, ValueError, msgspec.MsgspecError) as error:
                    log.warning("no forecast", extra={"collaboration": id, "error": str(error) or "too slow"})
                now = self._system.monotonic()
            self._kept[id] = Kept(_digest(question), found, now + max(PAUSE, SHARE * (now - began)))
            self._kept.move_to_end(id)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return found
        finally:
            del self._running[id]

    async def _simulated(self, question: bytes) -> bytes:
        """Return what the process answers."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self._command,
            str(math.ceil(self._seconds)),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=environment.for_child(),
        )
        try:
            answer, errors = await asyncio.wait_for(process.communicate(question), WAITING * self._seconds)
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            last = errors.decode(errors="replace").strip().rpartition("\n")[2]
            raise ValueError(last or f"the simulation ended with {process.returncode}")
        return answer


def _digest(question: bytes) -> bytes:
    return hashlib.sha256(question).digest()


def shown(found: dict[str, Any], value: float, currency: str) -> Shown:
    """Return a forecast as the page shows it: in money, rounded, with the largest amount as the whole bar."""
    labels = {"alone": "On your own", "together": "Together", "settled": "Together, after the settlement"}
    losses = {name: found[name]["mean"] * value for name in labels if found[name] is not None}
    most = max(*losses.values(), 1e-12)
    if "settled" in losses and rounded(losses["settled"]) == rounded(losses["together"]):
        del losses["settled"]  # payments cancel on average
    rows = [Row(labels[name], rounded(loss), round(100 * max(loss, 0.0) / most, 1)) for name, loss in losses.items()]
    unit = currency or ("rewards" if value == 1 else "")
    return Shown(
        found["members"],
        found["runs"],
        unit,
        rows,
        rounded(found["broadcasts"]["mean"]),
        found["horizon"],
        found["gaining"] == 1,
        found["settled"] is not None,
        found["assumptions"],
    )


def rounded(amount: float) -> str:
    """Return an amount to two digits, or to the unit if it has more.

    >>> rounded(1234.5), rounded(0.0456), rounded(-3.21), rounded(0.0)
    ('1,234', '0.046', '−3.2', '0')
    """
    text = f"{amount:,.0f}" if abs(amount) >= 10 else f"{float(f'{amount:.2g}'):.12g}"
    return text.replace("-", "−")

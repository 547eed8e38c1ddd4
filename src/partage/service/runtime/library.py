"""The library: every collaboration that this process has in memory, kept up to date with the store."""

import asyncio
import logging
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, TypeVar

from msgspec import UNSET

from partage.ledger import moves
from partage.ledger.own_rules import RuleFailed
from partage.ledger.refusals import Refused, missing
from partage.service.runtime.book import Book
from partage.service.runtime.damage import Damaged
from partage.service.runtime.system import System
from partage.service.runtime.writer import SNAPSHOT_EVERY, Done, Move, Prepare, Waiting, Writer
from partage.service.store import NewToken, Store, StoreError

T = TypeVar("T")

log = logging.getLogger("partage.service")

IDLE_SECONDS = 600.0  # without use after which a collaboration leaves the memory
CROWDED_SECONDS = 60.0  # the same, while more than `MOST` are in memory
MOST = 1000
IDLE_PAUSE = 20.0  # seconds between two looks for idle ones
WORTH_A_SNAPSHOT = 1000  # events since the last one: some hundredths of a second of replay
LAPSE_SECONDS = 0.5  # between two checks for claims that have waited too long
REST_SECONDS = 300.0  # without such checks after the collaboration's own rule failed, unless something is written

_ID = re.compile("[a-z0-9]+")


def is_id(text: str) -> bool:
    """Whether an id has the right form; any other id needs no query."""
    return _ID.fullmatch(text) is not None


class Library:
    """The books of this process. They are loaded when they are needed, and leave the memory when they are idle.

    Attributes
    ----------
    unloaded
        How often a book has left the memory.
    """

    def __init__(
        self,
        store: Store,
        system: System,
        snapshot_every: int = SNAPSHOT_EVERY,
        *,
        tie_seed: Callable[[str], bytes],
        key: str,
    ) -> None:
        self.store = store
        self.books: dict[str, Book] = {}
        self._key = key  # the public key of the checkpoints
        self._system = system
        self._call = system.store_calls(store.several)
        self._writer = Writer(store, system, snapshot_every, tie_seed=tie_seed)
        self.timekeeper = self._writer.timekeeper
        self._loading: dict[str, asyncio.Task[Book | None]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._resting: dict[str, tuple[int, float]] = {}  # seq, and until when; by id
        self.unloaded = 0
        self._stop_listening: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start to lapse old claims, and to listen for what other processes write."""
        loop = asyncio.get_running_loop()
        self.store.never_wait()
        self._tasks = [loop.create_task(self._lapse()), loop.create_task(self._unload_idle())]

        def wake(collaboration: str, seq: int) -> None:
            loop.call_soon_threadsafe(self._heard, collaboration, seq)

        self._stop_listening = self.store.listen(wake)

    async def stop(self) -> None:
        """Write pending jobs, and stop listening."""
        self._stop_listening()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*self._writer.tasks, return_exceptions=True)

    def put(
        self,
        book: Book,
        move: Move,
        tokens: list[NewToken] | None = None,
        *,
        first: bool = False,
        prepare: Prepare | None = None,
        waiting: Waiting | None = None,
    ) -> "asyncio.Future[Done]":
        """Queue a move; see `Writer.put`."""
        if self.books.setdefault(book.id, book) is not book:  # it left the memory while the request took its time
            raise Refused(503, "busy", "The controller is busy; try again.", retry_after=1)
        return self._writer.put(book, move, tokens, first=first, prepare=prepare, waiting=waiting)

    def hold(self, book: Book) -> AbstractAsyncContextManager[None]:
        """Hold a collaboration's moves back; see `Writer.hold`."""
        return self._writer.hold(book)

    async def book(self, collaboration: str) -> Book:
        """Return a collaboration, loaded from the store the first time."""
        book = self.books.get(collaboration)
        if book is None and is_id(collaboration):
            task = self._loading.get(collaboration)
            if task is None:
                task = self._loading[collaboration] = asyncio.create_task(self._load(collaboration))
                task.add_done_callback(lambda _: self._loading.pop(collaboration, None))
                task.add_done_callback(_ignore)  # everybody who waits for it may have hung up
            book = await asyncio.shield(task)
        if book is None:
            raise missing("no_such_collaboration", "There is no such collaboration.")
        book = self.books.setdefault(collaboration, book)
        book.used = asyncio.get_running_loop().time()
        return book

    async def _load(self, collaboration: str) -> Book | None:
        damages = self._writer.damages
        damages.check(collaboration)
        try:
            book: Book | None = await self._system.in_thread(Book.load, self.store, collaboration)
            if book is not None and book.state.config.key not in (UNSET, self._key):
                raise Damaged("its checkpoints are signed by a key that is not this server's")
        except Refused as error:
            damages.note(collaboration, error)
            raise
        return book

    async def fresh(self, collaboration: str) -> Book:
        """Return a collaboration as it is on disk now."""
        book = await self.book(collaboration)
        caught_up = not self.store.several and book.valid
        if not caught_up and book.held:  # nobody waits for a settlement to read
            caught_up = await self._writer.catch_up_held(book)
        if not caught_up:
            await self.put(book, _nothing)
        await book.on_disk()
        return book

    async def all(self, view: Callable[[Book], T]) -> list[T]:
        """Return a view of all collaborations that can be read, oldest first, each as it is on disk now."""
        ids = await self._call(self.store.collaborations)
        found = await asyncio.gather(*(self._view_or_none(id, view) for id in ids))
        return [one for one in found if one is not None]

    async def _view_or_none(self, collaboration: str, view: Callable[[Book], T]) -> T | None:
        """Return a view of a collaboration; None, with a warning, if its ledger cannot be read."""
        try:
            return view(await self.fresh(collaboration))
        except StoreError:
            raise
        except Exception as error:
            if isinstance(error, Refused) and error.status == 503 and not isinstance(error, Damaged):
                raise
            reason = error.code if isinstance(error, Refused) else type(error).__name__
            log.warning("collaboration left out", extra={"collaboration": collaboration, "error": reason})
            return None

    def notify_all(self) -> None:
        """Wake every watcher of every book at once."""
        for book in self.books.values():
            for watcher in book.watchers:
                watcher.set()

    async def _lapse(self) -> None:
        while True:
            await asyncio.sleep(LAPSE_SECONDS)
            for book in list(self.books.values()):
                if book.held or book.state.closed is not None or self._rests(book):
                    continue
                now = self.timekeeper.of(book)
                if book.state.lapsing(now) or book.state.due_used_up(now):
                    self.put(book, moves.lapse).add_done_callback(partial(self._see_failure, book))

    def _rests(self, book: Book) -> bool:
        """Whether its rule failed when claims were to lapse: it may take seconds each time."""
        seq, until = self._resting.get(book.id, (-1, 0.0))
        return book.state.seq == seq and asyncio.get_running_loop().time() < until

    def _see_failure(self, book: Book, future: "asyncio.Future[Any]") -> None:
        """Let a collaboration rest if its rule failed."""
        self._resting.pop(book.id, None)
        if not future.cancelled() and isinstance(future.exception(), RuleFailed):
            self._resting[book.id] = book.durable, asyncio.get_running_loop().time() + REST_SECONDS
            log.warning("rule failed as claims lapsed", extra={"collaboration": book.id})

    async def _unload_idle(self) -> None:
        """Let collaborations leave the memory that nobody has used for a while; the next use loads them again."""
        while True:
            await asyncio.sleep(IDLE_PAUSE)
            now, spare = asyncio.get_running_loop().time(), len(self.books) - MOST
            for book in sorted(self.books.values(), key=lambda book: book.used):
                spare -= 1
                if now - book.used < (IDLE_SECONDS if spare < 0 else CROWDED_SECONDS):
                    continue
                used = book.used
                if book.idle and book.state.seq - book.snapshot_seq >= WORTH_A_SNAPSHOT:
                    await self._writer.keep_snapshot(book)
                if book.idle and book.used == used:
                    self.books.pop(book.id, None)
                    self._resting.pop(book.id, None)
                    self.unloaded += 1

    def _heard(self, collaboration: str, seq: int) -> None:
        """Catch up with what another process wrote, if someone watches or waits for a claim.

        With an empty id, anything may be new.
        """
        for book in list(self.books.values()):
            if book.held:
                continue
            wanted = book.watchers or book.asks
            if not collaboration or (book.id == collaboration and book.state.seq < seq and wanted):
                self._put_aside(book, _nothing)

    def _put_aside(self, book: Book, move: Move) -> None:
        """Queue a move whose outcome nobody waits for."""
        self.put(book, move).add_done_callback(_ignore)


def _nothing(turn: moves.Turn) -> None:
    """Change nothing: playing this move brings the book up to date."""


def _ignore(future: "asyncio.Future[Any]") -> None:
    """Retrieve an error that nobody waits for, so that asyncio does not log it."""
    if not future.cancelled():
        future.exception()

"""The library: every collaboration that this process has in memory, kept up to date with the store."""

import asyncio
import logging
import re
from collections.abc import Callable
from typing import Any

from partage.ledger import moves
from partage.ledger.refusals import Refused, missing
from partage.service.runtime.book import Book
from partage.service.runtime.system import System
from partage.service.runtime.writer import SNAPSHOT_EVERY, Done, Move, Writer
from partage.service.store import NewToken, Store, StoreError

log = logging.getLogger("partage.service")

LAPSE_SECONDS = 0.5  # between two checks for claims that have waited too long

_ID = re.compile("[a-z0-9]+")


def is_id(text: str) -> bool:
    """Whether an id has the right form; any other id needs no query."""
    return _ID.fullmatch(text) is not None


class Library:
    """The books of this process. Books are loaded when they are first needed, and stay in memory."""

    def __init__(
        self,
        store: Store,
        system: System,
        snapshot_every: int = SNAPSHOT_EVERY,
        *,
        tie_seed: Callable[[str], bytes],
    ) -> None:
        self.store = store
        self.books: dict[str, Book] = {}
        self._system = system
        self._call = system.store_calls(store.several)
        self._writer = Writer(store, system, snapshot_every, tie_seed=tie_seed)
        self.timekeeper = self._writer.timekeeper
        self._loading: dict[str, asyncio.Task[Book | None]] = {}
        self._lapses: asyncio.Task[None] | None = None
        self._stop_listening: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start to lapse old claims, and to listen for what other processes write."""
        loop = asyncio.get_running_loop()
        self.store.never_wait()
        self._lapses = loop.create_task(self._lapse())

        def wake(collaboration: str, seq: int) -> None:
            loop.call_soon_threadsafe(self._heard, collaboration, seq)

        self._stop_listening = self.store.listen(wake)

    async def stop(self) -> None:
        """Write pending jobs, and stop listening."""
        self._stop_listening()
        if self._lapses is not None:
            self._lapses.cancel()
            await asyncio.gather(self._lapses, return_exceptions=True)
        await asyncio.gather(*self._writer.tasks, return_exceptions=True)

    def put(self, book: Book, move: Move, tokens: list[NewToken] | None = None) -> "asyncio.Future[Done]":
        """Queue a move; see `Writer.put`."""
        return self._writer.put(book, move, tokens)

    async def book(self, collaboration: str) -> Book:
        """Return a collaboration, loaded from the store the first time."""
        book = self.books.get(collaboration)
        if book is None and is_id(collaboration):
            task = self._loading.get(collaboration)
            if task is None:
                task = self._loading[collaboration] = asyncio.create_task(self._load(collaboration))
                task.add_done_callback(lambda _: self._loading.pop(collaboration, None))
            book = await asyncio.shield(task)
        if book is None:
            raise missing("no_such_collaboration", "There is no such collaboration.")
        return self.books.setdefault(collaboration, book)

    async def _load(self, collaboration: str) -> Book | None:
        book: Book | None = await self._system.in_thread(Book.load, self.store, collaboration)
        return book

    async def fresh(self, collaboration: str) -> Book:
        """Return a collaboration as it is on disk now."""
        book = await self.book(collaboration)
        if self.store.several or not book.valid:
            await self.put(book, _nothing)
        await book.on_disk()
        return book

    async def all(self) -> list[Book]:
        """Return all collaborations that can be read, oldest first, each as it is on disk now."""
        ids = await self._call(self.store.collaborations)
        found = await asyncio.gather(*map(self._fresh_or_none, ids))
        return [book for book in found if book is not None]

    async def _fresh_or_none(self, collaboration: str) -> Book | None:
        """Return a collaboration as it is on disk now; None, with a warning, if its ledger cannot be read."""
        try:
            return await self.fresh(collaboration)
        except StoreError:
            raise
        except Exception as error:
            if isinstance(error, Refused) and error.status == 503:
                raise
            reason = error.code if isinstance(error, Refused) else type(error).__name__
            log.warning("collaboration left out", extra={"collaboration": collaboration, "error": reason})
            return None

    def notify_all(self) -> None:
        """Wake every watcher of every book."""
        for book in self.books.values():
            book.notify()

    async def _lapse(self) -> None:
        while True:
            await asyncio.sleep(LAPSE_SECONDS)
            for book in list(self.books.values()):
                if book.state.closed is None and book.state.lapsing(self.timekeeper.of(book)):
                    self._put_aside(book, moves.lapse)

    def _heard(self, collaboration: str, seq: int) -> None:
        """Catch up with what another process wrote, if someone watches. With an empty id, anything may be new."""
        for book in list(self.books.values()):
            if not collaboration or (book.id == collaboration and book.state.seq < seq and book.watchers):
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

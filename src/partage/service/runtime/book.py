"""A collaboration in memory, and the writer through which all changes go.

A request that changes something is a job. The writer takes all jobs that wait, plays their moves one after the other
on the state, writes the events of all of them in one transaction (group commit), and only then answers each. With
SQLite nobody else can write. With PostgreSQL it takes the locks of these collaborations first and reads what other
processes wrote meanwhile; should it lose a race all the same, it reads the ledger again and plays the moves again.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from partage.ledger.chain import GENESIS, seal
from partage.ledger.events import AnyEvent, Create, decode
from partage.ledger.messages import SettlementView
from partage.ledger.moves import NotOpen, Turn
from partage.ledger.refusals import Refused
from partage.ledger.state import FORMAT, State
from partage.ledger.views import board_view
from partage.service.store import Lost, NewToken, Row, Store

log = logging.getLogger("partage.service")

SNAPSHOT_EVERY = 50_000  # events: some two seconds of replay at a restart
ATTEMPTS = 20  # races lost before a request is refused

Move = Callable[[Turn], Any]


def clock() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Done:
    """What a job came to: the move's answer, and the ledger's head after its events."""

    __slots__ = ("answer", "head")

    def __init__(self, answer: Any, head: str) -> None:
        self.answer = answer
        self.head = head


class Job:
    """A move that waits to be made, and what is to be kept with its events."""

    __slots__ = ("done", "future", "move", "tokens")

    def __init__(self, move: Move, future: "asyncio.Future[Done]") -> None:
        self.move = move
        self.future = future
        self.tokens: list[NewToken] = []
        self.done: Done | Exception | None = None

    def answer(self) -> None:
        """Give the answer to whoever waits for it."""
        if self.future.done():  # she has gone
            return
        if isinstance(self.done, Exception):
            self.future.set_exception(self.done)
        elif self.done is not None:
            self.future.set_result(self.done)


class Preview(NamedTuple):
    """The settlement as if it closed after event `seq`, and how long that is good enough to look at."""

    seq: int
    good_until: int
    view: SettlementView


class Broken(Exception):
    """A move that failed in a way nobody foresaw."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.job = job


class Book:
    """A collaboration in memory: its state and the ledger's head; who waits to change it; who watches it."""

    def __init__(self, state: State, head: str, kept: int = 0) -> None:
        self.id = state.config.collaboration
        self.arms = {name: arm for arm, name in enumerate(state.config.arms)}
        self.state = state
        self.head = head
        self.kept = kept  # the seq of the last snapshot
        self.sound = True  # whether the state has nothing but what is on disk, or is being written
        self.jobs: list[Job] = []
        self.writing: asyncio.Future[None] | None = None  # while the state may have what is not yet on disk
        self.watchers: set[asyncio.Event] = set()
        self.feed: list[AnyEvent] = []  # the last events, for the operator's page
        self.preview: Preview | None = None
        self.settling = asyncio.Lock()  # one computes the settlement, and the others wait for it
        self._board: tuple[int, bytes, str] | None = None

    @classmethod
    def load(cls, store: Store, collaboration: str) -> "Book | None":
        """Read a collaboration: its last snapshot, and the events since."""
        found = store.snapshot(collaboration, FORMAT)
        state: State | None = None
        head, kept = GENESIS, 0
        if found is not None:
            row, kept_state = store.row(collaboration, found[0]), _from_snapshot(collaboration, *found)
            if row is not None and kept_state is not None:
                state, head, kept = kept_state, row.head, row.seq
        while rows := store.rows(collaboration, after=state.seq if state else 0, limit=10_000):
            for row in rows:
                event = decode(row.body)
                if state is None:
                    assert isinstance(event, Create)
                    state = State(event)
                else:
                    state.apply(event)
            head = rows[-1].head
        return None if state is None else cls(state, head, kept)

    def restart(self, fresh: "Book") -> None:
        """Go back to what is on disk, after a failed write or a lost race."""
        self.state, self.head, self.kept = fresh.state, fresh.head, fresh.kept
        self.feed, self.preview, self._board = [], None, None
        self.sound = True

    def take(self, rows: list[Row]) -> None:
        """Take in rows that another process wrote."""
        for row in rows:
            if row.seq > self.state.seq:
                event = decode(row.body)
                self.state.apply(event)
                self.remember(event)
        if rows:
            self.head = rows[-1].head

    def remember(self, event: AnyEvent) -> None:
        """Add an event to the feed of the last ones."""
        self.feed.append(event)
        if len(self.feed) > 400:
            del self.feed[:200]

    def play(self, job: Job, now: int) -> list[Row]:
        """Make a job's move; its answer is kept in the job until the events are on disk."""
        turn = Turn(self.state, now)
        job.tokens.clear()
        answer: Any
        try:
            answer = job.move(turn)
        except (Refused, NotOpen) as refused:
            answer = refused
        except Exception as error:
            job.done = error
            raise Broken(job) from error
        rows = []
        for event in turn.events:
            row = seal(event, self.head)
            self.head = row.head
            rows.append(row)
            self.remember(event)
        job.done = answer if isinstance(answer, Exception) else Done(answer, self.head)
        return rows

    async def on_disk(self) -> None:
        """Wait until all that is in the state is on disk."""
        while self.writing is not None:
            await asyncio.shield(self.writing)  # who stops waiting must not end it for the others

    def wake(self) -> None:
        """Tell those who watch that something changed."""
        for watcher in self.watchers:
            watcher.set()

    def board(self) -> tuple[bytes, str]:
        """Return the board as JSON, and its ETag."""
        if self._board is None or self._board[0] != self.state.seq:
            body = msgspec.json.encode(board_view(self.state))
            etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
            self._board = (self.state.seq, body, etag)
        return self._board[1], self._board[2]


class Writer:
    """Writes what waits, of all collaborations together, in one transaction after another.

    `slots` says how many transactions may be under way; a collaboration is only ever in one.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.waiting: dict[str, Book] = {}
        self.slots = 2 if store.several else 1
        self.tasks: set[asyncio.Task[None]] = set()

    def put(self, book: Book, move: Move, tokens: list[NewToken] | None = None) -> "asyncio.Future[Done]":
        """Let a move wait for the next transaction; the answer comes when it is on disk."""
        loop = asyncio.get_running_loop()
        job = Job(move, loop.create_future())
        if tokens is not None:
            job.tokens = tokens
        book.jobs.append(job)
        self.waiting[book.id] = book
        if len(self.tasks) < self.slots and book.writing is None:
            self.tasks.add(loop.create_task(self._run()))
        return job.future

    async def _run(self) -> None:
        try:
            await self._write_all()
        finally:  # here, and not a turn of the loop later: a move that came in between would wait for ever
            self.tasks.discard(asyncio.current_task())

    async def _write_all(self) -> None:
        # One turn of the loop lets every request that has arrived join the transaction.
        await asyncio.sleep(0)
        while batch := self._next():
            try:
                await self._batch(batch)
            except Exception as error:  # nothing of the batch is on disk, or nobody knows
                for _book, jobs in batch.values():
                    for job in jobs:
                        job.done = error
            for book, jobs in batch.values():
                _freed(book)
                for job in jobs:
                    job.answer()
                book.wake()
            await asyncio.sleep(0)

    def _next(self) -> dict[str, tuple[Book, list[Job]]]:
        """Take all that waits, but for collaborations that are being written."""
        batch = {id: (book, book.jobs) for id, book in self.waiting.items() if book.writing is None}
        for id, (book, _) in batch.items():
            del self.waiting[id]
            book.jobs, book.writing = [], asyncio.get_running_loop().create_future()
        return batch

    async def _batch(self, batch: dict[str, tuple[Book, list[Job]]]) -> None:
        for _attempt in range(ATTEMPTS):
            await self._restart([book for book, _ in batch.values() if not book.sound])
            places = {id: book.state.seq for id, (book, _) in batch.items()}
            writing = await self._wait(self.store.begin, places)
            rows: dict[str, list[Row]] = {}
            tokens: list[NewToken] = []
            try:
                now = clock()
                for id, (book, jobs) in batch.items():
                    book.take(writing.news.get(id, []))
                    written = [row for job in jobs for row in book.play(job, now)]
                    if written:
                        rows[id] = written
                    tokens += [token for job in jobs for token in job.tokens]
                if rows:
                    await self._wait(lambda w=writing, r=rows, t=tokens: w.commit(r, tokens=t))
                    await self._keep_snapshots([book for book, _ in batch.values()])
                else:
                    await self._wait(writing.rollback)
                return
            except BaseException as error:
                books = [book for book, _ in batch.values()]
                for book in books:
                    book.sound = False  # until it is read again, be it by the next who asks
                await self._wait(writing.rollback)
                await self._restart(books)
                if isinstance(error, Broken):
                    for _book, jobs in batch.values():
                        jobs[:] = [job for job in jobs if job is not error.job]
                    error.job.answer()
                elif not isinstance(error, Lost):
                    raise
        raise Refused(503, "The controller is very busy; try again.")

    async def _restart(self, books: list[Book]) -> None:
        for book in books:
            fresh = await self._wait(Book.load, self.store, book.id)
            assert fresh is not None
            book.restart(fresh)

    async def _keep_snapshots(self, books: list[Book]) -> None:
        for book in books:
            if book.state.seq - book.kept >= SNAPSHOT_EVERY:
                book.kept = book.state.seq
                try:
                    await self._wait(self.store.keep_snapshot, book.id, book.kept, FORMAT, book.state.dump())
                except Exception as error:  # it is a cache, and what it holds is on disk: the next one may do
                    log.warning("snapshot failed", extra={"collaboration": book.id, "error": type(error).__name__})

    async def _wait(self, work: Callable[..., Any], *given: Any) -> Any:
        """Do a piece of the database's work: in a thread where it may have to wait for others."""
        return await asyncio.to_thread(work, *given) if self.store.several else work(*given)


def _from_snapshot(collaboration: str, seq: int, snapshot: bytes) -> State | None:
    """Return the state that a snapshot keeps. It is a cache: one that does not fit is not used."""
    try:
        state = State.load(snapshot)
    except (msgspec.MsgspecError, LookupError, ValueError):
        return None
    return state if state.seq == seq and state.config.collaboration == collaboration else None


def _freed(book: Book) -> None:
    """Say that what is in the state is on disk."""
    if book.writing is not None:
        book.writing.set_result(None)
        book.writing = None


def created(event: Create) -> tuple[Book, Row]:
    """Return the book of a new collaboration, and its first row."""
    row = seal(event, GENESIS)
    return Book(State(event), row.head), row

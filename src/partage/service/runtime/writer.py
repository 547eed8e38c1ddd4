"""The writer: every change of every collaboration goes through it.

A request that changes something is a job. The writer takes all waiting jobs, plays their moves one after another on
the state, writes the events of all of them in one transaction (group commit), and only then answers. With SQLite no
one else can write. With PostgreSQL it first takes the locks of these collaborations and reads what other processes
have written since. If it loses a race anyway, it reloads the ledger and plays the moves again.

A collaboration with many arms or many requests must not keep the others waiting: each gets some milliseconds of a
transaction, what is left waits for the next one, and the event loop runs in between.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

from partage.ledger.moves import Turn
from partage.ledger.own_rules import RuleFailed, one_move
from partage.ledger.refusals import Refused
from partage.ledger.state import SNAPSHOT_FORMAT, State
from partage.service.runtime.book import Book
from partage.service.runtime.damage import Damaged, Damages, lost
from partage.service.runtime.snapshots import dumped
from partage.service.runtime.system import System
from partage.service.runtime.timekeeper import Timekeeper
from partage.service.store import Corrupt, Lost, NewToken, Row, Store

log = logging.getLogger("partage.service")

SNAPSHOT_EVERY = 50_000  # events, about two seconds of replay at a restart
SHARE = 20  # ms of a transaction that one collaboration gets; it may play one move in any case
SLICE = 5  # ms of playing after which everything else gets a turn
NEWS = 50  # rows of other processes that are applied at a time
ATTEMPTS = 20  # lost races before a request is refused
PATIENCE = 5.0  # seconds that the moves of a held collaboration wait before they are refused

Move = Callable[[Turn], Any]
Prepare = Callable[[State], Awaitable[None]]


class Done(NamedTuple):
    """The outcome of a job: the move's answer, the ledger's head after its events, and their rows."""

    answer: Any
    head: str
    rows: list[Row]


class Waiting(NamedTuple):
    """An ask that may wait for a claim: whose it is, and until when, by the event loop's time."""

    agent: str
    until: float


class Job:
    """A move that waits to be played, and the tokens to store with its events.

    `prepare` is awaited before the move is played, while the collaboration is locked in the store. `waiting` says
    that the move asks for a claim, and may wait for one; it becomes None when the time is over.
    """

    __slots__ = ("future", "move", "outcome", "prepare", "tokens", "waiting")

    def __init__(
        self,
        move: Move,
        future: "asyncio.Future[Done]",
        tokens: list[NewToken],
        prepare: Prepare | None = None,
        waiting: Waiting | None = None,
    ) -> None:
        self.move = move
        self.future = future
        self.tokens = tokens
        self.prepare = prepare
        self.waiting = waiting
        self.outcome: Done | Exception | None = None

    @property
    def asks_again(self) -> bool:
        """Whether it found no claim, and may wait for one."""
        nothing = isinstance(self.outcome, Done) and self.outcome.answer is None
        return nothing and self.waiting is not None and not self.future.done()

    def answer(self) -> None:
        """Pass the outcome to the request."""
        if self.future.done():  # the request was cancelled
            return
        if isinstance(self.outcome, Exception):
            self.future.set_exception(self.outcome)
        elif self.outcome is not None:
            self.future.set_result(self.outcome)


class Broken(Exception):
    """A move raised something other than a refusal: a defect."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.job = job


Batch = dict[str, tuple[Book, list[Job]]]


class Writer:
    """Writes the waiting jobs of all collaborations, in one transaction after another.

    At most `slots` transactions run at a time; a collaboration is never in two of them. `tie_seed` returns the
    operator's part of a collaboration's tie order.
    """

    def __init__(
        self,
        store: Store,
        system: System,
        snapshot_every: int = SNAPSHOT_EVERY,
        *,
        tie_seed: Callable[[str], bytes],
    ) -> None:
        self.store = store
        self._tie_seed = tie_seed
        self.slots = 2 if store.several else 1
        self.snapshot_every = snapshot_every
        self.damages = Damages(system.monotonic)
        self.tasks: dict[asyncio.Task[None], None] = {}
        self.timekeeper = Timekeeper(system, store.several)
        self._system = system
        self._call = system.store_calls(store.several)
        self._waiting: dict[str, Book] = {}
        self._breathed = system.monotonic()

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
        """Queue a move for the next transaction; the outcome comes once it is on disk.

        `tokens` are stored with the move's events; the move itself may fill the list. With `first`, it is played
        before those that wait. With `prepare`, its transaction has no other collaboration in it. With `waiting`, a
        move that finds no claim waits for the first that opens for its agent.
        """
        if book.refusing and not first:
            raise being_closed()
        loop = asyncio.get_running_loop()
        job = Job(move, loop.create_future(), [] if tokens is None else tokens, prepare, waiting)
        book.jobs.insert(0 if first else len(book.jobs), job)
        self._wake(book)
        return job.future

    def _wake(self, book: Book) -> None:
        """Write the jobs of a collaboration, as soon as it is free."""
        self._waiting[book.id] = book
        if not book.taken and not book.held:
            self._start()

    @asynccontextmanager
    async def hold(self, book: Book) -> AsyncIterator[None]:
        """Hold a collaboration's moves back, so that its state stays as it is; only other processes may write.

        Its moves wait, and after `PATIENCE` they are refused. Other collaborations go on.
        """
        book.held = True
        overdue = asyncio.get_running_loop().call_later(PATIENCE, self._refuse_waiting, book)
        try:
            await book.at_rest()
            yield
        finally:
            overdue.cancel()
            book.held = book.refusing = False
            if book.jobs and not book.taken:
                self._start()

    async def catch_up_held(self, book: Book) -> bool:
        """Apply what other processes wrote to a collaboration that is held; False if only a transaction can.

        Whoever holds it finds that its state has changed.
        """
        await book.at_rest()
        while book.held and book.valid:
            try:
                rows = await self._call(self.store.some_rows, book.id, book.state.seq)
            except Corrupt:
                rows, book.valid = [], False
            if not book.held or book.taken:  # the state may be ahead of the disk by now
                return False
            try:
                book.catch_up(rows[:NEWS])
            except Exception:
                book.valid = False  # the reload will say what is wrong
            if not rows:
                return book.valid
            book.notify()
        return False

    def _refuse_waiting(self, book: Book) -> None:
        """Refuse the moves of a collaboration that is held for long: those that wait, and new ones."""
        book.refusing = True
        waiting, book.jobs = book.jobs, []
        self._waiting.pop(book.id, None)
        for job in waiting:
            job.outcome = being_closed()
            job.answer()

    def _start(self) -> None:
        """Start to write what waits, unless enough transactions run."""
        if len(self.tasks) < self.slots:
            self.tasks[asyncio.get_running_loop().create_task(self._run())] = None

    async def _run(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            await self._write_all()
        finally:  # here, not a turn of the loop later: a move queued in between would wait forever
            del self.tasks[task]

    async def _write_all(self) -> None:
        # One turn of the loop lets every request that has arrived join the transaction.
        await asyncio.sleep(0)
        while batch := self._next_batch():
            try:
                await self._write(batch)
            except Exception as error:  # nothing of the batch is on disk, or the outcome is unknown
                for _book, jobs in batch.values():
                    for job in jobs:
                        job.outcome = error
            for book, jobs in batch.values():
                book.written()
                for job in jobs:
                    if job.asks_again:
                        self._keep(book, job)
                    else:
                        job.answer()
            for book, _ in batch.values():
                book.notify()
                book.compare_members(self._system.in_thread)
            await asyncio.sleep(0)

    def _keep(self, book: Book, job: Job) -> None:
        """Let an ask that found nothing wait for a claim. An agent has one such ask, the newest."""
        assert job.waiting is not None
        agent, until = job.waiting
        if agent in book.asks:
            self._end_wait(book, book.asks[agent])
        book.asks[agent] = job
        asyncio.get_running_loop().call_at(until, self._end_wait, book, job)

    def _end_wait(self, book: Book, job: Job) -> None:
        """Play an ask that waits once more, which answers it in any case.

        Even then there may be a claim: that of the same request, if it was sent twice.
        """
        if job.waiting is None:
            return
        agent, job.waiting = job.waiting.agent, None
        if book.asks.get(agent) is not job:  # it is being played, or was answered
            return
        del book.asks[agent]
        if book.refusing:
            job.outcome = being_closed()
            job.answer()
        else:
            book.jobs.append(job)
            self._wake(book)

    def _next_batch(self) -> Batch:
        """Take every waiting job, except those of collaborations that are being written."""
        free = [book for book in self._waiting.values() if not book.taken and not book.held]
        alone = [book for book in free if any(job.prepare for job in book.jobs)][:1]
        batch = {book.id: (book, book.jobs) for book in alone or free}
        for id, (book, _) in batch.items():
            del self._waiting[id]
            book.jobs, book.taken = [], True
        if len(batch) < len(free):
            self._start()
        return batch

    async def _write(self, whole: Batch) -> None:
        """Write a batch; repeat it after a lost race, or without a move that failed or a ledger that is damaged."""
        batch = dict(whole)
        for _attempt in range(ATTEMPTS):
            await self._reload(batch)
            try:
                await self._transaction(batch)
            except Lost:
                await self._reload(batch)
            except Broken as broken:
                await self._reload(batch)
                for _book, jobs in batch.values():
                    jobs[:] = [job for job in jobs if job is not broken.job]
                broken.job.answer()
            except BaseException:
                await self._reload(batch)
                raise
            else:
                await self._restore(batch)
                await self._keep_snapshots([book for book, _ in batch.values() if book.valid])
                return
        raise Refused(503, "busy", "The controller is busy; try again.")

    async def _transaction(self, batch: Batch) -> None:
        """Play every job's move and write what they made, all or nothing.

        Where a collaboration's own rule fails, what its jobs made before is written, and the others go on. Its state
        may be in the middle of an event, so it must be reloaded.
        """
        places = {id: book.state.seq for id, (book, _) in batch.items()}
        writing = await self._call(self.store.begin, places)
        rows: dict[str, list[Row]] = {}
        try:
            self._breathed = self._system.monotonic()
            for book, _ in batch.values():
                book.begin_writing()
            for id, (book, jobs) in batch.items():
                try:
                    await self._catch_up(book, writing.news.get(id, []))
                except RuleFailed as error:
                    self._refuse(book, jobs, error)
                    continue
                now = self.timekeeper.of(book, writing.now)
                if played := await self._play_all(book, jobs, now):
                    rows[id] = played
            if rows:
                tokens = [token for _, jobs in batch.values() for job in jobs for token in job.tokens]
                await self._call.write(lambda: writing.commit(rows, tokens=tokens))
                for id in rows:
                    batch[id][0].durable = rows[id][-1].seq
            else:
                await self._call(writing.rollback)
        except BaseException:
            for book, _ in batch.values():
                book.valid = False  # until it is reloaded, if need be by the next request
            await self._call(writing.rollback)
            raise

    async def _catch_up(self, book: Book, news: list[Row]) -> None:
        for place in range(0, len(news), NEWS):
            try:
                book.catch_up(news[place : place + NEWS])
            except Damaged as damaged:  # they do not continue what we know: the reload will say which is wrong
                raise Lost from damaged
            await self._breathe()

    async def _play_all(self, book: Book, jobs: list[Job], now: int) -> list[Row]:
        """Play jobs until the collaboration's share of the transaction is used up; those that are left wait."""
        rows: list[Row] = []
        clock = self._system.monotonic
        began = clock()
        for place, job in enumerate(jobs):
            if place and clock() - began >= SHARE:
                book.jobs[:0] = jobs[place:]
                del jobs[place:]
                self._waiting[book.id] = book
                break
            if isinstance(job.outcome, RuleFailed):  # before a lost race
                continue
            if job.prepare is not None:
                await self._prepare(book, job.prepare, job)
            try:
                rows += self._play(book, job, now)
            except RuleFailed as error:  # it would take its time again for each of those that are left
                self._refuse(book, jobs[place:], error)
                return rows
            await self._breathe()
        return rows + await self._play_asks(book, jobs, now)

    def _refuse(self, book: Book, jobs: list[Job], error: RuleFailed) -> None:
        """Refuse jobs of a collaboration whose rule failed, and let it be reloaded before they are answered."""
        book.valid = False
        for job in jobs:
            job.outcome = error
            job.tokens.clear()

    async def _play_asks(self, book: Book, jobs: list[Job], now: int) -> list[Row]:
        """Hand the claims that have opened to the asks that wait, in the order of arrival; these join the jobs."""
        rows: list[Row] = []
        state, seq, opened = book.state, -1, set[int]()
        for job in [*book.asks.values(), *(job for job in jobs if job.asks_again)]:
            if job.waiting is None:  # its time was over just now
                continue
            if job.future.done():  # the request was cancelled
                book.asks.pop(job.waiting.agent, None)
                continue
            member = state.members[job.waiting.agent]
            try:
                if seq != state.seq:
                    seq, opened = state.seq, set() if state.closed else set(state.open_arms())
                if state.closed is None and member.claim is None and opened.isdisjoint(member.shares):
                    continue
                rows += self._play(book, job, now)
            except RuleFailed as error:
                self._refuse(book, [job], error)
            if book.asks.get(member.id) is job and not job.asks_again:
                del book.asks[member.id]
                jobs.append(job)
            if not book.valid:  # the others go on waiting
                break
            await self._breathe()
        return rows

    async def _prepare(self, book: Book, prepare: Prepare, job: Job) -> None:
        try:
            await prepare(book.state)
        except Exception as error:
            job.outcome = error
            raise Broken(job) from error

    async def _breathe(self) -> None:
        """Let the event loop run, if it has waited for long."""
        if self._system.monotonic() - self._breathed >= SLICE:
            await asyncio.sleep(0)
            self._breathed = self._system.monotonic()

    def _play(self, book: Book, job: Job, now: int) -> list[Row]:
        """Play a job's move; the job keeps the outcome until its events are on disk."""
        turn = Turn(book.state, now, partial(self._tie_seed, book.id))
        job.tokens.clear()
        refused: Refused | None = None
        answer = None
        try:
            with one_move(book.state.rule):
                answer = job.move(turn)
        except RuleFailed:
            raise
        except Refused as error:  # its events, claims that lapsed, are still written
            refused = error
        except Exception as error:
            job.outcome = error
            raise Broken(job) from error
        rows = [book.append(event, self._system.random_bytes(16)) for event in turn.events]
        job.outcome = refused or Done(answer, book.head, rows)
        return rows

    async def _reload(self, batch: Batch) -> None:
        """Reload the books whose state may differ from the disk. One that cannot be read leaves the batch."""
        for id, (book, jobs) in list(batch.items()):
            if not book.valid:
                try:
                    self.damages.check(id)
                    fresh = await self._system.in_thread(Book.load, self.store, id)
                    if fresh is None:
                        raise lost(1)
                    book.replace(fresh)
                except Refused as error:
                    self.damages.note(id, error)
                    for job in jobs:
                        job.outcome = error
                    del batch[id]

    async def _restore(self, batch: Batch) -> None:
        """Reload the books whose rule failed. Their rows are on disk: if it fails, the next request says so."""
        for id, (book, _) in batch.items():
            with contextlib.suppress(Exception):
                await self._reload({id: (book, [])})

    async def keep_snapshot(self, book: Book) -> None:
        """Store a snapshot of a book that is in no transaction; moves that come in meanwhile wait."""
        book.taken = True
        try:
            await self._try_snapshot(book)
        finally:
            book.written()
            if book.jobs:
                self._start()

    async def _keep_snapshots(self, books: list[Book]) -> None:
        for book in books:
            if book.state.seq - book.snapshot_seq >= self.snapshot_every:
                await self._try_snapshot(book)

    async def _try_snapshot(self, book: Book) -> None:
        book.snapshot_seq = book.state.seq
        try:
            await self._call.write(self._keep_snapshot, book)
        except Exception as error:  # a snapshot is only a cache: the ledger is on disk, and the next may work
            log.warning("snapshot failed", extra={"collaboration": book.id, "error": type(error).__name__})

    def _keep_snapshot(self, book: Book) -> None:
        """Store a snapshot, in a thread: nobody changes the state of a book that is in a transaction."""
        snapshot = dumped(book.state, book.head, book.tree)
        self.store.keep_snapshot(book.id, book.state.seq, SNAPSHOT_FORMAT, snapshot)


def being_closed() -> Refused:
    """Return the refusal of a move while its collaboration is being settled."""
    sentence = "The collaboration is being closed, which takes a while; try again to see whether it is closed."
    return Refused(503, "busy", sentence, retry_after=PATIENCE)

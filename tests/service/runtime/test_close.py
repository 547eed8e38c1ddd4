"""The close of a busy collaboration: it is settled beside the event loop, while its moves wait and others go on."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.api import NAMED
from tests.support.faulty_store import Faulty, Remote
from tests.support.patience import PATIENCE

from partage.ledger.events import Close, decode
from partage.ledger.messages import NewAgent, NewCollaboration
from partage.ledger.refusals import Refused
from partage.ledger.verify import verify
from partage.service.runtime import settlements, writer
from partage.service.runtime.book import Book
from partage.service.runtime.controller import Controller
from partage.service.runtime.sessions import Who
from partage.service.runtime.system import System

NEW = NewCollaboration(name="T", arms=["a", "b"], horizon=100, invites=2, **NAMED)


class Threads:
    """Threads in which settlements wait for `go`; `settled` counts them, and `meanwhile` runs before each ends."""

    def __init__(self) -> None:
        self.began, self.go = asyncio.Event(), asyncio.Event()
        self.settled = 0
        self.meanwhile: Callable[[], None] = lambda: None
        self._settling = {"_closing", "previewed"}

    async def run(self, work: Callable[..., Any], *given: Any) -> Any:
        if work.__name__ not in self._settling:
            return await asyncio.to_thread(work, *given)
        self.settled += 1
        self.began.set()
        await self.go.wait()
        loop_thread = threading.get_ident()

        def beside() -> Any:
            assert threading.get_ident() != loop_thread
            return work(*given)

        found = await asyncio.to_thread(beside)
        self.meanwhile()
        return found


Scenario = Callable[[Controller, Threads], Awaitable[None]]


def play(path: Path, scenario: Scenario, kind: type[Faulty] = Faulty) -> None:
    async def all_of_it() -> None:
        threads = Threads()
        controller = Controller(kind(path / "partage.db"), system=System(in_thread=threads.run))
        controller.start()
        await asyncio.wait_for(scenario(controller, threads), PATIENCE)
        await controller.stop()

    asyncio.run(all_of_it())


async def joined(controller: Controller) -> tuple[Book, str]:
    id, codes = await controller.create("secret", NEW)
    agent, _ = await controller.join(id, codes[0], NewAgent(name="Ann", shares=["a", "b"]))
    return await controller.library.book(id), agent


async def rows_of(controller: Controller, book: Book) -> list[bytes]:
    parts = [part async for part in await controller.ledger(book.id, None)]
    return b"".join(parts).splitlines(keepends=True)


async def begun(controller: Controller, threads: Threads, book: Book) -> "asyncio.Task[Any]":
    """Begin a close, and return once it is being settled."""
    threads.began.clear()
    closing = asyncio.ensure_future(controller.settlements.close(book.id))
    await threads.began.wait()
    return closing


@pytest.mark.parametrize("kind", [Faulty, Remote])
def test_moves_wait_for_the_close_and_other_collaborations_go_on(tmp_path: Path, kind: type[Faulty]) -> None:
    async def scenario(controller: Controller, threads: Threads) -> None:
        (book, agent), (other, member) = [await joined(controller) for _ in range(2)]
        pull = await controller.ask(book, agent, None, False)
        assert pull is not None
        seq = book.state.seq
        closing = await begun(controller, threads, book)
        waiting = [asyncio.ensure_future(controller.tell(book, agent, pull.pull, 0.5)) for _ in range(3)]
        assert await controller.ask(other, member, None, False) is not None
        assert (await controller.library.fresh(book.id)).state.seq == seq  # it can be read
        assert not any(one.done() for one in waiting)
        assert (book.state.seq, book.state.closed) == (seq, None)
        threads.go.set()
        assert (await closing).closed
        for one in waiting:
            with pytest.raises(Refused) as refused:
                await one
            assert refused.value.code == "closed"
        lines = await rows_of(controller, book)
        assert len(lines) == seq + 1
        assert verify(lines).ok
        assert threads.settled == 2  # for the close, and for the answer

    play(tmp_path, scenario, kind)


def test_moves_are_refused_if_it_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PATIENCE", 0.02)

    async def scenario(controller: Controller, threads: Threads) -> None:
        book, agent = await joined(controller)
        closing = await begun(controller, threads, book)
        waiting = asyncio.ensure_future(controller.ask(book, agent, None, False))
        with pytest.raises(Refused) as refused:
            await waiting
        assert (refused.value.status, refused.value.retry_after) == (503, 0.02)
        with pytest.raises(Refused):  # from now on, at once
            await controller.ask(book, agent, None, False)
        threads.go.set()
        assert (await closing).closed
        assert not book.refusing

    play(tmp_path, scenario)


def test_closing_twice_at_once_closes_once(tmp_path: Path) -> None:
    async def scenario(controller: Controller, threads: Threads) -> None:
        book, _ = await joined(controller)
        threads.go.set()
        first, second = await asyncio.gather(*(controller.settlements.close(book.id) for _ in range(2)))
        assert first == second
        assert sum(isinstance(decode(row.body), Close) for row in controller.store.rows(book.id)) == 1

    play(tmp_path, scenario)


def test_a_settlement_that_fails_leaves_the_collaboration_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(controller: Controller, threads: Threads) -> None:
        book, agent = await joined(controller)
        threads.go.set()
        with monkeypatch.context() as broken:
            broken.setattr(settlements, "closing", None)
            with pytest.raises(TypeError):
                await controller.settlements.close(book.id)
        assert book.state.closed is None
        assert await controller.ask(book, agent, None, False) is not None
        assert (await controller.settlements.close(book.id)).closed

    play(tmp_path, scenario)


def test_a_request_that_is_given_up_leaves_the_collaboration_open(tmp_path: Path) -> None:
    async def scenario(controller: Controller, threads: Threads) -> None:
        book, agent = await joined(controller)
        closing = await begun(controller, threads, book)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        assert await controller.ask(book, agent, None, False) is not None
        assert book.state.closed is None

    play(tmp_path, scenario)


@pytest.mark.parametrize("races", [1, 2, 3])
def test_a_lost_race_settles_again(tmp_path: Path, races: int) -> None:
    """As if another process wrote meanwhile; the last time, the collaboration is locked in the store."""

    async def scenario(controller: Controller, threads: Threads) -> None:
        book, agent = await joined(controller)
        left = [None] * races

        def reloaded() -> None:
            if left:
                left.pop()
                book.valid = False

        threads.meanwhile = reloaded
        threads.go.set()
        assert (await controller.settlements.close(book.id)).closed
        assert threads.settled == races + 2
        assert verify(await rows_of(controller, book)).ok
        with pytest.raises(Refused):
            await controller.ask(book, agent, None, False)

    play(tmp_path, scenario)


def test_a_held_collaboration_is_read_with_what_other_processes_wrote(tmp_path: Path) -> None:
    async def scenario(controller: Controller, threads: Threads) -> None:
        book, agent = await joined(controller)
        closing = await begun(controller, threads, book)
        other = Controller(controller.store)  # another process
        theirs = await other.library.book(book.id)
        pull = await other.ask(theirs, agent, None, False)
        assert pull is not None
        told = await other.tell(theirs, agent, pull.pull, 0.5)
        assert told.receipt is not None
        seen = theirs.durable
        assert seen > book.durable
        await controller.receipts.expect(book, seen)  # the member's checkpoint is not ahead of the ledger
        assert await controller.receipts.consistency(book, 1, seen) == await other.receipts.consistency(
            theirs, 1, seen
        )
        with pytest.raises(Refused) as refused:  # one that no process wrote still is
            await controller.receipts.expect(book, seen + 1)
        assert refused.value.code == "checkpoint_ahead"
        await other.revoke(book.id, agent)
        with pytest.raises(Refused) as refused:
            await controller.admit(Who(book.id, agent))
        assert refused.value.code == "token_ended"
        assert book.held
        threads.go.set()
        assert (await closing).closed
        assert threads.settled == 3  # again, with what was written meanwhile
        assert verify(await rows_of(controller, book)).ok

    play(tmp_path, scenario, Remote)


def test_few_previews_are_computed_at_a_time(tmp_path: Path) -> None:
    async def scenario(controller: Controller, threads: Threads) -> None:
        books = [(await joined(controller))[0] for _ in range(5)]
        views = [asyncio.ensure_future(controller.settlements.view(book.id)) for book in books for _ in range(3)]
        await threads.began.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        assert threads.settled == settlements.AT_ONCE
        threads.go.set()
        await asyncio.gather(*views)
        assert threads.settled == len(books)

    play(tmp_path, scenario)

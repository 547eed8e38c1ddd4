"""A database that makes writes wait: the event loop, reads and other collaborations do not wait with them."""

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.api import NAMED
from tests.support.faulty_store import Faulty, Remote
from tests.support.patience import PATIENCE
from tests.support.simulation import Machine

from partage.ledger.messages import NewAgent, NewCollaboration
from partage.ledger.refusals import Refused
from partage.service.runtime.book import Book
from partage.service.runtime.calls import LONGEST
from partage.service.runtime.controller import Controller
from partage.service.store import Busy, Row, open_store

NEW = NewCollaboration(name="T", arms=["a", "b"], horizon=100, invites=2, **NAMED)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock the file as a shell does that began to write."""
    with closing(sqlite3.connect(path, isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        yield
        shell.execute("ROLLBACK")


async def joined(controller: Controller) -> tuple[Book, str]:
    id, codes = await controller.create("secret", NEW)
    agent, _ = await controller.join(id, codes[0], NewAgent(name="Ann", shares=["a", "b"]))
    return await controller.library.book(id), agent


def test_a_locked_file_says_so_at_once(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "partage.db"))
    store.never_wait()
    with locked(tmp_path / "partage.db"):
        for write in (
            lambda: store.begin({}),
            lambda: store.set_meta_once("k", "v"),
            lambda: store.add_session(*"ab", 2, 1),
        ):
            with pytest.raises(Busy):
                write()
        assert store.meta("schema") is not None  # reads go on
        assert store.collaborations() == []
    assert store.set_meta_once("k", "v") == "v"
    store.close()


def on_machine(path: Path, scenario: Callable[[Controller], Awaitable[None]]) -> None:
    machine = Machine(1)

    async def main() -> None:
        controller = Controller(Faulty(path, durable=False), "token", machine.system())
        controller.start()
        await scenario(controller)
        await controller.stop()

    machine.run(main())


def test_reads_go_on_while_the_file_is_locked_and_writes_wait(tmp_path: Path) -> None:
    async def scenario(controller: Controller) -> None:
        book, agent = await joined(controller)
        with locked(tmp_path / "partage.db"):
            asking = asyncio.ensure_future(controller.ask(book, agent, "one", False))
            creating = asyncio.ensure_future(controller.create("secret", NEW))
            await asyncio.sleep(5)
            assert not asking.done()
            assert not creating.done()
            seq = book.state.seq
            assert (await controller.library.fresh(book.id)).state.seq == seq  # at once
            assert [part async for part in await controller.ledger(book.id, None)]
        pull = await asking
        assert pull is not None
        await creating
        assert controller.store.row(book.id, pull.pull) is not None

    on_machine(tmp_path / "partage.db", scenario)


def test_a_file_that_stays_locked_is_a_refusal_and_nothing_is_lost(tmp_path: Path) -> None:
    async def scenario(controller: Controller) -> None:
        book, agent = await joined(controller)
        time = asyncio.get_running_loop().time
        with locked(tmp_path / "partage.db"):
            before, seq, head = time(), book.state.seq, book.head
            with pytest.raises(Refused) as refused:
                await controller.ask(book, agent, "one", False)
            assert (refused.value.status, refused.value.code) == (503, "busy")
            assert refused.value.retry_after
            assert LONGEST <= time() - before <= LONGEST + 1
            waited = time()
            with pytest.raises(Refused):  # it is known to be locked: no other request waits as long
                await controller.ask(book, agent, "two", False)
            assert time() - waited < 1
            assert (book.state.seq, book.head, book.valid) == (seq, head, True)
        pull = await controller.ask(book, agent, "one", False)
        assert pull is not None
        rows = controller.store.rows(book.id)
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        assert rows[-1].head == book.head

    on_machine(tmp_path / "partage.db", scenario)


class Slow(Faulty):
    """A store whose commits wait until they are let go."""

    def __init__(self, path: Path) -> None:
        self.committing, self.go = threading.Event(), threading.Event()
        self.go.set()
        super().__init__(path, durable=False)

    def commit_rows(self, rows: Mapping[str, Sequence[Row]], *others: Any) -> None:
        self.committing.set()
        assert self.go.wait(PATIENCE)
        super().commit_rows(rows, *others)


def test_a_commit_that_takes_long_blocks_nothing_else(tmp_path: Path) -> None:
    async def main() -> None:
        store = Slow(tmp_path / "partage.db")
        controller = Controller(store, "token")
        controller.start()
        book, agent = await joined(controller)
        other, _ = await joined(controller)
        store.go.clear()
        store.committing.clear()
        asking = asyncio.ensure_future(controller.ask(book, agent, None, False))
        while not store.committing.is_set():
            await asyncio.sleep(0.001)
        # The loop runs, and what another collaboration has on disk can be read.
        assert (await controller.library.fresh(other.id)).valid
        assert [part async for part in await controller.ledger(other.id, None)]
        assert not asking.done()
        store.go.set()
        assert await asking is not None
        await controller.stop()

    asyncio.run(main())


def test_a_stream_ends_quietly_if_the_database_does_not_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Remote(tmp_path / "partage.db")
        controller = Controller(store)
        book, _ = await joined(controller)
        store.unreadable = True
        assert [found async for found in controller.watch(book.id)] == []
        store.unreadable = False
        assert await anext(controller.watch(book.id)) is book
        await controller.stop()

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE))

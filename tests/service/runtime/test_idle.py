"""Collaborations that nobody uses leave the memory, and come back as they were."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.support.api import NAMED
from tests.support.faulty_store import Faulty, Remote, all_of
from tests.support.simulation import Machine

from partage.ledger.messages import NewAgent, NewCollaboration
from partage.ledger.refusals import Refused
from partage.ledger.state import SNAPSHOT_FORMAT
from partage.service.metrics import Metrics
from partage.service.runtime import library
from partage.service.runtime.book import Book
from partage.service.runtime.controller import Controller

NEW = NewCollaboration(name="T", arms=["a", "b"], horizon=100, claim_seconds=2000, invites=2, **NAMED)
A_WHILE = library.IDLE_SECONDS + 2 * library.IDLE_PAUSE


def play(path: Path, scenario: Callable[[Controller], Awaitable[None]], kind: type[Faulty] = Faulty) -> None:
    machine = Machine(1)

    async def main() -> None:
        controller = Controller(kind(path, durable=False), "token", machine.system())
        controller.start()
        await scenario(controller)
        await controller.stop()

    machine.run(main(), at_most=10**5)


async def joined(controller: Controller) -> tuple[Book, str]:
    id, codes = await controller.create("secret", NEW)
    agent, _ = await controller.join(id, codes[0], NewAgent(name="Ann", shares=["a", "b"]))
    return await controller.library.book(id), agent


@pytest.mark.parametrize("kind", [Faulty, Remote])
def test_an_idle_one_leaves_and_comes_back_as_it_was(kind: type[Faulty], tmp_path: Path) -> None:
    async def scenario(controller: Controller) -> None:
        book, agent = await joined(controller)
        books = controller.library.books
        await asyncio.sleep(A_WHILE / 2)
        assert books == {book.id: book}
        await asyncio.sleep(A_WHILE)
        assert books == {}
        again = await controller.library.fresh(book.id)
        assert again is not book
        assert (all_of(again.state), again.head) == (all_of(book.state), book.head)
        assert await controller.ask(again, agent, None, False) is not None
        text = Metrics().text(controller).decode()
        assert "partage_collaborations 1.0" in text
        assert "partage_collaborations_unloaded 1.0" in text

    play(tmp_path / "partage.db", scenario, kind)


def test_it_stays_while_it_is_watched_or_a_claim_is_open(tmp_path: Path) -> None:
    async def scenario(controller: Controller) -> None:
        book, _ = await joined(controller)
        other, agent = await joined(controller)
        pull = await controller.ask(other, agent, None, False)
        assert pull is not None

        async def watch() -> None:
            async for _ in controller.watch(book.id):
                pass

        watching = asyncio.ensure_future(watch())
        await asyncio.sleep(A_WHILE)
        assert set(controller.library.books) == {book.id, other.id}
        await asyncio.sleep(2000)  # the claim has lapsed
        assert set(controller.library.books) == {book.id}
        controller.end_streams()
        await watching
        await asyncio.sleep(A_WHILE)
        assert controller.library.books == {}

    play(tmp_path / "partage.db", scenario)


def test_the_longest_idle_leave_first_where_there_are_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "MOST", 2)

    async def scenario(controller: Controller) -> None:
        ids = []
        for _ in range(5):
            ids.append((await joined(controller))[0].id)
            await asyncio.sleep(1)
        await asyncio.sleep(library.CROWDED_SECONDS + 2 * library.IDLE_PAUSE)
        assert sorted(controller.library.books) == sorted(ids[-2:])

    play(tmp_path / "partage.db", scenario)


def test_a_snapshot_is_kept_where_it_saves_a_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "WORTH_A_SNAPSHOT", 10)

    async def scenario(controller: Controller) -> None:
        long, agent = await joined(controller)
        short, _ = await joined(controller)
        for place in range(10):
            await controller.consent(long, agent, ["a"] if place % 2 else ["a", "b"], f"request {place}")
        await asyncio.sleep(A_WHILE)
        assert controller.library.books == {}
        found = controller.store.snapshot(long.id, SNAPSHOT_FORMAT)
        assert found is not None
        assert found[0] == long.state.seq
        assert controller.store.snapshot(short.id, SNAPSHOT_FORMAT) is None
        again = await controller.library.fresh(long.id)
        assert again.snapshot_seq == long.state.seq
        assert all_of(again.state) == all_of(long.state)

    play(tmp_path / "partage.db", scenario)


def test_a_request_that_took_too_long_writes_nothing_to_a_book_that_left(tmp_path: Path) -> None:
    async def scenario(controller: Controller) -> None:
        book, agent = await joined(controller)
        await asyncio.sleep(A_WHILE)
        again = await controller.library.book(book.id)
        with pytest.raises(Refused) as refused:
            await controller.ask(book, agent, None, False)
        assert refused.value.status == 503
        assert await controller.ask(again, agent, None, False) is not None

    play(tmp_path / "partage.db", scenario)


def test_a_move_that_comes_in_during_the_snapshot_is_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "WORTH_A_SNAPSHOT", 1)

    async def scenario(controller: Controller) -> None:
        book, agent = await joined(controller)
        keep = asyncio.ensure_future(controller.library._writer.keep_snapshot(book))
        await asyncio.sleep(0)
        assert book.taken
        assert await controller.ask(book, agent, None, False) is not None
        await keep
        assert not book.taken

    play(tmp_path / "partage.db", scenario)


def test_a_load_that_fails_when_its_reader_has_hung_up_is_no_error_of_the_loop(tmp_path: Path) -> None:
    async def scenario(controller: Controller) -> None:
        logged: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
        book, _ = await joined(controller)
        del controller.library.books[book.id]
        assert isinstance(controller.store, Faulty)
        controller.store.unreadable = True
        reading = asyncio.ensure_future(controller.library.book(book.id))
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.sleep(1)
        del reading  # asyncio logs an error when its task is gone
        gc.collect()
        assert logged == []
        controller.store.unreadable = False

    play(tmp_path / "partage.db", scenario)

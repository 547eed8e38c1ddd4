"""A busy collaboration does not keep others waiting: it gets a share of a transaction, and watchers wait a little."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.api import NAMED
from tests.support.faulty_store import Faulty, Remote
from tests.support.simulation import Machine

from partage.agreement import disagreements
from partage.ledger import state as states
from partage.ledger.messages import BoardView, NewAgent, NewCollaboration
from partage.ledger.state import State
from partage.ledger.views import board_view
from partage.service.runtime import book as books
from partage.service.runtime.book import Book
from partage.service.runtime.controller import Controller
from partage.service.runtime.system import System
from partage.service.runtime.writer import SHARE, SLICE

NEW = NewCollaboration(name="T", arms=["a", "b"], horizon=10_000, invites=2, **NAMED)


class Slowly:
    """A machine on which each move takes some milliseconds."""

    def __init__(self, path: Path, milliseconds: int, kind: type[Faulty] = Faulty) -> None:
        self.machine, self.milliseconds = Machine(1), milliseconds
        self.passed = 0
        self.store = kind(path, durable=False)

    def system(self) -> System:
        machine = self.machine
        return System(machine.clock, machine.in_thread, machine.random.randbytes, lambda: self.passed)

    def slow(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return a move that takes its time."""

        def move(turn: Any) -> Any:
            self.passed += self.milliseconds
            return work(turn)

        return move

    def run(self, scenario: Callable[[Controller], Awaitable[None]]) -> None:
        async def main() -> None:
            controller = Controller(self.store, "token", self.system())
            await scenario(controller)
            await controller.stop()

        self.machine.run(main())


async def joined(controller: Controller) -> Book:
    id, codes = await controller.create("secret", NEW)
    await controller.join(id, codes[0], NewAgent(name="Ann", shares=["a", "b"]))
    return await controller.library.book(id)


def test_a_neighbour_is_served_between_the_requests_of_a_busy_collaboration(tmp_path: Path) -> None:
    slowly = Slowly(tmp_path / "partage.db", milliseconds=10)
    done: list[str] = []

    async def scenario(controller: Controller) -> None:
        busy, neighbour = await joined(controller), await joined(controller)

        async def played(book: Book, name: str) -> None:
            await controller.library.put(book, slowly.slow(lambda turn: None))
            done.append(name)

        flood = [asyncio.ensure_future(played(busy, f"busy {place}")) for place in range(30)]
        await asyncio.sleep(0)
        await played(neighbour, "neighbour")
        assert len(done) <= 1 + 2 * -(-SHARE // 10)  # the flood had a transaction or two, not all of them
        await asyncio.gather(*flood)
        assert [name for name in done if name != "neighbour"] == [f"busy {place}" for place in range(30)]

    slowly.run(scenario)


def test_the_loop_runs_while_moves_are_played(tmp_path: Path) -> None:
    slowly = Slowly(tmp_path / "partage.db", milliseconds=SLICE)

    async def scenario(controller: Controller) -> None:
        book = await joined(controller)
        longest, last = 0, slowly.passed

        async def others() -> None:
            nonlocal longest, last
            while True:
                longest, last = max(longest, slowly.passed - last), slowly.passed
                await asyncio.sleep(0)

        watching = asyncio.ensure_future(others())
        moves = [controller.library.put(book, slowly.slow(lambda turn: None)) for _ in range(50)]
        await asyncio.gather(*moves)
        watching.cancel()
        assert slowly.passed >= 50 * SLICE
        assert longest <= 2 * SLICE

    slowly.run(scenario)


def test_what_waits_for_the_next_transaction_is_written_once(tmp_path: Path) -> None:
    slowly = Slowly(tmp_path / "partage.db", milliseconds=SHARE)  # one move is one share

    async def scenario(controller: Controller) -> None:
        book = await joined(controller)
        slowly.store.faults = ["lost", "full"]

        def move(place: int) -> Callable[[Any], Any]:
            shares = ["a"] if place % 2 else ["a", "b"]
            arms = [book.arms[name] for name in shares]
            from partage.ledger import moves

            return slowly.slow(lambda turn: moves.consent(turn, "a1", arms, f"request {place}"))

        outcomes = await asyncio.gather(
            *(controller.library.put(book, move(place)) for place in range(8)), return_exceptions=True
        )
        failed = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        assert len(failed) == 1  # the one whose transaction found the disk full
        rows = controller.store.rows(book.id)
        assert len(rows) == 2 + 7
        assert rows[-1].head == book.head

    slowly.run(scenario)


def on_disk(book: Book) -> bool:
    """Whether all that a view of the collaboration reads is on disk."""
    return book.state.seq == book.durable


@asynccontextmanager
async def watching(controller: Controller, id: str, times: int) -> AsyncIterator[list[list[bytes]]]:
    """Watch a board with many streams; give what each got."""
    got: list[list[bytes]] = [[] for _ in range(times)]

    async def watch(place: int) -> None:
        async for book in controller.watch(id):
            if book is not None:
                assert book.shown().seq <= book.durable
                got[place].append(book.shown().whole)

    tasks = [asyncio.ensure_future(watch(place)) for place in range(times)]
    await asyncio.sleep(1)
    yield got
    await asyncio.sleep(30)
    controller.end_streams()
    await asyncio.gather(*tasks)


def test_watchers_are_woken_by_and_by_and_all_see_the_last_board(tmp_path: Path, monkeypatch: Any) -> None:
    slowly, computed = Slowly(tmp_path / "partage.db", milliseconds=0), []
    view = books.board_view

    def counted(state: Any, **late: bool) -> Any:
        computed.append(state.seq)
        return view(state, **late)

    monkeypatch.setattr(books, "board_view", counted)
    monkeypatch.setattr(books, "SHOWN_A_SECOND", 10)  # as if the board had a thousand arms

    async def scenario(controller: Controller) -> None:
        book = await joined(controller)
        async with watching(controller, book.id, 100) as got:
            before = len(computed)
            for place in range(50):
                await controller.consent(book, "a1", ["a"] if place % 2 else ["a", "b"])
                await asyncio.sleep(0.01)
            assert len(computed) - before <= 5  # not one for each change, nor for each watcher
        last, _ = book.board()
        assert all(boards[-1] == last for boards in got)

    slowly.run(scenario)


@pytest.mark.parametrize("kind", [Faulty, Remote])
def test_readers_and_watchers_get_boards_while_a_collaboration_is_always_written(
    kind: type[Faulty], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowly = Slowly(tmp_path / "partage.db", milliseconds=0, kind=kind)
    monkeypatch.setattr(books, "AT_ONCE", 1)  # so that rounds take long, and much is written meanwhile

    async def scenario(controller: Controller) -> None:
        book, writing = await joined(controller), True

        async def write(member: int) -> None:
            place = member
            while writing:
                await controller.consent(book, "a1", ["a"] if place % 2 else ["a", "b"])
                place += 1

        writers = [asyncio.ensure_future(write(member)) for member in range(8)]
        async with watching(controller, book.id, 100) as got:
            shown, events = [len(boards) for boards in got], book.state.seq
            for _ in range(20):  # each is answered after a write or two
                asked = book.durable
                async with asyncio.timeout(1):  # `wait_for` would read in another task, and look a turn later
                    assert on_disk(await controller.library.fresh(book.id))
                    assert book.durable <= asked + 2 * len(writers)
                    assert await controller.library.all(on_disk) == [True]
            await asyncio.sleep(20 * books.PAUSE)
            assert book.state.seq > events + 100
            assert all(len(boards) >= before + 5 for boards, before in zip(got, shown, strict=True))
            writing = False
            await asyncio.gather(*writers)
        last, _ = book.board()
        assert all(boards[-1] == last for boards in got)

    slowly.run(scenario)


def test_many_members_are_compared_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slowly, compared, threaded = Slowly(tmp_path / "partage.db", milliseconds=0), [], []
    monkeypatch.setattr(states, "COMPARED_AT_ONCE", 3)

    def at_once(records: Any, arms: int) -> Any:
        compared.append(len(records) * arms)
        return disagreements(records, arms)

    def in_thread(records: Any, arms: int) -> Any:
        threaded.append(len(records) * arms)
        return disagreements(records, arms)

    monkeypatch.setattr(states, "disagreements", at_once)
    monkeypatch.setattr(books, "disagreements", in_thread)

    async def scenario(controller: Controller) -> None:
        id, codes = await controller.create("secret", NEW)
        for code, name in zip(codes, ("Ann", "Bob"), strict=True):
            await controller.join(id, code, NewAgent(name=name, shares=["a", "b"]))
        book = await controller.library.book(id)
        async with watching(controller, id, 2) as got:
            for place in range(60):
                for agent, reward in (("a1", 1.0), ("a2", 0.0)):
                    pull = await controller.ask(book, agent, f"{place}", True)
                    if pull is not None:
                        await controller.tell(book, agent, pull.pull, reward)
            stale = book.board()  # of the last event, but with an earlier comparison
        assert book.board() != stale
        before = len(threaded)
        for _ in range(10):  # nothing is told, so nothing is compared
            await controller.consent(book, "a1", ["a", "b"])
            await asyncio.sleep(10)
        assert len(threaded) == before > 0
        found = board_view(State.load(book.state.dump()))
        assert {one.arm for one in found.disagreements} == {"a", "b"}
        assert [msgspec.json.decode(boards[-1], type=BoardView) for boards in got] == [found, found]
        assert msgspec.json.decode(book.board()[0], type=BoardView) == found
        assert all(pairs <= 3 for pairs in compared[:-1])  # the last is that of `found`

    slowly.run(scenario)


def test_waking_many_takes_several_turns_of_the_loop(tmp_path: Path) -> None:
    slowly = Slowly(tmp_path / "partage.db", milliseconds=0)

    async def scenario(controller: Controller) -> None:
        book = await joined(controller)
        events = [asyncio.Event() for _ in range(4 * books.AT_ONCE + 1)]
        book.watchers = dict.fromkeys(events)
        woken = []
        book.notify()
        while not woken or woken[-1] < len(events):
            woken.append(sum(event.is_set() for event in events))
            assert len(woken) < 100
            await asyncio.sleep(books.GAP)
        assert woken[:2] == [books.AT_ONCE, 2 * books.AT_ONCE]
        for event in events:
            event.clear()
        await asyncio.sleep(books.PAUSE)
        book.notify()
        assert sum(event.is_set() for event in events) == books.AT_ONCE
        for event in events:
            event.clear()
        book.notify()  # a change while they are being woken wakes all of them once more
        await asyncio.sleep(1)
        assert all(event.is_set() for event in events)
        book.watchers = {}

    slowly.run(scenario)

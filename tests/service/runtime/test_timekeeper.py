"""The ledger's time, on clocks that are set back and ahead."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.api import NAMED
from tests.support.faulty_store import Faulty, Remote
from tests.support.simulation import START, Machine

from partage.ledger.events import Lapse, decode
from partage.ledger.messages import NewAgent, NewCollaboration
from partage.service.runtime.controller import Controller
from partage.service.runtime.system import System
from partage.service.runtime.timekeeper import LARGEST_STEP, Timekeeper
from partage.service.store import Writing

HOUR = 3_600_000


class Clocks:
    """A clock that can be set, and one that cannot."""

    def __init__(self) -> None:
        self.clock, self.monotonic = START, 5000

    def pass_(self, ms: int) -> None:
        self.clock += ms
        self.monotonic += ms

    def system(self) -> System:
        return System(clock=lambda: self.clock, monotonic=lambda: self.monotonic)


def a_book(time: int = 0) -> Any:
    return SimpleNamespace(id="c1", ahead=0, stepped=0, state=SimpleNamespace(time=time))


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def test_it_is_the_clocks_time(clocks: Clocks) -> None:
    keeper = Timekeeper(clocks.system(), several=False)
    clocks.pass_(1234)
    assert keeper.now() == clocks.clock
    clocks.clock += 700  # a clock that is slewed
    assert keeper.now() == clocks.clock


def test_it_goes_on_when_the_clock_is_set_back(clocks: Clocks, caplog: pytest.LogCaptureFixture) -> None:
    keeper = Timekeeper(clocks.system(), several=False)
    clocks.clock -= HOUR
    with caplog.at_level(logging.WARNING):
        for second in range(5):
            assert keeper.now() == START + 1000 * second
            clocks.pass_(1000)
        assert [(record.message, record.ms) for record in caplog.records] == [("clock set back", HOUR)]  # type: ignore[attr-defined]
        clocks.clock += HOUR  # and right again: no step at all
        assert keeper.now() == clocks.clock
    assert len(caplog.records) == 1
    assert keeper.stepped == 0


def test_it_follows_a_clock_set_ahead_in_bounded_steps(clocks: Clocks, caplog: pytest.LogCaptureFixture) -> None:
    keeper = Timekeeper(clocks.system(), several=False)
    clocks.clock += HOUR
    with caplog.at_level(logging.WARNING):
        assert keeper.now() == START + LARGEST_STEP
        assert keeper.now() == START + LARGEST_STEP  # as often as anybody looks
        for _ in range(70 * 60):
            clocks.pass_(1000)
            before, now = keeper._time, keeper.now()
            assert before is not None
            assert 1000 <= now - before <= 1000 + LARGEST_STEP
    assert keeper.now() == clocks.clock
    steps = [record.step_ms for record in caplog.records]  # type: ignore[attr-defined]
    assert steps == [LARGEST_STEP] * 60


def test_after_a_restart_the_clock_is_believed(clocks: Clocks) -> None:
    clocks.clock += HOUR
    book = a_book(START)
    assert Timekeeper(clocks.system(), several=False).of(book) == START + HOUR


def test_a_ledger_that_is_ahead_of_the_clock_goes_on(clocks: Clocks) -> None:
    keeper, book = Timekeeper(clocks.system(), several=False), a_book(START + HOUR)
    for second in range(5):
        assert keeper.of(book) == START + HOUR + 1000 * second
        clocks.pass_(1000)
    clocks.clock += 2 * LARGEST_STEP  # a step takes away what it is ahead, first
    assert keeper.of(book) == START + HOUR + 5000
    assert book.ahead == HOUR - LARGEST_STEP


def test_processes_use_the_databases_clock() -> None:
    right, wrong = Clocks(), Clocks()
    wrong.clock += HOUR
    database = START + 7
    keepers = [Timekeeper(clocks.system(), several=True) for clocks in (right, wrong)]
    assert [keeper.now(database) for keeper in keepers] == [database, database]
    for clocks in (right, wrong):
        clocks.pass_(500)
    assert [keeper.now() for keeper in keepers] == [database + 500, database + 500]


deeds = st.lists(
    st.tuples(st.integers(0, 90_000), st.one_of(st.just(0), st.integers(-2 * HOUR, 2 * HOUR)), st.booleans()),
    max_size=30,
)


@given(deeds, st.integers(-HOUR, HOUR))
def test_it_never_stands_still_and_never_runs_away(deeds: list[tuple[int, int, bool]], first: int) -> None:
    clocks, book = Clocks(), a_book(START + first)
    keeper = Timekeeper(clocks.system(), several=False)
    began = last = keeper.of(book)
    assert last >= book.state.time
    measured = clocks.monotonic
    for elapsed, jump, writes in deeds:
        clocks.pass_(elapsed)
        clocks.clock += jump
        now = keeper.of(book)
        assert last + elapsed <= now <= last + elapsed + LARGEST_STEP
        last = now
        passed = clocks.monotonic - measured
        assert passed <= now - began <= 2 * passed + LARGEST_STEP
        if writes:
            book.state.time = now


# the controller


class Shared(Remote):
    """A database server with a clock of its own."""

    def __init__(self, path: Path, clock: Callable[[], int]) -> None:
        super().__init__(path, durable=False)
        self.clock = clock

    def begin(self, places: Any) -> Writing:
        writing = super().begin(places)
        writing.now = self.clock()
        return writing


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_a_claim_lapses_in_time_on_a_clock_that_was_set(jump: int, several: bool, tmp_path: Path) -> None:
    machine, other = Machine(1), Machine(2)
    other.loop.close()
    other.loop, other.skew = machine.loop, 12 * HOUR  # its own clock counts for nothing: the database's does
    seconds = 600

    async def scenario() -> list[Any]:
        path = tmp_path / "partage.db"
        store = Shared(path, machine.clock) if several else Faulty(path, durable=False)
        controllers = [Controller(store, "token", one.system()) for one in (machine, other)[: 1 + several]]
        for controller in controllers:
            controller.start()
        new = NewCollaboration(name="T", arms=["a", "b"], horizon=9, claim_seconds=seconds, invites=1, **NAMED)
        id, codes = await controllers[-1].create("secret", new)
        agent, _ = await controllers[0].join(id, codes[0], NewAgent(name="Ann", shares=["a", "b"]))
        for controller in controllers:
            await controller.library.fresh(id)
        machine.skew += jump
        book = controllers[-1].library.books[id]
        pull = await controllers[-1].ask(book, agent, None, False)
        assert pull is not None
        began = machine.loop.time()
        while pull.pull in book.state.claims:
            await asyncio.sleep(1)
            assert machine.loop.time() - began <= seconds + 2
        assert machine.loop.time() - began >= (seconds - LARGEST_STEP / 1000) / 2
        for controller in controllers:
            await controller.library.fresh(id)
        events = [decode(row.body) for row in store.rows(id)]
        for controller in controllers:
            await controller.stop()
        return events

    events = machine.run(scenario())
    assert isinstance(events[-1], Lapse)
    times = [event.time for event in events]
    assert times == sorted(times)
    assert times[-1] - times[-2] >= seconds * 1000


def test_a_restart_on_a_clock_that_was_set_back(tmp_path: Path) -> None:
    machine = Machine(1)

    async def scenario() -> None:
        path = tmp_path / "partage.db"
        controller = Controller(Faulty(path, durable=False), "token", machine.system())
        new = NewCollaboration(name="T", arms=["a", "b"], horizon=9, claim_seconds=60, invites=1, **NAMED)
        id, codes = await controller.create("secret", new)
        agent, _ = await controller.join(id, codes[0], NewAgent(name="Ann", shares=["a", "b"]))
        pull = await controller.ask(controller.library.books[id], agent, None, False)
        assert pull is not None
        await controller.stop()

        machine.skew -= HOUR
        controller = Controller(Faulty(path, durable=False), "token", machine.system())
        controller.start()
        book = await controller.library.book(id)
        await asyncio.sleep(59)
        assert pull.pull in book.state.claims
        await asyncio.sleep(3)
        assert pull.pull not in book.state.claims
        await controller.stop()

    machine.run(scenario())

"""The simulated database keeps the contract of the real ones: the same tests, on it."""

import inspect
from collections.abc import Iterator

import pytest
from tests.service.store import test_store as contract
from tests.simulator.disk import Disk, DiskFaults, SimulatedStore
from tests.simulator.world import Blocked, Crashed, Machine, World

from partage.ledger.chain import Row
from partage.service.store import Created, StoreError


@pytest.fixture
def world() -> Iterator[World]:
    world = World(1)
    yield world
    world.loop.close()


@pytest.fixture(params=[False, True], ids=["one", "several"])
def disk(world: World, request: pytest.FixtureRequest) -> Disk:
    return Disk(world, request.param, True, DiskFaults())


@pytest.fixture
def store(disk: Disk) -> Iterator[SimulatedStore]:
    store = disk.store(Machine(disk.world, "server"))
    contract.create(store, "one", "two")
    yield store
    store.close()


SHARED = {
    name: test
    for name, test in inspect.getmembers(contract, inspect.isfunction)
    if name.startswith("test_")
    and "store" in inspect.signature(test).parameters
    # The others open files, or connect to the database by its address. And this one reads the real clock.
    and not {"database_url", "postgres_url", "tmp_path", "monkeypatch"} & set(inspect.signature(test).parameters)
    and name != "test_a_database_of_several_processes_brings_its_clock"
}
globals().update(SHARED)


def test_the_contract_is_shared() -> None:
    assert len(SHARED) >= 8, list(SHARED)


def row(seq: int) -> Row:
    return contract.row(seq)


def test_a_crash_after_a_commit_keeps_it_and_one_before_or_during_does_not(disk: Disk) -> None:
    world, kept = disk.world, {}
    contract.create(disk.store(Machine(world, "server")), "one")
    for place, kind in enumerate(("before", "during", "after")):
        machine = Machine(world, "server")
        store = disk.store(machine)
        world.fault = lambda what, rate, kind=kind: what == f"crash {kind} a commit"  # type: ignore[method-assign]
        with pytest.raises(Crashed):
            contract.append(store, "one", row(place + 1))
        assert not machine.alive
        disk.forget(store)
        world.fault = lambda what, rate: False  # type: ignore[method-assign]
        kept[kind] = disk.store(Machine(world, "reader")).row("one", place + 1)
    assert kept == {"before": None, "during": None, "after": row(3)}


def test_an_unknown_outcome_is_a_commit_that_says_it_failed(disk: Disk) -> None:
    store = disk.store(Machine(disk.world, "server"))
    contract.create(store, "one")
    disk.world.fault = lambda what, rate: what == "outcome unknown"  # type: ignore[method-assign]
    with pytest.raises(StoreError):
        contract.append(store, "one", row(1))
    disk.world.fault = lambda what, rate: False  # type: ignore[method-assign]
    assert store.rows("one") == [row(1)]


def test_several_processes_wait_for_each_other_and_see_the_news(world: World) -> None:
    disk = Disk(world, True, True, DiskFaults())
    first, second = (disk.store(Machine(world, f"server {number}")) for number in range(2))
    contract.create(first, "one")
    heard: list[tuple[str, int]] = []
    second.listen(lambda collaboration, seq: heard.append((collaboration, seq)))
    with first.begin({"one": 0}) as writing:
        with pytest.raises(Blocked):
            second.begin({"one": 0})
        writing.commit({"one": [row(1)]}, created=[Created("two", 1, None)])
    with second.begin({"one": 0}) as writing:
        assert writing.news == {"one": [row(1)]}
    world.loop.call_later(1.0, world.loop.stop)
    world.loop.run_forever()
    assert heard == [("one", 1)]

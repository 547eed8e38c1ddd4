"""The simulated machine."""

import asyncio

import pytest
from tests.support.simulation import Machine


def test_a_failure_names_its_seed() -> None:
    async def failing() -> None:
        await asyncio.sleep(10**6)

    with pytest.raises(TimeoutError) as failure:
        Machine(4711).run(failing(), at_most=10)
    assert "4711" in failure.value.__notes__[0]


def test_a_simulation_that_is_stuck_ends() -> None:
    async def stuck() -> None:
        await asyncio.get_running_loop().create_future()

    machine = Machine(1)
    with pytest.raises(TimeoutError):
        machine.run(stuck())
    assert machine.loop.time() >= 3600

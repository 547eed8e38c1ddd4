"""The simulator: seeds without a failure, and one history for each seed."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.simulator.disk import DiskFaults
from tests.simulator.run import play
from tests.simulator.scenario import Trial
from tests.simulator.servers import NetworkFaults
from tests.simulator.world import Violation, World

import partage
from partage.rules import live_rules

SEEDS = 300  # in `make test-extra`; `make faults` plays more


@pytest.mark.parametrize("first", [0, 10])
def test_some_seeds(first: int) -> None:
    report = play(range(first, first + 10))
    assert report.failed is None, f"seed {report.failed}: {report.why}"


@pytest.mark.extra
@pytest.mark.parametrize("first", range(20, SEEDS, 20))
def test_many_seeds(first: int) -> None:
    report = play(range(first, first + 20))
    assert report.failed is None, f"seed {report.failed}: {report.why}"


@pytest.mark.parametrize("seed", [2, 3, 5])
def test_a_seed_has_one_history(seed: int) -> None:
    first, second = Trial(seed).run(), Trial(seed).run()
    assert first.world.trace == second.world.trace
    assert first.world.steps == second.world.steps > 50


@pytest.mark.extra
def test_a_seed_has_the_same_history_in_every_process() -> None:
    program = (
        "from tests.simulator.scenario import Trial; print(*(Trial(seed).run().world.trace for seed in range(8)))"
    )
    folders = [str(Path(partage.__file__).parents[1]), str(Path(__file__).parents[2])]
    traces = set()
    for order in ("1", "2"):  # of sets of texts, which differs between processes
        env = {**os.environ, "PYTHONHASHSEED": order, "PYTHONPATH": os.pathsep.join(folders)}
        traces.add(subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True).stdout)
    assert len(traces) == 1


VARIANTS: list[tuple[str, dict[str, Any]]] = [(rule, {}) for rule in live_rules()]
VARIANTS += [("balanced-glr", {"evidence": "betting"}), ("shared-imed", {"lead": 1.5, "clock": 0.3})]


@pytest.mark.parametrize(("rule", "parameters"), VARIANTS)
def test_one_at_a_time_it_decides_as_the_reference(rule: str, parameters: dict[str, Any]) -> None:
    trial = Trial(1)
    plan = trial.plan
    plan.config |= {"rule": rule, "parameters": parameters, "arms": ["x", "y", "z"], "horizon": 60, "invites": 5}
    plan.config |= {"claim_seconds": 60.0, "claim_interval": 0.0, "settlement": "none", "signed": False}
    for field in ("prepaid", "underwriting", "fee", "histories", "most_arms"):
        plan.config.pop(field, None)
    plan.turns = [[0, 1], [1, 2], [0], []]  # the last one only commits
    plan.disk, plan.network, plan.crash, plan.clock = DiskFaults(), NetworkFaults(), 0.0, 0.0
    trial.run()
    assert len(trial.truth.told) > 5


@pytest.mark.extra
def test_enough_happens() -> None:
    report = play(range(40))
    outcomes, counts = report.outcomes, report.counts
    for what in ("POST ask 200", "POST tell 200", "POST commits 200", "GET board 200", "board streamed"):
        assert outcomes[what] > 100, what
    for kind in ("server crashes", "request doubled", "answer lost", "clock jumps", "member crashes", "write fails"):
        assert counts[f"fault: {kind}"] > 5, kind


def test_a_simulation_that_does_not_end_fails() -> None:
    async def waiting() -> None:
        await asyncio.sleep(10**6)

    with pytest.raises(Violation, match="did not end"):
        World(1).run(waiting(), at_most=10)


def test_a_simulation_that_is_stuck_fails() -> None:
    async def stuck() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Violation, match="did not end"):
        World(1).run(stuck(), at_most=10)

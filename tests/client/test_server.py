"""The client against a real server."""

import asyncio
import random
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from tests.support.patience import PATIENCE
from tests.support.server import Server

from partage import BalancedETC, Game, Sharing, bernoulli, play
from partage.client import Agent, AsyncAgent, Operator
from partage.ledger.verify import verify


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server for all these tests."""
    with Server(f"{tmp_path_factory.mktemp('server')}/partage.db") as running:
        yield running


@pytest.fixture(scope="module")
def operator(server: Server) -> Iterator[Operator]:
    with Operator(server.url, server.operator_token) as found:
        yield found


def requests_of(server: Server) -> float:
    """Return how many requests of the API the server has answered so far, streams apart."""
    counted = re.findall(
        r'^partage_requests_total\{path="(/v1/[^"]*)",[^}]*\} ([\d.e+]+)$',
        httpx.get(f"{server.url}/metrics", timeout=PATIENCE).text,
        re.MULTILINE,
    )
    return sum(float(count) for path, count in counted if not path.endswith("/events"))


def test_every_pull_counts_and_the_ledger_has_the_saved_head(
    server: Server, operator: Operator, tmp_path: Path
) -> None:
    made = operator.create("trial", ["a", "b"], 300, invites=3)
    agents = [
        Agent.join(server.url, made.id, invite, name, shares, state=tmp_path / name)
        for invite, name, shares in zip(made.invites, ["A", "B", "C"], [["a"], ["b"], []], strict=True)
    ]
    with ThreadPoolExecutor(3) as threads:
        played = list(threads.map(lambda agent: agent.play(lambda arm: float(arm == "a"), 300), agents))
    for agent, summary, row in zip(agents, played, operator.agents(made.id), strict=True):
        assert (row.explore, row.unnamed, row.horizon_left) == (summary.explore, summary.commit, 0)
        assert agent.unpaid == 0
    assert agents[0].board().version == sum(summary.explore for summary in played)
    assert len(agents[0].settlement().rows) == 1
    agents[1].ledger(tmp_path / "ledger.ndjson")
    assert verify(tmp_path / "ledger.ndjson", agents[1].head).problem is None
    for agent in agents:
        agent.close()


def test_requests_grow_with_broadcasts_and_not_with_pulls(server: Server, operator: Operator) -> None:
    made = operator.create("trial", ["a", "b"], 20_000, rule="balanced-glr", invites=8)
    before = requests_of(server)

    async def play_all() -> int:
        agents = [
            await AsyncAgent.join(server.url, made.id, invite, name=f"n{i}", shares=["ab"[i % 2]])
            for i, invite in enumerate(made.invites)
        ]
        await asyncio.gather(*(agent.play(lambda arm: float(arm == "a"), 20_000) for agent in agents))
        version = (await agents[0].board()).version
        await asyncio.gather(*(agent.close() for agent in agents))
        return version

    version = asyncio.run(play_all())
    assert sum(row.explore + row.unnamed for row in operator.agents(made.id)) == 160_000
    assert requests_of(server) - before < 100 + 20 * version < 16_000


@pytest.mark.extra
def test_a_hundred_agents_learn_as_well_as_the_simulator(server: Server, operator: Operator) -> None:
    means, pulls, agents = [0.9, 0.5, 0.1], 10_000, 100
    arms = [f"arm {place}" for place in range(len(means))]
    made = operator.create("many pulls", arms, pulls, rule="balanced-etc", settlement="none", invites=agents)
    draw, before = random.Random(1), requests_of(server)

    def pull_arm(arm: str) -> float:
        return float(draw.random() < means[arms.index(arm)])

    async def play_all() -> list[dict[str, int]]:
        joined = [
            await AsyncAgent.join(server.url, made.id, invite, f"agent {place}", [arms[place % len(arms)]])
            for place, invite in enumerate(made.invites)
        ]
        played = await asyncio.gather(*(agent.play(pull_arm, pulls) for agent in joined))
        for agent in joined:
            await agent.close()
        return [one.pulls for one in played]

    started = time.monotonic()
    played = asyncio.run(play_all())
    seconds = time.monotonic() - started
    board = operator.board(made.id)
    assert [row.explore + row.commit for row in operator.settlement(made.id).rows] == [pulls] * agents
    assert board.leader == arms[0]

    regret = sum((means[0] - means[arms.index(arm)]) * count for one in played for arm, count in one.items())
    game = Game(bernoulli(means), Sharing.round_robin(agents, len(means)), pulls)
    reference = play(game, BalancedETC(), runs=50, settlement="none", baseline=False).overall_regret
    assert regret <= 2 * reference.mean
    # A member that waits makes about one request a second, so on a slow machine there are more.
    assert requests_of(server) - before <= 10 * board.version + agents * (20 + seconds)


def test_a_server_that_is_killed_and_comes_back_loses_nothing(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/partage.db"
    token = {"PARTAGE_OPERATOR_TOKEN": "pt_op_test"}
    first = Server(database, env=token)
    with Operator(first.url, "pt_op_test") as operator:
        made = operator.create("trial", ["a", "b"], 500, rule="balanced-etc")
    pulls = 0

    def pull_arm(arm: str) -> float:
        nonlocal pulls
        pulls += 1
        if pulls == 50:
            first.kill()
        return float(arm == "a")

    def restart() -> Server:
        first.process.wait()
        return Server(database, env=token, port=httpx.URL(first.url).port or 0)

    agent = Agent.join(first.url, made.id, made.invites[0], "A", ["a", "b"])
    with ThreadPoolExecutor(1) as threads:
        second = threads.submit(restart)
        played = agent.play(pull_arm, 500)
    agent.close()
    with second.result() as server, Operator(server.url, "pt_op_test") as operator:
        (row,) = operator.agents(made.id)
        assert (row.explore, row.unnamed, row.horizon_left) == (played.explore, played.commit, 0)

"""The client against a real server."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
from tests.support.server import Server

from partage.client import Agent, AsyncAgent
from partage.ledger.verify import verify


def create(server: Server, arms: list[str], **config: Any) -> tuple[str, list[str]]:
    made = httpx.post(
        f"{server.url}/v1/collaborations",
        headers={"Authorization": f"Bearer {server.operator_token}"},
        json={"name": "trial", "arms": arms, **config},
    ).json()
    return made["id"], made["invites"]


def agents_of(server: Server, collaboration: str) -> list[dict[str, Any]]:
    url = f"{server.url}/v1/collaborations/{collaboration}/agents"
    found: list[dict[str, Any]] = httpx.get(url, headers={"Authorization": f"Bearer {server.operator_token}"}).json()
    return found


def test_with_a_server_every_pull_counts_and_the_ledger_holds_to_the_head(server: Server, tmp_path: Path) -> None:
    collaboration, invites = create(server, ["a", "b"], horizon=300, invites=3)
    agents = [
        Agent.join(server.url, collaboration, invite, name, shares, state=tmp_path / name)
        for invite, name, shares in zip(invites, ["A", "B", "C"], [["a"], ["b"], []], strict=True)
    ]
    with ThreadPoolExecutor(3) as threads:
        played = list(threads.map(lambda agent: agent.play(lambda arm: float(arm == "a"), 300), agents))
    for agent, summary, row in zip(agents, played, agents_of(server, collaboration), strict=True):
        assert (row["explore"], row["commit"], row["horizon_left"]) == (summary.explore, summary.commit, 0)
        assert agent.unpaid == 0
    assert agents[0].board().version == sum(summary.explore for summary in played)
    assert len(agents[0].settlement().rows) == 1
    agents[1].ledger(tmp_path / "ledger.ndjson")
    assert verify(tmp_path / "ledger.ndjson", agents[1].head).problem is None
    for agent in agents:
        agent.close()


def test_requests_grow_with_broadcasts_and_not_with_pulls(server: Server) -> None:
    collaboration, invites = create(server, ["a", "b"], horizon=20_000, invites=8)

    async def play() -> int:
        agents = [
            await AsyncAgent.join(server.url, collaboration, invite, name=f"n{i}", shares=["ab"[i % 2]])
            for i, invite in enumerate(invites)
        ]
        await asyncio.gather(*(agent.play(lambda arm: float(arm == "a"), 20_000) for agent in agents))
        version = (await agents[0].board()).version
        await asyncio.gather(*(agent.close() for agent in agents))
        return version

    version = asyncio.run(play())
    rows = agents_of(server, collaboration)
    assert sum(row["explore"] + row["commit"] for row in rows) == 160_000
    counted = re.findall(
        r"^partage_requests_total\{.*\} ([\d.]+)$", httpx.get(f"{server.url}/metrics").text, re.MULTILINE
    )
    assert sum(map(float, counted)) < 100 + 20 * version < 16_000


def test_a_server_that_is_killed_and_comes_back_loses_nothing(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/partage.db"
    first = Server(database, env={"PARTAGE_OPERATOR_TOKEN": "pt_op_test"})
    collaboration, invites = create(first, ["a", "b"], horizon=500)
    pulls = 0

    def pull_arm(arm: str) -> float:
        nonlocal pulls
        pulls += 1
        if pulls == 50:
            first.kill()
        return float(arm == "a")

    def restart() -> Server:
        first.process.wait()
        return Server(database, env={"PARTAGE_OPERATOR_TOKEN": "pt_op_test"}, port=httpx.URL(first.url).port or 0)

    agent = Agent.join(first.url, collaboration, invites[0], "A", ["a", "b"])
    with ThreadPoolExecutor(1) as threads:
        second = threads.submit(restart)
        played = agent.play(pull_arm, 500)
    agent.close()
    with second.result() as server:
        row = agents_of(server, collaboration)[0]
        assert (row["explore"], row["commit"], row["horizon_left"]) == (played.explore, played.commit, 0)

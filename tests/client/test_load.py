"""The controller's load grows with broadcasts, not with pulls; and live play learns as well as the simulator does."""

import asyncio
import re

import httpx
import numpy as np

from partage import BalancedETC, Game, Sharing, bernoulli, play
from partage.client import AsyncAgent

AGENTS, PULLS = 100, 10_000
MEANS = [0.9, 0.5, 0.1]


def requests_of(url):
    """Return how many requests of agents the server has answered, its streams apart."""
    found = re.findall(
        r'partage_requests_total\{path="(/v1/[^"]*)",[^}]*\} ([\d.e+]+)', httpx.get(f"{url}/metrics").text
    )
    return sum(float(count) for path, count in found if not path.endswith("/events"))


def test_requests_grow_with_broadcasts_and_regret_stays_near_the_reference(server):
    arms = [f"arm {place}" for place in range(len(MEANS))]
    bearer = {"Authorization": f"Bearer {server.operator_token}"}
    with httpx.Client(base_url=server.url, headers=bearer, timeout=60) as operator:
        _play_and_check(server.url, operator, arms)


def _play_and_check(url, operator, arms):
    body = {"name": "many pulls", "arms": arms, "horizon": PULLS, "invites": AGENTS}
    made = operator.post("/v1/collaborations", json=body).json()
    generator = np.random.default_rng(1)

    def pull_arm(arm):
        return float(generator.random() < MEANS[arms.index(arm)])

    async def everyone():
        joining = [
            AsyncAgent.join(url, made["id"], invite, f"agent {place}", [arms[place % len(arms)]])
            for place, invite in enumerate(made["invites"])
        ]
        agents = [await agent for agent in joining]
        played = await asyncio.gather(*(agent.play(pull_arm, PULLS) for agent in agents))
        for agent in agents:
            await agent.close()
        return played

    played = asyncio.run(everyone())
    board = operator.get(f"/v1/collaborations/{made['id']}/board").json()
    rows = operator.get(f"/v1/collaborations/{made['id']}/settlement").json()["rows"]
    assert [row["explore"] + row["commit"] for row in rows] == [PULLS] * AGENTS
    assert board["leader"] == arms[0]

    regret = sum((MEANS[0] - MEANS[arms.index(arm)]) * pulls for one in played for arm, pulls in one.pulls.items())
    game = Game(bernoulli(MEANS), Sharing.round_robin(AGENTS, len(MEANS)), PULLS)
    reference = play(game, BalancedETC(), runs=50, settlement="none", baseline=False).overall_regret
    assert regret <= 2 * reference.mean
    assert requests_of(url) <= 10 * board["version"] + 20 * AGENTS

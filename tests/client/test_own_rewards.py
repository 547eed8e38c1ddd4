"""An agent that also uses its own rewards to commit: what it pulls, what it keeps, and what it reports."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.live import BEFORE, URL, Live, New

from partage.board import Record
from partage.client import AsyncAgent, HorizonReached
from partage.errors import InputError
from partage.ledger.verify import verify
from partage.rules import SharedIMED

ARMS = ["a", "b", "c"]
OWN = 5
PRIVATE = 0.7182818284  # a reward that must never be seen outside


def started(new: New, horizon: int = 1000, **config: Any) -> tuple[Live, list[str]]:
    """A collaboration in which others share all arms."""
    live = new(ARMS, horizon=horizon, rule="shared-imed", **config)
    return live, [live.join(arm) for arm in ARMS]


def explore(live: Live, others: list[str], draw: random.Random) -> None:
    """Let another agent explore, if there is something to explore for it."""
    other = draw.choice(others)
    if live.open_to(other):
        live.broadcast(other, round(draw.random(), 3))


def keep(own: Record, arm: int, reward: float) -> None:
    if own.counts[arm] < OWN:
        own.add(arm, reward)


@pytest.mark.parametrize("shares", [[], ["b"]])
def test_it_decides_as_the_plain_rule(new: New, shares: list[str], tmp_path: Path) -> None:
    """On boards that others change, and resumed from its state file now and then."""
    live, others = started(new)
    rule, own, draw = SharedIMED(own=OWN), Record.empty(3), random.Random(7)
    state, silent, apart = tmp_path / "s.json", 0, 0
    agent = live.joined(*shares, own_rewards=OWN, state=state)
    for step in range(300):
        live.sleep(2.0)  # so that it reads the board
        if step % 3:
            explore(live, others, draw)
        board = live.state.board
        ticks = live.state.due_tick() is not None
        expected = rule.decide(board, live.state.members[agent.id].shares, own)
        pull = agent.ask()
        reward = round(draw.random() ** (1 + ARMS.index(pull.arm)), 3)
        assert pull.share == expected.share or ticks
        if not pull.share:
            assert (pull.arm, pull.hidden) == (ARMS[expected.arm], False), step
            keep(own, expected.arm, reward)
            silent += 1
            apart += expected.arm != live.state.target()
        agent.tell(pull, reward)
        if step % 50 == 49:
            agent.close()
            agent = live.agents.resume(state, **live.options, own_rewards=OWN)
    agent.close()
    assert silent > 50
    assert apart > 0, "own rewards decide differently from the board alone"
    member = live.state.members[agent.id]
    assert (member.unnamed, member.commit) == (silent, {})
    assert member.used == 300


def test_where_it_keeps_no_more_rewards_it_does_not_look_again(new: New) -> None:
    """Once the arm's own rewards are all there, the pull is repeated until the board changes."""
    live, others = started(new)
    for _ in range(40):
        explore(live, others, random.Random(1))
    agent = live.joined(own_rewards=OWN, max_pulls_per_board=10**6)
    for _ in range(OWN * 3):
        agent.tell(agent.ask(), 1.0)
    asked = len(live.requests)
    for _ in range(50):
        assert agent._protocol.at_once() is not None or agent.ask()
    assert len(live.requests) == asked


def test_it_reports_a_count_and_nothing_else(new: New, tmp_path: Path) -> None:
    live, others = started(new, settlement="equal-share-expected")
    draw = random.Random(2)
    with live.joined(own_rewards=OWN, state=tmp_path / "s.json") as agent:
        for _ in range(60):
            live.sleep(0.7)
            explore(live, others, draw)
            agent.tell(agent.ask(), PRIVATE)
        kept = json.loads((tmp_path / "s.json").read_text())["first"]
    assert max(pulls for pulls, _ in kept.values()) == OWN
    assert str(PRIVATE)[2:8].encode() not in live.bodies()
    reports = [msgspec.json.decode(one.content) for one in live.requests if one.url.path.endswith("/commits")]
    assert all(set(report) == {"request", "unnamed"} for report in reports)
    assert sum(report["unnamed"] for report in reports) == 60
    me = next(one for one in live.app.operator.agents(live.id) if one.agent == agent.id)
    assert (me.unnamed, me.commit, me.horizon_left) == (60, 0, 940)
    rows = {row.agent: row for row in live.app.operator.settlement(live.id).rows}
    assert (rows[agent.id].commit, rows[agent.id].compensation) == (0, 0)
    live.close()
    found = verify(_ledger(live))
    assert found.ok, found.problem


def _ledger(live: Live) -> list[bytes]:
    return b"".join(live.app.operator.ledger_parts(live.id)).splitlines(keepends=True)


def test_lost_reports_count_once(new: New, tmp_path: Path) -> None:
    live, _ = started(new, horizon=120)
    draw = random.Random(3)
    agent = live.joined(own_rewards=OWN, state=tmp_path / "s.json")
    live.fault = lambda request: BEFORE if draw.random() < 0.2 else None
    for _ in range(120):
        live.sleep(draw.random())
        agent.tell(agent.ask(), draw.random())
    with pytest.raises(HorizonReached):
        agent.ask()
    live.fault = lambda request: None
    agent.close()
    member = live.state.members[agent.id]
    assert (member.unnamed, member.used) == (120, 120)
    assert agent.unpaid == 0


def test_the_asyncio_agent_does_the_same(new: New) -> None:
    """With the same boards and rewards, it pulls what the plain rule does."""
    live, others = started(new)
    rule, own, draw = SharedIMED(own=OWN), Record.empty(3), random.Random(4)
    for _ in range(30):
        explore(live, others, draw)

    async def play() -> AsyncAgent:
        agent = await live.async_agents.join(
            URL, live.id, live.invite("i"), "Shop", [], transport=live.async_transport, listen=False, own_rewards=OWN
        )
        async with agent:
            for _ in range(60):
                live.sleep(2.0)
                expected = rule.decide(live.state.board, (), own)
                pull = await agent.ask()
                assert pull.arm == ARMS[expected.arm]
                reward = draw.random()
                keep(own, expected.arm, reward)
                await agent.tell(pull, reward)
        return agent

    agent = asyncio.run(play())
    assert live.state.members[agent.id].unnamed == 60


def test_where_nobody_shares_an_arm_own_rewards_count_for_such_arms(new: New) -> None:
    live = new(["a", "nobody's"], rule="shared-imed")
    live.join("a")
    with live.joined(own_rewards=OWN) as agent:
        played = agent.play(lambda arm: 0.5, 40)
    assert played.hidden > 0
    member = live.state.members[agent.id]
    assert (member.unnamed, sum(member.commit.values())) == (0, played.commit)


def test_without_the_option_every_commit_is_named(new: New) -> None:
    live, others = started(new)
    for _ in range(20):
        explore(live, others, random.Random(5))
    with live.joined() as agent:
        played = agent.play(lambda arm: 0.5, 20)
    member = live.state.members[agent.id]
    assert (member.unnamed, sum(member.commit.values())) == (0, played.commit)
    assert b"unnamed" not in b"".join(_ledger(live))


@pytest.mark.parametrize("own_rewards", [-1, 0.5, "5", True])
def test_an_option_that_is_not_allowed(new: New, own_rewards: Any) -> None:
    live, _ = started(new)
    with pytest.raises(InputError, match=r"own_rewards is .* a whole number of at least 0"):
        live.joined(own_rewards=own_rewards)


def test_an_earlier_collaboration_does_not_take_it(new: New) -> None:
    live, _ = started(new)
    agent = live.joined(own_rewards=OWN)
    agent._protocol.following.begun = False
    live.fault = lambda request: _as_before(live, request)
    with pytest.raises(InputError, match="leave own_rewards out"):
        agent.ask()


def _as_before(live: Live, request: Any) -> Any:
    """Answer as release 0.1 does: a collaboration has no format."""
    if request.method != "GET" or not request.url.path.endswith(live.id):
        return None
    answer = live.answer(request)
    body = {key: value for key, value in answer.json().items() if key not in ("format", "parameters")}
    return type(answer)(200, json=body, request=request)

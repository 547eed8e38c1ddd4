"""Rewards that come later: the agent commits meanwhile, and tells them when they are known."""

import asyncio
import logging
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.support.client_schedule import ClientSchedule
from tests.support.live import AFTER, App, New

from partage.arms import bernoulli
from partage.client import Closed, HorizonReached, Pull
from partage.engine.reference import play_reference
from partage.errors import InputError
from partage.game import Game
from partage.ledger.verify import verify
from partage.sharing import Sharing
from partage.traits import Delay, Traits

SOON, LATER = 2.0, 100.0  # seconds: the board may be stale; the claims of these tests have lapsed


def test_an_agent_commits_while_a_reward_is_out(new: New) -> None:
    live = new(["a", "b"], claim_seconds=60)
    agent = live.joined("a", "b")
    claim = agent.ask()
    assert claim.share
    agent.defer(claim)
    assert agent.deferred == [claim]
    asked = live.names().count("POST ask")
    for _ in range(5):
        live.sleep(SOON)
        assert not agent.ask().share
    assert live.names().count("POST ask") == asked
    agent.tell(claim, 1.0)
    assert agent.deferred == []
    assert agent.ask().share
    agent.flush()
    member = live.state.members[agent.id]
    assert (sum(member.explore.values()), sum(member.commit.values()), agent.unpaid) == (1, 5, 0)
    assert member.used == 7


def test_a_reward_that_comes_after_its_claim_lapsed_counts(new: New, tmp_path: Path) -> None:
    live = new(["a", "b"], claim_seconds=10)
    agent = live.joined("a", "b")
    first = agent.ask()
    agent.defer(first)
    live.sleep(LATER)
    second = agent.ask()
    assert second.share
    assert second.number != first.number
    agent.defer(second)
    assert agent.deferred == [first, second]
    live.sleep(SOON)
    assert not agent.ask().share
    agent.tell(second, 1.0)  # before the first
    agent.tell(first, 0.5)
    assert agent.deferred == []
    assert live.state.board.record.sums[live.state.config.arms.index(first.arm)] >= 0.5
    assert sum(live.state.board.counts) == 2
    agent.close()
    live.app.operator.ledger(live.id, tmp_path / "ledger.ndjson")
    found = verify(tmp_path / "ledger.ndjson")
    assert found.ok, found.problem


def test_the_late_reward_of_a_lapsed_claim_leaves_the_next_one_open(new: New) -> None:
    live = new(["a", "b"], claim_seconds=10)
    agent = live.joined("a", "b")
    first = agent.ask()
    agent.defer(first)
    live.sleep(LATER)
    second = agent.ask()
    agent.tell(first, 0.5)
    assert agent.ask() == second
    agent.defer(second)
    assert not agent.ask().share


@pytest.mark.parametrize("days", [0, 3])
def test_a_program_that_restarts_knows_what_is_out(new: New, tmp_path: Path, days: int) -> None:
    live, state = new(["a", "b"], claim_seconds=600), tmp_path / "agent.json"
    with live.joined("a", "b", state=state) as agent:
        claim = agent.ask()
        agent.defer(claim)
        agent.ask()
    live.sleep(days * 86_400)
    with live.resumed(state) as again:
        assert again.deferred == [claim]
        pulls = []
        for _ in range(3):
            pulls.append(again.ask())
            live.sleep(SOON)
        assert pulls[0].share == (days > 0), "a lapsed claim keeps nobody from the next"
        if not days:
            assert not any(pull.share for pull in pulls)
            assert live.names().count("POST ask") == 2, "it does not ask before every pull"
        again.tell(claim, 1.0)
        assert again.deferred == []
    assert sum(live.state.board.counts) == 1
    assert live.resumed(state).deferred == []


def test_a_controller_that_is_late_to_let_a_claim_lapse(new: New) -> None:
    """Its clock is slower than the agent's: it returns the claim that is out, and the agent commits."""
    live = new(["a", "b"], claim_seconds=80)
    agent = live.joined("a", "b")
    agent.defer(agent.ask())
    agent._protocol.following.out_until = live.now
    live.sleep(SOON)
    assert not agent.ask().share
    assert live.names().count("POST ask") == 2
    live.sleep(SOON)
    assert not agent.ask().share
    assert live.names().count("POST ask") == 2
    live.sleep(LATER)
    assert agent.ask().share


def test_a_deferred_reward_is_not_lost_with_its_answer(new: New, tmp_path: Path) -> None:
    live = new(["a", "b"])
    agent = live.joined("a", "b", state=tmp_path / "agent.json")
    claim = agent.ask()
    agent.defer(claim)
    lost = [AFTER]
    live.fault = lambda request: lost.pop() if request.url.path.endswith("/tell") and lost else None
    agent.tell(claim, 1.0)
    agent.tell(claim, 1.0)  # said twice, counts once
    assert sum(live.state.board.counts) == 1


def test_the_horizon_ends_while_a_reward_is_out(new: New) -> None:
    live = new(["a", "b"], horizon=100)
    agent = live.joined("a", "b", horizon=5)
    claim = agent.ask()
    agent.defer(claim)
    for _ in range(4):
        assert not agent.ask().share
    with pytest.raises(HorizonReached):
        agent.ask()
    agent.tell(claim, 1.0)
    assert sum(live.state.board.counts) == 1


def test_a_reward_that_comes_after_the_close_is_refused(new: New) -> None:
    live = new(["a", "b"])
    agent = live.joined("a", "b")
    claim = agent.ask()
    agent.defer(claim)
    live.close()
    with pytest.raises(Closed):
        agent.tell(claim, 1.0)
    assert agent.deferred == []


@pytest.mark.parametrize("here", [True, False])
def test_a_withdrawn_arm_is_no_longer_out(new: New, here: bool, caplog: pytest.LogCaptureFixture) -> None:
    live = new(["a", "b"])
    live.join("a", "b")
    agent = live.joined("a", "b")
    claim = agent.ask()
    agent.defer(claim)
    other = "b" if claim.arm == "a" else "a"
    if here:
        agent.share([other])
    else:
        live.consent(agent.id, other)
    live.sleep(SOON)
    assert agent.ask().arm == other
    assert agent.deferred == []
    with caplog.at_level(logging.WARNING, "partage.client"):
        agent.tell(claim, 1.0)
    assert "which cancelled it" in caplog.text
    assert live.state.board.counts == [0, 0]


def test_only_the_open_claim_can_be_deferred(new: New) -> None:
    live = new(["a", "b"])
    agent = live.joined("a", "b")
    claim = agent.ask()
    agent.defer(claim)
    agent.defer(claim)  # said twice
    with pytest.raises(InputError, match="only a claim can be deferred"):
        agent.defer(agent.ask())
    agent.tell(claim, 1.0)
    with pytest.raises(InputError, match=f"Claim {claim.number} is not open"):
        agent.defer(claim)
    with pytest.raises(InputError, match="Claim 999 is not open"):
        agent.defer(Pull("a", True, False, 0, 999))


def test_an_asyncio_agent_defers_too(new: New, tmp_path: Path) -> None:
    live, state = new(["a", "b"]), tmp_path / "agent.json"
    live.join("a", "b")

    async def main() -> None:
        options = {"transport": live.async_transport, "listen": False, "state": state}
        agent = await live.async_agents.join("http://controller", live.id, live.invite("x"), "Shop", ["a"], **options)
        async with agent:
            while not (claim := await agent.ask()).share:
                live.sleep(SOON)
            await agent.defer(claim)
            assert not (await agent.ask()).share
        async with await live.async_agents.resume(state, transport=live.async_transport, listen=False) as again:
            assert again.deferred == [claim]
            await again.tell(claim, 1.0)

    asyncio.run(main())
    assert sum(live.state.board.counts) == 1


@pytest.fixture(scope="module")
def repeatable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An application that plays the same games each time."""
    running = App(tmp_path_factory.mktemp("repeatable"), random.Random(1).randbytes)
    yield running
    running.close()


@pytest.mark.extra
@pytest.mark.parametrize(
    ("rule", "claim_steps"),
    [("balanced-glr", 5.25), ("shared-imed", None), ("network-glr", 5.25)],  # nothing lapses at the time of a report
)
def test_clients_with_late_rewards_play_what_the_simulator_plays(
    repeatable: App, rule: str, claim_steps: float | None
) -> None:
    traits = [
        Traits(delay=Delay("exponential", 3)),
        Traits(pace=0.5, horizon=30, delay=4),
        Traits(pace=2, delay=Delay("uniform", 6, "successes")),
        Traits(),
    ]
    sharing = Sharing.lists([[0, 1, 2], [0, 1], [1, 2], []], 3)
    game = Game(bernoulli([0.8, 0.3, 0.5]), sharing, 50, None, traits, (), claim_steps)
    schedule = ClientSchedule(repeatable, game, rule)
    live = schedule.played()
    simulated = play_reference(game, schedule.state.rule, np.array(schedule.key, np.uint64))
    assert schedule.committed_while_out > 5
    assert live == simulated

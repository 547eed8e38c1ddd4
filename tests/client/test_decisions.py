"""The client decides as the controller does, and sends nothing that is private."""

import logging
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from tests.support.live import URL, New
from tests.support.sequences import Table, configurations, perform, sequences

from partage.board import Board
from partage.client import Pull
from partage.client.following import Following, board_of
from partage.client.statefile import AgentState
from partage.ledger.messages import BoardView
from partage.ledger.views import board_view
from partage.rules import live_rules

PRIVATE = 0.7182818284  # a reward that must never be seen outside


def reward_of(pull: Pull) -> float:
    """A shared reward differs from a private one."""
    return 0.5 if pull.share else PRIVATE


@given(configurations(), sequences())
@settings(max_examples=100, deadline=None)
def test_the_client_sees_the_controllers_board_and_decides_as_it_does(create: Any, steps: Any) -> None:
    table = Table(create)
    for step in steps:
        perform(table, step)
        state = table.state
        view = msgspec.json.decode(msgspec.json.encode(board_view(state)), type=BoardView)
        board = board_of(view)
        arms = len(state.arms)  # places of arms that may be added later are not shown
        assert board.horizon == state.board.horizon
        for field in ("public", "shared", "claims", "active", "counts"):
            assert getattr(board, field) == getattr(state.board, field)[:arms]
        assert board.record.sums == state.board.record.sums[:arms]
        assert list(board.tie_order) == [arm for arm in state.board.tie_order if arm < arms]
        assert board.state == state.rule.shown(state.board)
        if any(board.public) and not state.closed and state.ordered:
            for member in state.members.values():
                following = followed(view, member.shares)
                arm, share = state.rule.decide(state.board, member.shares)
                if state.rule.offers:  # asks wherever it may be offered something, and not if nothing can be compared
                    opened = state.open_arms()
                    needed = 2 if state.rule.by_contrasts else 1
                    assert following.explores == (len(member.shares.intersection(opened)) >= needed)
                    assert following.explores or not state.offered(member, opened)
                else:
                    assert following.explores == share
                if not share:
                    assert following.leader == arm


def test_the_rules_public_state_is_on_the_clients_board(new: New) -> None:
    view = msgspec.structs.replace(board_view(new(["a", "b"]).state), state={"phase": 3})
    assert board_of(view).state == {"phase": 3}


def followed(view: BoardView, shares: frozenset[int]) -> Following:
    """Return what a client that shares these arms knows when it has seen this board."""
    following = Following(AgentState(url=URL, collaboration="c1"), None, None, None, float)  # type: ignore[arg-type]
    following.hear(msgspec.json.decode(msgspec.json.encode(view)))
    following._take_news()
    following.shares = shares
    return following


def test_the_controllers_list_of_open_arms_stands(new: New) -> None:
    """Even where the client's own computation would differ, as it may on another platform."""
    live = new(["a", "b"])
    agent = live.joined("a", "b")
    view = agent.board()
    for arm in view.arms:
        arm.open = False
    agent._protocol.following.hear(msgspec.json.decode(msgspec.json.encode(view)))
    assert not agent.ask().share
    assert "POST ask" not in live.names()


def test_a_client_of_network_glr_asks_only_if_it_can_compare_two_open_arms(new: New) -> None:
    live = new(["a", "b", "c"], rule="network-glr", settlement="none")
    agents = [live.joined(*shares, invite=str(i)) for i, shares in enumerate(["ab", "bc", "c"])]
    for agent in agents:
        agent.tell(agent.ask(), 0.5)
    live.sleep(2.0)
    sent = len(live.requests)
    assert [arm.open for arm in agents[2].board().arms] == [True] * 3
    assert not agents[2].ask().share
    assert "POST ask" not in live.names()[sent:]
    assert agents[0].ask().share


def decided(rule: Any, board: Board, agent: str, shares: frozenset[int]) -> Any:
    """Return what a member should pull, of the arms that the rule offers to it."""
    return rule.decide(board, rule.offered(board, agent, shares, rule.open_arms(board)) if rule.offers else shares)


@pytest.mark.parametrize("rule", live_rules())
def test_one_at_a_time_every_pull_is_the_controllers(new: New, rule: str) -> None:
    live, draw = new(["a", "b", "c"], horizon=200, rule=rule, settlement="none"), random.Random(1)
    agents = [live.joined(*shares, invite=str(i)) for i, shares in enumerate(["a", "b", "c", "ab", ""])]
    for _ in range(200):
        agent = draw.choice(agents)
        live.sleep(2.0)  # so that it reads the board
        state = live.state
        board, shares = state.board.copy(), state.members[agent.id].shares
        arm, share = decided(state.rule, board, agent.id, shares)
        pull = agent.ask()
        if share:  # the agent asked for a claim, and the controller let the clock tick before it decided
            board.clock = state.board.clock
            arm, share = decided(state.rule, board, agent.id, shares)
        assert (pull.arm, pull.share, pull.hidden) == (state.config.arms[arm], share, False)
        agent.tell(pull, draw.random() ** (1 + arm))
    for agent in agents:
        agent.close()
    assert sum(member.used for member in live.state.members.values()) == 200
    assert all(agent.unpaid == 0 for agent in agents)


def test_others_claims_leave_nothing_to_explore_and_the_agent_commits(new: New) -> None:
    live = new(["a", "b"])
    live.join("b")
    other, agent = live.join("a"), live.joined("a")
    agent.board()
    live.claim(other)  # the agent has not seen this claim
    sent = len(live.requests)
    assert not agent.ask().share
    decided = [name for name in live.names()[sent:] if "cosignature" not in name]
    assert decided == ["POST ask", "GET board", "POST commits"]
    assert agent.unpaid == 0


def test_a_controller_that_never_lets_an_agent_explore_is_not_asked_for_ever(new: New) -> None:
    live = new(["a", "b"])
    agent = live.joined("a", "b")
    live.fault = lambda request: 204 if request.url.path.endswith("/ask") else None
    pulls = [agent.ask() for _ in range(30)]
    assert not any(pull.share for pull in pulls)
    assert len(live.names("POST ask")) <= 5


def test_private_rewards_never_leave_the_process(new: New) -> None:
    live = new(["a", "b", "nobody's"], horizon=300)
    other = live.join("b")
    with live.joined("a") as agent:
        for step in range(200):
            live.sleep(0.3)
            pull = agent.ask()
            agent.tell(pull, reward_of(pull))
            if step % 3 == 0 and live.open_to(other):
                live.broadcast(other, 0.1)
    assert live.names("POST tell")
    assert str(PRIVATE)[2:8].encode() not in live.bodies()
    assert agent._protocol._own.counts[2] > 0


def test_pulls_of_arms_that_nobody_shares_are_not_reported(new: New) -> None:
    live = new(["a", "nobody's"], horizon=400)
    live.join("a")
    with live.joined() as agent:
        played = agent.play(lambda arm: 1.0 if arm == "a" else 0.0, 300)
    assert played.hidden > 1
    assert played.commit == played.pulls["a"] == 300 - played.hidden
    assert b"nobody's" not in live.bodies()
    assert live.state.members[agent.id].commit == {0: played.commit}


def test_where_no_arm_is_public_the_agent_plays_alone(new: New) -> None:
    live = new(["x", "y"], horizon=100)
    with live.joined() as agent:
        played = agent.play(lambda arm: 1.0 if arm == "y" else 0.0, 200)
    assert played.hidden == 100
    assert played.pulls["y"] > played.pulls["x"] > 1
    assert played.ended is not None
    assert not live.names("POST ask") + live.names("POST commits")


def test_tokens_and_rewards_are_in_no_repr_or_log(new: New, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    live = new(["a", "b"])
    with live.joined("a", "b") as agent:
        agent.play(lambda arm: PRIVATE, 5)
        shown = f"{agent!r} {agent._protocol.saved!r}"
    assert live.tokens[agent.id] not in shown + caplog.text
    assert str(PRIVATE)[2:8] not in caplog.text

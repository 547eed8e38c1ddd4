"""Pulls that the client decides by itself, and their reports."""

import logging
from typing import Any

import pytest
from tests.support.live import New, Timed, explore_to_the_end

from partage.client import Pull
from partage.client.effects import Wait

PRIVATE = 0.7182818284  # a reward that must never be seen outside


def test_on_a_finished_board_pulls_cost_no_requests(new: New) -> None:
    live = new(["a", "b"], horizon=100_000)
    explore_to_the_end(live)
    with live.joined("b") as agent:
        agent.ask()
        before = len(live.requests)
        assert {agent.ask() for _ in range(10_000)} == {Pull("a", False, False, live.state.version, None)}
        assert len(live.requests) == before
    assert live.names()[before:] == ["POST commits", "PUT cosignature", "GET cosignatures"]
    assert live.state.members[agent.id].commit == {0: 10_001}


def test_a_sharer_of_an_active_arm_does_not_run_ahead_of_the_board(new: New) -> None:
    live = new(["a", "b"], horizon=100_000)
    live.join("b")
    with live.joined("a") as agent:
        agent.tell(agent.ask(), 0.5)  # now a waits for b, whose sharer does nothing
        began, reads = live.now, len(live.names("GET board"))
        assert {agent.ask().share for _ in range(200)} == {False}
        assert 18 <= live.now - began <= 21
        assert len(live.names("GET board")) - reads <= 21


@pytest.mark.parametrize("hidden", [0, 2])
def test_the_sharer_of_the_only_shared_arm_waits_for_others(new: New, hidden: int) -> None:
    """Arms that nobody shares yet may be shared at any time; pulls of those use the horizon too."""
    live = new(["a", "b", *"xy"[:hidden]], horizon=2000)
    with live.joined("a") as agent:
        began, reads = live.now, len(live.names("GET board"))
        played = agent.play(lambda arm: 0.5, 200)
        assert (played.explore, played.commit + played.hidden) == (0, 200)
        assert played.hidden > 0
        assert 18 <= live.now - began <= 21
        assert len(live.names("GET board")) - reads <= 22
        other = live.join("b")
        live.broadcast(other, 0.5)
        began = live.now
        assert agent.play(lambda arm: 0.5, 11).explore == 2
        assert live.now - began <= 1


def test_the_sharer_of_an_active_arm_waits_for_one_that_lost_its_last_sharer(new: New) -> None:
    live = new(["a", "b"], horizon=2000)
    live.consent(live.join("b"))
    with live.joined("a") as agent:
        began = live.now
        agent.play(lambda arm: 0.5, 100)
        assert 8 <= live.now - began <= 11


def test_max_pulls_per_board_can_be_raised(new: New) -> None:
    live = new(["a", "b"], horizon=2000)
    with live.joined("a", max_pulls_per_board=1000) as agent:
        began = live.now
        assert sum(agent.play(lambda arm: 0.5, 2000).pulls.values()) == 2000
        assert live.now - began <= 2


@pytest.mark.parametrize("arms", [["a"], ["a", "b"]])
def test_the_sharer_of_the_last_arm_left_does_not_wait(new: New, arms: list[str]) -> None:
    live = new(arms, horizon=2000)
    if len(arms) > 1:
        explore_to_the_end(live)
    with live.joined("a") as agent:
        began = live.now
        played = agent.play(lambda arm: 0.5, 2000)
    assert played.pulls == {"a": 2000}
    assert live.now == began
    assert live.state.members[agent.id].commit == {0: 2000}


def test_a_new_board_ends_the_wait(new: New) -> None:
    live = new(["a", "b"], horizon=100_000)
    other = live.join("b")
    agent = live.joined("a")
    agent.tell(agent.ask(), 0.5)
    for _ in range(10):
        agent.ask()
    began = live.now

    def told_by_the_stream(step: Any) -> None:
        if isinstance(step, Wait) and step.news:
            live.broadcast(other, 0.5)
            agent._protocol.following.hear(live.board())
            return None
        return Timed._do(agent, step)

    agent._do = told_by_the_stream  # type: ignore[method-assign, assignment]
    assert agent.ask().share
    assert live.now == began


def test_an_old_board_of_the_stream_is_not_taken(new: New) -> None:
    live = new(["a", "b"])
    other = live.join("a", "b")
    agent = live.joined()
    old = live.board()
    live.broadcast(other, 0.5)
    version = agent.ask().version
    agent._protocol.following.hear(old)
    assert agent.ask().version == version == 1


def test_without_a_stream_the_board_is_read_once_a_second(new: New) -> None:
    live = new(["a", "b"], horizon=100_000)
    explore_to_the_end(live)
    agent = live.joined()
    agent.ask()
    reads = len(live.names("GET board"))
    for _ in range(100):
        live.sleep(0.1)
        agent.ask()
    assert 9 <= len(live.names("GET board")) - reads <= 10


def test_with_a_stream_the_board_is_hardly_read(new: New) -> None:
    live = new(["a", "b"], horizon=100_000)
    explore_to_the_end(live)
    agent = live.joined()
    agent.ask()
    agent._protocol.following.streaming = True
    reads = len(live.names("GET board"))
    for _ in range(100):
        live.sleep(1)
        agent._protocol.following.hear(None)
        agent.ask()
    assert len(live.names("GET board")) == reads


def test_after_its_own_broadcast_the_agent_reads_the_board_before_it_asks(new: New) -> None:
    live = new(["a", "b"])
    live.join("b")
    agent = live.joined("a")
    agent.tell(agent.ask(), 0.5)
    sent = len(live.requests)
    assert agent.ask().version == 1
    assert live.names()[sent:] == ["GET board", "POST commits"]


def test_reports_come_in_time_even_where_a_pull_takes_an_hour(new: New) -> None:
    live = new(["a", "b"], horizon=1000)
    others = [live.join("a"), live.join("b")]
    agent = live.joined()
    for step in range(20):
        live.broadcast(others[step % 2], 0.5)
        pull = agent.ask()
        live.sleep(3600)
        live.broadcast(others[(step + 1) % 2], 0.5)
        agent.tell(pull, PRIVATE)
        others.reverse()
    agent.close()
    assert sum(live.state.members[agent.id].commit.values()) == 20
    assert agent.unpaid == 0


def test_a_fast_loop_reports_every_quarter_of_the_controllers_patience(new: New) -> None:
    live = new(["a", "b"], horizon=100_000, claim_seconds=8)
    explore_to_the_end(live)
    agent = live.joined()
    for _ in range(1000):
        live.sleep(0.1)
        agent.ask()
    assert 48 <= len(live.names("POST commits")) <= 51


def test_a_late_report_is_lost_and_the_loop_goes_on(new: New, caplog: pytest.LogCaptureFixture) -> None:
    live = new(["a", "b"], horizon=1000)
    first, second = live.join("a"), live.join("b")
    agent = live.joined()
    for _ in range(5):
        agent.ask()  # the first is reported at once, the others are not
    live.broadcast(first, 0.5)
    live.broadcast(second, 0.4)
    live.sleep(61)
    for _ in range(5):
        agent.ask()
    agent.close()
    assert agent.unpaid == 4
    assert sum(live.state.members[agent.id].commit.values()) == 6
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1


def test_an_agent_that_shares_nothing_does_not_run_ahead_of_those_who_explore(new: New) -> None:
    live = new(["a", "b"], horizon=100_000)
    other = live.join("a", "b")
    with live.joined() as agent:
        began = live.now
        assert {agent.ask().share for _ in range(80)} == {False}
        assert 6 <= live.now - began <= 8
        live.broadcast(other, 0.5)
        agent.play(lambda arm: 0.5, 10_000)
        assert 30 <= live.now - began <= 60  # an eighth more pulls on each board: it does not wait for ever


def test_an_agent_does_not_wait_where_nobody_can_explore(new: New) -> None:
    live = new(["a", "b"], horizon=100_000)
    other = live.join("a", "b")
    live.broadcast(other, 0.5)
    live.consent(other)
    with live.joined() as agent:
        began = live.now
        agent.play(lambda arm: 0.5, 1000)
        assert live.now - began <= 1

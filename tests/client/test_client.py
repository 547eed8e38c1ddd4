"""The client: it decides as the controller does, tells nothing that is private, and survives what networks do."""

import asyncio
import contextlib
import inspect
import logging
import random
import re
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.fake import AFTER, BEFORE, ID, URL, Fake
from tests.support.sequences import Table, configurations, perform, sequences
from tests.support.server import Server

from partage import client
from partage.client import Agent, AsyncAgent, Closed, HorizonReached, Pull, Refused, Unreachable
from partage.client.effects import Wait
from partage.client.protocol import board_of
from partage.client.stream import BoardLines
from partage.errors import InputError, PartageError
from partage.ledger import messages as wire
from partage.ledger import moves
from partage.ledger.state import live_rule
from partage.ledger.verify import verify
from partage.ledger.views import board_view

PRIVATE = 0.7182818284  # a reward that must never be seen outside


class Timed(Agent):
    """An agent who lives on the fake controller's time."""

    fake: Fake

    def _set_up(self, kept: Any, options: Any) -> None:
        super()._set_up(kept, options)
        self._logic._clock = lambda: self.fake.now

    def _do(self, step: Any) -> Any:
        if isinstance(step, Wait):
            self.fake.sleep(step.seconds)
            return None
        return super()._do(step)


class AsyncTimed(AsyncAgent):
    """Her twin."""

    fake: Fake

    def _set_up(self, kept: Any, options: Any) -> None:
        super()._set_up(kept, options)
        self._logic._clock = lambda: self.fake.now

    async def _do(self, step: Any) -> Any:
        if isinstance(step, Wait):
            self.fake.sleep(step.seconds)
            return None
        return await super()._do(step)


def on(fake: Fake) -> type[Timed]:
    return type("Timed", (Timed,), {"fake": fake})


def joined(fake: Fake, *shares: str, invite: str = "invite", **options: Any) -> Timed:
    return on(fake).join(
        URL, ID, invite, name="Shop", shares=shares, transport=fake.transport, listen=False, **options
    )


def resumed(fake: Fake, state: Path) -> Timed:
    return on(fake).resume(state, transport=fake.transport, listen=False)


def reward_of(pull: Pull) -> float:
    """What is shared is told apart from what is not."""
    return 0.5 if pull.share else PRIVATE


def finished(fake: Fake) -> None:
    """Let others explore the arms a and b to the end: b is out."""
    first, second = fake.join("a"), fake.join("b")
    while all(fake.state.board.active):
        share = fake.state.rule.decide(fake.state.board, {0}).share
        fake.broadcast(first if share else second, 1.0 if share else 0.0)


# --- decisions ----------------------------------------------------------------------------------------------


@given(configurations(), sequences())
@settings(max_examples=100, deadline=None)
def test_the_client_sees_the_controllers_board_and_decides_as_it_does(create: Any, steps: Any) -> None:
    table = Table(create)
    for step in steps:
        perform(table, step)
        state = table.state
        view = msgspec.json.decode(msgspec.json.encode(board_view(state)), type=wire.BoardView)
        board = board_of(view)
        assert board == state.board
        rule = live_rule(view.rule, view.balance)
        if any(board.public):
            for member in state.members.values():
                assert rule.decide(board, member.shares) == state.rule.decide(state.board, member.shares)


@pytest.mark.parametrize("rule", ["balanced-etc", "unbalanced-etc", "kl-etc", "balanced-glr"])
def test_one_at_a_time_every_pull_is_the_controllers(rule: str) -> None:
    fake, draw = Fake(["a", "b", "c"], horizon=200, rule=rule), random.Random(1)
    agents = [joined(fake, *shares, invite=str(i)) for i, shares in enumerate(["a", "b", "c", "ab", ""])]
    for _ in range(400):
        agent = draw.choice(agents)
        fake.sleep(2.0)  # so that she reads the board
        state = fake.state
        arm, share = state.rule.decide(state.board, state.members[agent.id].shares)
        pull = agent.ask()
        assert (pull.arm, pull.share, pull.hidden) == (state.config.arms[arm], share, False)
        agent.tell(pull, draw.random() ** (1 + arm))
    for agent in agents:
        agent.close()
    assert sum(member.used for member in fake.state.members.values()) == 400
    assert all(agent.unpaid == 0 for agent in agents)


def test_others_claims_leave_nothing_to_explore_and_she_commits() -> None:
    fake = Fake(["a", "b"])
    fake.join("b")
    other, agent = fake.join("a"), joined(fake, "a")
    agent.board()
    moves.ask(fake.turn(), other, None, True)  # she has not seen this claim
    sent = len(fake.requests)
    assert not agent.ask().share
    assert fake.names()[sent:] == ["POST ask", "GET board", "POST commits"]
    assert agent.unpaid == 0


def test_a_controller_that_never_lets_her_explore_is_not_asked_for_ever() -> None:
    fake = Fake(["a", "b"])
    agent = joined(fake, "a", "b")
    handle = fake._call
    fake._call = lambda call, *rest: httpx.Response(204) if call == "POST ask" else handle(call, *rest)  # type: ignore[method-assign]
    pulls = [agent.ask() for _ in range(30)]
    assert not any(pull.share for pull in pulls)
    assert len(fake.names("POST ask")) <= 5


# --- what leaves the process --------------------------------------------------------------------------------


def test_private_rewards_never_leave_the_process() -> None:
    fake = Fake(["a", "b", "nobody's"], horizon=300)
    other = fake.join("b")
    with joined(fake, "a") as agent:
        for step in range(200):
            fake.sleep(0.3)
            pull = agent.ask()
            agent.tell(pull, reward_of(pull))
            if step % 3 == 0 and fake.state.rule.decide(fake.state.board, {1}).share:
                fake.broadcast(other, 0.1)
    assert fake.names("POST tell")
    assert str(PRIVATE)[2:8].encode() not in fake.bodies()
    assert agent._logic._own.counts[2] > 0


def test_pulls_of_arms_that_nobody_shares_are_not_reported() -> None:
    fake = Fake(["a", "nobody's"], horizon=400)
    fake.join("a")
    with joined(fake) as agent:
        played = agent.play(lambda arm: 1.0 if arm == "a" else 0.0, 300)
    assert played.hidden > 1
    assert played.commit == played.pulls["a"] == 300 - played.hidden
    assert b"nobody's" not in fake.bodies()
    assert fake.state.members[agent.id].commit == {0: played.commit}


def test_where_no_arm_is_public_she_plays_alone() -> None:
    fake = Fake(["x", "y"], horizon=100)
    with joined(fake) as agent:
        played = agent.play(lambda arm: 1.0 if arm == "y" else 0.0, 200)
    assert played.hidden == 100
    assert played.pulls["y"] > played.pulls["x"] > 1
    assert played.ended is not None
    assert not fake.names("POST ask") + fake.names("POST commits")


def test_tokens_and_rewards_are_in_no_repr_or_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    fake = Fake(["a", "b"])
    with joined(fake, "a", "b") as agent:
        agent.play(lambda arm: PRIVATE, 5)
        shown = f"{agent!r} {agent._logic.kept!r}"
    assert "secret" not in shown + caplog.text
    assert str(PRIVATE)[2:8] not in caplog.text


# --- local pulls --------------------------------------------------------------------------------------------


def test_on_a_finished_board_pulls_cost_no_requests() -> None:
    fake = Fake(["a", "b"], horizon=100_000)
    finished(fake)
    with joined(fake, "b") as agent:
        agent.ask()
        before = len(fake.requests)
        assert {agent.ask() for _ in range(10_000)} == {Pull("a", False, False, fake.state.version, None)}
        assert len(fake.requests) == before
    assert fake.names()[before:] == ["POST commits"]
    assert fake.state.members[agent.id].commit == {0: 10_001}


def test_a_sharer_of_an_active_arm_does_not_run_ahead_of_the_board() -> None:
    fake = Fake(["a", "b"], horizon=100_000)
    fake.join("b")
    with joined(fake, "a") as agent:
        agent.tell(agent.ask(), 0.5)  # now a waits for b, whose sharer does nothing
        began, reads = fake.now, len(fake.names("GET board"))
        assert {agent.ask().share for _ in range(200)} == {False}
        assert 18 <= fake.now - began <= 21
        assert len(fake.names("GET board")) - reads <= 21


@pytest.mark.parametrize("hidden", [0, 2])
def test_who_shares_the_only_shared_arm_waits_for_those_who_come(hidden: int) -> None:
    """Arms that nobody shares yet may be shared at any time; pulls of those use her horizon too."""
    fake = Fake(["a", "b", *"xy"[:hidden]], horizon=2000)
    with joined(fake, "a") as agent:
        began, reads = fake.now, len(fake.names("GET board"))
        played = agent.play(lambda arm: 0.5, 200)
        assert (played.explore, played.commit + played.hidden) == (0, 200)
        assert played.hidden > 0
        assert 18 <= fake.now - began <= 21
        assert len(fake.names("GET board")) - reads <= 22
        other = fake.join("b")
        fake.broadcast(other, 0.5)
        began = fake.now
        assert agent.play(lambda arm: 0.5, 11).explore == 2
        assert fake.now - began <= 1


def test_who_shares_an_active_arm_waits_for_one_that_lost_its_last_sharer() -> None:
    fake = Fake(["a", "b"], horizon=2000)
    fake.consent(fake.join("b"))
    with joined(fake, "a") as agent:
        began = fake.now
        agent.play(lambda arm: 0.5, 100)
        assert 8 <= fake.now - began <= 11


def test_more_pulls_on_one_board_are_made_where_that_is_asked_for() -> None:
    fake = Fake(["a", "b"], horizon=2000)
    with joined(fake, "a", max_pulls_per_board=1000) as agent:
        began = fake.now
        assert sum(agent.play(lambda arm: 0.5, 2000).pulls.values()) == 2000
        assert fake.now - began <= 2


@pytest.mark.parametrize("arms", [["a"], ["a", "b"]])
def test_who_shares_the_last_arm_that_is_left_does_not_wait(arms: list[str]) -> None:
    fake = Fake(arms, horizon=2000)
    if len(arms) > 1:
        finished(fake)
    with joined(fake, "a") as agent:
        began = fake.now
        played = agent.play(lambda arm: 0.5, 2000)
    assert played.pulls == {"a": 2000}
    assert fake.now == began
    assert fake.state.members[agent.id].commit == {0: 2000}


def test_a_new_board_ends_the_wait() -> None:
    fake = Fake(["a", "b"], horizon=100_000)
    other = fake.join("b")
    agent = joined(fake, "a")
    agent.tell(agent.ask(), 0.5)
    for _ in range(10):
        agent.ask()
    began = fake.now

    def told_by_the_stream(step: Any) -> None:
        if isinstance(step, Wait) and step.news:
            fake.broadcast(other, 0.5)
            agent._logic.hear(msgspec.json.encode(board_view(fake.state)).decode())
            return None
        return Timed._do(agent, step)

    agent._do = told_by_the_stream  # type: ignore[method-assign, assignment]
    assert agent.ask().share
    assert fake.now == began


def test_an_old_board_of_the_stream_is_not_taken() -> None:
    fake = Fake(["a", "b"])
    other = fake.join("a", "b")
    agent = joined(fake)
    old = msgspec.json.encode(board_view(fake.state)).decode()
    fake.broadcast(other, 0.5)
    version = agent.ask().version
    agent._logic.hear(old)
    assert agent.ask().version == version == 1


def test_without_a_stream_the_board_is_read_once_a_second() -> None:
    fake = Fake(["a", "b"], horizon=100_000)
    finished(fake)
    agent = joined(fake)
    agent.ask()
    reads = len(fake.names("GET board"))
    for _ in range(100):
        fake.sleep(0.1)
        agent.ask()
    assert 9 <= len(fake.names("GET board")) - reads <= 10


def test_with_a_stream_the_board_is_hardly_read() -> None:
    fake = Fake(["a", "b"], horizon=100_000)
    finished(fake)
    agent = joined(fake)
    agent.ask()
    agent._logic.streaming = True
    reads = len(fake.names("GET board"))
    for _ in range(100):
        fake.sleep(1)
        agent._logic.hear(None)
        agent.ask()
    assert len(fake.names("GET board")) == reads


def test_after_her_own_broadcast_she_looks_before_she_asks() -> None:
    fake = Fake(["a", "b"])
    fake.join("b")
    agent = joined(fake, "a")
    agent.tell(agent.ask(), 0.5)
    sent = len(fake.requests)
    assert agent.ask().version == 1
    assert fake.names()[sent:] == ["GET board", "POST commits"]


# --- reports ------------------------------------------------------------------------------------------------


def test_reports_come_in_time_even_where_a_pull_takes_an_hour() -> None:
    fake = Fake(["a", "b"], horizon=1000)
    others = [fake.join("a"), fake.join("b")]
    agent = joined(fake)
    for step in range(20):
        fake.broadcast(others[step % 2], 0.5)
        pull = agent.ask()
        fake.sleep(3600)
        fake.broadcast(others[(step + 1) % 2], 0.5)
        agent.tell(pull, PRIVATE)
        others.reverse()
    agent.close()
    assert sum(fake.state.members[agent.id].commit.values()) == 20
    assert agent.unpaid == 0


def test_a_fast_loop_reports_every_quarter_of_the_controllers_patience() -> None:
    fake = Fake(["a", "b"], horizon=100_000, claim_seconds=8)
    finished(fake)
    agent = joined(fake)
    for _ in range(1000):
        fake.sleep(0.1)
        agent.ask()
    assert 48 <= len(fake.names("POST commits")) <= 51


def test_a_report_that_comes_too_late_is_lost_and_the_loop_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    fake = Fake(["a", "b"], horizon=1000)
    first, second = fake.join("a"), fake.join("b")
    agent = joined(fake)
    for _ in range(5):
        agent.ask()  # the first is reported at once, the others are not
    fake.broadcast(first, 0.5)
    fake.broadcast(second, 0.4)
    fake.sleep(61)
    for _ in range(5):
        agent.ask()
    agent.close()
    assert agent.unpaid == 4
    assert sum(fake.state.members[agent.id].commit.values()) == 6
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1


# --- what networks do ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [BEFORE, AFTER, 429, 502, 503, 504])
@pytest.mark.parametrize("call", ["agents", "ask", "tell", "commits", "board", ID])
def test_a_request_is_sent_again_until_it_is_answered(call: str, fault: str | int) -> None:
    fake = Fake(["a", "b"], horizon=100)
    failures = iter([fault] * 3)
    fake.fault = lambda request: next(failures, None) if request.url.path.endswith(call) else None
    other = fake.join("b")
    with joined(fake, "a") as agent:
        pull = agent.ask()
        assert pull.share
        agent.tell(pull, 0.5)
        fake.broadcast(other, 0.4)
        pull = agent.ask()
        agent.tell(pull, 0.5)
        assert not agent.ask().share
    again = [request.content for request in fake.requests if request.url.path.endswith(call)][:4]
    assert len(set(again)) == 1
    member = fake.state.members[agent.id]
    assert (member.explore, member.commit, member.used) == ({0: 2}, {0: 1}, 3)
    assert len(fake.state.members) == 2


def test_who_gets_no_answer_gives_up_with_a_sentence_and_can_go_on_later() -> None:
    fake = Fake(["a", "b"], horizon=100)
    fake.join("b")
    agent = joined(fake, "a")
    pull = agent.ask()
    fake.fault = lambda request: AFTER
    began, sent = fake.now, len(fake.requests)
    with pytest.raises(Unreachable, match="could not be reached for 60 seconds"):
        agent.tell(pull, 0.5)
    assert fake.now - began <= 60
    assert len(fake.requests) - sent < 100
    fake.fault = lambda request: None
    agent.ask()
    assert fake.state.members[agent.id].explore == {0: 1}
    assert fake.state.version == 1


def test_an_answer_that_is_not_the_controllers_is_a_sentence_too() -> None:
    fake = Fake(["a"])
    fake.fault = lambda request: 500
    with pytest.raises(Refused, match="status 500 and no sentence"):
        joined(fake, "a")


def test_what_is_no_controller_is_said_to_be_none() -> None:
    fake = Fake(["a"])
    agent = joined(fake, "a")
    fake._call = lambda *given: httpx.Response(200, text="<html>Please log in.</html>")  # type: ignore[method-assign]
    with pytest.raises(Unreachable, match="is not a controller; check the address"):
        agent.ask()


def test_a_pull_that_was_counted_as_a_call_failed_is_handed_out_by_the_next() -> None:
    fake = Fake(["a", "b"], horizon=1000)
    finished(fake)
    agent = joined(fake)
    fake.fault = lambda request: BEFORE if request.url.path.endswith("commits") else None
    with pytest.raises(Unreachable):
        agent.ask()
    fake.fault = lambda request: None
    agent.ask()
    agent.close()
    assert fake.state.members[agent.id].commit == {0: 1}


class Crash(BaseException):
    """The power goes."""


def run_until_crash(fake: Fake, state: Path, told: list[float], made: list[Pull], steps: int) -> None:
    """A user's loop: it joins or goes on, and does its steps; each shared reward is another one."""
    agent = joined(fake, "a", state=state)
    for _ in range(steps):
        fake.sleep(0.4)
        pull = agent.ask()
        made.append(pull)
        if pull.share:
            told.append((len(told) + 1) / 1000)
            agent.tell(pull, told[-1])
        else:
            agent.tell(pull, PRIVATE)
        other = fake.state.members["a1"]
        if fake.state.rule.decide(fake.state.board, other.shares).share:
            fake.broadcast("a1", 0.4)
    agent.close()


@pytest.mark.parametrize("when", [BEFORE, AFTER])
def test_a_crash_at_any_request_loses_no_broadcast_and_counts_nothing_twice(when: str, tmp_path: Path) -> None:
    for place in range(200):
        fake = Fake(["a", "b"], horizon=1000, claim_seconds=4)
        fake.join("b")
        state = tmp_path / f"{place}.json"
        told: list[float] = []
        made: list[Pull] = []
        due = [place]

        def fault(request: httpx.Request, fake: Fake = fake, due: list[int] = due) -> None:
            due[0] -= 1
            if due[0] == -1:
                if when == AFTER:
                    fake._answer(request)
                raise Crash

        fake.fault = fault
        try:
            run_until_crash(fake, state, told, made, 15)
        except Crash:
            run_until_crash(fake, state, told, made, 5)
        else:
            assert place > 25
            return
        member = fake.state.members["a2"]
        assert len(fake.state.members) == 2
        assert fake.state.board.record.sums[0] == pytest.approx(sum(told))
        assert sum(member.explore.values()) == len(told) == fake.state.board.counts[0]
        commits = sum(not pull.share for pull in made)
        lost = commits - sum(member.commit.values())
        assert -1 <= lost <= 5  # -1: the pull that was reported as the crash came, and never made
        assert member.claim is None
    raise AssertionError("the loop has no end")


def test_a_claim_whose_answer_was_lost_is_found_again_even_after_it_lapsed(tmp_path: Path) -> None:
    fake = Fake(["a", "b"], horizon=100, claim_seconds=10)
    state = tmp_path / "state.json"
    agent = joined(fake, "a", "b", state=state)
    lost = agent.ask()
    fake.sleep(100)
    agent = resumed(fake, state)
    assert agent.ask() == lost
    agent.tell(lost, 0.5)
    assert fake.state.members[agent.id].used == 1
    assert agent._logic.kept.used == 1


def test_an_open_claim_is_found_again_where_the_board_says_commit(tmp_path: Path) -> None:
    fake, state = Fake(["a", "b"]), tmp_path / "state.json"
    fake.join("b")
    claim = joined(fake, "a", state=state).ask()
    assert not fake.state.rule.decide(fake.state.board, {0}).share  # because of that very claim
    assert resumed(fake, state).ask() == claim


def test_a_report_whose_answer_was_lost_in_a_crash_is_not_counted_twice(tmp_path: Path) -> None:
    fake, state = Fake(["a", "b"], horizon=1000), tmp_path / "state.json"
    finished(fake)
    agent = joined(fake, state=state)
    for _ in range(14):
        agent.ask()
        fake.sleep(1)  # pulls are saved, and not reported before 15 seconds

    def crash(request: httpx.Request) -> None:
        if request.url.path.endswith("commits"):
            fake._answer(request)
            raise Crash

    fake.fault = crash
    with pytest.raises(Crash):
        agent.flush()
    fake.fault = lambda request: None
    resumed(fake, state).close()
    assert fake.state.members[agent.id].commit == {0: 14}


# --- the state file -----------------------------------------------------------------------------------------


def test_the_state_file_is_for_its_owner_alone_and_resumes(tmp_path: Path) -> None:
    fake = Fake(["a", "b", "c"], horizon=100)
    fake.join("a", "b")
    state = tmp_path / "state.json"
    with joined(fake, "a", state=state) as agent:
        agent.play(lambda arm: PRIVATE, 20)
        head = agent.head
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert head.startswith("head-")
    with resumed(fake, state) as again:
        assert (again.id, again.head, again.shares) == (agent.id, head, ["a"])
        played = again.play(lambda arm: PRIVATE, 100)
        assert sum(played.pulls.values()) == 80  # of 100, after 20
        before, after = (someone._logic.kept.own["c"] for someone in (agent, again))
        assert after[0] == before[0] + played.hidden
    assert list(tmp_path.iterdir()) == [state]


def test_joining_with_other_shares_changes_the_consent(tmp_path: Path) -> None:
    fake = Fake(["a", "b"])
    joined(fake, "a", "b", state=tmp_path / "s.json").close()
    agent = joined(fake, "a", state=tmp_path / "s.json")
    assert agent.shares == ["a"]
    assert fake.state.members[agent.id].shares == {0}
    assert len(fake.state.members) == 1


def test_a_state_file_of_another_collaboration_is_refused(tmp_path: Path) -> None:
    fake = Fake(["a"])
    joined(fake, "a", state=tmp_path / "s.json").close()
    with pytest.raises(InputError, match=f"is of an agent in collaboration {ID}"):
        Agent.join(URL, "c2", "invite", "Shop", ["a"], state=tmp_path / "s.json")
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(InputError, match="is not a client's state file"):
        Agent.resume(tmp_path / "other.json")
    with pytest.raises(InputError, match="cannot be read"):
        Agent.resume(tmp_path / "none.json")


def test_a_join_that_was_refused_can_be_tried_again(tmp_path: Path) -> None:
    fake, state = Fake(["a"]), tmp_path / "s.json"
    with pytest.raises(Refused, match="names an arm that is not in this collaboration") as caught:
        joined(fake, "z", state=state)
    assert (caught.value.status, caught.value.field) == (422, "shares")
    with pytest.raises(InputError, match="has not joined yet"):
        Agent.resume(state)
    assert joined(fake, "a", state=state).shares == ["a"]


def test_an_agent_from_a_token_knows_what_she_shares_and_how_far_she_is() -> None:
    fake = Fake(["a", "b"], horizon=50)
    with joined(fake, "a", "b") as agent:
        agent.play(lambda arm: 0.5, 20)
    with on(fake)(URL, ID, f"secret-{agent.id}", transport=fake.transport, listen=False) as again:
        played = again.play(lambda arm: 0.5, 100)
    assert again.shares == ["a", "b"]
    assert sum(played.pulls.values()) == 30
    assert fake.state.members[agent.id].used == 50


def test_a_claim_is_counted_once_however_often_it_comes(tmp_path: Path) -> None:
    fake, state = Fake(["a", "b"], horizon=50), tmp_path / "s.json"
    agent = joined(fake, "a", "b", state=state)
    claim = agent.ask()
    for _ in range(5):
        agent.close()
        agent = resumed(fake, state)
        assert agent.ask() == claim
        assert agent._logic.kept.used == fake.state.members[agent.id].used == 1
    agent.tell(claim, 0.5)
    assert sum(agent.play(lambda arm: 0.5, 100).pulls.values()) == 49
    assert agent._logic.kept.used == fake.state.members[agent.id].used == 50


@pytest.mark.parametrize("opened", [True, False])
def test_an_agent_from_a_token_counts_an_open_claim_once(opened: bool) -> None:
    fake = Fake(["a", "b"], horizon=50)
    agent = joined(fake, "a", "b")
    if opened:
        agent.ask()
    with on(fake)(URL, ID, f"secret-{agent.id}", transport=fake.transport, listen=False) as again:
        pull = again.ask()
        assert again._logic.kept.used == fake.state.members[agent.id].used == 1
        again.tell(pull, 0.5)
        assert sum(again.play(lambda arm: 0.5, 100).pulls.values()) == 49


# --- ends, and consent --------------------------------------------------------------------------------------


def test_the_horizon_ends_the_pulls() -> None:
    fake = Fake(["a", "b"], horizon=30)
    with joined(fake, "a", "b") as agent:
        played = agent.play(lambda arm: 0.5, 100)
        assert sum(played.pulls.values()) == 30 == played.explore + played.commit
        assert played.ended == "All 30 pulls of the horizon are used."
        with pytest.raises(HorizonReached, match="All 30 pulls"):
            agent.ask()
    assert fake.state.members[agent.id].used == 30


def test_the_controllers_word_on_the_horizon_counts() -> None:
    fake = Fake(["a", "b"], horizon=30)
    agent = joined(fake, "a", "b")
    agent.ask()
    agent._logic.kept.used = 0
    fake.state.members[agent.id].used = 30
    agent.tell(agent.ask(), 0.5)
    with pytest.raises(HorizonReached):
        agent.ask()


def test_a_closed_collaboration_ends_the_pulls() -> None:
    fake = Fake(["a", "b"])
    agent = joined(fake, "a", "b")
    pulls = 0

    def pull_arm(arm: str) -> float:
        nonlocal pulls
        pulls += 1
        if pulls == 10:
            fake.close()
        return 0.5

    played = agent.play(pull_arm, 100)
    assert pulls == sum(played.pulls.values()) < 100
    assert played.ended is not None
    assert "closed" in played.ended
    with pytest.raises(Closed, match="can still be read"):
        agent.ask()
    agent.close()


def test_consent_can_change_and_cancels_a_claim_on_a_withdrawn_arm() -> None:
    fake = Fake(["a", "b"])
    fake.join("b")
    agent = joined(fake, "a")
    claim = agent.ask()
    assert claim.arm == "a"
    agent.share(["b"])
    assert fake.state.members[agent.id].shares == {1}
    agent.tell(claim, 0.5)  # which is not taken
    assert fake.state.version == 0
    fake.join("a")
    fake.sleep(1)
    pull = agent.ask()
    assert (pull.arm, pull.share) == ("b", True)
    agent.tell(pull, 0.5)
    with pytest.raises(Refused, match="names an arm that is not"):
        agent.share(["z"])
    assert agent.ask().version == 1


def test_a_consent_that_comes_again_late_changes_nothing() -> None:
    fake = Fake(["a", "b"])
    agent = joined(fake, "a")
    agent.share(["a", "b"])
    sent = next(request for request in fake.requests if request.method == "PATCH")
    agent.share([])
    assert fake.handle(sent).status_code == 200  # what the network held back
    assert fake.state.members[agent.id].shares == frozenset()
    agent.close()


def test_consent_that_is_given_elsewhere_is_noticed() -> None:
    fake = Fake(["a", "b"], horizon=1000)
    other = fake.join("a", "b")
    with joined(fake) as agent:
        agent.play(lambda arm: 0.5, 20)
        fake.consent(agent.id, "a", "b")
        fake.broadcast(other, 0.5)
        fake.sleep(1)
        played = agent.play(lambda arm: 0.5, 400)
        assert agent.shares == ["a", "b"]
    assert played.explore > 100
    assert agent.unpaid == 0


def test_before_she_knows_her_consent_again_she_hardly_pulls() -> None:
    """Two changes within a second: the second is looked at when the second is over."""
    fake = Fake(["a", "b"], horizon=100_000)
    finished(fake)
    agent = joined(fake)
    agent.ask()
    began = fake.now
    for shares, pulls in [("b", 1), ("a", 100)]:
        fake.consent(agent.id, shares)
        agent._logic.hear(msgspec.json.encode(board_view(fake.state)).decode())
        for _ in range(pulls):
            agent.ask()
        assert agent.shares == [shares]
    assert fake.now - began == pytest.approx(1)
    assert len(fake.names("GET agents/me")) == 3


def test_consent_that_is_withdrawn_elsewhere_is_noticed() -> None:
    fake = Fake(["a", "b"], horizon=1000)
    fake.join("a", "b")
    with joined(fake, "a", "b") as agent:
        assert agent.play(lambda arm: 0.5, 20).explore == 20
        fake.consent(agent.id)
        fake.sleep(1)
        asked = len(fake.names("POST ask"))
        assert agent.play(lambda arm: 0.5, 300).commit == 300
        assert len(fake.names("POST ask")) == asked
        assert agent.shares == []
    assert fake.state.members[agent.id].used == 320
    assert agent.unpaid == 0


@pytest.mark.parametrize("given", [[], ["a", "b"]])
def test_a_change_that_the_board_does_not_show_is_noticed_by_what_is_refused(given: list[str]) -> None:
    """Somebody else did the opposite at the same time, so that as many share each arm as before."""
    fake = Fake(["a", "b"], horizon=1000)
    other = fake.join("a", "b") if not given else fake.join()
    third = fake.join("a", "b")
    with joined(fake, *given) as agent:
        agent.play(lambda arm: 0.5, 3)
        fake.consent(agent.id, *([] if given else ["a", "b"]))
        fake.consent(other, *given)
        fake.broadcast(third, 0.5)
        for _ in range(60):
            fake.sleep(0.5)
            agent.tell(agent.ask(), 0.5)
        assert agent.shares == ([] if given else ["a", "b"])
        assert agent._logic._shares == fake.state.members[agent.id].shares
        unpaid = agent.unpaid
        agent.play(lambda arm: 0.5, 100)
    assert unpaid == agent.unpaid
    assert unpaid <= 30  # those of one report, 15 seconds long


def test_her_consent_is_read_as_often_as_somebodys_changes_and_not_more_than_once_a_second() -> None:
    fake = Fake(["a", "b"], horizon=100_000)
    finished(fake)
    with joined(fake) as agent:
        agent.play(lambda arm: 0.5, 1000)
        assert len(fake.names("GET agents/me")) == 1
        for _ in range(50):
            fake.join("a")
            fake.sleep(0.1)
            agent._logic.hear(msgspec.json.encode(board_view(fake.state)).decode())
            agent.ask()
        assert 4 <= len(fake.names("GET agents/me")) <= 7


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("crash", [False, True])
def test_a_claim_on_an_arm_that_is_withdrawn_elsewhere_does_not_end_the_loop(
    again: bool, crash: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fake, state = Fake(["a", "b"], horizon=100), tmp_path / "s.json"
    fake.join("b")
    agent = joined(fake, "a", state=state)
    claim = agent.ask()
    assert claim.share
    fake.consent(agent.id)
    if again:
        fake.consent(agent.id, "a")
    if crash:
        agent = resumed(fake, state)
        claim = agent.ask()
    agent.tell(claim, 0.123)
    assert "You withdrew the arm of this pull" in caplog.text
    pull = agent.ask()
    assert (pull.share, pull.arm if again else None) == ((True, "a") if again else (False, None))
    agent.tell(pull, 0.5)
    agent.close()
    assert fake.bodies().count(b"0.123") == 1
    assert fake.state.version == again
    assert agent._logic.kept.used == fake.state.members[agent.id].used == 2


def test_a_claim_of_somebody_else_is_refused_in_words() -> None:
    fake = Fake(["a", "b"])
    others, mine = joined(fake, "a", invite="1"), joined(fake, "b", invite="2")
    claim = others.ask()
    with pytest.raises(Refused, match="handed to another agent"):
        mine.tell(claim, 0.5)


def test_who_left_elsewhere_is_told_so() -> None:
    fake = Fake(["a", "b"])
    fake.join("b")
    agent = joined(fake, "a")
    agent.tell(agent.ask(), 0.5)
    agent.ask()
    moves.leave(fake.turn(), agent.id)
    fake.sleep(1)
    with pytest.raises(Refused, match="You left"):
        agent.ask()
    agent.close()


def test_who_left_cannot_ask() -> None:
    fake = Fake(["a", "b"])
    agent = joined(fake, "a")
    agent.leave()
    assert fake.state.members[agent.id].left
    with pytest.raises(Refused, match="You left"):
        agent.ask()
    agent.close()


@pytest.mark.parametrize("reward", [-0.1, 1.1, float("nan"), float("inf")])
def test_rewards_are_checked_before_anything_is_sent(reward: float) -> None:
    fake = Fake(["a", "b"])
    agent = joined(fake, "a", "b")
    pull = agent.ask()
    sent = len(fake.requests)
    with pytest.raises(InputError, match="a number from 0 to 1"):
        agent.tell(pull, reward)
    with pytest.raises(InputError, match="a number from 0 to 1"):
        agent.tell(pull._replace(share=False), reward)
    assert len(fake.requests) == sent
    assert agent.ask() == pull


def test_what_was_given_is_checked(tmp_path: Path) -> None:
    fake = Fake(["a"])
    agent = joined(fake, "a", state=tmp_path / "s.json")
    with pytest.raises(InputError, match="put it in a list"):
        agent.share("a")
    with pytest.raises(InputError, match="another token"):
        Agent(URL, ID, "secret", state=tmp_path / "s.json")
    with pytest.raises(InputError, match="http://"):
        Agent("controller:8000", ID, "secret")
    with pytest.raises(InputError, match="at least 1"):
        Agent(URL, ID, "secret", max_pulls_per_board=0)
    with pytest.raises(InputError, match="put it in a list"):
        Agent.join(URL, ID, "invite", "Shop", "Supplier A")


def test_public_names() -> None:
    assert client.__all__ == [
        "Agent",
        "AsyncAgent",
        "Closed",
        "HorizonReached",
        "Played",
        "Pull",
        "Refused",
        "Unreachable",
    ]
    assert all(issubclass(error, PartageError) for error in (Closed, HorizonReached, Refused, Unreachable))


# --- the async twin -----------------------------------------------------------------------------------------


def test_the_twin_has_the_same_names() -> None:
    def names(kind: type) -> dict[str, list[str]]:
        public = {name: member for name, member in vars(kind).items() if not name.startswith("_")}
        return {
            name: list(inspect.signature(getattr(member, "__func__", member)).parameters)
            for name, member in public.items()
        }

    assert names(Agent) == names(AsyncAgent)


def comparable(fake: Fake) -> list[tuple[str, bytes]]:
    """All requests, with the ids of requests numbered as they come."""
    ids: dict[str, int] = {}
    found = []
    for name, request in zip(fake.names(), fake.requests, strict=True):
        body = msgspec.json.decode(request.content or b"{}")
        if "request" in body:
            body["request"] = ids.setdefault(body["request"], len(ids))
        found.append((name, msgspec.json.encode(body)))
    return found


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_the_twin_does_the_same(seed: int) -> None:
    plain, twin = Fake(["a", "b", "c"], horizon=150), Fake(["a", "b", "c"], horizon=150)
    twin.state = type(twin.state)(plain.state.config)
    draws = [random.Random(seed), random.Random(seed)]

    def happens(fake: Fake, draw: random.Random) -> Callable[[str], float]:
        def pull_arm(arm: str) -> float:
            fake.sleep(draw.random())
            if draw.random() < 0.3 and fake.state.rule.decide(fake.state.board, {1}).share:
                fake.broadcast("a1", draw.random())
            fake.fault = lambda request: BEFORE if draw.random() < 0.1 else None
            return draw.random()

        return pull_arm

    async def play_twin() -> Any:
        agent = await type("AsyncTimed", (AsyncTimed,), {"fake": twin}).join(
            URL, ID, "invite", name="Shop", shares=["a"], transport=twin.transport, listen=False
        )
        async with agent:
            return await agent.play(happens(twin, draws[1]), 200)

    state = random.getstate()
    plain.join("b")
    with joined(plain, "a") as agent:
        expected = agent.play(happens(plain, draws[0]), 200)
    random.setstate(state)
    twin.join("b")
    assert asyncio.run(play_twin()) == expected
    assert comparable(twin) == comparable(plain)


def test_a_cancelled_call_leaves_all_as_it_was(tmp_path: Path) -> None:
    fake = Fake(["a", "b"], horizon=60)

    class Late(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            answer = fake.handle(request)
            await asyncio.sleep(0)
            return answer

    async def play() -> None:
        agent = await AsyncAgent.join(
            URL, ID, "invite", "Shop", ["a", "b"], transport=Late(), listen=False, state=tmp_path / "s.json"
        )
        cancelled = 0
        async with agent:
            for turn in range(1000):
                call = asyncio.create_task(agent.ask())
                for _ in range(turn % 7):
                    await asyncio.sleep(0)
                if call.cancel():
                    cancelled += 1
                with contextlib.suppress(asyncio.CancelledError, HorizonReached):
                    await call
                try:
                    pull = await agent.ask()
                except HorizonReached:
                    break
                await agent.tell(pull, 0.5)
        assert cancelled > 10
        member = fake.state.members[agent.id]
        assert member.used == 60
        assert member.claim is None

    asyncio.run(play())


# --- the stream ---------------------------------------------------------------------------------------------


def test_boards_are_read_from_the_streams_lines() -> None:
    lines = BoardLines()
    stream = [": still here", "", "event: board", 'data: {"a": 1}', "", "event: other", "data: no", "", "data:x", ""]
    assert [board for line in stream if (board := lines.read(line)) is not None] == ['{"a": 1}', "x"]


# --- a real server ------------------------------------------------------------------------------------------


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

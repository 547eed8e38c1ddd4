"""What networks and crashes do: nothing is lost that others count on, and nothing counts twice."""

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.support.live import AFTER, BEFORE, Live, New, explore_to_the_end

from partage.client import Closed, HorizonReached, Pull, Refused, Unreachable
from partage.client.reports import NOT_COUNTED
from partage.client.statefile import read
from partage.ledger.receipts import Receipted

PRIVATE = 0.7182818284  # a reward that must never be seen outside


@pytest.mark.parametrize("fault", [BEFORE, AFTER, 429, 502, 503, 504])
@pytest.mark.parametrize("call", ["agents", "ask", "tell", "commits", "board", "config"])
def test_a_request_is_sent_again_until_it_is_answered(new: New, call: str, fault: str | int) -> None:
    live = new(["a", "b"], horizon=100)
    failures = iter([fault] * 3)
    end = live.id if call == "config" else call
    live.fault = lambda request: next(failures, None) if request.url.path.endswith(end) else None
    other = live.join("b")
    with live.joined("a") as agent:
        pull = agent.ask()
        assert pull.share
        agent.tell(pull, 0.5)
        live.broadcast(other, 0.4)
        pull = agent.ask()
        agent.tell(pull, 0.5)
        assert not agent.ask().share
    again = [request.content for request in live.requests if request.url.path.endswith(end)][:4]
    assert len(set(again)) == 1
    member = live.state.members[agent.id]
    assert (member.explore, member.commit, member.used) == ({0: 2}, {0: 1}, 3)
    assert len(live.state.members) == 2


@pytest.mark.parametrize(("after", "least"), [("7", 7), ("Wed, 21 Oct 2026 07:28:00 GMT", 0), ("-3", 0), ("", 0)])
def test_an_agent_waits_as_long_as_the_controller_says(new: New, after: str, least: float) -> None:
    live = new(["a", "b"], horizon=100)
    body = {"error": "There were too many requests.", "code": "too_many_requests"}
    live.join("b")
    limited = iter([httpx.Response(429, json=body, headers={"Retry-After": after})])
    with live.joined("a") as agent:
        live.fault = lambda request: next(limited, None) if request.url.path.endswith("/ask") else None
        began = live.now
        assert agent.ask().share
        assert least <= live.now - began <= least + 0.1


def test_without_an_answer_the_agent_gives_up_and_can_go_on_later(new: New) -> None:
    live = new(["a", "b"], horizon=100)
    live.join("b")
    agent = live.joined("a")
    pull = agent.ask()
    live.fault = lambda request: AFTER
    began, sent = live.now, len(live.requests)
    with pytest.raises(Unreachable, match="did not answer for 60 seconds"):
        agent.tell(pull, 0.5)
    assert live.now - began <= 60
    assert len(live.requests) - sent < 100
    live.fault = lambda request: None
    agent.ask()
    assert live.state.members[agent.id].explore == {0: 1}
    assert live.state.version == 1


def test_an_answer_that_is_not_the_controllers_is_a_sentence_too(new: New) -> None:
    live = new(["a"])
    live.fault = lambda request: 500
    with pytest.raises(Refused, match="status 500 and no explanation"):
        live.joined("a")


def refusing(
    path: str, status: int, code: str, error: str = "No.", field: str | None = None
) -> Callable[[httpx.Request], httpx.Response | None]:
    """Refuse requests to this path; without a code, as release 0.1 did."""
    body = {"error": error, "field": field} | ({"code": code} if code else {})
    return lambda request: httpx.Response(status, json=body) if request.url.path.endswith(path) else None


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        ("horizon_used", HorizonReached, "All 1,000 pulls"),
        ("left", Refused, "You left"),
        ("request_reused", Refused, "No."),
        ("not_permitted", Refused, "No."),
    ],
)
def test_the_code_of_a_refused_ask_decides_and_not_its_words(
    new: New, code: str, error: type[Refused], words: str
) -> None:
    live = new(["a", "b"])
    agent = live.joined("a", "b")
    live.fault = refusing("/ask", 409, code)
    with pytest.raises(error, match=re.escape(words)) as caught:
        agent.ask()
    assert caught.value.code == code


def test_the_code_of_a_refused_tell_decides(new: New) -> None:
    live = new(["a", "b"])
    agent = live.joined("a", "b")
    claim = agent.ask()
    live.fault = refusing("/tell", 403, "claim_cancelled")
    agent.tell(claim, 0.5)  # logged, and not sent again
    sent = len(live.names("POST tell"))
    live.fault = refusing("/tell", 409, "closed")
    with pytest.raises(Closed):
        agent.tell(claim, 0.5)
    live.fault = refusing("/tell", 403, "other_agents_pull")
    with pytest.raises(Refused, match=r"No\."):
        agent.tell(claim, 0.5)
    assert len(live.names("POST tell")) == sent + 2


@pytest.mark.parametrize("code", sorted(NOT_COUNTED))
def test_a_report_that_no_repetition_can_cure_is_given_up(new: New, code: str) -> None:
    live = new(["a"])
    agent = live.joined("a")
    live.fault = refusing("/commits", 409, code)
    agent.ask()
    assert agent.unpaid == 1
    live.fault = lambda request: None
    agent.close()
    assert live.state.members[agent.id].used == 0


@pytest.mark.parametrize(("status", "code"), [(401, "unknown_token"), (403, "")], ids=["0.2", "0.1, without codes"])
def test_a_report_refused_for_another_reason_is_kept(new: New, status: int, code: str) -> None:
    live = new(["a"])
    agent = live.joined("a")
    live.fault = refusing("/commits", status, code)
    with pytest.raises(Refused, match=r"No\."):
        agent.ask()
    live.fault = lambda request: None
    agent.close()
    assert live.state.members[agent.id].commit == {0: 1}
    assert agent.unpaid == 0


def without_codes(request: httpx.Request, live: Live) -> httpx.Response:
    """Answer as release 0.1 did: refusals have no code."""
    response = live.answer(request)
    if response.status_code < 400:
        return response
    said = {key: value for key, value in response.json().items() if key != "code"}
    return httpx.Response(response.status_code, json=said)


def test_without_codes_a_report_in_conflict_is_given_up(new: New, tmp_path: Path) -> None:
    live = new(["a"])
    agent = live.joined("a", state=tmp_path / "state.json")
    live.fault = refusing("/commits", 409, "")
    agent.ask()
    assert agent.unpaid == 1
    live.fault = lambda request: None
    agent.close()
    assert live.state.members[agent.id].used == 0
    assert live.resumed(tmp_path / "state.json").unpaid == 1


def test_without_codes_only_the_run_that_is_named_is_given_up(new: New) -> None:
    live = new(["a", "b"])
    first, second = live.join("a"), live.join("b")
    live.broadcast(first, 0.5)
    agent = live.joined()
    agent.ask()  # reported at once
    for _ in range(3):
        agent.ask()
    live.broadcast(second, 0.4)
    live.sleep(1.5)
    agent.ask()  # on the next version of the board, so that the next report has two runs
    sent = len(live.requests)
    refuse = refusing("/commits", 409, "", field="runs[0].version")
    live.fault = lambda request: refuse(request) if request.content.count(b'"pulls"') == 2 else None
    agent.close()
    reports = [request for request in live.requests[sent:] if request.url.path.endswith("/commits")]
    assert [request.content.count(b'"pulls"') for request in reports] == [2, 1]
    assert agent.unpaid == 3
    assert live.state.members[agent.id].commit == {0: 2}


def test_without_codes_a_refused_ask_is_understood(new: New) -> None:
    live = new(["a", "b"])
    agent = live.joined("a", "b")
    live.fault = refusing("/ask", 409, "", "This request was an ask before.")
    with pytest.raises(Refused, match="an ask before"):
        agent.ask()
    live.fault = refusing("/ask", 403, "", "Your token is for another horizon.")
    with pytest.raises(Refused, match="another horizon"):
        agent.ask()
    live.fault = refusing("/ask", 409, "", "All 1,000 pulls of the horizon are used.")
    with pytest.raises(HorizonReached):
        agent.ask()


def test_without_codes_the_board_shows_the_close(new: New) -> None:
    live = new(["a", "b"])
    asking, telling = live.joined("a", "b"), live.joined("a", "b", invite="second")
    asking.board()
    claim = telling.ask()
    live.close()
    live.fault = lambda request: without_codes(request, live)
    with pytest.raises(Closed):
        asking.ask()
    with pytest.raises(Closed):
        telling.tell(claim, 0.5)


def test_without_codes_a_refused_tell_is_understood(new: New, caplog: pytest.LogCaptureFixture) -> None:
    live = new(["a", "b"])
    agent = live.joined("a", "b")
    claim = agent.ask()
    live.fault = lambda request: without_codes(request, live)
    live.consent(agent.id, *{"a", "b"} - {claim.arm})
    agent.tell(claim, 0.5)  # logged, and not sent again
    assert "refused a reward" in caplog.text
    assert claim.arm not in agent.shares
    with pytest.raises(Refused) as caught:
        agent.tell(Pull(claim.arm, True, False, 0, 10**6), 0.5)
    assert caught.value.status == 404
    live.fault = refusing("/tell", 403, "")
    with pytest.raises(Refused, match=r"No\."):  # not the agent's last claim
        agent.tell(Pull(claim.arm, True, False, 0, 10**6), 0.5)
    live.fault = refusing("/tell", 409, "")
    with pytest.raises(Refused, match=r"No\."):  # the collaboration is not closed
        agent.tell(claim, 0.5)


def test_an_address_where_something_else_answers_is_named(new: New) -> None:
    live = new(["a"])
    agent = live.joined("a")
    live.fault = lambda request: httpx.Response(200, text="<html>Please log in.</html>")
    with pytest.raises(Unreachable, match="is not a Partage controller; check the address"):
        agent.ask()


def test_a_redirect_is_refused(new: New, tmp_path: Path) -> None:
    live = new(["a"])
    agent = live.joined("a")
    live.fault = lambda request: httpx.Response(302, headers={"Location": "https://elsewhere.example"}, text="moved")
    for attempt in (agent.ask, agent.leave, lambda: agent.ledger(tmp_path / "ledger.ndjson")):
        with pytest.raises(Refused, match="redirects to another address"):
            attempt()
    assert list(tmp_path.iterdir()) == []
    live.fault = lambda request: None
    assert agent.ask().arm == "a"


def test_a_pull_counted_in_a_failed_call_is_handed_out_by_the_next(new: New) -> None:
    live = new(["a", "b"], horizon=1000)
    explore_to_the_end(live)
    agent = live.joined()
    live.fault = lambda request: BEFORE if request.url.path.endswith("commits") else None
    with pytest.raises(Unreachable):
        agent.ask()
    live.fault = lambda request: None
    agent.ask()
    agent.close()
    assert live.state.members[agent.id].commit == {0: 1}


class Crash(BaseException):
    """The power goes."""


def run_until_crash(live: Live, state: Path, told: list[float], made: list[Pull], steps: int) -> None:
    """A user's loop: it joins or goes on, and does its steps; each shared reward is another one."""
    agent = live.joined("a", state=state)
    for _ in range(steps):
        live.sleep(0.4)
        pull = agent.ask()
        made.append(pull)
        if pull.share:
            told.append((len(told) + 1) / 1000)
            agent.tell(pull, told[-1])
        else:
            agent.tell(pull, PRIVATE)
        if live.open_to("a1"):
            live.broadcast("a1", 0.4)
    agent.close()


@pytest.mark.parametrize("when", [BEFORE, AFTER])
def test_a_crash_at_any_request_loses_nothing_told_and_counts_nothing_twice(
    new: New, when: str, tmp_path: Path
) -> None:
    for place in range(200):
        live = new(["a", "b"], horizon=1000, claim_seconds=4)
        live.join("b")
        state = tmp_path / f"{place}.json"
        told: list[float] = []
        made: list[Pull] = []
        due = [place]

        def fault(request: httpx.Request, live: Live = live, due: list[int] = due) -> None:
            due[0] -= 1
            if due[0] == -1:
                if when == AFTER:
                    live.answer(request)
                raise Crash

        live.fault = fault
        try:
            run_until_crash(live, state, told, made, 9)
        except Crash:
            run_until_crash(live, state, told, made, 4)
        else:
            assert place > 20
            return
        member = live.state.members["a2"]
        assert len(live.state.members) == 2
        assert live.state.board.record.sums[0] == pytest.approx(sum(told))
        assert sum(member.explore.values()) == len(told) == live.state.board.counts[0]
        commits = sum(not pull.share for pull in made)
        lost = commits - sum(member.commit.values())
        assert -1 <= lost <= 5  # -1: the pull that was reported as the crash came, and never made
        assert member.claim is None
        assert read(state).receipted.commits == {"ab"[arm]: pulls for arm, pulls in member.commit.items()}
    raise AssertionError("the loop has no end")


def test_a_claim_whose_answer_was_lost_is_found_again_even_after_it_lapsed(new: New, tmp_path: Path) -> None:
    live = new(["a", "b"], horizon=100, claim_seconds=10)
    state = tmp_path / "state.json"
    agent = live.joined("a", "b", state=state)
    lost = agent.ask()
    live.sleep(100)
    agent = live.resumed(state)
    assert agent.ask() == lost
    agent.tell(lost, 0.5)
    assert live.state.members[agent.id].used == 1
    assert agent._protocol.saved.used == 1


def test_an_open_claim_is_found_again_where_the_board_says_commit(new: New, tmp_path: Path) -> None:
    live, state = new(["a", "b"]), tmp_path / "state.json"
    live.join("b")
    claim = live.joined("a", state=state).ask()
    assert not live.open_to("a2")  # because of that very claim
    assert live.resumed(state).ask() == claim


def test_a_report_whose_answer_was_lost_in_a_crash_is_not_counted_twice(new: New, tmp_path: Path) -> None:
    live, state = new(["a", "b"], horizon=1000), tmp_path / "state.json"
    explore_to_the_end(live)
    agent = live.joined(state=state)
    for _ in range(14):
        agent.ask()
        live.sleep(1)  # pulls are saved, and not reported before 15 seconds

    def crash(request: httpx.Request) -> None:
        if request.url.path.endswith("commits"):
            live.answer(request)
            raise Crash

    live.fault = crash
    with pytest.raises(Crash):
        agent.flush()
    live.fault = lambda request: None
    live.resumed(state).close()
    assert live.state.members[agent.id].commit == {0: 14}
    assert read(state).receipted == Receipted({"a": 14})

"""The operator sets a member aside: over HTTP, for the members' clients, for whoever verifies."""

import logging
from pathlib import Path

import pytest
from tests.support.live import App, Live, New

from partage.client import Refused
from partage.client.following import board_of
from partage.ledger.verify import verify

REASON = "Its scale was broken until May 3."


def told(live: Live, agent: str, rewards: dict[str, float], most: int = 200) -> None:
    """Let this agent explore until nothing is open to it."""
    for _ in range(most):
        if not live.open_to(agent):
            return
        pull = live.claim(agent)
        live.call(live.tokens[agent], "POST", "/tell", {"pull": pull["pull"], "reward": rewards[pull["arm"]]})


def test_the_boards_of_all_follow(app: App, new: New, tmp_path: Path) -> None:
    live = new(["a", "b"], 1000)
    honest, liar = live.join("a", "b"), live.join("a", "b")
    told(live, liar, {"a": 0.0, "b": 1.0})
    assert [arm.active for arm in app.operator.board(live.id).arms] == [False, True], "the liar had the best arm out"
    before = app.operator.board(live.id)

    found = app.operator.set_aside(live.id, liar, REASON)
    assert (found.agent, found.aside, found.shares, found.explore) == (liar, REASON, [], before.version)
    board = app.operator.board(live.id)
    assert board.version == before.version + 1
    assert board.leader is None
    assert [(arm.active, arm.broadcasts) for arm in board.arms] == [(True, 0), (True, 0)]
    assert [(one.agent, one.reason) for one in board.set_aside] == [(liar, REASON)]

    told(live, honest, {"a": 1.0, "b": 0.0})
    assert app.operator.board(live.id).leader == "a"
    live.close()
    for reader, token in ((None, app.operator), (honest, None), (liar, None)):
        path = tmp_path / f"{reader}.ndjson"
        if token is not None:
            token.ledger(live.id, path)
        else:
            with live.from_token(reader or "") as agent:
                agent.ledger(path)
        verified = verify(path, agent=reader)
        assert verified.ok, verified.problem
        assert verified.board == app.operator.board(live.id)


def test_the_client_of_the_member_goes_on_committing(app: App, new: New, caplog: pytest.LogCaptureFixture) -> None:
    live = new(["a", "b"], 1000)
    other = live.join("a", "b")
    with live.joined("a", "b") as agent:
        pull = agent.ask()
        assert pull.share
        app.operator.set_aside(live.id, "a2", REASON)
        with caplog.at_level(logging.WARNING):
            agent.tell(pull, 1.0)
        assert "set your broadcasts aside" in caplog.text
        assert live.state.board.counts == [0, 0]
        live.broadcast(other, 1.0)
        live.sleep(5)
        assert not any(agent.ask().share for _ in range(5))
        with pytest.raises(Refused) as refused:
            agent.share(["a"])
        assert refused.value.code == "set_aside"
        assert not agent.ask().share
        agent.flush()
    assert live.state.members["a2"].used > 1


def test_a_clients_board_has_the_lapses(new: New) -> None:
    live = new(["a", "b", "c"], 1000, claim_seconds=1)
    live.join("a")
    muted = live.join("c")
    for _ in range(4):
        live.claim(muted)
        live.sleep(2)
    with live.joined("a", "b") as agent:
        board = board_of(agent.board())
    assert board.lapses == live.state.board.lapses
    assert board.stalled(2)


@pytest.mark.parametrize(
    ("agent", "reason", "status", "code"),
    [
        ("a9", REASON, 404, "no_such_agent"),
        ("a1", "", 422, "invalid_field"),
        ("a1", "   ", 422, "invalid_field"),
        ("a1", "x" * 501, 422, "invalid_field"),
        ("a1", "line\nbreak", 422, "invalid_field"),
        ("a2", REASON, 409, "set_aside"),
    ],
)
def test_what_is_refused(app: App, new: New, agent: str, reason: str, status: int, code: str) -> None:
    live = new(["a", "b"])
    live.join("a", "b")
    live.join("a")
    app.operator.set_aside(live.id, "a2", "x" * 500)
    before = live.state.seq
    with pytest.raises(Refused) as refused:
        app.operator.set_aside(live.id, agent, reason)
    assert (refused.value.status, refused.value.code) == (status, code)
    assert not reason.strip() or reason not in str(refused.value)
    assert live.state.seq == before


def test_members_cannot_set_anybody_aside(new: New) -> None:
    live = new(["a", "b"])
    one, other = live.join("a"), live.join("b")
    with pytest.raises(AssertionError, match="not_permitted"):
        live.call(live.tokens[one], "POST", f"/agents/{other}/set-aside", {"reason": REASON})


def test_a_closed_collaboration_stays_as_it_is(app: App, new: New) -> None:
    live = new(["a", "b"])
    live.join("a")
    live.close()
    with pytest.raises(Refused) as refused:
        app.operator.set_aside(live.id, "a1", REASON)
    assert (refused.value.status, refused.value.code) == (409, "closed")

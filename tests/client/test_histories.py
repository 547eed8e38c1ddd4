"""Agents that attach past rewards before their first pull."""

from pathlib import Path

import msgspec
import pytest
from tests.client.conftest import New
from tests.support.live import AFTER, Live

from partage.client import Agent
from partage.client.errors import Refused
from partage.errors import InputError
from partage.ledger.events import Attach, decode
from partage.ledger.verify import verify

PAST = [0.5, 1.0, 0.25]


def attached(live: Live, agent: Agent, folder: Path) -> list[Attach]:
    """The rows of past rewards in the agent's copy of the ledger."""
    agent.ledger(folder / "rows.ndjson")
    rows = (msgspec.json.decode(line).get("row") for line in (folder / "rows.ndjson").read_bytes().splitlines())
    events = (decode(msgspec.json.encode(row)) for row in rows if row is not None)
    return [event for event in events if isinstance(event, Attach)]


@pytest.mark.parametrize("signed", [False, True])
def test_an_agent_attaches_plays_and_verifies(new: New, tmp_path: Path, signed: bool) -> None:
    live = new(["a", "b"], horizon=200, histories=10, signed=signed)
    other = live.joined("a", "b", invite="other")
    agent = live.joined("a", "b", state=tmp_path / "agent.json")
    agent.attach("a", PAST)
    agent.attach("b", (0, 1))
    rows = attached(live, agent, tmp_path)
    assert [(row.arm, row.rewards) for row in rows] == [(0, tuple(PAST)), (1, (0.0, 1.0))]
    assert all(row.signature for row in rows), "the client signs, whether it must or not"
    assert [(arm.broadcasts, arm.attached) for arm in agent.board().arms] == [(3, 3), (2, 2)]
    agent.play(lambda arm: 0.5, 40)
    again = live.resumed(tmp_path / "agent.json")
    again.attach("a", PAST)  # a program that is run again
    assert len(attached(live, agent, tmp_path)) == 2
    with pytest.raises(Refused, match="3 past rewards"):
        again.attach("a", [0.0])
    other.play(lambda arm: 0.5, 10)
    other.ledger(tmp_path / "copy.ndjson")
    found = verify(tmp_path / "copy.ndjson", head=other.head)
    assert found.ok, found.problem


def test_the_first_history_draws_the_tie_order(new: New) -> None:
    live = new(["a", "b"], horizon=200, histories=10, ordered=False)
    idle, agent = live.joined("a", invite="idle"), live.joined("a")
    agent.attach("a", PAST)
    assert live.state.drawing is not None
    assert live.state.drawing.members == (idle.id, agent.id)
    assert live.state.order is not None
    assert live.state.order.skipped == (idle.id,), "the agent revealed its nonce"
    assert live.state.board.counts == [3, 0]


def test_an_answer_that_is_lost(new: New) -> None:
    live = new(["a", "b"], horizon=200, histories=10)
    agent = live.joined("a")
    lost = [AFTER]
    live.fault = lambda request: lost.pop() if request.url.path.endswith("/history") and lost else None
    agent.attach("a", PAST)
    assert not lost
    assert live.state.board.counts == [3, 0]


def test_what_is_refused_at_once(new: New) -> None:
    live = new(["a", "b"], horizon=200, histories=2)
    agent = live.joined("a")
    for rewards in ("0.5", [], [0.5, 1.5], [None], 0.5):
        with pytest.raises(InputError):
            agent.attach("a", rewards)  # type: ignore[arg-type]
    for arm, rewards in (("b", [0.5]), ("c", [0.5]), ("a", PAST)):
        with pytest.raises(Refused):
            agent.attach(arm, rewards)
    assert live.state.board.counts == [0, 0]

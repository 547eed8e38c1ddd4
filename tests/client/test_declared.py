"""Agents that declare their own horizon and pace as they join."""

from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import New
from tests.support.live import AFTER

from partage.client.errors import HorizonReached, Refused
from partage.errors import InputError
from partage.ledger.verify import verify


@pytest.mark.parametrize("signed", [False, True])
def test_an_agent_plays_its_own_horizon(new: New, tmp_path: Path, signed: bool) -> None:
    live = new(["a", "b"], horizon=1000, signed=signed)
    other = live.joined("a", "b", invite="other")
    agent = live.joined("a", "b", horizon=7, pace=12, state=tmp_path / "agent.json")
    member = live.state.members[agent.id]
    assert (member.horizon, member.pace) == (7, 12.0)
    played = agent.play(lambda arm: 0.5, 100)
    assert played.explore + played.commit == 7
    assert played.ended == "All 7 pulls of the horizon are used."
    assert member.horizon_left == 0
    again = live.resumed(tmp_path / "agent.json")
    with pytest.raises(HorizonReached, match="All 7"):
        again.ask()
    with pytest.raises(HorizonReached, match="All 7"):
        live.from_token(agent.id).ask() if not signed else again.ask()
    other.ledger(tmp_path / "copy.ndjson")
    found = verify(tmp_path / "copy.ndjson")
    assert found.ok, found.problem


def test_a_lost_join_is_repeated_as_it_was(new: New, tmp_path: Path) -> None:
    live = new(["a", "b"], horizon=1000)
    lost = [AFTER]
    live.fault = lambda request: lost.pop() if request.url.path.endswith("/agents") and lost else None
    agent = live.joined("a", horizon=50, state=tmp_path / "agent.json")
    assert not lost
    assert [member.horizon for member in live.state.members.values()] == [50]
    assert live.state.members[agent.id].pace is None


def test_other_declarations_are_another_request(new: New) -> None:
    live = new(["a", "b"], horizon=1000)
    body: dict[str, Any] = {"name": "Shop", "shares": ["a"], "request": "join", "horizon": 50}
    live.call(live.invite("one"), "POST", "/agents", body)
    live.call(live.invite("one"), "POST", "/agents", body)
    with pytest.raises(AssertionError, match="request_reused"):
        live.call(live.invite("one"), "POST", "/agents", body | {"horizon": 51})


def test_what_cannot_be_declared(new: New) -> None:
    live = new(["a", "b"], horizon=1000)
    for horizon in (1, 2.5, "many"):
        with pytest.raises(InputError, match="horizon"):
            live.joined("a", horizon=horizon)
    for pace in (0, -1, float("inf")):
        with pytest.raises(InputError, match="pace"):
            live.joined("a", pace=pace)
    with pytest.raises(Refused, match="from 2 to the collaboration's, 1,000"):
        live.joined("a", horizon=1001)
    assert not live.state.members

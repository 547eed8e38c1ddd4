"""Clients while the operator adds arms."""

from pathlib import Path

import pytest
from tests.client.conftest import New

from partage.client.errors import Refused
from partage.ledger.verify import verify


def test_a_client_takes_an_arm_that_is_added(new: New, tmp_path: Path) -> None:
    live = new(["a", "b"], horizon=400, most_arms=3)
    agent = live.joined("a", "b", state=tmp_path / "agent.json")
    other = live.joined("a", "b", invite="other")
    agent.play(lambda arm: 0.5, 20)
    view = live.app.operator.add_arm(live.id, "c")
    assert (view.arms, view.most_arms) == (["a", "b", "c"], 3)
    assert live.app.operator.add_arm(live.id, "c").arms == view.arms, "it is not added again"
    agent.share(["a", "b", "c"])  # before the client has seen the board with it
    assert agent.shares == ["a", "b", "c"]
    played = agent.play(lambda arm: float(arm == "c"), 60)
    assert played.pulls["c"] > 10
    assert [arm.name for arm in other.board().arms] == ["a", "b", "c"]
    other.play(lambda arm: float(arm == "c"), 30)
    again = live.resumed(tmp_path / "agent.json")
    again.play(lambda arm: float(arm == "c"), 20)
    other.ledger(tmp_path / "copy.ndjson")
    found = verify(tmp_path / "copy.ndjson", head=other.head)
    assert found.ok, found.problem
    with pytest.raises(Refused, match="may have 3 arms"):
        live.app.operator.add_arm(live.id, "d")


def test_consent_that_was_given_elsewhere_to_an_arm_that_was_added(new: New) -> None:
    live = new(["a", "b"], horizon=400, most_arms=3)
    agent = live.joined("a", "b")
    agent.play(lambda arm: 0.5, 10)
    live.app.operator.add_arm(live.id, "c")
    live.consent(agent.id, "a", "b", "c")
    played = agent.play(lambda arm: 0.5, 60)
    assert played.pulls.get("c")


def test_an_arm_that_nobody_shares_is_pulled_in_private(new: New, tmp_path: Path) -> None:
    live = new(["a", "b"], horizon=400, most_arms=3, rule="balanced-glr")
    agent = live.joined("a", "b", state=tmp_path / "agent.json")
    agent.play(lambda arm: 0.5, 10)
    live.app.operator.add_arm(live.id, "c")
    played = agent.play(lambda arm: float(arm != "b"), 100)
    assert played.hidden > 0
    assert played.pulls["c"] == played.hidden
    assert live.state.board.counts[2] == 0
    again = live.resumed(tmp_path / "agent.json")
    assert again.play(lambda arm: float(arm != "b"), 50).hidden > 0

"""An agent's new token: it gets one by itself, also across crashes, or from the operator."""

from pathlib import Path

import httpx
import pytest
from tests.support.live import AFTER, BEFORE, New

from partage.client.errors import Refused, Unreachable
from partage.errors import InputError


@pytest.mark.parametrize("signed", [False, True])
def test_a_new_token_and_key_end_the_old_ones(new: New, signed: bool, tmp_path: Path) -> None:
    live, path = new(["a", "b"], signed=signed), tmp_path / "s.json"
    agent = live.joined("a", "b", state=path)
    claim = agent.ask()
    thief = live.resumed(path)
    agent.rotate()
    agent.tell(claim, 0.5)
    with pytest.raises(Refused) as refused:
        thief.share([])
    assert refused.value.code == "token_ended"
    assert live.state.members[agent.id].shares == {0, 1}
    assert live.state.members[agent.id].key == agent._protocol.saved.private_key.public
    again = live.resumed(path)
    again.tell(again.ask(), 0.5)
    assert live.state.version == 2


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("fault", [BEFORE, AFTER])
def test_after_a_crash_the_new_token_is_asked_for_again(new: New, signed: bool, fault: str, tmp_path: Path) -> None:
    live, path = new(["a", "b"], signed=signed), tmp_path / "s.json"
    agent = live.joined("a", "b", state=path)
    agent.tell(agent.ask(), 0.5)
    live.fault = lambda request: fault if request.url.path.endswith("/token") else None
    with pytest.raises(Unreachable):
        agent.rotate()
    live.fault = lambda request: None
    again = live.resumed(path)
    again.tell(again.ask(), 0.5)
    assert again._protocol.saved.rotating is None
    assert live.state.version == 2
    assert live.state.members[agent.id].epoch == 1
    assert live.state.members[agent.id].key == again._protocol.saved.private_key.public


def test_a_lost_answer_is_asked_for_again(new: New) -> None:
    live = new(["a", "b"], signed=True)
    agent = live.joined("a", "b")
    lost = iter([AFTER])
    live.fault = lambda request: next(lost, None) if request.url.path.endswith("/token") else None
    agent.rotate()
    agent.tell(agent.ask(), 0.5)
    assert live.state.members[agent.id].epoch == 1


def test_a_token_from_the_operator_is_taken(new: New, tmp_path: Path) -> None:
    live, path = new(["a", "b"], signed=True), tmp_path / "s.json"
    agent, other = live.joined("a", "b", invite="1", state=path), live.joined(invite="2")
    live.app.operator.revoke_token(live.id, agent.id)
    with pytest.raises(Refused) as refused:
        agent.ask()
    assert refused.value.code == "token_ended"
    made = live.app.operator.token(live.id, agent.id)
    again = live.agents.resume(path, token=made.token, **live.options)
    again.tell(again.ask(), 0.5)
    theirs = live.app.operator.token(live.id, other.id).token
    with pytest.raises(InputError):
        live.agents.resume(path, token=theirs, **live.options).ask()


@pytest.mark.parametrize("tries", [False, True])
@pytest.mark.parametrize("signed", [False, True])
def test_a_new_key_is_kept_though_the_operator_ended_the_token_that_came_with_it(
    new: New, signed: bool, tries: bool, tmp_path: Path
) -> None:
    live, path = new(["a", "b"], signed=signed), tmp_path / "s.json"
    agent = live.joined("a", "b", state=path)
    live.fault = lambda request: AFTER if request.url.path.endswith("/token") else None
    with pytest.raises(Unreachable):
        agent.rotate()
    live.fault = lambda request: None
    made = live.app.operator.token(live.id, agent.id)
    if tries:  # with the token that it has
        with pytest.raises(Refused) as refused:
            live.resumed(path).ask()
        assert refused.value.code == "token_ended"
    again = live.agents.resume(path, token=made.token, **live.options)
    again.tell(again.ask(), 0.5)
    assert again._protocol.saved.rotating is None
    assert live.state.members[agent.id].key == again._protocol.saved.private_key.public
    again.rotate()  # it still signs
    assert live.state.members[agent.id].key == again._protocol.saved.private_key.public


def test_a_rotation_that_is_refused_keeps_the_old_key(new: New, tmp_path: Path) -> None:
    live, path = new(["a", "b"], signed=True), tmp_path / "s.json"
    agent = live.joined("a", "b", state=path)
    before = agent._protocol.saved.key
    refusal = httpx.Response(409, json={"error": "No.", "code": "no"})
    live.fault = lambda request: refusal if request.url.path.endswith("/token") else None
    with pytest.raises(Refused, match=r"No\."):
        agent.rotate()
    assert (agent._protocol.saved.rotating, agent._protocol.saved.key) == (None, before)
    agent.tell(agent.ask(), 0.5)


def test_a_removed_agent_is_told_why(new: New) -> None:
    live = new(["a", "b"], signed=True)
    agent = live.joined("a", "b")
    claim = agent.ask()
    removed = live.app.operator.remove(live.id, agent.id, "It sleeps.")
    assert removed.left
    with pytest.raises(Refused) as refused:
        agent.tell(claim, 0.5)
    assert refused.value.code == "removed"
    assert "It sleeps." in str(refused.value)
    assert agent.settlement().rows

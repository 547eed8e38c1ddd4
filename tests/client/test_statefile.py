"""The state file, and agents that resume."""

import shutil
import stat
from functools import partial
from pathlib import Path

import httpx
import msgspec
import pytest
from tests.support.live import AFTER, URL, App, Bridge, New

from partage.client import Agent, Refused, Unreachable
from partage.errors import InputError

PRIVATE = 0.7182818284  # a reward that must never be seen outside


def test_the_state_file_is_for_its_owner_alone_and_resumes(new: New, tmp_path: Path) -> None:
    live = new(["a", "b", "c"], horizon=100)
    live.join("a", "b")
    state = tmp_path / "state.json"
    with live.joined("a", state=state) as agent:
        agent.play(lambda arm: PRIVATE, 20)
        head = agent.head
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert len(head) == 64
    with live.resumed(state) as again:
        assert (again.id, again.head, again.shares) == (agent.id, head, ["a"])
        played = again.play(lambda arm: PRIVATE, 100)
        assert sum(played.pulls.values()) == 80  # of 100, after 20
        before, after = (someone._protocol.saved.own["c"] for someone in (agent, again))
        assert after[0] == before[0] + played.hidden
    assert list(tmp_path.iterdir()) == [state]


def test_joining_with_other_shares_changes_the_consent(new: New, tmp_path: Path) -> None:
    live = new(["a", "b"])
    live.joined("a", "b", state=tmp_path / "s.json").close()
    agent = live.joined("a", state=tmp_path / "s.json")
    assert agent.shares == ["a"]
    assert live.state.members[agent.id].shares == {0}
    assert len(live.state.members) == 1


def test_a_state_file_of_another_collaboration_is_refused(new: New, tmp_path: Path) -> None:
    live = new(["a"])
    live.joined("a", state=tmp_path / "s.json").close()
    with pytest.raises(InputError, match=f"belongs to an agent in collaboration {live.id}"):
        Agent.join(URL, "c2", "invite", "Shop", ["a"], state=tmp_path / "s.json")
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(InputError, match="is not a client's state file"):
        Agent.resume(tmp_path / "other.json")
    with pytest.raises(InputError, match="cannot be read"):
        Agent.resume(tmp_path / "none.json")


def test_a_join_that_was_refused_can_be_tried_again(new: New, tmp_path: Path) -> None:
    live, state = new(["a"]), tmp_path / "s.json"
    with pytest.raises(Refused, match="names an arm that is not in this collaboration") as caught:
        live.joined("z", state=state)
    assert (caught.value.status, caught.value.field) == (422, "shares")
    with pytest.raises(InputError, match="has not joined yet"):
        Agent.resume(state)
    assert live.joined("a", state=state).shares == ["a"]


@pytest.mark.parametrize(("name", "shares"), [("Shop", ["a"]), ("Another", ["a", "b"])])
def test_a_join_whose_answer_was_lost_cannot_be_repeated_as_another(
    new: New, name: str, shares: list[str], tmp_path: Path
) -> None:
    live, state = new(["a", "b"]), tmp_path / "s.json"
    join = partial(live.agents.join, URL, live.id, live.invite("i"), state=state, **live.options)
    live.fault = lambda request: AFTER
    with pytest.raises(Unreachable):
        join("Shop", ["a", "b"])
    live.fault = lambda request: None
    with pytest.raises(Refused, match="with the name Shop and sharing a, b; repeat it as it was") as refused:
        join(name, shares)
    assert refused.value.code == "request_reused"
    agent = join("Shop", ["b", "a"])
    agent.share(["a"])
    assert agent.shares == ["a"]
    assert len(live.state.members) == 1


def test_an_agent_from_a_token_knows_what_it_shares_and_how_far_it_is(new: New) -> None:
    live = new(["a", "b"], horizon=50)
    with live.joined("a", "b") as agent:
        agent.play(lambda arm: 0.5, 20)
    with live.from_token(agent.id) as again:
        played = again.play(lambda arm: 0.5, 100)
    assert again.shares == ["a", "b"]
    assert sum(played.pulls.values()) == 30
    assert live.state.members[agent.id].used == 50


def test_a_claim_is_counted_once_however_often_it_comes(new: New, tmp_path: Path) -> None:
    live, state = new(["a", "b"], horizon=50), tmp_path / "s.json"
    agent = live.joined("a", "b", state=state)
    claim = agent.ask()
    for _ in range(5):
        agent.close()
        agent = live.resumed(state)
        assert agent.ask() == claim
        assert agent._protocol.saved.used == live.state.members[agent.id].used == 1
    agent.tell(claim, 0.5)
    assert sum(agent.play(lambda arm: 0.5, 100).pulls.values()) == 49
    assert agent._protocol.saved.used == live.state.members[agent.id].used == 50


@pytest.mark.parametrize("opened", [True, False])
def test_an_agent_from_a_token_counts_an_open_claim_once(new: New, opened: bool) -> None:
    live = new(["a", "b"], horizon=50)
    agent = live.joined("a", "b")
    if opened:
        agent.ask()
    with live.from_token(agent.id) as again:
        pull = again.ask()
        assert again._protocol.saved.used == live.state.members[agent.id].used == 1
        again.tell(pull, 0.5)
        assert sum(again.play(lambda arm: 0.5, 100).pulls.values()) == 49


RELEASE = Path(__file__).parents[1] / "golden" / "release-0.1"


def test_a_state_file_of_release_0_1_resumes(tmp_path: Path) -> None:
    """Its last report was not acknowledged, and is sent first."""
    shutil.copy(RELEASE / "partage.db", tmp_path)
    state = msgspec.json.decode((RELEASE / "agent.json").read_bytes())
    state["url"] = URL
    (tmp_path / "agent.json").write_bytes(msgspec.json.encode(state))
    app = App(tmp_path)
    try:
        sent: list[str] = []

        class Seen(Bridge):
            def handle_request(self, request: httpx.Request) -> httpx.Response:
                sent.append(f"{request.method} {request.url.path.rpartition('/')[2]}")
                return super().handle_request(request)

        with Agent.resume(tmp_path / "agent.json", transport=Seen(app), listen=False) as agent:
            pull = agent.ask()
            agent.tell(pull, 0.5)
            assert (agent.id, agent.shares) == ("a3", ["Old Mill"])
            assert agent.unpaid == 0
        assert sent.index("POST commits") < len(sent) - 1
        assert len(agent.head) == 64
    finally:
        app.close()
    kept = msgspec.json.decode((tmp_path / "agent.json").read_bytes())
    assert kept.keys() > state.keys(), "nothing is lost, and later releases added fields"
    assert kept["log_key"], "and there are receipts"
    assert kept["checkpoint"]
    assert kept["report"] is None

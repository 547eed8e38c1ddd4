"""The end of play, and consent that changes here or elsewhere."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.live import URL, New, explore_to_the_end

from partage.client import Agent, AsyncAgent, Closed, HorizonReached, Refused
from partage.errors import InputError


def test_the_horizon_ends_the_pulls(new: New) -> None:
    live = new(["a", "b"], horizon=30)
    with live.joined("a", "b") as agent:
        played = agent.play(lambda arm: 0.5, 100)
        assert sum(played.pulls.values()) == 30 == played.explore + played.commit
        assert played.ended == "All 30 pulls of the horizon are used."
        with pytest.raises(HorizonReached, match="All 30 pulls"):
            agent.ask()
    assert live.state.members[agent.id].used == 30


def test_the_controllers_word_on_the_horizon_counts(new: New) -> None:
    live = new(["a", "b"], horizon=30)
    agent = live.joined("a", "b")
    claim = agent.ask()
    for _ in range(30):  # another program of the same agent; the first tells that very claim
        live.broadcast(agent.id, 0.5)
    agent.tell(claim, 0.5)
    with pytest.raises(HorizonReached):
        agent.ask()
    assert live.state.members[agent.id].used == 30


def test_a_closed_collaboration_ends_the_pulls(new: New) -> None:
    live = new(["a", "b"])
    agent = live.joined("a", "b")
    pulls = 0

    def pull_arm(arm: str) -> float:
        nonlocal pulls
        pulls += 1
        if pulls == 10:
            live.close()
        return 0.5

    played = agent.play(pull_arm, 100)
    assert pulls == sum(played.pulls.values()) < 100
    assert played.ended is not None
    assert "closed" in played.ended
    with pytest.raises(Closed, match="can still be read"):
        agent.ask()
    agent.close()


def test_consent_can_change_and_cancels_a_claim_on_a_withdrawn_arm(new: New) -> None:
    live = new(["a", "b"])
    live.join("b")
    agent = live.joined("a")
    claim = agent.ask()
    assert claim.arm == "a"
    agent.share(["b"])
    assert live.state.members[agent.id].shares == {1}
    agent.tell(claim, 0.5)  # which is not taken
    assert live.state.version == 0
    live.join("a")
    live.sleep(1)
    pull = agent.ask()
    assert (pull.arm, pull.share) == ("b", True)
    agent.tell(pull, 0.5)
    with pytest.raises(Refused, match="names an arm that is not"):
        agent.share(["z"])
    assert agent.ask().version == 1


def test_a_consent_that_comes_again_late_changes_nothing(new: New) -> None:
    live = new(["a", "b"])
    agent = live.joined("a")
    agent.share(["a", "b"])
    sent = next(request for request in live.requests if request.method == "PATCH")
    agent.share([])
    assert live.answer(sent).status_code == 200  # what the network held back
    assert live.state.members[agent.id].shares == frozenset()
    agent.close()


def test_consent_that_is_given_elsewhere_is_noticed(new: New) -> None:
    live = new(["a", "b"], horizon=1000)
    other = live.join("a", "b")
    with live.joined() as agent:
        agent.play(lambda arm: 0.5, 20)
        live.consent(agent.id, "a", "b")
        live.broadcast(other, 0.5)
        live.sleep(1)
        played = agent.play(lambda arm: 0.5, 400)
        assert agent.shares == ["a", "b"]
    assert played.explore > 100
    assert agent.unpaid == 0


def test_while_its_consent_is_doubtful_the_agent_hardly_pulls(new: New) -> None:
    """Of two changes within a second, the later is read when the second is over."""
    live = new(["a", "b"], horizon=100_000)
    explore_to_the_end(live)
    agent = live.joined()
    agent.ask()
    began = live.now
    for shares, pulls in [("b", 1), ("a", 100)]:
        live.consent(agent.id, shares)
        agent._protocol.following.hear(live.board())
        for _ in range(pulls):
            agent.ask()
        assert agent.shares == [shares]
    assert live.now - began == pytest.approx(1)
    assert len(live.names("GET agents/me")) == 3


def test_consent_that_is_withdrawn_elsewhere_is_noticed(new: New) -> None:
    live = new(["a", "b"], horizon=1000)
    live.join("a", "b")
    with live.joined("a", "b") as agent:
        assert agent.play(lambda arm: 0.5, 20).explore == 20
        live.consent(agent.id)
        live.sleep(1)
        asked = len(live.names("POST ask"))
        assert agent.play(lambda arm: 0.5, 300).commit == 300
        assert len(live.names("POST ask")) == asked
        assert agent.shares == []
    assert live.state.members[agent.id].used == 320
    assert agent.unpaid == 0


@pytest.mark.parametrize("given", [[], ["a", "b"]])
def test_a_change_that_the_board_does_not_show_is_noticed_by_what_is_refused(new: New, given: list[str]) -> None:
    """Another agent did the opposite at the same time, so each arm has as many sharers as before."""
    live = new(["a", "b"], horizon=1000)
    other = live.join("a", "b") if not given else live.join()
    third = live.join("a", "b")
    with live.joined(*given) as agent:
        agent.play(lambda arm: 0.5, 3)
        live.consent(agent.id, *([] if given else ["a", "b"]))
        live.consent(other, *given)
        live.broadcast(third, 0.5)
        for _ in range(60):
            live.sleep(0.5)
            agent.tell(agent.ask(), 0.5)
        assert agent.shares == ([] if given else ["a", "b"])
        assert agent._protocol.following.shares == live.state.members[agent.id].shares
        unpaid = agent.unpaid
        agent.play(lambda arm: 0.5, 100)
    assert unpaid == agent.unpaid
    assert unpaid <= 30  # those of one report, 15 seconds long


def test_consent_is_read_again_when_sharers_change_at_most_once_a_second(new: New) -> None:
    live = new(["a", "b"], horizon=100_000)
    explore_to_the_end(live)
    with live.joined() as agent:
        agent.play(lambda arm: 0.5, 1000)
        assert len(live.names("GET agents/me")) == 1
        for _ in range(50):
            live.join("a")
            live.sleep(0.1)
            agent._protocol.following.hear(live.board())
            agent.ask()
        assert 4 <= len(live.names("GET agents/me")) <= 7


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("crash", [False, True])
def test_a_claim_on_an_arm_that_is_withdrawn_elsewhere_does_not_end_the_loop(
    new: New, again: bool, crash: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    live, state = new(["a", "b"], horizon=100), tmp_path / "s.json"
    live.join("b")
    agent = live.joined("a", state=state)
    claim = agent.ask()
    assert claim.share
    live.consent(agent.id)
    if again:
        live.consent(agent.id, "a")
    if crash:
        agent = live.resumed(state)
        claim = agent.ask()
    agent.tell(claim, 0.123)
    assert "You withdrew the arm of this pull" in caplog.text
    pull = agent.ask()
    assert (pull.share, pull.arm if again else None) == ((True, "a") if again else (False, None))
    agent.tell(pull, 0.5)
    agent.close()
    assert live.bodies().count(b"0.123") == 1
    assert live.state.version == again
    assert agent._protocol.saved.used == live.state.members[agent.id].used == 2


def test_a_claim_of_another_agent_is_refused(new: New) -> None:
    live = new(["a", "b"])
    others, mine = live.joined("a", invite="1"), live.joined("b", invite="2")
    claim = others.ask()
    with pytest.raises(Refused, match="handed to another agent"):
        mine.tell(claim, 0.5)


def test_an_agent_that_left_elsewhere_is_told_so(new: New) -> None:
    live = new(["a", "b"])
    live.join("b")
    agent = live.joined("a")
    agent.tell(agent.ask(), 0.5)
    agent.ask()
    live.leave(agent.id)
    live.sleep(1)
    with pytest.raises(Refused, match="You left"):
        agent.ask()
    agent.close()


def test_an_agent_that_left_cannot_ask(new: New) -> None:
    live = new(["a", "b"])
    agent = live.joined("a")
    agent.leave()
    assert live.state.members[agent.id].left
    with pytest.raises(Refused, match="You left"):
        agent.ask()
    agent.close()


@pytest.mark.parametrize("reward", [-0.1, 1.1, float("nan"), float("inf"), None, "1", [0.5]])
def test_rewards_are_checked_before_anything_is_sent(new: New, reward: Any) -> None:
    live = new(["a", "b"])
    agent = live.joined("a", "b")
    pull = agent.ask()
    sent = len(live.requests)
    with pytest.raises(InputError, match="a number from 0 to 1"):
        agent.tell(pull, reward)
    with pytest.raises(InputError, match="a number from 0 to 1"):
        agent.tell(pull._replace(share=False), reward)
    assert len(live.requests) == sent
    assert agent.ask() == pull


def test_arguments_are_checked(new: New, tmp_path: Path) -> None:
    live = new(["a"])
    agent = live.joined("a", state=tmp_path / "s.json")
    with pytest.raises(InputError, match="put it in a list"):
        agent.share("a")
    with pytest.raises(InputError, match="another token"):
        Agent(URL, live.id, "secret", state=tmp_path / "s.json")
    with pytest.raises(InputError, match="http://"):
        Agent("controller:8000", live.id, "secret")
    with pytest.raises(InputError, match="at least 1"):
        Agent(URL, live.id, "secret", max_pulls_per_board=0)
    with pytest.raises(InputError, match="put it in a list"):
        Agent.join(URL, live.id, "invite", "Shop", "Supplier A")
    with pytest.raises(InputError, match="a list of arm names, not 5"):
        agent.share(5)  # type: ignore[arg-type]
    for most in ("x", None, 2.5):
        with pytest.raises(InputError, match=r"max_pulls_per_board is .* whole number of at least 1"):
            Agent(URL, live.id, "secret", max_pulls_per_board=most)  # type: ignore[arg-type]
    for address in (None, 5, httpx.URL(URL)):
        with pytest.raises(InputError, match="must look like http://"):
            Agent(address, live.id, "secret")  # type: ignore[arg-type]


@pytest.mark.parametrize("agents", [Agent, AsyncAgent])
def test_an_unknown_option_is_refused(agents: type[Agent] | type[AsyncAgent]) -> None:
    names = "state, max_pulls_per_board, own_rewards, patience, listen, rules, transport"
    allowed = f"no option colour; it must be one of {names}"
    with pytest.raises(InputError, match=allowed):
        agents(URL, "c1", "secret", colour=3)  # type: ignore[call-arg]


def test_an_unknown_option_is_refused_before_the_agent_joins(new: New) -> None:
    live = new(["a"])
    with pytest.raises(InputError, match="no option colour"):
        live.joined("a", colour=3)
    assert live.requests == []

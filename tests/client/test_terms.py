"""An agent where commits earn nothing, and where claims keep an interval: what it sends, and when it asks."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from tests.support.live import URL, Live, New, explore_to_the_end

from partage.client.statefile import AgentState
from partage.ledger.messages import CommitRun, Commits
from partage.ledger.verify import verify

POOL = {"settlement": "pool", "prepaid": 5.0}


def reports(live: Live) -> list[dict[str, object]]:
    """The reports of commits that were sent, without their ids."""
    sent = [json.loads(one.content) for one in live.requests if one.url.path.endswith("/commits")]
    return [{name: value for name, value in body.items() if name != "request"} for body in sent]


@pytest.mark.parametrize("terms", [{"settlement": "none"}, POOL])
def test_only_a_number_leaves_the_process(new: New, terms: dict[str, object]) -> None:
    live = new(["a", "b"], **terms)
    explore_to_the_end(live)
    with live.joined("b") as agent:
        played = agent.play(lambda arm: 0.5, 300)
    assert played.commit == 300
    assert {*reports(live)[0]} == {*reports(live)[-1]} == {"unnamed"}
    assert b'"a"' not in live.bodies(), "no arm but the one it shares is named"
    assert (live.state.members[agent.id].unnamed, live.state.members[agent.id].commit) == (300, {})
    live.close()
    ledger = live.app.operator.ledger_parts(live.id)
    assert verify(b"".join(ledger).splitlines(keepends=True)).ok


def test_the_same_for_asyncio(new: New) -> None:
    live = new(["a", "b"], **POOL)
    explore_to_the_end(live)

    async def play() -> None:
        options = {"transport": live.async_transport, "listen": False}
        async with await live.async_agents.join(URL, live.id, live.invite("one"), "Shop", ["b"], **options) as agent:
            await agent.play(lambda arm: 0.5, 200)

    asyncio.run(play())
    assert all({*one} == {"unnamed"} for one in reports(live))
    assert live.state.members["a3"].unnamed == 200


def test_what_an_earlier_client_counted_by_arm_is_sent_as_a_number(new: New, tmp_path: Path) -> None:
    """Its report was refused, so it is still in the state file when the client is upgraded."""
    live = new(["a", "b"], **POOL)
    explore_to_the_end(live)
    state = tmp_path / "s.json"
    agent = live.joined("b", state=state)
    agent.close()
    saved = msgspec.json.decode(state.read_bytes(), type=AgentState)
    run = CommitRun(version=live.state.version, arm="a", pulls=7)
    saved.report, saved.runs = Commits(request="refused before", runs=[run], unnamed=1), [run]
    state.write_bytes(msgspec.json.encode(saved))
    live.resumed(state).close()
    assert reports(live) == [{"unnamed": 8}, {"unnamed": 7}]
    assert live.state.members[agent.id].unnamed == 15


@pytest.mark.parametrize("restarted", [False, True])
def test_it_does_not_ask_for_a_claim_in_vain(new: New, tmp_path: Path, restarted: bool) -> None:
    live = new(["a", "b"], claim_interval=60, **POOL)
    live.join("a")
    state = tmp_path / "s.json"
    agent = live.joined("a", "b", state=state)
    pull = agent.ask()
    assert pull.share
    agent.tell(pull, 0.5)
    began, asked = live.now, len(live.names("POST ask"))
    if restarted:
        agent.close()
        agent = live.resumed(state)
        asked += 1  # once, because a claim may have been handed out that it does not know of
    while live.now < began + 59:
        assert not agent.ask().share
        live.sleep(0.5)
    assert len(live.names("POST ask")) == asked
    live.sleep(1.5)
    assert agent.ask().share
    claims = live.app.operator.agents(live.id)[1]
    assert 0 < claims.claim_in <= 60
    agent.close()


def test_without_an_interval_nothing_waits(new: New) -> None:
    live = new(["a", "b"], **POOL)
    with live.joined("a", "b") as agent:
        for _ in range(5):
            pull = agent.ask()
            assert pull.share
            agent.tell(pull, 0.5)
    assert live.app.operator.agents(live.id)[0].claim_in == 0

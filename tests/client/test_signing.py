"""Members that sign: the client signs by itself, and a token without the key is worth nothing but reading."""

from pathlib import Path

import httpx
import pytest
from tests.client.conftest import New
from tests.support.live import AFTER, URL

from partage.client import Agent
from partage.client.errors import Refused
from partage.ledger.events import Requested, decode
from partage.ledger.signatures import HEADER
from partage.ledger.verify import verify


def test_everything_an_agent_asks_for_is_signed(new: New, tmp_path: Path) -> None:
    live = new(["a", "b"], horizon=60, signed=True, ordered=False)
    with live.joined("a", "b", invite="1", state=tmp_path / "1.json") as one:
        with live.joined("b", invite="2", state=tmp_path / "2.json") as two:
            for _ in range(40):
                for agent in (one, two):
                    pull = agent.ask()
                    agent.tell(pull, 0.9 if pull.arm == "a" else 0.1)
            fan = live.joined(invite="3")
            assert not fan.ask().share
            fan.close()
            two.share([])
            two.leave()
        one.flush()
        one.ledger(tmp_path / "copy.ndjson")
        verdict = verify(tmp_path / "copy.ndjson")
    assert verdict.ok, verdict.problem
    rows = [decode(row.body) for row in live.app.controller.store.rows(live.id)]
    asked = [row for row in rows if isinstance(row, Requested)]
    assert asked
    assert all(isinstance(row.signature, str) for row in asked)
    assert {"join", "reveal", "claim", "tell", "commit", "consent", "leave"} <= {
        row.__struct_config__.tag for row in asked
    }


def test_a_stolen_token_reads_and_does_nothing_else(new: New) -> None:
    live = new(["a", "b"], signed=True)
    agent = live.joined("a", "b")
    claim = agent.ask()
    thief = Agent(URL, live.id, agent._protocol.saved.token, transport=live.transport, listen=False)
    assert thief.board().arms
    for attempt in (lambda: thief.tell(claim, 1.0), lambda: thief.share(["a"]), thief.leave):
        with pytest.raises(Refused) as refused:
            attempt()
        assert refused.value.code == "signature_required"
    agent.tell(claim, 0.5)
    assert live.state.members[agent.id].shares == {0, 1}


def test_a_signed_request_that_is_repeated_gets_the_same_answer(new: New) -> None:
    live = new(["a", "b"], signed=True)
    agent = live.joined("a", "b")
    claim = agent.ask()
    lost = iter([AFTER, AFTER])
    live.fault = lambda request: next(lost, None) if request.url.path.endswith("/tell") else None
    agent.tell(claim, 0.5)
    live.fault = lambda request: None
    sent = [request for request in live.requests if request.url.path.endswith("/tell")]
    assert len({request.headers[HEADER] for request in sent}) == 1
    assert live.state.version == 1
    captured = httpx.Request("POST", sent[0].url, headers=sent[0].headers, content=sent[0].content)
    assert live.answer(captured).status_code == 200
    assert live.state.version == 1
    ask = next(request for request in live.requests if request.url.path.endswith("/ask"))
    agent.ask()
    before = live.state.seq
    live.answer(httpx.Request("POST", ask.url, headers=ask.headers, content=ask.content))
    assert live.state.seq == before


def test_an_agent_goes_on_after_another_program_of_it_signed(new: New, tmp_path: Path) -> None:
    live = new(["a", "b"], signed=True)
    path = tmp_path / "s.json"
    agent = live.joined("a", "b", state=path)
    agent.share(["a"])
    again = live.resumed(path)
    again._protocol.saved.number += 10**10  # its clock is months ahead
    again.share(["b"])
    agent.share(["a", "b"])
    assert live.state.members[agent.id].shares == {0, 1}


def test_where_signing_is_off_the_client_signs_all_the_same(new: New) -> None:
    live = new(["a", "b"])
    agent = live.joined("a", "b")
    agent.tell(agent.ask(), 0.5)
    rows = [decode(row.body) for row in live.app.controller.store.rows(live.id)]
    assert all(isinstance(row.signature, str) for row in rows if isinstance(row, Requested))


@pytest.mark.parametrize("value", ["x", "1 " + "A" * 10, "0 " + "A" * 86 + "=="])
def test_a_header_that_is_no_signature_is_refused(new: New, value: str) -> None:
    live = new(["a", "b"])
    agent = live.joined("a", "b")
    headers = {"Authorization": f"Bearer {agent._protocol.saved.token}", HEADER: value}
    answer = live.answer(httpx.Request("POST", f"{URL}/v1/collaborations/{live.id}/ask", headers=headers))
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid_field"

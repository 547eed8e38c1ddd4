"""The tie order, as clients draw it: each reveals its nonce once it has checked the draw."""

from pathlib import Path

import httpx
import pytest
from tests.support.live import AFTER, BEFORE, New

from partage.client.errors import Forked
from partage.ledger.events import Reveal, decode
from partage.ledger.ties import REVEAL_SECONDS, tie_seed_of
from partage.ledger.verify import verify


def test_one_agent_reveals_and_pulls_without_waiting(new: New) -> None:
    live = new(["a", "b", "c"], ordered=False)
    agent, began = live.joined("a", "b"), live.now
    assert agent.ask().share
    assert live.now == began
    assert live.names("POST") == ["POST agents", "POST ask", "POST reveal", "POST ask"]
    seed = live.app.controller.secret.tie_seed(live.id)
    nonce = bytes.fromhex(agent._protocol.saved.nonce)
    assert live.state.tie_seed == tie_seed_of(seed, [nonce])


def test_whoever_does_not_ask_is_waited_for_two_seconds_and_skipped(new: New, tmp_path: Path) -> None:
    live = new(["a", "b", "c"], ordered=False)
    agent, idle = live.joined("a", "b", invite="1"), live.joined("c", invite="2")
    began = live.now
    agent.tell(agent.ask(), 0.5)
    assert REVEAL_SECONDS <= live.now - began < REVEAL_SECONDS + 1
    order = live.state.order
    assert order is not None
    assert order.skipped == (idle.id,)
    idle.ask()  # goes on without its nonce
    agent.ledger(tmp_path / "copy.ndjson")
    verdict = verify(tmp_path / "copy.ndjson")
    assert verdict.ok, verdict.problem
    assert any("do not count: Shop" in sentence for sentence in verdict.checked)


def test_an_agent_that_shares_nothing_has_the_order_fixed_too(new: New) -> None:
    live = new(["a", "b"], ordered=False)
    live.join("a", "b")
    fan = live.joined()
    assert not fan.ask().share
    assert live.state.ordered


def test_before_any_arm_is_shared_only_hidden_arms_are_pulled(new: New) -> None:
    live = new(["a", "b"], ordered=False)
    alone = live.joined()
    assert alone.ask().hidden
    assert not live.state.ordered


@pytest.mark.parametrize("fault", [BEFORE, AFTER])
@pytest.mark.parametrize("path", ["/ask", "/draw", "/reveal"])
def test_each_request_can_be_lost_and_repeated(new: New, path: str, fault: str) -> None:
    live = new(["a", "b"], ordered=False)
    agent = live.joined("a", "b")
    lost = iter([fault, fault])
    live.fault = lambda request: next(lost, None) if request.url.path.endswith(path) else None
    assert agent.ask().share
    reveals = [row for row in live.app.controller.store.rows(live.id) if isinstance(decode(row.body), Reveal)]
    assert len(reveals) == 1
    assert live.state.order is not None


def test_after_a_crash_the_saved_nonce_is_revealed(new: New, tmp_path: Path) -> None:
    live, path = new(["a", "b"], ordered=False), tmp_path / "s.json"
    agent = live.joined("a", "b", state=path)
    nonce = agent._protocol.saved.nonce
    again = live.resumed(path)
    assert again.ask().share
    assert live.state.drawing is not None
    assert live.state.drawing.revealed[again.id].nonce == nonce


def test_an_agent_without_its_nonce_is_skipped(new: New) -> None:
    live = new(["a", "b"], ordered=False)
    joined = live.joined("a", "b")
    agent = live.from_token(joined.id)
    assert agent.ask().share
    assert live.state.order is not None
    assert live.state.order.skipped == (joined.id,)


def test_a_nonce_is_not_revealed_before_the_draw_is_receipted(new: New) -> None:
    """Else the operator could still let another member in, whose nonce it chooses."""
    live = new(["a", "b"], ordered=False)
    agent = live.joined("a", "b")

    def without_receipt(request: httpx.Request) -> httpx.Response | None:
        if not request.url.path.endswith("/draw"):
            return None
        drawn = live.answer(request).json()
        del drawn["receipt"]
        return httpx.Response(200, json=drawn)

    live.fault = without_receipt
    with pytest.raises(Forked):
        agent.ask()
    assert agent._protocol.saved.nonce.encode() not in live.bodies()


def test_a_draw_with_other_members_than_its_row_is_not_believed(new: New) -> None:
    live = new(["a", "b"], ordered=False)
    agent = live.joined("a", "b")

    def other_members(request: httpx.Request) -> httpx.Response | None:
        if not request.url.path.endswith("/draw"):
            return None
        drawn = live.answer(request).json()
        return httpx.Response(200, json=drawn | {"members": [*drawn["members"], "a9"]})

    live.fault = other_members
    with pytest.raises(Forked):
        agent.ask()
    assert agent._protocol.saved.nonce.encode() not in live.bodies()

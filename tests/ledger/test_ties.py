"""The tie order: drawn by the operator and the members together, so that nobody chooses it."""

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from tests.support.sequences import SEED, START, Table, created

from partage.ledger import moves
from partage.ledger.chain import GENESIS, line, seal
from partage.ledger.events import AnyEvent, Claim, Draw, Order, Reveal
from partage.ledger.refusals import Refused
from partage.ledger.state import State, tie_order
from partage.ledger.ties import REVEAL_SECONDS, commitment_to, tie_seed_of
from partage.ledger.verify import verify
from partage.ledger.views import board_view, collaboration_view, draw_view

NONCES = [bytes([number]) * 16 for number in range(1, 5)]
WAIT = int(REVEAL_SECONDS * 1000)


def code(move: Callable[..., Any], *given: Any) -> str:
    with pytest.raises(Refused) as refused:
        move(*given)
    return refused.value.code


def kinds(table: Table) -> list[str]:
    return [type(event).__name__ for event in table.events]


def drawn(nonces: int = 2) -> tuple[Table, list[str]]:
    """A collaboration in which these members committed to nonces, and the first has asked."""
    table = Table(created(arms=["a", "b", "c"]))
    agents = [table.join(0, 1, 2, nonce=nonce) for nonce in NONCES[:nonces]]
    assert code(table.ask, agents[0]) == "order_pending"
    return table, agents


def forged(events: list[AnyEvent]) -> str:
    """What `verify` says about these events, numbered and hashed anew."""
    head, lines = GENESIS, []
    for number, event in enumerate(events, start=1):
        event = msgspec.structs.replace(event, seq=number)
        row = seal(event, head)
        head = row.head
        lines.append(line(row, event, None))
    return str(verify(lines).problem)


def test_without_commitments_the_first_ask_fixes_the_order() -> None:
    table = Table(created(arms=["a", "b", "c"]))
    agent = table.join(0, 1, 2)
    assert board_view(table.state).tie_order == []
    assert collaboration_view(table.state).tie_seed is None
    table.ask(agent)
    assert kinds(table) == ["Create", "Join", "Order", "Claim"]
    key = hashlib.sha256(b"partage/tie/v1" + bytes.fromhex(SEED)).hexdigest()[:32]
    assert collaboration_view(table.state).tie_seed == key
    assert board_view(table.state).tie_order == ["abc"[arm] for arm in tie_order(key, 3)]
    verdict = verify(table.lines())
    assert verdict.ok, verdict.problem
    assert any("The operator chose" in sentence for sentence in verdict.trusted)


def test_all_reveal_and_nobody_waits() -> None:
    table, (ada, bob) = drawn()
    assert draw_view(table.state, table.now).waiting == [ada, bob]
    assert draw_view(table.state, table.now).seconds == REVEAL_SECONDS
    assert board_view(table.state).drawing is not None
    table.reveal(bob, NONCES[1])
    assert code(table.ask, bob) == "order_pending"
    table.reveal(ada, NONCES[0])
    assert table.ask(bob).share
    assert board_view(table.state).drawing is None
    assert kinds(table) == ["Create", "Join", "Join", "Draw", "Reveal", "Reveal", "Order", "Claim"]
    assert table.state.tie_seed == tie_seed_of(bytes.fromhex(SEED), NONCES[:2]), "in order of joining"
    for reader in (None, ada, bob):
        verdict = verify(table.lines(reader), agent=reader)
        assert verdict.ok, verdict.problem
        assert any("Agent 1, Agent 2" in sentence for sentence in verdict.trusted)


def test_who_does_not_reveal_is_skipped_and_named() -> None:
    table, (ada, bob) = drawn()
    table.reveal(ada, NONCES[0])
    table.now += WAIT - 1
    assert code(table.ask, ada) == "order_pending"
    table.now += 1
    table.ask(ada)
    order = table.state.order
    assert order is not None
    assert order.skipped == (bob,)
    assert order.tie_seed == tie_seed_of(bytes.fromhex(SEED), NONCES[:1])
    assert code(table.reveal, bob, NONCES[1]) == "order_fixed"
    verdict = verify(table.lines())
    assert any("do not count: Agent 2" in sentence for sentence in verdict.checked)


def test_reveals_that_are_repeated_wrong_or_uncalled_for() -> None:
    table = Table(created())
    ada = table.join(0, 1, nonce=NONCES[0])
    eve = table.join(0, 1)
    assert code(table.reveal, ada, NONCES[0]) == "no_draw"
    assert code(table.ask, ada) == "order_pending"
    late = table.join(0, nonce=NONCES[1])
    written = len(table.events)
    assert code(table.reveal, late, NONCES[1]) == "not_in_draw", "nobody may choose a nonce by what was revealed"
    assert code(table.reveal, eve, NONCES[1]) == "not_in_draw"
    assert code(table.reveal, ada, NONCES[1]) == "wrong_nonce"
    assert len(table.events) == written
    first = table.reveal(ada, NONCES[0])
    assert table.reveal(ada, NONCES[0]) == first
    assert len(table.events) == written + 1
    table.ask(eve)
    assert table.reveal(ada, NONCES[0]) == first, "also after the order"
    assert code(table.reveal, eve, NONCES[0]) == "not_in_draw"
    assert verify(table.lines()).ok


def test_nothing_is_pulled_before_the_order() -> None:
    table, (ada, bob) = drawn()
    assert code(table.commits, ada, "r1", (0, 0, 1)) == "order_pending"
    assert table.state.target() is None
    assert not table.state.claims
    table.reveal(ada, NONCES[0])
    table.reveal(bob, NONCES[1])
    fan = table.join()
    table.follow(fan, "r1", 2)
    assert isinstance(table.events[-2], Order)
    assert verify(table.lines()).ok


def test_a_member_who_left_is_not_waited_for() -> None:
    table, (ada, bob, eve) = drawn(3)
    table.reveal(eve, NONCES[2])
    table.leave(eve)
    table.leave(bob)
    table.reveal(ada, NONCES[0])
    table.ask(ada)
    assert table.state.order is not None
    assert table.state.order.skipped == (bob,)
    assert table.state.tie_seed == tie_seed_of(bytes.fromhex(SEED), [NONCES[0], NONCES[2]]), "it had revealed its own"
    assert verify(table.lines()).ok


def test_earlier_formats_know_no_draw() -> None:
    table = Table(created(format=4))
    ada = table.join(0, 1, nonce=NONCES[0])
    assert table.events[-1].tie_commitment is UNSET
    assert table.ask(ada).share
    assert kinds(table) == ["Create", "Join", "Claim"]
    assert code(table.reveal, ada, NONCES[0]) == "not_in_draw"
    assert code(draw_view, table.state, START) == "no_draw"


def test_a_controller_without_its_seed_hands_out_nothing() -> None:
    table = Table(created())
    agent = table.join(0, 1)
    turn = moves.Turn(table.state, START, lambda: bytes(16))
    assert code(moves.ask, turn, agent, None, False) == "internal"
    assert not turn.events


@given(
    revealing=st.lists(st.sampled_from(range(4)), max_size=6),
    leaving=st.lists(st.sampled_from(range(4)), max_size=2),
    late=st.booleans(),
)
def test_whatever_happens_a_snapshot_agrees(revealing: list[int], leaving: list[int], late: bool) -> None:
    table, agents = drawn(4)
    for who in revealing:
        table.reveal(agents[who], NONCES[who])
    assert State.load(table.state.dump()).dump() == table.state.dump()
    for who in set(leaving):
        table.leave(agents[who])
    asker = table.join(0, 1, 2, nonce=bytes(16))
    table.now += WAIT if late else 0
    pending = set(range(4)) - set(revealing) - set(leaving)
    if pending and not late:
        assert code(table.ask, asker) == "order_pending"
    else:
        table.ask(asker)
        nonces = [NONCES[who] for who in range(4) if who in revealing]
        assert table.state.tie_seed == tie_seed_of(bytes.fromhex(SEED), nonces)
    again = State.load(table.state.dump())
    assert again.dump() == table.state.dump()
    assert again.board.tie_order == table.state.board.tie_order
    assert again.tie_seed == table.state.tie_seed
    assert verify(table.lines()).ok


# --- an operator who wants another order ----------------------------------------------------------------------


def finished() -> list[AnyEvent]:
    """create, join, join, draw, reveal, reveal, order, claim"""
    table, (ada, bob) = drawn()
    table.reveal(ada, NONCES[0])
    table.reveal(bob, NONCES[1])
    table.ask(ada)
    return table.events


def changed(event: AnyEvent, **fields: Any) -> AnyEvent:
    return msgspec.structs.replace(event, **fields)


def test_a_seed_ground_after_the_nonces_were_revealed() -> None:
    events = finished()
    seed = bytes(16)
    events[6] = changed(events[6], seed=seed.hex(), tie_seed=tie_seed_of(seed, NONCES[:2]))
    assert "is not the one that the first line commits to" in forged(events)


def test_a_nonce_that_the_member_did_not_commit_to() -> None:
    events = finished()
    events[4] = changed(events[4], nonce=bytes(16).hex())
    assert "not the nonce" in forged(events)


def test_a_member_left_out_of_the_draw() -> None:
    events = finished()
    events[3] = changed(events[3], members=("a2",))
    assert "does not follow" in forged(events)


def test_a_member_put_into_the_draw_who_joined_later() -> None:
    create, ada, bob, draw, *rest = finished()
    assert "does not follow" in forged([create, ada, draw, bob, *rest])


def test_a_reveal_left_out_is_named_or_waited_for() -> None:
    events = finished()
    alone = tie_seed_of(bytes.fromhex(SEED), NONCES[:1])
    without = [*events[:5], changed(events[6], tie_seed=alone, skipped=("a2",)), events[7]]
    assert "waits for Agent 2" in forged(without), "before the two seconds are over"
    time = events[3].time + WAIT
    late = [*events[:5], changed(events[6], tie_seed=alone, skipped=(), time=time)]
    assert "other members skipped" in forged(late)
    named = [*events[:5], changed(events[6], tie_seed=alone, skipped=("a2",), time=time)]
    assert forged(named) == "None", "the row names who was left out"


def test_a_draw_that_is_repeated_or_left_out() -> None:
    events = finished()
    assert "drawn before" in forged([*events[:4], events[3], *events[4:]])
    assert "waits for Agent 1, Agent 2" in forged([*events[:3], *events[6:]])
    assert "fixed already" in forged([*events[:7], events[6]])
    assert "drawn before" in forged([*events[:7], events[3]])


def test_a_draw_before_any_arm_is_shared() -> None:
    """With nobody to ask, the operator could draw among its own members before the others come."""
    table = Table(created())
    agent = table.join(nonce=NONCES[0])
    assert code(table.ask, agent) == "no_public_arm"
    format = table.state.format
    draw = Draw(seq=3, time=START, format=format, members=(agent,))
    assert "before anybody can ask" in forged([*table.events, draw])
    order = Order(
        seq=3, time=START, format=format, seed=SEED, tie_seed=tie_seed_of(bytes.fromhex(SEED), []), skipped=()
    )
    assert "before anybody can ask" in forged([*table.events, order])


def test_a_claim_before_the_order() -> None:
    events = finished()
    assert "waits for" in forged([*events[:4], events[7]])
    assert "not fixed yet" in forged([*events[:6], events[7]])
    assert all(
        isinstance(event, kind) for event, kind in zip(events[3:], (Draw, Reveal, Reveal, Order, Claim), strict=True)
    )


def test_commitments_that_are_none() -> None:
    events = finished()
    for bad in ("", "0" * 63, "G" * 64, commitment_to(bytes(16)).upper()):
        assert "64 hex digits" in forged([events[0], changed(events[1], tie_commitment=bad or "x")])

"""Tokens that end and members that go: rotate, revoke, remove, as moves and rows of the ledger."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import UNSET
from tests.ledger.test_signatures import KEYS, SignedTable, problem
from tests.support.sequences import Table, created

from partage.ledger import moves
from partage.ledger.events import Lapse, Remove, Revoke, Rotate
from partage.ledger.refusals import Refused
from partage.ledger.state import State
from partage.ledger.verify import verify
from partage.ledger.views import agent_views, board_view


def code(move: Callable[..., Any], *given: Any) -> str:
    with pytest.raises(Refused) as refused:
        move(*given)
    return refused.value.code


def test_only_the_last_token_counts() -> None:
    table = Table(created())
    agent, other = table.join(0), table.join(1)
    moves.check_token(table.state, agent, 0)
    table.move(moves.rotate, agent)
    assert code(moves.check_token, table.state, agent, 0) == "token_ended"
    moves.check_token(table.state, agent, 1)
    table.move(moves.revoke, agent)
    table.move(moves.revoke, agent)
    assert [type(event) for event in table.events[-2:]] == [Rotate, Revoke], "revoking twice writes one row"
    assert code(moves.check_token, table.state, agent, 1) == "token_ended"
    table.move(moves.renew, agent)
    moves.check_token(table.state, agent, 2)
    moves.check_token(table.state, other, 0)
    assert State.load(table.state.dump()).dump() == table.state.dump()
    assert verify(table.lines()).ok


def test_a_new_key_is_signed_by_the_old_one() -> None:
    table = SignedTable()
    agent, other = table.join(0, 1), table.join(0)
    new = KEYS[4]
    assert code(table.move, moves.rotate, agent) == "signature_required"
    assert code(table.move, moves.rotate, agent, new.public) == "signature_required"
    taken = table.sign(agent, "rotate", key=KEYS[1].public)
    assert code(table.signed_move, moves.rotate, taken, agent, KEYS[1].public) == "key_used"
    forged = table.sign(other, "rotate", key=new.public)
    assert code(table.signed_move, moves.rotate, forged, agent, new.public) == "wrong_signature"
    table.signed_move(moves.rotate, table.sign(agent, "rotate", key=new.public), agent, new.public)
    assert code(table.ask, agent) == "wrong_signature", "by the old key"
    table.keys[agent] = new
    table.work(agent, lambda arm: 1.0)
    table.move(moves.renew, agent)
    table.signed_move(moves.rotate, table.sign(agent, "rotate", key=None), agent)
    verdict = verify(table.lines())
    assert verdict.ok, verdict.problem
    assert not any("not signed" in sentence for sentence in verdict.trusted)


def test_a_rotate_is_repeated_by_who_made_it_only() -> None:
    table = SignedTable()
    agent, new = table.join(0, 1), KEYS[4]
    first = table.sign(agent, "rotate", key=new.public)
    table.signed_move(moves.rotate, first, agent, new.public)
    again = table.sign(agent, "rotate", key=new.public)  # by the old key, with another number
    for signed in (first, again):
        moves.check_rotated(table.state, agent, new.public, 0, signed)
    check, state = moves.check_rotated, table.state
    assert code(check, state, agent, new.public, 0, None) == "signature_required"
    assert code(check, state, agent, UNSET, 0, None) == "signature_required"
    assert code(check, state, agent, UNSET, 0, first) == "wrong_signature"
    assert code(check, state, agent, KEYS[3].public, 0, first) == "request_reused"
    assert code(check, state, agent, new.public, 1, first) == "token_ended"
    table.keys[agent] = new
    assert code(check, state, agent, new.public, 0, table.sign(agent, "rotate", key=new.public)) == "wrong_signature"
    table.move(moves.renew, agent)
    assert code(check, state, agent, new.public, 0, first) == "token_ended"
    assert State.load(state.dump()).dump() == state.dump()


def test_an_operator_cannot_give_a_member_another_key() -> None:
    for table in (SignedTable(), SignedTable(signed=False)):
        agent = table.join(0, 1)
        format = table.state.format
        row = Rotate(seq=0, time=table.now, format=format, agent=agent, epoch=1, key=KEYS[4].public)
        assert "signed by the old one" in problem([*table.events, row])
        assert "does not follow" in problem([*table.events, msgspec.structs.replace(row, key=UNSET, epoch=2)])


def test_a_removed_member_is_gone_and_what_it_told_stays() -> None:
    table = Table(created(settlement="equal-share"))
    ada, bob = table.join(0, 1), table.join(0, 1)
    table.work(ada, lambda arm: 1.0)
    claim = table.ask(ada)
    told = table.state.version
    table.move(moves.remove, ada, "It reports what it does not see.")
    state = table.state
    assert claim.seq in state.cancelled
    assert state.version == told
    assert sum(state.board.counts) == 1
    for move in (table.ask, table.consent):
        assert code(move, ada) == "removed"
    assert code(table.tell, ada, claim.seq, 1.0) == "removed"
    assert code(table.move, moves.rotate, ada) == "removed"
    assert code(table.commits, ada, "r1", (0, 0, 1)) == "removed"
    assert code(table.move, moves.remove, ada, "Again.") == "removed"
    table.leave(ada)
    assert isinstance(table.events[-1], Remove)
    assert board_view(state).removed[0].reason == "It reports what it does not see."
    assert board_view(state).agents == 1
    assert [view.left for view in agent_views(state, table.now)] == [True, False]
    table.work(bob, lambda arm: 0.0)
    table.close()
    for reader in (None, ada, bob):
        verdict = verify(table.lines(reader), agent=reader)
        assert verdict.ok, verdict.problem
        assert any("good reason to remove Agent 1" in sentence for sentence in verdict.trusted)
    assert len(table.state.pulls()) == 2


def test_who_left_gets_no_new_token_by_itself() -> None:
    table = Table(created())
    ada = table.join(0)
    table.leave(ada)
    assert code(table.move, moves.rotate, ada) == "left"
    table.move(moves.renew, ada)
    assert verify(table.lines()).ok


def test_a_claim_that_is_due_lapses_before_its_member_is_removed() -> None:
    table = Table(created())
    ada = table.join(0, 1)
    table.ask(ada)
    table.now += 1000
    table.move(moves.remove, ada, "It is away.")
    assert [type(event) for event in table.events[-2:]] == [Lapse, Remove]
    assert verify(table.lines()).ok


def test_a_member_who_is_removed_is_not_waited_for() -> None:
    table = Table(created())
    ada, bob = table.join(0, nonce=b"1" * 16), table.join(1, nonce=b"2" * 16)
    assert code(table.ask, bob) == "order_pending"
    table.move(moves.remove, ada, "It does not answer.")
    table.reveal(bob, b"2" * 16)
    table.ask(bob)
    assert table.state.order is not None
    assert table.state.order.skipped == (ada,)
    assert verify(table.lines()).ok


def test_who_is_not_there_and_earlier_terms() -> None:
    table = Table(created())
    table.join(0)
    for move in (moves.renew, moves.revoke):
        assert code(table.move, move, "a9") == "no_such_agent"
    assert code(table.move, moves.remove, "a9", "Who?") == "no_such_agent"
    earlier = Table(created(format=4))
    agent = earlier.join(0)
    for move in (moves.renew, moves.revoke, moves.rotate):
        assert code(earlier.move, move, agent) == "earlier_terms"
    assert code(earlier.move, moves.remove, agent, "No.") == "earlier_terms"
    table.close()
    for move in (moves.renew, moves.revoke, moves.rotate):
        assert code(table.move, move, "a1") == "closed"

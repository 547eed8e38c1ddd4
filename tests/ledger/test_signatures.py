"""Signed requests: nobody writes in a member's name, neither the operator nor a thief of its token."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from tests.support.sequences import Table, created

from partage.ledger import moves
from partage.ledger.chain import GENESIS, line, seal
from partage.ledger.events import FORMAT, AnyEvent, Claim, Commit, Consent, Join, Leave, Reveal, Run, Tell
from partage.ledger.keys import Key
from partage.ledger.moves import Turn
from partage.ledger.refusals import Refused
from partage.ledger.signatures import Signed, header_of, is_signed, read_header, sign, statement
from partage.ledger.ties import commitment_to
from partage.ledger.verify import verify

KEYS = [Key(bytes([number]) * 32) for number in range(1, 6)]
NONCE = b"n" * 16


class SignedTable(Table):
    """A table whose members sign what they ask for."""

    def __init__(self, signed: bool = True, **config: Any) -> None:
        super().__init__(created(signed=signed, **config))
        self.keys: dict[str, Key] = {}
        self.number = 1000

    def signed_move(self, move: Callable[..., Any], signed: Signed | None, *given: Any) -> Any:
        def whole(turn: Turn) -> Any:
            turn.signed = signed
            return move(turn, *given)

        return self.move(whole)

    def sign(self, agent: str, kind: str, **contents: Any) -> Signed:
        self.number += 1
        return sign(self.keys[agent], kind, "c1", self.number, agent=agent, **contents)

    def join(self, *shares: int, nonce: bytes | None = None, key: Key | None = None, **given: Any) -> str:
        number = len(self.state.members) + 1
        key = key or KEYS[number - 1]
        name, names = f"Agent {number}", sorted(self.state.config.arms[arm] for arm in shares)
        commitment = None if nonce is None else commitment_to(nonce)
        self.number += 1
        stated = {"name": name, "shares": names, "key": key.public, "tie_commitment": commitment}
        signed = sign(key, "join", "c1", self.number, **stated | given)
        move = self.signed_move(moves.join, signed, name, shares, f"invite {number}", commitment or UNSET, key.public)
        self.keys[move.agent] = key
        return str(move.agent)

    def ask(self, agent: str, request: str | None = None, explore_only: bool = False) -> Any:
        signed = self.sign(agent, "ask", request=request, explore_only=explore_only)
        return self.signed_move(moves.ask, signed, agent, request, explore_only)

    def tell(self, agent: str, pull: int, reward: float) -> Any:
        signed = self.sign(agent, "tell", pull=pull, reward=reward)
        told = self.signed_move(moves.tell, signed, agent, pull, reward)
        return told or self.signed_move(moves.tell, signed, agent, pull, reward, self.rows_of(pull))

    def commits(self, agent: str, request: str, *runs: tuple[int, int, int], unnamed: int = 0) -> Any:
        named = [{"version": run[0], "arm": self.state.config.arms[run[1]], "pulls": run[2]} for run in runs]
        signed = self.sign(agent, "commits", request=request, runs=named, unnamed=unnamed)
        return self.signed_move(moves.commits, signed, agent, request, [Run(*run) for run in runs], unnamed)

    def consent(self, agent: str, *shares: int, request: str | None = None) -> None:
        names = sorted(self.state.config.arms[arm] for arm in shares)
        signed = self.sign(agent, "consent", request=request, shares=names)
        self.signed_move(moves.consent, signed, agent, shares, request)

    def reveal(self, agent: str, nonce: bytes) -> Any:
        return self.signed_move(moves.reveal, self.sign(agent, "reveal", nonce=nonce.hex()), agent, nonce.hex())

    def leave(self, agent: str) -> None:
        self.signed_move(moves.leave, self.sign(agent, "leave"), agent)


def code(move: Callable[..., Any], *given: Any) -> str:
    with pytest.raises(Refused) as refused:
        move(*given)
    return refused.value.code


def a_game(signed: bool = True) -> SignedTable:
    """A collaboration with a signed request of every kind."""
    table = SignedTable(signed)
    ada, bob = table.join(0, 1, nonce=NONCE), table.join(1)
    assert code(table.ask, ada) == "order_pending"
    table.reveal(ada, NONCE)
    for _ in range(3):
        table.work(ada, lambda arm: 1.0)
        table.work(bob, lambda arm: 0.0)
    table.ask(ada, "explore", True)
    fan = table.join()
    table.follow(fan, "follow", 2)
    table.ask(fan, "commit")
    table.consent(bob, request="changed")
    table.leave(bob)
    return table


def lines_of(events: list[AnyEvent], reader: str | None = None) -> list[bytes]:
    """The lines of these events, numbered and hashed anew, as an operator with the database can write them."""
    head, lines = GENESIS, []
    for number, event in enumerate(events, start=1):
        event = msgspec.structs.replace(event, seq=number)
        row = seal(event, head)
        head = row.head
        lines.append(line(row, event, reader))
    return lines


@pytest.mark.parametrize("reader", [None, "a1", "a3"])
def test_a_ledger_whose_members_signed_everything_verifies(reader: str | None) -> None:
    table = a_game()
    kinds = {type(event) for event in table.events if getattr(event, "signature", UNSET) is not UNSET}
    assert kinds == {Join, Reveal, Claim, Tell, Commit, Consent, Leave}
    verdict = verify(table.lines(reader), agent=reader)
    assert verdict.ok, verdict.problem
    assert not any("not signed" in sentence for sentence in verdict.trusted)


def test_without_a_signature_nothing_is_taken() -> None:
    table = a_game()
    unsigned = Table.ask, Table.consent, Table.leave
    for move in unsigned:
        assert code(move, table, "a1") == "signature_required"
    assert code(Table.tell, table, "a1", table.state.members["a1"].claim, 1.0) == "signature_required"
    assert code(Table.commits, table, "a3", "new") == "signature_required"
    assert code(Table.reveal, table, "a1", NONCE) == "signature_required"
    assert code(Table.join, table, 0) == "signature_required"


def test_with_another_key_or_for_another_request_nothing_is_taken() -> None:
    """As a thief of the token, who does not have the key."""
    table = a_game()
    claim = table.state.members["a1"].claim
    assert claim is not None
    written = len(table.events)
    thief = KEYS[4]
    for signed in (
        sign(thief, "tell", "c1", 5000, agent="a1", pull=claim, reward=1.0),
        sign(KEYS[0], "tell", "c1", 5000, agent="a1", pull=claim, reward=0.0),
        sign(KEYS[0], "tell", "c2", 5000, agent="a1", pull=claim, reward=1.0),
        sign(KEYS[0], "tell", "c1", 5000, agent="a2", pull=claim, reward=1.0),
        sign(KEYS[0], "consent", "c1", 5000, agent="a1", pull=claim, reward=1.0),
        sign(KEYS[0], "tell", "c1", 5000, agent="a1", pull=claim, reward=1.0)._replace(number=5001),
        Signed(5000, "A" * 88),
    ):
        assert code(table.signed_move, moves.tell, signed, "a1", claim, 1.0) == "wrong_signature"
    explores = sign(KEYS[2], "ask", "c1", 5000, agent="a3", request=None, explore_only=True)
    assert code(table.signed_move, moves.ask, explores, "a3", None, False) == "wrong_signature", (
        "a question becomes no commit pull"
    )
    assert len(table.events) == written


def test_a_key_is_proved_and_nobody_elses() -> None:
    table = SignedTable()
    table.join(0)
    assert code(lambda: table.join(1, key=KEYS[0])) == "key_used"
    assert code(lambda: table.join(1, key=KEYS[1], tie_commitment="0" * 64)) == "wrong_signature"
    assert code(lambda: table.join(1, key=KEYS[1], shares=["a", "b"])) == "wrong_signature"
    stolen = sign(KEYS[4], "join", "c1", 9, name="Agent 2", shares=[], key=KEYS[1].public, tie_commitment=None)
    joining = ("Agent 2", (), "invite 2", UNSET, KEYS[1].public)
    assert code(table.signed_move, moves.join, stolen, *joining) == "wrong_signature"
    assert code(table.signed_move, moves.join, stolen, *joining[:3]) == "signature_required"


def test_numbers_grow_and_repetitions_are_answered() -> None:
    table = SignedTable()
    agent = table.join(0, 1)
    asked = table.sign(agent, "ask", request="one", explore_only=False)
    claim = table.signed_move(moves.ask, asked, agent, "one", False)
    told = table.sign(agent, "tell", pull=claim.seq, reward=1.0)
    table.signed_move(moves.tell, told, agent, claim.seq, 1.0)
    written = len(table.events)
    assert table.signed_move(moves.ask, asked, agent, "one", False) == claim
    rows = table.rows_of(claim.seq)
    assert table.signed_move(moves.tell, told, agent, claim.seq, 1.0, rows) == table.events[-1]
    assert len(table.events) == written
    old = sign(KEYS[0], "ask", "c1", told.number, agent=agent, request="two", explore_only=False)
    assert code(table.signed_move, moves.ask, old, agent, "two", False) == "number_used"
    assert table.state.members[agent].number == told.number
    assert len(table.events) == written


def test_where_signing_is_off_signatures_are_recorded_and_the_others_counted() -> None:
    table = SignedTable(signed=False)
    ada = table.join(0, 1)
    bob = Table.join(table, 0, 1)
    table.work(ada, lambda arm: 1.0)
    claim = Table.ask(table, bob)
    Table.tell(table, bob, claim.seq, 1.0)
    assert code(lambda: table.signed_move(moves.leave, table.sign(ada, "leave"), bob)) == "wrong_signature"
    signatures = [event.signature for event in table.events if isinstance(event, Claim | Tell)]
    assert [signature is UNSET for signature in signatures] == [False, False, True, True]
    verdict = verify(table.lines())
    assert verdict.ok, verdict.problem
    assert any("3 rows of members are not signed" in sentence for sentence in verdict.trusted)


def test_earlier_formats_take_no_signatures() -> None:
    table = Table(created(format=4))
    agent = table.join(0, 1)

    def asks(turn: Turn) -> Any:
        turn.signed = Signed(1, "A" * 88)
        return moves.ask(turn, agent, None, False)

    assert table.move(asks).share
    assert table.events[-1].signature is UNSET


# --- an operator with the database ----------------------------------------------------------------------------


def problem(events: list[AnyEvent], reader: str | None = None) -> str:
    return str(verify(lines_of(events, reader), agent=reader).problem)


@pytest.mark.parametrize("reader", [None, "a1", "a2"])
def test_a_row_in_a_members_name_is_found(reader: str | None) -> None:
    table = a_game()
    events = table.events
    for where, event in enumerate(events):
        if getattr(event, "signature", UNSET) is UNSET or (isinstance(event, Commit) and reader is not None):
            continue
        without = msgspec.structs.replace(event, signature=UNSET, number=UNSET)
        assert "sign" in problem([*events[:where], without, *events[where + 1 :]], reader)
    claim = table.state.members["a1"].claim
    forged = Tell(
        seq=0, time=events[-1].time, format=FORMAT, agent="a1", pull=claim or 0, arm=0, reward=0.0, version=9
    )
    assert "sign" in problem([*events, forged], reader)
    own = sign(KEYS[4], "tell", "c1", 9000, agent="a1", pull=claim, reward=0.0)
    by_operator = msgspec.structs.replace(forged, number=own.number, signature=own.signature)
    assert "The signature is not" in problem([*events, by_operator], reader)


def test_a_changed_request_is_found() -> None:
    table = a_game()
    changes: dict[type, dict[str, Any]] = {
        Join: {"name": "Agent X"},
        Claim: {"request": "another"},
        Tell: {"reward": 0.25},
        Commit: {"request": "another"},
        Consent: {"shares": (0,)},
        Leave: {"number": 99_999},
        Reveal: {"number": 99_999},
    }
    for kind, change in changes.items():
        where = next(at for at, event in enumerate(table.events) if isinstance(event, kind))
        changed = msgspec.structs.replace(table.events[where], **change)
        said = problem([*table.events[:where], changed, *table.events[where + 1 :]])
        assert said.startswith(f"Line {where + 1}: "), said
        assert "signature is not" in said, said


def test_a_key_replaced_in_the_join_is_found() -> None:
    table = a_game()
    changed = msgspec.structs.replace(table.events[1], key=KEYS[4].public)
    assert "signature is not" in problem([table.events[0], changed, *table.events[2:]])


def test_an_old_request_replayed_or_two_reordered_are_found() -> None:
    table = SignedTable()
    agent = table.join(0, 1)
    table.consent(agent, 0)
    table.consent(agent, 1)
    create, join, first, second = table.events
    assert "number of a signed request" in problem([create, join, first, second, first])
    assert "number of a signed request" in problem([create, join, second, first])
    assert "a number without a signature" in problem([create, join, msgspec.structs.replace(first, signature=UNSET)])


# --- the bytes ------------------------------------------------------------------------------------------------


def test_the_bytes_that_are_signed() -> None:
    stated = statement("consent", "c1", 12, agent="a1", request=None, shares=["Süd", 'a"b'])
    assert (
        stated
        == (
            'partage/request/v1\n{"agent":"a1","collaboration":"c1","kind":"consent","number":12,"request":null,'
            '"shares":["Süd","a\\"b"]}'
        ).encode()
    )


@settings(max_examples=30)
@given(number=st.integers(1, 2**53 - 1), reward=st.floats(0, 1), other=st.floats(0, 1))
def test_a_signature_is_of_one_request(number: int, reward: float, other: float) -> None:
    signed = sign(KEYS[0], "tell", "c1", number, agent="a1", pull=3, reward=reward)
    assert read_header(header_of(signed)) == signed
    assert is_signed(KEYS[0].public, signed, "tell", "c1", agent="a1", pull=3, reward=reward)
    same = repr(reward) == repr(other)
    assert is_signed(KEYS[0].public, signed, "tell", "c1", agent="a1", pull=3, reward=other) == same


@pytest.mark.parametrize("value", ["", "1", "0 " + "A" * 86 + "==", "1 x", "-1 " + "A" * 86 + "==", "1  " + "A" * 88])
def test_headers_that_are_none(value: str) -> None:
    assert read_header(value) is None

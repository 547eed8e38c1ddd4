"""Who sees an arm differently, in live play: on the board, in the settlement, and in every copy of the ledger."""

import random

import pytest
from tests.support.sequences import Table, created

from partage.ledger.settlement import settlement_of, settlement_view
from partage.ledger.state import State
from partage.ledger.verify import verify
from partage.ledger.views import board_view

MEANS = (0.7, 0.65, 0.6)


def played(offsets: list[float], turns: int = 300, settlement: str = "none") -> Table:
    """A collaboration whose members have these offsets on every arm."""
    arms = ["Letter", "SMS", "Visit"]
    table = Table(created(arms=arms, rule="balanced-etc", horizon=10**6, settlement=settlement))
    draw = random.Random(3)
    agents = [table.join(0, 1, 2) for _ in offsets]
    for _ in range(turns * len(agents)):  # in no fixed order: otherwise each arm would be told by one member only
        at = draw.randrange(len(agents))
        table.work(agents[at], lambda arm, offset=offsets[at]: float(draw.random() < MEANS[arm] + offset))
    return table


def test_members_who_agree_are_not_named() -> None:
    table = played([0.0, 0.0, 0.0])
    assert board_view(table.state).disagreements == []
    assert settlement_view(table.state, settlement_of(table.state)).disagreements == []


def test_a_member_with_an_offset_is_named_in_the_board_the_settlement_and_every_copy() -> None:
    table = played([0.0, 0.0, -0.3], turns=900, settlement="pool")
    found = board_view(table.state).disagreements
    assert {one.arm for one in found} == {"Letter", "SMS", "Visit"}
    assert all(one.agents == ["a3"] and one.names == ["Agent 3"] and one.against is None for one in found)
    for one in found:
        assert one.low < one.difference < one.high < 0
        assert one.difference == pytest.approx(-0.3, abs=0.1)
        assert one.text.startswith(f"Agent 3 sees {one.arm} differently: 0.")

    # What is loaded from a snapshot says the same, and so do all copies of the ledger after the close.
    assert board_view(State.load(table.state.dump())).disagreements == found
    table.close()
    assert board_view(table.state).disagreements == found
    assert settlement_view(table.state, settlement_of(table.state)).disagreements == found
    for reader in (None, "a1", "a3"):
        verified = verify(table.lines(reader), agent=reader)
        assert verified.board is not None
        assert verified.board.disagreements == found


def test_a_member_who_is_set_aside_is_not_named_any_more() -> None:
    table = played([0.0, 0.0, -0.3], turns=900)
    table.set_aside("a3")
    assert board_view(table.state).disagreements == []


def test_a_collaboration_says_the_same_again_only_after_a_new_broadcast() -> None:
    """The tests run once per version of the board."""
    table = played([0.0, 0.0], turns=20)
    assert table.state.disagreements() is table.state.disagreements()
    before = table.state.disagreements()
    table.work("a1", lambda _: 1.0)
    assert table.state.disagreements() is not before

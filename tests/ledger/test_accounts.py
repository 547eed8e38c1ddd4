"""How the amounts of a member come about, and the currency that they are in."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from tests.support.sequences import Table, configurations, created, played, sequences

from partage.ledger.accounts import account_view
from partage.ledger.chain import GENESIS, line, seal
from partage.ledger.config import Config, checked_config
from partage.ledger.refusals import Refused
from partage.ledger.settlement import inputs, settled
from partage.ledger.verify import verify
from partage.ledger.views import collaboration_view


def eliminated(**config: Any) -> Table:
    """A collaboration in which arm b was eliminated, at a cost to agent 0, who explored it."""
    table = Table(created(horizon=1000, rule="balanced-glr", **config))
    table.join(0, 1)
    table.join(0)
    while table.state.board.active[1]:
        table.work("a1", lambda arm: 0.0 if arm else 1.0)
    return table


@settings(max_examples=60, deadline=None)
@given(configurations(), sequences())
def test_the_arms_of_an_account_add_up_to_its_compensation(create: Any, happens: Any) -> None:
    table = played(create, happens)
    found = inputs(table.state)
    amounts = settled(found)
    for row, account in zip(found.agents, amounts.accounts, strict=True):
        view = account_view(found, amounts, row.agent)
        assert view.net == account.net == view.compensation - view.charge
        for arm in view.arms:
            exact = Fraction(arm.rate) * arm.pulls * Fraction(found.value) * 10**6
            assert abs(arm.amount - exact) <= 1 + exact * Fraction(1, 10**12)
        if view.settlement == "dues":
            assert view.compensation == min(view.prepaid, view.compensation)
        else:  # each arm is rounded by itself, and the compensation once; it is rounded down where it is scaled
            slack = 1 + len(view.arms) + view.earned * 1e-9
            assert abs(view.scale * view.earned - view.compensation) <= slack
        if view.ceiling is not None:
            assert view.charge <= view.ceiling
        assert view.text


def test_an_account_names_the_arms_that_are_paid() -> None:
    table = eliminated(settlement="pool", prepaid=50.0, value=2.0, currency="EUR")
    found = inputs(table.state)
    view = account_view(found, settled(found), "a1", "EUR")
    paid = {arm.arm: arm for arm in view.arms}
    assert paid["b"].amount == paid["b"].pulls * 2_000_000  # the gap is 1
    assert paid["a"].amount == 0
    assert view.compensation == view.earned == paid["b"].amount
    assert any("50 EUR" in sentence for sentence in view.text)


def test_a_currency_is_recorded_and_verified() -> None:
    table = eliminated(settlement="pool", prepaid=50.0, currency="  hours ")
    assert collaboration_view(table.state).currency == "hours"
    head, lines = GENESIS, []
    for event in table.events:
        row = seal(event, head)
        head = row.head
        lines.append(line(row, event, None))
    assert verify(lines).ok
    assert b'"currency":"hours"' in lines[0]


@pytest.mark.parametrize("currency", ["", "x" * 13, "a\u202eb"])
def test_a_currency_is_a_short_text(currency: str) -> None:
    with pytest.raises(Refused, match="currency"):
        checked_config(Config(name="x", arms=["a"], horizon=10, currency=currency))

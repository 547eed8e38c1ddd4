"""The terms of format 4: who claims when, what a commit report says, and what the close states."""

from typing import Any

import msgspec
import pytest
from msgspec import UNSET
from tests.ledger.test_verify import a_game, forged, problem, with_fields
from tests.support.faulty_store import all_of
from tests.support.sequences import Table, created

from partage.ledger.chain import GENESIS, line, seal
from partage.ledger.events import Claim, Close, Commit
from partage.ledger.refusals import Refused
from partage.ledger.state import State
from partage.ledger.verify import verify
from partage.ledger.views import agent_views, collaboration_view

PREPAID = ("pool", "dues")


def table_of(settlement: str = "pool", **config: Any) -> Table:
    """Three members who found out that the second arm is worse."""
    table = Table(created(settlement=settlement, horizon=300, **config))
    for shares in ((0, 1), (1,), ()):
        table.join(*shares)
    for _ in range(60):
        for agent in ("a1", "a2", "a3"):
            table.work(agent, lambda arm: 1.0 - arm)
            table.now += 10
    assert table.state.board.active == [True, False]
    return table


# --- commits that earn nothing --------------------------------------------------------------------------------


@pytest.mark.parametrize("settlement", ["none", "pool", "dues"])
def test_they_are_reported_as_a_number(settlement: str) -> None:
    table = table_of(settlement)
    assert not collaboration_view(table.state).named_commits
    with pytest.raises(Refused) as refused:
        table.commits("a3", "r1", (table.state.version, 0, 5))
    assert (refused.value.status, refused.value.code, refused.value.field) == (422, "unnamed_only", "runs")
    table.commits("a3", "r1", unnamed=5)
    assert table.state.members["a3"].unnamed == 5
    assert not table.state.windows, "nothing is kept to check them by"
    assert not table.state.members["a3"].consents
    asked = [event for event in table.events if isinstance(event, Commit) and event.asked]
    assert all(len(event.runs) == 1 for event in asked), "the controller chose their arm"
    assert all_of(State.load(table.state.dump())) == all_of(table.state)


@pytest.mark.parametrize("settlement", ["paper", "equal-share", "equal-share-expected"])
def test_where_they_are_paid_they_are_named(settlement: str) -> None:
    table = table_of(settlement)
    assert collaboration_view(table.state).named_commits
    table.commits("a3", "r1", (table.state.version, 0, 5))
    assert table.state.windows


@pytest.mark.parametrize("settlement", PREPAID)
def test_no_amount_depends_on_them(settlement: str) -> None:
    honest, liar = table_of(settlement), table_of(settlement)
    liar.commits("a3", "r1", unnamed=200)
    liar.commits("a1", "r1", unnamed=200)
    one, other = honest.close(), liar.close()
    assert (one.scale, one.charge, one.profit, one.explore) == (
        other.scale,
        other.charge,
        other.profit,
        other.explore,
    )
    rows = [verify(table.lines()).settlement.rows for table in (honest, liar)]  # type: ignore[union-attr]
    assert [(row.compensation, row.net) for row in rows[0]] == [(row.compensation, row.net) for row in rows[1]]
    assert rows[0][0].compensation > 0


# --- the claim interval ---------------------------------------------------------------------------------------


def test_a_member_that_asks_too_soon_commits() -> None:
    table = Table(created(settlement="none", claim_interval=30.0, claim_seconds=5.0))
    agent = table.join(0, 1)
    first = table.ask(agent)
    assert first.share
    table.tell(agent, first.seq, 1.0)
    table.now += 29_999
    assert table.ask(agent, explore_only=True) is None
    (view,) = agent_views(table.state, table.now)
    assert view.claim_in == 0.001
    early = table.ask(agent)
    assert (early.share, early.arm) == (False, table.state.target())
    table.now += 1
    assert agent_views(table.state, table.now)[0].claim_in == 0.0
    assert table.ask(agent).share
    assert verify(table.lines()).ok
    assert verify(table.lines(agent), agent=agent).ok


def test_an_open_claim_is_returned_at_any_time_and_a_lapsed_one_still_counts() -> None:
    table = Table(created(settlement="none", claim_interval=30.0, claim_seconds=5.0))
    agent = table.join(0, 1)
    first = table.ask(agent)
    assert table.ask(agent) == first
    table.now += 6_000
    assert not table.ask(agent).share
    table.now += 24_000
    assert table.ask(agent).share


def test_an_auditor_finds_a_claim_that_came_too_soon() -> None:
    table = Table(created(settlement="none", claim_interval=0.5, claim_seconds=5.0))
    agent = table.join(0, 1)
    for _ in range(4):
        table.work(agent, lambda arm: 1.0)
        table.now += 500
    assert verify(table.lines()).ok
    create = msgspec.structs.replace(table.events[0], claim_interval=0.501)
    head, lines = GENESIS, []
    for event in [create, *table.events[1:]]:
        row = seal(event, head)
        head = row.head
        lines.append(line(row, event, None))
    second = [place for place, event in enumerate(table.events, 1) if isinstance(event, Claim)][1]
    found = verify(lines)
    assert found.problem is not None
    assert found.problem.line == second


# --- the close ------------------------------------------------------------------------------------------------


def test_what_it_states() -> None:
    for settlement in ("none", "pool", "dues", "paper"):
        close = a_game(settlement).events[-1]
        assert isinstance(close, Close)
        assert close.left == (0, 2)
        assert (close.commit is UNSET) == (settlement != "paper")
        assert (close.prepaid is UNSET) == (close.charge is UNSET) == (settlement not in PREPAID)
    old = a_game("paper", format=3).events[-1]
    assert isinstance(old, Close)
    assert {old.left, old.scale, old.prepaid, old.charge} == {UNSET}


@pytest.mark.parametrize("settlement", PREPAID)
@pytest.mark.parametrize("reader", [None, "a1", "a4"])
@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("profit", lambda value: value + 1),
        ("charge", lambda value: value - 1),
        ("prepaid", lambda value: value + 1),
        ("scale", lambda value: value / 2),
        ("left", lambda value: value[:1]),
        ("left", lambda value: (0, 1, 2)),
        ("left", lambda value: value[::-1]),
        ("left", lambda value: UNSET),
        ("scale", lambda value: UNSET),
        ("charge", lambda value: UNSET),
        ("commit", lambda value: (0, 0, 0)),
        ("common_charge", lambda value: 0.0),
        ("explore", lambda value: (value[0] + 1, *value[1:])),
    ],
)
def test_auditor_and_members_find_a_close_that_does_not_follow(
    settlement: str, reader: str | None, field: str, change: Any
) -> None:
    table = a_game(settlement)
    last = len(table.events) - 1
    fields = {field: change(getattr(table.events[last], field))}
    where, _ = problem(forged(table, with_fields(last, **fields), reader), agent=reader)
    assert where == last + 1


def test_an_operator_cannot_lose_more_than_it_underwrites() -> None:
    table = a_game("equal-share")
    poor = Table(created(arms=["a", "b", "c"], horizon=400, settlement="equal-share", value=0.01, underwriting=0))
    for _ in range(3):
        poor.join(0, 1, 2)
    for _ in range(150):
        for agent in ("a1", "a2", "a3"):
            poor.work(agent, lambda arm: (1.0, 0.0, 0.75)[arm])
    close = poor.close()
    assert 0 <= close.scale < 1
    assert close.profit >= 0
    assert verify(poor.lines()).ok
    _, sentence = problem(forged(poor, with_fields(len(poor.events) - 1, profit=-1)))
    assert "more than it underwrites" in sentence
    assert table.events[-1].scale == 1.0  # type: ignore[union-attr]

"""Commit pulls without an arm: they use the horizon and move the clock, and no money depends on them."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET
from tests.support.faulty_store import all_of
from tests.support.sequences import Table, created

from partage.clock import rounded
from partage.ledger.chain import GENESIS, line, seal
from partage.ledger.events import FORMAT, AnyEvent, Commit, encode
from partage.ledger.refusals import Refused
from partage.ledger.settlement import settlement_of, settlement_view
from partage.ledger.state import State
from partage.ledger.verify import verify


def table_of(rule: str = "balanced-etc", format: Any = FORMAT, **config: Any) -> Table:
    """Three members who found out that the second arm is worse."""
    table = Table(created(rule=rule, horizon=300, format=format, **config))
    for shares in ((0,), (1,), ()):
        table.join(*shares)
    for _ in range(60):
        for agent in ("a1", "a2", "a3"):
            table.work(agent, lambda arm: 1.0 - arm)
    return table


def lines_of(events: list[AnyEvent]) -> list[bytes]:
    """Return the lines of a ledger with these events, in which all hashes are right."""
    head, lines = GENESIS, []
    for event in events:
        row = seal(event, head, bytes(16))
        head = row.head
        lines.append(line(row, event, None))
    return lines


@pytest.mark.parametrize("settlement", ["paper", "equal-share-expected"])
def test_money_and_totals_do_not_depend_on_them(settlement: str) -> None:
    table = table_of(settlement=settlement)
    before = settlement_view(table.state, settlement_of(table.state))
    pulls, totals = table.state.pulls(), table.state.totals()
    assert before.compensation > 0
    table.commits("a3", "r1", unnamed=100)
    assert (table.state.pulls(), table.state.totals()) == (pulls, totals)
    assert settlement_view(table.state, settlement_of(table.state)) == before
    assert table.state.members["a3"].used == 160
    table.close()
    for reader in (None, "a1", "a3"):
        found = verify(table.lines(reader), agent=reader)
        assert found.ok, found.problem


def test_they_move_the_clock() -> None:
    table = table_of("shared-imed", settlement="none")
    table.commits("a3", "r1", unnamed=200)
    table.ask("a1")
    assert table.state.board.clock == rounded(380)
    assert verify(table.lines()).ok


def test_the_horizon_bounds_them() -> None:
    table = table_of()
    leader, version = table.state.target(), table.state.version
    assert leader is not None
    with pytest.raises(Refused) as refused:
        table.commits("a3", "r1", (version, leader, 41), unnamed=200)
    assert refused.value.code == "too_many_pulls"
    answer = table.commits("a3", "r1", (version, leader, 40), unnamed=200)
    assert table.commits("a3", "r1", (version, leader, 40), unnamed=200) == answer, "counted once"
    member = table.state.members["a3"]
    assert (member.used, member.unnamed) == (300, 200)
    assert verify(table.lines()).ok


def test_a_snapshot_keeps_them() -> None:
    table = table_of("shared-imed", settlement="none")
    table.commits("a3", "r1", unnamed=100)
    state = State.load(table.state.dump())
    assert all_of(state) == all_of(table.state)
    assert (state.pulls_made, state.members["a3"].unnamed) == (280, 100)


@pytest.mark.parametrize("format", [UNSET, 2])
def test_earlier_formats_do_not_take_them(format: Any) -> None:
    table = table_of(format=format)
    with pytest.raises(Refused) as refused:
        table.commits("a3", "r1", unnamed=1)
    assert refused.value.field == "unnamed"
    assert verify(table.lines()).ok


def test_a_row_without_them_is_written_as_before() -> None:
    table = table_of()
    row = next(event for event in table.events if isinstance(event, Commit))
    assert set(json.loads(encode(row))) == {"agent", "asked", "format", "kind", "request", "runs", "seq", "time"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unnamed": 241}, "more pulls than the horizon has left"),
        ({"unnamed": UNSET}, "no commit pulls"),
        ({"asked": True}, "names their arms"),
        ({"request": None}, "without a request id"),
        ({"agent": "a9"}, "has not joined"),
    ],
)
def test_an_auditor_finds_what_cannot_be(change: dict[str, Any], words: str) -> None:
    table = table_of()
    table.commits("a3", "r1", unnamed=100)
    assert verify(lines_of(table.events)).ok
    *before, last = table.events
    found = verify(lines_of([*before, msgspec.structs.replace(last, **change)]))
    assert found.problem is not None
    assert words in found.problem.sentence

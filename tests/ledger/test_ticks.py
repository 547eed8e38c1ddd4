"""The clock of a live collaboration: when it ticks, who can check it, and that nobody can bend it unseen."""

from typing import Any

import msgspec
import pytest
from msgspec import UNSET
from tests.support.sequences import Table, created

from partage.clock import rounded
from partage.ledger.chain import GENESIS, line, seal
from partage.ledger.events import AnyEvent, Tick
from partage.ledger.verify import verify


def table_of(rule: str = "shared-imed", **config: Any) -> Table:
    """Two members who share one arm each."""
    table = Table(created(rule=rule, settlement="none", horizon=200, **config))
    table.join(0)
    table.join(1)
    return table


def pull(table: Table, times: int) -> None:
    for _ in range(times):
        for agent in ("a1", "a2"):
            table.work(agent, lambda arm: 1.0 - arm)


def lines_of(table: Table, events: list[AnyEvent], reader: str | None = None) -> list[bytes]:
    """Return the lines of a ledger with these events, in which all hashes are right."""
    head, lines = GENESIS, []
    for seq, event in enumerate(events, 1):
        event = msgspec.structs.replace(event, seq=seq)
        row = seal(event, head, bytes(16))
        head = row.head
        lines.append(line(row, event, reader))
    return lines


@pytest.mark.parametrize("rule", ["shared-imed", "balanced-glr"])
def test_it_shows_the_pulls_of_all_members_rounded_down(rule: str) -> None:
    table = table_of(rule)
    pull(table, 40)
    table.ask("a1")
    assert table.state.board.clock == rounded(80)
    ticks = [event.clock for event in table.events if isinstance(event, Tick)]
    assert ticks == sorted({rounded(pulls) for pulls in range(1, 81)})


def test_commits_that_clients_report_count_too() -> None:
    table = table_of()
    pull(table, 20)
    before = table.state.board.clock
    table.follow("a2", "r1", 100)
    table.follow("a2", "r2", 1)
    assert table.state.board.clock == rounded(140) > before


@pytest.mark.parametrize(("rule", "format"), [("balanced-etc", 3), ("balanced-glr", 2), ("balanced-glr", UNSET)])
def test_where_no_rule_reads_it_it_stands_still(rule: str, format: Any) -> None:
    table = Table(created(rule=rule, settlement="none", horizon=200, format=format))
    table.join(0)
    table.join(1)
    pull(table, 30)
    assert table.state.board.clock == 0
    assert not any(isinstance(event, Tick) for event in table.events)
    assert verify(table.lines()).ok


@pytest.mark.parametrize("change", ["later", "early", "missing", "more"])
def test_an_auditor_finds_a_clock_that_was_bent(change: str) -> None:
    table = table_of()
    pull(table, 30)
    events = list(table.events)
    where = [at for at, event in enumerate(events) if isinstance(event, Tick)][-2]
    tick = events[where]
    assert isinstance(tick, Tick)
    if change == "missing":
        # everything after it keeps its place: pull numbers are seqs
        events[where] = msgspec.structs.replace(events[where - 1])
    elif change == "early":
        events[where] = msgspec.structs.replace(tick, clock=rounded(tick.clock - 1))
    elif change == "later":
        events[where] = msgspec.structs.replace(tick, clock=10**6)
    else:
        events[where] = msgspec.structs.replace(tick, clock=rounded(2 * tick.clock))
    assert verify(lines_of(table, list(table.events))).ok
    found = verify(lines_of(table, events))
    assert not found.ok
    assert found.problem is not None
    assert found.problem.line in (where + 1, where + 2)


def test_a_members_copy_takes_the_clock_on_trust_and_says_so() -> None:
    table = table_of()
    pull(table, 20)
    table.follow("a2", "r1", 50)
    pull(table, 5)
    whole, copy = verify(table.lines()), verify(table.lines("a1"), agent="a1")
    assert whole.ok
    assert copy.ok
    assert not copy.whole
    assert any("clock" in sentence for sentence in copy.trusted)
    assert not any("clock" in sentence for sentence in whole.trusted)

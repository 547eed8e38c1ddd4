"""Verifying a ledger: a right one passes, and of a wrong one the first wrong line is named."""

import json
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from tests.support.sequences import SECRET, START, TRUTHFUL, Step, Table, configurations, created, played, sequences

from partage.errors import FileError
from partage.ledger.chain import GENESIS, line, next_head, row_hash, seal
from partage.ledger.config import PREPAID
from partage.ledger.events import (
    FORMAT,
    AnyEvent,
    Claim,
    Close,
    Commit,
    Consent,
    Create,
    Join,
    Lapse,
    Leave,
    Order,
    Run,
    Tell,
    decode,
)
from partage.ledger.settlement import settlement_of, settlement_view
from partage.ledger.state import tie_order
from partage.ledger.tallies import salts_of
from partage.ledger.verify import lines as verify_lines
from partage.ledger.verify import verify
from partage.ledger.views import board_view

SETTLEMENTS = ("paper", "equal-share", "equal-share-expected", "none", "pool", "dues")


@cache
def a_game(settlement: str = "equal-share", closed: bool = True, format: Any = FORMAT, value: float = 0.01) -> Table:
    """A collaboration with events of every kind, in which an arm is eliminated."""
    table = Table(
        created("03" * 16, arms=["a", "b", "c"], horizon=400, settlement=settlement, value=value, format=format)
    )
    chance = random.Random(1)
    paid = {0: 1.0, 1: 0.0, 2: 0.75}

    def reward(arm: int) -> float:
        table.now += chance.choice([0, 0, 1, 40])
        return paid[arm]

    ada, bob, eve = table.join(0, 1, 2), table.join(0, 1), table.join(2)
    late = table.ask(ada, "first")
    table.now += 1500
    table.ask(bob)  # lets Ada's claim lapse
    table.tell(ada, late.seq, paid[late.arm])
    table.tell(bob, table.state.members[bob].claim or 0, 1.0)
    for turn in range(150):
        for agent in (ada, bob, eve):
            table.work(agent, reward)
        if turn == 20:
            table.consent(eve, 1, 2)
        if turn == 40:
            table.consent(eve, 2)
    fan = table.join()
    for turn in range(5):
        table.follow(fan, f"report {turn}", 10)
        table.ask(fan, f"asked {turn}")
    table.leave(bob)
    table.ask(ada)
    assert not table.state.board.active[1]
    if closed:
        table.close()
    return table


def forged(table: Table, change: Callable[[list[AnyEvent]], object], reader: str | None = None) -> list[bytes]:
    """The lines after a change, with all hashes computed again."""
    events = list(table.events)
    change(events)
    head, lines = GENESIS, []
    for event in events:
        row = seal(event, head)
        head = row.head
        lines.append(line(row, event, reader, salts_of(SECRET, table.state.members)))
    return lines


def place(table: Table, kind: type, number: int = 0) -> int:
    """The index of an event of this kind."""
    return [where for where, event in enumerate(table.events) if isinstance(event, kind)][number]


def eliminating(table: Table) -> int:
    """The index of the broadcast that eliminates an arm."""
    return next(at for at, event in enumerate(table.events) if isinstance(event, Tell) and event.active is not UNSET)


def other_tie_order(table: Table) -> str:
    """A seed with another arm first in the tie order."""
    seeds = (f"{number:032x}" for number in range(100))
    return next(seed for seed in seeds if tie_order(seed, 3)[0] != table.state.board.tie_order[0])


def with_fields(where: int, **fields: Any) -> Callable[[list[AnyEvent]], None]:
    """Return a change of some fields of an event."""

    def change(events: list[AnyEvent]) -> None:
        events[where] = msgspec.structs.replace(events[where], **fields)

    return change


def problem(lines: Any, **given: Any) -> tuple[int | None, str]:
    """What is wrong."""
    found = verify(lines, **given)
    assert found.problem is not None
    assert not found.ok
    assert found.board is None
    if found.problem.line is not None:
        assert found.lines == found.problem.line - 1
        assert str(found.problem).startswith(f"Line {found.problem.line:,}: ")
    return tuple(found.problem)


# --- right ledgers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", [FORMAT, UNSET])
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("settlement", SETTLEMENTS)
def test_a_whole_ledger(settlement: str, closed: bool, format: Any) -> None:
    format = FORMAT if settlement in PREPAID else format  # format 1 has no such settlement
    table = a_game(settlement, closed, format)
    found = verify(table.lines(), head=table.rows[30].head)
    assert found.problem is None
    assert found.ok
    assert found.whole
    assert found.lines == len(table.rows)
    assert found.head == table.head
    assert found.board == board_view(table.state)
    assert found.settlement == settlement_view(table.state, settlement_of(table.state))
    assert found.settlement.profit + sum(row.net for row in found.settlement.rows) == 0
    assert any("line 31" in sentence for sentence in found.checked)
    assert any("sum to zero" in sentence for sentence in found.checked) == closed
    assert not any("hidden" in sentence for sentence in found.trusted)


@settings(max_examples=100)
@given(configurations(SETTLEMENTS), sequences())
@example(
    created(arms=["a", "b"], horizon=200, settlement="equal-share"),
    [("join", frozenset({0, 1}))] * 2 + [("many", 200, 0.0, 1.0), ("close",)],
)
def test_whatever_happens_verifies(create: Create, happens: list[Step]) -> None:
    table = played(create, happens)
    found = verify(table.lines())
    assert found.problem is None
    assert found.board == board_view(table.state)
    assert found.settlement == settlement_view(table.state, settlement_of(table.state))
    for agent in table.state.members:
        copy = verify(table.lines(agent), agent=agent, head=table.head)
        assert copy.problem is None
        assert copy.board == found.board
        assert copy.whole == all(event.agent == agent for event in table.events if isinstance(event, Commit))
        if table.state.closed is not None:
            assert copy.row == next(row for row in found.settlement.rows if row.agent == agent)
        assert verify(table.lines(agent)).problem is None


@pytest.mark.parametrize("settlement", SETTLEMENTS)
def test_a_members_copy(settlement: str) -> None:
    table = a_game(settlement)
    full = verify(table.lines()).settlement
    assert full is not None
    for agent, told in (("a1", "a1"), ("a2", None), ("a3", "a3"), ("a4", None)):
        found = verify(table.lines(agent), head=table.head, agent=told)
        assert found.problem is None
        assert not found.whole
        assert found.agent == agent
        assert found.settlement is None
        assert found.row == next(row for row in full.rows if row.agent == agent)
        assert any("lines are hidden" in sentence for sentence in found.trusted)
        pays_commits = settlement in TRUTHFUL
        assert any("entries in the tallies" in sentence for sentence in found.trusted) == pays_commits
        assert any("No amount depends on a commit" in sentence for sentence in found.trusted) != pays_commits
        assert any("every account" in sentence for sentence in found.checked) != pays_commits
        assert any("all ceilings" in sentence for sentence in found.checked) == ("equal" in settlement)
        assert any(f"row of agent {agent}" in sentence for sentence in found.checked)


def test_a_members_copy_while_it_is_open() -> None:
    found = verify(a_game(closed=False).lines("a1"))
    assert found.ok
    assert found.row is None
    assert any("not closed" in sentence for sentence in found.trusted)


def test_whose_copy_cannot_always_be_told() -> None:
    table = Table(created(format=4))  # later, the salts beside the close tell
    silent, other, _ = table.join(), table.join(0), table.join(1)
    assert table.work(other, lambda arm: 1.0).share
    assert not table.ask(other).share
    table.close()
    found = verify(table.lines(silent))
    assert found.ok
    assert found.agent is None
    assert found.row is None
    assert any("whose copy" in sentence for sentence in found.trusted)
    named = verify(table.lines(silent), agent=silent)
    assert named.row is not None
    assert named.row.commit == 0
    assert problem(table.lines(silent), agent="a9")[1] == "The given agent is not in this ledger."


@pytest.mark.parametrize("closed", [True, False])
def test_another_agents_copy(closed: bool) -> None:
    number, sentence = problem(a_game(closed=closed).lines("a4"), agent="a2")
    assert number is None
    assert "not the given agent's copy" in sentence


def test_a_history_without_a_kept_head_is_trusted() -> None:
    lines = a_game().lines()
    assert any("No saved head" in sentence for sentence in verify(lines).trusted)
    assert not any("No saved head" in sentence for sentence in verify(lines, head=a_game().head).trusted)


def test_a_ledger_up_to_any_line() -> None:
    lines = a_game().lines()
    for last in (1, 2, 5, 50, len(lines) - 1):
        assert verify(lines[:last]).ok


def test_from_a_file_and_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partage.ledger.verify.PROGRESS_EVERY", 100)
    path = tmp_path / "ledger.ndjson"
    path.write_bytes(b"".join(a_game().lines()))
    seen: list[int] = []
    assert verify(path, progress=seen.append).ok
    assert seen[:2] == [100, 200]
    assert seen[-1] == len(a_game().rows)
    assert verify(str(path)).ok
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    assert verify(path).ok
    assert verify([text.decode() for text in a_game().lines()]).ok


def test_other_agents_may_use_a_forgotten_request_again() -> None:
    """The controller remembers a number of requests; those of hidden lines count, too."""
    table = Table(created(horizon=2000))
    agent, other = table.join(0), table.join(1)
    assert table.ask(agent, "again").share
    table.tell(agent, table.events[-1].seq, 1.0)
    for number in range(256):
        assert not table.ask(agent, f"r{number}").share
    table.work(other, lambda arm: 0.0)
    assert table.ask(agent, "again").share
    for reader in (None, agent, other):
        assert verify(table.lines(reader)).problem is None
    named = verify(table.lines(other), agent=other)
    assert named.problem is None


# --- changed lines --------------------------------------------------------------------------------------------


def test_every_byte_counts() -> None:
    """A byte of any line, changed in any way, is found in that line."""
    chance = random.Random(2)
    for reader in (None, "a4"):
        lines = a_game().lines(reader)
        for _ in range(150):
            where = chance.randrange(len(lines))
            text = bytearray(lines[where].rstrip(b"\n"))
            at = chance.randrange(len(text))
            text[at] ^= chance.choice([1, 2, 32, 128, 255])
            assert problem([*lines[:where], bytes(text) + b"\n", *lines[where + 1 :]])[0] == where + 1


@pytest.mark.parametrize("reader", [None, "a1"])
def test_lines_missing_doubled_swapped(reader: str | None) -> None:
    lines = a_game().lines(reader)
    for where in (0, 1, 7, 100, len(lines) - 2):
        number, sentence = problem([*lines[:where], *lines[where + 1 :]])
        assert number == where + 1
        assert "missing, repeated or out of place" in sentence
        assert problem([*lines[: where + 1], *lines[where:]])[0] == where + 2
        swapped = [*lines[:where], lines[where + 1], lines[where], *lines[where + 2 :]]
        assert problem(swapped)[0] == where + 1


def test_a_hash_that_does_not_fit_is_named() -> None:
    lines = a_game().lines()
    where = place(a_game(), Tell, 1)
    changed = lines[where].replace(b'"reward":1.0', b'"reward":0.0')
    assert changed != lines[where]
    assert problem([*lines[:where], changed, *lines[where + 1 :]]) == (
        where + 1,
        "its hash does not match: this row, or a line before it, was changed.",
    )


def test_a_rewritten_history_is_found_by_the_kept_head() -> None:
    table = a_game(closed=False)
    # Nothing confirms Eve's name: without a saved head, a forger who computes all hashes again is not found.
    lines = forged(table, with_fields(3, name="Mallory"))
    assert verify(lines).ok
    number, sentence = problem(lines, head=table.head)
    assert number is None
    assert sentence == f"The history was rewritten: no line has the head {table.head}."
    assert verify(lines, head=json.loads(lines[-1])["head"]).ok
    assert problem(table.lines(), head="nonsense")[0] is None
    assert verify(table.lines(), head=f" {table.head.upper()}\n").ok


def test_a_forged_reward() -> None:
    table = a_game(closed=False)
    where = place(table, Tell, -1)
    lines = forged(table, with_fields(where, reward=0.125))
    assert verify(lines).ok, "no decision depends on the last reward"
    assert problem(lines, head=table.head)[0] is None

    early = [at for at, event in enumerate(table.events) if isinstance(event, Tell) and event.arm == 1][:60]

    def better(events: list[AnyEvent]) -> None:
        for at in early:
            with_fields(at, reward=1.0)(events)

    number, sentence = problem(forged(table, better))
    assert number is not None
    assert number > early[0]
    assert "does not follow" in sentence or "would have refused" in sentence


BAD: dict[str, tuple[Callable[[Table], Callable[[list[AnyEvent]], object]], str]] = {
    "reward above 1": (lambda t: with_fields(place(t, Tell, 5), reward=1.5), "from 0 to 1"),
    "reward below 0": (lambda t: with_fields(place(t, Tell, 5), reward=-0.5), "from 0 to 1"),
    "tell of another arm": (
        lambda t: with_fields(place(t, Tell, 5), arm=1 if t.events[place(t, Tell, 5)].arm != 1 else 0),
        "does not follow",
    ),
    "tell of another version": (lambda t: with_fields(place(t, Tell, 5), version=99), "does not follow"),
    "tell of no claim": (lambda t: with_fields(place(t, Tell, 5), pull=2), "not waiting for a report"),
    "tell by another agent": (lambda t: with_fields(place(t, Tell, 5), agent="a4"), "not joined"),
    "claim of another arm": (
        lambda t: with_fields(place(t, Claim, 9), arm=(t.events[place(t, Claim, 9)].arm + 1) % 3),
        "here the controller hands out a claim on arm",
    ),
    "claim in place of a commit": (
        lambda t: (
            lambda events: events.__setitem__(
                place(t, Commit),
                Claim(seq=place(t, Commit) + 1, time=events[place(t, Commit)].time, format=FORMAT, agent="a1", arm=0),
            )
        ),
        "hands out a claim|writes nothing|counts a commit",
    ),
    "lapse too early": (
        lambda t: (
            lambda events: events.insert(
                place(t, Claim) + 1,
                Lapse(
                    seq=place(t, Claim) + 2,
                    time=events[place(t, Claim)].time + 999,
                    format=FORMAT,
                    agent="a1",
                    pull=place(t, Claim) + 1,
                ),
            )
        ),
        "not the next one due",
    ),
    "lapse left out": (
        lambda t: (
            lambda events: events.__setitem__(
                slice(None),
                [
                    *events[: place(t, Lapse)],
                    msgspec.structs.replace(events[place(t, Lapse) + 1], seq=place(t, Lapse) + 1),
                ],
            )
        ),
        "here the controller lets claim 6 lapse, which was due",
    ),
    "lapse of another agent": (lambda t: with_fields(place(t, Lapse), agent="a2"), "lets claim 6 lapse"),
    "an elimination left out": (
        lambda t: with_fields(eliminating(t), active=UNSET),
        "leaves these arms active: a, c",
    ),
    "another arm eliminated": (
        lambda t: with_fields(eliminating(t), active=(1, 2)),
        "leaves these arms active: a, c",
    ),
    "an arm that does not exist stays active": (
        lambda t: with_fields(eliminating(t), active=(0, 2, 7)),
        "leaves these arms active: a, c",
    ),
    "an elimination too early": (
        lambda t: with_fields(place(t, Tell, 5), active=(0, 2)),
        "leaves these arms active: a, b, c",
    ),
    "active arms stated without a change": (
        lambda t: with_fields(place(t, Tell, 5), active=(0, 1, 2)),
        "leaves these arms active: a, b, c",
    ),
    "another format": (lambda t: with_fields(place(t, Tell, 5), format=UNSET), "format differs"),
    "another format at the close": (lambda t: with_fields(-1, format=UNSET), "format differs"),
    "time falls": (lambda t: with_fields(place(t, Tell, 5), time=START - 1), "time is before"),
    "agent unknown": (lambda t: with_fields(place(t, Claim, 9), agent="a77"), "not joined"),
    "another agent joins": (lambda t: with_fields(place(t, Join, 1), agent="a7"), "other contents"),
    "an invite twice": (lambda t: with_fields(place(t, Join, 1), invite="invite 1"), "already been used"),
    "shares of no arm": (lambda t: with_fields(place(t, Join, 1), shares=(0, 3)), "does not have"),
    "shares twice": (lambda t: with_fields(place(t, Join, 1), shares=(0, 0, 1)), "other contents"),
    "consent to the same shares": (
        lambda t: (
            lambda events: events.insert(4, Consent(seq=5, time=START, format=FORMAT, agent="a1", shares=(0, 1, 2)))
        ),
        "writes nothing",
    ),
    "commit to another arm": (
        lambda t: with_fields(place(t, Commit, -1), runs=(Run(t.state.version, 1, 1),)),
        "counts a commit pull of arm a",
    ),
    "more commits than the horizon": (
        lambda t: with_fields(place(t, Commit, -2), runs=(Run(t.state.version, 0, 400),)),
        "horizon has left",
    ),
    "report of an arm that was not the leader": (
        lambda t: with_fields(place(t, Commit, -2), runs=(Run(t.state.version, 2, 1),)),
        "not the leader",
    ),
    "report without a request": (lambda t: with_fields(place(t, Commit, -2), request=None), "without a request id"),
    "report of nothing": (lambda t: with_fields(place(t, Commit, -2), runs=()), "reports no commit pulls"),
    "asked commit of nothing": (lambda t: with_fields(place(t, Commit, -1), runs=()), "reports no commit pulls"),
    "leaves twice": (
        lambda t: (
            lambda events: events.insert(
                place(t, Leave) + 1, msgspec.structs.replace(events[place(t, Leave)], seq=place(t, Leave) + 2)
            )
        ),
        "writes nothing",
    ),
    "created twice": (
        lambda t: lambda events: events.insert(1, msgspec.structs.replace(events[0], seq=2)),
        "a second time",
    ),
    "a rule unknown": (lambda t: with_fields(0, rule="chance"), "would have refused"),
    "a rule that is not live": (lambda t: with_fields(0, rule="two-ucb"), "would have refused"),
    "a commitment that is none": (lambda t: with_fields(0, tie_commitment="x"), "never creates"),
    "a seed from the start": (lambda t: with_fields(0, tie_seed="0" * 32), "never creates"),
    "no balance": (lambda t: with_fields(0, balance=None), "never creates"),
    "another tie order": (
        lambda t: with_fields(place(t, Order), tie_seed=other_tie_order(t)),
        "fixes the tie order, with another key",
    ),
    "another seed of the operator": (lambda t: with_fields(place(t, Order), seed="0" * 32), "commits to"),
    "a seed of the operator that is none": (lambda t: with_fields(place(t, Order), seed="x"), "commits to"),
    "somebody skipped": (lambda t: with_fields(place(t, Order), skipped=("a1",)), "other members skipped"),
    "no tie order": (lambda t: lambda events: _without(events, place(t, Order)), "not fixed yet"),
    "explore totals": (lambda t: with_fields(-1, explore=(1, 2, 3)), "totals of explore"),
    "commit totals": (lambda t: with_fields(-1, commit=(*t.events[-1].commit[:2], 7)), "totals of commit"),
    "too few totals": (lambda t: with_fields(-1, commit=()), "totals of commit"),
    "profit": (lambda t: with_fields(-1, profit=t.events[-1].profit + 10), "profit"),
    "common charge": (
        lambda t: with_fields(-1, common_charge=(t.events[-1].common_charge or 0) + 0.5),
        "common charge",
    ),
    "a ceiling": (lambda t: with_fields(-1, ceilings={**t.events[-1].ceilings, "a1": 0.5}), "ceiling of agent a1"),
    "a ceiling beyond reason": (
        lambda t: with_fields(-1, ceilings={**t.events[-1].ceilings, "a1": 1e300}),
        "between 0",
    ),
    "a ceiling missing": (lambda t: with_fields(-1, ceilings={"a1": 0.5}), "every agent's ceiling"),
    "no ceilings": (lambda t: with_fields(-1, ceilings=None, ceiling_seed=None), "every agent's ceiling"),
    "another seed": (lambda t: with_fields(-1, ceiling_seed="1"), "seed of the plays"),
    "after the close": (
        lambda t: lambda events: events.append(msgspec.structs.replace(events[-1], seq=len(events) + 1)),
        "closed, and nothing",
    ),
}


def _without(events: list[AnyEvent], where: int) -> None:
    """Take an event away, and number those after it anew."""
    events[where:] = [msgspec.structs.replace(event, seq=event.seq - 1) for event in events[where + 1 :]]


@pytest.mark.parametrize("what", BAD)
def test_forgeries_with_all_hashes_right_that_mean_something_wrong(what: str) -> None:
    make, sentence = BAD[what]
    table = a_game()
    number, said = problem(forged(table, make(table)))
    assert number is not None
    assert re.search(sentence, said), said


@pytest.mark.parametrize("reader", [None, "a4"])
@pytest.mark.parametrize("format", [FORMAT, UNSET])
def test_a_profit_from_the_logarithms_of_another_platform(format: Any, reader: str | None) -> None:
    table = a_game("equal-share", format=format, value=1e6)
    closed = table.events[-1]
    assert isinstance(closed, Close)
    bill = settlement_view(table.state, settlement_of(table.state)).compensation
    assert bill > 10**12
    for share, right in ((-1e-10, True), (1e-10, True), (-1e-8, False), (1e-8, False)):
        lines = forged(table, with_fields(-1, profit=closed.profit + round(share * bill)), reader)
        assert verify(lines).ok == right
        if not right:
            assert "profit" in problem(lines)[1]


def test_ceilings_where_there_are_none() -> None:
    table = a_game("paper")
    assert "has none" in problem(forged(table, with_fields(-1, ceiling_seed="0")))[1]


def test_an_equal_share_that_everyone_could_not_pay() -> None:
    """Then all agents pay their ceilings, and there is no common charge."""
    table = a_game()
    assert isinstance(table.events[-1], Close)
    number, said = problem(forged(table, with_fields(-1, common_charge=1e6)))
    assert number == len(table.events)
    assert "common charge" in said


# --- a member's copy that was changed -------------------------------------------------------------------------


def test_forgeries_in_a_members_copy() -> None:
    table = a_game()
    closed = table.events[-1]
    assert isinstance(closed, Close)
    assert closed.ceilings is not None
    for change, sentence in (
        (with_fields(-1, ceilings={**closed.ceilings, "a4": closed.ceilings["a4"] + 1}), "ceiling of agent a4"),
        (with_fields(-1, common_charge=2.0 if closed.common_charge != 2.0 else 3.0), "common charge"),
        (with_fields(-1, profit=closed.profit + 100), "profit"),
        (with_fields(-1, explore=(0, 0, 0)), "totals of explore"),
        (with_fields(-1, commit=(0, 0, 0)), "totals of commit"),
        (with_fields(place(table, Commit, -1), runs=(Run(table.state.version, 1, 1),)), "counts a commit pull"),
        (
            with_fields(place(table, Claim, 9), arm=(table.events[place(table, Claim, 9)].arm + 1) % 3),
            "does not follow",
        ),
    ):
        number, said = problem(forged(table, change, "a4"))
        assert number is not None
        assert sentence in said


def test_hidden_lines_hide_commits_only() -> None:
    """If any other event is hidden, the lines after it do not follow."""
    table = a_game()
    for kind in (Create, Join, Claim, Tell, Lapse):
        lines, where = table.lines("a4"), place(table, kind)
        row = table.rows[where]
        hidden = line(row, Commit(seq=row.seq, time=START, agent="nobody", runs=()), "a4")
        number, _ = problem([*lines[:where], hidden, *lines[where + 1 :]])
        assert number is not None
        assert number >= where + 1


def test_after_a_close_nothing_is_hidden() -> None:
    table = a_game()
    lines = table.lines("a4")
    extra = seal(Commit(seq=len(lines) + 1, time=START, agent="a1", runs=()), table.head)
    assert "closed" in problem([*lines, line(extra, decode(extra.body), "a4")])[1]


# --- files that are not ledgers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"\n\n\n",
        b"hello",
        b"{}\n",
        b"[]\n",
        b"null\n",
        b"\x00\xff\xfe" * 1000,
        b"[" * 100_000,
        b'{"head":' + b"[" * 100_000,
        b'{"head":"x","row":{},"salt":"y"}\n',
        b'{"head":"' + b"0" * 64 + b'","row":{},"salt":"' + b"0" * 32 + b'"}\n',
        b'{"head":"' + b"0" * 64 + b'","row_hash":"' + b"0" * 64 + b'","seq":1}\n',
        b'{"head":"' + b"0" * 64 + b'","row_hash":"' + b"0" * 64 + b'","seq":1e999}\n',
        b'{"head":"' + b"0" * 64 + b'","row":"\xff","salt":"' + b"0" * 32 + b'"}\n',
        "ﬁ \u2028".encode(),
    ],
)
def test_no_ledger_is_a_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.write_bytes(content)
    number, sentence = problem(path)
    assert number in (None, 1)
    assert sentence.endswith(".")


def test_a_first_line_that_creates_nothing() -> None:
    join = Join(seq=1, time=START, agent="a1", name="Ada", shares=(), invite="i")
    row = seal(join, GENESIS)
    assert "with which every ledger begins" in problem([line(row, join, None)])[1]


def test_a_row_that_is_no_event() -> None:
    for body in (b'{"kind":"party","seq":1,"time":0}', b"[1]", b'"\xff"', b"{" * 10):
        event = a_game().events[0]
        row = seal(event, GENESIS)._replace(body=body)
        row = row._replace(head=next_head(GENESIS, row_hash(row.salt, body)))
        assert problem([line(row, event, None)])[0] == 1


def test_a_row_in_other_bytes() -> None:
    event = a_game().events[0]
    row = seal(event, GENESIS)
    body = row.body.replace(b'"horizon":400', b'"horizon": 400')
    row = row._replace(body=body, head=next_head(GENESIS, row_hash(row.salt, body)))
    assert "not in canonical form" in problem([line(row, event, None)])[1]


def test_a_file_that_ends_within_a_line(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    whole = b"".join(a_game().lines()[:10])
    path.write_bytes(whole[:-20])
    assert problem(path) == (10, "the file ends in the middle of it; download the ledger again.")


def test_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_lines, "LONGEST_LINE", 1000)
    path = tmp_path / "ledger"
    path.write_bytes(b'{"head"' + b" " * 10_000)
    assert "not a line of a ledger" in problem(path)[1]


@pytest.mark.parametrize("name", ["nowhere", ".", "\0"])
def test_a_file_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        verify(str(tmp_path / name))


@settings(max_examples=200)
@given(st.data())
def test_no_change_of_a_row_makes_a_traceback(data: st.DataObject) -> None:
    """Whatever a row contains, as long as its hashes are right: there is a result."""
    table = a_game()
    where = data.draw(st.sampled_from([0, 1, 4, 5, 6, 7, 8, 40, len(table.rows) - 1]))
    fields = json.loads(table.rows[where].body)
    name = data.draw(st.sampled_from(sorted(fields)))
    fields[name] = data.draw(
        st.one_of(
            st.sampled_from([None, "", [], {}, -1, 0, 2**63, 2**70, 1e308, -0.0, "inf", True, [5], ["a"], "a" * 200]),
            st.integers(),
            st.floats(allow_nan=False, allow_infinity=False),
            st.text(max_size=5),
            st.lists(st.integers(0, 10**20), max_size=4),
        )
    )
    body = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        errors="surrogatepass"
    )
    lines, head = table.lines()[:where], table.rows[where - 1].head if where else GENESIS
    for row, text in [(table.rows[where], body), *((row, row.body) for row in table.rows[where + 1 : where + 20])]:
        head = next_head(head, row_hash(row.salt, text))
        lines.append(line(row._replace(body=text, head=head), table.events[0], None))
    found = verify(lines)
    assert found.problem is None or found.problem.sentence.endswith((".", ")."))

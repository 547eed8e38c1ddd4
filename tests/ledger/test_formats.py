"""Formats: a collaboration keeps the terms that it was created with, and the decisions in its ledger stand."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET
from tests.golden.live import RELEASE
from tests.support.sequences import START, Table, created

from partage.ledger import moves
from partage.ledger.chain import GENESIS, line, seal
from partage.ledger.events import FORMAT, Create, Tell, decode, encode
from partage.ledger.refusals import Refused
from partage.ledger.state import State
from partage.ledger.verify import verify
from partage.ledger.views import collaboration_view

LEDGERS = sorted(RELEASE.glob("*.ndjson"))


def eliminated(format: Any = FORMAT, rule: str = "balanced-etc") -> Table:
    """A collaboration in which arm b is eliminated."""
    table = Table(created(horizon=200, format=format, rule=rule))
    agent = table.join(0, 1)
    while all(table.state.board.active[:2]) or not table.state.version:
        table.work(agent, lambda arm: 1.0 - arm)
    for _ in range(5):
        table.work(agent, lambda arm: 1.0 - arm)
    return table


@pytest.mark.parametrize("ledger", LEDGERS, ids=lambda path: path.stem)
def test_events_of_release_0_1_keep_their_bytes(ledger: Any) -> None:
    rows = [json.loads(text) for text in ledger.read_text().splitlines()]
    shown = [row["row"] for row in rows if "row" in row]
    assert shown
    for row in shown:
        body = json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        event = decode(body)
        assert event.format is UNSET
        assert encode(event) == body


def test_new_collaborations_have_the_newest_format() -> None:
    config = {name: getattr(created(), name) for name in created().__struct_fields__}
    for given in ("seq", "time", "format", "tie_commitment"):
        del config[given]
    assert moves.create(START, "0" * 64, **config).format == FORMAT == 7


@pytest.mark.parametrize("format", [FORMAT, 2, UNSET])
def test_all_events_of_a_collaboration_have_its_format(format: Any) -> None:
    table = eliminated(format)
    table.close()
    assert {event.format for event in table.events} == {format}
    assert verify(table.lines()).ok


@pytest.mark.parametrize("format", [2, UNSET])
def test_older_formats_keep_the_terms_they_began_with(format: Any) -> None:
    """2-UCB is the bar, the arms left are the rule's, and the coverage is 1 - 2/T."""
    table = Table(created(format=format, settlement="equal-share"))
    assert (table.state.settlement.alone, table.state.settlement.coverage) == ("two-ucb", None)
    new = Table(created(settlement="equal-share", alone="imed", coverage=0.9))
    assert (new.state.settlement.alone, new.state.settlement.coverage) == ("imed", 0.9)
    assert not {b"alone", b"coverage"} & {*encode(table.events[0]).split(b'"')}


@pytest.mark.parametrize(
    ("format", "fields"),
    [
        (UNSET, {"alone": "best"}),
        (2, {"coverage": 0.99}),
        (FORMAT, {"alone": UNSET}),
        (FORMAT, {"coverage": UNSET}),
        (FORMAT, {"alone": "chance"}),
        (FORMAT, {"coverage": 1.0}),
        (FORMAT, {"coverage": None}),
    ],
)
def test_terms_that_no_controller_writes(format: Any, fields: dict[str, Any]) -> None:
    create = msgspec.structs.replace(created(format=format, settlement="equal-share"), **fields)
    found = verify([line(seal(create, GENESIS), create, None)])
    assert found.problem is not None
    assert found.problem.line == 1


def test_a_tell_states_the_active_arms_when_it_changes_them() -> None:
    table = eliminated()
    stated = [event.active for event in table.events if isinstance(event, Tell) and event.active is not UNSET]
    assert stated == [(0,)]
    old = eliminated(UNSET)
    assert old.state.board.active == table.state.board.active == [True, False]
    assert all(event.active is UNSET for event in old.events if isinstance(event, Tell))


def test_the_stated_decision_stands() -> None:
    """Another machine may have decided differently: the fold takes its word."""
    table = eliminated()
    where = next(at for at, event in enumerate(table.events) if isinstance(event, Tell) and event.active is not UNSET)
    for active, after in ((UNSET, [True, True]), ((1,), [False, True])):
        changed = msgspec.structs.replace(table.events[where], active=active)
        state = State(table.events[0])
        for event in [*table.events[1:where], changed]:
            state.apply(event)
        assert state.board.active == after
        assert state.target() == (0 if after[0] else 1)
    state = State(msgspec.structs.replace(table.events[0], format=UNSET))
    for event in table.events[1:where]:
        state.apply(event)
    state.apply(msgspec.structs.replace(table.events[where], active=UNSET))
    assert state.board.active == [True, False], "in format 1 the rule decides"


@pytest.mark.parametrize(("format", "indifference"), [(UNSET, False), (2, False), (FORMAT, True)])
def test_the_view_states_the_parameters_that_the_rule_uses(format: Any, indifference: bool) -> None:
    view = collaboration_view(State(created(rule="balanced-glr", format=format)))
    assert view.parameters == {"lead": 3.0, "evidence": "likelihood", "indifference": indifference}
    assert collaboration_view(State(created(format=format))).parameters == {}


@pytest.mark.parametrize("extra", [{}, {"stakes": 3}, {"kind": "auction"}])
def test_a_newer_format_is_refused_in_a_sentence(extra: dict[str, Any]) -> None:
    create = created()
    body = json.dumps({**json.loads(encode(create)), "format": FORMAT + 1, **extra}).encode()
    with pytest.raises(Refused) as refusal:
        decode(body)
    assert (refusal.value.status, refusal.value.code) == (501, "newer_format")
    assert f"format {FORMAT + 1}" in refusal.value.sentence
    assert "upgrade" in refusal.value.sentence
    newer = msgspec.structs.replace(create, format=FORMAT + 1)
    found = verify([line(seal(newer, GENESIS), newer, None)])
    assert found.problem is not None
    assert found.problem.line == 1
    assert "upgrade" in found.problem.sentence


@pytest.mark.parametrize("format", [1, 0, -1, None, "2", 2.5])
def test_a_format_that_never_was(format: Any) -> None:
    body = json.dumps({**json.loads(encode(created())), "format": format}).encode()
    with pytest.raises(msgspec.ValidationError):
        decode(body)


@pytest.mark.parametrize("format", [FORMAT, UNSET])
def test_a_snapshot_keeps_the_format_and_who_broadcast_what(format: Any) -> None:
    table = eliminated(format)
    other = table.join(0, 1)
    table.work(other, lambda arm: 1.0)
    state = State.load(table.state.dump())
    assert state.format == table.state.format
    assert state.config == table.events[0]
    assert isinstance(state.config, Create)
    assert state.board.by_member == table.state.board.by_member
    record = table.state.board.by_member["a1"]
    assert record.counts == [table.state.members["a1"].explore.get(arm, 0) for arm in range(2)]
    assert record.sums == [record.counts[0], 0.0]

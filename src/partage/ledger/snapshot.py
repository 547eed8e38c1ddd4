"""A state as it is stored, so that a restart need not fold the whole ledger again."""

from typing import Any

from msgspec import Struct

from partage.board import Record
from partage.ledger.events import Close, Create, Order
from partage.ledger.members import Drawing, Handed, Member
from partage.ledger.windows import Window


class Snapshot(Struct):
    """The contents of a state. What follows from these is computed when it is loaded."""

    config: Create
    arms: list[str]
    seq: int
    time: int
    version: int
    counts: list[int]
    sums: list[float]
    by_member: dict[str, dict[int, tuple[int, float]]]
    active: list[bool]
    public: list[bool]
    lapses: list[int]
    rule_state: Any
    clock: int
    members: list[Member]
    past: dict[str, dict[int, list[float]]]
    claims: dict[int, Handed]
    late: dict[int, Handed]
    cancelled: set[int]
    idle: dict[int, int]
    used_up: set[int]
    invites: dict[str, str]
    windows: list[Window]
    led: set[int]
    closed: Close | None
    drawing: Drawing | None
    order: Order | None


def sparse(record: Record) -> dict[int, tuple[int, float]]:
    """Return the arms of a record that were seen: most agents share few of many arms."""
    return {arm: (count, record.sums[arm]) for arm, count in enumerate(record.counts) if count}


def dense(seen: dict[int, tuple[int, float]], arms: int) -> Record:
    """Return the record of the arms that were seen."""
    record = Record.empty(arms)
    for arm, (count, total) in seen.items():
        record.counts[arm], record.sums[arm] = count, total
    return record

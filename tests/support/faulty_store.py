"""A store that fails when told to, and what a state is, to compare."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy.engine import URL

from partage.ledger.state import State, _Kept
from partage.service.store import Lost, Row, StoreError
from partage.service.store.sqlite import SqliteStore


class Faulty(SqliteStore):
    """A store whose next commits fail in the ways that `faults` says, and whose reads fail while `unreadable`."""

    def __init__(self, path: Path) -> None:
        self.faults: list[str] = []
        self.unreadable = False
        self.pause = 0.0
        super().__init__(URL.create("sqlite", database=str(path)))

    def commit_rows(self, rows: Mapping[str, Sequence[Row]], *others: Any) -> None:
        fault = self.faults.pop(0) if self.faults else ""
        time.sleep(self.pause)
        if fault == "lost":
            raise Lost
        if fault == "full":
            raise StoreError("The SQLite file x cannot be used: database or disk is full.")
        super().commit_rows(rows, *others)
        if fault == "unknown":
            raise StoreError("The database does not answer.")

    def _read(self, statement: Any) -> Any:
        if self.unreadable:
            raise StoreError("The database does not answer.")
        return super()._read(statement)


class Remote(Faulty):
    """The same, reached as one that may be far away: from threads, with turns of the loop in between."""

    several = True


def all_of(state: State) -> tuple[Any, ...]:
    """Return all that a state is, to compare: with the order of dictionaries, and without that of sets."""
    kept = msgspec.msgpack.decode(state.dump(), type=_Kept)
    orders = [list(kept.claims), list(kept.late), *(list(member.answers) for member in kept.members)]
    return kept, orders, state.board.claims, state.board.shared, state.sharers, state.version, state.target()

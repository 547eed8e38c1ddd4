"""A store that fails when told to, and everything a state holds, to compare."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy.engine import URL

from partage.ledger.state import State
from partage.service.store import Lost, Row, StoreError, Writing
from partage.service.store.sqlite import SqliteStore


class Faulty(SqliteStore):
    """A store whose next commits fail in the ways listed in `faults`; nothing else works while it is `unreadable`.

    A commit that is `lost` finds that another process was first, one that is `full` fails, and one that is `unknown`
    succeeds and says that it failed.
    """

    def __init__(self, path: Path, durable: bool = True) -> None:
        self.faults: list[str] = []
        self.unreadable = False
        self.pause = 0.0
        super().__init__(URL.create("sqlite", database=str(path)))
        if not durable:  # nothing here survives a power cut, and the test is faster
            self._connection.exec_driver_sql("PRAGMA synchronous = OFF")

    def commit_rows(self, rows: Mapping[str, Sequence[Row]], *others: Any) -> None:
        fault = self.faults.pop(0) if self.faults else ""
        if self.pause:
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

    def _write(self, work: Any) -> Any:
        if self.unreadable:
            raise StoreError("The database does not answer.")
        return super()._write(work)


class Remote(Faulty):
    """The same, as a database server that several processes use: called from threads, with races between them."""

    several = True

    def begin(self, places: Mapping[str, int]) -> Writing:
        writing = super().begin(places)
        writing.news = {collaboration: self.rows(collaboration, after=seq) for collaboration, seq in places.items()}
        return writing


def all_of(state: State) -> tuple[Any, ...]:
    """Return everything a state holds, to compare: with the order of dictionaries, without that of sets."""
    kept = msgspec.msgpack.decode(state.dump())
    for name in ("cancelled", "used_up", "led"):
        kept[name] = sorted(kept[name])
    for member in kept["members"]:
        member["shares"] = sorted(member["shares"])
    orders = [list(kept["claims"]), list(kept["late"]), *(list(member["answers"]) for member in kept["members"])]
    return kept, orders, state.board.claims, state.board.shared, state.sharers, state.version, state.target()

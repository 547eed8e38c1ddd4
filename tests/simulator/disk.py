"""The simulated database: SQLite in memory, with the faults of a disk, a database server and its connections.

The statements are those of the real store. What is simulated is around them: when a call fails, what of it stays, and
what other processes of the same database see.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool
from tests.simulator.world import Blocked, Crashed, Machine, World

from partage.ledger.chain import Row
from partage.service.store import Busy, Created, Lost, StoreError, Writing
from partage.service.store.sqlite import SqliteStore, _SqliteWriting
from partage.service.store.tables import bring_up_to_date

T = TypeVar("T")


@dataclass(frozen=True)
class DiskFaults:
    """How often each fault happens, per call or per commit."""

    read: float = 0.0  # an I/O error, or a broken connection
    refused: float = 0.0  # a write fails and nothing of it stays
    unknown: float = 0.0  # a write succeeds and the process is told that it failed
    crash: float = 0.0  # the process dies before, during or after a write
    full: float = 0.0  # the disk is full, for a while
    lost: float = 0.0  # another process is said to have been first
    locked: float = 0.0  # a shell or a backup has the file locked, for a while
    silence: float = 0.0  # other processes do not hear of a write


class _Shared:
    """One connection for all simulations of this Python process: compiled statements are kept with it."""

    connection: sa.Connection | None = None
    empty = b""

    @classmethod
    def open(cls) -> sa.Connection:
        if cls.connection is None:
            engine = sa.create_engine(
                "sqlite://",
                poolclass=StaticPool,
                connect_args={"check_same_thread": False},
                isolation_level="AUTOCOMMIT",
                hide_parameters=True,
            )
            cls.connection = engine.connect()
            driver = cls.connection.connection.driver_connection
            bring_up_to_date(cls.connection)
            for change in ("UPDATE", "DELETE"):  # which a disk that corrupts rows does not ask for
                driver.execute(f"DROP TRIGGER events_no_{change}")
            driver.execute("PRAGMA foreign_keys = ON")
            cls.empty = driver.serialize()
        cls.connection.connection.driver_connection.deserialize(cls.empty)
        return cls.connection


class Disk:
    """The database, and what was committed to it: `committed` is called with the rows of each commit."""

    def __init__(self, world: World, several: bool, locks: bool, faults: DiskFaults) -> None:
        self.world, self.several, self.locks, self.faults = world, several, locks, faults
        self.connection = _Shared.open()
        self.driver: Any = self.connection.connection.driver_connection
        # Threads take turns, also to read: SQLite keeps the code of the last error per connection, and a read in
        # another thread could overwrite it before Python looks it up.
        self.turn = threading.RLock()
        self.committed: Callable[[str, Sequence[Row]], None] = lambda collaboration, rows: None
        self.held: dict[str, SimulatedStore] = {}  # locks of collaborations
        self.listeners: dict[SimulatedStore, Callable[[str, int], None]] = {}
        self.full_until = self.locked_until = 0.0
        self.machine = Machine(world, "database")  # with a clock of its own

    def store(self, machine: Machine) -> "SimulatedStore":
        """Return the store of a process."""
        return SeveralStore(self, machine) if self.several else SimulatedStore(self, machine)

    def forget(self, store: "SimulatedStore") -> None:
        """Release what a process had that is no more."""
        self.listeners.pop(store, None)
        for name in [name for name, holder in self.held.items() if holder is store]:
            del self.held[name]

    def fill(self) -> None:
        """Let the disk be full for a while."""
        self.full_until = self.world.loop.time() + self.world.random.uniform(0.1, 2.0)

    def corrupt(self, collaboration: str) -> str:
        """Damage something that is stored; return what, and the number of the row."""
        random, execute = self.world.random, self.driver.execute
        rows = execute("SELECT seq FROM events WHERE collaboration = ?", (collaboration,)).fetchall()
        kinds = ("body", "salt", "head", "torn", "snapshot", "lost", "lost")
        # One of several processes that has not read a row cannot miss it.
        (seq,), kind = random.choice(rows), random.choice(kinds[:-2] if self.several else kinds)
        where = "WHERE collaboration = ? AND seq = ?"
        if kind == "snapshot":
            for id, content in execute("SELECT collaboration, state FROM snapshots").fetchall():
                execute("UPDATE snapshots SET state = ? WHERE collaboration = ?", (self._flipped(content), id))
        elif kind == "lost":  # the last rows
            execute("DELETE FROM events WHERE collaboration = ? AND seq >= ?", (collaboration, seq))
        else:
            column = "body" if kind == "torn" else kind
            ((before,),) = execute(f"SELECT {column} FROM events {where}", (collaboration, seq)).fetchall()
            after = before[: random.randrange(len(before))] if kind == "torn" else self._flipped(before)
            execute(f"UPDATE events SET {column} = ? {where}", (after, collaboration, seq))
        self.world.note("corrupts", kind, seq)
        self.world.damaged = True
        return kind

    def _flipped(self, content: Any) -> Any:
        """Return the same content with one bit changed."""
        changed = bytearray(content.encode() if isinstance(content, str) else content)
        changed[self.world.random.randrange(len(changed))] ^= 1 << self.world.random.randrange(7)
        return changed.decode("latin-1") if isinstance(content, str) else bytes(changed)

    def notify(self, last: dict[str, int], writer: "SimulatedStore") -> None:
        """Tell every process that listens what was written."""
        for store, wake in list(self.listeners.items()):
            if self.world.fault("silence", self.faults.silence):  # the connection broke: it reconnects later
                self.world.loop.call_later(self.world.random.uniform(0.2, 3.0), self._wake, store, wake, "", 0)
                continue
            for collaboration, seq in last.items():
                self.world.loop.call_later(self.world.delay(0.05), self._wake, store, wake, collaboration, seq)

    def _wake(self, store: "SimulatedStore", wake: Callable[[str, int], None], collaboration: str, seq: int) -> None:
        if store in self.listeners:
            store.machine.call(wake, collaboration, seq)


class SimulatedStore(SqliteStore):
    """The store of one process. With SQLite there is one; `SeveralStore` is one of several."""

    def __init__(self, disk: Disk, machine: Machine) -> None:
        self.disk, self.machine, self.world = disk, machine, disk.world
        self._name = "simulated"
        self._turn = disk.turn
        self._opened = ExitStack()
        self._connection, self._driver = disk.connection, disk.driver

    def close(self) -> None:
        self.disk.forget(self)

    # faults around every call

    def _read(self, statement: Any) -> Any:
        self._alive()
        if self.world.fault("read fails", self.disk.faults.read):
            raise StoreError("The database cannot be used: disk I/O error.")
        with self._turn, self._sentences():
            return self._connection.execute(statement).all()

    def _write(self, work: Callable[[sa.Connection], T]) -> T:
        return self._faulty(lambda: super(SimulatedStore, self)._write(work))

    def _begin(self) -> None:
        if not self.disk.several:
            if self.world.fault("file locked", self.disk.faults.locked):
                longest = self.world.random.choice((0.1, 2.0, 12.0))
                self.disk.locked_until = self.world.loop.time() + longest
            if self.world.loop.time() < self.disk.locked_until and not self.world.calm:
                raise Busy("The database is locked by another process.")
        super()._begin()

    def commit_rows(self, rows: Mapping[str, Sequence[Row]], created: Sequence[Created], *others: Any) -> None:
        # Nobody is first to a collaboration that is not there yet.
        if self.disk.several and not created and self.world.fault("race lost", self.disk.faults.lost):
            raise Lost

        def work() -> None:
            super(SimulatedStore, self).commit_rows(rows, created, *others)
            for collaboration, batch in rows.items():
                self.disk.committed(collaboration, batch)
            self.disk.notify({name: batch[-1].seq for name, batch in rows.items() if batch}, self)

        self._faulty(work)

    def _faulty(self, write: Callable[[], T]) -> T:
        """Write something, unless the disk fails or the process dies."""
        self._alive()
        world, faults = self.world, self.disk.faults
        if world.fault("disk full", faults.full):
            self.disk.fill()
        if world.loop.time() < self.disk.full_until and not world.calm:
            raise StoreError("The database cannot be used: database or disk is full.")
        if world.fault("write fails", faults.refused):
            raise StoreError("The database cannot be used: disk I/O error.")
        if world.fault("crash before a commit", faults.crash / 3):
            self._die()
        if world.fault("crash during a commit", faults.crash / 3):
            self._tear(write)
        try:
            found = write()
        except BaseException:
            world.note(self.machine.name, "not written")
            raise
        if world.fault("crash after a commit", faults.crash / 3):
            self._die()
        if world.fault("outcome unknown", faults.unknown):
            raise StoreError("The database does not answer.")
        return found

    def _tear(self, write: Callable[[], Any]) -> None:
        """Die with the transaction half written; the database rolls it back, as it does after a power cut."""
        committed, self.disk.committed = self.disk.committed, lambda collaboration, rows: None
        notify, self.disk.notify = self.disk.notify, lambda last, writer: None  # type: ignore[method-assign]
        image = self._driver.serialize()
        try:
            write()
        finally:
            self._driver.deserialize(image)
            self.disk.committed = committed
            self.disk.notify = notify  # type: ignore[method-assign]
        self._die()

    def _die(self) -> None:
        self.world.note(self.machine.name, "crashed")
        self.machine.kill()
        raise Crashed

    def _alive(self) -> None:
        if not self.machine.alive:
            raise Crashed


class SeveralStore(SimulatedStore):
    """The store of one of several processes: locks, news and notifications, as PostgreSQL has them."""

    several = True

    def begin(self, places: Mapping[str, int]) -> Writing:
        """Begin to write: wait for the locks, then read the news."""
        self._alive()
        if self.world.fault("read fails", self.disk.faults.read):
            raise StoreError("The database does not answer.")
        if self.disk.locks:
            if any(self.disk.held.get(name, self) is not self for name in places):
                raise Blocked
            self.disk.held |= dict.fromkeys(places, self)
        writing = _Held(self, places)
        writing.now = self.disk.machine.clock()
        writing.news = {name: self._news(name, seq) for name, seq in places.items()}
        return writing

    def _news(self, collaboration: str, after: int) -> list[Row]:
        with self._turn:
            found = self._driver.execute(
                "SELECT seq, body, salt, head, pull FROM events WHERE collaboration = ? AND seq > ? ORDER BY seq",
                (collaboration, after),
            )
            return [Row._make(row) for row in found]

    def listen(self, wake: Callable[[str, int], None]) -> Callable[[], None]:
        self.disk.listeners[self] = wake
        return lambda: self.disk.forget(self)


class _Held(_SqliteWriting):
    """A transaction that holds the locks of its collaborations until it ends."""

    def __init__(self, store: SeveralStore, places: Mapping[str, int]) -> None:
        super().__init__(store, places)
        self._places = list(places)

    def commit(self, *given: Any, **others: Any) -> None:
        try:
            super().commit(*given, **others)
        finally:
            self._release()

    def rollback(self) -> None:
        super().rollback()
        self._release()

    def _release(self) -> None:
        store = self._store
        assert isinstance(store, SeveralStore)
        for name in self._places:
            if store.disk.held.get(name) is store:
                del store.disk.held[name]
        self._places = []

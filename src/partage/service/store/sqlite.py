"""The store in an SQLite file, for one process."""

import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import NullPool, QueuePool

from partage.ledger.chain import Row
from partage.service.store.interface import Busy, Corrupt, Created, Invite, Lost, NewToken, Store, StoreError, Writing
from partage.service.store.tables import WrongSchema, bring_up_to_date
from partage.service.store.wal import wal_is_damaged

T = TypeVar("T")

BUSY_MS = 10_000  # how long a write waits while a shell or a backup has the file locked, unless it must never wait
READERS = 40  # connections that read at once, at most; opened when needed

DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_TOOBIG)
TAKEN = (
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    sqlite3.SQLITE_CONSTRAINT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_NOTNULL,
)


def _insertion(table: str, *columns: str) -> str:
    """Return an INSERT of rows that are tuples of these columns.

    The driver takes tuples as they are. SQLAlchemy would turn every row into a dictionary first, which costs half as
    much as the write itself.
    """
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


INSERT_EVENT = _insertion("events", "collaboration", *Row._fields)
INSERT_HEAD = _insertion("heads", "collaboration", "seq", "head")
# The column takes no NULL: the update fails unless the head is where these rows begin.
MOVE_HEAD = "UPDATE heads SET seq = CASE seq WHEN ? THEN ? END, head = ? WHERE collaboration = ?"
INSERT_COLLABORATION = _insertion("collaborations", "id", "created", "request")
INSERT_TOKEN = _insertion("tokens", *NewToken._fields)
INSERT_INVITE = _insertion("invites", *Invite._fields)


class SqliteStore(Store):
    """One connection to write, which the threads of the process take turns to use, and some to read.

    In a file with a write-ahead log nobody who reads waits for one who writes.
    """

    several = False

    def __init__(self, url: URL) -> None:
        name = url.database or ""
        if name in ("", ":memory:") or name.startswith("file:") or url.query:
            raise StoreError(
                "The ledger needs a file: give the path of an SQLite file, without options; "
                "a database in memory would be lost with the process."
            )
        path = Path(name).resolve()  # one file has one lock, whatever link leads to it
        self._name = path.name
        self._turn = threading.RLock()
        self._opened = ExitStack()
        self._opened.callback(os.close, _locked(path))
        if wal_is_damaged(path):
            self.close()
            raise Corrupt(
                f"The write-ahead log of the SQLite file {self._name} is damaged, and SQLite would drop transactions "
                "that were acknowledged; restore the database from a backup."
            )
        settings: dict[str, Any] = {
            "connect_args": {"check_same_thread": False, "timeout": BUSY_MS / 1000},
            "isolation_level": "AUTOCOMMIT",  # only the BEGINs written here: a read needs none
            "hide_parameters": True,
        }
        file = URL.create("sqlite", database=str(path))
        writer = sa.create_engine(file, poolclass=NullPool, **settings)
        self._readers = sa.create_engine(
            file, poolclass=QueuePool, pool_size=READERS, max_overflow=0, pool_reset_on_return=None, **settings
        )
        self._opened.callback(writer.dispose)
        self._opened.callback(self._readers.dispose)
        try:
            with self._sentences():
                self._connection = self._opened.enter_context(writer.connect())
                driver = self._connection.connection.driver_connection
                assert isinstance(driver, sqlite3.Connection)
                self._driver = driver
                # FULL: a commit returns once the write-ahead log is on disk, not just with the operating system.
                for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
                    self._connection.exec_driver_sql(f"PRAGMA {pragma}")
                self._write(bring_up_to_date)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        with self._turn:
            self._opened.close()

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Turn errors of the database into sentences for the operator."""
        try:
            yield
        except WrongSchema as wrong:
            raise StoreError(f"The SQLite file {self._name} {wrong}.") from wrong
        except PoolTimeout as error:
            raise StoreError(f"The SQLite file {self._name} has too many readers at once.") from error
        except UnicodeDecodeError as error:  # even SQLite's message about it quotes the damage
            raise Corrupt(f"The SQLite file {self._name} cannot be used: it is damaged.") from error
        except (DBAPIError, sqlite3.Error) as error:
            reason = error.orig if isinstance(error, DBAPIError) else error
            kind = Corrupt if _is_damage(reason) else StoreError
            raise kind(f"The SQLite file {self._name} cannot be used: {reason}.") from error

    def _read(self, statement: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        with self._sentences(), self._readers.connect() as connection:
            return connection.execute(statement).all()

    def _write(self, work: Callable[[sa.Connection], T]) -> T:
        with self._turn, self._sentences(), self._transaction():
            return work(self._connection)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._begin()
        try:
            yield
            self._driver.execute("COMMIT")
        except BaseException:
            if self._driver.in_transaction:
                self._driver.execute("ROLLBACK")
            raise

    def _begin(self) -> None:
        # IMMEDIATE: otherwise a transaction that reads first could fail when it begins to write.
        try:
            self._driver.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            raise Busy(f"The SQLite file {self._name} is locked by another process.") from error

    def never_wait(self) -> None:
        """From now on, raise `Busy` at once where a write would wait for another process's lock."""
        with self._turn, self._sentences():
            self._driver.execute("PRAGMA busy_timeout = 0")

    def _insert(self, table: sa.Table) -> sqlite.Insert:
        return sqlite.insert(table)

    def begin(self, places: Mapping[str, int]) -> Writing:
        """Begin to write. No other process writes to the ledger, so there is no news.

        The transaction itself begins with its commit. If another process has the file locked, it is better to know
        before the state is changed, and reads go on meanwhile.
        """
        if self._turn.acquire(blocking=False):  # otherwise we are writing ourselves
            try:
                with self._sentences():
                    self._begin()
                    self._driver.execute("ROLLBACK")
            finally:
                self._turn.release()
        return _SqliteWriting(self, places)

    def commit_rows(
        self,
        rows: Mapping[str, Sequence[Row]],
        created: Sequence[Created],
        tokens: Sequence[NewToken],
        invites: Sequence[Invite],
    ) -> None:
        """Write everything in one transaction."""
        lines = [(collaboration, *row) for collaboration, batch in rows.items() for row in batch]
        first = [(id, batch[-1].seq, batch[-1].head) for id, batch in rows.items() if batch and batch[0].seq == 1]
        later = [
            (batch[0].seq - 1, batch[-1].seq, batch[-1].head, id)
            for id, batch in rows.items()
            if batch and batch[0].seq > 1
        ]
        with self._turn, self._sentences():
            try:
                with self._transaction():
                    if created:
                        self._driver.executemany(INSERT_COLLABORATION, created)
                    self._driver.executemany(INSERT_EVENT, lines)
                    self._driver.executemany(INSERT_HEAD, first)
                    self._driver.executemany(MOVE_HEAD, later)
                    if tokens:
                        self._driver.executemany(INSERT_TOKEN, tokens)
                    if invites:
                        self._driver.executemany(INSERT_INVITE, invites)
            except sqlite3.IntegrityError as error:
                if error.sqlite_errorcode in TAKEN:
                    raise Lost from error
                raise

    def listen(self, wake: Callable[[str, int], None]) -> Callable[[], None]:
        """Do nothing: no other process writes."""
        return lambda: None


class _SqliteWriting(Writing):
    """A transaction that begins and ends in `commit`."""

    def __init__(self, store: SqliteStore, places: Mapping[str, int]) -> None:
        self._store = store
        self._over = False
        self.news = {collaboration: [] for collaboration in places}

    def commit(
        self,
        rows: Mapping[str, Sequence[Row]],
        *,
        created: Sequence[Created] = (),
        tokens: Sequence[NewToken] = (),
        invites: Sequence[Invite] = (),
    ) -> None:
        """Write everything durably, or nothing."""
        if self._over:
            raise RuntimeError("This transaction is over.")
        self._store.commit_rows(rows, created, tokens, invites)
        self._over = True

    def rollback(self) -> None:
        """Roll back, unless committed; a second call does nothing."""
        self._over = True


def _is_damage(error: BaseException | None) -> bool:
    """Whether an error says that the file is damaged, or that it has a text which is none."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in DAMAGE or str(error).startswith("Could not decode to UTF-8")


def _locked(path: Path) -> int:
    """Take the lock that marks this file as open; it is released when the process ends.

    SQLite's own locks would let several processes write in turn, and none would notice what another wrote.
    """
    try:
        # The file holds the ledger's salts, so only its owner may read it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        reason = (error.strerror or "it cannot be opened").lower()
        raise StoreError(f"The SQLite file {path.name} cannot be opened: {reason}.") from error
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise StoreError(
            f"Another process has the SQLite file {path.name} open, and SQLite serves one process; "
            "stop that one, or use a postgresql:// URL, which serves any number."
        ) from error
    return lock

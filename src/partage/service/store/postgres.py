"""The store in PostgreSQL, for any number of processes."""

import hashlib
import os
import select
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import PoolProxiedConnection

from partage.ledger.chain import Row
from partage.service.store.interface import Created, Invite, Lost, NewToken, Store, StoreError, Writing
from partage.service.store.tables import WrongSchema, bring_up_to_date

T = TypeVar("T")

CHANNEL = "partage"
POOL = 32  # connections at most, opened when needed: one for each thread that writes
CONNECT_SECONDS = 10
STOP_SECONDS = 1  # to wait for the listener; while it connects it takes longer, and ends by itself
SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between two attempts to listen again

# A process that hangs inside a transaction makes all others wait, so the database ends its transaction after a
# minute, and nobody waits longer than that. Options in the operator's URL come after these and override them.
OPTIONS = "-c idle_in_transaction_session_timeout=60s -c lock_timeout=70s"
KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}

LOCK = "SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) AS key"
NOW = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
NEWS = "SELECT seq, body, salt, head, pull FROM events WHERE collaboration = %s AND seq > %s ORDER BY seq"
NOTIFY = f"SELECT pg_notify('{CHANNEL}', line) FROM unnest(%s::text[]) AS line"

# With these off, a commit returns before it is on disk, or a torn page cannot be repaired. The other values of
# synchronous_commit all wait for the local disk.
DURABLE = ("fsync", "full_page_writes", "synchronous_commit")


def _insertion(table: str, **types: str) -> str:
    """Return an INSERT of columns given as arrays: the same statement for any number of rows."""
    arrays = ", ".join(f"%b::{kind}[]" for kind in types.values())
    return f"INSERT INTO {table} ({', '.join(types)}) SELECT * FROM unnest({arrays})"


INSERT_EVENTS = _insertion(
    "events", collaboration="text", seq="bigint", body="bytea", salt="bytea", head="text", pull="bigint"
)
INSERT_HEADS = _insertion("heads", collaboration="text", seq="bigint", head="text")
# The column takes no NULL: the update fails unless each head is where the new rows begin.
MOVE_HEADS = (
    "UPDATE heads SET seq = CASE heads.seq WHEN given.begin THEN given.seq END, head = given.head "
    "FROM unnest(%b::text[], %b::bigint[], %b::text[], %b::bigint[]) AS given (collaboration, seq, head, begin) "
    "WHERE heads.collaboration = given.collaboration"
)
INSERT_COLLABORATIONS = _insertion("collaborations", id="text", created="bigint", request="text")
INSERT_TOKENS = _insertion("tokens", hashed="text", collaboration="text", agent="text", epoch="bigint")
INSERT_INVITES = _insertion(
    "invites", hashed="text", id="text", collaboration="text", created="bigint", expires="bigint", revoked="bool"
)


class PostgresStore(Store):
    """A pool of connections; threads and processes may write at the same time.

    Round trips dominate the cost, so `begin` and `commit` are one each: their statements travel together in a
    pipeline.
    """

    several = True

    def __init__(self, url: URL) -> None:
        if not url.database:
            raise StoreError("The URL names no database; use postgresql://USER:PASSWORD@HOST/DATABASE.")
        own = url.query.get("options", ())
        options = " ".join([OPTIONS, *([own] if isinstance(own, str) else own)])
        self._url = url.difference_update_query(["options"])
        at = f" at {url.host}" if url.host else ""
        self._name = f"The PostgreSQL database {url.database}{at}"
        self._listeners: list[_Listener] = []
        self._settings = {"connect_timeout": CONNECT_SECONDS, "options": options, **KEEPALIVES}
        try:
            self._engine = sa.create_engine(
                self._url,
                pool_size=POOL,
                max_overflow=8,
                pool_use_lifo=True,
                # Each statement sees what was committed before it, so news read after the lock is complete.
                isolation_level="READ COMMITTED",
                connect_args=self._settings,
                hide_parameters=True,
            )
        except (TypeError, ValueError):
            raise StoreError(f"{self._name} has options in its URL that cannot be read.") from None
        # A read is one statement and needs no transaction, which would take two more round trips.
        self._reading = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        try:
            self._write(_bring_up_to_date)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all connections; a second call does nothing."""
        while self._listeners:
            self._listeners.pop().stop()
        self._engine.dispose()

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Turn errors of the database into sentences for the operator."""
        try:
            yield
        except WrongSchema as wrong:
            raise StoreError(f"{self._name} {wrong}.") from wrong
        except PoolTimeout as error:
            raise StoreError(f"{self._name} has no free connection: there are too many requests at once.") from error
        except (DBAPIError, psycopg.Error) as error:
            raise StoreError(f"{self._name} {_reason(error)}.") from error

    def _read(self, statement: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        def once() -> Sequence[sa.Row[Any]]:
            with self._reading.connect() as connection:
                return connection.execute(statement).all()

        with self._sentences():
            return _once_more(once)

    def _write(self, work: Callable[[sa.Connection], T]) -> T:
        def once() -> tuple[sa.Connection, T]:
            connection = self._engine.connect()
            try:
                return connection, work(connection)
            except BaseException:
                connection.close()
                raise

        with self._sentences():
            # Retried only up to here: a commit that fails may still have been done.
            connection, done = _once_more(once)
            with connection:
                connection.commit()
            return done

    def _insert(self, table: sa.Table) -> postgresql.Insert:
        return postgresql.insert(table)

    def risks(self) -> list[str]:
        """Return the settings of the database that let a power cut undo what was acknowledged."""
        settings = sa.table("pg_settings", sa.column("name"), sa.column("setting"))
        wrong = sa.select(settings.c.name).where(settings.c.name.in_(DURABLE), settings.c.setting == "off")
        return [f"{name} = off" for (name,) in self._read(wrong.order_by(settings.c.name))]

    def begin(self, places: Mapping[str, int]) -> Writing:
        """Begin to write: wait until no other process writes to these collaborations, and read their news."""
        # Always in the same order, so that no two processes wait for each other.
        keys = sorted(map(_lock_key, places))
        with self._sentences():
            for _ in range(POOL):
                connection = self._engine.raw_connection()
                driver = _driver(connection)
                try:
                    with driver.pipeline():
                        driver.execute(LOCK, [keys])
                        clock = driver.execute(NOW)  # after the lock, for which it may have waited
                        read = {place: driver.execute(NEWS, (place, places[place]), binary=True) for place in places}
                    news = {place: [Row(*row) for row in cursor] for place, cursor in read.items()}
                    (now,) = clock.fetchone() or (None,)
                    return _PostgresWriting(self, connection, news, now)
                except BaseException as error:
                    stale = driver.closed and isinstance(error, psycopg.OperationalError)
                    _let_go(connection)
                    # After a restart of the database every pooled connection is stale, which shows one by one.
                    # If a new one cannot be opened, that fails above and ends the loop.
                    if not stale:
                        raise
            raise psycopg.OperationalError

    def listen(self, wake: Callable[[str, int], None]) -> Callable[[], None]:
        """Call `wake(collaboration, seq)` for every write, from a thread with its own connection."""
        given, settings = self._engine.dialect.create_connect_args(self._url)
        settings = {**settings, **self._settings, "autocommit": True}
        listener = _Listener(lambda: psycopg.connect(*given, **settings), wake)
        listener.start()
        self._listeners.append(listener)
        return listener.stop


class _PostgresWriting(Writing):
    """A transaction that holds the locks of its collaborations."""

    def __init__(
        self, store: PostgresStore, connection: PoolProxiedConnection, news: dict[str, list[Row]], now: int | None
    ) -> None:
        self._store = store
        self._connection: PoolProxiedConnection | None = connection
        self.news, self.now = news, now

    def commit(
        self,
        rows: Mapping[str, Sequence[Row]],
        *,
        created: Sequence[Created] = (),
        tokens: Sequence[NewToken] = (),
        invites: Sequence[Invite] = (),
    ) -> None:
        """Write everything durably, or nothing."""
        if self._connection is None:
            raise RuntimeError("This transaction is over.")
        driver = _driver(self._connection)
        lines = [(collaboration, *row) for collaboration, batch in rows.items() for row in batch]
        ends = [(id, batch[-1].seq, batch[-1].head, batch[0].seq - 1) for id, batch in rows.items() if batch]
        last = [f"{collaboration} {batch[-1].seq}" for collaboration, batch in rows.items() if batch]
        with self._store._sentences():
            try:
                # After a statement that fails the database skips the rest, including the commit.
                with driver.pipeline():
                    for statement, given in (
                        (INSERT_COLLABORATIONS, created),
                        (INSERT_EVENTS, lines),
                        (INSERT_HEADS, [end[:3] for end in ends if end[3] == 0]),
                        (MOVE_HEADS, [end for end in ends if end[3]]),
                        (INSERT_TOKENS, tokens),
                        (INSERT_INVITES, invites),
                    ):
                        if given:
                            driver.execute(statement, _columns(given))
                    driver.execute(NOTIFY, [last])
                    driver.commit()
            except (psycopg.errors.UniqueViolation, psycopg.errors.NotNullViolation) as error:
                raise Lost from error
            finally:
                self.rollback()

    def rollback(self) -> None:
        """Roll back, unless committed; a second call does nothing."""
        connection, self._connection = self._connection, None
        if connection is not None:
            _let_go(connection)


class _Listener:
    """A thread that listens for notifications, and reconnects after every error."""

    def __init__(self, connect: Callable[[], psycopg.Connection], wake: Callable[[str, int], None]) -> None:
        self._connect, self._wake = connect, wake
        self._over, self._end = os.pipe()  # a byte written to it ends the wait at once
        self._tried = threading.Event()
        self._thread = threading.Thread(target=self._run, name="partage-listen", daemon=True)

    def start(self) -> None:
        """Start, and wait for the first attempt to connect: writes after this returns are noticed."""
        self._thread.start()
        self._tried.wait(CONNECT_SECONDS)

    def stop(self) -> None:
        """End the thread; a second call does nothing."""
        if self._end >= 0:
            os.write(self._end, b".")
            os.close(self._end)
            self._end = -1
        if threading.current_thread() is not self._thread:
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        missed, pause, over = False, SHORTEST_PAUSE, False
        while not over:
            try:
                with self._connect() as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    self._tried.set()
                    pause = SHORTEST_PAUSE
                    if missed:
                        self._wake("", 0)
                    over = self._hear(connection)
            except (psycopg.Error, OSError):
                missed = True
                self._tried.set()
                over = bool(select.select([self._over], [], [], pause)[0])
                pause = min(2 * pause, LONGEST_PAUSE)
        os.close(self._over)

    def _hear(self, connection: psycopg.Connection) -> bool:
        """Pass on notifications until told to stop (True) or the connection breaks (an error)."""
        database = connection.pgconn
        while True:
            readable, _, _ = select.select([database.socket, self._over], [], [])
            if self._over in readable:
                return True
            database.consume_input()
            while (heard := database.notifies()) is not None:
                collaboration, _, seq = heard.extra.decode().rpartition(" ")
                if seq.isdecimal():
                    self._wake(collaboration, int(seq))
                else:  # a NOTIFY that an operator sent by hand
                    self._wake("", 0)


def _bring_up_to_date(connection: sa.Connection) -> None:
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_lock_key("the tables"))))
    bring_up_to_date(connection)


def _lock_key(name: str) -> int:
    """Return the number of a collaboration's advisory lock."""
    digest = hashlib.blake2b(name.encode(), digest_size=8, person=b"partage").digest()
    return int.from_bytes(digest, signed=True)


def _columns(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _driver(connection: PoolProxiedConnection) -> psycopg.Connection:
    driver = connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver


def _let_go(connection: PoolProxiedConnection) -> None:
    """Roll back and return a connection to the pool, or discard it if it is broken."""
    driver = _driver(connection)
    if not driver.closed:
        with suppress(psycopg.Error):
            driver.rollback()
    if driver.closed:
        connection.invalidate()
    connection.close()


def _once_more(once: Callable[[], T]) -> T:
    """Call `once`; if the connection was stale, call it again with a new one."""
    try:
        return once()
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
        return once()


def _reason(error: DBAPIError | psycopg.Error) -> str:
    """Return what went wrong, without SQL, addresses or passwords."""
    found = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(found, psycopg.Error) and found.diag.message_primary:
        return f"refused: {found.diag.message_primary}"
    # When the server refuses a connection, its reason comes as text after the address that was tried.
    _, fatal, said = str(found).partition("FATAL:")
    if fatal:
        return f"refused: {said.strip().splitlines()[0]}"
    return "does not answer"

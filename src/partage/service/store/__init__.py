"""Storage of ledgers: SQLite for one process, PostgreSQL for any number.

The only part of the service that uses SQL. It knows nothing of games, rules or JSON: to the store, a row of the
ledger is bytes. `open_store` takes a URL and returns the right `Store`.
"""

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from partage.errors import require
from partage.ledger.chain import Row
from partage.service.store.interface import Busy, Corrupt, Created, Invite, Lost, NewToken, Store, StoreError, Writing
from partage.service.store.sqlite import SqliteStore

__all__ = [
    "Busy",
    "Corrupt",
    "Created",
    "Invite",
    "Lost",
    "NewToken",
    "Row",
    "Store",
    "StoreError",
    "Writing",
    "open_store",
]

ALLOWED = "give the path of an SQLite file, or sqlite:///FILE, or postgresql://USER:PASSWORD@HOST/DATABASE"


def open_store(url: str) -> Store:
    """Open the database at `url`, with its tables created or brought up to date.

    Parameters
    ----------
    url
        The path of an SQLite file, `sqlite:///FILE`, or `postgresql://USER:PASSWORD@HOST/DATABASE`
        (`postgres://` works too).

    Raises
    ------
    StoreError
        The URL is not one of these, the database cannot be opened or belongs to a newer Partage, or another process
        has the SQLite file open.
    MissingExtra
        The packages for PostgreSQL are not installed.

    Examples
    --------
    >>> open_store("mysql://partage@db/partage")
    Traceback (most recent call last):
    ...
    partage.service.store.interface.StoreError: Partage stores its ledger in SQLite or PostgreSQL, not in mysql: ...
    """
    parsed = _parsed(url)
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        return SqliteStore(parsed)
    if parsed.drivername in ("postgresql", "postgresql+psycopg", "postgres"):
        require("PostgreSQL", "postgres")
        from partage.service.store.postgres import PostgresStore

        return PostgresStore(parsed.set(drivername="postgresql+psycopg"))
    name = parsed.drivername
    raise StoreError(f"Partage stores its ledger in SQLite or PostgreSQL, not in {name}: {ALLOWED}.")


def _parsed(url: str) -> URL:
    """Read a URL; a plain path is an SQLite file."""
    if "://" not in url:
        return URL.create("sqlite", database=url)
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        # The URL appears neither here nor in the cause: it may hold a password.
        raise StoreError(f"The database's URL cannot be read: {ALLOWED}.") from None

"""The interface of a store and its guarantees, the same for both databases."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import sqlalchemy as sa

from partage.errors import PartageError
from partage.ledger.chain import Row
from partage.service.store.tables import (
    collaborations,
    cosignatures,
    events,
    heads,
    meta,
    sessions,
    snapshots,
    tokens,
)
from partage.service.store.tables import invites as invites_

T = TypeVar("T")

PART = 2**18  # bytes of a ledger that are read at a time: about a millisecond of work
ROW = 2**7  # bytes of a row beside its body, with its salt and head
MOST_ROWS = 32  # that are read by one statement, while nobody knows how large they are


class Lost(Exception):
    """Another process wrote first: read what it wrote and decide again."""


class StoreError(PartageError):
    """The database cannot be used. The sentence is for the operator and holds no SQL, path or password."""


class Busy(StoreError):
    """Another process has the database locked, and nothing was done: try again a little later."""


class Corrupt(StoreError):
    """The database itself finds that what it reads is damaged."""


class Created(NamedTuple):
    """A collaboration to create."""

    collaboration: str
    created: int  # ms
    request: str | None  # the id of the request that creates it, unique in a store


class NewToken(NamedTuple):
    """An agent's token to store, hashed."""

    hashed: str
    collaboration: str
    agent: str
    epoch: int = 0  # which of the agent's tokens it is


class Invite(NamedTuple):
    """An invite, with its code hashed; times in ms."""

    hashed: str
    id: str
    collaboration: str
    created: int
    expires: int
    revoked: bool


class Writing(ABC):
    """An open transaction. As a context manager it rolls back unless it was committed.

    Attributes
    ----------
    news
        For each collaboration, the rows that other processes wrote after the place we knew.
    now
        What the database's clock says, in ms; None if only this process writes, which then uses its own.
    """

    news: dict[str, list[Row]]
    now: int | None = None

    @abstractmethod
    def commit(
        self,
        rows: Mapping[str, Sequence[Row]],
        *,
        created: Sequence[Created] = (),
        tokens: Sequence[NewToken] = (),
        invites: Sequence[Invite] = (),
    ) -> None:
        """Write everything durably, or nothing.

        Raises
        ------
        Lost
            A sequence number, a pull or a request id is taken; nothing was written.
        Busy
            Another process has the database locked; nothing was written, and the call can be repeated.
        StoreError
            The database failed. If the connection broke, the outcome is unknown: reload the ledger.
        """

    @abstractmethod
    def rollback(self) -> None:
        """Roll back, unless committed; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.rollback()


class Store(ABC):
    """The ledgers of all collaborations, and the hashed tokens, invites and sessions.

    Attributes
    ----------
    several
        Whether other processes may write at the same time.
    """

    several: ClassVar[bool]

    @abstractmethod
    def close(self) -> None:
        """Close the connection; a second call does nothing."""

    @abstractmethod
    def _read(self, statement: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        """Run a statement that only reads."""

    @abstractmethod
    def _write(self, work: Callable[[sa.Connection], T]) -> T:
        """Run a small piece of work in a transaction of its own."""

    @abstractmethod
    def _insert(self, table: sa.Table) -> Any:
        """Return the database's own INSERT statement, which has ON CONFLICT."""

    def ready(self) -> None:
        """Raise `StoreError` unless the database takes a durable write: a full disk still answers reads."""
        # The value changes each time: SQLite writes nothing where a row stays the same.
        other = sa.case((meta.c.value == "odd", "even"), else_="odd")
        new = self._insert(meta).values(key="ready", value="odd")
        statement = new.on_conflict_do_update(index_elements=["key"], set_={"value": other})
        self._write(lambda connection: connection.execute(statement))

    def risks(self) -> list[str]:
        """Return the database's settings that let a power cut undo what was acknowledged, as in "fsync = off"."""
        return []

    def never_wait(self) -> None:  # noqa: B027
        """From now on, raise `Busy` at once where a write would wait for another process's lock."""

    # The ledger.

    @abstractmethod
    def begin(self, places: Mapping[str, int]) -> Writing:
        """Begin to write to these collaborations, each with the last sequence number that we know (0: none).

        Other processes that write to them wait until this one commits or rolls back.
        """

    def rows(self, collaboration: str, after: int = 0, limit: int | None = None) -> list[Row]:
        """Return the rows after sequence number `after`, in order, at most `limit` of them."""
        chosen = _ledger(collaboration).where(events.c.seq > after).order_by(events.c.seq).limit(limit)
        return [Row._make(found) for found in self._read(chosen)]

    def some_rows(self, collaboration: str, after: int = 0, last: int | None = None) -> list[Row]:
        """Return the next rows after sequence number `after`, up to `last`: as many as are about `PART` bytes.

        Empty only where no row is left. A row can be a quarter of a megabyte, so a number of rows bounds no memory.
        """
        up_to = events.c.seq <= last if last is not None else sa.true()
        found: list[Row] = []
        taken, count = 0, 1
        while taken < PART:
            chosen = _ledger(collaboration).where(events.c.seq > after, up_to).order_by(events.c.seq).limit(count)
            rows = [Row._make(one) for one in self._read(chosen)]
            found += rows
            if len(rows) < count or not isinstance(rows[-1].seq, int):  # the end, or a damaged row
                break
            after = rows[-1].seq
            taken += sum(ROW + (len(row.body) if isinstance(row.body, bytes) else 0) for row in rows)
            # As many as there is room for, if the others are like these; a few at most, since they may not be.
            count = max(1, min(MOST_ROWS, (PART - taken) * len(found) // taken))
        return found

    def row(self, collaboration: str, seq: int) -> Row | None:
        """Return one row, or None if it does not exist."""
        found = self._read(_ledger(collaboration).where(events.c.seq == seq))
        return Row._make(found[0]) if found else None

    def told(self, collaboration: str, pull: int) -> Row | None:
        """Return the row that reports this pull, or None if there is none."""
        found = self._read(_ledger(collaboration).where(events.c.pull == pull))
        return Row._make(found[0]) if found else None

    def head(self, collaboration: str) -> tuple[int, str] | None:
        """Return number and head of the last row, as stored apart from the rows; None if there is none."""
        found = self._read(sa.select(heads.c.seq, heads.c.head).where(heads.c.collaboration == collaboration))
        return (found[0].seq, found[0].head) if found else None

    def collaborations(self) -> list[str]:
        """Return the ids of all collaborations, in order of creation."""
        return [id for (id,) in self._read(sa.select(collaborations.c.id).order_by(collaborations.c.number))]

    def made(self, request: str) -> str | None:
        """Return the id of the collaboration that this request created, or None if there is none."""
        found = self._read(sa.select(collaborations.c.id).where(collaborations.c.request == request))
        return str(found[0].id) if found else None

    # Snapshots, which are only a cache.

    def snapshot(self, collaboration: str, format: str) -> tuple[int, bytes] | None:
        """Return sequence number and state of the newest snapshot of this format, or None if there is none."""
        wanted = sa.select(snapshots.c.seq, snapshots.c.state)
        found = self._read(
            wanted.where(snapshots.c.collaboration == collaboration, snapshots.c.format == format),
        )
        return (found[0].seq, found[0].state) if found else None

    def keep_snapshot(self, collaboration: str, seq: int, format: str, state: bytes) -> None:
        """Store a snapshot in place of an older one of its format; keep a newer one."""
        new = self._insert(snapshots).values(collaboration=collaboration, format=format, seq=seq, state=state)
        statement = new.on_conflict_do_update(
            index_elements=["collaboration", "format"],
            set_={"seq": new.excluded.seq, "state": new.excluded.state},
            where=new.excluded.seq > snapshots.c.seq,
        )
        self._write(lambda connection: connection.execute(statement))

    # Checkpoints that members cosigned.

    def cosignatures(self, collaboration: str) -> dict[str, str]:
        """Return the newest checkpoint that each agent cosigned, by agent."""
        wanted = sa.select(cosignatures.c.agent, cosignatures.c.note)
        found = self._read(wanted.where(cosignatures.c.collaboration == collaboration))
        return {row.agent: row.note for row in found}

    def keep_cosignature(self, collaboration: str, agent: str, size: int, note: str) -> None:
        """Store a checkpoint that an agent cosigned, in place of one with as many rows or fewer."""
        new = self._insert(cosignatures).values(collaboration=collaboration, agent=agent, size=size, note=note)
        statement = new.on_conflict_do_update(
            index_elements=["collaboration", "agent"],
            set_={"size": new.excluded.size, "note": new.excluded.note},
            where=new.excluded.size >= cosignatures.c.size,
        )
        self._write(lambda connection: connection.execute(statement))

    # Access.

    def meta(self, key: str) -> str | None:
        """Return the value of this key, or None if it is not set."""
        found = self._read(sa.select(meta.c.value).where(meta.c.key == key))
        return str(found[0].value) if found else None

    def set_meta_once(self, key: str, value: str) -> str:
        """Set this key unless it is set, and return its value: the first writer wins."""
        statement = self._insert(meta).values(key=key, value=value).on_conflict_do_nothing()
        self._write(lambda connection: connection.execute(statement))
        found = self.meta(key)
        return value if found is None else found

    def set_meta(self, key: str, value: str) -> None:
        """Set this key."""
        new = self._insert(meta).values(key=key, value=value)
        statement = new.on_conflict_do_update(index_elements=["key"], set_={"value": new.excluded.value})
        self._write(lambda connection: connection.execute(statement))

    def token(self, hashed: str) -> NewToken | None:
        """Return the token with this hash, or None if there is no such token. The ledger says whether it ended."""
        wanted = sa.select(*(tokens.c[name] for name in NewToken._fields)).where(tokens.c.hashed == hashed)
        found = self._read(wanted)
        return NewToken._make(found[0]) if found else None

    def invite(self, hashed: str) -> Invite | None:
        """Return the invite whose code has this hash, or None if there is none."""
        found = self._read(_invites().where(invites_.c.hashed == hashed))
        return Invite._make(found[0]) if found else None

    def invites(self, collaboration: str) -> list[Invite]:
        """Return all invites of a collaboration, oldest first."""
        wanted = _invites().where(invites_.c.collaboration == collaboration)
        return [Invite._make(found) for found in self._read(wanted.order_by(invites_.c.created, invites_.c.id))]

    def add_invites(self, invites: Sequence[Invite]) -> None:
        """Store new invites: all of them or none."""
        if invites:
            given = [invite._asdict() for invite in invites]
            self._write(lambda connection: connection.execute(invites_.insert(), given))

    def revoke(self, collaboration: str, invite_id: str) -> bool:
        """Revoke an invite; return whether it exists."""
        statement = (
            invites_.update()
            .where(invites_.c.collaboration == collaboration, invites_.c.id == invite_id)
            .values(revoked=True)
        )
        return self._write(lambda connection: connection.execute(statement).rowcount) > 0

    def session(self, hashed: str, now: int) -> str | None:
        """Return the holder of a session that has not expired at `now`, in ms, or None if there is none."""
        wanted = sa.select(sessions.c.holder).where(sessions.c.hashed == hashed, sessions.c.expires > now)
        found = self._read(wanted)
        return str(found[0].holder) if found else None

    def add_session(self, hashed: str, holder: str, expires: int, now: int) -> None:
        """Store a new session, and delete those that have expired at `now`, in ms."""

        def work(connection: sa.Connection) -> None:
            connection.execute(sessions.delete().where(sessions.c.expires <= now))
            connection.execute(sessions.insert().values(hashed=hashed, holder=holder, expires=expires))

        self._write(work)

    def drop_session(self, hashed: str) -> None:
        """End a session, if it exists."""
        self._write(lambda connection: connection.execute(sessions.delete().where(sessions.c.hashed == hashed)))

    # Other processes.

    @abstractmethod
    def listen(self, wake: Callable[[str, int], None]) -> Callable[[], None]:
        """Call `wake(collaboration, seq)`, from a separate thread, whenever any process has written.

        `wake("", 0)` says that anything may have changed; `wake` must not raise. Returns a function that stops
        listening; closing the store stops it too. If only one process can write, `wake` is never called.
        """


def _ledger(collaboration: str) -> sa.Select[Any]:
    """Select the rows of one collaboration."""
    columns = (events.c.seq, events.c.body, events.c.salt, events.c.head, events.c.pull)
    return sa.select(*columns).where(events.c.collaboration == collaboration)


def _invites() -> sa.Select[Any]:
    return sa.select(*(invites_.c[name] for name in Invite._fields))

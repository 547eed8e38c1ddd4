"""The book: one collaboration in memory, with everything that belongs to it while the server runs."""

import asyncio
import hashlib
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from partage.ledger.chain import GENESIS, seal
from partage.ledger.events import AnyEvent, Create, decode
from partage.ledger.messages import SettlementView
from partage.ledger.state import SNAPSHOT_FORMAT, State
from partage.ledger.views import board_view
from partage.service.store import Row, Store

if TYPE_CHECKING:
    from partage.service.runtime.writer import Job

RECENT = 400  # events that a book remembers at most, for the feed on the pages
READ_AT_ONCE = 10_000  # rows


class Preview(NamedTuple):
    """The settlement if the collaboration closed after event `seq`; a page may show it until `good_until`."""

    seq: int
    good_until: int
    view: SettlementView


class Book:
    """A collaboration in memory: its state, the ledger's head, its waiting jobs and its open streams.

    Attributes
    ----------
    valid
        Whether the state holds only what is on disk or being written. After a failed write it must be reloaded.
    taken
        Whether its jobs are in a transaction, or wait for one to begin.
    writing
        Pending while the state may be ahead of the disk.
    watchers
        Set on every change; a dictionary for its order.
    ahead, stepped
        How far the ledger's time is ahead of this process's, and how far that one had stepped then; for `Timekeeper`.
    """

    def __init__(self, state: State, head: str, snapshot_seq: int = 0) -> None:
        self.id = state.config.collaboration
        self.arms = {name: arm for arm, name in enumerate(state.config.arms)}
        self.state = state
        self.head = head
        self.snapshot_seq = snapshot_seq
        self.valid = True
        self.jobs: list[Job] = []
        self.taken = False
        self.writing: asyncio.Future[None] | None = None
        self.watchers: dict[asyncio.Event, None] = {}
        self.ahead, self.stepped = 0, 0
        self.recent: list[AnyEvent] = []
        self.preview: Preview | None = None
        self.settling = asyncio.Lock()  # so that concurrent requests compute one settlement, not one each
        self._board: tuple[int, bytes, str] | None = None

    @classmethod
    def begin(cls, event: Create, salt: bytes) -> "tuple[Book, Row]":
        """Return the book of a new collaboration, and its first row."""
        row = seal(event, GENESIS, salt)
        return cls(State(event), row.head), row

    @classmethod
    def load(cls, store: Store, collaboration: str) -> "Book | None":
        """Read a collaboration: its last snapshot, and the events since."""
        state, head, snapshot_seq = _from_snapshot(store, collaboration)
        while rows := store.rows(collaboration, after=state.seq if state else 0, limit=READ_AT_ONCE):
            for row in rows:
                event = decode(row.body)
                if state is None:
                    assert isinstance(event, Create)
                    state = State(event)
                else:
                    state.apply(event)
            head = rows[-1].head
        return None if state is None else cls(state, head, snapshot_seq)

    def replace(self, fresh: "Book") -> None:
        """Go back to what is on disk, after a failed write or a lost race."""
        self.state, self.head, self.snapshot_seq = fresh.state, fresh.head, fresh.snapshot_seq
        self.recent, self.preview, self._board = [], None, None
        self.valid = True

    def catch_up(self, rows: list[Row]) -> None:
        """Apply rows that another process wrote."""
        for row in rows:
            if row.seq > self.state.seq:
                event = decode(row.body)
                self.state.apply(event)
                self._remember(event)
        if rows:
            self.head = rows[-1].head

    def append(self, event: AnyEvent, salt: bytes) -> Row:
        """Return the next row of the ledger: an event that is already in the state."""
        row = seal(event, self.head, salt)
        self.head = row.head
        self._remember(event)
        return row

    def _remember(self, event: AnyEvent) -> None:
        self.recent.append(event)
        if len(self.recent) > RECENT:
            del self.recent[: RECENT // 2]

    async def on_disk(self) -> None:
        """Wait until everything in the state is on disk."""
        while self.writing is not None:
            await asyncio.shield(self.writing)  # cancelling one waiter must not end it for the others

    def begin_writing(self) -> None:
        """Record that the state may be ahead of the disk from now on."""
        if self.writing is None:
            self.writing = asyncio.get_running_loop().create_future()

    def written(self) -> None:
        """Record that the write is over."""
        self.taken = False
        if self.writing is not None:
            self.writing.set_result(None)
            self.writing = None

    def notify(self) -> None:
        """Wake the watchers."""
        for watcher in self.watchers:
            watcher.set()

    def board(self) -> tuple[bytes, str]:
        """Return the board as JSON, and its ETag."""
        if self._board is None or self._board[0] != self.state.seq:
            body = msgspec.json.encode(board_view(self.state))
            etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
            self._board = (self.state.seq, body, etag)
        return self._board[1], self._board[2]


def _from_snapshot(store: Store, collaboration: str) -> tuple[State | None, str, int]:
    """Return state, head and sequence number of the last snapshot. It is a cache: ignored where it does not fit."""
    nothing = None, GENESIS, 0
    found = store.snapshot(collaboration, SNAPSHOT_FORMAT)
    if found is None:
        return nothing
    seq, snapshot = found
    row = store.row(collaboration, seq)
    try:
        state = State.load(snapshot)
    except (msgspec.MsgspecError, LookupError, ValueError):
        return nothing
    if row is None or state.seq != seq or state.config.collaboration != collaboration:
        return nothing
    return state, row.head, seq

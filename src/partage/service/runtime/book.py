"""The book: one collaboration in memory, with everything that belongs to it while the server runs."""

import asyncio
import contextlib
import hashlib
import math
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from partage.agreement import disagreements
from partage.ledger.chain import GENESIS, row_hash, seal
from partage.ledger.checkpoints import Checkpoint, origin_of, signed_checkpoint
from partage.ledger.events import AnyEvent, Create, Tell, decode
from partage.ledger.keys import Key
from partage.ledger.merkle import Tree, Unknown
from partage.ledger.messages import SettlementView
from partage.ledger.refusals import Refused
from partage.ledger.settlement import Inputs
from partage.ledger.state import State
from partage.ledger.views import board_view
from partage.service.runtime.damage import Chain, Damaged, changed, check_end, lost, next_rows, unreadable
from partage.service.runtime.frames import Frames
from partage.service.runtime.snapshots import last_snapshot
from partage.service.runtime.system import AsyncCall
from partage.service.store import Row, Store
from partage.settle.money import Settled

if TYPE_CHECKING:
    from partage.service.runtime.writer import Job

PAUSE = 0.1  # seconds between two boards that a watcher gets
AT_ONCE = 25  # watchers that are woken at a time: about a millisecond of work
GAP = 0.001  # seconds between them: otherwise the thread that writes hardly gets a turn until all are woken
BYTES_A_SECOND = 20_000_000  # that the watchers of a collaboration get together
SHOWN_A_SECOND = 5_000  # arms on boards that are computed for watchers: about a twentieth of the time
COMPARE_SHARE = 20  # comparing many members is followed by a pause of this many times what it took
RECENT = 400  # events that a book remembers at most, for the feed on the pages


class Preview(NamedTuple):
    """The settlement if the collaboration closed after event `seq`; a page may show it until `good_until`.

    `given` and `found` are what it was computed from and to.
    """

    seq: int
    good_until: int
    view: SettlementView
    given: Inputs
    found: Settled


class Book:
    """A collaboration in memory: its state, the ledger's head and tree, its waiting jobs and its open streams.

    Attributes
    ----------
    valid
        Whether the state holds only what is on disk or being written. After a failed write it must be reloaded.
    durable
        The number of rows that are on disk. State, head and tree may be ahead of it.
    asks
        The asks that wait for a claim, by agent, in the order of arrival.
    taken
        Whether its jobs are in a transaction, or wait for one to begin.
    held, refusing
        Whether its jobs wait until it is settled, and whether that takes so long that new ones are refused.
    closing
        Locked while it is being closed.
    writing
        Whether the state may be ahead of the disk.
    watchers
        Set on every change, but not too often; a dictionary for its order.
    frames
        The boards that watchers get, each as it was on disk.
    used
        When it was last asked for, by the event loop's time.
    ahead, stepped
        How far the ledger's time is ahead of this process's, and how far that one had stepped then; for `Timekeeper`.
    """

    def __init__(self, state: State, head: str, tree: Tree, snapshot_seq: int = 0) -> None:
        self.id = state.config.collaboration
        self.state = state
        self.head = head
        self.tree = tree
        self.durable = state.seq
        self.snapshot_seq = snapshot_seq
        self.valid = True
        self.jobs: list[Job] = []
        self.asks: dict[str, Job] = {}
        self.taken = False
        self.held = self.refusing = False
        self.closing = asyncio.Lock()
        self.writing = False
        self._readers: list[asyncio.Future[None]] = []  # they wait until it is no longer being written
        self._free = asyncio.Event()  # set when it is no longer taken
        self.watchers: dict[asyncio.Event, None] = {}
        self.used = 0.0
        self.ahead, self.stepped = 0, 0
        self.recent: list[AnyEvent] = []
        self.preview: Preview | None = None
        self.settling = asyncio.Lock()  # so that concurrent requests compute one settlement, not one each
        self._board: tuple[int, bytes, str] | None = None
        self.frames, self._shown_until = Frames(), 0.0
        self._waking: list[asyncio.Event] = []  # watchers that are still to be woken
        self._wake_next: asyncio.Handle | None = None  # what wakes them, now or after a pause
        self._woken_at = self._next_round = -math.inf
        self._changed = False  # since watchers began to be woken
        self._comparing: asyncio.Task[None] | None = None
        self._checkpoint = Checkpoint("", 0, b""), ""

    @property
    def arms(self) -> dict[str, int]:
        """The number of each arm, by name."""
        return self.state.numbers

    @classmethod
    def begin(cls, event: Create, salt: bytes) -> "tuple[Book, Row]":
        """Return the book of a new collaboration, and its first row, which must be on disk before it is used."""
        row = seal(event, GENESIS, salt)
        return cls(State(event), row.head, Tree(entries=[row_hash(row.salt, row.body)])), row

    @classmethod
    def load(cls, store: Store, collaboration: str) -> "Book | None":
        """Read a collaboration: its last snapshot, and the events since. Every row is checked.

        Raises
        ------
        Damaged
            The rows are not those that were written.
        """
        found = last_snapshot(store, collaboration)
        state, head, tree = found or (None, GENESIS, Tree())
        snapshot_seq, chain = tree.size, Chain(tree.size, head)
        whole = False
        while not whole:
            while rows := next_rows(store, collaboration, chain):
                for row, hashed in rows:
                    state = _applied(state, row, collaboration)
                    tree.append(hashed)
            if state is None and store.head(collaboration) is None:
                return None
            whole = check_end(store, collaboration, chain)
        if state is None:
            raise lost(1)
        state.disagreements()  # here, in a thread: it takes long if there are many members
        return cls(state, chain.head, tree, snapshot_seq)

    def replace(self, fresh: "Book") -> None:
        """Go back to what is on disk, after a failed write or a lost race.

        Raises
        ------
        Damaged
            Rows that were on disk before are not there any more.
        """
        if fresh.durable < self.durable:
            raise lost(fresh.durable + 1)
        with contextlib.suppress(Unknown):  # so long ago that only the rows themselves could tell
            if fresh.tree.root(self.durable) != self.tree.root(self.durable):
                raise Damaged(f"one of the first {self.durable} rows is not the one that was written")
        self.state, self.head, self.tree = fresh.state, fresh.head, fresh.tree
        self.durable, self.snapshot_seq = fresh.durable, fresh.snapshot_seq
        self.recent, self.preview, self._board, self.frames.seq = [], None, None, 0
        self.valid = True

    def catch_up(self, rows: list[Row]) -> None:
        """Apply rows that another process wrote.

        Raises
        ------
        Damaged
            They do not continue the rows that we know.
        """
        chain = Chain(self.state.seq, self.head)
        for row in rows:
            if row.seq > self.state.seq:
                hashed, event = chain.follow(row), decode(row.body)
                self.state.apply(event)
                self.tree.append(hashed)
                self.head = chain.head
                self._remember(event)
        if rows:
            self.durable = self.state.seq

    def append(self, event: AnyEvent, salt: bytes) -> Row:
        """Return the next row of the ledger: an event that is already in the state."""
        row = seal(event, self.head, salt)
        self.head = row.head
        self.tree.append(row_hash(row.salt, row.body))
        self._remember(event)
        return row

    def checkpoint(self, key: Key) -> tuple[Checkpoint, str]:
        """Return the checkpoint of all rows that are on disk, and the note that this key signed."""
        if self._checkpoint[0].size != self.durable:
            found = Checkpoint(origin_of(self.id), self.durable, self.tree.root(self.durable))
            self._checkpoint = found, signed_checkpoint(found, key)
        return self._checkpoint

    def _remember(self, event: AnyEvent) -> None:
        self.recent.append(event)
        if len(self.recent) > RECENT:
            del self.recent[: RECENT // 2]

    @property
    def idle(self) -> bool:
        """Whether it may leave the memory: nobody watches or waits, no claim is open, and its time is the clock's."""
        locked = self.closing.locked() or self.settling.locked()
        busy = self.jobs or self.asks or self.taken or self.watchers or locked or self.ahead or self._comparing
        return self.valid and not busy and (self.state.closed is not None or not self.state.claims)

    async def on_disk(self) -> None:
        """Wait until everything in the state is on disk.

        The writer goes on only after all that have waited, so a collaboration that is always written is read too.
        Read the state at once: in a task of its own, or in `asyncio.wait_for`, the caller goes on a turn too late.
        """
        while self.writing:
            reader = asyncio.get_running_loop().create_future()  # its own: an await in between would take a turn
            self._readers.append(reader)
            await reader

    async def at_rest(self) -> None:
        """Wait until it is in no transaction. Hold it first, or the next one follows at once."""
        while self.taken:
            self._free.clear()
            await self._free.wait()

    def begin_writing(self) -> None:
        """Record that the state may be ahead of the disk from now on."""
        self.writing = True

    def written(self) -> None:
        """Record that the write is over."""
        self.taken = False
        self._free.set()
        self.writing = False
        readers, self._readers = self._readers, []
        for reader in readers:
            if not reader.done():  # nobody has cancelled it
                reader.set_result(None)

    def notify(self) -> None:
        """Wake the watchers, some at a time and after a pause if they were woken just now: others run in between.

        It is called after each write, so what is being written wakes them later. A change while they are being woken
        wakes all of them once more.
        """
        self._changed = True
        if not self.watchers:
            self._shown_until = 0.0  # whoever comes next sees this change
        if self._wake_next is None and self.watchers and not self.writing:
            loop = asyncio.get_running_loop()
            if loop.time() >= self._next_round:
                self._begin_waking()
            else:
                self._wake_next = loop.call_at(self._next_round, self._end_pause)

    def _end_pause(self) -> None:
        self._wake_next = None
        self.notify()

    def _begin_waking(self) -> None:
        self._changed = False
        self._woken_at, self._shown_until, self.frames.sent = asyncio.get_running_loop().time(), 0.0, 0
        with contextlib.suppress(Exception):  # where a rule fails, each watcher finds that out by itself
            self.shown()
        self._waking = list(reversed(self.watchers))
        self._wake()

    def _wake(self) -> None:
        for watcher in self._waking[-AT_ONCE:]:
            watcher.set()
        del self._waking[-AT_ONCE:]
        loop = asyncio.get_running_loop()
        if self._waking:
            self._wake_next = loop.call_later(GAP, self._wake)
            return
        self._wake_next = None
        # Where boards are large, watchers are woken less often.
        pause = max(PAUSE, self.state.board.arms / SHOWN_A_SECOND, self.frames.sent / BYTES_A_SECOND)
        self._next_round = self._woken_at + pause
        if self._changed:
            self.notify()

    def compare_members(self, in_thread: AsyncCall) -> None:
        """See whether the members disagree, in a thread, if that takes long; otherwise the board does it itself."""
        if self._comparing is None and self.state.compared_late:
            self._comparing = asyncio.get_running_loop().create_task(self._compare(in_thread))

    async def _compare(self, in_thread: AsyncCall) -> None:
        """Compare the members, with pauses, until the board has what the newest record says."""
        clock = asyncio.get_running_loop().time
        try:
            while self.state.compared_late:
                await self.on_disk()
                if not self.valid:  # the next write reloads it
                    return
                began, state, version = clock(), self.state, self.state.version
                found = await in_thread(disagreements, state.board.copied_records(), state.board.arms)
                if state is self.state:
                    before = state.disagreements(late=True)
                    state.keep_disagreements(version, found)
                    if found != before:
                        self._board, self.frames.seq = None, -1
                        self.notify()
                await asyncio.sleep(COMPARE_SHARE * (clock() - began))
        finally:
            self._comparing = None

    def shown(self) -> Frames:
        """Return the boards for watchers, the newest of which may be a little old: many watchers get the same one.

        It is on disk, also while the state is ahead of the disk.
        """
        now, on_disk = asyncio.get_running_loop().time(), self.valid and not self.writing
        if on_disk and self.frames.seq != self.state.seq and now >= self._shown_until:
            self.frames.take(self.state.seq, board_view(self.state, late=True))
            self._shown_until = now + max(PAUSE / 2, self.state.board.arms / SHOWN_A_SECOND)
        return self.frames

    def board(self) -> tuple[bytes, str]:
        """Return the board as JSON, and its ETag."""
        if self._board is None or self._board[0] != self.state.seq:
            body = msgspec.json.encode(board_view(self.state, late=True))
            etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
            self._board = (self.state.seq, body, etag)
        return self._board[1], self._board[2]


def _applied(state: State | None, row: Row, collaboration: str) -> State:
    """Return the state with the event of a row, whose hash is right; what it says must also fit the ledger."""
    try:
        event = decode(row.body)
        pull = event.pull if isinstance(event, Tell) else None
        if (event.seq, pull) != (row.seq, row.pull):
            raise changed(row.seq)
        if state is not None:
            state.apply(event)
            return state
        if not isinstance(event, Create) or event.collaboration != collaboration:
            raise changed(row.seq)
        return State(event)
    except Refused:
        raise
    except Exception as error:
        raise unreadable(row.seq) from error

"""Planted bugs: small changes of the running code, each of which the simulator must find.

A bug that is not found would mean that the simulator does not do, or does not check, something that it should.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import msgspec

from partage.client.claims import Claims
from partage.client.effects import Save
from partage.client.protocol import Protocol
from partage.ledger import chain, moves
from partage.ledger.merkle import Tree
from partage.ledger.moves import checks, pulls
from partage.ledger.state import State
from partage.service.runtime import book as books
from partage.service.runtime import controller as controllers
from partage.service.runtime.book import Book
from partage.service.runtime.controller import Controller
from partage.service.runtime.damage import Chain
from partage.service.runtime.library import Library
from partage.service.runtime.receipts import Receipts
from partage.service.runtime.settlements import Settlements
from partage.service.runtime.timekeeper import Timekeeper
from partage.service.runtime.writer import Writer
from partage.service.store import Lost, tables
from partage.service.store.sqlite import _SqliteWriting
from partage.settle import money

BUGS: dict[str, Callable[[], AbstractContextManager[Any]]] = {}


def bug(plant: Callable[[], Iterator[None]]) -> Callable[[], AbstractContextManager[None]]:
    """Add a bug to the list; its docstring says what is wrong."""
    planted = contextmanager(plant)
    BUGS[plant.__name__.replace("_", " ")] = planted
    return planted


def wrapped(where: Any, name: str, change: Callable[..., Any]) -> Any:
    """Replace a function by one that gets the original as its first argument."""
    original = getattr(where, name)
    return patch.object(where, name, lambda *given, **named: change(original, *given, **named))


# --- the writer -----------------------------------------------------------------------------------------------


@bug
def answer_before_commit() -> Iterator[None]:
    """A request is answered when its move is played, before its rows are on disk."""

    def play(original: Any, self: Writer, book: Book, job: Any, now: int) -> Any:
        rows = original(self, book, job, now)
        job.answer()
        return rows

    with wrapped(Writer, "_play", play):
        yield


@bug
def lost_race_forgotten() -> Iterator[None]:
    """A lost race counts as a success."""

    async def transaction(original: Any, self: Writer, batch: Any) -> None:
        try:
            await original(self, batch)
        except Lost:
            for book, _ in batch.values():
                book.valid = True

    with wrapped(Writer, "_transaction", transaction):
        yield


@bug
def reload_skipped() -> Iterator[None]:
    """After a failed write the state in memory is kept, though the disk does not have it."""

    async def reload(self: Writer, books: list[Book]) -> None:
        for book in books:
            book.valid = True

    with patch.object(Writer, "_reload", reload):
        yield


@bug
def lapses_of_a_refusal_dropped() -> Iterator[None]:
    """A refused request does not write the lapses that its move made."""

    def play(original: Any, self: Writer, book: Book, job: Any, now: int) -> Any:
        rows = original(self, book, job, now)
        return [] if isinstance(job.outcome, Exception) else rows

    with wrapped(Writer, "_play", play):
        yield


@bug
def token_in_another_transaction() -> Iterator[None]:
    """A member's token is stored after its row, in a transaction of its own."""

    def commit(original: Any, self: Any, rows: Any, *, tokens: Any = (), **others: Any) -> None:
        original(self, rows, **others)
        if tokens:
            given = [token._asdict() for token in tokens]
            self._store._write(lambda connection: connection.execute(tables.tokens.insert(), given))

    with wrapped(_SqliteWriting, "commit", commit):
        yield


# --- what is in memory, and what is on disk -------------------------------------------------------------------


@bug
def board_before_it_is_on_disk() -> Iterator[None]:
    """Readers do not wait until the state is on disk."""

    async def on_disk(self: Book) -> None:
        pass

    with patch.object(Book, "on_disk", on_disk):
        yield


@bug
def stream_before_it_is_on_disk() -> Iterator[None]:
    """Streams get boards that are still being written."""

    def play(original: Any, self: Writer, book: Book, job: Any, now: int) -> Any:
        rows = original(self, book, job, now)
        book._shown_until = 0.0
        with patch.object(book, "writing", False):
            book.shown()
        for watcher in book.watchers:
            watcher.set()
        return rows

    with wrapped(Writer, "_play", play):
        yield


@bug
def stale_reads() -> Iterator[None]:
    """A process does not look for what other processes wrote before it answers a read."""

    async def fresh(self: Library, collaboration: str) -> Book:
        book = await self.book(collaboration)
        await book.on_disk()
        return book

    with patch.object(Library, "fresh", fresh):
        yield


@bug
def news_skipped() -> Iterator[None]:
    """A process that catches up checks the first row that another one wrote, and does not apply it."""

    def catch_up(original: Any, self: Book, rows: list[Any]) -> None:
        skipped = self.state.seq + 1

        def apply(original: Any, event: Any) -> None:
            if event.seq == skipped and len(rows) > 1:
                self.state.pass_over()
            else:
                original(event)

        with wrapped(self.state, "apply", apply):
            original(self, rows)

    with wrapped(Book, "catch_up", catch_up):
        yield


@bug
def board_cached_by_version() -> Iterator[None]:
    """The board's JSON is kept until its version changes, though consent and claims change it too."""

    def board(original: Any, self: Book) -> Any:
        if self._board is not None and msgspec.json.decode(self._board[1])["version"] == self.state.version:
            return self._board[1], self._board[2]
        return original(self)

    with wrapped(Book, "board", board):
        yield


@bug
def snapshot_forgets_late_claims() -> Iterator[None]:
    """A snapshot does not have the claims that have lapsed and may still be reported."""

    def dump(original: Any, self: State) -> bytes:
        late, self.late = self.late, {}
        try:
            found: bytes = original(self)
        finally:
            self.late = late
        return found

    with wrapped(State, "dump", dump):
        yield


@bug
def snapshot_forgets_requests() -> Iterator[None]:
    """A snapshot does not have the answers to earlier requests."""

    def dump(original: Any, self: State) -> bytes:
        kept = {id: member.answers for id, member in self.members.items()}
        for member in self.members.values():
            member.answers = {}
        try:
            found: bytes = original(self)
        finally:
            for id, answers in kept.items():
                self.members[id].answers = answers
        return found

    with wrapped(State, "dump", dump):
        yield


@bug
def chain_not_checked() -> Iterator[None]:
    """Rows are read from disk without recomputing the chain of their hashes."""

    def follow(self: Chain, row: Any) -> bytes:
        self.seq, self.head = row.seq, row.head
        return chain.row_hash(row.salt, row.body)

    with patch.object(Chain, "follow", follow):
        yield


@bug
def lost_rows_not_noticed() -> Iterator[None]:
    """A ledger that lost its last rows is taken for a shorter one."""
    with patch.object(books, "check_end", lambda *given: True):
        yield


# --- what is remembered ---------------------------------------------------------------------------------------


@bug
def requests_not_remembered() -> Iterator[None]:
    """The answers to requests are not kept, so a repeated request is a new one."""
    with patch.object(State, "_remember", lambda *given: None):
        yield


@bug
def late_tell_counted_again() -> Iterator[None]:
    """A lapsed claim stays reportable after it was reported."""

    def tell(original: Any, self: State, event: Any, decided: bool) -> None:
        late = self.late.get(event.pull)
        original(self, event, decided)
        if late is not None:
            self.late[event.pull] = late

    with wrapped(State, "_tell", tell):
        yield


@bug
def told_differently_accepted() -> Iterator[None]:
    """A second report of a pull is acknowledged, whatever its reward."""

    def told(original: Any, state: State, agent: str, rows: Any, reward: float, *others: Any) -> Any:
        return rows.told if rows.told is not None else original(state, agent, rows, reward, *others)

    with wrapped(pulls, "_told", told):
        yield


@bug
def invite_used_twice() -> Iterator[None]:
    """An invite that was used lets another agent join."""

    def join(original: Any, turn: Any, name: Any, shares: Any, invite: str, *others: Any, **named: Any) -> Any:
        turn.state.invites.pop(invite, None)
        return original(turn, name, shares, invite, *others, **named)

    with wrapped(moves, "join", join):
        yield


@bug
def repeated_join_refused() -> Iterator[None]:
    """A join whose answer was lost cannot be repeated."""

    async def nobody(self: Controller, token: str) -> None:
        return None

    with patch.object(Controller, "_agent_of", nobody):
        yield


# --- the rules of the ledger ----------------------------------------------------------------------------------


@bug
def claims_never_lapse() -> Iterator[None]:
    """A claim that nobody reports keeps its place for ever."""
    with patch.object(State, "lapsing", lambda self, now: []):
        yield


@bug
def claims_lapse_early() -> Iterator[None]:
    """A claim lapses after half its time."""
    with patch.object(State, "patience", property(lambda self: math.ceil(self.config.claim_seconds * 500))):
        yield


@bug
def clock_goes_back() -> Iterator[None]:
    """Rows are stamped with the machine's clock, which somebody may set back."""

    def start(original: Any, self: moves.Turn, state: State, now: int, *others: Any) -> None:
        original(self, state, now, *others)
        self.now = now

    def of(self: Timekeeper, book: Book, read: int | None = None) -> int:
        return self._system.clock() if read is None else read

    with wrapped(moves.Turn, "__init__", start), patch.object(Timekeeper, "of", of):
        yield


@bug
def withdrawn_arm_still_told() -> Iterator[None]:
    """Claims on an arm that their agent withdrew can still be reported."""

    def withdraw(original: Any, self: State, member: Any, shares: Any) -> None:
        late = {pull: handed for pull, handed in self.late.items() if handed.agent == member.id}
        original(self, member, shares)
        for pull, handed in late.items():
            if pull in self.cancelled:
                self.cancelled.discard(pull)
                self.late[pull] = handed
                self._count_claim(handed.agent, handed.arm, 1)

    with wrapped(State, "_withdraw", withdraw):
        yield


@bug
def set_aside_keeps_claims() -> Iterator[None]:
    """An agent whose broadcasts were set aside can still report its open claim."""

    def set_aside(original: Any, self: State, event: Any, decided: bool) -> None:
        kept = {pull: one for pull, one in (self.claims | self.late).items() if one.agent == event.agent}
        original(self, event, decided)
        for pull, handed in kept.items():
            self.cancelled.discard(pull)
            self.late[pull] = handed
            self._count_claim(handed.agent, handed.arm, 1)

    with wrapped(State, "_set_aside", set_aside):
        yield


@bug
def horizon_off_by_one() -> Iterator[None]:
    """An agent gets one pull more than its horizon."""

    def ask(original: Any, turn: Any, agent: str, *others: Any, **named: Any) -> Any:
        member = turn.state.members[agent]
        member.horizon += 1
        try:
            return original(turn, agent, *others, **named)
        finally:
            member.horizon -= 1

    with wrapped(moves, "ask", ask):
        yield


@bug
def signatures_not_checked() -> Iterator[None]:
    """Where members sign their requests, nobody checks the signatures."""
    with patch.object(checks, "is_signed", lambda *given, **named: True):
        yield


# --- receipts and checkpoints ---------------------------------------------------------------------------------


@bug
def receipts_before_rows_are_on_disk() -> Iterator[None]:
    """A checkpoint covers rows that are being written."""

    def checkpoint(original: Any, self: Book, key: Any) -> Any:
        durable, self.durable = self.durable, self.tree.size
        try:
            return original(self, key)
        finally:
            self.durable = durable

    with wrapped(Book, "checkpoint", checkpoint):
        yield


@bug
def checkpoint_of_an_older_tree() -> Iterator[None]:
    """A checkpoint states the root that the tree had one row before."""

    def root(original: Any, self: Tree, size: int | None = None) -> bytes:
        found: bytes = original(self, None if size is None else max(1, size - 1))
        return found

    def checkpoint(original: Any, self: Book, key: Any) -> Any:
        with wrapped(Tree, "root", root):
            return original(self, key)

    with wrapped(Book, "checkpoint", checkpoint):
        yield


@bug
def receipt_of_another_row() -> Iterator[None]:
    """A receipt shows and proves the row before the member's own."""

    async def of(original: Any, self: Receipts, book: Book, seq: int, *others: Any, **named: Any) -> Any:
        return await original(self, book, seq - 1)

    with wrapped(Receipts, "of", of):
        yield


@bug
def tree_misses_what_others_wrote() -> Iterator[None]:
    """A process does not add to its tree what other processes wrote."""

    def catch_up(original: Any, self: Book, rows: list[Any]) -> None:
        before = self.tree.dump() if self.tree.size < 256 else None
        original(self, rows)
        if before is not None and rows:
            self.tree = Tree.load(*before)
            for row in rows:
                self.tree.append(row.salt)

    with wrapped(Book, "catch_up", catch_up):
        yield


# --- answers --------------------------------------------------------------------------------------------------


@bug
def head_of_another_row() -> Iterator[None]:
    """A report is acknowledged with the head of the newest row instead of its own."""

    async def tell(original: Any, self: Controller, book: Book, *others: Any, **named: Any) -> Any:
        told = await original(self, book, *others, **named)
        return msgspec.structs.replace(told, head=book.head)

    with wrapped(Controller, "tell", tell):
        yield


@bug
def commits_shown_to_others() -> Iterator[None]:
    """A member's copy of the ledger shows the other agents' commits."""
    with patch.object(controllers, "line_of", lambda row, reader, salts: chain.line_of(row, None, salts)):
        yield


@bug
def settlement_of_an_older_state() -> Iterator[None]:
    """The preview of the settlement is kept though the state has changed."""

    async def view(original: Any, self: Settlements, collaboration: str, **named: Any) -> Any:
        book = await self._library.book(collaboration)
        if book.preview is not None and book.state.closed is None:
            return book.preview.view
        return await original(self, collaboration, **named)

    with wrapped(Settlements, "view", view):
        yield


@bug
def compensations_rounded_up() -> Iterator[None]:
    """Each compensation is rounded up, so that all together may exceed what there is."""
    with patch.object(money, "math", SimpleNamespace(floor=math.ceil, ceil=math.floor)):
        yield


# --- the client -----------------------------------------------------------------------------------------------


@bug
def sent_before_it_is_saved() -> Iterator[None]:
    """The client sends a reward or a report before it is in the state file."""

    def save(original: Any, self: Protocol) -> Any:
        for step in original(self):
            if isinstance(step, Save) and (self.saved.telling is not None or self.saved.report is not None):
                continue
            yield step

    with wrapped(Protocol, "save", save):
        yield


@bug
def saved_reward_not_sent() -> Iterator[None]:
    """A client that resumes drops the reward that it could not send."""

    def again(self: Claims) -> Any:
        self._saved.telling = None
        yield from ()

    with patch.object(Claims, "tell_again", again):
        yield


@bug
def report_with_a_new_id() -> Iterator[None]:
    """The client repeats a report of commits under another id."""

    def send(original: Any, self: Any) -> Any:
        if self._saved.report is not None:
            request = self._calls.new_request()
            self._saved.report = msgspec.structs.replace(self._saved.report, request=request)
        yield from original(self)

    from partage.client.reports import Reports

    with wrapped(Reports, "send", send):
        yield


# --- histories and later arms ---------------------------------------------------------------------------------


@bug
def history_again() -> Iterator[None]:
    """Past rewards that are sent again count again."""

    def attach(original: Any, turn: Any, agent: str, arm: int, rewards: Any, request: str | None = None) -> Any:
        member = turn.state.members[agent]
        member.attached.pop(arm, None)
        member.answers.pop(request, None)
        return original(turn, agent, arm, rewards, request)

    with wrapped(moves, "attach", attach):
        yield


@bug
def history_after_a_pull() -> Iterator[None]:
    """Members may attach past rewards after they have pulled."""

    def attach(original: Any, turn: Any, agent: str, *given: Any) -> Any:
        member = turn.state.members[agent]
        used, member.used = member.used, 0
        try:
            return original(turn, agent, *given)
        finally:
            member.used = used

    with wrapped(moves, "attach", attach):
        yield


@bug
def arms_not_in_the_snapshot() -> Iterator[None]:
    """A snapshot forgets the arms that were added."""

    def load(original: Any, snapshot: bytes) -> Any:
        state = original(snapshot)
        for name in state.arms[len(state.config.arms) :]:
            del state.numbers[name]
        del state.arms[len(state.config.arms) :]
        return state

    with wrapped(State, "load", load):
        yield

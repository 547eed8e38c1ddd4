"""The controller: every collaboration of a store, who may do what with it, and each request as one method.

It decides nothing by itself: moves are made by `moves`, settlements by `accounts`. The API and the pages call the
same methods.
"""

import asyncio
import contextlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from partage.ledger import moves
from partage.ledger.chain import line
from partage.ledger.events import Claim, Commit, Run, decode
from partage.ledger.events import Tell as Broadcast
from partage.ledger.messages import (
    MOST_INVITES,
    Commits,
    NewAgent,
    NewCollaboration,
    NewInvites,
    Pull,
    SettlementView,
    Told,
    checked_arms,
    checked_config,
    checked_name,
    checked_request,
    not_allowed,
    unknown_arm,
)
from partage.ledger.refusals import Refused, conflict, forbidden
from partage.ledger.settlement import Inputs, inputs, settled, settlement_view
from partage.ledger.state import Answered
from partage.service.runtime import secrets as access
from partage.service.runtime.book import Book, Done, Move, Preview, Writer, clock, created
from partage.service.runtime.secrets import Who
from partage.service.store import Created, Invite, Lost, NewToken, Row, Store, StoreError
from partage.settle.money import Settled

T = TypeVar("T")

WEEK = 7 * 24 * 3600 * 1000
JOIN_AGAIN = 24 * 3600 * 1000  # how long a join whose answer was lost can be repeated
SESSION_TIME = 12 * 3600 * 1000
PAUSE = 0.1  # seconds between two boards that a watcher gets
SILENCE = 15.0  # seconds without a change after which a watcher hears that we are still there
PREVIEW_PAUSE = 2000  # milliseconds between two settlements computed as if it closed now, for a page
PREVIEW_SHARE = 5  # and at least so many times what the last one took
LINES = 2000  # of a ledger read at a time

_ID = re.compile("[a-z0-9]+")  # what ids are made of; no database needs to be asked for anything else


class Stale(Refused):
    """The state went on while its settlement was computed."""

    def __init__(self) -> None:
        super().__init__(409, "The collaboration went on while its settlement was computed; try again.")


class Controller:
    """All collaborations of a store, in one process."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.books: dict[str, Book] = {}
        self.loading: dict[str, asyncio.Task[Book | None]] = {}
        self.known: dict[str, Who] = {}  # by the hash of a token
        self.operator_hash = self.open_to_operator(store)[0]
        self.stopping = asyncio.Event()
        self._writer = Writer(store)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stop_listening: Callable[[], None] = lambda: None

    # beginning and end

    @staticmethod
    def open_to_operator(store: Store) -> tuple[str, str | None]:
        """Set the operator's token: the environment's, or at first start a new one.

        Returns its hash, and the new one, to be shown this once.
        """
        given = os.environ.get("PARTAGE_OPERATOR_TOKEN")
        if given:
            return access.hashed(given), None
        token = access.fresh(access.OPERATOR)
        standing = store.set_meta_once("operator", access.hashed(token))
        return standing, token if standing == access.hashed(token) else None

    async def start(self) -> None:
        """Begin to let claims lapse, and to hear of what other processes write."""
        loop = asyncio.get_running_loop()
        self._keep(loop.create_task(self._lapses()))

        def wake(collaboration: str, seq: int) -> None:
            loop.call_soon_threadsafe(self._heard, collaboration, seq)

        self._stop_listening = self.store.listen(wake)

    async def stop(self) -> None:
        """Write what waits, end the watchers, and let go of the store."""
        self.stopping.set()
        for book in self.books.values():
            book.wake()
        self._stop_listening()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._writer.tasks, return_exceptions=True)
        self.store.close()

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _lapses(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            now = clock()
            for book in list(self.books.values()):
                if book.state.closed is None and book.state.lapsing(now):
                    self._put(book, moves.lapse).add_done_callback(_ignore)

    def _heard(self, collaboration: str, seq: int) -> None:
        """Catch up with what another process wrote, if anybody here watches."""
        for book in [self.books[collaboration]] if collaboration in self.books else []:
            if book.state.seq < seq and book.watchers:
                self._put(book, _look).add_done_callback(_ignore)
        if not collaboration:
            for book in self.books.values():
                self._put(book, _look).add_done_callback(_ignore)

    async def reading(self, work: Callable[..., T], *given: Any) -> T:
        """Read from the store, in a thread where it may be far away."""
        return await asyncio.to_thread(work, *given) if self.store.several else work(*given)

    # who speaks

    async def who(self, token: str) -> Who:
        """Return whom a token belongs to."""
        kept = access.hashed(token)
        if kept == self.operator_hash:
            return Who()
        who = self.known.get(kept)
        if who is None:
            found = await self.reading(self.store.token, kept)
            if found is None:
                raise Refused(401, "This token is not known here.")
            who = self.known[kept] = Who(*found)
        return who

    async def log_in(self, token: str) -> tuple[str, Who]:
        """Begin a browser's session: its secret, and who it is."""
        who = await self.who(token)
        session = access.fresh(access.SESSION)
        # The operator's session ends with her token, so it is kept with it.
        holder = f"{who.collaboration or ''} {who.agent or ''} {self.operator_hash if who.operator else ''}"
        await self.reading(self.store.add_session, access.hashed(session), holder, clock() + SESSION_TIME)
        return session, who

    async def session(self, session: str) -> Who:
        """Return whom a browser's session belongs to."""
        holder = await self.reading(self.store.session, access.hashed(session), clock())
        collaboration, agent, operator = (holder or "  ").split(" ")
        if holder is None or (not agent and operator != self.operator_hash):
            raise Refused(401, "This session is over; log in again.")
        return Who(collaboration or None, agent or None)

    async def log_out(self, session: str) -> None:
        """End a browser's session."""
        await self.reading(self.store.drop_session, access.hashed(session))

    # books

    async def book(self, collaboration: str) -> Book:
        """Return a collaboration, read from the store the first time."""
        book = self.books.get(collaboration)
        if book is None:
            if not _ID.fullmatch(collaboration):
                raise access.no_such_collaboration()
            task = self.loading.get(collaboration)
            if task is None:
                load = asyncio.to_thread(Book.load, self.store, collaboration)
                task = self.loading[collaboration] = asyncio.create_task(load)
                task.add_done_callback(lambda _: self.loading.pop(collaboration, None))
            book = await asyncio.shield(task)
            if book is None:
                raise access.no_such_collaboration()
            book = self.books.setdefault(collaboration, book)
        return book

    async def fresh(self, collaboration: str) -> Book:
        """Return a collaboration as it is on disk now, with nothing that is not."""
        book = await self.book(collaboration)
        if self.store.several or not book.sound:
            await self._put(book, _look)
        await book.on_disk()
        return book

    def _put(self, book: Book, move: Move, tokens: list[NewToken] | None = None) -> "asyncio.Future[Done]":
        return self._writer.put(book, move, tokens)

    # the operator's requests

    async def create(self, secret: str, new: NewCollaboration) -> tuple[str, list[str]]:
        """Create a collaboration with some invites; the same request again is the same answer."""
        config = checked_config(new)
        id = "c" + secrets.token_hex(6)
        event = moves.create(clock(), collaboration=id, **config)
        book, row = await asyncio.to_thread(created, event)  # the tie order is compiled code, slow the first time
        codes, invites = self._codes(secret, "", new.invites, new.request, WEEK, id)

        def write() -> None:
            with self.store.begin({}) as writing:
                writing.commit({id: [row]}, created=[Created(id, event.time, new.request)], invites=invites)

        try:
            await self.reading(write)
        except Lost:
            assert new.request is not None
            made = await self.reading(self.store.made, new.request)
            assert made is not None
            again = (await self.book(made)).state.config
            there = {invite.hashed for invite in await self.reading(self.store.invites, made)}
            same = all(getattr(again, name) == value for name, value in config.items())
            if not same or not there.issuperset(invite.hashed for invite in invites):
                sentence = "This request created another collaboration; every request needs its own id."
                raise conflict(sentence, "request") from None
            return made, codes
        self.books.setdefault(id, book)
        return id, codes

    def _codes(
        self, secret: str, salt: str, count: int, request: str | None, life: int, collaboration: str
    ) -> tuple[list[str], list[Invite]]:
        """Return new invites: their codes, and what is kept of them."""
        now = clock()
        codes = [
            access.fresh(access.INVITE)
            if request is None
            else access.derived(access.INVITE, secret, "invite", salt, request, str(place))
            for place in range(count)
        ]
        kept = [
            Invite(hashed, "i" + access.hashed(hashed)[:12], collaboration, now, now + life, False)
            for hashed in map(access.hashed, codes)
        ]
        return codes, kept

    async def invite(self, secret: str, collaboration: str, new: NewInvites) -> list[str]:
        """Make more invites; the same request again gives the same ones."""
        if not 1 <= new.invites <= MOST_INVITES:
            raise not_allowed("invites")
        if not 0 < new.hours <= 8760:
            raise not_allowed("hours")
        checked_request(new.request)
        book = await self.fresh(collaboration)
        if book.state.closed is not None:
            raise conflict("This collaboration is closed; nobody can join any more.")
        life = int(new.hours * 3600 * 1000)
        codes, kept = self._codes(secret, collaboration, new.invites, new.request, life, collaboration)
        for last in (False, True):
            there = {invite.hashed for invite in await self.reading(self.store.invites, collaboration)}
            try:
                await self.reading(self.store.add_invites, [invite for invite in kept if invite.hashed not in there])
                break
            except StoreError:  # the same request may have come twice at once, and the other was first
                if last:
                    raise
        return codes

    async def invites(self, collaboration: str) -> list[Invite]:
        """Return all invites of a collaboration."""
        await self.book(collaboration)
        return await self.reading(self.store.invites, collaboration)

    async def revoke(self, collaboration: str, invite: str) -> None:
        """Let an invite not be used any more."""
        known = _ID.fullmatch(collaboration) and _ID.fullmatch(invite)
        if not known or not await self.reading(self.store.revoke, collaboration, invite):
            raise Refused(404, "There is no such invite in this collaboration.")

    async def collaborations(self) -> list[Book]:
        """Return all collaborations, the oldest first."""
        ids = await self.reading(self.store.collaborations)
        return await asyncio.gather(*map(self.fresh, ids))

    async def close(self, collaboration: str) -> SettlementView:
        """Close a collaboration and return its settlement; closed already, the same again."""
        book = await self.fresh(collaboration)
        for attempt in range(4):
            given = inputs(book.state)
            # The last time the state waits for its settlement: on a busy board it would go on for ever.
            found = await asyncio.to_thread(settled, given) if attempt < 3 else None

            def move(turn: moves.Turn, given: Inputs = given, found: Settled | None = found) -> None:
                if turn.state.closed is None:
                    if found is not None and turn.state.seq != given.seq:
                        raise Stale
                    moves.close(turn, found or settled(inputs(turn.state)))

            with contextlib.suppress(Stale):
                await self._put(book, move)
                break
        return await self.settlement(collaboration)

    # what both may read

    async def settlement(self, collaboration: str, *, recent: bool = False) -> SettlementView:
        """Return the settlement, or what it would be now.

        With `recent`, one of the last seconds will do: those that measure ceilings take up to seconds to compute.
        """
        book = await self.fresh(collaboration)
        async with book.settling:
            kept = book.preview
            if kept is not None and (kept.seq == book.state.seq or (recent and clock() < kept.good_until)):
                return kept.view
            began, given = clock(), inputs(book.state)
            view = settlement_view(given, await asyncio.to_thread(settled, given))
            now = clock()
            book.preview = Preview(given.seq, now + max(PREVIEW_PAUSE, PREVIEW_SHARE * (now - began)), view)
            return view

    async def ledger(self, collaboration: str, reader: str | None) -> AsyncIterator[bytes]:
        """Return the ledger's lines, for the operator (None) or an agent."""
        book = await self.fresh(collaboration)
        last = book.state.seq

        async def lines() -> AsyncIterator[bytes]:
            after = 0
            while after < last:
                rows: list[Row] = await self.reading(self.store.rows, collaboration, after, min(LINES, last - after))
                yield b"".join(line(row, decode(row.body), reader) for row in rows)
                after = rows[-1].seq

        return lines()

    async def watch(self, collaboration: str) -> AsyncIterator[Book | None]:
        """Yield the collaboration now and after each change, coalesced, and None in long silences, until the end."""
        book = await self.fresh(collaboration)
        changed = asyncio.Event()
        changed.set()
        book.watchers.add(changed)
        try:
            while not self.stopping.is_set():
                try:
                    await asyncio.wait_for(changed.wait(), SILENCE)
                except TimeoutError:
                    yield None  # whoever sends this on will notice a reader who has gone
                    continue
                changed.clear()
                if self.stopping.is_set():
                    return
                await book.on_disk()
                if book.sound:
                    yield book
                await asyncio.sleep(PAUSE)
        finally:
            book.watchers.discard(changed)

    # the agents' requests

    async def invited(self, collaboration: str, code: str) -> Invite:
        """Return the invite of a code, or say why it cannot be used. Whether it was used already, joining tells."""
        invite = await self.reading(self.store.invite, access.hashed(code))
        if invite is None:
            raise Refused(401, "This invite is not known here.")
        if invite.collaboration != collaboration:
            raise forbidden("This invite is for another collaboration.")
        if invite.revoked:
            raise forbidden("This invite was revoked; ask the operator for another.")
        if invite.expires <= clock():
            raise forbidden("This invite has expired; ask the operator for another.")
        return invite

    async def join(self, collaboration: str, code: str, new: NewAgent) -> tuple[str, str]:
        """Let an agent join on an invite: her id and her token."""
        request = checked_request(new.request)
        if request is None:
            token = access.fresh(access.AGENT)
        else:  # first of all: who joined and did not hear of it may ask again, though the invite has expired since
            token = access.derived(access.AGENT, code, "agent", collaboration, request)
            known = await self.reading(self.store.token, access.hashed(token))
            if known is not None:
                since = (await self.fresh(collaboration)).state.members[known[1]].since
                if since + JOIN_AGAIN < clock():  # whoever finds an old link later must not become her
                    raise forbidden("This invite was used; ask the operator for another.")
                return known[1], token
        invite = await self.invited(collaboration, code)
        checked_name("name", new.name)
        book = await self.book(collaboration)
        shares = checked_arms("shares", new.shares, book.arms)
        tokens: list[NewToken] = []

        def move(turn: moves.Turn) -> str:
            joined = moves.join(turn, new.name, shares, invite.id)
            tokens.append(NewToken(access.hashed(token), collaboration, joined.agent))
            return joined.agent

        try:
            done = await self._put(book, move, tokens)
        except Refused:  # the same request came twice at once, and the other was first
            known = None if request is None else await self.reading(self.store.token, access.hashed(token))
            if known is None:
                raise
            return known[1], token
        return done.answer, token

    async def ask(self, book: Book, agent: str, request: str | None, explore_only: bool) -> Pull | None:
        """Hand out an agent's next pull."""
        done = await self._put(book, lambda turn: moves.ask(turn, agent, request, explore_only))
        answered: Answered | None = done.answer
        if answered is None:
            return None
        arm = book.state.config.arms[answered.arm]
        return Pull(answered.seq, arm, answered.share, answered.version)

    async def tell(self, book: Book, agent: str, pull: int, reward: float) -> Told:
        """Take an agent's report; one that was taken before gets the same answer again."""
        moves.check_reward(reward)
        try:
            done = await self._put(book, lambda turn: moves.tell(turn, agent, pull, reward))
            return Told(done.answer.version, done.head)
        except moves.NotOpen:
            there = 0 < pull <= book.state.seq
            row = await self.reading(self.store.told, book.id, pull) if there else None
            if row is not None:
                told = decode(row.body)
                assert isinstance(told, Broadcast)
                return Told(moves.not_open(agent, told, None, reward).version, row.head)
            if book.state.closed is not None:
                raise moves.closed() from None
            handed = await self.reading(self.store.row, book.id, pull) if there else None
            event = decode(handed.body) if handed else None
            moves.not_open(agent, None, event if isinstance(event, Claim | Commit) else None, reward)
            raise

    async def commits(self, book: Book, agent: str, told: Commits) -> Told:
        """Count commit pulls that an agent decided by herself."""
        checked_name("request", told.request)
        if not told.runs:
            raise not_allowed("runs")
        runs = []
        for place, run in enumerate(told.runs):
            if run.arm not in book.arms:
                raise unknown_arm(f"runs[{place}].arm", book.arms)
            if run.version < 0:
                raise not_allowed(f"runs[{place}].version")
            if run.pulls < 1:
                raise not_allowed(f"runs[{place}].pulls")
            runs.append(Run(run.version, book.arms[run.arm], run.pulls))
        done = await self._put(book, lambda turn: moves.commits(turn, agent, told.request, runs))
        row = await self.reading(self.store.row, book.id, done.answer.seq)
        assert row is not None
        return Told(done.answer.version, row.head)

    async def consent(self, book: Book, agent: str, shares: list[str], request: str | None = None) -> None:
        """Let an agent share other arms from now on."""
        arms = checked_arms("shares", shares, book.arms)
        checked_request(request)
        await self._put(book, lambda turn: moves.consent(turn, agent, arms, request))

    async def leave(self, book: Book, agent: str) -> None:
        """Let an agent go."""
        await self._put(book, lambda turn: moves.leave(turn, agent))


def _look(turn: moves.Turn) -> None:
    """Change nothing: a move that only reads what others wrote."""


def _ignore(future: "asyncio.Future[Any]") -> None:
    """Forget an answer that nobody waits for, and its error."""
    if not future.cancelled():
        future.exception()

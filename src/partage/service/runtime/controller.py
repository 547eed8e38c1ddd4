"""The controller: each request of the API and the pages as one method.

It decides nothing itself: `partage.ledger` has the moves and the settlement. Permissions are checked before a request
reaches it.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from msgspec import UNSET

from partage.ledger import moves
from partage.ledger.chain import line_of
from partage.ledger.events import Claim, Join, Run, decode
from partage.ledger.fields import (
    MOST_RUNS,
    checked_arms,
    checked_commitment,
    checked_key,
    checked_new_name,
    checked_nonce,
    checked_reason,
    checked_request,
    checked_reward,
    checked_rewards,
    normal,
    not_allowed,
    unknown_arm,
)
from partage.ledger.members import Answered
from partage.ledger.messages import (
    AgentView,
    Attach,
    Commits,
    DrawView,
    Error,
    NewAgent,
    NewCollaboration,
    Pull,
    Revealed,
    Rotate,
    Told,
    checked_new_collaboration,
)
from partage.ledger.messages import NewToken as NewAgentToken
from partage.ledger.receipts import Receipt
from partage.ledger.refusals import Refused, conflict, forbidden
from partage.ledger.state import State
from partage.ledger.ties import commitment_to
from partage.ledger.views import agent_view, agent_views, draw_view
from partage.service.runtime import secrets
from partage.service.runtime.book import PAUSE, Book
from partage.service.runtime.damage import Chain, Damaged, changed, lost, next_rows
from partage.service.runtime.invites import Invites
from partage.service.runtime.library import Library
from partage.service.runtime.receipts import Receipts
from partage.service.runtime.server_secret import ServerSecret
from partage.service.runtime.sessions import THE_OPERATOR, UNSIGNED, By, Sessions, Who
from partage.service.runtime.settlements import Settlements
from partage.service.runtime.system import System
from partage.service.runtime.witnesses import Witnesses
from partage.service.runtime.writer import SNAPSHOT_EVERY, Done, Waiting
from partage.service.store import Corrupt, Created, Lost, NewToken, Row, Store, StoreError

log = logging.getLogger("partage.service")

JOIN_AGAIN = 24 * 3600 * 1000  # ms during which a join whose answer was lost can be repeated
SILENCE = 15.0  # seconds without a change after which a watcher gets a keep-alive


class Controller:
    """All collaborations of a store, in one process.

    Parameters
    ----------
    store
        Where everything is stored. The controller closes it when it stops.
    operator_token
        The operator's token; by default the one that was made at the first start.
    system
        The clock, threads and randomness to use.
    snapshot_every
        How many events lie between two snapshots of a collaboration.
    """

    def __init__(
        self,
        store: Store,
        operator_token: str = "",
        system: System | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> None:
        self.store = store
        self.system = system or System()
        self.secret = ServerSecret(store, self.system)
        self.library = Library(
            store, self.system, snapshot_every, tie_seed=self.secret.tie_seed, key=self.secret.key.public
        )
        self.sessions = Sessions(store, self.system, operator_token)
        self.invites = Invites(store, self.system, self.library)
        self.settlements = Settlements(self.system, self.library, self.secret)
        self.receipts = Receipts(store, self.system, self.library, self.secret.key)
        self.witnesses = Witnesses(store, self.system, self.library, self.receipts)
        self.stopping = asyncio.Event()
        self.call = self.system.store_calls(store.several)

    def start(self) -> None:
        """Start to lapse old claims, and to listen for what other processes write."""
        with contextlib.suppress(StoreError):  # a database that goes away now may come back
            if risks := self.store.risks():  # nobody else would notice before a power cut
                log.warning("a power cut may undo what was acknowledged", extra={"settings": ", ".join(risks)})
        self.library.start()

    async def stop(self) -> None:
        """End the watchers, write pending jobs, and close the store."""
        self.end_streams()
        await self.library.stop()
        self.store.close()

    def end_streams(self) -> None:
        """End every stream of events."""
        self.stopping.set()
        self.library.notify_all()

    # the operator's requests

    async def create(self, secret: str, new: NewCollaboration) -> tuple[str, list[str]]:
        """Create a collaboration with some invites; repeating the request returns the same answer."""
        config = checked_new_collaboration(new)
        id = "c" + self.system.random_bytes(6).hex()
        stated = {**config, "collaboration": id, "key": self.secret.key.public}
        stated["tie_commitment"] = commitment_to(self.secret.tie_seed(id))
        salt, now = self.system.random_bytes(16), self.library.timekeeper.now()
        codes, invites = self.invites.make(id, new.invites, request=new.request, secret=secret)

        def write() -> Book:
            with self.store.begin({}) as writing:
                time = now if writing.now is None else writing.now
                event = moves.create(time, **stated)
                book, row = Book.begin(event, salt)
                writing.commit({id: [row]}, created=[Created(id, time, new.request)], invites=invites)
                return book

        try:
            book: Book = await self.call.write(write)
        except Lost:
            assert new.request is not None
            made: str = await self.call(self.store.made, new.request)
            before = (await self.library.book(made)).state.config
            stored = {invite.hashed for invite in await self.call(self.store.invites, made)}
            same = all(getattr(before, name) == value for name, value in config.items())
            if not same or not stored.issuperset(invite.hashed for invite in invites):
                sentence = "This request created another collaboration; use a new id for every request."
                raise conflict("request_reused", sentence, "request") from None
            return made, codes
        self.library.books.setdefault(id, book)
        await self.library.book(id)
        return id, codes

    async def set_aside(self, collaboration: str, agent: str, reason: str) -> None:
        """Take an agent's broadcasts out of the record."""
        reason = checked_reason(reason)
        book = await self.library.book(collaboration)
        await self.library.put(book, lambda turn: moves.set_aside(turn, agent, reason))

    async def add_arm(self, collaboration: str, name: str) -> Book:
        """Add an arm; one that is there already is not added again."""
        name = checked_new_name("name", name)
        book = await self.library.book(collaboration)
        await self.library.put(book, lambda turn: moves.add_arm(turn, name))
        return await self.library.fresh(collaboration)

    # what operator and agents may read

    async def ledger(self, collaboration: str, reader: str | None) -> AsyncIterator[bytes]:
        """Return the ledger's lines, for the operator (None) or an agent.

        Every row is checked. If a row is not the one that was written, it is refused, or, if lines were already sent,
        the last line says so: `{"error", "code"}`.
        """
        book = await self.library.fresh(collaboration)
        last, head = book.state.seq, book.head
        salts = self.settlements.salts(book.state)

        async def parts() -> AsyncIterator[bytes]:
            chain = Chain()
            while chain.seq < last:
                rows: list[tuple[Row, bytes]] = await self.call(next_rows, self.store, collaboration, chain, last)
                if not rows:
                    raise lost(chain.seq + 1)
                if chain.seq == last and chain.head != head:
                    raise changed(last)
                yield b"".join(line_of(row, reader, salts) for row, _ in rows)
                await asyncio.sleep(0)  # a reader that is fast must not keep others waiting

        later = parts()
        first = await anext(later)

        async def lines() -> AsyncIterator[bytes]:
            yield first
            try:
                async for part in later:
                    yield part
            except Damaged as damaged:
                log.error("damaged ledger", extra={"collaboration": collaboration, "reason": damaged.sentence})
                yield msgspec.json.encode(Error(damaged.sentence, damaged.code)) + b"\n"

        return lines()

    def agents(self, book: Book) -> list[AgentView]:
        """Return the agents now, in order of joining."""
        return agent_views(book.state, self.library.timekeeper.of(book))

    def agent(self, book: Book, agent: str) -> AgentView:
        """Return one agent now."""
        return agent_view(book.state, self.library.timekeeper.of(book), agent)

    async def watch(self, collaboration: str, who: Who = THE_OPERATOR) -> AsyncIterator[Book | None]:
        """Yield the collaboration now and after each change, coalesced, and None after a long time without one.

        What changes may not be on disk yet; the book's frames are. It ends with the token of whoever watches, and if
        the ledger cannot be read: its answer has begun by then, and the reader opens it again.
        """
        try:
            book = await self.library.fresh(collaboration)
        except (StoreError, Refused):
            return
        changed = asyncio.Event()
        changed.set()
        book.watchers[changed] = None
        try:
            while not self.stopping.is_set():
                try:
                    async with asyncio.timeout(SILENCE):
                        await changed.wait()
                except TimeoutError:
                    yield None  # sending something is how a closed connection is noticed
                    continue
                changed.clear()
                if self.stopping.is_set():
                    return
                if book.frames.seq == 0:  # there is none yet, or all were of a state that was not on disk
                    await book.on_disk()
                if book.valid:
                    if _has_ended(book, who):
                        return
                    yield book
                else:  # it is loaded again with the next request
                    await asyncio.sleep(PAUSE)
                    changed.set()
        finally:
            del book.watchers[changed]

    # the agents' requests

    async def admit(self, who: Who) -> None:
        """Refuse an agent whose token has ended, by what is on disk now. Requests that write check it as they do."""
        if who.collaboration is not None:
            _check_token(await self.library.fresh(who.collaboration), who)

    def _put(
        self,
        book: Book,
        agent: str,
        by: By,
        move: Callable[[moves.Turn], Any],
        tokens: list[NewToken] | None = None,
        waiting: Waiting | None = None,
    ) -> "asyncio.Future[Done]":
        """Queue the move of a member's request, with its signature, unless its token has ended by then."""

        def own(turn: moves.Turn) -> Any:
            if by.epoch is not None:
                moves.check_token(turn.state, agent, by.epoch)
            turn.signed = by.signed
            return move(turn)

        return self.library.put(book, own, tokens, waiting=waiting)

    async def join(self, collaboration: str, code: str, new: NewAgent, by: By = UNSIGNED) -> tuple[str, str]:
        """Let an agent join with an invite; return its id and its token."""
        request = checked_request(new.request)
        if request is None:
            token = secrets.fresh(secrets.AGENT, self.system.random_bytes)
        else:  # looked up first: a repeated join must work even if the invite has expired since
            token = self.secret.token(code, "agent", collaboration, request)
            agent = await self._agent_of(token)
            if agent is not None:
                since = (await self.library.fresh(collaboration)).state.members[agent].since
                if since + JOIN_AGAIN < self.system.clock():  # or an old link would open the agent's account
                    raise forbidden("invite_used", "This invite was used; ask the operator for another.")
                await self._check_repeated(collaboration, agent, new, by)
                return agent, token
        invite = await self.invites.of_code(collaboration, code)
        name = checked_new_name("name", new.name)
        book = await self.library.book(collaboration)
        shares = checked_arms("shares", new.shares, book.arms)
        commitment, key = checked_commitment(new.tie_commitment) or UNSET, checked_key(new.key) or UNSET
        declared = _declared(new)
        tokens: list[NewToken] = []

        def move(turn: moves.Turn) -> str:
            turn.signed = by.signed
            joined = moves.join(turn, name, shares, invite.id, commitment, key, declared, unique=True)
            tokens.append(NewToken(secrets.hashed(token), collaboration, joined.agent))
            return joined.agent

        try:
            done = await self.library.put(book, move, tokens)
        except Refused:  # perhaps the same request arrived twice at once
            agent = None if request is None else await self._agent_of(token)
            if agent is None:
                raise
            await self._check_repeated(collaboration, agent, new, by)
            return agent, token
        return done.answer, token

    async def _check_repeated(self, collaboration: str, agent: str, new: NewAgent, by: By) -> None:
        """Refuse a repeated request to join that asks for something else than the first, or lacks its signature."""
        book = await self.library.fresh(collaboration)
        joined = decode((await self.receipts.row(book, book.state.members[agent].joined)).body)
        assert isinstance(joined, Join)
        same = normal(new.name) == normal(joined.name)
        same = same and {book.arms.get(name) for name in new.shares} == set(joined.shares)
        if book.state.format > 4:  # earlier ones keep neither
            same = same and (new.key or UNSET, new.tie_commitment or UNSET) == (joined.key, joined.tie_commitment)
        same = same and _declared(new) == (joined.horizon, joined.pace)
        if not same:
            shares = ", ".join(book.state.arms[arm] for arm in joined.shares) or "no arm"
            sentence = (
                f"This request has joined before, with the name {joined.name} and sharing {shares}; "
                "repeat it as it was, and then change what you share."
            )
            raise conflict("request_reused", sentence, "request")
        moves.check_joined(book.state, joined, by.signed)

    async def _agent_of(self, token: str) -> str | None:
        found = await self.call(self.store.token, secrets.hashed(token))
        return None if found is None else str(found.agent)

    # In what follows, `seen` is the number of rows of the checkpoint that the agent has: its receipt continues it.
    # `by` is what else came with the request.

    async def draw(self, collaboration: str, seen: int | None = None) -> DrawView:
        """Return the draw of the tie order."""
        book = await self.library.fresh(collaboration)
        await self.receipts.expect(book, seen)
        view = draw_view(book.state, self.library.timekeeper.of(book))
        assert book.state.drawing is not None
        view.receipt = await self.receipts.of(book, book.state.drawing.seq, seen)
        return view

    async def reveal(
        self, book: Book, agent: str, nonce: str, seen: int | None = None, by: By = UNSIGNED
    ) -> Revealed:
        """Take an agent's nonce for the tie order; repeating it returns the same answer."""
        checked_nonce(nonce)
        await self.receipts.expect(book, seen)
        done = await self._put(book, agent, by, lambda turn: moves.reveal(turn, agent, nonce))
        return Revealed(await self.receipts.of(book, done.answer, seen, done.rows))

    async def ask(
        self,
        book: Book,
        agent: str,
        request: str | None,
        explore_only: bool,
        seen: int | None = None,
        by: By = UNSIGNED,
        wait: float = 0.0,
    ) -> Pull | None:
        """Hand out an agent's next pull. If there is nothing to explore, wait for a claim for so many seconds."""
        await self.receipts.expect(book, seen)
        waiting = None
        if wait and explore_only:
            waiting = Waiting(agent, asyncio.get_running_loop().time() + wait)
        done = await self._put(
            book, agent, by, lambda turn: moves.ask(turn, agent, request, explore_only), waiting=waiting
        )
        answered: Answered | None = done.answer
        if answered is None:
            return None
        arm = book.state.arms[answered.arm]
        receipt = await self.receipts.of(book, answered.seq, seen, done.rows)
        return Pull(answered.seq, arm, answered.share, answered.version, receipt)

    async def tell(
        self, book: Book, agent: str, pull: int, reward: float, seen: int | None = None, by: By = UNSIGNED
    ) -> Told:
        """Accept an agent's report; repeating it returns the same answer."""
        checked_reward(reward)
        await self.receipts.expect(book, seen)
        done = await self._put(book, agent, by, lambda turn: moves.tell(turn, agent, pull, reward))
        if done.answer is not None:
            return Told(
                done.answer.version, done.head, await self.receipts.of(book, done.answer.seq, seen, done.rows)
            )
        # The pull is not an open claim: look it up in the ledger.
        handed, told = await self._rows_of(book, pull)
        rows = moves.PullRows(handed and decode(handed.body), told and decode(told.body))  # type: ignore[arg-type]
        if isinstance(rows.handed, Claim) and told is None and pull not in book.state.cancelled:
            raise Damaged(f"the row that reports pull {pull} is missing")
        done = await self._put(book, agent, by, lambda turn: moves.tell(turn, agent, pull, reward, rows))
        receipt = await self.receipts.of(book, done.answer.seq, seen, [told] if told else done.rows)
        return Told(done.answer.version, told.head if told else done.head, receipt)

    async def _rows_of(self, book: Book, pull: int) -> tuple[Row | None, Row | None]:
        """Return the rows that handed out a pull and that reported it, where there are any."""
        if not 0 < pull <= book.durable:
            return None, None
        try:
            told: Row | None = await self.call(self.store.told, book.id, pull)
        except Corrupt as error:
            raise Damaged(f"the report of pull {pull} cannot be read") from error
        return await self.receipts.row(book, pull), told and await self.receipts.row(book, told.seq)

    async def commits(
        self, book: Book, agent: str, told: Commits, seen: int | None = None, by: By = UNSIGNED
    ) -> Told:
        """Count commit pulls that an agent's client decided."""
        checked_request(told.request)
        if told.unnamed < 0:
            raise not_allowed("unnamed")
        if len(told.runs) > MOST_RUNS or (not told.runs and not told.unnamed):
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
        await self.receipts.expect(book, seen)
        done = await self._put(
            book, agent, by, lambda turn: moves.commits(turn, agent, told.request, runs, told.unnamed)
        )
        return await self._told(book, done, seen)

    async def attach(self, book: Book, agent: str, past: Attach, seen: int | None = None, by: By = UNSIGNED) -> Told:
        """Add an agent's past rewards of an arm to the record."""
        request, rewards = checked_request(past.request), checked_rewards(past.rewards)
        if past.arm not in book.arms:
            raise unknown_arm("arm", book.arms)
        arm = book.arms[past.arm]
        await self.receipts.expect(book, seen)
        done = await self._put(book, agent, by, lambda turn: moves.attach(turn, agent, arm, rewards, request))
        return await self._told(book, done, seen)

    async def _told(self, book: Book, done: Done, seen: int | None) -> Told:
        """Return the answer to a report whose row the move named: it may have been written before."""
        seq = done.answer.seq
        row = next((row for row in done.rows if row.seq == seq), None) or await self.receipts.row(book, seq)
        return Told(done.answer.version, row.head, await self.receipts.of(book, seq, seen, [row]))

    async def consent(
        self,
        book: Book,
        agent: str,
        shares: list[str],
        request: str | None = None,
        seen: int | None = None,
        by: By = UNSIGNED,
    ) -> Receipt | None:
        """Change what an agent shares from now on. There is no receipt if nothing changes and nothing is written."""
        arms = checked_arms("shares", shares, book.arms)
        checked_request(request)
        await self.receipts.expect(book, seen)
        done = await self._put(book, agent, by, lambda turn: moves.consent(turn, agent, arms, request))
        return None if done.answer is None else await self.receipts.of(book, done.answer, seen, done.rows)

    async def rotate(
        self, book: Book, agent: str, secret: str, new: Rotate, seen: int | None = None, by: By = UNSIGNED
    ) -> NewAgentToken:
        """Give an agent a new token, and end the old one, `secret`; repeating the request returns the same token."""
        key = checked_key(new.key) or UNSET
        await self.receipts.expect(book, seen)

        def put(tokens: list[NewToken], token: str) -> "asyncio.Future[Done]":
            def move(turn: moves.Turn) -> int:
                rotated = moves.rotate(turn, agent, key)
                tokens.append(NewToken(secrets.hashed(token), book.id, agent, rotated.epoch))
                return rotated.seq

            return self._put(book, agent, by, move, tokens)

        def check(state: State) -> None:
            moves.check_rotated(state, agent, key, by.epoch, by.signed)

        return await self._new_token(book, agent, secret, new.request, seen, put, check)

    async def renew(self, collaboration: str, agent: str, secret: str, request: str | None) -> NewAgentToken:
        """Give an agent a new token in the operator's name; repeating the request returns the same token."""
        book = await self.library.fresh(collaboration)
        last = book.state.members[agent].epoch if agent in book.state.members else 0

        def put(tokens: list[NewToken], token: str) -> "asyncio.Future[Done]":
            def move(turn: moves.Turn) -> int:
                if agent in turn.state.members and turn.state.members[agent].epoch != last:
                    raise conflict("stale", "This agent has just got another token; try again.")
                rotated = moves.renew(turn, agent)
                tokens.append(NewToken(secrets.hashed(token), book.id, agent, rotated.epoch))
                return rotated.seq

            return self.library.put(book, move, tokens)

        return await self._new_token(book, agent, secret, request, None, put)

    async def _new_token(
        self,
        book: Book,
        agent: str,
        secret: str,
        request: str | None,
        seen: int | None,
        put: "Callable[[list[NewToken], str], asyncio.Future[Done]]",
        check: Callable[[State], None] = lambda state: None,
    ) -> NewAgentToken:
        """Make a token with the move that `put` queues, or return that of the same request if `check` allows it."""
        if checked_request(request) is None:
            token = secrets.fresh(secrets.AGENT, self.system.random_bytes)
            done = await put([], token)
            return NewAgentToken(agent, token, await self.receipts.of(book, done.answer, seen, done.rows))
        token = self.secret.token(secret, "token", book.id, agent, str(request))
        before: NewToken | None = await self.call(self.store.token, secrets.hashed(token))
        if before is None:
            try:
                done = await put([], token)
                return NewAgentToken(agent, token, await self.receipts.of(book, done.answer, seen, done.rows))
            except Refused:  # perhaps the same request arrived twice at once
                before = await self.call(self.store.token, secrets.hashed(token))
                if before is None:
                    raise
        book = await self.library.fresh(book.id)
        moves.check_token(book.state, agent, before.epoch)
        check(book.state)
        return NewAgentToken(agent, token, await self.receipts.of(book, book.state.members[agent].rotated, seen))

    async def revoke(self, collaboration: str, agent: str) -> None:
        """End an agent's token."""
        book = await self.library.book(collaboration)
        await self.library.put(book, lambda turn: moves.revoke(turn, agent))

    async def remove(self, collaboration: str, agent: str, reason: str) -> None:
        """End a membership."""
        reason = checked_reason(reason)
        book = await self.library.book(collaboration)
        await self.library.put(book, lambda turn: moves.remove(turn, agent, reason))

    async def leave(self, book: Book, agent: str, by: By = UNSIGNED) -> None:
        """Let an agent leave."""
        await self._put(book, agent, by, lambda turn: moves.leave(turn, agent))


def _declared(new: NewAgent) -> moves.Declared:
    """Return what an agent declares as it joins."""
    given = (new.horizon, new.pace)
    horizon, pace = (UNSET if one is None else one for one in given)
    return moves.Declared(horizon, pace)  # type: ignore[arg-type]


def _check_token(book: Book, who: Who) -> None:
    """Refuse an agent whose token has ended."""
    if who.agent is not None:
        moves.check_token(book.state, who.agent, who.epoch)


def _has_ended(book: Book, who: Who) -> bool:
    """Whether the token of whoever watches has ended."""
    try:
        _check_token(book, who)
    except Refused:
        return True
    return False

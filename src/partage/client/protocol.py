"""What an agent's client decides: when to ask, when to pull by itself, what to report. No input or output here.

The board is the same for all, and so is the rule: where the rule says commit, the client knows it as well as the
controller does, pulls the leader and only counts. Where the rule says explore, it asks the controller for a claim.
"""

import contextlib
import logging
import math
import re
import time
from collections.abc import Callable, Collection
from typing import Any, TypeVar

import msgspec

from partage.board import Board, Record
from partage.client.effects import Answer, Save, Send, Steps, Wait, sent
from partage.client.errors import Closed, HorizonReached, Refused, Unreachable
from partage.client.pulls import Pull, checked_reward, listed
from partage.client.statefile import Kept, new_request
from partage.errors import InputError
from partage.ledger import messages as wire
from partage.ledger.state import LiveRule, live_rule
from partage.rules.exploring import commit

log = logging.getLogger("partage.client")
S = TypeVar("S", bound=msgspec.Struct)

REREAD = 1.0  # seconds between two readings of a board that may not have changed
BEHIND = 0.25  # seconds that the stream may be behind the controller's answers
SHORTEST, LONGEST = 0.25, 15.0  # seconds between two reports, however patient the controller is
SAVE_EVERY = 5.0  # seconds between two savings of what only local pulls changed
MOST_RUNS = 500  # in a report: it stays well below the largest body that is taken


def board_of(view: wire.BoardView) -> Board:
    """Return the board that the controller shows, as rules read it."""
    number = {arm.name: place for place, arm in enumerate(view.arms)}
    board = Board(view.horizon, [number[name] for name in view.tie_order], [arm.public for arm in view.arms])
    board.shared = [arm.sharers > 0 for arm in view.arms]
    board.claims = [arm.claims for arm in view.arms]
    board.active = [arm.active for arm in view.arms]
    board.record = Record([arm.broadcasts for arm in view.arms], [arm.sum for arm in view.arms])
    return board


class Logic:
    """An agent's client without its network: methods that are generators yield what is to be done.

    Attributes
    ----------
    news
        The newest board from the stream of events that was not looked at yet. The listener sets it, at any time.
    heard
        When the board was last known to be the newest. The listener sets it too.
    streaming
        Whether the stream of events is open.
    """

    def __init__(
        self,
        kept: Kept,
        *,
        saves: bool,
        max_pulls_per_board: int = 10,
        patience: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if max_pulls_per_board < 1:
            raise InputError(f"max_pulls_per_board is {max_pulls_per_board!r}; it must be at least 1.")
        if not kept.url.startswith(("http://", "https://")):
            raise InputError("The url must begin with http:// or https://.")
        self.kept = kept
        self.news: str | None = None
        self.heard = -math.inf
        self.streaming = False
        self._saves, self._most, self._patience, self._clock = saves, max_pulls_per_board, patience, clock

        # from the controller, once
        self._rule: LiveRule | None = None
        self._number: dict[str, int] = {}
        self._own = Record.empty(0)
        self._horizon = 0
        self._every = LONGEST

        # her consent, which may change elsewhere: on her page, by another program
        self._shares: frozenset[int] = frozenset()
        self._doubt = False  # whether something suggests that it did
        self._sure_at = -math.inf  # when it was last read for that

        # the board, and what it means for her
        self._view: wire.BoardView | None = None
        self._board = Board(2, [], [])
        self._tagged: tuple[str, wire.BoardView] | None = None  # the last reading that had an ETag
        self._read_at = -math.inf
        self._on_board = 0  # local pulls since the board was fresh
        self._told = 0  # the version that her last broadcast made
        self._barren = False  # the controller had nothing to explore for her on this very board
        self._hiding = False  # whether there are arms that nobody shares

        # pulls
        self._claim: Pull | None = None
        self._unsure = True  # whether the controller may have handed out a claim that we do not know
        self._left_then: int | None = None  # made from a token: the horizon left, with a claim that may be open
        self._owed: Pull | None = None  # a pull that was counted, and not handed out because a call failed
        self._pull: Pull | None = None  # what she pulls until something changes
        self._budget = self._left = 0  # how often at most, and how often still
        self._due = -math.inf  # until when
        self._reported_at = self._saved_at = -math.inf
        self._warned = False

    # what needs no request

    def at_once(self) -> Pull | None:
        """Return the next pull if nothing can have changed since the last; None says to `ask` in full."""
        if self._left and self.news is None and self._clock() < self._due:
            self._left -= 1
            return self._pull
        return None

    def keep_private(self, pull: Pull, reward: float) -> None:
        """Take in the reward of a pull that is not shared. It is kept only where her own record decides something."""
        reward = checked_reward(reward)
        if self._hiding:
            self._own.add(self._number[pull.arm], reward)

    # what the listener calls

    def events(self) -> tuple[str, dict[str, str]]:
        """Return where the stream of events is, and the headers that open it."""
        headers = {"Authorization": f"Bearer {self.kept.token}", "Accept": "text/event-stream"}
        return f"/v1/collaborations/{self.kept.collaboration}/events", headers

    def hear(self, board: str | None) -> bool:
        """Note that the stream is alive, and its newest board if it brought one."""
        self.heard = self._clock()
        if board is not None:
            self.news = board
        return board is not None

    # joining and leaving, consent

    def join(self, invite: str) -> Steps[None]:
        """Join. The request's id is on disk first: after a crash the same request gives the same token."""
        kept = self.kept
        yield from self.save()
        body = wire.NewAgent(name=kept.name, shares=kept.shares, request=kept.join)
        joined = self._decoded((yield from self._send("POST", "/agents", body, invite)), wire.Joined)
        kept.agent, kept.token = joined.agent, joined.token
        self._unsure = False
        yield from self.save()

    def share(self, shares: Collection[str]) -> Steps[None]:
        """Share these arms and no others from now on."""
        names = listed(shares)
        yield from self._ready()
        yield from self._report()  # made under the consent that she had
        self._rule = None  # should the answer be lost, the controller is asked what she shares
        # With an id: a repetition that comes late, after she changed her mind again, changes nothing.
        consent = wire.Consent(shares=names, request=new_request())
        answer = yield from self._send("PATCH", "/agents/me", consent)
        self.kept.shares = self._decoded(answer, wire.AgentView).shares
        if self._claim is not None and self._claim.arm not in self.kept.shares:
            self._claim = None
            self.kept.asking = new_request()
        yield from self.save()
        yield from self._begin()

    def leave(self) -> Steps[None]:
        """Leave. What was broadcast stays."""
        yield from self._ready()
        yield from self._report()
        yield from self._send("DELETE", "/agents/me")
        self.kept.left = True
        self._claim = None
        yield from self.save()

    # what can be read

    def board(self) -> Steps[wire.BoardView]:
        """Return the board as it is now."""
        if self._rule is None:
            yield from self._begin()  # which reads it
        else:
            yield from self._read()
        assert self._view is not None
        return self._view

    def settlement(self) -> Steps[wire.SettlementView]:
        """Return her row of the settlement, and the totals."""
        return self._decoded((yield from self._send("GET", "/settlement")), wire.SettlementView)

    def ledger(self) -> Steps[bytes]:
        """Return the ledger as she may see it."""
        return (yield from self._send("GET", "/ledger")).body

    # pulls

    def ask(self) -> Steps[Pull]:
        """Return the next pull: a claim of the controller's, or what she decides by the board."""
        yield from self._ready()
        if self._owed is not None:
            pull, self._owed = self._owed, None
            return pull
        while self._claim is None:
            view = yield from self._look()
            yield from self._reconsider()
            if self.kept.left:
                raise Refused(409, "You left this collaboration; a new invite lets you join again.")
            if view.closed:
                raise Closed
            if self.kept.used >= self._horizon:
                yield from self._report()
                raise HorizonReached(self._horizon)
            arm, explore = self._decide()
            if explore or (self._unsure and any(self._board.public)):
                yield from self._ask_claim()
                if self._claim is None and explore:
                    yield from self._after_nothing(view)
            elif self._limited() and self._on_board >= self._most:
                yield from self._freshen(view)
            else:
                pull = self._owed = self._hand_out(arm, view)
                yield from self._chores()
                self._owed = None
                return pull
        return self._claim

    def tell(self, pull: Pull, reward: float) -> Steps[None]:
        """Send the reward of a claim. It is on disk first: a crash does not lose it."""
        reward = checked_reward(reward)
        assert pull.number is not None
        yield from self._begin()
        if self.kept.telling is not None and self.kept.telling[0] != pull.number:
            yield from self._tell_again()
        if self._claim is not None and self._claim.number == pull.number:
            self._claim = None
            self.kept.asking = new_request()
        self.kept.telling = (pull.number, reward)
        yield from self.save()
        yield from self._send_told()

    def flush(self) -> Steps[None]:
        """Report every commit pull that was not reported yet."""
        if self.kept.runs or self.kept.report or self.kept.telling or self._budget > self._left:
            yield from self._ready()
            yield from self._report()
        yield from self.save()

    def save(self) -> Steps[None]:
        """Put what is to be kept on disk."""
        self._count()
        if self._saves:
            kept = self.kept
            kept.own |= {
                name: (self._own.counts[arm], self._own.sums[arm])
                for name, arm in self._number.items()
                if self._own.counts[arm]
            }
            yield Save(msgspec.json.encode(kept))
        self._saved_at = self._clock()

    # what those are made of

    def _send(self, method: str, path: str, body: Any = None, bearer: str = "", etag: str = "") -> Steps[Answer]:
        headers = {"Authorization": f"Bearer {bearer or self.kept.token}"}
        if etag:
            headers["If-None-Match"] = etag
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = Send(
            method,
            f"/v1/collaborations/{self.kept.collaboration}{path}",
            headers,
            None if body is None else msgspec.json.encode(body),
        )
        return (yield from sent(request, self.kept.url, self._patience, self._clock))

    def _decoded(self, answer: Answer, kind: type[S]) -> S:
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except msgspec.DecodeError:
            raise Unreachable(f"What answers at {self.kept.url} is not a controller; check the address.") from None

    def _begin(self) -> Steps[None]:
        """Learn the rules of the game, and who she is in it."""
        if self._rule is not None:
            return
        config = self._decoded((yield from self._send("GET", "")), wire.CollaborationView)
        yield from self._read()  # before her consent: one that changes after it was read shows in a later board
        me = yield from self._me()
        kept = self.kept
        if not kept.agent:  # made from a token: the controller knows how far she is
            kept.used, self._left_then = config.horizon - me.horizon_left, me.horizon_left
        if not self._number:
            self._number = {name: arm for arm, name in enumerate(config.arms)}
            self._own = Record.empty(len(config.arms))
            for name, (pulls, rewards) in kept.own.items():
                self._own.counts[self._number[name]], self._own.sums[self._number[name]] = pulls, rewards
        self._consents(me)
        self._horizon = config.horizon
        self._every = min(max(config.claim_seconds / 4, SHORTEST), LONGEST)
        self._rule = live_rule(config.rule, config.balance)

    def _me(self) -> Steps[wire.AgentView]:
        return self._decoded((yield from self._send("GET", "/agents/me")), wire.AgentView)

    def _consents(self, me: wire.AgentView) -> None:
        """Take in who she is, and what she shares now."""
        kept = self.kept
        kept.agent, kept.name, kept.shares, kept.left = me.agent, me.name, me.shares, me.left
        shares = frozenset(self._number[name] for name in me.shares)
        if shares != self._shares:
            self._shares, self._barren = shares, False
        self._doubt = False

    def _reconsider(self) -> Steps[None]:
        """Read her consent again where it may have changed elsewhere, at most once a second."""
        if self._doubt and self._clock() >= self._sure_at + REREAD:
            self._consents((yield from self._me()))
            self._sure_at = self._clock()

    def _ready(self) -> Steps[None]:
        """Count the pulls so far, and finish what an earlier call, or an earlier process, could not."""
        self._count()
        yield from self._begin()
        if self.kept.telling is not None:
            yield from self._tell_again()
        if self.kept.report is not None:
            yield from self._report()

    def _tell_again(self) -> Steps[None]:
        """Send a reward that an earlier call could not; a refusal is no concern of this call."""
        try:
            yield from self._send_told()
        except Refused as refused:
            log.warning("A reward that was told before is not taken: %s", refused)

    # the board

    def _take(self, view: wire.BoardView) -> None:
        """Let this be the board, unless it is older than the one there is."""
        self.heard = self._clock()
        known = self._view
        if known is not None and (view == known or (view.version < known.version and not view.closed)):
            return
        self._count()
        if known is not None and any(
            old.sharers != new.sharers for old, new in zip(known.arms, view.arms, strict=True)
        ):
            self._doubt = True  # somebody's consent changed: maybe hers
        self._view, self._board = view, board_of(view)
        self._on_board, self._barren = 0, False
        board = self._board
        # An arm that lost its last sharer counts, unless it is eliminated: the rule's commit says the same.
        self._hiding = any(
            not board.shared[arm] and board.active[arm] >= board.public[arm] for arm in range(board.arms)
        )

    def _hear(self) -> None:
        """Look at what the stream brought."""
        news, self.news = self.news, None
        if news is not None:
            with contextlib.suppress(msgspec.DecodeError):  # then the board is read, which says what is wrong
                self._take(msgspec.json.decode(news, type=wire.BoardView))

    def _read(self) -> Steps[None]:
        """Read the board from the controller."""
        tagged = self._tagged
        answer = yield from self._send("GET", "/board", etag=tagged[0] if tagged else "")
        if answer.status == 304 and tagged is not None:
            self._take(tagged[1])
        else:
            view = self._decoded(answer, wire.BoardView)
            self._tagged = (answer.etag, view) if answer.etag else None
            self._take(view)
        self._read_at = self._clock()

    def _look(self) -> Steps[wire.BoardView]:
        """Return the board: the stream's newest, or one that is read where that may be too old."""
        self._hear()
        if self._view is None or self._view.version < self._told or self._clock() >= self._stale_at():
            yield from self._read()
        assert self._view is not None
        return self._view

    def _stale_at(self) -> float:
        """Return when the board has to be read again, unless the stream says something before."""
        return self.heard + (max(self._every, REREAD) if self.streaming else REREAD)

    def _freshen(self, view: wire.BoardView) -> Steps[None]:
        """Wait for another board. After a second the same one is fresh again, if it is sure to be the newest."""
        while self._view is view and (left := self._read_at + REREAD - self._clock()) > 0:
            if self.news is None:
                yield Wait(left, news=True)
            self._hear()
        if self._view is view:
            if self._clock() >= self._stale_at():
                yield from self._read()
            self._read_at = self._clock()
            self._on_board, self._barren = 0, False

    def _after_nothing(self, view: wire.BoardView) -> Steps[None]:
        """The board said explore and the controller did not: others were faster. See what they did."""
        if self.streaming and self.news is None:
            yield Wait(BEHIND, news=True)
        self._hear()
        if self._view is view:
            yield from self._read()
        # Asking again on the very same board could go on for ever: she commits until something changes.
        self._barren = self._view is view
        self._doubt |= self._barren

    def _limited(self) -> bool:
        """Whether exploration of an arm she shares may come: then she must not run ahead of the board.

        It may as long as another arm is not eliminated, though nobody share that one yet, or any more.
        """
        board = self._board
        if self._doubt:
            return True
        left = sum(board.active[arm] or not board.public[arm] for arm in range(board.arms))
        return left > 1 and any(board.active[arm] for arm in self._shares)

    # pulls

    def _decide(self) -> tuple[int, bool]:
        assert self._rule is not None
        if self._barren:
            return commit(self._board, self._own)
        return self._rule.decide(self._board, self._shares, self._own)

    def _hand_out(self, arm: int, view: wire.BoardView) -> Pull:
        """Return a pull of this arm, and let it be repeated as long as nothing changes."""
        active = self._board.actives()
        leader = self._board.best(active) if active else None
        self._pull = Pull(view.arms[arm].name, False, arm != leader, view.version, None)
        budget = self._horizon - self.kept.used
        if self._limited():
            budget = min(budget, self._most - self._on_board)
        # Where her own record decides, each reward may change what she pulls next.
        self._budget = 1 if self._hiding else budget
        self._left = self._budget - 1
        return self._pull

    def _count(self) -> None:
        """Count the local pulls that were handed out since the last time."""
        made, self._budget, self._left = self._budget - self._left, 0, 0
        if made == 0 or self._pull is None:
            return
        self.kept.used += made
        self._on_board += made
        if self._pull.hidden:
            return
        runs, version, arm = self.kept.runs, self._pull.version, self._pull.arm
        if runs and (runs[-1].version, runs[-1].arm) == (version, arm):
            made += runs.pop().pulls
        runs.append(wire.CommitRun(version=version, arm=arm, pulls=made))

    def _chores(self) -> Steps[None]:
        """Report and save where it is time. A pull that was just handed out is in the report: the next may be far."""
        now = self._clock()
        if now >= self._reported_at + self._every or len(self.kept.runs) >= MOST_RUNS:
            yield from self._report()
        elif self._saves and now >= self._saved_at + SAVE_EVERY:
            yield from self.save()
        self._due = min(self._stale_at(), self._reported_at + self._every)
        if self._doubt:
            self._due = min(self._due, self._sure_at + REREAD)
        if self._saves:
            self._due = min(self._due, self._saved_at + SAVE_EVERY)

    # what is sent

    def _ask_claim(self) -> Steps[None]:
        """Ask for a claim, unless the controller has none for her."""
        if self.kept.runs and self._clock() >= self._reported_at + self._every / 4:
            yield from self._report()  # the pull that comes now may take long
        before, self._unsure = self._view, True
        try:
            answer = yield from self._send("POST", "/ask", wire.Ask(request=self.kept.asking, explore_only=True))
        except Refused as refused:
            if refused.status != 409:
                raise
            yield from self._read()
            if self._view is not before:  # it was closed, or all was withdrawn: the board says so
                return
            if "horizon" in refused.sentence:
                self.kept.used = self._horizon
                raise HorizonReached(self._horizon) from None
            raise
        if answer.status != 204:
            claim = self._decoded(answer, wire.Pull)
            if claim.pull != self.kept.claim:  # else it was counted before: the same one comes until it is told
                counts = 1
                if self._left_then is not None:  # it may have been open, and counted, before we came
                    counts = self._left_then - (yield from self._me()).horizon_left
                self.kept.used += counts
                self.kept.claim = claim.pull
            self._claim = Pull(claim.arm, True, False, claim.version, claim.pull)
        self._unsure, self._left_then = False, None

    def _send_told(self) -> Steps[None]:
        """Send the reward that waits to be acknowledged."""
        assert self.kept.telling is not None
        pull, reward = self.kept.telling
        try:
            answer = yield from self._send("POST", "/tell", wire.Tell(pull=pull, reward=reward))
        except Refused as refused:
            self.kept.telling = None
            if refused.status == 403 and pull == self.kept.claim:
                # The claim was hers, and is not any more: she withdrew its arm, here or elsewhere.
                self._doubt = True
                self._consents((yield from self._me()))
                log.warning("A reward is not taken, and not sent again: %s", refused)
                return
            if refused.status == 409:
                yield from self._read()
                if self._view is not None and self._view.closed:
                    raise Closed from None
            raise
        told = self._decoded(answer, wire.Told)
        self.kept.telling, self.kept.head, self._told = None, told.head, max(self._told, told.version)

    def _report(self) -> Steps[None]:
        """Report the commit pulls so far, under an id that is on disk first: none is counted twice."""
        self._count()
        kept = self.kept
        while kept.report is not None or kept.runs:
            if kept.report is None:
                kept.report = wire.Commits(request=new_request(), runs=kept.runs[:MOST_RUNS])
                kept.runs = kept.runs[MOST_RUNS:]
                yield from self.save()
            try:
                answer = yield from self._send("POST", "/commits", kept.report)
            except Refused as refused:
                if refused.status != 409:
                    raise
                self._strike(kept.report, refused)
                kept.report = None
            else:
                kept.report, kept.head = None, self._decoded(answer, wire.Told).head
        self._reported_at = self._clock()

    def _strike(self, report: wire.Commits, refused: Refused) -> None:
        """Give up the run that was refused, or all where none is named; the others are reported again."""
        named = re.match(r"runs\[(\d+)\]", refused.field or "")
        place = int(named[1]) if named else len(report.runs)
        lost = report.runs[place : place + 1] or report.runs
        self.kept.runs = [run for run in report.runs if run not in lost] + self.kept.runs
        self.kept.unpaid += sum(run.pulls for run in lost)
        self.heard, self._doubt = -math.inf, True  # something happened that we do not know: read again
        if not self._warned:
            self._warned = True
            log.warning("Commit pulls are not counted for the settlement (more may follow): %s", refused)

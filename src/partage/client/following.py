"""Following the controller: the configuration, the newest board, and the agent's own consent.

The server's board is authoritative: which arms are open and which are eliminated is read from it, not recomputed.
"""

import contextlib
import math
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from partage.board import Board, Record
from partage.client.calls import Calls
from partage.client.effects import Steps, Wait
from partage.client.receipts import Receipts
from partage.client.signing import Signer
from partage.client.statefile import AgentState
from partage.errors import InputError
from partage.ledger.messages import AgentView, BoardView, CollaborationView
from partage.ledger.own_rules import own_rule
from partage.ledger.refusals import Refused
from partage.rules import RULES

REREAD = 1.0  # seconds between two reads of a board that may not have changed
BEHIND = 0.25  # seconds that the event stream may lag behind the controller's answers
SHORTEST, LONGEST = 0.25, 15.0  # seconds between two reports, whatever claim_seconds is


def board_of(view: BoardView) -> Board:
    """Return the board that the controller shows, in the form that rules read."""
    number = {arm.name: place for place, arm in enumerate(view.arms)}
    order = [number[name] for name in view.tie_order] or range(len(view.arms))  # none yet: nothing is decided by it
    board = Board(view.horizon, order, [arm.public for arm in view.arms])
    board.shared = [arm.sharers > 0 for arm in view.arms]
    board.claims = [arm.claims for arm in view.arms]
    board.lapses = [arm.lapses for arm in view.arms]
    board.active = [arm.active for arm in view.arms]
    board.record = Record([arm.broadcasts for arm in view.arms], [arm.sum for arm in view.arms])
    board.state, board.clock = view.state, view.clock
    board.sharers = [arm.sharers for arm in view.arms]
    board.leading = (
        None if view.leader is None else number[view.leader]
    )  # where members may lie it is not by the mean
    return board


def hidden_arms(board: Board) -> list[int]:
    """Return the arms that nobody shares and that are not eliminated, which `commit` considers too."""
    return [arm for arm in range(board.arms) if not board.shared[arm] and board.active[arm] >= board.public[arm]]


class Following:
    """A collaboration as one of its agents sees it.

    Attributes
    ----------
    news
        The newest board from the event stream that is not processed yet, decoded from JSON. The listener may set it
        at any time.
    heard
        When the board was last known to be the newest. The listener sets it too.
    streaming
        Whether the event stream is open. The listener sets it too.
    arms
        The number of each arm, by name.
    horizon, report_every, format, tolerate
        The pulls of this agent, seconds between two reports of commit pulls, the terms of the collaboration, and how
        many members may lie.
    names_commits
        Whether commits are reported with arm and version; otherwise they earn nothing, and their number is enough.
    claim_seconds
        How long a claim waits for its report.
    claim_interval, claim_at
        The least seconds between two claims, and the time before which the agent gets no claim.
    out_until
        Until when a claim whose reward comes later is open; the agent gets no other before.
    left_at_start
        For an agent that started from a token: the pulls its horizon had left then. None once that is taken into
        account.
    begun
        Whether configuration, board and consent were read.
    view, board
        The newest board, as the controller sent it and as rules read it.
    hidden_arms
        Whether there are arms that nobody shares and that are not eliminated.
    freshness
        A counter of boards: it increases with each new one, and when the same one was read again after a second.
    shares
        The arms that the agent shares.
    rule
        The rule's name, and the hash of its module if it is not one of Partage's.
    doubtful
        Whether something suggests that the agent's consent changed elsewhere.
    """

    def __init__(
        self,
        saved: AgentState,
        calls: Calls,
        receipts: Receipts,
        signer: Signer,
        clock: Callable[[], float],
    ) -> None:
        self._saved, self._calls, self._receipts, self._clock = saved, calls, receipts, clock
        self._signer = signer
        self.news: Any = None
        self.heard = -math.inf
        self.streaming = False

        self.arms: dict[str, int] = {}
        self.horizon = self.format = self.tolerate = 0
        self.report_every = LONGEST
        self.names_commits = True
        self.claim_seconds = 0.0
        self.claim_interval, self.claim_at = 0.0, -math.inf
        self.out_until = -math.inf
        self.left_at_start: int | None = None
        self.begun = False
        self.rule = ("", "")

        self.view: BoardView | None = None
        self.board = Board(2, [], [])
        self.hidden_arms = False
        self.freshness = 0
        self._tagged: tuple[str, BoardView] | None = None  # the last board that came with an ETag
        self._read_at = -math.inf
        self._at_least = 0  # the version that the agent's last broadcast made
        self._barren = -1  # the freshness at which the controller had nothing to explore for the agent

        self.shares: frozenset[int] = frozenset()
        self.doubtful = False
        self._consent_read_at = -math.inf

    def now(self) -> float:
        """Return the time in seconds."""
        return self._clock()

    # what the agent may do on this board

    @property
    def ordered(self) -> bool:
        """Whether the tie order is fixed; until then there is nothing to pull but hidden arms."""
        assert self.view is not None
        return bool(self.view.tie_order)

    @property
    def explores(self) -> bool:
        """Whether the agent shares an open arm and should ask for a claim."""
        assert self.view is not None
        if self._barren == self.freshness or self._clock() < self.next_claim:
            return False
        opened = sum(self.view.arms[arm].open for arm in self.shares)
        if self._compares_within:  # a member that can compare nothing, or is on its own, is offered nothing
            return opened > 1 and self._saved.agent not in self.view.leaders
        return opened > 0

    @property
    def _compares_within(self) -> bool:
        """Whether the rule compares arms within members, so that one open arm alone is of no use to it."""
        assert self.view is not None
        rule = RULES.get(self.view.rule)
        return rule is not None and rule.by_contrasts

    @property
    def next_claim(self) -> float:
        """The time before which the agent gets no claim, if it waits for one."""
        return max(self.claim_at, self.out_until)

    @property
    def exploration_ahead(self) -> bool:
        """Whether somebody may still explore, so that it is worth waiting for a later board.

        The agent itself may have to while any other arm is not eliminated, even if nobody shares that arm now.
        """
        board = self.board
        if self.doubtful or self._others_explore:
            return True
        left = sum(board.active[arm] or not board.public[arm] for arm in range(board.arms))
        return left > 1 and self.shares_active

    @property
    def shares_active(self) -> bool:
        """Whether the agent shares an active arm."""
        return any(self.board.active[arm] for arm in self.shares)

    @property
    def _others_explore(self) -> bool:
        """Whether several arms are active, and one of them has a sharer with pulls left."""
        assert self.view is not None
        active = [arm for arm in self.view.arms if arm.public and arm.active]
        return len(active) > 1 and any(arm.sharers and not arm.used_up for arm in active)

    @property
    def leader(self) -> int | None:
        """The arm that a commit pulls; None while no arm is public."""
        return self.board.leader() if self.board.actives() else None

    # the start

    def begin(self) -> Steps[None]:
        """Read the configuration, the board, and who the agent is."""
        if self.begun:
            return
        config = yield from self.configure()
        yield from self.read()  # before the consent: a consent that changes after it is read shows in a later board
        me = yield from self._me()
        if not self._saved.agent:  # started from a token: the controller knows how many pulls are left
            horizon = me.horizon or config.horizon  # release 0.1 knows no horizon of one member
            self._saved.used, self.left_at_start = horizon - me.horizon_left, me.horizon_left
        self._take_consent(me)
        self.horizon = me.horizon or config.horizon
        self.names_commits, self.claim_interval = config.named_commits, config.claim_interval
        self.claim_seconds = config.claim_seconds
        self.tolerate = int(config.parameters.get("tolerate", 0))
        self.report_every = min(max(config.claim_seconds / 4, SHORTEST), LONGEST)
        self.begun = True

    def configure(self) -> Steps[CollaborationView]:
        """Read the configuration: the names of the arms, and the key that signs the ledger."""
        config = yield from self._calls.fetch(CollaborationView, "GET", "")
        yield from self._receipts.pin(config.key, config.format)
        self.format, self.rule = config.format, (config.rule, config.rule_source)
        self._name(config.arms)
        return config

    def check_rule(self) -> None:
        """Refuse to play by a rule whose module was not given: a member must be able to know what decides."""
        name, source = self.rule
        if source:
            try:
                own_rule(name, source)
            except Refused as refused:
                raise InputError(refused.sentence) from None

    def _name(self, names: Collection[str]) -> None:
        """Note the names of the arms, of which there may be more than before."""
        if len(names) > len(self.arms):
            self.arms = {name: arm for arm, name in enumerate(names)}

    def learn(self, names: Collection[str]) -> Steps[None]:
        """Read configuration and board again if one of these arms is unknown here: it may have been added since."""
        if any(name not in self.arms for name in names):
            yield from self.configure()
            yield from self.read()

    def numbers_of(self, names: Collection[str]) -> tuple[int, ...]:
        """Return the numbers of these arms, as events have them; -1 stands for names that are no arms."""
        return tuple(sorted({self.arms.get(name, -1) for name in names}))

    # the board

    def hear(self, board: Any) -> bool:
        """Record that the stream is alive, and the board that it brought, if any."""
        self.heard = self._clock()
        if board is not None:
            self.news = board
        return board is not None

    def look(self) -> Steps[BoardView]:
        """Return the newest board: from the stream, or read from the controller if that may be too old."""
        self._take_news()
        if self.view is None or self.view.version < self._at_least or self._clock() >= self.stale_at():
            yield from self.read()
        assert self.view is not None
        return self.view

    def read(self) -> Steps[None]:
        """Read the board from the controller."""
        tagged = self._tagged
        answer = yield from self._calls.send("GET", "/board", headers={"If-None-Match": tagged[0]} if tagged else {})
        if answer.status == 304 and tagged is not None:
            self._take(tagged[1])
        else:
            view = self._calls.decode(BoardView, answer)
            self._tagged = (answer.etag, view) if answer.etag else None
            self._take(view)
        self._read_at = self._clock()

    def stale_at(self) -> float:
        """Return when the board has to be read again, unless the stream brings something before."""
        return self.heard + (max(self.report_every, REREAD) if self.streaming else REREAD)

    def wait_for_fresh(self, view: BoardView) -> Steps[None]:
        """Wait for another board. After a second the same one counts as fresh, if it is certain to be the newest."""
        while self.view is view and (left := self._read_at + REREAD - self._clock()) > 0:
            if self.news is None:
                yield Wait(left, news=True)
            self._take_news()
        if self.view is view:
            if self._clock() >= self.stale_at():
                yield from self.read()
            self._read_at = self._clock()
            self.freshness += 1

    def nothing_to_explore(self, view: BoardView, asked: float) -> Steps[None]:
        """Read the board again: it said explore, but the controller had no claim because other agents were faster.

        `asked` is when the agent asked; the controller may have kept the request since.
        """
        left = asked + BEHIND - self._clock()
        if self.streaming and self.news is None and left > 0:
            yield Wait(left, news=True)
        self._take_news()
        if self.view is view:
            yield from self.read()
        if self.view is view:
            # Asking again on the same board could repeat forever: the agent commits until something changes.
            self._barren = self.freshness
            self.doubtful = True

    def expect(self, version: int) -> None:
        """Do not decide on a board older than this version: the agent's own broadcast is in it."""
        self._at_least = max(self._at_least, version)

    def distrust(self) -> None:
        """Read board and consent again before deciding: something happened that this client did not see."""
        self.heard, self.doubtful = -math.inf, True

    def _take(self, view: BoardView) -> None:
        """Replace the board, unless this one is older."""
        self.heard = self._clock()
        last = self.view
        if last is not None:
            older = view.version < last.version or len(view.arms) < len(last.arms)
            if view == last or (older and not view.closed):
                return
            if any(old.sharers != new.sharers for old, new in zip(last.arms, view.arms, strict=False)):
                self.doubtful = True  # an agent's consent changed: perhaps this one's
        self._name([arm.name for arm in view.arms])
        self.view, self.board = view, board_of(view)
        if self._saved.agent in view.leaders:
            self.board.leading = self.arms[view.leaders[self._saved.agent]]
        self.hidden_arms = bool(hidden_arms(self.board))
        self.freshness += 1

    def _take_news(self) -> None:
        """Take the board that the stream brought, if any."""
        news, self.news = self.news, None
        if news is not None:
            with contextlib.suppress(
                msgspec.ValidationError
            ):  # the board is then read, and that call reports the error
                self._take(msgspec.convert(news, BoardView))

    # the agent's consent, which may change elsewhere: on its page, or by another program

    def read_consent(self) -> Steps[None]:
        """Read what the agent shares now, and whether it has left."""
        self._take_consent((yield from self._me()))

    def check_consent(self) -> Steps[None]:
        """Read the consent again if it may have changed elsewhere, at most once a second."""
        if self.doubtful and self._clock() >= self.next_check():
            yield from self.read_consent()
            self._consent_read_at = self._clock()

    def next_check(self) -> float:
        """Return the earliest time of the next look at a doubtful consent."""
        return self._consent_read_at + REREAD

    def horizon_left(self) -> Steps[int]:
        """Return how many pulls the controller says are left."""
        return (yield from self._me()).horizon_left

    def _me(self) -> Steps[AgentView]:
        me = yield from self._calls.fetch(AgentView, "GET", "/agents/me")
        self._signer.see(me)
        yield from self.learn(me.shares)
        return me

    def _take_consent(self, me: AgentView) -> None:
        saved = self._saved
        if saved.agent not in ("", me.agent):
            raise InputError(f"The token belongs to agent {me.agent}, and the state file to agent {saved.agent}.")
        saved.agent, saved.name, saved.shares, saved.left = me.agent, me.name, me.shares, me.left
        shares = frozenset(self.arms[name] for name in me.shares)
        if shares != self.shares:
            self.shares, self._barren = shares, -1
        self.doubtful = False
        self.claim_at = self._clock() + me.claim_in

"""The state of a collaboration: a fold over its ledger, and nothing else."""

import math
from collections import deque
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from partage.board import Board, Record
from partage.engine import rewards as tape
from partage.ledger.events import (
    AnyEvent,
    Claim,
    Close,
    Commit,
    Consent,
    Create,
    Join,
    Lapse,
    Leave,
    Tell,
)
from partage.rules import KLETC, BalancedETC, BalancedGLR, make_rule
from partage.settle import Settlement, settlement_for

FORMAT = "1"  # of snapshots: a new one where the fold or its state changes
REMEMBERED = 256  # requests of an agent whose answers are kept for repetition

LiveRule = BalancedETC | BalancedGLR | KLETC


# gc=False: there are hundreds of thousands of these on a busy board, none can be part of a cycle, and the collector
# would look through all of them.


class Answered(Struct, gc=False):
    """What a request got: the seq of its event, the arm (-1 for several), and the version of the board."""

    seq: int
    arm: int
    share: bool
    version: int


class Handed(Struct, gc=False):
    """A claim that was not told yet."""

    agent: str
    arm: int
    time: int


class Window(Struct, gc=False):
    """How the board stood at one version: each change of what a commit pulls and of which arms are open.

    A moment is (seq of the event that brought it, arm that a commit pulls or -1, open arms as bits). `until` is when
    the next version came.
    """

    version: int
    moments: tuple[tuple[int, int, str], ...] = ()
    until: int | None = None


class Member(Struct):
    """An agent: her consent, what she pulled, and what is on its way."""

    id: str
    name: str
    shares: frozenset[int]
    joined: int
    since: int
    consents: list[tuple[int, str]]  # (seq, arms as bits) of each consent, the first with her coming
    explore: dict[int, int] = msgspec.field(default_factory=dict)
    commit: dict[int, int] = msgspec.field(default_factory=dict)
    used: int = 0  # pulls of her horizon
    claim: int | None = None
    reported: int = 0  # the highest version she reported commit pulls on
    answers: dict[str, Answered] = msgspec.field(default_factory=dict)
    left: bool = False


class _Kept(Struct):
    """A state as a snapshot keeps it."""

    config: Create
    seq: int
    time: int
    counts: list[int]
    sums: list[float]
    active: list[bool]
    public: list[bool]
    members: list[Member]
    claims: dict[int, Handed]
    late: dict[int, Handed]
    cancelled: set[int]
    invites: dict[str, str]
    windows: list[Window]
    closed: Close | None


def bits(arms: Iterable[int]) -> str:
    """Return a set of arms as the bits of a number, in hex: a snapshot takes no number of more than 64 bits."""
    return f"{sum(1 << arm for arm in arms):x}"


def tie_order(tie_seed: str, arms: int) -> list[int]:
    """Return the arms in the order in which ties are broken, as a simulation's run with this key would."""
    key = run_key(tie_seed)
    return [int(arm) for arm in tape.permutation(key[0], key[1], tape.TIE_ORDER, arms)]


def run_key(tie_seed: str) -> NDArray[np.uint64]:
    """Return the key of the simulated run that has the same tie order."""
    return np.array([int(tie_seed[:16], 16), int(tie_seed[16:], 16)], np.uint64)


class State:
    """A collaboration after some events. `State(create)` is the first; `apply` brings the next."""

    def __init__(self, create: Create) -> None:
        arms = len(create.arms)
        self.config = create
        self.rule = live_rule(create.rule, create.balance)
        self.settlement: Settlement = settlement_for(create.settlement, self.rule, create.fee)
        self.seq = create.seq
        self.time = create.time
        self.board = Board(create.horizon, tie_order(create.tie_seed, arms), [False] * arms)
        self.sharers = [0] * arms
        self.members: dict[str, Member] = {}
        self.claims: dict[int, Handed] = {}  # by the number of the pull, in order of their time
        self.late: dict[int, Handed] = {}  # those that lapsed, and may still be told
        self.cancelled: set[int] = set()
        self.invites: dict[str, str] = {}  # of those that were used: by whom
        self.windows: deque[Window] = deque([Window(0, ((create.seq, -1, bits(())),))])
        self.closed: Close | None = None
        self._leading = -1

    @property
    def version(self) -> int:
        """How many broadcasts there were."""
        return self.windows[-1].version

    @property
    def patience(self) -> int:
        """How long a claim waits to be told, in milliseconds."""
        return math.ceil(self.config.claim_seconds * 1000)

    def target(self) -> int | None:
        """Return the arm that a commit pulls now: the leader; None while no arm is public."""
        return None if self._leading < 0 else self._leading

    def lapsing(self, now: int) -> list[int]:
        """Return the claims that have waited too long."""
        found = []
        for pull, handed in self.claims.items():
            if handed.time + self.patience > now:
                break
            found.append(pull)
        return found

    def pulls(self) -> NDArray[np.int64]:
        """Return the settled pulls: told explore pulls and commit pulls, agents in order of joining times arms."""
        table = np.zeros((len(self.members), self.board.arms), np.int64)
        for row, member in enumerate(self.members.values()):
            for counted in (member.explore, member.commit):
                for arm, pulls in counted.items():
                    table[row, arm] += pulls
        return table

    def totals(self) -> tuple[list[int], list[int]]:
        """Return everybody's explore pulls and commit pulls of each arm."""
        explore, commit = [0] * self.board.arms, [0] * self.board.arms
        for member in self.members.values():
            for arm, pulls in member.explore.items():
                explore[arm] += pulls
            for arm, pulls in member.commit.items():
                commit[arm] += pulls
        return explore, commit

    def apply(self, event: AnyEvent) -> None:
        """Take in the next event."""
        assert event.seq == self.seq + 1
        self.seq, self.time = event.seq, event.time
        _FOLD[type(event)](self, event)

    def pass_over(self) -> None:
        """Take in an event that is hidden from us: commit pulls of somebody else, which leave the board alone."""
        self.seq += 1

    # one method an event

    def _join(self, event: Join) -> None:
        self.members[event.agent] = Member(event.agent, event.name, frozenset(), event.seq, event.time, [])
        self.invites[event.invite] = event.agent
        self._set_shares(self.members[event.agent], event.shares)

    def _claim(self, event: Claim) -> None:
        member = self.members[event.agent]
        self.claims[event.seq] = Handed(event.agent, event.arm, event.time)
        self.board.claims[event.arm] += 1
        member.claim = event.seq
        member.used += 1
        self._remember(member, event.request, Answered(event.seq, event.arm, True, self.version))
        self._note()

    def _tell(self, event: Tell) -> None:
        self._drop_claim(event.pull)
        member = self.members[event.agent]
        member.explore[event.arm] = member.explore.get(event.arm, 0) + 1
        self.board.record.add(event.arm, event.reward)
        self.rule.revise(self.board)
        self._see_leader()
        self.windows[-1].until = event.time
        self.windows.append(Window(event.version))
        while (until := self.windows[0].until) is not None and until + self.patience < event.time:
            self.windows.popleft()
        self._note()

    def _commit(self, event: Commit) -> None:
        member = self.members[event.agent]
        for run in event.runs:
            member.commit[run.arm] = member.commit.get(run.arm, 0) + run.pulls
            member.used += run.pulls
            if not event.asked:
                member.reported = max(member.reported, run.version)
        arm = event.runs[0].arm if event.asked else -1
        self._remember(member, event.request, Answered(event.seq, arm, False, self.version))

    def _lapse(self, event: Lapse) -> None:
        handed = self.late[event.pull] = self.claims.pop(event.pull)
        self.board.claims[handed.arm] -= 1
        self.members[handed.agent].claim = None
        self._note()

    def _consent(self, event: Consent) -> None:
        self._set_shares(self.members[event.agent], event.shares)
        self._remember(self.members[event.agent], event.request, Answered(event.seq, -1, False, self.version))

    def _leave(self, event: Leave) -> None:
        self._set_shares(self.members[event.agent], ())
        self.members[event.agent].left = True

    def _close(self, event: Close) -> None:
        self.closed = event

    # what those have in common

    def _set_shares(self, member: Member, shares: tuple[int, ...]) -> None:
        """Let an agent share these arms and no others, cancel her claims on the others, and see who shares what."""
        before, member.shares = member.shares, frozenset(shares)
        member.consents.append((self.seq, bits(shares)))
        withdrawn = before - member.shares
        if withdrawn:
            waiting = [*self.claims.items(), *self.late.items()]
            for pull in [pull for pull, h in waiting if h.agent == member.id and h.arm in withdrawn]:
                self._drop_claim(pull)
                self.cancelled.add(pull)
        board = self.board
        for arm in withdrawn:
            self.sharers[arm] -= 1
            board.shared[arm] = self.sharers[arm] > 0
        for arm in member.shares - before:
            self.sharers[arm] += 1
            board.shared[arm] = True
            if not board.public[arm]:
                board.public[arm] = board.active[arm] = True
        self._see_leader()
        self._note()

    def _drop_claim(self, pull: int) -> None:
        """Take a claim out: it was told, or cancelled."""
        if pull in self.late:
            del self.late[pull]
            return
        handed = self.claims.pop(pull)
        self.board.claims[handed.arm] -= 1
        self.members[handed.agent].claim = None

    def _remember(self, member: Member, request: str | None, answered: Answered) -> None:
        """Keep an answer, in case its request comes again."""
        if request is not None:
            member.answers[request] = answered
            if len(member.answers) > REMEMBERED:
                del member.answers[next(iter(member.answers))]

    def _note(self) -> None:
        """Note what a commit pulls and which arms are open from here on, if that changed."""
        opened = bits(self.rule.open_arms(self.board))
        window = self.windows[-1]
        if not window.moments or window.moments[-1][1:] != (self._leading, opened):
            window.moments += ((self.seq, self._leading, opened),)

    def _see_leader(self) -> None:
        """See what a commit pulls. Claims do not change that, so it is kept; -1 while no arm is public."""
        active = self.board.actives()
        self._leading = self.board.best(active) if active else -1

    # snapshots

    def dump(self) -> bytes:
        """Return the state as a snapshot."""
        board = self.board
        kept = _Kept(
            self.config,
            self.seq,
            self.time,
            board.record.counts,
            board.record.sums,
            board.active,
            board.public,
            list(self.members.values()),
            self.claims,
            self.late,
            self.cancelled,
            self.invites,
            list(self.windows),
            self.closed,
        )
        return msgspec.msgpack.encode(kept)

    @classmethod
    def load(cls, snapshot: bytes) -> "State":
        """Return the state that a snapshot keeps."""
        kept = msgspec.msgpack.decode(snapshot, type=_Kept)
        state = cls(kept.config)
        board = state.board
        state.seq, state.time, state.closed = kept.seq, kept.time, kept.closed
        board.record = Record(kept.counts, kept.sums)
        board.active, board.public = kept.active, kept.public
        state.members = {member.id: member for member in kept.members}
        for member in kept.members:
            for arm in member.shares:
                state.sharers[arm] += 1
        board.shared = [sharers > 0 for sharers in state.sharers]
        state.claims, state.late, state.cancelled, state.invites = (
            kept.claims,
            kept.late,
            kept.cancelled,
            kept.invites,
        )
        for handed in state.claims.values():
            board.claims[handed.arm] += 1
        state.windows = deque(kept.windows)
        state._see_leader()
        return state


def live_rule(name: str, balance: float | str | None) -> LiveRule:
    """Return a collaboration's rule; a balance of "inf" is JSON's way to say infinite."""
    rule = make_rule(name, balance=math.inf if balance == "inf" else balance)
    assert isinstance(rule, LiveRule)
    return rule


_FOLD: dict[type, Any] = {
    Join: State._join,
    Claim: State._claim,
    Tell: State._tell,
    Commit: State._commit,
    Lapse: State._lapse,
    Consent: State._consent,
    Leave: State._leave,
    Close: State._close,
}

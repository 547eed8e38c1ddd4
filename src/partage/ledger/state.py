"""The state of a collaboration: a fold over the events of its ledger."""

import hashlib
import math
from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from partage.agreement import Disagreement, disagreements
from partage.board import MOST_LAPSES, Board, Pull, Record
from partage.clock import rounded
from partage.ledger.config import rule_of
from partage.ledger.events import (
    AddArm,
    AnyEvent,
    Attach,
    Claim,
    Close,
    Commit,
    Consent,
    Create,
    Draw,
    Join,
    Lapse,
    Leave,
    Order,
    Remove,
    Requested,
    Reveal,
    Revoke,
    Rotate,
    SetAside,
    Tell,
    Tick,
    UsedUp,
)
from partage.ledger.fields import alike
from partage.ledger.members import Answered, Attached, Drawing, Handed, Member, Revealed
from partage.ledger.own_rules import Served
from partage.ledger.snapshot import Snapshot, dense, sparse
from partage.ledger.ties import REVEAL_SECONDS
from partage.ledger.windows import Lookup, Window
from partage.rules import Rule
from partage.rules.influence import fair_entries
from partage.settle import Settlement, first_terms, settlement_for
from partage.tape import TIE_ORDER, Draws, permutation, run_key

SNAPSHOT_FORMAT = "10"  # raise it whenever the fold or the contents of a state change
REMEMBERED = 256  # requests per agent whose answers are stored, so that a repeated request gets the same answer
COMPARED_AT_ONCE = 2000  # pairs of a member and an arm: comparing the members takes about four milliseconds


def bits(arms: Iterable[int]) -> str:
    """Return a set of arms as the bits of a number, in hex (msgpack has no numbers of more than 64 bits)."""
    return f"{sum(1 << arm for arm in arms):x}"


def digest_of(rewards: Sequence[float]) -> str:
    """Return a digest of past rewards."""
    return hashlib.sha256(msgspec.json.encode(rewards)).hexdigest()[:32]


def tie_order(tie_seed: str, arms: int) -> list[int]:
    """Return the arms in the order in which ties are broken: that of a simulated run with this key."""
    return [*permutation(run_key(tie_seed), TIE_ORDER, arms)]


def _settlement(create: Create, rule: Rule) -> Settlement:
    """Return the settlement by the terms of the collaboration's format."""
    if create.alone is UNSET or create.coverage is UNSET:
        return first_terms(settlement_for(create.settlement, rule, create.fee))
    return settlement_for(create.settlement, rule, create.fee, create.alone, create.coverage, *_sureties(create))


def _sureties(create: Create) -> tuple[float | None, float | None]:
    """Return `prepaid` and `underwriting` in units of reward."""
    given = (create.prepaid, create.underwriting)
    prepaid, underwriting = (None if one is UNSET or one is None else one / create.value for one in given)
    return prepaid, underwriting


class State:
    """A collaboration after some of its events.

    `State(create)` is the state after the first event. `apply` adds the next event of the ledger; `record` adds a new
    one, lets the rule decide what follows from it, and returns it as the ledger records it.
    """

    def __init__(self, create: Create) -> None:
        arms = create.most_arms or len(create.arms)  # places on the board, some of which have no arm yet
        self.config = create
        self.arms: list[str] = []  # their names
        self.numbers: dict[str, int] = {}  # by name
        for name in create.arms:
            self._name_arm(name)
        self.format = 1 if create.format is UNSET else create.format
        self.rule = rule_of(create)
        self.settlement = _settlement(create, self.rule)
        self.seq = create.seq
        self.time = create.time
        self.version = 0  # of the board: the number of broadcasts, histories and set-asides
        self.board = Board(create.horizon, range(arms), [False] * arms)  # ties matter only once the order is fixed
        self.sharers = [0] * arms
        self._able = [0] * arms  # sharers with pulls left, as far as is known here
        self._unspent = [0] * arms  # sharers of whom no `used-up` event says that they have none left
        self.idle: dict[int, int] = {}  # arms whose sharers have no pulls left, and since when
        self.used_up: set[int] = set()  # those of them of which the ledger says so
        self.members: dict[str, Member] = {}
        self.past: dict[str, dict[int, list[float]]] = {}  # attached rewards that are not in the record yet
        self.claims: dict[int, Handed] = {}  # by the number of the pull, in order of time
        self.late: dict[int, Handed] = {}  # lapsed claims, which may still be reported
        self.cancelled: set[int] = set()
        self.names: set[str] = set()  # of members, each as `alike` returns it
        self.invites: dict[str, str] = {}  # used invites, and the agent that used each
        # Only what is paid needs to be checked: where commits earn nothing, there are no windows.
        self.windows: deque[Window] = deque()
        if self.names_commits:
            self.windows.append(Window(0, [(create.seq, -1, bits(()))]))
        self._lookups: dict[int, Lookup] = {}  # by version
        self.closed: Close | None = None
        self.pulls_made = 0  # by all agents: claims, and commits that are not hidden from us
        self.led: set[int] = set()  # the arms that ever led
        self._leading = -1
        self._disagreements: tuple[int, list[Disagreement]] = (0, [])  # of a version
        self.drawing: Drawing | None = None
        self.order: Order | None = None
        self.tie_seed: str | None = None  # until the tie order is fixed
        self._key = (0, 0)
        if create.tie_seed is not UNSET:
            self._fix(create.tie_seed)

    @property
    def names_commits(self) -> bool:
        """Whether members report commits with arm and version, as they must where these may be paid.

        In formats 1 to 3 they always do.
        """
        return self.format < 4 or self.settlement.pays_commits

    @property
    def ordered(self) -> bool:
        """Whether the tie order is fixed. No claim is handed out, and no commit or history is taken before."""
        return self.tie_seed is not None

    def committed(self) -> tuple[str, ...]:
        """Return the members whose nonces would count if the tie order were drawn now."""
        return tuple(one.id for one in self.members.values() if one.tie_commitment and not one.left)

    def awaited(self, now: int) -> list[str]:
        """Return the members for whose nonces the draw still waits."""
        drawing = self.drawing
        if drawing is None or self.ordered or now >= self.drawn_until():
            return []
        members = (self.members[agent] for agent in drawing.members if agent not in drawing.revealed)
        return [member.id for member in members if not member.left]

    def drawn_until(self) -> int:
        """Return until when the draw waits, in milliseconds since 1970; 0 if there is none."""
        return 0 if self.drawing is None else self.drawing.time + int(REVEAL_SECONDS * 1000)

    @property
    def claim_interval(self) -> int:
        """The least time between two claims of one agent, in milliseconds."""
        interval = self.config.claim_interval
        return 0 if interval is UNSET else math.ceil(interval * 1000)

    def next_claim(self, agent: str) -> int:
        """Return the time from which the agent may have its next claim."""
        claimed = self.members[agent].claimed
        return 0 if claimed is None else claimed + self.claim_interval

    @property
    def patience(self) -> int:
        """How long a claim waits for its report, in milliseconds."""
        return math.ceil(self.config.claim_seconds * 1000)

    def target(self, agent: str | None = None) -> int | None:
        """Return the arm that a commit pulls now; None while no arm is public or ties have no order.

        It is the leader, unless this agent has a leader of its own.
        """
        own_leader = None if agent is None else self.rule.own_leaders(self.board).get(agent)
        return own_leader if own_leader is not None else None if self._leading < 0 else self._leading

    def lapsing(self, now: int) -> list[int]:
        """Return the claims that have waited too long."""
        found = []
        for pull, handed in self.claims.items():
            if handed.time + self.patience > now:
                break
            found.append(pull)
        return found

    def due_used_up(self, now: int) -> list[int]:
        """Return the arms whose sharers had all used their horizons before now, and of which the ledger is silent."""
        if self.format < 6:
            return []
        return sorted(arm for arm, since in self.idle.items() if since < now and arm not in self.used_up)

    def due_tick(self) -> int | None:
        """Return what the clock should show, if it is behind and the rule reads it."""
        now = rounded(self.pulls_made) if self.format > 2 and self.rule.clocked else 0
        return now if now > self.board.clock else None

    def pulls(self) -> list[list[int]]:
        """Return the pulls that are settled, one row per agent in order of joining."""
        return [self.pulls_of(agent) for agent in self.members]

    def pulls_of(self, agent: str) -> list[int]:
        """Return an agent's settled pulls of each arm: explore pulls that were reported, and commits that are paid.

        Commits without an arm are never among them.
        """
        member, arms = self.members[agent], range(self.board.arms)
        told = [member.explore.get(arm, 0) for arm in arms]
        if not self.names_commits:
            return told
        return [pulls + member.commit.get(arm, 0) for arm, pulls in enumerate(told)]

    def commits_of(self, agent: str) -> int:
        """Return how many commits an agent made, as its row of the settlement shows them.

        Where commits are named, those without an arm are not settled, so they do not count here.
        """
        member = self.members[agent]
        return sum(member.commit.values()) + (0 if self.names_commits else member.unnamed)

    def totals(self) -> tuple[list[int], list[int]]:
        """Return the explore pulls and the commit pulls of each arm, of all agents together."""
        explore, commit = [0] * self.board.arms, [0] * self.board.arms
        for member in self.members.values():
            for arm, pulls in member.explore.items():
                explore[arm] += pulls
            for arm, pulls in member.commit.items():
                commit[arm] += pulls
        return explore, commit

    @property
    def histories(self) -> int:
        """How many past rewards of each arm a member may attach."""
        return self.config.histories or 0

    def attached(self) -> list[int]:
        """Return how many rewards of each arm on the board were attached, and not broadcast."""
        found = [0] * self.board.arms
        for past in self.board.attached.values():
            for arm, count in past.items():
                found[arm] += count
        return found

    def window(self, version: int) -> Window | None:
        """Return the window of a version; None if it is too old, or none is kept."""
        place = version - self.windows[0].version
        return self.windows[place] if 0 <= place < len(self.windows) else None

    def allowed(self, agent: str, window: Window, arm: int) -> bool:
        """Whether at some moment of this window the agent was to commit to this arm."""
        after = self.window(window.version + 1)
        end = self.seq + 1 if after is None else after.moments[0][0]
        lookup = self._lookups.setdefault(window.version, Lookup())
        return lookup.allows(window, end, agent, self.members[agent].consents, arm)

    def disagreements(self, *, late: bool = False) -> list[Disagreement]:
        """Return which members see arms differently, by what is on the board. Nothing depends on it.

        With `late`, the last result is enough if it takes long to compare the members.
        """
        if self._disagreements[0] != self.version and not (late and self.compared_late):
            self._disagreements = self.version, disagreements(self.board.by_member, self.board.arms)
        return self._disagreements[1]

    @property
    def compared_late(self) -> bool:
        """Whether comparing the members takes more than some milliseconds, and the last result is an earlier one."""
        slow = len(self.board.by_member) * self.board.arms > COMPARED_AT_ONCE
        return slow and self._disagreements[0] != self.version

    def keep_disagreements(self, version: int, found: list[Disagreement]) -> None:
        """Take over what was found, elsewhere, by the record of a version."""
        self._disagreements = version, found

    # the rule's decisions

    def decide(self, agent: str) -> Pull:
        """Return the agent's next pull."""
        member = self.members[agent]
        own_leader = self.rule.own_leaders(self.board).get(agent)
        if own_leader is not None:
            return Pull(own_leader, share=False)
        draws = Draws(self._key, agent=int(agent[1:]) - 1, pull=member.used)  # agents are a1, a2, …
        shares = self.offered(member, self.open_arms()) if self.rule.offers else member.shares
        return self.rule.decide(self.board, shares, None, draws)

    def offered(self, member: Member, opened: Collection[int]) -> Collection[int]:
        """Return the arms that the rule lets an agent explore, of those that it shares."""
        return self.rule.offered(self.board, member.id, member.shares, opened)

    def open_arms(self) -> list[int]:
        """Return the arms that may be explored now."""
        return self.rule.open_arms(self.board)

    def blocking_arms(self) -> list[int]:
        """Return the open arms: an agent that shares one of them does not commit.

        There are none where a rule offers some open arms to some agents only: the others commit.
        """
        return [] if self.rule.offers else self.open_arms()

    def revise(self) -> None:
        """Let the rule decide which arms are active after a broadcast."""
        self.rule.revise(self.board)

    # the fold

    def apply(self, event: AnyEvent) -> None:
        """Add the next event of the ledger, and accept what it states."""
        if isinstance(event, Tell):
            self._tell(event, decided=self.format > 1)
        elif isinstance(event, Attach):
            self._attach(event, decided=True)
        elif isinstance(event, SetAside):
            self._set_aside(event, decided=True)
        else:
            self._advance(event)
            _FOLD[type(event)](self, event)

    def record(self, event: AnyEvent) -> AnyEvent:
        """Add a new event, and return it as the ledger records it: with the rule's decision."""
        if isinstance(event, SetAside):
            self._set_aside(event, decided=False)
            self._consult()
            return msgspec.structs.replace(event, active=tuple(self.board.actives()))
        if not isinstance(event, Tell | Attach):
            self.apply(event)
            self._consult()
            return event
        before = list(self.board.active)
        if isinstance(event, Tell):
            self._tell(event, decided=False)
        else:
            self._attach(event, decided=False)
        self._consult()
        if self.format > 1 and self.board.active != before:
            return msgspec.structs.replace(event, active=tuple(self.board.actives()))
        return event

    def _consult(self) -> None:
        """Ask a rule of one's own which arms are open: no event is recorded after which it cannot say."""
        if self.config.rule_source is not UNSET:
            self.open_arms()

    def pass_over(self) -> None:
        """Add an event that is hidden from us: another agent's commit pulls, which do not change the board."""
        self.seq += 1

    def _advance(self, event: AnyEvent) -> None:
        assert event.seq == self.seq + 1
        self.seq, self.time = event.seq, event.time
        if isinstance(event, Requested) and event.number is not UNSET and not isinstance(event, Join):
            self.members[event.agent].number = event.number

    def _join(self, event: Join) -> None:
        horizon = self.config.horizon if event.horizon is UNSET else event.horizon
        member = Member(event.agent, event.name, frozenset(), event.seq, event.time, [], horizon, event.pace or None)
        member.key, member.tie_commitment = event.key or "", event.tie_commitment or ""
        member.number = event.number or 0
        self.members[event.agent] = member
        self.invites[event.invite] = event.agent
        self.names.add(alike(event.name))
        if self.format > 2:
            self.board.all_pulls += horizon
        self._set_shares(member, event.shares)

    def _draw(self, event: Draw) -> None:
        self.drawing = Drawing(event.seq, event.time, event.members)

    def _reveal(self, event: Reveal) -> None:
        assert self.drawing is not None
        self.drawing.revealed[event.agent] = Revealed(event.seq, event.nonce)

    def _order(self, event: Order) -> None:
        self.order = event
        self._fix(event.tie_seed)
        self._see_leader()
        self._note()

    def _fix(self, tie_seed: str) -> None:
        """Break ties from now on in the order that follows from this key."""
        self.tie_seed, self._key = tie_seed, run_key(tie_seed)
        self.board.set_order(tie_order(tie_seed, self.board.arms))

    def _claim(self, event: Claim) -> None:
        member = self.members[event.agent]
        self.claims[event.seq] = Handed(event.agent, event.arm, event.time)
        self.board.claims[event.arm] += 1
        self._count_claim(event.agent, event.arm, 1)
        member.claim, member.claimed = event.seq, event.time
        self._note_consent(member)
        self._use(member, 1)
        self._remember(member, event.request, Answered(event.seq, event.arm, True, self.version))
        self._note()

    def _tell(self, event: Tell, decided: bool) -> None:
        """Add a broadcast. Either the event states which arms are active after it, or the rule decides."""
        self._advance(event)
        self._drop_claim(event.pull)
        member, board = self.members[event.agent], self.board
        member.explore[event.arm] = member.explore.get(event.arm, 0) + 1
        before = list(board.active)
        board.broadcast(event.agent, event.arm, event.reward)
        if event.arm in self.used_up:
            self._stall(event.arm)
        self._take_in(event.arm, told=True)  # in any case, because it also updates the rule's public state
        if decided:
            self._take_active(event.active, before)
        self._next_version(event.version)

    def _take_in(self, arm: int, told: bool) -> None:
        """Add past rewards of an arm to the record, and let the rule decide on them and on what was told.

        All of them enter, or, where members may lie, what is fair of each; the others wait for the next broadcast or
        history of the arm. Members come in the order in which they attached. The rule decides once, unless it reads
        each reward.
        """
        each, entered = self.rule.each_reward, told
        if told and each:
            self.revise()
        waiting = {agent: len(arms[arm]) for agent, arms in self.past.items() if arm in arms}
        entering = fair_entries(self.board, arm, waiting, self.rule.tolerate) if waiting else {}
        for agent, count in entering.items():
            arms = self.past[agent]
            for reward in arms[arm][:count]:
                self.board.attach(agent, arm, reward)
                entered = True
                if each:
                    self.revise()
            del arms[arm][:count]
            if not arms[arm]:
                del arms[arm]
            if not arms:
                del self.past[agent]
        if entered and not each:
            self.revise()

    def _take_active(self, stated: tuple[int, ...] | UnsetType, before: list[bool]) -> None:
        """Let the arms be active that an event states: those from before it, if it states none."""
        board = self.board
        board.active = before if stated is UNSET else [arm in stated for arm in range(board.arms)]

    def _attach(self, event: Attach, decided: bool) -> None:
        """Add past rewards to the record. Nothing else counts them."""
        self._advance(event)
        digest = digest_of(event.rewards)
        attached = Attached(event.seq, event.version, len(event.rewards), event.request, digest)
        member = self.members[event.agent]
        member.attached[event.arm] = attached
        self._remember(member, event.request, Answered(event.seq, -1, False, event.version))
        self.past.setdefault(event.agent, {})[event.arm] = list(event.rewards)
        before = list(self.board.active)
        self._take_in(event.arm, told=False)
        if decided:
            self._take_active(event.active, before)
        self._next_version(event.version)

    def _set_aside(self, event: SetAside, decided: bool) -> None:
        """Take an agent's broadcasts out of the record, and compute again which arms are active."""
        self._advance(event)
        member, board = self.members[event.agent], self.board
        member.aside = event.reason
        self._withdraw(member, ())
        board.set_aside(event.agent)
        self.past.pop(event.agent, None)
        self._settle()
        if decided:
            board.active = [arm in event.active for arm in range(board.arms)]
        self._next_version(event.version)

    def _settle(self) -> None:
        """Let the rule revise until nothing changes."""
        if isinstance(self.rule, Served):  # which may never settle
            self.rule.settle(self.board)
            return
        before: list[bool] | None = None
        while self.board.active != before:
            before = list(self.board.active)
            self.revise()

    def _commit(self, event: Commit) -> None:
        member = self.members[event.agent]
        for run in event.runs:
            member.commit[run.arm] = member.commit.get(run.arm, 0) + run.pulls
            self._use(member, run.pulls)
            if not event.asked:
                member.reported = max(member.reported, run.version)
        if event.unnamed is not UNSET:
            member.unnamed += event.unnamed
            self._use(member, event.unnamed)
        arm = event.runs[0].arm if event.asked else -1
        self._remember(member, event.request, Answered(event.seq, arm, False, self.version))

    def _lapse(self, event: Lapse) -> None:
        handed = self.late[event.pull] = self.claims.pop(event.pull)
        self.board.claims[handed.arm] -= 1
        self._miss(handed.arm)
        self._end_claim(handed.agent)
        self._note()

    def _used_up(self, event: UsedUp) -> None:
        for member in self.members.values():
            if not member.spent and not member.shares.isdisjoint(event.arms):
                self._spend(member)
        for arm in event.arms:
            self.used_up.add(arm)
            self._stall(arm)
        self._note()

    def _tick(self, event: Tick) -> None:
        self.board.clock = event.clock
        self._note()

    def _add_arm(self, event: AddArm) -> None:
        self._name_arm(event.name)

    def _name_arm(self, name: str) -> None:
        self.numbers[name] = len(self.arms)
        self.arms.append(name)

    def _consent(self, event: Consent) -> None:
        self._set_shares(self.members[event.agent], event.shares)
        self._remember(self.members[event.agent], event.request, Answered(event.seq, -1, False, self.version))

    def _leave(self, event: Leave) -> None:
        self._set_shares(self.members[event.agent], ())
        self.members[event.agent].left = True

    def _rotate(self, event: Rotate) -> None:
        member = self.members[event.agent]
        member.epoch, member.rotated, member.revoked = event.epoch, event.seq, False
        member.earlier_key, member.key = member.key, event.key or member.key

    def _revoke(self, event: Revoke) -> None:
        self.members[event.agent].revoked = True

    def _remove(self, event: Remove) -> None:
        member = self.members[event.agent]
        self._set_shares(member, ())
        member.left, member.removed = True, event.reason

    def _close(self, event: Close) -> None:
        self.closed = event

    # steps that several events have in common

    def _use(self, member: Member, pulls: int) -> None:
        """Count pulls of a member's horizon."""
        before = member.able
        member.used += pulls
        self.pulls_made += pulls
        if before and not member.able:
            self._see_unable(member)

    def _spend(self, member: Member) -> None:
        """Note that a member has no pulls left: who may not see its commits learns it from a `used-up` event."""
        before, member.spent = member.able, True
        for arm in member.shares:
            self._unspent[arm] -= 1
        if before:
            self._see_unable(member)

    def _see_unable(self, member: Member) -> None:
        """Note which arms nobody can pull any more after this member."""
        for arm in member.shares:
            self._able[arm] -= 1
            self._see_idle(arm)

    def _see_idle(self, arm: int) -> None:
        """Note whether the arm has sharers and none of them has pulls left.

        Nothing but `used-up` events depends on it, since not everybody sees all pulls. Decisions depend on these
        events and on who shares the arm, which all members see.
        """
        if self._able[arm] or not self.sharers[arm]:
            self.idle.pop(arm, None)
        else:
            self.idle.setdefault(arm, self.time)
        if self._unspent[arm] and arm in self.used_up:
            self.used_up.remove(arm)
            self.board.lapses[arm] -= MOST_LAPSES

    def _stall(self, arm: int) -> None:
        """Let no other arm wait for this one, and keep count of its lapses for when somebody can pull it again."""
        self.board.lapses[arm] += MOST_LAPSES

    def _set_shares(self, member: Member, shares: tuple[int, ...]) -> None:
        """Let an agent share exactly these arms, and note what that changes."""
        self._withdraw(member, shares)
        self._see_leader()
        self._note()

    def _withdraw(self, member: Member, shares: tuple[int, ...]) -> None:
        """Let an agent share exactly these arms, and cancel its claims on the arms that it withdrew."""
        before, member.shares = member.shares, frozenset(shares)
        if self.names_commits:
            self._forget_consents(member)
            member.consents.append((self.seq, bits(shares if member.claim is None or self.format < 6 else ())))
        withdrawn = before - member.shares
        if withdrawn:
            waiting = [*self.claims.items(), *self.late.items()]
            for pull, handed in waiting:
                if handed.agent == member.id and handed.arm in withdrawn:
                    if pull in self.claims:  # a late one was counted when it lapsed
                        self._miss(handed.arm)
                    self._drop_claim(pull)
                    self.cancelled.add(pull)
        board = self.board
        able, unspent, joining = member.able, not member.spent, member.joined == self.seq
        board.shares[member.id] = member.shares
        for arm in withdrawn:
            self.sharers[arm] -= 1
            self._able[arm] -= able
            self._unspent[arm] -= unspent
            self._see_idle(arm)
            board.shared[arm], board.sharers[arm] = self.sharers[arm] > 0, self.sharers[arm]
        for arm in member.shares - before:
            self.sharers[arm] += 1
            if joining and not self._unspent[arm] and self.format > 5:
                board.lapses[arm] = 0  # of others, who can no longer pull it
                self.used_up.discard(arm)
            self._able[arm] += able
            self._unspent[arm] += unspent
            self._see_idle(arm)
            board.shared[arm], board.sharers[arm] = True, self.sharers[arm]
            if not board.public[arm]:
                board.public[arm] = board.active[arm] = True

    def _forget_consents(self, member: Member) -> None:
        """Forget what an agent shared before the first window, except what it shared when that began."""
        first, consents = self.windows[0].moments[0][0], member.consents
        if len(consents) > 1 and consents[1][0] <= first:
            del consents[: bisect_right(consents, first, key=lambda consent: consent[0]) - 1]

    def _miss(self, arm: int) -> None:
        """Count a claim that ended without a report."""
        if self.format > 3:
            self.board.lapses[arm] += 1

    def _next_version(self, version: int) -> None:
        """Begin a new version of the board."""
        self.version = version
        self._see_leader()
        if self.names_commits:
            self._next_window()
        self._note()

    def _drop_claim(self, pull: int) -> None:
        """Remove a claim that was reported or cancelled."""
        if pull in self.late:
            handed = self.late.pop(pull)
            self._count_claim(handed.agent, handed.arm, -1)
            return
        handed = self.claims.pop(pull)
        self._count_claim(handed.agent, handed.arm, -1)
        self.board.claims[handed.arm] -= 1
        self._end_claim(handed.agent)

    def _end_claim(self, agent: str) -> None:
        """Let an agent without an open claim explore again."""
        member = self.members[agent]
        member.claim = None
        self._note_consent(member)

    def _note_consent(self, member: Member) -> None:
        """Note what the agent may explore from this event on: nothing while it has an open claim, so it commits."""
        if not self.names_commits or self.format < 6:
            return
        self._forget_consents(member)
        shares = bits(member.shares if member.claim is None else ())
        if member.consents[-1][1] != shares:
            member.consents.append((self.seq, shares))

    def _count_claim(self, agent: str, arm: int, change: int) -> None:
        """Count what an agent may still report of an arm."""
        claims = self.board.claimed.setdefault(agent, {})
        claims[arm] = claims.get(arm, 0) + change
        if not claims[arm]:
            del claims[arm]
        if not claims:
            del self.board.claimed[agent]

    def _remember(self, member: Member, request: str | None, answered: Answered) -> None:
        """Store the answer to a request, in case the request is repeated."""
        if request is not None:
            member.answers[request] = answered
            if len(member.answers) > REMEMBERED:
                del member.answers[next(iter(member.answers))]

    def _next_window(self) -> None:
        """Begin the window of a new version, and forget those on which no commit can be reported any more."""
        self.windows[-1].until = self.time
        self.windows.append(Window(self.version))
        while (until := self.windows[0].until) is not None and until + self.patience < self.time:
            self._lookups.pop(self.windows.popleft().version, None)

    def _note(self) -> None:
        """Record the leader and the open arms from this event on, if they changed and commits are checked by them."""
        if not self.names_commits:
            return
        opened = bits(self.blocking_arms())
        window = self.windows[-1]
        if not window.moments or window.moments[-1][1:] != (self._leading, opened):
            window.moments.append((self.seq, self._leading, opened))

    def _see_leader(self) -> None:
        """Look up and cache the arm that a commit pulls; -1 while there is none. Claims do not change it."""
        board = self.board
        board.leading = self.rule.leading(board)
        self._leading = board.leader() if any(board.active) and self.ordered else -1
        if self._leading >= 0:
            self.led.add(self._leading)

    # snapshots

    def dump(self) -> bytes:
        """Return the state as a snapshot."""
        board = self.board
        kept = Snapshot(
            config=self.config,
            arms=self.arms,
            seq=self.seq,
            time=self.time,
            version=self.version,
            counts=board.record.counts,
            sums=board.record.sums,
            by_member={str(member): sparse(record) for member, record in board.by_member.items()},
            active=board.active,
            public=board.public,
            lapses=board.lapses,
            rule_state=board.state,
            clock=board.clock,
            members=list(self.members.values()),
            past=self.past,
            claims=self.claims,
            late=self.late,
            cancelled=self.cancelled,
            idle=self.idle,
            used_up=self.used_up,
            invites=self.invites,
            windows=list(self.windows),
            led=self.led,
            closed=self.closed,
            drawing=self.drawing,
            order=self.order,
        )
        return msgspec.msgpack.encode(kept)

    @classmethod
    def load(cls, snapshot: bytes) -> "State":
        """Return the state stored in a snapshot."""
        kept = msgspec.msgpack.decode(snapshot, type=Snapshot)
        state = cls(kept.config)
        board = state.board
        for name in kept.arms[len(state.arms) :]:
            state._name_arm(name)
        state.seq, state.time, state.version, state.closed = kept.seq, kept.time, kept.version, kept.closed
        state.drawing, state.order = kept.drawing, kept.order
        if kept.order is not None:
            state._fix(kept.order.tie_seed)
        board.record = Record(kept.counts, kept.sums)
        board.by_member = {member: dense(record, board.arms) for member, record in kept.by_member.items()}
        board.active, board.public, board.state = kept.active, kept.public, kept.rule_state
        board.lapses, board.clock = kept.lapses, kept.clock
        state.members = {member.id: member for member in kept.members}
        state.pulls_made = sum(member.used for member in kept.members)
        if state.format > 2:
            board.all_pulls = sum(member.horizon for member in kept.members)
        state.past = kept.past
        for member in kept.members:
            board.shares[member.id] = member.shares
            if member.attached and not member.aside:
                waiting = {arm: len(rewards) for arm, rewards in kept.past.get(member.id, {}).items()}
                past = {arm: one.rewards - waiting.get(arm, 0) for arm, one in member.attached.items()}
                board.attached[member.id] = {arm: count for arm, count in past.items() if count}
            for arm in member.shares:
                state.sharers[arm] += 1
                state._able[arm] += member.able
                state._unspent[arm] += not member.spent
        state.idle, state.used_up = kept.idle, kept.used_up
        board.shared = [sharers > 0 for sharers in state.sharers]
        board.sharers = list(state.sharers)
        state.claims, state.late, state.cancelled = kept.claims, kept.late, kept.cancelled
        state.invites, state.names = kept.invites, {alike(member.name) for member in kept.members}
        for handed in state.claims.values():
            board.claims[handed.arm] += 1
        for handed in (*state.claims.values(), *state.late.values()):
            state._count_claim(handed.agent, handed.arm, 1)
        state.windows, state.led = deque(kept.windows), kept.led
        state._see_leader()
        return state


_FOLD: dict[type, Any] = {
    Join: State._join,
    Draw: State._draw,
    Reveal: State._reveal,
    Order: State._order,
    Claim: State._claim,
    Commit: State._commit,
    Lapse: State._lapse,
    UsedUp: State._used_up,
    Tick: State._tick,
    Consent: State._consent,
    AddArm: State._add_arm,
    Leave: State._leave,
    Rotate: State._rotate,
    Revoke: State._revoke,
    Remove: State._remove,
    Close: State._close,
}

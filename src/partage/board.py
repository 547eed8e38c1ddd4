"""The board: the public state of a game."""

import copy
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MOST_LAPSES = 3  # claims of an arm in a row that may end without a report before other arms stop waiting for it


class Pull(NamedTuple):
    """One step of one agent: the arm it pulls, and whether it broadcasts the reward (an explore pull)."""

    arm: int
    share: bool


@dataclass
class Record:
    """How often each arm was seen, the sum of its rewards, and which arm and reward `add` saw last."""

    counts: list[int]
    sums: list[float]
    latest: int | None = field(default=None, compare=False)
    latest_reward: float | None = field(default=None, compare=False)

    @classmethod
    def empty(cls, arms: int) -> "Record":
        """Return the record of nothing seen yet."""
        return cls([0] * arms, [0.0] * arms)

    def add(self, arm: int, reward: float) -> None:
        """Record one reward of an arm."""
        self.counts[arm] += 1
        self.sums[arm] += reward
        self.latest, self.latest_reward = arm, reward

    def copy(self) -> "Record":
        """Return an independent copy of this record."""
        return Record(list(self.counts), list(self.sums), self.latest, self.latest_reward)


def total_of(records: Iterable[Record], arms: int) -> Record:
    """Return all these records as one. Their order does not matter: the sums are rounded once."""
    several = list(records)
    return Record(
        [sum(record.counts[arm] for record in several) for arm in range(arms)],
        [math.fsum(record.sums[arm] for record in several) for arm in range(arms)],
    )


def radius(horizon: int, count: float) -> float:
    """Return half the width of an arm's interval (the paper's rad): sqrt(2 log T / N_i), infinite for N_i = 0."""
    return math.sqrt(2 * math.log(horizon) / count) if count else math.inf


@dataclass
class Board:
    """What every agent sees: how often each arm was broadcast, and the mean of those rewards.

    Attributes
    ----------
    horizon
        Pulls per agent (the paper's T).
    tie_order
        The arms in the order in which ties are broken, drawn once per run and public.
    public
        Whether somebody shares the arm, or once did. Rules ignore other arms.
    shared
        Whether somebody shares the arm now. In live play a public arm may lose its last sharer: it keeps its record,
        and cannot be explored until it is shared again.
    sharers
        How many share the arm now.
    shares
        The arms that each member shares now; a client's board does not have them.
    claims
        Explore pulls of each arm that were handed out and not yet reported; always 0 where reports are instant.
    lapses
        Claims of each arm that ended without a report since its last broadcast; always 0 where reports are instant.
    record
        Broadcasts of each arm (the paper's N_i) and the sum of their rewards.
    by_member
        The same for each member that broadcast: who broadcast what.
    attached
        For each member, how many of its rewards of each arm in the record are past ones, which answered no claim.
    claimed
        For each member, the claims on each arm that it may still report: open ones, and those that lapsed.
    active
        Whether the arm is not eliminated (the paper's A(t)). A rule's `revise` eliminates arms.
    state
        Public state of the rule, which `revise` updates. It must be plain JSON data; None if the rule has none.
    leading
        The arm that a commit pulls; None if that is the active arm with the highest mean. A rule's `revise` sets it.
    rank
        The position of each arm in the tie order.
    clock
        The group's pulls so far, rounded down to a power of 1.25 (`partage.clock`).
    all_pulls
        The pulls of all agents together by the end, as far as it is known; 0 if it is not.
    """

    horizon: int
    tie_order: Sequence[int]
    public: list[bool]
    shared: list[bool] = field(init=False)
    sharers: list[int] = field(init=False)
    claims: list[int] = field(init=False)
    lapses: list[int] = field(init=False)
    record: Record = field(init=False)
    shares: dict[Hashable, frozenset[int]] = field(init=False, default_factory=dict)
    by_member: dict[Hashable, Record] = field(init=False, default_factory=dict)
    attached: dict[Hashable, dict[int, int]] = field(init=False, default_factory=dict)
    claimed: dict[Hashable, dict[int, int]] = field(init=False, default_factory=dict)
    active: list[bool] = field(init=False)
    leading: int | None = field(init=False, default=None)
    state: Any = field(init=False, default=None)
    rank: list[int] = field(init=False)
    clock: int = field(init=False, default=0)
    all_pulls: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        arms = len(self.tie_order)
        self.shared = list(self.public)
        self.sharers = [int(public) for public in self.public]
        self.claims = [0] * arms
        self.lapses = [0] * arms
        self.record = Record.empty(arms)
        self.active = list(self.public)
        self.set_order(self.tie_order)

    def set_order(self, tie_order: Sequence[int]) -> None:
        """Break ties in this order of the arms from now on."""
        self.tie_order = tie_order
        self.rank = [0] * len(tie_order)
        for rank, arm in enumerate(tie_order):
            self.rank[arm] = rank

    def copy(self, *, by_member: bool = True) -> "Board":
        """Return an independent copy of this board, without what is kept by member unless it is wanted."""
        other = Board(self.horizon, self.tie_order, list(self.public))
        other.shared, other.claims, other.active = list(self.shared), list(self.claims), list(self.active)
        other.lapses = list(self.lapses)
        other.sharers, other.leading = list(self.sharers), self.leading
        other.record = self.record.copy()
        if by_member:
            other.shares = dict(self.shares)
            other.by_member = self.copied_records()
            other.claimed = {member: dict(claims) for member, claims in self.claimed.items()}
            other.attached = {member: dict(past) for member, past in self.attached.items()}
        other.state = copy.deepcopy(self.state)
        other.clock, other.all_pulls = self.clock, self.all_pulls
        return other

    def copied_records(self) -> dict[Hashable, Record]:
        """Return an independent copy of who broadcast what."""
        return {member: record.copy() for member, record in self.by_member.items()}

    def broadcast(self, member: Hashable, arm: int, reward: float) -> None:
        """Record one reward that a member broadcast. Call the rule's `revise` afterwards."""
        self._add(member, arm, reward)
        self.lapses[arm] = 0

    def attach(self, member: Hashable, arm: int, reward: float) -> None:
        """Record one past reward of a member, which answers no claim. Call the rule's `revise` afterwards."""
        self._add(member, arm, reward)
        past = self.attached.setdefault(member, {})
        past[arm] = past.get(arm, 0) + 1

    def _add(self, member: Hashable, arm: int, reward: float) -> None:
        self.record.add(arm, reward)
        if member not in self.by_member:
            self.by_member[member] = Record.empty(self.arms)
        self.by_member[member].add(arm, reward)

    def set_aside(self, member: Hashable) -> None:
        """Take a member's broadcasts out of the record and make every public arm active again.

        The rule's state starts afresh. Call the rule's `revise` afterwards, until nothing changes.
        """
        self.by_member.pop(member, None)
        self.attached.pop(member, None)
        self.record = total_of(self.by_member.values(), self.arms)
        self.active = list(self.public)
        self.state = self.leading = None

    @property
    def effects(self) -> list[float | None] | None:
        """Each arm's estimated effect less the leader's, where the rule compares arms within members; otherwise None.

        An arm that is not compared has None.
        """
        return self.state.get("effects") if isinstance(self.state, dict) else None

    @property
    def pulls_left(self) -> int:
        """The pulls that the group still has, by the clock."""
        return max(0, self.all_pulls - self.clock)

    @property
    def arms(self) -> int:
        """How many arms there are (the paper's N)."""
        return len(self.tie_order)

    @property
    def counts(self) -> list[int]:
        """Broadcasts of each arm (the paper's N_i)."""
        return self.record.counts

    def actives(self) -> list[int]:
        """Return the active arms (the paper's A(t))."""
        return [arm for arm in range(self.arms) if self.active[arm]]

    def standing(self) -> list[int]:
        """Return the active arms that somebody shares: the candidates for exploration."""
        return [arm for arm in range(self.arms) if self.active[arm] and self.shared[arm]]

    def stalled(self, arm: int) -> bool:
        """Whether the arm's last claims all ended without a report, so that no other arm waits for it."""
        return self.lapses[arm] >= MOST_LAPSES

    def awaited(self, arms: Sequence[int], at_least: int = 1) -> Sequence[int]:
        """Return those of these arms that are not stalled, or all of them if that leaves fewer than `at_least`."""
        found = [arm for arm in arms if not self.stalled(arm)]
        return found if len(found) >= at_least else arms

    def handed(self, arm: int) -> int:
        """Return how often the arm was broadcast or is about to be: N_i plus the claims on it."""
        return self.record.counts[arm] + self.claims[arm]

    def handed_to(self, member: Hashable, arm: int) -> int:
        """Return how often a member broadcast the arm or may still do so: what it claimed counts."""
        record, claims = self.by_member.get(member), self.claimed.get(member)
        return (record.counts[arm] if record else 0) + (claims.get(arm, 0) if claims else 0)

    def mean(self, arm: int) -> float:
        """Return the mean of the broadcast rewards; an arm that was never broadcast ranks below all others."""
        count = self.record.counts[arm]
        return self.record.sums[arm] / count if count else -math.inf

    def intervals(self) -> list[tuple[float, float]]:
        """Return the lower and the upper end of every arm's interval; infinite if it was never broadcast."""
        found = []
        for count, total in zip(self.record.counts, self.record.sums, strict=True):
            mean, half = (total / count if count else 0.0), radius(self.horizon, count)
            found.append((mean - half, mean + half))
        return found

    def least(self, arms: Iterable[int]) -> int:
        """Return the least-broadcast of these arms, claims included, ties by the tie order."""
        return min(arms, key=lambda arm: (self.handed(arm), self.rank[arm]))

    def best(self, arms: Iterable[int]) -> int:
        """Return the arm with the highest mean among these, ties by the tie order."""
        return min(arms, key=lambda arm: (-self.mean(arm), self.rank[arm]))

    def leader(self) -> int:
        """Return the arm that a commit pulls: the active arm of the highest mean, unless the rule says otherwise."""
        return self.best(self.actives()) if self.leading is None else self.leading

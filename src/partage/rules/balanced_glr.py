"""Balanced-GLR: near the Lai-Robbins limit, for any rewards in [0, 1] (docs/balanced-glr.md has the argument)."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from partage.betting import LOG_MIXED
from partage.board import Board, Pull, Record
from partage.checks import number_from, one_of
from partage.compiled import shared
from partage.errors import InputError
from partage.evidence import apart, free_evidence, mixture_loss
from partage.rules.betting import bets_on, betting_threshold, evidence_of, revise_by_betting, weigh_bets
from partage.rules.exploring import explore_or_commit
from partage.rules.indifference import is_indifferent
from partage.rules.influence import (
    TOLERATE,
    ToleratesLiars,
    below,
    best_trimmed,
    can_be_settled,
    checked_tolerate,
    is_beaten,
    net_below,
    worst_of,
    worth,
)
from partage.rules.rule import Parameter
from partage.rules.weighing import Weighed, growth, weighed
from partage.tape import Draws

EVIDENCE = ("likelihood", "betting")
LATE = ("ignored", "worst")

# A broadcast changes the record of one arm, so most of what the next one needs was just computed.
_apart = lru_cache(maxsize=2**14)(apart)
_loss = lru_cache(maxsize=2**14)(mixture_loss)


def elimination_threshold(arms: int, horizon: int) -> float:
    """Return the evidence, less both losses, from which an arm is eliminated: log(((N - 1) T + 1) / 2).

    With it, the best arm is eliminated at any time with probability at most 1/T.
    """
    return math.log(((arms - 1) * horizon + 1) / 2)


def net_evidence(record: Record, arm: int, other: int) -> float:
    """Return Z less what the two mixtures lose: the quantity that Ville's inequality bounds."""
    counts, sums = record.counts, record.sums
    evidence = _apart(counts[arm], sums[arm], counts[other], sums[other])
    return evidence - _loss(counts[arm], sums[arm]) - _loss(counts[other], sums[other])


def weigh_by_likelihood(board: Board, leader: int | None, tolerate: int = 0, worst: bool = False) -> Weighed:
    """Return the evidence against each arm, less both losses, and how much more of it is needed."""
    threshold = elimination_threshold(board.arms, board.horizon)

    def weigh(arm: int) -> tuple[float, float]:
        assert leader is not None
        counts, sums = board.record.counts, board.record.sums
        record = (counts[arm], sums[arm], counts[leader], sums[leader])
        if tolerate:
            record = worst_of(board, arm, leader, tolerate)
        n, s, k, w = record
        if not n or not k:
            return 0.0, math.inf
        net = worst_evidence(board, arm, leader) if worst else net_below(n, s, k, w)
        return net, growth(below(n, s, k, w), threshold + _loss(n, s) + _loss(k, w))

    return weighed(board, leader, threshold, weigh)


def checked_lead(lead: object) -> float:
    """Return the lead as a float."""
    return number_from("The lead", lead, low=1)


def _checked_evidence(evidence: object) -> str:
    return one_of("The evidence", evidence, EVIDENCE)


def _checked_late(late: object) -> str:
    return one_of("How late rewards count", late, LATE)


def worst_evidence(board: Board, arm: int, leader: int) -> float:
    """Return the least net evidence against an arm that the rewards which are not told yet leave possible.

    They count as 1 for the arm and as 0 for the leader, and both losses are the largest that a record of this length
    has: that of rewards which are all 0.
    """
    counts, sums = board.record.counts, board.record.sums
    out, leaders_out = (sum(claims.get(one, 0) for claims in board.claimed.values()) for one in (arm, leader))
    if not out and not leaders_out:
        return net_evidence(board.record, arm, leader)
    return evidence_at_worst(counts[arm] + out, sums[arm] + out, counts[leader] + leaders_out, sums[leader])


@shared
def evidence_at_worst(count: int, total: float, other_count: int, other_total: float) -> float:
    """Return the net evidence against the first of two arms, with the largest losses that such counts allow."""
    if total * other_count >= other_total * count:
        return -math.inf
    evidence = apart(count, total, other_count, other_total)
    return evidence - mixture_loss(count, 0.0) - mixture_loss(other_count, 0.0)


@shared
def is_behind(evidence: float, count: int, handed: int, slowest: float, ahead: int, lead: float, free: float) -> bool:
    """Whether a contender may gather more evidence: what is free, or what the slowest contender's pace allows.

    The slowest contender itself is compared by counts. Its evidence is `slowest` times its count, so rounding would
    decide whenever the leader is exactly `lead` times ahead of it.

    Parameters
    ----------
    evidence, count, handed
        The evidence against the contender, its broadcasts, and its broadcasts and claims together.
    slowest
        The least evidence per broadcast of a contender.
    ahead, lead
        Broadcasts and claims of the leader, and how far it may run ahead.
    free
        The evidence that is gathered about any contender at once.
    """
    paced = ahead * slowest / lead
    if paced > free and evidence / count == slowest:
        return lead * handed <= ahead
    return evidence * (handed / count) <= max(free, paced)


def _checked_indifference(indifference: object) -> bool:
    if isinstance(indifference, str) and indifference in ("true", "false"):  # as flags have it
        return indifference == "true"
    if not isinstance(indifference, bool):
        raise InputError(f"The indifference is {indifference!r}; it must be true or false.")
    return indifference


@dataclass(frozen=True)
class BalancedGLR(ToleratesLiars):
    """Eliminate arms by evidence against the leader, and gather evidence on the others at the same pace.

    The leader is the broadcast arm with the highest mean. An arm is a contender unless the record separates its mean
    from the leader's. The contenders are the active arms. With evidence by likelihood an eliminated arm may become
    active again; with evidence by betting it stays eliminated.

    Parameters
    ----------
    lead
        How far the leader's broadcasts may run ahead of the other contenders': at least 1. Once the leader is the
        best arm, pulling it costs nothing, and each pull is evidence about all the others.
    evidence
        How arms are separated. `likelihood` compares Bernoulli likelihoods; `betting` bets on and against arms. It
        needs fewer broadcasts, and far fewer where rewards vary less than those of 0 and 1.
    indifference
        Whether to stop exploring an arm once finding out costs more than the group could still win with it.
    tolerate
        How many members may lie without misleading the others (docs/bounded-influence.md). An arm is eliminated only
        if the record says so whichever `tolerate` members are left out, and arms are ranked by trimmed means. It
        needs evidence by likelihood.
    late
        How rewards count that are not told yet: "ignored", or "worst" for their worst value, so that no member can
        have the best arm eliminated by telling good news late. It needs evidence by likelihood, and no `tolerate`.

    >>> from partage import BalancedETC, BalancedGLR, Game, Sharing, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.8, 0.7]), Sharing.round_robin(agents=30, arms=3), horizon=10**6)
    >>> glr, etc = (play(game, rule, runs=20, settlement="none") for rule in (BalancedGLR(), BalancedETC()))
    >>> 8 * glr.overall_regret.mean < etc.overall_regret.mean
    True
    """

    lead: float = 3.0
    evidence: str = "likelihood"
    indifference: bool = True
    tolerate: int = 0
    late: str = "ignored"

    name = "balanced-glr"
    summary = "Certified: the best arm is ever eliminated with probability at most 1/T."
    parameters = (
        Parameter(
            name="lead",
            default=3.0,
            summary="how far the leader's broadcasts may run ahead of the other contenders'",
            allowed="a finite number of at least 1",
            check=checked_lead,
        ),
        Parameter(
            name="evidence",
            default="likelihood",
            summary="how arms are separated: by Bernoulli likelihoods, or by bets, which fit any rewards in [0, 1]",
            allowed="likelihood or betting",
            check=_checked_evidence,
            choices=EVIDENCE,
        ),
        Parameter(
            name="indifference",
            default=True,
            summary="whether to stop exploring an arm once finding out costs more than it could win",
            allowed="true or false",
            check=_checked_indifference,
            choices=("true", "false"),
        ),
        TOLERATE,
        Parameter(
            name="late",
            default="ignored",
            summary="how rewards that are not told yet count in eliminations: not at all, or at their worst",
            allowed="ignored or worst",
            check=_checked_late,
            choices=LATE,
            quiet=True,
        ),
    )
    live = True
    kernel = "balanced_glr"
    eliminates = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "lead", checked_lead(self.lead))
        object.__setattr__(self, "evidence", _checked_evidence(self.evidence))
        object.__setattr__(self, "indifference", _checked_indifference(self.indifference))
        object.__setattr__(self, "tolerate", checked_tolerate(self.tolerate))
        if self.tolerate and self.evidence == "betting":
            raise InputError(f"tolerate is {self.tolerate}; with evidence by betting it must be 0.")
        object.__setattr__(self, "late", _checked_late(self.late))
        if self.late == "worst" and (self.tolerate or self.evidence == "betting"):
            with_what = f"tolerate {self.tolerate}" if self.tolerate else "evidence by betting"
            raise InputError(f'late is "worst"; with {with_what} it must be "ignored".')

    @property
    def clocked(self) -> bool:
        """Whether the rule reads the board's clock: to stop early."""
        return self.indifference

    @property
    def each_reward(self) -> bool:
        """Whether each reward is read: by bets, whose wealth depends on the order."""
        return self.evidence == "betting"

    def revise(self, board: Board, slack: float = 0.0) -> None:
        """Keep the arms active that the record does not separate from the leader, and those never broadcast."""
        if self.evidence == "betting":
            revise_by_betting(board, slack)
            return
        leader = self._leader(board)
        if leader is None:
            board.leading = self.leading(board)
            return
        threshold = elimination_threshold(board.arms, board.horizon) + slack
        for arm in range(board.arms):
            if board.public[arm]:
                board.active[arm] = arm == leader or not self._beaten(board, arm, leader, threshold)
        board.leading = self.leading(board)

    def _beaten(self, board: Board, arm: int, leader: int, threshold: float) -> bool:
        """Whether the record separates an arm from the leader."""
        if not board.counts[arm]:
            return False
        if self.tolerate:
            return is_beaten(board, arm, leader, self.tolerate, threshold)
        if self.late == "worst":
            return worst_evidence(board, arm, leader) >= threshold
        return net_evidence(board.record, arm, leader) >= threshold

    def weigh(self, board: Board) -> Weighed | None:
        """Return the evidence that each arm is worse than the leader."""
        if self.evidence == "betting":
            return weigh_bets(board)
        return weigh_by_likelihood(board, self._leader(board), self.tolerate, self.late == "worst")

    def decide(
        self, board: Board, shares: Collection[int], own: Record | None = None, draws: Draws | None = None
    ) -> Pull:
        """Explore the least-broadcast open arm that the agent shares; commit if there is none."""
        return explore_or_commit(board, shares, own, self.open_arms(board))

    def open_arms(self, board: Board, slack: float = 0.0) -> list[int]:
        """Return the contenders that may be explored; none if no arm but the leader is worth exploring.

        A claim counts as a broadcast that brings as much evidence as the others of its arm did.
        """
        if self.evidence == "betting":
            board = bets_on(board)
        contenders = board.standing()
        if self.tolerate:  # nothing can come of exploring the others
            contenders = [arm for arm in contenders if can_be_settled(board, arm, self.tolerate)]
        if len(contenders) < 2:
            return []
        leader = self._leader(board)
        if leader is None:
            return [arm for arm in contenders if board.handed(arm) <= 1 + self.tolerate]
        counts = board.record.counts
        others = [arm for arm in contenders if arm != leader and not self._stops(board, arm, leader, slack)]
        if not others:
            return []
        explorable = board.shared[leader] and (not self.tolerate or leader in contenders)
        if not explorable or board.stalled(leader):
            # The leader cannot be explored, or not for certain, so the others are explored equally often.
            least = min(board.handed(arm) for arm in board.awaited(others))
            opened = [arm for arm in others if board.handed(arm) <= max(1, least)]
            return [*opened, leader] if explorable else opened
        if self.evidence == "betting":
            bets = evidence_of(board)
            evidence = {arm: bets[arm] for arm in others if counts[arm]}
        else:
            evidence = {arm: self._evidence(board, arm, leader) for arm in others if self._seen(board, arm)}
        ahead = board.handed(leader)

        # No contender runs ahead of the one that gathers evidence most slowly, nor of the leader.
        slowest = min((evidence[arm] / counts[arm] for arm in board.awaited(list(evidence))), default=math.inf)
        free = free_evidence(ahead)
        enough = max(free, ahead * slowest / self.lead) + slack

        def behind(arm: int) -> bool:
            handed = board.handed(arm)
            if slack:
                return evidence[arm] * (handed / counts[arm]) <= enough
            return is_behind(evidence[arm], counts[arm], handed, slowest, ahead, self.lead, free)

        opened = [
            arm for arm in others if board.handed(arm) <= max(1, ahead) and (arm not in evidence or behind(arm))
        ]
        # The leader runs ahead of all, but not too far. If rounding closes every arm, and no claim is open, the
        # leader is explored.
        stuck = not opened and not any(board.claims)
        if stuck or ahead <= self.lead * max([1, *(board.handed(arm) for arm in evidence)]):
            opened.append(leader)
        return opened

    def _stops(self, board: Board, arm: int, leader: int, slack: float) -> bool:
        """Whether a contender is no longer worth exploring; with slack, for certain (above 0) or possibly (below)."""
        if not self.indifference or not board.all_pulls or not self._seen(board, arm):
            return False
        n, s, k, w = self._record(board, arm, leader)
        if not n or not k:  # without some members nothing is left
            return False
        if self.evidence == "betting":
            evidence = evidence_of(board)[arm]
            needed = betting_threshold(board.horizon) + LOG_MIXED
        else:
            evidence = self._evidence(board, arm, leader)
            needed = elimination_threshold(board.arms, board.horizon) + _loss(n, s) + _loss(k, w)
        record = n, s / n, k, max(w / k, s / n), board.pulls_left
        if slack == 0:
            return is_indifferent(evidence, needed, *record)
        around = (-slack, slack)
        found = [is_indifferent(evidence + one, needed + other, *record) for one in around for other in around]
        return all(found) if slack > 0 else any(found)

    def _seen(self, board: Board, arm: int) -> bool:
        """Whether the record says something about an arm: it was broadcast, and by enough members."""
        return worth(board, arm, self.tolerate) > -math.inf if self.tolerate else board.counts[arm] > 0

    def _record(self, board: Board, arm: int, leader: int) -> tuple[int, float, int, float]:
        """Return count and sum of an arm and of the leader; if members may lie, without those that prove most."""
        if self.tolerate:
            return worst_of(board, arm, leader, self.tolerate)
        counts, sums = board.record.counts, board.record.sums
        return counts[arm], sums[arm], counts[leader], sums[leader]

    def _evidence(self, board: Board, arm: int, leader: int) -> float:
        """Return how strongly that record separates an arm from the leader."""
        return (below if self.tolerate else _apart)(*self._record(board, arm, leader))

    def _leader(self, board: Board) -> int | None:
        """Return the broadcast arm with the highest mean; None before any broadcast.

        Betting eliminates for good, even if reports of open claims then make the arm's mean the highest.
        """
        among = board.actives() if self.evidence == "betting" else range(board.arms)
        seen = [arm for arm in among if self._seen(board, arm)]
        if self.tolerate:
            return best_trimmed(board, seen, self.tolerate) if seen else None
        return board.best(seen) if seen else None

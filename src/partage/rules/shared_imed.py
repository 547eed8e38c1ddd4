"""Shared-IMED: the rule of least regret (docs/shared-imed.md has the argument)."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from partage.board import Board, Pull, Record
from partage.checks import count, number_from
from partage.compiled import shared
from partage.evidence import apart
from partage.rules.exploring import explore_or_commit
from partage.rules.rule import BuiltIn, Parameter
from partage.rules.seeing import seen_by
from partage.tape import Draws

_apart = lru_cache(maxsize=2**14)(apart)


@shared
def worth_knowing(clock: float, count: float) -> float:
    """Return the evidence up to which exploring an arm with this many broadcasts pays.

    With x = log(clock / count) this is x - 1/2 - log(max(1, x)) / 2: the optimal boundary between exploring and
    stopping has this shape (Chernoff and Ray 1965), and IMED's would be x.
    """
    x = math.log(max(1.0, float(clock)) / count)
    return x - 0.5 - 0.5 * math.log(max(1.0, x))


def _checked_lead(lead: object) -> float:
    return number_from("The lead", lead, low=1)


def _checked_clock(clock: object) -> float:
    return number_from("The factor of the clock", clock, low=1e-6)


def _checked_own(own: object) -> int:
    return count("The number of own rewards", own, at_least=0)


def highest_mean(board: Board, record: Record) -> int:
    """Return the active arm with the highest mean of a record, ties by the tie order; arms not in it come last."""
    counts, sums = record.counts, record.sums
    active = [arm for arm in board.tie_order if board.active[arm]]
    return max(active, key=lambda arm: sums[arm] / counts[arm] if counts[arm] else -math.inf)


@dataclass(frozen=True)
class SharedIMED(BuiltIn):
    """Explore an arm while the evidence against it is small compared with the pulls that the group has made.

    The leader is the broadcast arm with the highest mean. Nothing is eliminated: an arm that is closed now opens
    again when the group has pulled often enough. The rule does not need to know the horizon.

    Parameters
    ----------
    lead
        How far the leader's broadcasts may run ahead of the other arms': at least 1. Once the leader is the best
        arm, pulling it costs nothing, and each pull is evidence about all the others.
    own
        How many of its own rewards of each arm an agent also uses when it commits: 0 for none. It then commits to
        the arm with the highest mean of the broadcasts and these rewards. Where an arm has few sharers, 30 save a
        fifth of the regret. If nobody shares some arm, own rewards are used for such arms instead.
    clock
        The factor by which the clock is multiplied: at least 1e-6. Below 1, arms are explored less, as if the group
        had pulled less often. Where broadcasts have a price, that saves some of them.

    >>> from partage import BalancedGLR, Game, SharedIMED, Sharing, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.8, 0.7]), Sharing.round_robin(agents=3, arms=3), horizon=3000)
    >>> imed, glr = (play(game, rule, runs=200, settlement="none") for rule in (SharedIMED(), BalancedGLR()))
    >>> 2 * imed.overall_regret.mean < glr.overall_regret.mean
    True
    """

    lead: float = 4.0
    own: int = 0
    clock: float = 1.0

    name = "shared-imed"
    summary = "Least regret: what is worth exploring depends on how much the group has pulled. Recommended."
    parameters = (
        Parameter(
            name="lead",
            default=4.0,
            summary="how far the leader's broadcasts may run ahead of the other arms'",
            allowed="a finite number of at least 1",
            check=_checked_lead,
        ),
        Parameter(
            name="clock",
            default=1.0,
            summary="the factor by which the clock is multiplied; below 1, less is explored",
            allowed="a finite number of at least 1e-06",
            check=_checked_clock,
            quiet=True,
        ),
        Parameter(
            name="own",
            default=0,
            summary="how many of its own rewards of each arm an agent also uses when it commits",
            allowed="a whole number of at least 0",
            check=_checked_own,
            live=False,
        ),
    )
    live = True
    clocked = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "lead", _checked_lead(self.lead))
        object.__setattr__(self, "clock", _checked_clock(self.clock))
        object.__setattr__(self, "own", _checked_own(self.own))

    @property
    def private(self) -> bool:  # type: ignore[override]
        """Whether agents use their own rewards."""
        return self.own > 0

    @property
    def keeps(self) -> int:
        """How many of its own rewards of each arm an agent keeps."""
        return self.own

    @property
    def kernel(self) -> str:  # type: ignore[override]
        """The module of `partage.engine` that plays it."""
        return "shared_imed_own" if self.own else "shared_imed"

    def decide(
        self, board: Board, shares: Collection[int], own: Record | None = None, draws: Draws | None = None
    ) -> Pull:
        """Explore the least-broadcast open arm that the agent shares; commit if there is none."""
        pull = explore_or_commit(board, shares, own, self.open_arms(board))
        if pull.share or not self.own or own is None or not all(board.shared):
            return pull
        return Pull(highest_mean(board, seen_by(board, own)), share=False)

    def open_arms(self, board: Board, slack: float = 0.0) -> list[int]:
        """Return the arms that are worth exploring now.

        A claim counts as a broadcast that brings as much evidence as the others of its arm did.
        """
        standing = board.standing()
        if len(standing) < 2:
            return []
        seen = [arm for arm in range(board.arms) if board.counts[arm]]
        if not seen:
            return [arm for arm in standing if board.handed(arm) <= 1]
        leader = board.best(seen)
        counts, sums = board.record.counts, board.record.sums
        ahead = board.handed(leader)
        opened = []
        for arm in standing:
            handed = board.handed(arm)
            if arm == leader or (handed > max(1, ahead) and not board.stalled(leader)):
                continue
            if counts[arm]:
                evidence = _apart(counts[arm], sums[arm], counts[leader], sums[leader])
                if evidence * (handed / counts[arm]) > worth_knowing(self.clock * board.clock, handed) + slack:
                    continue
            opened.append(arm)
        most = max([1, *(board.handed(arm) for arm in seen if arm != leader)])
        if board.shared[leader] and ahead <= self.lead * most:
            opened.append(leader)
        return opened

"""Balanced-GLR: near the Lai-Robbins limit, for any rewards in [0, 1] (docs/balanced-glr.md has the argument)."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from partage.board import Board, Pull, Record
from partage.errors import InputError
from partage.evidence import apart, free_evidence, mixture_loss
from partage.rules.balanced_etc import explore_or_commit


def ruled_out_from(arms: int, horizon: int) -> float:
    """Return the evidence, less both losses, from which an arm is ruled out: log(((N - 1) T + 1) / 2).

    Then the best arm is ruled out at any time with probability at most 1/T.
    """
    return math.log(((arms - 1) * horizon + 1) / 2)


@dataclass(frozen=True)
class BalancedGLR:
    """Rule arms out by likelihood ratios against the leader, and explore those closest to it at the same pace.

    The leader is the broadcast arm with the highest mean. An arm is a contender unless the record tells its mean and
    the leader's apart; contenders are the active arms, and an arm may come back.

    Parameters
    ----------
    lead
        How far the leader's broadcasts may run ahead of the other contenders': at least 1. Pulls of the leader cost
        nothing once it is right, and they settle all the others' cases.

    >>> from partage import BalancedETC, BalancedGLR, Game, Sharing, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.8, 0.7]), Sharing.round_robin(agents=30, arms=3), horizon=10**6)
    >>> glr, etc = (play(game, rule, runs=20, settlement="none") for rule in (BalancedGLR(), BalancedETC()))
    >>> 8 * glr.overall_regret.mean < etc.overall_regret.mean
    True
    """

    lead: float = 3.0
    name: ClassVar[str] = "balanced-glr"
    private: ClassVar[bool] = False

    def __post_init__(self) -> None:
        lead = self.lead
        if isinstance(lead, bool) or not isinstance(lead, (int, float)) or not 1 <= lead < math.inf:
            raise InputError(f"The lead is {lead!r}; it must be a finite number of at least 1.")
        object.__setattr__(self, "lead", float(lead))

    def revise(self, board: Board) -> None:
        """Let those arms be active that the record does not tell from the leader, or that were never broadcast."""
        leader = self._leader(board)
        if leader is None:
            return
        bar = ruled_out_from(board.arms, board.horizon)
        for arm in range(board.arms):
            if board.public[arm]:
                seen = board.counts[arm] > 0 and arm != leader
                board.active[arm] = not seen or self._against(board, arm, leader) < bar

    def decide(self, board: Board, shares: Collection[int], own: Record | None = None) -> Pull:
        """Explore the least-broadcast open arm she shares; with none, or no contender but the leader, commit."""
        return explore_or_commit(board, shares, own, self.open_arms(board))

    def _leader(self, board: Board) -> int | None:
        """Return the broadcast arm with the highest mean; None before any broadcast."""
        seen = [arm for arm in range(board.arms) if board.counts[arm]]
        return board.best(seen) if seen else None

    def _evidence(self, board: Board, arm: int, leader: int) -> float:
        """Return Z: how strongly the record tells an arm's mean from the leader's."""
        counts, sums = board.record.counts, board.record.sums
        return float(apart(counts[arm], sums[arm], counts[leader], sums[leader]))

    def _against(self, board: Board, arm: int, leader: int) -> float:
        """Return Z less what the two mixtures lose: what Ville's inequality bounds."""
        counts, sums = board.record.counts, board.record.sums
        losses = [float(mixture_loss(counts[i], sums[i])) for i in (arm, leader)]
        return self._evidence(board, arm, leader) - losses[0] - losses[1]

    def open_arms(self, board: Board) -> list[int]:
        """Return the contenders that may be explored; none where the leader is alone.

        Reports on their way count as broadcasts, with as much evidence as the others of their arm brought.
        """
        contenders = board.standing()
        if len(contenders) < 2:
            return []
        leader = self._leader(board)
        if leader is None:
            return [arm for arm in contenders if board.handed(arm) <= 1]
        counts = board.counts
        others = [arm for arm in contenders if arm != leader]
        if not board.shared[leader]:  # it cannot keep ahead any more: the others keep level among themselves
            least = min(board.handed(arm) for arm in others)
            return [arm for arm in others if board.handed(arm) <= max(1, least)]
        evidence = {arm: self._evidence(board, arm, leader) for arm in others if counts[arm]}
        ahead = board.handed(leader)

        # No contender runs ahead of the one that gathers evidence most slowly, nor of the leader.
        slowest = min((evidence[arm] / counts[arm] for arm in evidence), default=math.inf)
        enough = max(float(free_evidence(ahead)), ahead * slowest / self.lead)
        opened = [
            arm
            for arm in others
            if board.handed(arm) <= max(1, ahead)
            and (not counts[arm] or evidence[arm] * (board.handed(arm) / counts[arm]) <= enough)
        ]
        # The leader runs ahead of all, but not too far. Should rounding close every arm (and not reports on their
        # way), it is open.
        stuck = not opened and not any(board.claims)
        if stuck or ahead <= self.lead * max([1, *(board.handed(arm) for arm in evidence)]):
            opened.append(leader)
        return opened

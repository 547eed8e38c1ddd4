"""Balanced-ETC: Algorithm 1 of the paper."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from partage.board import Board, Pull, Record, radius
from partage.rules.exploring import BALANCE, checked_balance, explore_or_commit, within_balance
from partage.rules.rule import ANY_RULE, BuiltIn, Parameter
from partage.rules.weighing import Weighed, by_intervals
from partage.tape import Draws


@dataclass(frozen=True)
class BalancedETC(BuiltIn):
    """Explore the agent's least-broadcast arm while broadcasts stay balanced; otherwise commit to the leader.

    Parameters
    ----------
    balance
        How much more often than the least-broadcast active arm an arm may have been broadcast and still be
        explored (the paper's B): at least 1, `math.inf` for no balancing.

    >>> from partage import BalancedETC, Game, Sharing, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=4, arms=2), horizon=10_000)
    >>> result = play(game, BalancedETC(balance=1), runs=10, seed=0)
    >>> result.arms[1].eliminated
    1.0
    """

    balance: float = 1.0

    name = "balanced-etc"
    summary = "The paper's rule: every active arm is broadcast about equally often."
    parameters: ClassVar[tuple[Parameter, ...]] = (BALANCE,)
    live = True
    kernel = "balanced_etc"
    eliminates = True
    by_intervals = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "balance", checked_balance(self.balance))

    @property
    def settlements(self) -> tuple[str, ...]:
        """The settlements that fit: the paper's needs a finite balance."""
        return ("paper", *ANY_RULE) if math.isfinite(self.balance) else ANY_RULE

    def revise(self, board: Board, slack: float = 0.0) -> None:
        """Eliminate every arm whose upper bound is at most the highest lower bound of all arms (Eq. 1)."""
        active, intervals = board.actives(), board.intervals()
        highest = max(lower for lower, _ in intervals)
        leaving = [arm for arm in active if intervals[arm][1] + slack <= highest]
        if leaving and len(leaving) == len(active):
            leaving.remove(board.best(active))
        for arm in leaving:
            board.active[arm] = False

    def weigh(self, board: Board) -> Weighed | None:
        """Return how many more broadcasts separate each arm's interval."""
        return by_intervals(board, [radius(board.horizon, count) for count in board.counts])

    def decide(
        self, board: Board, shares: Collection[int], own: Record | None = None, draws: Draws | None = None
    ) -> Pull:
        """Explore if the agent shares an open arm, otherwise commit (Algorithm 1, lines 6 to 12)."""
        return explore_or_commit(board, shares, own, self.open_arms(board))

    def open_arms(self, board: Board, slack: float = 0.0) -> list[int]:
        """Return the arms that may be explored; none if a single one is left."""
        return within_balance(board, self.balance)

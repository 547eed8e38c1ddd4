"""2-UCB, alone: the paper's baseline for an agent without a collaboration."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from partage.board import Board, Pull, Record, radius
from partage.rules.rule import BuiltIn
from partage.tape import Draws


def highest_index(board: Board, arms: Iterable[int], record: Record) -> int:
    """Return the arm with the highest mean plus radius by this record: unpulled arms first, ties by the tie order."""

    def index(arm: int) -> float:
        seen = record.counts[arm]
        return record.sums[arm] / seen + radius(board.horizon, seen) if seen else math.inf

    return min(arms, key=lambda arm: (-index(arm), board.rank[arm]))


@dataclass(frozen=True)
class TwoUCB(BuiltIn):
    """Each agent pulls the arm with the highest mean + sqrt(2 log T / n) of its own pulls, and shares nothing.

    >>> from partage import Game, Sharing, TwoUCB, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.5]), Sharing.nothing(agents=1, arms=2), horizon=1000)
    >>> play(game, TwoUCB(), runs=5, seed=0).broadcasts.mean
    0.0
    """

    name = "two-ucb"
    summary = "Each agent alone, by 2-UCB: the paper's baseline."
    private = True
    kernel = "two_ucb"

    def decide(self, board: Board, shares: Collection[int], own: Record, draws: Draws | None = None) -> Pull:
        """Pull the arm with the highest index; share nothing."""
        return Pull(highest_index(board, range(board.arms), own), share=False)

"""2-UCB, alone: what an agent would do without any collaboration (the paper's baseline)."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar

from partage.board import Board, Pull, Record, radius


def highest_index(board: Board, arms: Iterable[int], record: Record) -> int:
    """Return the arm with the highest mean plus radius by this record: unpulled arms first, ties by the tie order."""

    def index(arm: int) -> float:
        seen = record.counts[arm]
        return record.sums[arm] / seen + radius(board.horizon, seen) if seen else math.inf

    return min(arms, key=lambda arm: (-index(arm), board.rank[arm]))


@dataclass(frozen=True)
class TwoUCB:
    """Each agent pulls the arm with the highest mean + sqrt(2 log T / n) of her own pulls, and shares nothing.

    >>> from partage import Game, Sharing, TwoUCB, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.5]), Sharing.nothing(agents=1, arms=2), horizon=1000)
    >>> play(game, TwoUCB(), runs=5, seed=0).broadcasts.mean
    0.0
    """

    name: ClassVar[str] = "two-ucb"
    private: ClassVar[bool] = True

    def decide(self, board: Board, shares: Collection[int], own: Record) -> Pull:
        """Pull the arm with the highest index; share nothing."""
        return Pull(highest_index(board, range(board.arms), own), share=False)

    def revise(self, board: Board) -> None:
        """Nothing is ever ruled out."""

"""IMED, alone: indexed minimum empirical divergence (Honda and Takemura 2015)."""

import math
from collections.abc import Collection
from dataclasses import dataclass

from partage.board import Board, Pull, Record
from partage.compiled import shared
from partage.evidence import kl
from partage.rules.rule import BuiltIn
from partage.tape import Draws


@shared
def imed_index(count: float, total: float, best: float) -> float:
    """Return n kl(mean, best mean) + log n."""
    return count * kl(total / count, best) + math.log(count)


@dataclass(frozen=True)
class IMED(BuiltIn):
    """Each agent pulls the arm with the lowest n kl(mean, best mean) + log n of its own pulls, and shares nothing.

    An arm never pulled comes first. The divergence is Bernoulli's, which is valid for any rewards in [0, 1].

    >>> from partage import IMED, Game, Sharing, bernoulli, play_run
    >>> game = Game(bernoulli([0.9, 0.1]), Sharing.nothing(agents=1, arms=2), horizon=200)
    >>> tally = play_run(game, IMED())
    >>> bool(tally.commit[0, 0] > tally.commit[0, 1])
    True
    """

    name = "imed"
    summary = "Each agent alone, by IMED."
    private = True
    kernel = "imed"

    def decide(self, board: Board, shares: Collection[int], own: Record, draws: Draws | None = None) -> Pull:
        """Pull the arm with the lowest index, ties by the tie order; share nothing."""
        counts, sums = own.counts, own.sums
        for arm in board.tie_order:
            if counts[arm] == 0:
                return Pull(arm, share=False)
        best = max(sums[arm] / counts[arm] for arm in board.tie_order)
        chosen = min(board.tie_order, key=lambda arm: imed_index(counts[arm], sums[arm], best))  # the first of equals
        return Pull(chosen, share=False)

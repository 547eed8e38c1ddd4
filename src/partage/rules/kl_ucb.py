"""KL-UCB, alone (Garivier and Cappé 2011)."""

import math
from collections.abc import Collection
from dataclasses import dataclass

from partage.board import Board, Pull, Record
from partage.compiled import shared
from partage.evidence import kl
from partage.rules.rule import BuiltIn
from partage.tape import Draws

HALVINGS = 40  # of [mean, 1]: the bound is known to 10^-12


@shared
def kl_upper(mean: float, level: float) -> float:
    """Return the largest q, up to 10^-12, with kl(mean, q) <= level."""
    low, high = mean, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if kl(mean, middle) <= level:
            low = middle
        else:
            high = middle
    return low


@dataclass(frozen=True)
class KLUCB(BuiltIn):
    """Each agent pulls the arm with the highest q for which n kl(mean, q) <= log t, and shares nothing.

    t counts the agent's pulls so far. An arm never pulled comes first.

    >>> from partage import KLUCB, Game, Sharing, bernoulli, play_run
    >>> game = Game(bernoulli([0.9, 0.1]), Sharing.nothing(agents=1, arms=2), horizon=200)
    >>> tally = play_run(game, KLUCB())
    >>> bool(tally.commit[0, 0] > tally.commit[0, 1])
    True
    """

    name = "kl-ucb"
    summary = "Each agent alone, by KL-UCB."
    private = True
    kernel = "kl_ucb"

    def decide(self, board: Board, shares: Collection[int], own: Record, draws: Draws | None = None) -> Pull:
        """Pull the arm with the highest bound, ties by the tie order; share nothing."""
        counts, sums = own.counts, own.sums
        for arm in board.tie_order:
            if counts[arm] == 0:
                return Pull(arm, share=False)
        level = math.log(sum(counts))
        best, highest = -1, -1.0
        for arm in board.tie_order:
            mean = sums[arm] / counts[arm]
            # One divergence shows whether the arm's bound is higher; the bound itself is computed only then.
            if best < 0 or (highest < 1.0 and (mean > highest or counts[arm] * kl(mean, highest) < level)):
                bound = kl_upper(mean, level / counts[arm])
                if bound > highest:
                    best, highest = arm, bound
        return Pull(best, share=False)

"""Thompson sampling, alone (Thompson 1933; for rewards in [0, 1] as in Agrawal and Goyal 2012)."""

from collections.abc import Collection
from dataclasses import dataclass

from partage.board import Board, Pull, Record
from partage.rules.rule import BuiltIn
from partage.tape import Draws


@dataclass(frozen=True)
class Thompson(BuiltIn):
    """Each agent draws a mean for every arm from its posterior and pulls the arm with the highest draw.

    The posterior of an arm with n pulls and rewards that sum to S is Beta(1 + S, 1 + n - S). For rewards other than 0
    and 1 this counts a reward as a fraction of a success.

    >>> from partage import Game, Sharing, Thompson, bernoulli, play_run
    >>> game = Game(bernoulli([0.9, 0.1]), Sharing.nothing(agents=1, arms=2), horizon=200)
    >>> tally = play_run(game, Thompson())
    >>> bool(tally.commit[0, 0] > tally.commit[0, 1])
    True
    """

    name = "thompson"
    summary = "Each agent alone, by Thompson sampling."
    private = True
    kernel = "thompson"

    def decide(self, board: Board, shares: Collection[int], own: Record, draws: Draws) -> Pull:
        """Pull the arm with the highest draw; share nothing."""
        best, highest = -1, -1.0
        for arm in board.tie_order:  # in an order that does not depend on how arms are numbered
            drawn = draws.beta(1.0 + own.sums[arm], 1.0 + own.counts[arm] - own.sums[arm])
            if drawn > highest:
                best, highest = arm, drawn
        return Pull(best, share=False)

"""Thompson sampling, alone or on what is shared (Thompson 1933; rewards in [0, 1] as in Agrawal and Goyal 2012)."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from partage.board import Board, Pull, Record
from partage.rules.rule import BuiltIn, Parameter
from partage.rules.seeing import SEES, checked_sees, pull_of, seen_by
from partage.tape import Draws


@dataclass(frozen=True)
class Thompson(BuiltIn):
    """Each agent draws a mean for every arm from its posterior and pulls the arm with the highest draw.

    The posterior of an arm with n pulls and rewards that sum to S is Beta(1 + S, 1 + n - S). For rewards other than 0
    and 1 this counts a reward as a fraction of a success.

    Parameters
    ----------
    sees
        Which pulls count: "own" (the agent's own, and nothing is broadcast), "shared" (the broadcasts alone) or
        "both". With "shared" and "both" the agent broadcasts every pull of an arm that it shares. With "shared", an
        arm that nobody broadcasts keeps its uniform prior, however often the agent pulls it.

    >>> from partage import Game, Sharing, Thompson, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.1]), Sharing.round_robin(agents=8, arms=2), horizon=200)
    >>> alone, both = (play(game, Thompson(sees), runs=20, seed=0) for sees in ("own", "both"))
    >>> both.overall_regret.mean < alone.overall_regret.mean
    True
    """

    sees: str = "own"

    name = "thompson"
    summary = "Each agent by Thompson sampling, alone or on what is shared."
    parameters: ClassVar[tuple[Parameter, ...]] = (SEES,)
    private = True
    kernel = "thompson"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sees", checked_sees(self.sees))

    def decide(self, board: Board, shares: Collection[int], own: Record, draws: Draws) -> Pull:
        """Pull the arm with the highest draw."""
        seen = seen_by(board, own, self.sees)
        best, highest = -1, -1.0
        for arm in board.tie_order:  # in an order that does not depend on how arms are numbered
            drawn = draws.beta(1.0 + seen.sums[arm], 1.0 + seen.counts[arm] - seen.sums[arm])
            if drawn > highest:
                best, highest = arm, drawn
        return pull_of(best, shares, self.sees)

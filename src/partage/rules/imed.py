"""IMED: indexed minimum empirical divergence (Honda and Takemura 2015), alone or on what is shared."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from partage.board import Board, Pull, Record
from partage.compiled import shared
from partage.evidence import kl
from partage.rules.rule import BuiltIn, Parameter
from partage.rules.seeing import SEES, checked_sees, first_unseen, pull_of, seen_by
from partage.tape import Draws


@shared
def imed_index(count: float, total: float, best: float) -> float:
    """Return n kl(mean, best mean) + log n."""
    return count * kl(total / count, best) + math.log(count)


@shared
def lowest_index(counts: Sequence[int], sums: Sequence[float], tie_order: Sequence[int]) -> int:
    """Return the arm with the lowest index among those seen, the first of equals; the first arm if none was seen."""
    best = -math.inf
    for arm in tie_order:
        if counts[arm] > 0:
            best = max(best, sums[arm] / counts[arm])
    chosen, lowest = tie_order[0], math.inf
    for arm in tie_order:
        if counts[arm] > 0:
            index = imed_index(counts[arm], sums[arm], best)
            if index < lowest:
                chosen, lowest = arm, index
    return chosen


@dataclass(frozen=True)
class IMED(BuiltIn):
    """Each agent pulls the arm with the lowest n kl(mean, best mean) + log n.

    The divergence is Bernoulli's, which is valid for any rewards in [0, 1]. Arms that the agent has not seen come
    first: those that it shares, and those that it has not pulled itself. Other unseen arms are left out until
    somebody broadcasts them, and an agent that has seen no arm pulls the first of the tie order.

    Parameters
    ----------
    sees
        Which pulls count: "own" (the agent's own, and nothing is broadcast), "shared" (the broadcasts alone) or
        "both". With "shared" and "both" the agent broadcasts every pull of an arm that it shares.

    >>> from partage import IMED, Game, Sharing, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.1]), Sharing.round_robin(agents=8, arms=2), horizon=200)
    >>> alone, both = (play(game, IMED(sees), runs=20, seed=0) for sees in ("own", "both"))
    >>> both.overall_regret.mean < alone.overall_regret.mean
    True
    """

    sees: str = "own"

    name = "imed"
    summary = "Each agent by IMED, alone or on what is shared."
    parameters: ClassVar[tuple[Parameter, ...]] = (SEES,)
    private = True
    kernel = "imed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sees", checked_sees(self.sees))

    def decide(self, board: Board, shares: Collection[int], own: Record, draws: Draws | None = None) -> Pull:
        """Pull an unseen arm, or the one with the lowest index, ties by the tie order."""
        seen = seen_by(board, own, self.sees)
        arm = first_unseen(board, shares, own, seen)
        if arm is None:
            arm = lowest_index(seen.counts, seen.sums, board.tie_order)
        return pull_of(arm, shares, self.sees)

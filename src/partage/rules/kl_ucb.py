"""KL-UCB (Garivier and Cappé 2011), alone or on what is shared."""

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

HALVINGS = 40  # of [mean, 1]: the bound is known to 10^-12
MARGIN = 1e-6  # relative, far above rounding errors and that 10^-12


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


@shared
def highest_bound(counts: Sequence[int], sums: Sequence[float], tie_order: Sequence[int]) -> int:
    """Return the arm with the highest bound among those seen, the first of equals; the first arm if none was seen.

    A bound takes 40 divergences, and one shows whether it can be as high as another. So the bound of the arm that was
    seen most often, which is rarely far from the highest, comes first, and then only bounds that may exceed it.
    """
    seen, most = 0, tie_order[0]
    for arm in tie_order:
        seen += counts[arm]
        if counts[arm] > counts[most]:
            most = arm
    if seen == 0:
        return most
    level = math.log(seen)
    enough = level * (1.0 + MARGIN)
    first = kl_upper(sums[most] / counts[most], level / counts[most])
    best, highest = -1, first
    for arm in tie_order:
        if counts[arm] > 0:
            mean = sums[arm] / counts[arm]
            if mean > highest or counts[arm] * kl(mean, highest) <= enough:
                bound = first if arm == most else kl_upper(mean, level / counts[arm])
                if bound > highest or (bound == highest and best < 0):
                    best, highest = arm, bound
    return best


@dataclass(frozen=True)
class KLUCB(BuiltIn):
    """Each agent pulls the arm with the highest q for which n kl(mean, q) <= log t.

    n counts the pulls of the arm that the agent has seen, t those of all arms. Arms that the agent has not seen come
    first: those that it shares, and those that it has not pulled itself. Other unseen arms are left out until
    somebody broadcasts them, and an agent that has seen no arm pulls the first of the tie order.

    Parameters
    ----------
    sees
        Which pulls count: "own" (the agent's own, and nothing is broadcast), "shared" (the broadcasts alone) or
        "both". With "shared" and "both" the agent broadcasts every pull of an arm that it shares.

    >>> from partage import KLUCB, Game, Sharing, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.1]), Sharing.round_robin(agents=8, arms=2), horizon=200)
    >>> alone, both = (play(game, KLUCB(sees), runs=20, seed=0) for sees in ("own", "both"))
    >>> both.overall_regret.mean < alone.overall_regret.mean
    True
    """

    sees: str = "own"

    name = "kl-ucb"
    summary = "Each agent by KL-UCB, alone or on what is shared."
    parameters: ClassVar[tuple[Parameter, ...]] = (SEES,)
    private = True
    kernel = "kl_ucb"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sees", checked_sees(self.sees))

    def decide(self, board: Board, shares: Collection[int], own: Record, draws: Draws | None = None) -> Pull:
        """Pull an unseen arm, or the one with the highest bound, ties by the tie order."""
        seen = seen_by(board, own, self.sees)
        arm = first_unseen(board, shares, own, seen)
        if arm is None:
            arm = highest_bound(seen.counts, seen.sums, board.tie_order)
        return pull_of(arm, shares, self.sees)

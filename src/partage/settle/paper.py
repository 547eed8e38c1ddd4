"""The paper's settlement: compensation by Eq. 5, charge by Eq. 6.

Let G be the arms eliminated at the end, c = (1 + sqrt(B))^2 and k = (sqrt(2) - sqrt(3/2))^2. An agent receives
sqrt(8 c log T / N_i) for each of its pulls of an arm i in G, explore or commit. Every agent pays the same charge:
sqrt(k^2 log T / (128 c N_i)) for each broadcast of an arm i in G.
"""

import math
from collections.abc import MutableSequence, Sequence

from partage.compiled import shared

K = (math.sqrt(2) - math.sqrt(1.5)) ** 2


def balance_factor(balance: float) -> float:
    """Return c = (1 + sqrt(B))^2, a factor in every bound of the paper."""
    return (1 + math.sqrt(balance)) ** 2


def break_even(balance: float = 1.0) -> float:
    """Return the number of agents at which the profit is 0 if only explore pulls are compensated: 32 c / k.

    It is the same for every game.

    >>> round(break_even())
    3566
    """
    return 32 * balance_factor(balance) / K


@shared
def paper_rates(
    counts: Sequence[int],
    active: Sequence[bool],
    public: Sequence[bool],
    log_horizon: float,
    factor: float,
    rates: MutableSequence[float],
) -> None:
    """Write the compensation for one pull of each arm into `rates` (Eq. 5): 0 unless the arm is eliminated."""
    for arm in range(len(counts)):
        eliminated = public[arm] and not active[arm] and counts[arm] > 0
        rates[arm] = math.sqrt(8.0 * factor * log_horizon / counts[arm]) if eliminated else 0.0


@shared
def paper_charge(
    counts: Sequence[int], active: Sequence[bool], public: Sequence[bool], log_horizon: float, factor: float
) -> float:
    """Return the charge that every agent pays (Eq. 6)."""
    total = 0.0
    for arm in range(len(counts)):
        if public[arm] and not active[arm] and counts[arm] > 0:
            total += counts[arm] * math.sqrt(K * K * log_horizon / (128.0 * factor * counts[arm]))
    return total

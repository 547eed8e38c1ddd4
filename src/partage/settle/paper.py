"""The paper's settlement: compensation by Eq. 5, charge by Eq. 6.

With G the arms eliminated at the end, c = (1 + sqrt(B))^2 and k = (sqrt(2) - sqrt(3/2))^2, an agent gets
sqrt(8 c log T / N_i) for each of her pulls of an arm i in G, explore or commit, and pays, as everyone does,
sqrt(k^2 log T / (128 c N_i)) for each broadcast of an arm in G.
"""

import math

from partage.compiled import compiled

K = (math.sqrt(2) - math.sqrt(1.5)) ** 2


def balance_factor(balance: float) -> float:
    """Return c = (1 + sqrt(B))^2, which every bound of the paper carries."""
    return (1 + math.sqrt(balance)) ** 2


def break_even(balance: float = 1.0) -> float:
    """Return how many agents make the profit 0 if only explore pulls are compensated: 32 c / k, on any game.

    >>> round(break_even())
    3566
    """
    return 32 * balance_factor(balance) / K


@compiled
def paper_rates(counts, active, public, log_horizon, factor, out):
    """Write what one pull of each arm is compensated with into `out` (Eq. 5): 0 unless the arm was eliminated."""
    for arm in range(len(counts)):
        eliminated = public[arm] and not active[arm]
        out[arm] = math.sqrt(8.0 * factor * log_horizon / counts[arm]) if eliminated else 0.0


@compiled
def paper_charge(counts, active, public, log_horizon, factor):
    """Return what every agent pays (Eq. 6)."""
    total = 0.0
    for arm in range(len(counts)):
        if public[arm] and not active[arm]:
            total += counts[arm] * math.sqrt(K * K * log_horizon / (128.0 * factor * counts[arm]))
    return total

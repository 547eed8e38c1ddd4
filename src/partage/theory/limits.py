"""The least possible regret: the limit of Lai and Robbins."""

import math
from collections.abc import Sequence

from partage.evidence import kl


def lai_robbins(means: Sequence[float], horizon: int) -> float:
    """Return the overall regret below which no consistent rule stays in the long run, no matter how much is shared.

    It is the sum over sub-optimal arms of gap * log T / kl(mean, best mean), with the Bernoulli divergence: the limit
    for arms that pay 0 or 1. A reward of another kind of arm may carry more or less information.

    >>> round(lai_robbins([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0], 10**6))
    109
    """
    best = max(means)
    return math.log(horizon) * sum((best - mean) / kl(mean, best) for mean in means if mean < best)

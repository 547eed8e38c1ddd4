"""The ends of what a record allows: of a mean, and of the gap between two means.

For an arm with n broadcasts let `loss` be how far a Beta(1/2, 1/2) mixture of likelihoods falls short of the highest
one, at most 0.5 log n + log 2. Except with probability d, the true mean x of an arm satisfies
n kl(mean, x) <= log(1 / d) + loss at all times at once, and the true means x, y of a pair satisfy

    n kl(mean, x) + n' kl(mean', y) <= log(1 / d) + loss + loss'

All functions here are shared between plain Python and kernels.
"""

import math

from partage.compiled import shared
from partage.evidence import kl


@shared
def _tilted(mean: float, tilt: float) -> float:
    """Return the q with (q - mean) / (q (1 - q)) = tilt: where the divergence from `mean` has this slope."""
    if abs(tilt) < 1e-12:
        return mean
    rest = 1.0 - tilt
    root = math.sqrt(rest * rest + 4.0 * tilt * mean)
    if tilt < 1.0:
        # The same root in a form that does not cancel. It is 0 only if the mean is, even if it underflows.
        return min(1.0, max(min(mean, 1e-300), 2.0 * mean / (rest + root)))
    return min(1.0, max(0.0, (tilt - 1.0 + root) / (2.0 * tilt)))


@shared
def _spent(count: float, mean: float, other_count: float, other_mean: float, slope: float) -> float:
    """Return n kl(mean, x) + n' kl(mean', y) where both divergences have this slope, in opposite directions."""
    x, y = _tilted(mean, slope / count), _tilted(other_mean, -slope / other_count)
    return count * kl(mean, x) + other_count * kl(other_mean, y)


@shared
def gap_end(count: float, mean: float, other_count: float, other_mean: float, level: float, side: float) -> float:
    """Return the largest (side = 1) or smallest (side = -1) x - y with n kl(mean, x) + n' kl(mean', y) <= level.

    At both ends the two divergences have the same slope, which is found by bisection.
    """
    low, high = 0.0, 1.0
    while high < 1e15 and _spent(count, mean, other_count, other_mean, side * high) <= level:
        high *= 2.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        if middle == low or middle == high:
            break
        if _spent(count, mean, other_count, other_mean, side * middle) <= level:
            low = middle
        else:
            high = middle
    return _tilted(mean, side * high / count) - _tilted(other_mean, -side * high / other_count)


@shared
def mean_end(count: float, mean: float, level: float, side: float) -> float:
    """Return the largest (side = 1) or smallest (side = -1) x with n kl(mean, x) <= level, rounded outwards."""
    inside, outside = mean, 0.5 + 0.5 * side
    if count * kl(mean, outside) <= level:
        return outside
    for _ in range(60):
        middle = 0.5 * (inside + outside)
        if count * kl(mean, middle) <= level:
            inside = middle
        else:
            outside = middle
    return outside

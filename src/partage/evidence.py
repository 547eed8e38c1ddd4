"""Evidence: what a record of rewards in [0, 1] says about means, valid at all times at once.

For an arm of mean mu, the product of (theta / mu)^X ((1 - theta) / (1 - mu))^(1 - X) over its rewards X is a
non-negative supermartingale for every theta: each factor is convex in X, and its expectation is 1 if X is 0 or 1.
Mixing theta over Beta(1/2, 1/2) keeps that property, and so does the product over arms, whichever arm is pulled next.
The mixture falls short of the highest likelihood by `mixture_loss`, at most 0.5 log n + log 2.

These functions are shared: plain Python and kernels compute the same bits (see `partage.compiled`).
"""

import math

from partage.compiled import shared

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_SHIFTED = 15.0  # from here on, Stirling's series is exact to the last digit
_SERIES = 20  # from here on, two terms of the series for the difference do


@shared
def kl(p: float, q: float) -> float:
    """Return the Bernoulli divergence from p to q, with 0 log 0 = 0."""
    total = 0.0
    if p > 0.0:
        total += p * math.log(p / q) if q > 0.0 else math.inf
    if p < 1.0:
        total += (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if q < 1.0 else math.inf
    return max(0.0, total)


@shared
def log_gamma(x: float) -> float:
    """Return log Gamma(x) for x > 0, by Stirling's series above 15 and by Gamma(x + 1) = x Gamma(x) below."""
    product = 1.0
    while x < _SHIFTED:
        product *= x
        x += 1.0
    z = 1.0 / x
    y = z * z
    series = z * (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0))))
    return (x - 0.5) * math.log(x) - x + _HALF_LOG_TWO_PI + series - math.log(product)


@shared
def _half_below(x: float) -> float:
    """Return `_half` for x < 20."""
    power = x * math.log(x) if x > 0.0 else 0.0
    return log_gamma(x + 0.5) - (power - x + _HALF_LOG_TWO_PI)


@shared
def _whole_below(n: float) -> float:
    """Return `_whole` for n < 20."""
    return log_gamma(n + 1.0) - (n * math.log(n) - n + 0.5 * math.log(2.0 * math.pi * n))


# Most rewards are 0 or 1, so sums are whole: a table saves the logarithms.
_HALVES = tuple(_half_below(float(k)) for k in range(_SERIES))
_WHOLES = (0.0, *(_whole_below(float(n)) for n in range(1, _SERIES)))


@shared
def _half(x: float) -> float:
    """Return log Gamma(x + 1/2) - (x log x - x + log(2 pi) / 2): from -log(2) / 2 at 0 up to 0."""
    if x >= _SERIES:
        return -1.0 / (24.0 * x) + 7.0 / (2880.0 * (x * x * x))  # where the difference itself would cancel
    k = int(x)
    return _HALVES[k] if k == x else _half_below(x)


@shared
def mixture_loss(count: int, total: float) -> float:
    """Return log(highest likelihood / Beta(1/2, 1/2) mixture) of a record, at most 0.5 log n + log 2.

    Bernoulli likelihoods mu^S (1 - mu)^(n - S); the sum S of rewards need not be whole.
    """
    if count == 0:
        return 0.0
    n = float(count)
    whole = _WHOLES[count] if count < _SERIES else 1.0 / (12.0 * n) - 1.0 / (360.0 * (n * n * n))
    return 0.5 * math.log(0.5 * math.pi * n) - _half(total) - _half(n - total) + whole


@shared
def apart(count: float, total: float, other_count: float, other_total: float) -> float:
    """Return n kl(mean, q) + n' kl(mean', q), q the pooled mean: how strongly two records separate two means."""
    pooled = (total + other_total) / (count + other_count)
    if pooled <= 0.0 or pooled >= 1.0:  # both means equal it, up to rounding
        return 0.0
    return count * kl(total / count, pooled) + other_count * kl(other_total / other_count, pooled)


@shared
def free_evidence(count: float) -> float:
    """Return the evidence that Balanced-GLR gathers about any contender at once: 2 + log N_l."""
    return 2.0 + math.log(max(1.0, float(count)))

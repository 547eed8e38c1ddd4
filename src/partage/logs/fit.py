"""Tests on a log: whether one mean per arm fits all agents, and whether arms were logged uniformly.

Both are chi-squared tests of counts and sums, for a log that is complete. Where results still come in,
`partage.agreement` has tests that are valid at all times.
"""

import math
from typing import NamedTuple

import numpy as np

from partage.logs.reading import Log

ALPHA = 0.01
_TINY, _MOST_TERMS = 1e-15, 100_000


class Fit(NamedTuple):
    """A chi-squared test: the statistic, its degrees of freedom and the p-value."""

    statistic: float
    freedom: int
    pvalue: float

    @property
    def fits(self) -> bool:
        """Whether the hypothesis is not rejected, at the level `ALPHA`."""
        return self.pvalue >= ALPHA

    def __str__(self) -> str:
        p = f"p = {self.pvalue:.2g}" if self.pvalue >= 1e-4 else "p < 0.0001"
        degrees = "degree" if self.freedom == 1 else "degrees"
        return f"chi-squared {self.statistic:,.1f} on {self.freedom:,} {degrees} of freedom, {p}"


def one_mean(log: Log) -> Fit:
    """Test whether all agents have one mean of each arm.

    For each arm, sum over agents n (mean - pooled mean)^2 / variance, with the variance of all rewards of the arm.
    For rewards of 0 and 1 this is Pearson's test of homogeneity. Arms that one agent has, or that always pay the
    same, say nothing.
    """
    counts, sums, squares = log.counts, log.sums, log.squares
    statistic, freedom = 0.0, 0
    for n, s, q in zip(counts.T, sums.T, squares.T, strict=True):
        several, total = n > 0, int(n.sum())
        mean = s.sum() / total
        variance = q.sum() / total - mean * mean
        if several.sum() < 2 or variance <= _TINY:
            continue
        n, s = n[several], s[several]
        statistic += float(np.sum((s - n * mean) ** 2 / n)) / variance
        freedom += len(n) - 1
    return Fit(statistic, freedom, chi_squared_above(statistic, freedom))


def uniform_logging(log: Log) -> Fit:
    """Test whether each agent pulled all arms equally often, as a replay needs.

    That arms were drawn at random, whatever the rewards would be, no log can show.
    """
    counts = log.counts.astype(np.float64)
    expected = counts.sum(axis=1, keepdims=True) / counts.shape[1]
    statistic = float(np.sum((counts - expected) ** 2 / expected))
    freedom = counts.shape[0] * (counts.shape[1] - 1)
    return Fit(statistic, freedom, chi_squared_above(statistic, freedom))


def chi_squared_above(statistic: float, freedom: int) -> float:
    """Return the probability that a chi-squared number is above `statistic`; 1 without degrees of freedom.

    It is the regularised incomplete gamma function Q(freedom / 2, statistic / 2): by its power series below the mean,
    and by a continued fraction (Lentz) above.

    >>> round(chi_squared_above(3.841459, 1), 6), round(chi_squared_above(100, 100), 4)
    (0.05, 0.4812)
    """
    a, x = 0.5 * freedom, 0.5 * statistic
    if freedom <= 0 or x <= 0:
        return 1.0
    scale = math.exp(-x + a * math.log(x) - math.lgamma(a))
    if x < a + 1.0:
        term = total = 1.0 / a
        for k in range(1, _MOST_TERMS):
            term *= x / (a + k)
            total += term
            if term < total * _TINY:
                break
        return max(0.0, 1.0 - total * scale)
    b = x + 1.0 - a
    c, d = 1e300, 1.0 / b
    fraction = d
    for k in range(1, _MOST_TERMS):
        numerator = -k * (k - a)
        b += 2.0
        d = 1.0 / (numerator * d + b)
        c = b + numerator / c
        fraction *= c * d
        if abs(c * d - 1.0) < _TINY:
            break
    return min(1.0, scale * fraction)

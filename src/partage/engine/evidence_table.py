"""Evidence from tables, for Bernoulli arms: the same numbers as `partage.evidence`, to within `margin`.

Counts and sums of 0 and 1 are whole, so evidence is a sum of x log x at whole x: for two records,

    f(S) + f(n - S) - f(n) + f(S') + f(n' - S') - f(n') - f(S + S') - f(n + n' - S - S') + f(n + n')

with f(x) = x log x. Three look-ups are about the arm, three about the leader, and three about both. A kernel
decides by these numbers only if they are further than the margin from the threshold, and otherwise computes what the
rule does.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.compiled import inlined, inner, uncounted
from partage.evidence import apart, mixture_loss

SIZE = np.int64(2**16)  # counts from here on take logarithms


class Tables(NamedTuple):
    """What evidence is looked up in, by whole numbers.

    Attributes
    ----------
    power, logs
        x log x and log x.
    losses, halves
        The parts of the mixture loss: `losses[n] - halves[S] - halves[n - S]`.
    net_parts, net_wholes
        What `net_of` adds and subtracts: `power + halves` and `power + losses`.
    """

    power: NDArray[np.float64]
    logs: NDArray[np.float64]
    losses: NDArray[np.float64]
    halves: NDArray[np.float64]
    net_parts: NDArray[np.float64]
    net_wholes: NDArray[np.float64]


@cache
def tables() -> Tables:
    """Return the tables. They are made once and never written to."""
    x = np.arange(SIZE, dtype=float)
    logs = np.log(np.maximum(x, 1.0))
    x[0] = 1.0  # only the first terms of the two series below would divide by it
    halves = -1.0 / (24.0 * x) + 7.0 / (2880.0 * x**3)
    losses = 0.5 * math.log(0.5 * math.pi) + 0.5 * logs + 1.0 / (12.0 * x) - 1.0 / (360.0 * x**3)
    x[0] = 0.0
    for small in range(32):  # mixture_loss(2k, k) and mixture_loss(k, 0) give what the series do not
        halves[small] = _half(small)
    for small in range(1, 32):
        losses[small] = mixture_loss(small, 0.0) + halves[0] + halves[small]
    power = x * logs
    return Tables(power, logs, losses, halves, power + halves, power + losses)


def _half(x: int) -> float:
    """Return log Gamma(x + 1/2) - (x log x - x + log(2 pi) / 2)."""
    power = x * math.log(x) if x else 0.0
    return math.lgamma(x + 0.5) - (power - x + 0.5 * math.log(2.0 * math.pi))


@inlined
def margin(count):
    """Return how far tables, and rounding, may be off the evidence of two records with so many rewards together."""
    return 1e-8 if count < SIZE else 1e-7 + 1e-14 * count


@inlined
def own_terms(count, total, power):
    """Return the terms of the evidence that are about one record."""
    return power[total] + power[count - total] - power[count] if count < SIZE else 0.0


@inlined
def net_of(count, total, tables):
    """Return the terms of n kl(mean, q) that do not depend on q, less the mixture loss."""
    if count < SIZE:
        return tables.net_parts[total] + tables.net_parts[count - total] - tables.net_wholes[count]
    return own_part(np.float64(count), np.float64(total)) - _mixture_loss(count, total)


@uncounted
def own_part(count, total):
    """Return the terms of n kl(mean, q) that do not depend on q."""
    part = 0.0
    if total > 0.0:
        part += total * math.log(total / count)
    if total < count:
        part += (count - total) * math.log((count - total) / count)
    return part


@inlined
def evidence_between(count, total, own, other_count, other_total, other_own, power):
    """Return the evidence of two records, given their own terms."""
    both = count + other_count
    if both >= SIZE:
        return _apart(count, total, other_count, other_total)
    paid = total + other_total
    return max(0.0, own + other_own - (power[paid] + power[both - paid] - power[both]))


@inlined
def loss_of(count, total, losses, halves):
    """Return the mixture loss of a record."""
    if count >= SIZE:
        return _mixture_loss(count, total)
    return losses[count] - halves[total] - halves[count - total]


@inner
def _apart(count, total, other_count, other_total):
    return apart(count, np.float64(total), other_count, np.float64(other_total))


@inner
def _mixture_loss(count, total):
    return mixture_loss(count, np.float64(total))

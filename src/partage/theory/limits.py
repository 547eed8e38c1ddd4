"""The asymptotic limit of Lai and Robbins on regret, for any rewards in [0, 1] (docs/limits.md)."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.arms import Arm, Bernoulli, Beta, Constant, Discrete, Empirical, Mixture, TruncatedNormal, Uniform

HALVINGS = 60  # of [0, 1], in which the maximum is
NEGLIGIBLE = 45.0  # below e^-45 of its height, a density counts as 0
WIDEST, FEWEST, MOST = 0.05, 400, 10**6  # step of the trapezoidal rule at most; number of steps


class Law(NamedTuple):
    """A distribution on [0, 1] as points with weights: `short` is how much each point falls short of 1."""

    short: NDArray[np.float64]
    weights: NDArray[np.float64]


def lai_robbins(arms: Sequence[Arm], pulls: int) -> float:
    """Return the regret that no consistent rule stays below in the long run, however much is shared.

    It is the sum over sub-optimal arms of gap * log(pulls) / K_inf(arm, best mean). M agents with T pulls each make
    M * T pulls. The limit is asymptotic: a rule may lose less at a finite horizon.

    >>> from partage.arms import bernoulli
    >>> round(lai_robbins(bernoulli([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]), 10**8))
    146
    """
    best = max(arm.mean for arm in arms)
    return math.log(pulls) * sum((best - arm.mean) / k_inf(arm, best) for arm in arms if arm.mean < best)


def k_inf(arm: Arm, mean: float) -> float:
    """Return K_inf: the least divergence from the arm to a distribution on [0, 1] with at least this mean.

    K_inf(F, m) = max E log(1 - lambda (X - m)) over lambda in [0, 1 / (1 - m)]. For an arm that pays 0 or 1 it is the
    Bernoulli divergence, and for any other arm at least that of its mean.

    >>> round(k_inf(Bernoulli(0.5), 0.9), 4), round(k_inf(Beta(2, 2), 0.9), 4)
    (0.5108, 1.4693)
    """
    if arm.mean >= mean:
        return 0.0
    if mean >= 1.0:
        return math.inf
    law = discretised(arm)
    # With lambda = (1 - c) / (1 - m), the logarithm is that of c + (1 - c) r, so its expectation is concave in c.
    ratio = law.short / (1.0 - mean)
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        c = 0.5 * (low + high)
        if np.dot(law.weights, (1.0 - ratio) / (c + (1.0 - c) * ratio)) > 0.0:
            low = c
        else:
            high = c
    return float(np.dot(law.weights, np.log(high + (1.0 - high) * ratio)))


def discretised(arm: Arm) -> Law:
    """Return an arm's distribution as points with weights: exactly, or by a quadrature of its density."""
    match arm:
        case Bernoulli():
            return _points([1.0, 0.0], [arm.mean, 1.0 - arm.mean])
        case Constant():
            return _points([arm.value], [1.0])
        case Discrete():
            return _points(arm.values, arm.weights)
        case Empirical():
            return _points(arm.values, arm.counts or [1.0] * len(arm.values))
        case Mixture():
            laws = [discretised(part) for part in arm.parts]
            weights = [law.weights * weight for law, weight in zip(laws, arm.weights, strict=True)]
            return Law(np.concatenate([law.short for law in laws]), np.concatenate(weights) / sum(arm.weights))
        case Beta():
            return _beta(arm.a, arm.b)
        case Uniform():
            return _stretched(_beta(1.0, 1.0), arm.low, arm.high)
        case TruncatedNormal():
            return _truncated_normal(arm)


def _points(values: Sequence[float], weights: Sequence[float]) -> Law:
    """Return a distribution on finitely many values, without those that never occur."""
    possible = [(1.0 - value, weight) for value, weight in zip(values, weights, strict=True) if weight > 0.0]
    short, kept = np.array(possible).T
    return Law(short, kept / kept.sum())


def _beta(a: float, b: float) -> Law:
    """Return a Beta(a, b) distribution, by the trapezoidal rule in u = log(x / (1 - x)).

    The density of u is smooth with exponential tails, so the rule converges fast, also where the density of x has a
    pole at 0 or 1.
    """
    top = math.log(a) - math.log(b)
    left, right = (_reach(a, b, top, side) for side in (-1.0, 1.0))
    steps = min(max(FEWEST, math.ceil((left + right) / WIDEST)), MOST)
    u = np.linspace(top - left, top + right, steps + 1)
    weights = np.exp(_log_density(a, b, u) - _log_density(a, b, top))
    return Law(np.exp(-np.logaddexp(0.0, u)), weights / weights.sum())


def _log_density(a: float, b: float, u: Any) -> Any:
    """Return the logarithm of the density of u = log(x / (1 - x)), up to a constant, for a number or an array."""
    return -a * np.logaddexp(0.0, -u) - b * np.logaddexp(0.0, u)


def _reach(a: float, b: float, top: float, side: float) -> float:
    """Return how far from its top, on this side, the density is negligible."""
    height = _log_density(a, b, top)
    near, far = 0.0, 1.0
    while height - _log_density(a, b, top + side * far) < NEGLIGIBLE:
        near, far = far, 2.0 * far
    for _ in range(HALVINGS):
        middle = 0.5 * (near + far)
        if height - _log_density(a, b, top + side * middle) < NEGLIGIBLE:
            near = middle
        else:
            far = middle
    return far


def _stretched(law: Law, low: float, high: float) -> Law:
    """Return the distribution of low + (high - low) X."""
    return Law((1.0 - high) + (high - low) * law.short, law.weights)


def _truncated_normal(arm: TruncatedNormal) -> Law:
    """Return a truncated normal distribution, from uniform points where its density is not negligible."""
    mode = min(max(arm.location, 0.0), 1.0)
    away = abs(arm.location - mode) / arm.scale
    reach = arm.scale * 100 / (away + math.hypot(away, 10))  # as for its mean: beyond it the density is below e^-50
    points, weights = _stretched(_beta(1.0, 1.0), max(0.0, mode - reach), min(1.0, mode + reach))
    off = abs((1.0 - mode) - points) / arm.scale
    weights = weights * np.exp(-off * (off + 2 * away) / 2)
    return Law(points, weights / weights.sum())

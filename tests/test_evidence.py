"""Evidence against independent computation: mixtures by scipy, the supermartingale by summing over outcomes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from partage.evidence import apart, free_evidence, kl, log_gamma, mixture_loss

COUNTS = st.one_of(st.integers(1, 60), st.integers(1, 10**6))
PARTS = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(0, 1))


def by_scipy(count, total):
    """log(highest likelihood / mixture), with the Beta function."""
    highest = special.xlogy(total, total / count) + special.xlogy(count - total, (count - total) / count)
    return highest - (special.betaln(total + 0.5, count - total + 0.5) - special.betaln(0.5, 0.5))


@given(count=COUNTS, part=PARTS)
def test_mixture_loss(count, part):
    assert mixture_loss(count, part * count) == pytest.approx(by_scipy(count, part * count), abs=1e-7)


@pytest.mark.parametrize("total", [0.0, 0.3, 2.0, 3.7])
def test_mixture_loss_is_that_of_the_integral(total):
    mixture, _ = integrate.quad(
        lambda t: stats.beta.pdf(t, 0.5, 0.5) * t**total * (1 - t) ** (4 - total), 0, 1, epsabs=1e-13, limit=200
    )
    highest = (total / 4) ** total * (1 - total / 4) ** (4 - total)
    assert mixture_loss(4, total) == pytest.approx(math.log(highest / mixture), abs=1e-5)


@given(count=st.integers(1, 10**12), part=PARTS)
def test_mixture_loss_is_at_most_half_a_logarithm_and_log_2(count, part):
    """Whole sums and others; equality for a single reward of 0 or 1."""
    assert 0 < mixture_loss(count, part * count) <= 0.5 * math.log(count) + math.log(2) + 1e-9


@given(mean=st.floats(0.01, 0.99), theta=st.floats(0, 1), low=st.floats(0, 1), high=st.floats(0, 1))
def test_a_factor_never_expects_more_than_one(mean, theta, low, high):
    """Any reward on two points of [0, 1] with this mean: the factor's expectation is at most 1."""
    low, high = sorted((low, high))
    if not low <= mean <= high or low == high:
        return
    chance = (mean - low) / (high - low)

    def factor(reward):
        return (theta / mean) ** reward * ((1 - theta) / (1 - mean)) ** (1 - reward)

    assert chance * factor(high) + (1 - chance) * factor(low) <= 1 + 1e-9


@given(p=st.floats(0, 1), q=st.floats(0.001, 0.999))
def test_kl(p, q):
    assert kl(p, q) == pytest.approx(stats.entropy([p, 1 - p], [q, 1 - q]), abs=1e-12)


def test_kl_at_the_edges():
    assert kl(0.0, 0.0) == kl(1.0, 1.0) == 0
    assert kl(0.5, 0.0) == kl(0.5, 1.0) == kl(1.0, 0.0) == math.inf


@given(n=st.integers(1, 1000), m=st.integers(1, 1000), p=PARTS, r=PARTS)
def test_apart_is_the_likelihood_ratio_of_two_means_against_one(n, m, p, r):
    def best(count, total):
        return special.xlogy(total, total / count) + special.xlogy(count - total, (count - total) / count)

    expected = best(n, n * p) + best(m, m * r) - best(n + m, n * p + m * r)
    assert apart(n, n * p, m, m * r) == pytest.approx(expected, abs=1e-8)
    assert apart(n, n * p, m, m * r) == pytest.approx(apart(m, m * r, n, n * p), abs=1e-9)


def test_means_that_differ_by_rounding_alone_are_not_apart():
    assert apart(1, 1.0, 1, 0.9999999999999999) == 0.0
    assert apart(3, 0.0, 2, 0.0) == 0.0


def test_the_best_mean_is_rarely_left_at_any_time():
    """Ville: over all times together, evidence against the true means passes log(1 / d) with chance at most d."""
    generator = np.random.default_rng(0)
    runs, steps, chance, mean = 4000, 200, 0.1, 0.3
    sums = np.cumsum(generator.random((runs, steps)) < mean, axis=1)
    counts = np.arange(1, steps + 1)
    evidence = np.array(
        [
            [n * kl(s / n, mean) - mixture_loss(n, float(s)) for n, s in zip(counts, row, strict=True)]
            for row in sums[:1000]
        ]
    )
    left = int((evidence.max(axis=1) >= math.log(1 / chance)).sum())
    assert stats.binomtest(left, 1000, chance, alternative="greater").pvalue > 1e-6
    assert left > 0


# --- plain and compiled ---------------------------------------------------------------------------------------


@st.composite
def _records(draw):
    """A count and a sum of rewards, whole or not."""
    count = draw(COUNTS)
    return count, draw(PARTS) * count


@given(x=st.one_of(st.floats(1e-3, 30), st.integers(1, 200).map(lambda k: k / 2)))
def test_log_gamma(x):
    assert log_gamma(x) == pytest.approx(special.gammaln(x), rel=1e-13, abs=1e-13)


@given(x=st.floats(1e-3, 1e6))
def test_log_gamma_is_the_same_compiled(x):
    assert log_gamma(x) == log_gamma.compiled(x)


@given(p=st.floats(0, 1), q=st.floats(0, 1))
def test_kl_is_the_same_compiled(p, q):
    assert kl(p, q) == kl.compiled(p, q)


@given(record=_records())
def test_mixture_loss_is_the_same_compiled(record):
    assert mixture_loss(*record) == mixture_loss.compiled(*record)


@given(record=_records(), other=_records())
def test_evidence_is_the_same_compiled(record, other):
    assert apart(*record, *other) == apart.compiled(*record, *other)


@given(count=st.integers(0, 10**9))
def test_free_evidence_is_the_same_compiled(count):
    assert free_evidence(count) == free_evidence.compiled(count)

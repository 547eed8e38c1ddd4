"""The limit of Lai and Robbins: K_inf against closed forms and other computations."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from partage.arms import Bernoulli, Beta, Constant, Discrete, Empirical, Mixture, TruncatedNormal, Uniform, bernoulli
from partage.evidence import kl
from partage.theory.limits import discretised, k_inf, lai_robbins

PAPER = bernoulli([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])
BETAS = (*(Beta(4 * mean, 4 * (1 - mean)) for mean in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)), Constant(0.0))


def test_the_limit_on_the_papers_arms():
    total = 0.9 / math.log(1 / 0.1)  # the arm that never pays: kl(0, 0.9) = log 10
    for arm in PAPER[1:-1]:
        mean = arm.mean
        divergence = mean * math.log(mean / 0.9) + (1 - mean) * math.log((1 - mean) / (1 - 0.9))
        total += (0.9 - mean) / divergence
    assert lai_robbins(PAPER, 10**8) == pytest.approx(total * math.log(10**8))
    assert round(lai_robbins(PAPER, 10**8)) == 146
    assert round(lai_robbins(PAPER, 10**6)) == 109


def test_the_limit_is_zero_without_a_worse_arm_and_ignores_arms_eliminated_at_once():
    assert lai_robbins(bernoulli([0.4, 0.4]), 1000) == 0
    assert lai_robbins(bernoulli([1.0, 0.5]), 1000) == 0  # one reward below 1 tells the arm from the best


@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=6), st.integers(2, 10**9))
def test_the_limit_grows_with_the_logarithm_of_the_pulls(means, pulls):
    arms = bernoulli(means)
    assert lai_robbins(arms, pulls**2) == pytest.approx(2 * lai_robbins(arms, pulls))


@given(st.floats(0, 1), st.floats(0.001, 0.999))
def test_for_rewards_of_0_and_1_k_inf_is_the_bernoulli_divergence(p, m):
    expected = kl(p, m) if p < m else 0.0
    assert k_inf(Bernoulli(p), m) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("arm", "law"),
    [
        (Beta(2, 2), stats.beta(2, 2)),
        (Beta(0.4, 3.6), stats.beta(0.4, 3.6)),
        (Beta(3.2, 0.8), stats.beta(3.2, 0.8)),
        (Uniform(0.1, 0.7), stats.uniform(0.1, 0.6)),
        (Uniform(0, 1), stats.uniform(0, 1)),
        (TruncatedNormal(0.3, 0.2), stats.truncnorm(-1.5, 3.5, 0.3, 0.2)),
    ],
    ids=lambda given: type(given).__name__,
)
@pytest.mark.parametrize("m", [0.81, 0.9, 0.99])
def test_k_inf_of_a_density_on_a_grid(arm, law, m):
    """The largest value over a grid of lambda, with expectations over equally likely quantiles."""
    quantiles = law.ppf((np.arange(20_000) + 0.5) / 20_000)
    grid = [np.log(1 - of / (1 - m) * (quantiles - m)).mean() for of in (*np.linspace(0, 0.995, 200), 0.999, 0.9999)]
    assert max(grid) == pytest.approx(k_inf(arm, m), rel=0.005)


@given(
    st.lists(st.tuples(st.floats(0, 0.99), st.integers(1, 9)), min_size=1, max_size=5),
    st.floats(0.05, 0.95),
)
def test_k_inf_is_the_divergence_to_a_law_with_that_mean(points, m):
    """The optimum divides each weight by 1 - lambda (x - m) and puts what is left on 1: that law has the mean m."""
    values, weights = (np.array(each, float) for each in zip(*points, strict=True))
    arm = Discrete(values, weights / weights.sum())
    if arm.mean >= m - 1e-6:
        return
    shares = np.array(arm.weights)

    def negative(of):
        return -shares @ np.log(1 - of * (values - m))

    ends = (0, (1 - 1e-12) / (1 - m))
    found = optimize.minimize_scalar(negative, bounds=ends, method="bounded", options={"xatol": 1e-12})
    assert k_inf(arm, m) == pytest.approx(-found.fun, rel=1e-5, abs=1e-9)
    nearest = shares / (1 - found.x * (values - m))
    assert nearest @ values + (1 - nearest.sum()) == pytest.approx(m, abs=1e-3)
    assert k_inf(arm, m) >= kl(arm.mean, m) - 1e-9


def test_arms_that_say_the_same():
    assert k_inf(Constant(0.3), 0.9) == pytest.approx(math.log(0.7 / 0.1))
    assert k_inf(Empirical([0, 0, 1, 1]), 0.9) == pytest.approx(kl(0.5, 0.9))
    assert k_inf(Empirical([0, 1], counts=[2, 2]), 0.9) == pytest.approx(kl(0.5, 0.9))
    assert k_inf(Mixture([Constant(0), Bernoulli(0.8)], [0.5, 0.5]), 0.9) == pytest.approx(kl(0.4, 0.9))
    assert k_inf(Discrete([0, 0.5, 1], [0.5, 0, 0.5]), 0.9) == pytest.approx(kl(0.5, 0.9))
    assert k_inf(Beta(1e-4, 1e-4), 0.9) == pytest.approx(kl(0.5, 0.9), rel=0.01)  # nearly always 0 or 1
    assert k_inf(Beta(3e6, 7e6), 0.9) == pytest.approx(math.log(0.7 / 0.1), rel=1e-4)  # nearly always 0.3
    assert k_inf(TruncatedNormal(0.3, 1e-5), 0.9) == pytest.approx(math.log(0.7 / 0.1), rel=1e-4)


def test_beta_arms_tell_more_than_arms_of_0_and_1():
    assert lai_robbins(BETAS, 10**6) == pytest.approx(40.1, abs=0.1)
    assert lai_robbins(BETAS, 10**8) == pytest.approx(53.4, abs=0.1)
    for arm in BETAS[1:]:
        assert k_inf(arm, 0.9) >= kl(arm.mean, 0.9) - 1e-12


@pytest.mark.parametrize(
    "arm",
    [
        Beta(0.1, 0.1),
        Beta(2e5, 6e5),
        Beta(30, 0.5),
        Uniform(0.2, 0.9),
        TruncatedNormal(-3, 0.5),
        TruncatedNormal(0.4, 1),
    ],
    ids=repr,
)
def test_a_discretised_arm_has_its_mean(arm):
    law = discretised(arm)
    assert law.weights.sum() == pytest.approx(1)
    assert 1 - law.weights @ law.short == pytest.approx(arm.mean, abs=1e-9)

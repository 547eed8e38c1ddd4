import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from scipy import integrate, stats
from tests.support.strategies import arms, keys

from partage.arms import (
    Bernoulli,
    Beta,
    Constant,
    Discrete,
    Empirical,
    Mixture,
    RandomBernoulli,
    TruncatedNormal,
    Uniform,
    bernoulli,
    reward_table,
)
from partage.compiled import compiled
from partage.engine import rewards as tape

KEY = tape.run_keys(2025, 0, 1)[0]
UNLIKELY = 1e-4  # p-values below this mean a wrong distribution; seeds are fixed


def draws(arm, n=4000):
    rewards = tape.Rewards(KEY, reward_table([arm]))
    return np.array([rewards.broadcast(0, entry) for entry in range(n)])


@compiled
def _add_rewards(k0, k1, table, n, word, group_of):
    return tape.add_rewards(k0, k1, table, 0, 0, n, tape.TAPE, 0.0, word, group_of)


def paid(arm, n):
    word, group_of = np.zeros(1, np.uint64), np.full(1, -1)
    return _add_rewards(*KEY, reward_table([arm]), n, word, group_of)


# --- means ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.0, 1.0, 0.3, 1e-12, 5e-324])
def test_a_bernoulli_or_constant_arm_has_the_mean_it_was_given(p):
    assert Bernoulli(p).mean == Constant(p).mean == bernoulli([p])[0].mean == p


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.1, 0.7), (0.3, 0.3), (0, 5e-324)])
def test_mean_of_a_uniform_arm(low, high):
    assert Uniform(low, high).mean == float((Fraction(low) + Fraction(high)) / 2)


@pytest.mark.parametrize("a", [1e-3, 0.5, 1, 7, 1e3, 1e308])
@pytest.mark.parametrize("b", [1e-3, 0.5, 3, 1e3, 1e308])
def test_mean_of_a_beta_arm(a, b):
    assert Beta(a, b).mean == pytest.approx(float(Fraction(a) / (Fraction(a) + Fraction(b))), rel=1e-15)


def test_mean_of_a_discrete_arm_is_rounded_once():
    values, weights = [0.1, 0.7, 0.0, 1.0], [0.1, 0.2, 0.3, 0.4]
    exact = sum(Fraction(v) * Fraction(w) for v, w in zip(values, weights, strict=True)) / sum(map(Fraction, weights))
    assert Discrete(values, weights).mean == float(exact)


def test_mean_of_an_empirical_arm_counts_repeated_values():
    sample = [0.1, 0.1, 0.1, 0.9]
    assert Empirical(sample).mean == pytest.approx(float(sum(map(Fraction, sample)) / 4), rel=1e-15)


@pytest.mark.parametrize("location", [-0.4, 0, 0.2, 0.5, 1, 1.3])
@pytest.mark.parametrize("scale", [0.05, 0.3, 1, 20])
def test_mean_of_a_truncated_normal_arm_by_integration(location, scale):
    def density(x):
        return math.exp(-(((x - location) / scale) ** 2) / 2)

    near = sorted({min(max(location + sds * scale, 0.0), 1.0) for sds in (-8, -2, 0, 2, 8)})
    exact = {"epsabs": 0, "epsrel": 1e-11, "limit": 200, "points": near}
    mass = integrate.quad(density, 0, 1, **exact)[0]
    assert TruncatedNormal(location, scale).mean == pytest.approx(
        integrate.quad(lambda x: x * density(x), 0, 1, **exact)[0] / mass, rel=1e-10
    )


@pytest.mark.parametrize(
    ("location", "scale", "mean"),
    [
        (0.3, 1e-9, 0.3),
        (0.3, 5e-324, 0.3),
        (2, 1e-310, 1),  # all at the edge
        (1, 1e-6, 1 - 1e-6 * math.sqrt(2 / math.pi)),  # half a normal
        (0.3, 1e5, 0.5 + (0.3 - 0.5) / (12 * 1e10)),  # nearly flat
        (0.3, 1e200, 0.5),
        (1 + 1e4, 1, 1 - (1 / 1e4 - 2 / 1e12)),  # a far tail: 1/a - 2/a^3 + ... from the edge
        (-1e4, 1, 1 / 1e4 - 2 / 1e12),
        (1e10, 1, 1 - 1e-10),
        (1e17, 1e8, 1 - (1 / 10 - 1 / math.expm1(10))),  # exponential of rate 10, cut at 1
    ],
)
def test_mean_of_an_extreme_truncated_normal_arm(location, scale, mean):
    assert TruncatedNormal(location, scale).mean == pytest.approx(mean, rel=1e-13)


# --- draws ----------------------------------------------------------------------------------------------------


@given(arms(), keys())
def test_rewards_are_between_0_and_1(arm, key):
    rewards = tape.Rewards(key, reward_table([arm]))
    assert 0 <= arm.mean <= 1
    assert all(0 <= rewards.broadcast(0, k) <= 1 and 0 <= rewards.private(3, 0, k) <= 1 for k in range(20))


@pytest.mark.parametrize("p", [0.5, 1 / 3, 0.9, 0.001, 0.999, 2.0**-10])
def test_bernoulli_arms_pay_as_often_as_they_should(p):
    n = 200_000
    assert stats.binomtest(int(paid(Bernoulli(p), n)), n, p).pvalue > UNLIKELY


def test_neighbouring_bernoulli_rewards_are_independent():
    rewards = draws(Bernoulli(0.4), 20_000).astype(int)
    for lag in (1, 2, 63, 64):
        pairs = np.histogram2d(rewards[:-lag], rewards[lag:], bins=2)[0]
        assert stats.chi2_contingency(pairs).pvalue > UNLIKELY


@pytest.mark.parametrize("p", [0.0, 5e-324, 1e-300, 1e-12])
def test_bernoulli_arms_of_next_to_no_chance_pay_nothing(p):
    assert paid(Bernoulli(p), 50_000) == 0


@pytest.mark.parametrize("p", [1.0, 1 - 2.0**-53, 1 - 1e-12])
def test_bernoulli_arms_of_next_to_certainty_always_pay(p):
    assert paid(Bernoulli(p), 50_000) == 50_000


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_a_constant_arm_pays_its_value(value):
    assert set(draws(Constant(value), 50)) == {value}


def distribution(arm):
    match arm:
        case Uniform(low, high):
            return stats.uniform(low, high - low)
        case Beta(a, b):
            return stats.beta(a, b)
        case TruncatedNormal(location, scale) if scale >= 1e4:
            return stats.uniform(0, 1)  # as good as flat
        case TruncatedNormal(location, scale):
            return stats.truncnorm(-location / scale, (1 - location) / scale, location, scale)


CONTINUOUS = [
    *(Uniform(low, high) for low, high in [(0, 1), (0.2, 0.5)]),
    *(Beta(a, b) for a, b in [(2, 5), (0.5, 0.5), (1, 1), (0.1, 3), (300, 40), (1e9, 1e9)]),
    *(TruncatedNormal(0.5, scale) for scale in (1e-6, 0.2, 1, 1e5)),  # narrow to wide
    *(TruncatedNormal(*at) for at in [(0, 0.1), (-0.5, 0.5), (1.2, 0.4), (0.3, 1e8), (-7, 1e4)]),
    *(TruncatedNormal(*at) for at in [(2, 0.1), (-3, 0.1), (100, 10)]),  # tails
]


@pytest.mark.parametrize("arm", CONTINUOUS, ids=str)
def test_continuous_arms_pay_by_their_distribution(arm):
    assert stats.kstest(draws(arm), distribution(arm).cdf).pvalue > UNLIKELY


def test_a_bent_but_nearly_flat_truncated_normal_is_not_taken_for_flat():
    """The density falls by a fifth from 0.01 to 1: more draws are needed to see it."""
    arm = TruncatedNormal(0.01, 1.6)
    rewards = draws(arm, 40_000)
    assert stats.kstest(rewards, distribution(arm).cdf).pvalue > UNLIKELY
    assert stats.kstest(rewards, stats.uniform().cdf).pvalue < UNLIKELY


@pytest.mark.parametrize("location", [1 + 1e4, -1e4])
def test_far_tails_are_exponential_from_the_edge(location):
    rewards = draws(TruncatedNormal(location, 1))
    from_edge = 1 - rewards if location > 0 else rewards
    assert stats.kstest(from_edge, stats.expon(scale=1e-4).cdf).pvalue > UNLIKELY


@pytest.mark.parametrize(("a", "b"), [(1e-3, 1e3), (1e-3, 1e-3), (1e-2, 1e-2)])
def test_beta_arms_with_small_parameters_reach_far_down(a, b):
    """Most of the mass is next to 0 (and 1), on a logarithmic scale: bins there, not in the middle."""
    edges = [1e-200, 1e-100, 1e-30, 1e-12, 0.5]
    bins = np.diff([0, *stats.beta(a, b).cdf(edges), 1])
    seen = np.bincount(np.searchsorted(edges, draws(Beta(a, b))), minlength=len(bins))
    likely = bins > 1e-3
    assert seen[~likely].sum() <= 10
    assert stats.chisquare(seen[likely], bins[likely] / bins[likely].sum() * seen[likely].sum()).pvalue > UNLIKELY


def test_discrete_arms_pay_by_their_weights_and_never_a_value_of_weight_zero():
    values, weights = [0.9, 0.0, 0.2, 0.4, 1.0], [0.0, 0.125, 0.5, 0.375, 0.0]
    seen = Counter(draws(Discrete(values, weights)))
    assert set(seen) == set(reward_table([Discrete(values, weights)]).values) == {0.0, 0.2, 0.4}
    assert stats.chisquare([seen[0.0], seen[0.2], seen[0.4]], [500, 2000, 1500]).pvalue > UNLIKELY


def test_a_discrete_arm_of_weight_one_pays_nothing_else():
    assert set(draws(Discrete([0.1, 0.6, 0.2], [0, 1, 0]), 500)) == {0.6}


def test_a_discrete_value_given_twice_has_both_weights():
    seen = Counter(draws(Discrete([0.5, 0.1, 0.5], [0.25, 0.5, 0.25])))
    assert stats.chisquare([seen[0.5], seen[0.1]], [2000, 2000]).pvalue > UNLIKELY


def test_empirical_arms_pay_each_entry_of_the_sample_evenly():
    seen = Counter(draws(Empirical([0.1, 0.4, 0.4, 0.7, 0.7, 0.7, 0.0, 1.0])))
    expected = {0.1: 500, 0.4: 1000, 0.7: 1500, 0.0: 500, 1.0: 500}
    assert set(seen) == set(expected)
    assert stats.chisquare([seen[v] for v in expected], list(expected.values())).pvalue > UNLIKELY


def test_arms_beside_each_other_do_not_mix_up_their_values():
    several = [Empirical([0.1, 0.2]), Uniform(0.5, 0.6), Discrete([0.3, 0.4], [0.5, 0.5]), Empirical([0.9])]
    rewards = tape.Rewards(KEY, reward_table(several))
    seen = [{rewards.broadcast(arm, entry) for entry in range(200)} for arm in range(4)]
    assert (seen[0], seen[2], seen[3]) == ({0.1, 0.2}, {0.3, 0.4}, {0.9})
    assert all(0.5 <= reward < 0.6 for reward in seen[1])


@pytest.mark.parametrize(
    ("arm", "cdf"),
    [
        (TruncatedNormal(-1, 1e200), stats.uniform().cdf),  # flat
        (TruncatedNormal(-1e17, 1e8), stats.truncexpon(10, scale=0.1).cdf),  # exponential of rate 10, cut at 1
    ],
    ids=["flat", "exponential"],
)
def test_truncated_normals_with_enormous_parameters_pay_by_their_distribution(arm, cdf):
    assert stats.kstest(draws(arm), cdf).pvalue > UNLIKELY


def test_truncated_normals_far_out_and_very_narrow_pay_the_edge():
    assert set(draws(TruncatedNormal(2, 1e-310), 20)) == {1.0}
    assert set(draws(TruncatedNormal(-2, 1e-310), 20)) == {0.0}


def test_beta_arms_with_the_smallest_parameters_pay_0_or_1_evenly():
    rewards = draws(Beta(5e-324, 5e-324))
    assert ((rewards < 1e-300) | (rewards == 1)).all()
    assert stats.binomtest(int((rewards == 1).sum()), len(rewards), 0.5).pvalue > UNLIKELY


# --- mixtures, counts and random means ------------------------------------------------------------------------


def test_a_mixture_pays_as_its_parts_do():
    arm = Mixture(
        [Constant(0.25), Bernoulli(0.3), Mixture([Uniform(0.5, 0.75), Beta(2, 3)], [0.5, 0.5])], [0.2, 0.3, 0.5]
    )
    assert arm.mean == pytest.approx(0.2 * 0.25 + 0.3 * 0.3 + 0.25 * 0.625 + 0.25 * 0.4, rel=1e-12)
    found, n = draws(arm, 20_000), 20_000
    for often, p in (
        (np.sum(found == 0.25), 0.2),
        (np.sum(found == 1.0), 0.3 * 0.3),
        (np.sum(found == 0.0), 0.3 * 0.7),
    ):
        assert stats.binomtest(int(often), n, p).pvalue > UNLIKELY
    rest = found[(found != 0.25) & (found != 0.0) & (found != 1.0)]

    def law(x):
        return 0.5 * stats.uniform(0.5, 0.25).cdf(x) + 0.5 * stats.beta(2, 3).cdf(x)

    assert stats.kstest(rest, law).pvalue > UNLIKELY


def test_mixtures_next_to_other_arms_read_their_own_parts():
    mixed = Mixture([Constant(0.1), Constant(0.9)], [0.5, 0.5])
    rewards = tape.Rewards(KEY, reward_table([mixed, Constant(0.4), Mixture([Constant(0.7)], [1.0])]))
    assert {rewards.broadcast(0, k) for k in range(50)} == {0.1, 0.9}
    assert {rewards.broadcast(1, k) for k in range(5)} == {0.4}
    assert {rewards.broadcast(2, k) for k in range(5)} == {0.7}


def test_counts_are_a_short_form_of_a_sample():
    long, short = Empirical([0.2] * 3 + [0.6] * 5), Empirical([0.2, 0.6], counts=[3, 5])
    assert draws(long, 300).tolist() == draws(short, 300).tolist()


def test_random_means_follow_their_distribution():
    generator = np.random.default_rng(5)
    means = [RandomBernoulli(0.2, 0.7, a=2, b=6).drawn(generator).mean for _ in range(2000)]
    assert stats.kstest(means, stats.beta(2, 6, loc=0.2, scale=0.5).cdf).pvalue > UNLIKELY

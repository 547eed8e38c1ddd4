"""The first test against independent computation, exact expectations, and who is named."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from tests.support.likelihood import log_likelihood, log_mixture

from partage.agreement import ENOUGH, disagreements
from partage.agreement.arms import _joint_evidence, _one_evidence, arm_evidence, difference_of_means, may_disagree
from partage.agreement.cells import cells_of, together
from partage.board import Record

RECORD = st.integers(1, 400).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))
RECORDS = st.lists(RECORD, min_size=2, max_size=6)


def cells(*records):
    """Cells of one arm: (rewards, sum) of each member."""
    return cells_of({name: Record([n], [float(s)]) for name, (n, s) in enumerate(records)}, 1)[0]


@given(records=RECORDS, mean=st.floats(0.01, 0.99))
def test_evidence_is_the_least_of_the_martingales_of_all_means(records, mean):
    """Beta functions instead of losses and divergences; a bounded search instead of the pooled mean."""
    n, s = map(sum, zip(*records, strict=True))
    mixtures = sum(log_mixture(*one) for one in records)
    share = math.log(4)
    assert _joint_evidence(cells(*records), 1) <= mixtures - log_likelihood(n, s, mean) - share + 1e-7
    best = optimize.minimize_scalar(lambda q: -log_likelihood(n, s, q), bounds=(0, 1), method="bounded").fun
    assert _joint_evidence(cells(*records), 1) == pytest.approx(mixtures + best - share, abs=0.01)

    share += math.log(len(records) * (len(records) + 1))
    for (k, w), evidence in zip(records, _one_evidence(cells(*records), 1), strict=True):
        mixtures = log_mixture(k, w) + log_mixture(n - k, s - w)
        assert evidence <= mixtures - log_likelihood(n, s, mean) - share + 1e-7


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("rule", range(6))
def test_the_expected_e_values_are_at_most_the_share_of_an_arm(mean, rule):
    """All outcomes of ten rewards, where the rewards so far decide who is next, who joins, and when to stop."""
    expected = 0.0
    for rewards in product((0, 1), repeat=10):
        told, stopped = {}, False
        for at, reward in enumerate(rewards):
            seen = rewards[:at]
            stopped = stopped or (rule % 2 == 1 and sum(seen) >= 4)
            if not stopped:
                member = (sum(seen) * (rule + 1) + (seen[-1] if seen else 0) + at // 3) % (2 + at // 4)
                told.setdefault(member, Record([0], [0.0])).add(0, reward)
        found = cells_of(told, 1)[0]
        values = [_joint_evidence(found, 1), *_one_evidence(found, 1)] if len(found) > 1 else []
        chance = mean ** sum(rewards) * (1 - mean) ** (10 - sum(rewards))
        expected += chance * math.fsum(math.exp(value) for value in values)
    assert 0 < expected <= 0.5


@given(records=RECORDS, arms=st.integers(1, 3))
def test_members_who_are_not_compared_have_too_little_evidence(records, arms):
    assert may_disagree(cells(*records), arms) or arm_evidence(cells(*records), arms) < ENOUGH


@given(records=RECORDS, data=st.data())
def test_the_order_of_members_does_not_matter(records, data):
    shuffled = data.draw(st.permutations(records))
    assert arm_evidence(cells(*shuffled), 3) == pytest.approx(arm_evidence(cells(*records), 3), abs=1e-9)


def test_the_share_of_a_member_never_grows_when_others_join():
    """By the order of joining they are 1 / (k (k + 1)) and sum to 1; by the number of members, nobody has more."""
    assert sum(1 / (k * (k + 1)) for k in range(1, 10_000)) <= 1
    found = cells((1, 0), (1, 0), (1, 0), (1, 0))
    assert _one_evidence(found, 1)[0] < _one_evidence(found[:2], 1)[0]


@given(records=RECORDS)
def test_an_interval_has_the_difference_and_ends_where_the_evidence_is_enough(records):
    one, *others = cells(*records)
    other = together(others)
    low, high = difference_of_means(one, other, 5.0)
    assert -1 <= low <= one.mean - other.mean <= high <= 1

    def against(difference):
        """The least divergence at this difference, by a grid."""
        p = np.linspace(max(0, difference), min(1, 1 + difference), 4001)
        q = np.clip(p - difference, 0, 1)
        records = ((one.told, one.total, p), (other.told, other.total, q))
        with np.errstate(divide="ignore"):
            return min(sum(log_likelihood(n, s, s / n) - log_likelihood(n, s, mean) for n, s, mean in records))

    level = 5.0 + one.loss + other.loss
    for end, limit in ((low, -1), (high, 1)):
        if end != limit:
            assert against(end) == pytest.approx(level, abs=0.05)
    assert (low <= 0 <= high) == (against(0.0) <= level) or against(0.0) == pytest.approx(level, abs=0.05)


def test_one_member_who_differs_is_named_with_the_difference():
    told = {name: Record([1000], [600.0]) for name in "ABCDE"} | {"F": Record([500], [225.0])}
    (one,) = disagreements(told, arms=1)
    assert (one.arm, one.against, one.members) == (0, None, ("F",))
    assert one.difference == pytest.approx(-0.15)
    assert one.low < -0.15 < one.high < 0
    assert one.evidence >= ENOUGH


def test_of_two_members_both_are_named():
    (one,) = disagreements({"A": Record([500], [200.0]), "B": Record([500], [300.0])}, arms=1)
    assert one.members == ("A", "B")
    assert one.difference == pytest.approx(-0.2)
    assert one.high < 0


def test_several_members_who_differ_are_named_one_by_one():
    told = {name: Record([1000], [500.0]) for name in "ABC"}
    told |= {"D": Record([1000], [800.0]), "E": Record([1000], [300.0])}
    found = disagreements(told, arms=1)
    assert [one.members for one in found] == [("D",), ("E",)]
    assert found[1].difference == pytest.approx(-0.2)


def test_a_member_with_most_of_the_rewards_is_named_if_the_others_agree():
    told = {name: Record([200], [80.0]) for name in "ABC"} | {"D": Record([9000], [5400.0])}
    assert [one.members for one in disagreements(told, arms=1)] == [("D",)]


@pytest.mark.parametrize("told", [{}, {"A": Record([9], [9.0])}, {"A": Record([9], [0.0]), "B": Record([0], [0.0])}])
def test_too_little_says_nothing(told):
    assert disagreements(told, arms=1) == []


@given(records=st.lists(st.integers(1, 500), min_size=2, max_size=8), mean=st.sampled_from([0.0, 1.0]))
def test_members_who_see_only_failures_or_only_successes_agree(records, mean):
    assert disagreements({name: Record([n], [n * mean]) for name, n in enumerate(records)}, arms=1) == []

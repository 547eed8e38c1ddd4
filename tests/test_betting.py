"""Bets against independent computation: every bet by itself, the smallest wealth by a search over all q."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from partage.betting import (
    GRID,
    STAKES,
    contest,
    largest_bet,
    log_wealth,
    lost,
    pooled_mean,
    won,
)

REWARDS = st.lists(st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(0, 1)), max_size=30)
POINTS = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(0, 1))
BETAS = 2 / (1 + np.exp(-np.linspace(-5, 4, 16)))


def parts_by_hand(q, arm, leader):
    """The logarithm of each part of the wealth: bet by bet, stake by stake."""
    first = [sum(math.log((1 - b * (x - 0.5)) / (1 - b * (q - 0.5))) for x in arm) for b in BETAS]
    second = [sum(math.log((1 + b * (x - 0.5)) / (1 + b * (q - 0.5))) for x in leader) for b in BETAS]
    return [
        first[g] + (second[g - shift] if shift is not None and g >= shift else 0.0)
        for g in range(16)
        for shift in (0, 2, 4, None)
    ]


def wealth_by_hand(q, arm, leader):
    return float(special.logsumexp(parts_by_hand(q, arm, leader)) - math.log(64))


def record(arm, leader, own=()):
    """The arguments of the functions: `own` are rewards of leaders that do not count."""
    against, on, not_on = ([0.0] * GRID for _ in range(3))
    for row, bet, rewards in ((against, lost, arm), (on, won, [*leader, *own]), (not_on, won, own)):
        for reward in rewards:
            for g in range(GRID):
                row[g] += bet(g, reward)
    return len(arm), against, len(leader), on, not_on


def as_arrays(made):
    count, against, led, on, own = made
    return count, np.array(against), led, np.array(on), np.array(own)


def test_the_stakes():
    assert pytest.approx(BETAS) == STAKES
    assert 0 < min(STAKES) < 0.02
    assert 1.9 < max(STAKES) < 2


@given(arm=REWARDS, leader=REWARDS, own=REWARDS, q=POINTS)
def test_the_wealth_is_the_mean_over_all_bets(arm, leader, own, q):
    made = record(arm, leader, own)
    assert largest_bet(q, *made) == pytest.approx(max(parts_by_hand(q, arm, leader)), abs=1e-9)
    assert log_wealth(q, *made)[0] == pytest.approx(wealth_by_hand(q, arm, leader), abs=1e-9)


@given(arm=REWARDS, leader=REWARDS, q=st.floats(0.01, 0.99))
def test_the_derivatives_of_the_wealth(arm, leader, q):
    made = record(arm, leader)
    value, slope, curve = log_wealth(q, *made)
    step = 1e-4
    below, above = (log_wealth(q + s, *made)[0] for s in (-step, step))
    scale = 1 + len(arm) + len(leader)
    assert slope == pytest.approx((above - below) / (2 * step), abs=1e-2 * scale, rel=1e-2)
    assert curve == pytest.approx((above - 2 * value + below) / step**2, abs=scale**2, rel=0.1)
    assert curve >= -1e-9 * scale**2  # convex


@settings(max_examples=200)
@given(arm=REWARDS, leader=REWARDS, q=POINTS, threshold=st.floats(0.1, 6))
def test_an_arm_is_beaten_if_the_wealth_reaches_the_threshold_for_every_q(arm, leader, q, threshold):
    made = record(arm, leader)
    smallest = optimize.minimize_scalar(lambda q: wealth_by_hand(q, arm, leader), bounds=(0, 1), method="bounded")
    low = min(smallest.fun, wealth_by_hand(0, arm, leader), wealth_by_hand(1, arm, leader))
    beaten, at, bound = contest(threshold, q, *made)
    if abs(low - threshold) > 1e-4:
        assert beaten == (low > threshold)
    if not beaten and bound < math.inf:
        assert 0 <= at <= 1
        assert wealth_by_hand(at, arm, leader) <= bound + 1e-9
        assert bound < threshold


def test_both_answers_occur():
    ones, zeros = [1.0] * 12, [0.0] * 12
    assert contest(math.log(100), 0.5, *record(zeros, ones))[0]
    assert not contest(math.log(100), 0.5, *record(ones, ones))[0]
    assert not contest(math.log(100), 0.5, *record(ones, zeros))[0]


@given(mean=st.floats(0.01, 0.99), low=POINTS, high=POINTS, q=POINTS, stake=st.integers(0, GRID - 1))
def test_no_bet_is_favourable(mean, low, high, q, stake):
    """Any reward on two points with this mean: against an arm of mean at least q, on a leader of mean at most q."""
    low, high = sorted((low, high))
    if not low <= mean <= high or low == high:
        return
    chance = (mean - low) / (high - low)
    for bet, is_null in ((lost, mean >= q), (won, mean <= q)):
        if is_null:
            expected = chance * math.exp(bet(stake, high)) + (1 - chance) * math.exp(bet(stake, low))
            assert expected <= math.exp(bet(stake, q)) * (1 + 1e-9)


@given(arm=REWARDS, leader=REWARDS, reward=POINTS, q=POINTS)
def test_one_reward_changes_no_more_than_the_largest_bet_at_q(arm, leader, reward, q):
    now = log_wealth(q, *record(arm, leader))[0]
    most_lost, most_won = (max(0.0, bet(GRID - 1, reward) - bet(GRID - 1, q)) for bet in (lost, won))
    assert log_wealth(q, *record([*arm, reward], leader))[0] <= now + most_lost + 1e-9
    assert log_wealth(q, *record(arm, [*leader, reward]))[0] <= now + most_won + 1e-9


# --- plain and compiled ---------------------------------------------------------------------------------------


@given(reward=POINTS, stake=st.integers(0, GRID - 1))
def test_a_bet_is_the_same_compiled(reward, stake):
    for bet in (lost, won):
        assert bet(stake, reward) == bet.compiled(stake, reward)


@given(arm=REWARDS, leader=REWARDS, own=REWARDS, q=POINTS, threshold=st.floats(0.1, 6))
def test_the_evidence_is_the_same_compiled(arm, leader, own, q, threshold):
    made = record(arm, leader, own)
    arrays = as_arrays(made)
    assert largest_bet(q, *made) == largest_bet.compiled(q, *arrays)
    assert log_wealth(q, *made) == log_wealth.compiled(q, *arrays)
    assert contest(threshold, q, *made) == contest.compiled(threshold, q, *arrays)


@given(n=st.integers(0, 10**6), m=st.integers(0, 10**6), p=POINTS, r=POINTS)
def test_the_pooled_mean(n, m, p, r):
    pooled = pooled_mean(n, n * p, m, m * r)
    assert pooled == pooled_mean.compiled(n, n * p, m, m * r)
    assert pooled == pytest.approx((n * p + m * r + 0.5) / (n + m + 1))
    assert 0 < pooled < 1

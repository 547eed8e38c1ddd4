"""A pool and dues: what they pay, exactly, and what no reports can change."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.settle.test_money import VALUES, closed
from tests.support.strategies import board

from partage import BalancedETC, BalancedGLR, InputError, SharedIMED, TwoUCB
from partage.settle import DUES, POOL, Settlement, core, settlement_for
from partage.settle.core import arms_left, rates_of
from partage.settle.money import MICRO, Account, books_of, settle
from partage.settle.pool import pool_rates

AMOUNTS = st.one_of(st.sampled_from([0.0, 1e-7, 0.5, 3.0, 1e6]), st.floats(0, 100))
FEES = st.sampled_from([0.0, 0.1, 1 / 3, 2.0])
GLR = BalancedGLR()
RULES = st.sampled_from([BalancedGLR(), SharedIMED()])


def pools(rules=RULES):
    return st.builds(
        lambda rule, fee, prepaid, underwriting: settlement_for(
            "pool", rule, fee, prepaid=prepaid, underwriting=underwriting
        ),
        rules,
        FEES,
        AMOUNTS,
        AMOUNTS,
    )


def dues(rules=RULES):
    return st.builds(lambda rule, prepaid: settlement_for("dues", rule, prepaid=prepaid), rules, AMOUNTS)


def underwritten():
    return st.builds(
        lambda name, fee, underwriting: settlement_for(
            name, BalancedETC(), 0.0 if name == "paper" else fee, alone="best", underwriting=underwriting
        ),
        st.sampled_from(["paper", "equal-share", "equal-share-expected"]),
        FEES,
        AMOUNTS,
    )


def micro(amount, value):
    return round(Fraction(amount) * Fraction(value) * MICRO)


# --- the bounds, in every run ---------------------------------------------------------------------------------


@settings(max_examples=300)
@given(closed=closed(), settlement=st.one_of(pools(), dues()), value=VALUES)
def test_whatever_is_reported_the_bounds_hold_to_the_micro_unit(closed, settlement, value):
    at_close, pulls = closed
    settled = settle(settlement, at_close, pulls, value)
    members, nets = len(pulls), sorted((each.net for each in settled.accounts), reverse=True)
    prepaid, underwriting = micro(settlement.prepaid, value), micro(settlement.underwriting, value)
    assert sum(nets) + settled.profit == 0
    assert settled.profit >= -underwriting
    for each in settled.accounts:
        assert 0 <= each.charge <= prepaid
        assert each.compensation >= 0
    assert len({each.charge for each in settled.accounts}) <= 1
    for k in range(1, members + 1):  # the k who gain most
        bound = 0 if settlement.kind == DUES else (members - k) * prepaid + underwriting
        assert sum(nets[:k]) <= bound
    assert (settled.prepaid, settled.underwriting) == (prepaid, underwriting)


@settings(max_examples=200)
@given(closed=closed(), settlement=underwritten(), value=VALUES)
def test_an_underwriting_limits_the_loss_to_the_micro_unit(closed, settlement, value):
    at_close, pulls = closed
    settled = settle(settlement, at_close, pulls, value)
    unlimited = settle(settlement._replace(underwriting=None), at_close, pulls, value)
    underwriting = micro(settlement.underwriting, value)
    assert settled.profit >= -underwriting
    assert sum(each.net for each in settled.accounts) + settled.profit == 0
    for mine, whole in zip(settled.accounts, unlimited.accounts, strict=True):
        assert mine.compensation <= whole.compensation
        assert 0 <= mine.charge - whole.charge <= max(1, 1e-12 * whole.charge)
    if unlimited.profit - len(pulls) >= -underwriting:
        assert settled.scale == 1
    if settled.scale == 1:
        for mine, whole in zip(settled.accounts, unlimited.accounts, strict=True):
            assert whole.compensation - mine.compensation <= max(1, 1e-12 * whole.compensation)
    else:  # nothing is held back that could be paid
        assert settled.profit < -underwriting + max(1, len(pulls))


# --- the formulas ---------------------------------------------------------------------------------------------


def by_hand(settlement, at_close, pulls, value):
    """Compensation and charge of everyone by the formulas of docs/trust.md, as fractions of micro-units."""
    unit = Fraction(value) * MICRO
    rates = [Fraction(rate) * unit for rate in rates_of(settlement, at_close)]
    earned = [sum((rate * int(count) for rate, count in zip(rates, row, strict=True)), Fraction(0)) for row in pulls]
    prepaid, underwriting = (Fraction(micro(each, value)) for each in (settlement.prepaid, settlement.underwriting))
    if settlement.kind == DUES:
        return [(min(prepaid, each), prepaid) for each in earned]
    bill = (1 + Fraction(settlement.fee)) * sum(earned)
    scale = min(Fraction(1), (len(pulls) * prepaid + underwriting) / bill) if bill else Fraction(1)
    charge = min(prepaid, scale * bill / len(pulls)) if len(pulls) else Fraction(0)
    return [(scale * each, charge) for each in earned]


@settings(max_examples=200)
@given(closed=closed(), settlement=st.one_of(pools(), dues()), value=VALUES)
def test_compensations_are_rounded_down_and_charges_up(closed, settlement, value):
    at_close, pulls = closed
    settled = settle(settlement, at_close, pulls, value)
    expected = by_hand(settlement, at_close, pulls, value)
    assert [(each.compensation, each.charge) for each in settled.accounts] == [
        (math.floor(compensation), math.ceil(charge)) for compensation, charge in expected
    ]


@settings(max_examples=100)
@given(closed=closed(some_agents=True), settlement=st.one_of(pools(), dues()))
def test_amounts_in_units_of_reward_are_the_same(closed, settlement):
    at_close, pulls = closed
    value = 1000.0
    found, settled = core.settle(settlement, at_close, pulls), settle(settlement, at_close, pulls, value)
    assert found.scale == pytest.approx(settled.scale, abs=1e-6)
    assert found.common_charge * value * MICRO == pytest.approx(settled.accounts[0].charge, abs=2)
    assert found.ceilings is None


@given(closed=closed(some_agents=True), settlement=pools(), value=VALUES, data=st.data())
def test_a_member_can_check_its_account_from_the_totals(closed, settlement, value, data):
    at_close, pulls = closed
    settled = settle(settlement, at_close, pulls, value)
    agent = data.draw(st.integers(0, len(pulls) - 1))
    totals = [int(total) for total in pulls.sum(axis=0)]
    books = books_of(settlement, settled.rates, totals, [0] * len(pulls), value)
    assert books.account(pulls[agent].tolist()) == settled.accounts[agent]


def test_what_a_pool_pays():
    at_close = board([300, 100, 50], [0.9, 0.4, 0.5], horizon=1000, gone=[1])
    settlement = settlement_for("pool", BalancedGLR(), 0.25, prepaid=3.0)
    pulls = [[30, 20, 4], [9, 0, 30], [0, 0, 0], [0, 0, 0]]  # arm 2 is left: its claims earn nothing
    settled = settle(settlement, at_close, pulls)
    assert settled.rates == (0.0, 0.5, 0.0)
    assert settled.scale == pytest.approx(12 / 12.5)  # 4 D = 12 of a bill of 10 and a fee of 2.5
    assert settled.accounts == (Account(9_600_000, 3_000_000, 3_000_000), *[Account(0, 3_000_000, 3_000_000)] * 3)
    assert settled.profit == 2_400_000
    assert not settled.viable
    assert not settled.finished
    roomy = settle(settlement._replace(prepaid=100.0), at_close, pulls)
    assert roomy.viable
    assert [each.net for each in roomy.accounts] == [6_875_000] + [-3_125_000] * 3
    assert roomy.profit == 2_500_000


def test_what_dues_pay():
    at_close = board([300, 100], [0.9, 0.4], horizon=1000, gone=[1])
    settlement = settlement_for("dues", BalancedGLR(), prepaid=3.0)
    settled = settle(settlement, at_close, [[30, 20], [9, 4], [0, 0]])
    assert [each.net for each in settled.accounts] == [0, -1_000_000, -3_000_000]
    assert settled.profit == 4_000_000
    assert settled.scale == pytest.approx(5 / 12)


# --- which arms are paid --------------------------------------------------------------------------------------


def test_arms_that_the_rule_eliminated_are_paid_or_all_but_the_leader_if_it_eliminates_nothing():
    at_close = board([300, 100, 50], [0.9, 0.4, 0.88], horizon=1000)
    eliminating = settlement_for("pool", BalancedGLR(), prepaid=1.0)
    assert rates_of(eliminating, at_close) == (0.0, 0.0, 0.0)
    other = settlement_for("pool", SharedIMED(), prepaid=1.0)
    assert eliminating.coverage is other.coverage is None
    assert rates_of(other, at_close) == pytest.approx((0.0, 0.5, 0.02))
    assert arms_left(other, at_close) == [0]
    assert rates_of(other, at_close, left=[0, 1, 2]) == (0.0, 0.0, 0.0)  # as a close event states them


def test_an_eliminated_arm_with_the_highest_mean_earns_nothing():
    at_close = board([300, 100], [0.5, 0.9], horizon=1000, gone=[1])
    assert rates_of(settlement_for("pool", BalancedGLR(), prepaid=1.0), at_close) == (0.0, 0.0)


@given(closed=closed())
def test_the_rates_are_the_same_compiled(closed):
    at_close, _ = closed
    rates, compiled = [9.0] * at_close.arms, np.full(at_close.arms, 9.0)
    left = [at_close.active[arm] and at_close.public[arm] for arm in range(at_close.arms)]
    pool_rates(at_close.counts, at_close.record.sums, left, at_close.public, rates)
    lists = (at_close.counts, at_close.record.sums, left, at_close.public)
    pool_rates.compiled(*(np.array(each) for each in lists), compiled)
    assert compiled.tolist() == rates


# --- large numbers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["paper", "equal-share", "pool"])
def test_totals_beyond_64_bits_do_not_wrap(name):
    """9,300 agents of 10^15 pulls: their sum as 64-bit integers is negative."""
    terms = {"prepaid": 1e15} if name == "pool" else {}
    settlement = settlement_for(name, BalancedETC(), alone="best", **terms)
    at_close = board([10**6, 10**3], [0.9, 0.1], horizon=10**15, gone=[1])
    pulls = np.full((9300, 2), 10**15, np.int64)
    plain = [[10**15, 10**15]] * 9300
    found = core.settle(settlement, at_close, pulls)
    assert found == core.settle(settlement, at_close, plain)
    assert found.common_charge is None or found.common_charge > 0
    assert found.viable == (name == "pool")


# --- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rule", "terms", "sentence"),
    [
        ("pool", GLR, {}, "The settlement pool needs a prepaid amount"),
        ("dues", GLR, {}, "The settlement dues needs a prepaid amount"),
        ("pool", GLR, {"prepaid": -1}, "The prepaid amount is -1; it must be a finite number of at least 0."),
        ("pool", GLR, {"prepaid": math.inf}, "The prepaid amount is inf; it must be"),
        ("pool", GLR, {"prepaid": math.nan}, "The prepaid amount is nan; it must be"),
        ("pool", GLR, {"prepaid": True}, "The prepaid amount is True; it must be"),
        ("pool", GLR, {"prepaid": "3"}, "The prepaid amount is '3'; it must be"),
        ("none", GLR, {"prepaid": 3}, "in the settlement none nobody prepays; omit it, or use pool or dues."),
        ("paper", BalancedETC(), {"prepaid": 0}, "in the settlement paper nobody prepays"),
        ("pool", GLR, {"prepaid": 3, "underwriting": -2}, "The underwriting is -2; it must be"),
        ("pool", GLR, {"prepaid": 3, "underwriting": math.nan}, "The underwriting is nan; it must be"),
        ("dues", GLR, {"prepaid": 3, "underwriting": 1}, "the controller never loses with the settlement dues"),
        ("none", GLR, {"underwriting": 1}, "the controller never loses with the settlement none"),
        ("dues", GLR, {"prepaid": 3, "fee": 0.1}, "The fee is 0.1, but the settlement dues takes none"),
        ("pool", GLR, {"prepaid": 3, "coverage": 0.9}, "the settlement pool has none; omit it"),
    ],
)
def test_terms_that_are_refused(name, rule, terms, sentence):
    with pytest.raises(InputError) as refused:
        settlement_for(name, rule, **terms)
    assert sentence in str(refused.value)


def test_defaults():
    pool = settlement_for("pool", BalancedGLR(), 0.1, prepaid=3)
    assert (pool.kind, pool.prepaid, pool.underwriting, pool.name) == (POOL, 3.0, 0.0, "pool")
    assert pool.is_prepaid
    assert not pool.pays_commits
    assert settlement_for("equal-share", TwoUCB()).underwriting is None
    assert Settlement(POOL).name == "pool"

"""The settlement core: plain and compiled agree bit for bit, it imports nothing heavy, and ceilings need an extra."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.settle.test_equal_share import COUNTS, LEVELS, MEANS
from tests.settle.test_money import closed, settlement_named, settlements
from tests.support.strategies import board, boards

from partage import BalancedETC, BalancedGLR, MissingExtra
from partage.settle import settlement_for
from partage.settle.core import Measured, ceilings_of, finished, rates_of, settle, uncovered
from partage.settle.ends import gap_end, mean_end
from partage.settle.equal_share import find_gaps, find_left, find_means, find_risks
from partage.settle.first_gaps import gaps_of
from partage.settle.paper import paper_charge, paper_rates

SIDES = st.sampled_from([1.0, -1.0])

# --- plain and compiled -----------------------------------------------------------------------------------------


@given(n=COUNTS, m=COUNTS, mean=MEANS, other=MEANS, level=LEVELS, side=SIDES)
def test_the_end_of_a_gap_is_the_same_compiled(n, m, mean, other, level, side):
    assert gap_end(n, mean, m, other, level, side) == gap_end.compiled(n, mean, m, other, level, side)


@given(n=COUNTS, mean=MEANS, level=LEVELS, side=SIDES)
def test_the_end_of_a_mean_is_the_same_compiled(n, mean, level, side):
    assert mean_end(n, mean, level, side) == mean_end.compiled(n, mean, level, side)


@settings(max_examples=200)
@given(at_close=boards(hidden=True), expected=st.booleans())
def test_gaps_are_the_same_compiled(at_close, expected):
    lists = at_close.counts, at_close.record.sums, at_close.active, at_close.public
    arrays = (np.array(lists[0]), np.array(lists[1]), np.array(lists[2]), np.array(lists[3]))
    lower, upper = [9.0] * at_close.arms, [9.0] * at_close.arms
    best = gaps_of(*lists, at_close.horizon, expected, lower, upper)
    lower_compiled, upper_compiled = np.full(at_close.arms, 9.0), np.full(at_close.arms, 9.0)
    best_compiled = gaps_of.compiled(*arrays, at_close.horizon, expected, lower_compiled, upper_compiled)
    assert (best, lower, upper) == (best_compiled, lower_compiled.tolist(), upper_compiled.tolist())


@settings(max_examples=200)
@given(at_close=boards(hidden=True), coverage=st.sampled_from([0.5, 0.9, 0.99, 1 - 1e-12]))
def test_what_the_record_allows_is_the_same_compiled(at_close, coverage):
    arms, counts, sums = at_close.arms, at_close.counts, at_close.record.sums
    left, lower, upper = [False] * arms, [9.0] * arms, [9.0] * arms
    found = find_left(counts, sums, at_close.public, coverage, left)
    columns = np.array(counts), np.array(sums), np.array(at_close.public)
    left_compiled, lower_compiled, upper_compiled = np.zeros(arms, bool), np.full(arms, 9.0), np.full(arms, 9.0)
    assert find_left.compiled(*columns, coverage, left_compiled) == found
    assert left_compiled.tolist() == left

    find_gaps(counts, sums, left, at_close.public, coverage, lower, upper)
    find_gaps.compiled(*columns[:2], left_compiled, columns[2], coverage, lower_compiled, upper_compiled)
    assert (lower, upper) == (lower_compiled.tolist(), upper_compiled.tolist())

    find_means(counts, sums, coverage, lower, upper)
    find_means.compiled(*columns[:2], coverage, lower_compiled, upper_compiled)
    assert (lower, upper) == (lower_compiled.tolist(), upper_compiled.tolist())

    risks, risks_compiled = [9.0] * arms, np.full(arms, 9.0)
    find_risks(left, lower, upper, risks)
    find_risks.compiled(left_compiled, lower_compiled, upper_compiled, risks_compiled)
    assert risks == risks_compiled.tolist()


@given(at_close=boards(hidden=True), factor=st.sampled_from([4.0, 5.83, 9.0]))
def test_the_papers_formulas_are_the_same_compiled(at_close, factor):
    lists = at_close.counts, at_close.active, at_close.public
    arrays = [np.array(values) for values in lists]
    log_horizon = np.log(at_close.horizon)
    rates, compiled = [0.0] * at_close.arms, np.zeros(at_close.arms)
    paper_rates(*lists, log_horizon, factor, rates)
    paper_rates.compiled(*arrays, log_horizon, factor, compiled)
    assert rates == compiled.tolist()
    assert paper_charge(*lists, log_horizon, factor) == paper_charge.compiled(*arrays, log_horizon, factor)


# --- one settlement ---------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(closed=closed(), one=settlements(), other=settlements(("paper", "equal-share-expected")))
def test_finished_and_uncovered_depend_on_board_and_pulls_alone(closed, one, other):
    at_close, pulls = closed[0], closed[1].tolist()
    found = [settle(settlement, at_close, pulls) for settlement in (one, other)]
    for settlement, each in zip((one, other), found, strict=True):
        assert each.finished == finished(settlement, at_close)
        assert each.uncovered == (0.0 if settlement.name == "none" else uncovered(settlement, at_close, pulls))


@settings(max_examples=60)
@given(closed=closed(), settlement=settlements())
def test_what_was_measured_at_the_close_gives_the_same_settlement_later(closed, settlement):
    at_close, pulls = closed[0], closed[1].tolist()
    found = settle(settlement, at_close, pulls)
    assert settle(settlement, at_close, pulls, Measured(found.common_charge, found.ceilings)) == found


# --- what it needs ----------------------------------------------------------------------------------------------


def test_the_core_imports_neither_numpy_nor_numba():
    program = (
        "import sys, partage.settle.money; print(sorted({'numpy', 'numba', 'scipy', 'joblib'} & {*sys.modules}))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_ceilings_without_numba_name_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "partage.settle.ceiling", raising=False)
    for module in ("numba", "numpy", "partage.engine.rewards"):
        monkeypatch.setitem(sys.modules, module, None)  # importing it now fails, as if it were not installed
    at_close = board([90, 30], [0.9, 0.2], horizon=1000, gone=[1])
    for name in ("equal-share", "equal-share-expected"):
        assert ceilings_of(settlement_named(name), at_close, [100]) > (0,), "the formula needs no numba"
        settlement = settlement_named(name)._replace(alone="two-ucb")
        with pytest.raises(MissingExtra, match=r"pip install 'partage\[server\]'"):
            ceilings_of(settlement, at_close, [100])
        assert rates_of(settlement, at_close)[1] > 0
        stated = settle(settlement, at_close, [[60, 30], [90, 0]], Measured(5.0, (20.0, 20.0)))
        assert (stated.common_charge, stated.viable, stated.finished) == (5.0, True, True)
    assert ceilings_of(settlement_for("paper", BalancedETC()), at_close, [100]) is None


def test_a_rule_without_facts_fits_what_needs_a_record_only():
    class Mine:
        name, private = "mine", False

    assert settlement_for("default", Mine()).name == "none"
    for name in ("equal-share", "equal-share-expected", "none"):
        assert settlement_for(name, Mine()) == settlement_for(name, BalancedGLR())
    with pytest.raises(ValueError, match="paper is not defined for the rule mine"):
        settlement_for("paper", Mine())

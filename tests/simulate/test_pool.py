"""Pools, dues and limited losses in the simulator: the same amounts as in money, and what results say about them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.strategies import games

from partage import BalancedETC, BalancedGLR, Game, InputError, SharedIMED, Sharing, bernoulli, play, play_run
from partage.board import Board, Record
from partage.settle import core
from partage.settle.money import MICRO, settle
from partage.simulate.fold import COLUMNS

GAME = Game(bernoulli([0.9, 0.8, 0.6]), Sharing.round_robin(10, 3), 5000)
RULES = (BalancedETC(), BalancedGLR(), SharedIMED())
TERMS = (
    {"settlement": "pool", "prepaid": 2.0},
    {"settlement": "pool", "prepaid": 2.0, "underwriting": 7.5, "fee": 0.2},
    {"settlement": "pool", "prepaid": 500.0, "fee": 0.1},
    {"settlement": "pool", "prepaid": 0.0},
    {"settlement": "dues", "prepaid": 1.5},
    {"settlement": "equal-share-expected", "underwriting": 0.0},
    {"settlement": "equal-share", "underwriting": 3.0, "fee": 0.1},
)


def board_of(game, tally):
    board = Board(game.horizon, range(len(game.arms)), (game.sharing.sharers() > 0).tolist())
    board.record = Record(tally.broadcasts.tolist(), tally.sums.tolist())
    board.active = tally.active.tolist()
    return board


def settled_in_money(result, run):
    """Settle one run of a result from its tally, as live play does."""
    tally = play_run(result.game, result.rule, result.seed, run)
    paid = tally.explore + tally.commit if result.settlement.pays_commits else tally.explore
    return settle(result.settlement, board_of(result.game, tally), paid.tolist()), tally


def column(result, name):
    return result.folded.figures[:, COLUMNS.index(name)]


def check_against_money(result):
    total = np.zeros(result.game.agents)
    for run in range(result.runs):
        settled, tally = settled_in_money(result, run)
        rounding = 2e-6 * result.game.agents
        about = {"abs": rounding, "rel": 1e-9}
        assert column(result, "controller_profit")[run] * MICRO == pytest.approx(settled.profit, abs=rounding * MICRO)
        assert column(result, "scale")[run] == pytest.approx(settled.scale, abs=1e-5)
        assert column(result, "viable")[run] == settled.viable
        assert column(result, "finished")[run] == settled.finished
        paid = sum(each.compensation for each in settled.accounts) / MICRO
        assert column(result, "compensation")[run] == pytest.approx(paid, **about)
        charges = {each.charge for each in settled.accounts}
        assert column(result, "charge")[run] == pytest.approx(max(charges) / MICRO, abs=2e-6)
        regret = (tally.explore + tally.commit) @ result.game.gaps
        total += regret - np.array([each.net for each in settled.accounts]) / MICRO
    means = [result.incentive_regret(agent).mean for agent in range(result.game.agents)]
    assert means == pytest.approx((total / result.runs).tolist(), abs=1e-4)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("terms", TERMS, ids=str)
def test_the_simulator_settles_as_money_does(rule, terms):
    check_against_money(play(GAME, rule, runs=4, seed=3, baseline=False, **terms))


@settings(max_examples=40, deadline=None)
@given(game=games(), terms=st.sampled_from(TERMS), rule=st.sampled_from(RULES), seed=st.integers(0, 99))
def test_the_simulator_settles_any_game_as_money_does(game, terms, rule, seed):
    if not game.random:
        check_against_money(play(game, rule, runs=1, seed=seed, baseline=False, **terms))


def test_the_papers_settlement_within_an_underwriting():
    free = play(GAME, BalancedETC(), runs=5, baseline=False)
    limited = play(GAME, BalancedETC(), runs=5, baseline=False, underwriting=100)
    assert free.controller_profit.mean < -100
    assert free.scale is None
    assert column(limited, "controller_profit") == pytest.approx([-100.0] * 5)
    assert 0 < limited.scale.mean < 1
    assert limited.as_dict()["underwriting"] == 100
    assert column(limited, "charge").tolist() == column(free, "charge").tolist()
    for run in range(5):
        settled, _ = settled_in_money(limited, run)
        assert settled.profit == pytest.approx(-100 * MICRO, abs=20)
        assert settled.scale == pytest.approx(column(limited, "scale")[run])


def test_commits_change_nothing():
    """What an agent commits to enters no amount of a pool."""
    tally = play_run(GAME, BalancedGLR(), seed=1)
    board = board_of(GAME, tally)
    result = play(GAME, BalancedGLR(), runs=1, seed=1, settlement="pool", prepaid=100, baseline=False)
    found = core.settle(result.settlement, board, tally.explore.tolist())
    assert result.bill.mean == pytest.approx(core.worth(found.rates, tally.explore.sum(axis=0).tolist()))
    assert found.uncovered == 0


def test_the_json_of_a_pool():
    result = play(GAME, BalancedGLR(), runs=20, seed=0, settlement="pool", prepaid=3, underwriting=5, fee=0.1)
    found = result.as_dict()
    assert found["settlement"] == "pool"
    assert (found["prepaid"], found["underwriting"], found["fee"], found["coverage"]) == (3.0, 5.0, 0.1, None)
    assert found["pooled_charge"]["mean"] <= 3
    assert 0 < found["scale"]["mean"] < 1
    assert found["covered"]["mean"] == pytest.approx(
        column(result, "compensation").sum() / column(result, "explore_regret").sum()
    )
    assert found["covered"]["stderr"] > 0
    assert {*found["individually_rational_against"]} == {"best", "two-ucb"}
    assert found["individually_rational_against"]["best"] == found["individually_rational"]
    assert found["metrics"]["controller_profit"]["mean"] >= -5
    other = play(GAME, BalancedGLR(), runs=2, settlement="equal-share", baseline=False).as_dict()
    assert not {"prepaid", "underwriting", "scale", "pooled_charge", "covered"} & {*other}


def test_the_standard_error_of_what_is_covered_is_that_of_a_ratio():
    """Against the spread of the ratio over independent batches."""
    ratios = [
        play(GAME, BalancedGLR(), runs=20, seed=seed, settlement="pool", prepaid=2, baseline=False).covered
        for seed in range(40)
    ]
    spread = np.std([each.mean for each in ratios], ddof=1)
    stated = np.mean([each.stderr for each in ratios])
    assert 0.6 < stated / spread < 1.6


def test_nothing_is_covered_where_nothing_was_lost():
    game = Game(bernoulli([0.5, 0.5]), Sharing.round_robin(2, 2), 50)
    result = play(game, BalancedGLR(), runs=3, settlement="pool", prepaid=1, baseline=False)
    assert result.covered is None
    assert result.as_dict()["covered"] is None


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ({"settlement": "pool"}, "needs a prepaid amount"),
        ({"settlement": "pool", "prepaid": -1}, "The prepaid amount is -1"),
        ({"settlement": "pool", "prepaid": math.inf}, "The prepaid amount is inf"),
        ({"settlement": "none", "prepaid": 1}, "nobody prepays"),
        ({"settlement": "dues", "prepaid": 1, "underwriting": 2}, "the controller never loses"),
    ],
)
def test_bad_terms_are_refused(terms, sentence):
    with pytest.raises(InputError, match=sentence):
        play(GAME, BalancedGLR(), runs=1, **terms)

"""Attacks on Balanced-GLR that tolerates liars: the compiled loop of the bench."""

import math

import pytest
from bench.liars import BURY, HOLD, PROMOTE, THREE, attacked

from partage import BalancedGLR, Game, Sharing, bernoulli, play


@pytest.mark.parametrize("tolerate", [0, 1])
def test_without_liars_it_loses_what_a_game_does(tolerate):
    ours = attacked(THREE, 5, 500, tolerate, 0, 1, PROMOTE, 1, runs=60, seed=1)[:, 0] * 5
    game = Game(bernoulli(THREE), Sharing.everything(5, 3), 500)
    known = play(game, BalancedGLR(tolerate=tolerate), runs=300, seed=1, settlement="none", baseline=False)
    error = math.hypot(ours.std(ddof=1) / math.sqrt(len(ours)), known.overall_regret.stderr)
    assert abs(ours.mean() - known.overall_regret.mean) < 4 * error


def test_one_liar_of_eleven_who_asks_three_times_as_often_promotes_an_arm():
    """Row 2 of the attacks."""
    believed = attacked(THREE, 11, 10**4, 0, 1, 3, PROMOTE, 1, runs=10, seed=1)
    assert not believed[:, 2].any()
    assert believed[:, 0].mean() > 900
    tolerated = attacked(THREE, 11, 10**4, 1, 1, 3, PROMOTE, 1, runs=10, seed=1)
    assert tolerated[:, 2].all()
    assert tolerated[:, 0].mean() < 100


@pytest.mark.parametrize("attack", [PROMOTE, BURY, HOLD])
@pytest.mark.parametrize("liars", [1, 2])
def test_as_many_liars_as_are_tolerated_do_not_win(attack, liars):
    found = attacked(THREE, 11, 4000, liars, liars, 1, attack, 2, runs=10, seed=2)
    assert found[:, 2].all()
    assert not found[:, 3].any()

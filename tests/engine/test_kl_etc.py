"""KL-ETC on Bernoulli arms: intervals, the queue, quiet stretches and circles change no pull."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.strategies import balances, games

from partage import Bernoulli, Game, Sharing, bernoulli
from partage.engine import Run, broadcast_by_broadcast, kl_etc
from partage.engine import rewards as tape
from partage.engine.circles import CIRCLES_AFTER
from partage.engine.reference import play_reference
from partage.rules import KLETC

MEANS = st.one_of(st.sampled_from([0.0, 1.0, 0.5, 0.9, 0.1, 0.51]), st.floats(0, 1))
SEEDS = st.integers(0, 2**63)


def played(game, rule, seed, plain=False, after=CIRCLES_AFTER, checkpoints=()):
    """Return the tally and the curve of one run, with the kernel or with the plain one."""
    run = Run(game, np.array(checkpoints, np.int64))
    run.start(tape.run_keys(seed, 0, 1)[0])
    if plain:
        broadcast_by_broadcast.play(run, kl_etc.rule_table(rule, run.table))
    else:
        kl_etc.play(run, rule, np.int64(after))
    return run.tally(), run.curve.copy()


@settings(max_examples=80)
@given(
    game=games(every_arm_shared=True, arms=st.builds(Bernoulli, MEANS), horizons=st.integers(2, 400)),
    balance=balances(),
    after=st.sampled_from([1, 20, int(CIRCLES_AFTER)]),
    seed=SEEDS,
)
def test_the_kernel_equals_the_reference(game, balance, after, seed):
    tally, _ = played(game, KLETC(balance), seed, after=after)
    assert tally == play_reference(game, KLETC(balance), tape.run_keys(seed, 0, 1)[0])


@settings(max_examples=40)
@given(
    game=games(
        every_arm_shared=True, arms=st.builds(Bernoulli, MEANS), horizons=st.sampled_from([3_000, 10_000, 40_000])
    ),
    balance=balances(),
    after=st.sampled_from([1, 100, int(CIRCLES_AFTER)]),
    steps=st.lists(st.integers(1, 3_000), max_size=3, unique=True).map(sorted),
    seed=SEEDS,
)
def test_long_games_equal_the_plain_kernel(game, balance, after, steps, seed):
    tally, curve = played(game, KLETC(balance), seed, after=after, checkpoints=steps)
    plain, its_curve = played(game, KLETC(balance), seed, plain=True, checkpoints=steps)
    assert tally == plain
    assert curve == pytest.approx(its_curve)


@pytest.mark.parametrize("balance", [1.0, 1.7, math.inf])
def test_many_arms_equal_the_plain_kernel(balance):
    """Arms are eliminated all the time, some by arms that are eliminated themselves."""
    game = Game(
        bernoulli(np.linspace(0.9, 0.0, 100)), Sharing.round_robin(150, 100).in_shuffled_order(), horizon=1_000
    )
    for seed in range(2):
        tally, _ = played(game, KLETC(balance), seed)
        assert tally == played(game, KLETC(balance), seed, plain=True)[0]
        assert (tally.eliminated_step >= 0).sum() > 50


def test_records_beyond_the_tables_equal_the_plain_kernel():
    """Three arms that hardly differ: changes of leader, long quiet stretches and circles in between."""
    game = Game(bernoulli([0.5, 0.5, 0.49]), Sharing.round_robin(7, 3), 60_000)
    tally, _ = played(game, KLETC(), 1, after=100)
    assert tally == played(game, KLETC(), 1, plain=True)[0]
    assert tally.broadcasts.sum() > 2**17

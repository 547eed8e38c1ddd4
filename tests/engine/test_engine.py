"""The engine against the reference: the same pulls of every agent, the same board, the same eliminations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.strategies import balances, games, rewards, rules

from partage import BalancedETC, Constant, FullSharing, Game, NoProtocol, Sharing, TwoUCB, bernoulli, play, play_run
from partage.engine import rewards as tape
from partage.engine.balanced_etc import play_balanced_etc, sharers_in_order
from partage.engine.reference import play_reference
from partage.engine.tally import game_table, new_outcome, tally_of

SEEDS = st.integers(0, 2**63)


@settings(max_examples=1500)
@given(game=games(), rule=rules(), seed=SEEDS)
def test_engine_equals_reference(game, rule, seed):
    assert play_run(game, rule, seed) == play_run(game, rule, seed, reference=True)


@settings(max_examples=400)
@given(
    game=games(every_arm_shared=True, arms=st.builds(Constant, rewards()), horizons=st.integers(150, 800)),
    balance=balances(),
    seed=SEEDS,
)
def test_engine_equals_reference_through_eliminations(game, balance, seed):
    rule = BalancedETC(balance)
    tally = play_run(game, rule, seed)
    assert tally == play_run(game, rule, seed, reference=True)


@settings(max_examples=300)
@given(game=games(every_arm_shared=True), seed=SEEDS, after=st.sampled_from([0, 1, 3, 20]))
def test_circles_equal_walking(game, seed, after):
    """Circles are looked for only in long runs; here from the start, so that short games go through them."""
    key = tape.run_keys(seed, 0, 1)[0]
    table = game_table(game)
    tie_order = tape.permutation(key[0], key[1], tape.TIE_ORDER, table.arms)
    order = np.arange(table.agents)
    if table.shuffled:
        order = tape.permutation(key[0], key[1], tape.AGENT_ORDER, table.agents)
    outcome = new_outcome(table)
    nothing, no_curve = np.zeros(0, np.int64), np.zeros(0)
    sharers = sharers_in_order(table, order)
    play_balanced_etc(table, 1.0, key[0], key[1], tie_order, order, sharers, nothing, no_curve, outcome, after)
    assert tally_of(table, outcome) == play_reference(game, BalancedETC(1), key)


@pytest.mark.parametrize("agents", [1, 2, 5])
def test_long_games_with_equal_arms(agents):
    """Thousands of broadcasts without an elimination: long quiet stretches, many changes of leader, circles."""
    game = Game(
        bernoulli([0.5, 0.5]), Sharing.neighbours(agents, 2, 2 if agents == 1 else 1), horizon=40_000 // agents
    )
    for seed in range(2):
        assert play_run(game, BalancedETC(), seed) == play_run(game, BalancedETC(), seed, reference=True)


class Spy:
    """A rule that notes which arm each pull was on."""

    def __init__(self, rule):
        self.rule, self.name, self.private = rule, rule.name, rule.private
        self.pulled = []

    def decide(self, board, shares, own):
        pull = self.rule.decide(board, shares, own)
        self.pulled.append(pull.arm)
        return pull

    def revise(self, board):
        self.rule.revise(board)


@settings(max_examples=150)
@given(
    game=games(every_arm_shared=True),
    rule=st.one_of(st.builds(BalancedETC, balances()), st.just(TwoUCB())),
    steps=st.lists(st.floats(0, 1), min_size=1, max_size=4),
    seed=st.integers(0, 10**6),
)
def test_regret_over_time_is_that_of_the_pulls_so_far(game, rule, steps, seed):
    checkpoints = sorted({max(1, round(step * game.horizon)) for step in steps})
    result = play(game, rule, runs=1, seed=seed, checkpoints=checkpoints, baseline=False)
    spy = Spy(rule)
    play_reference(game, spy, tape.run_keys(seed, 0, 1)[0])
    regret = np.cumsum(game.gaps[spy.pulled])
    expected = [regret[step * game.agents - 1] for step in checkpoints]
    assert [estimate.mean for estimate in result.curve] == pytest.approx(expected)


@settings(max_examples=200)
@given(game=games(), rule=rules(), seed=SEEDS)
def test_every_tally_adds_up(game, rule, seed):
    tally = play_run(game, rule, seed)
    assert (tally.explore.sum(axis=1) + tally.commit.sum(axis=1) == game.horizon).all()
    assert (tally.explore.sum(axis=0) == tally.broadcasts).all()
    if not isinstance(rule, FullSharing):
        shared = np.zeros_like(tally.explore, dtype=bool)
        for agent in range(game.agents):
            shared[agent, game.sharing.of(agent)] = True
        assert not tally.explore[~shared].any()
    assert ((tally.eliminated_step >= 0) <= ~tally.active).all()
    assert (tally.broadcasts[tally.eliminated_step >= 0] > 0).all()


def test_balanced_broadcasts_stay_balanced():
    """With B = 1 active arms are never more than one broadcast apart."""
    game = Game(bernoulli([0.6, 0.5, 0.4]), Sharing.lists([[0], [1], [2], [2], [2]], 3), horizon=3000)
    for seed in range(20):
        tally = play_run(game, BalancedETC(1), seed)
        broadcasts = tally.broadcasts[tally.active]
        assert broadcasts.max() - broadcasts.min() <= 1


def test_a_horizon_of_a_trillion():
    game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=1000, arms=2), horizon=10**12)
    tally = play_run(game, BalancedETC())
    assert (tally.explore.sum(axis=1) + tally.commit.sum(axis=1) == 10**12).all()
    assert tally.active.tolist() == [True, False]


def test_same_seed_same_result_on_any_number_of_threads():
    game = Game(bernoulli([0.9, 0.7, 0.6]), Sharing.random(agents=9, arms=3).in_shuffled_order(), horizon=2000)
    one, three = (play(game, BalancedETC(2), runs=70, seed=3, jobs=jobs) for jobs in (1, 3))
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one.folded, three.folded, strict=True))


def test_a_run_does_not_depend_on_how_many_there_are():
    game = Game(bernoulli([0.9, 0.7, 0.6]), Sharing.round_robin(agents=4, arms=3), horizon=500)
    few, many = (play(game, NoProtocol(), runs=runs, seed=8, baseline=False) for runs in (3, 70))
    assert np.array_equal(few.folded.figures, many.folded.figures[:3], equal_nan=True)


def test_two_rules_see_the_same_rewards():
    """Common random numbers: the k-th broadcast of an arm pays the same under any rule."""
    game = Game(bernoulli([0.5, 0.5]), Sharing.round_robin(agents=2, arms=2), horizon=300)
    one, two = play_run(game, BalancedETC(1), 5), play_run(game, BalancedETC(math.inf), 5)
    rewards = tape.Rewards(tape.run_keys(5, 0, 1)[0], game_table(game).rewards)
    for tally in (one, two):
        for arm in range(2):
            tape_sum = sum(rewards.broadcast(arm, entry) for entry in range(tally.broadcasts[arm]))
            assert tally.sums[arm] == tape_sum

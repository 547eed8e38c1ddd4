"""The engine against the reference: the same pulls of every agent, the same board, the same eliminations."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.support.strategies import PARAMETERS, balances, games, rewards

from partage import (
    BalancedETC,
    Constant,
    FullSharing,
    Game,
    NoProtocol,
    SharedIMED,
    Sharing,
    bernoulli,
    play,
    play_run,
)
from partage.contrasts import pieces
from partage.engine import Run, balanced_etc, has_kernel, play_runs
from partage.engine import rewards as tape
from partage.engine.reference import play_reference
from partage.engine.tally import game_table
from partage.rules import RULES, decider

SEEDS = st.integers(0, 2**63)


def assume_connected(name, game):
    """Skip games in which agents do not connect all arms, which network-glr refuses."""
    shares = [game.sharing.of(agent) for agent in range(game.agents)]
    assume(name != "network-glr" or len(pieces(shares, set().union(*shares))) < 2)


def rules(name):
    """A built-in rule with any parameters; one that is not listed above keeps its default."""
    known = [parameter.name for parameter in RULES[name].parameters if parameter.name in PARAMETERS]
    return st.builds(RULES[name], **{parameter: PARAMETERS[parameter] for parameter in known})


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=150)
@given(data=st.data(), game=games(), seed=SEEDS)
def test_engine_equals_reference(name, data, game, seed):
    rule = data.draw(rules(name))
    assume_connected(name, game)
    assert has_kernel(rule)
    assert play_run(game, rule, seed) == play_run(game, rule, seed, reference=True)


@settings(max_examples=60)
@given(data=st.data(), name=st.sampled_from(["balanced-glr", "kl-etc"]), game=games(), seed=SEEDS)
def test_bounded_influence_equals_the_reference(data, name, game, seed):
    tolerate = data.draw(st.integers(0, min(3, game.agents - 1)))
    chosen = data.draw(rules(name).filter(lambda rule: getattr(rule, "evidence", "") != "betting"))
    rule = replace(chosen, tolerate=tolerate)
    assert play_run(game, rule, seed) == play_run(game, rule, seed, reference=True)


@settings(max_examples=150)
@given(game=games(), lead=st.sampled_from([1.0, 4.0]), own=st.integers(1, 6), clock=PARAMETERS["clock"], seed=SEEDS)
def test_own_rewards_equal_the_reference(game, lead, own, clock, seed):
    rule = SharedIMED(lead, own, clock)
    assert play_run(game, rule, seed) == play_run(game, rule, seed, reference=True)


@settings(max_examples=20)
@given(
    game=games(every_arm_shared=True, horizons=st.integers(500, 3000)),
    own=st.integers(1, 40),
    seed=SEEDS,
)
def test_own_rewards_equal_the_reference_in_long_games(game, own, seed):
    """Agents settle, and pulls up to the next tick are counted at once."""
    rule = SharedIMED(own=own)
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
    run = Run(game, np.zeros(0, np.int64))
    run.start(key)
    balanced_etc.play(run, BalancedETC(1), np.int64(after))
    assert run.tally() == play_reference(game, BalancedETC(1), key)


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
        self.prepare, self.decide_alike = rule.prepare, decider(rule)
        self.keeps = getattr(rule, "keeps", None)
        self.pulled = []

    def decide(self, board, shares, own, draws):
        pull = self.decide_alike(board, shares, own, draws)
        self.pulled.append(pull.arm)
        return pull

    def revise(self, board):
        self.rule.revise(board)


@pytest.mark.parametrize("name", [name for name in RULES if name != "network-glr"])  # test_uneven.py has that one
@settings(max_examples=30)
@given(
    data=st.data(),
    game=games(),
    steps=st.lists(st.floats(0, 1), min_size=1, max_size=4),
    seed=st.integers(0, 10**6),
)
def test_regret_over_time_is_that_of_the_pulls_so_far(name, data, game, steps, seed):
    checkpoints = sorted({max(1, round(step * game.horizon)) for step in steps})
    rule = data.draw(rules(name))
    key, spy = tape.run_keys(seed, 0, 1), Spy(rule)
    (run,) = play_runs(game, spy.rule, key, checkpoints)
    curve = run.curve.tolist()
    (run,) = play_runs(game, spy, key, checkpoints)
    assert curve == pytest.approx(run.curve)
    regret = np.cumsum(game.gaps[spy.pulled])
    assert curve == pytest.approx([regret[step * game.agents - 1] for step in checkpoints])


def test_a_rule_of_ones_own_is_played_by_the_reference():
    class Careful(BalancedETC):
        """A built-in rule, changed: the kernel would not know."""

        def open_arms(self, board, slack=0.0):
            return []

    game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(2, 2), horizon=50)
    assert not has_kernel(Careful())
    assert play_run(game, Careful()).explore.sum() == 0


def test_runs_of_one_game_and_each_alone_are_the_same():
    """A run is written over the one before; nothing of that one is left."""
    game = Game(bernoulli([0.9, 0.7, 0.6]), Sharing.round_robin(5, 3).in_shuffled_order(), horizon=300)
    keys = tape.run_keys(3, 0, 6)
    for rule in (
        BalancedETC(),
        *(RULES[name]() for name in ("balanced-glr", "two-ucb", "thompson", "imed", "kl-ucb")),
    ):
        together = [run.tally() for run in play_runs(game, rule, keys)]
        assert together == [play_run(game, rule, seed=3, run=run) for run in range(6)]


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=25)
@given(data=st.data(), game=games(), seed=SEEDS)
def test_every_tally_adds_up(name, data, game, seed):
    rule = data.draw(rules(name))
    assume_connected(name, game)
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


@settings(max_examples=60)
@given(data=st.data(), game=games(), first=SEEDS)
def test_one_run_takes_rules_in_any_order(data, game, first):
    """A run remembers the code of kernels, by the types of what they take."""
    room = None
    for key in tape.run_keys(first, 0, 6):
        name = data.draw(st.sampled_from(["balanced-etc", "balanced-glr", "shared-imed", "kl-etc"]))
        rule = data.draw(rules(name))
        (played,) = play_runs(game, rule, [key])
        expected = played.tally()
        (room,) = play_runs(game, rule, [key], again=room)
        assert room.tally() == expected

"""The game as PettingZoo environments: their own tests, who sees what, and rules as players."""

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, render_test, seed_test
from tests.engine.test_engine import assume_connected
from tests.support.strategies import games, rules

from partage import BalancedETC, FullSharing, Game, InputError, RandomBernoulli, Sharing, bernoulli, compare, play_run
from partage.envs import RulePlayer, as_rule, env, parallel_env, play_rule
from partage.traits import Traits

GAMES = [
    Game(bernoulli([0.9, 0.5]), Sharing.round_robin(3, 2), horizon=30, agent_names=["Ann", "Bo", "Cy"]),
    Game(bernoulli([0.9, 0.5, 0.2]), Sharing.lists([[0], [1], []], 3).in_shuffled_order(), horizon=20),
    Game([RandomBernoulli(), RandomBernoulli()], Sharing.random(2, 2), horizon=10),
]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PettingZoo's tests warn about what they would do otherwise
        yield


@pytest.mark.parametrize("game", GAMES)
def test_the_environments_pass_the_tests_of_pettingzoo(game, capsys):
    api_test(env(game), num_cycles=150)
    seed_test(lambda: env(game), num_cycles=60)
    render_test(lambda render_mode=None: env(game, render_mode))
    parallel_api_test(parallel_env(game), num_cycles=60)
    parallel_seed_test(lambda: parallel_env(game), num_cycles=40)


def actions(seed: int, playing) -> Iterator[int]:
    """Yield allowed actions that depend on the turn alone."""
    generator = np.random.default_rng(seed)
    while True:
        mask = playing.world.observation(playing.number_of[playing.agent_selection])["action_mask"]
        yield int(generator.choice(np.flatnonzero(mask)))


@settings(max_examples=40, deadline=None)
@given(game=games(horizons=st.integers(2, 12)), seed=st.integers(0, 1000))
def test_nobody_sees_a_private_reward_of_another(game, seed):
    """Change every private reward of one agent, with all actions fixed: the others see not one bit of it."""
    victim = seed % game.agents

    def seen(change: bool) -> list:
        playing = env(game, render_mode="ansi")
        playing.reset(seed=seed)
        private = playing.world.rewards.private
        if change:

            def changed(agent, arm, entry):
                reward = private(agent, arm, entry)
                return (reward + 0.37) % 1.0 if agent == victim else reward

            playing.world.rewards = type(
                "", (), {"private": staticmethod(changed), "broadcast": playing.world.rewards.broadcast}
            )
        found = []
        chosen = actions(seed, playing)
        for _ in range(game.agents * game.horizon):
            playing.step(next(chosen))
            for agent in playing.agents:
                if playing.number_of[agent] != victim:
                    told = playing.observe(agent)
                    kept = (playing.rewards[agent], playing._cumulative_rewards[agent], playing.infos[agent])
                    found.append((agent, told["observation"].tobytes(), told["action_mask"].tobytes(), kept))
            found.append((playing.agent_selection, playing.render(), tuple(playing.world.broadcasts)))
        return found

    assert seen(change=False) == seen(change=True)


def test_an_agent_sees_its_own_private_rewards():
    """So that the test above could fail."""
    playing = env(GAMES[0])
    playing.reset(seed=1)
    playing.step(1)
    counts, _, own_counts, own_sums = playing.observe("Ann")["observation"].reshape(4, -1)
    assert (counts.tolist(), own_counts.tolist()) == ([0, 0], [0, 1])
    assert own_sums[1] == playing.rewards["Ann"]
    assert playing.observe("Bo")["observation"].sum() == 0


@settings(max_examples=30, deadline=None)
@given(rule=rules(), game=games(horizons=st.sampled_from([2, 12, 60])), seed=st.integers(0, 2**32))
def test_any_rule_plays_as_the_reference_does(rule, game, seed):
    assume_connected(rule.name, game)
    assume(not isinstance(rule, FullSharing))  # it plays another game; see below
    tally, expected = play_rule(game, rule, seed), play_run(game, rule, seed, reference=True)
    assert np.array_equal(tally.explore, expected.explore)
    assert np.array_equal(tally.commit, expected.commit)
    assert tally.sums.tolist() == expected.sums.tolist()
    for name in ("broadcasts", "active", "eliminated_step", "eliminated_agent"):
        assert getattr(tally, name).tolist() == getattr(expected, name).tolist()


def test_a_rule_that_plays_another_game_is_refused():
    playing = env(GAMES[0])
    playing.reset(seed=0)
    with pytest.raises(InputError, match=r"use env\(rule.prepare\(game\)\)"):
        RulePlayer(FullSharing(), playing)
    game = FullSharing().prepare(GAMES[0])
    assert np.array_equal(play_rule(game, FullSharing(), 3).explore, play_run(GAMES[0], FullSharing(), 3).explore)


def test_a_policy_is_compared_with_rules():
    def first_arm(seen):
        arms = len(seen["action_mask"]) // 2
        return arms if seen["action_mask"][arms] else 0

    game = GAMES[0]
    found = compare(game, [BalancedETC(), as_rule(first_arm, "first arm")], runs=3, baseline=False)
    assert found.results["first arm"].overall_regret == (0.0, 0.0)
    assert found.results["first arm"].broadcasts.mean == 2 * game.horizon, "Ann and Cy share the first arm"
    playing = env(game)
    playing.reset(seed=0)
    for _ in range(game.agents * game.horizon):
        playing.step(first_arm(playing.last()[0]))
    assert playing.world.explore.tolist() == play_run(game, as_rule(first_arm)).explore.tolist()


def test_a_parallel_step_shows_broadcasts_to_the_next_step():
    playing = parallel_env(GAMES[0])
    seen, _ = playing.reset(seed=1)
    assert all(not one["observation"].any() for one in seen.values())
    seen, rewards, ended, _, _ = playing.step({"Ann": 2, "Bo": 3, "Cy": 1})
    counts, sums, own, own_sums = seen["Cy"]["observation"].reshape(4, -1)
    assert (counts.tolist(), own.tolist()) == ([1, 1], [0, 1])
    assert sums.tolist() == [rewards["Ann"], rewards["Bo"]]
    assert own_sums[1] == rewards["Cy"]
    assert not any(ended.values())


def test_what_is_not_allowed_is_refused():
    playing, parallel = env(GAMES[0]), parallel_env(GAMES[0])
    playing.reset(seed=0)
    parallel.reset(seed=0)
    with pytest.raises(InputError, match="one of 0 to 3"):
        playing.step(4)
    with pytest.raises(InputError, match="lack one of Cy"):
        parallel.step({"Ann": 0, "Bo": 0})
    with pytest.raises(InputError, match="one of 0 to 3"):
        parallel.step({"Ann": 0, "Bo": 0, "Cy": -1})
    assert parallel.world.pulls == 0
    with pytest.raises(InputError, match="render mode is 'film'"):
        env(GAMES[0], "film")
    uneven = Game(bernoulli([0.9]), Sharing.round_robin(1, 1), 10, traits=[Traits(delay=2)])
    with pytest.raises(InputError, match="an environment is of a game without"):
        env(uneven)


def test_an_arm_that_is_not_shared_is_never_broadcast():
    playing = env(GAMES[0])
    playing.reset(seed=0)
    playing.step(3)  # Ann shares only the first arm
    assert not playing.world.broadcasts
    assert playing.world.commit.tolist() == [[0, 1], [0, 0], [0, 0]]


def test_runs_are_those_of_the_simulator():
    """`reset()` after `reset(seed)` starts the next run of that seed."""
    game = GAMES[1]
    playing = env(game)
    playing.reset(seed=5)
    playing.reset()
    player = RulePlayer(BalancedETC(), playing)
    for agent in playing.agent_iter():
        _, reward, terminated, _, _ = playing.last()
        playing.step(None if terminated else player.act(agent, reward))
    assert playing.world.explore.tolist() == play_run(game, BalancedETC(), seed=5, run=1).explore.tolist()

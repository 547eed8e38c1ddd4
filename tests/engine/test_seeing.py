"""Thompson, KL-UCB and IMED on what is shared, against the reference and an independent implementation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.strategies import arms, games

from partage import Game, Sharing, bernoulli, play, play_run
from partage.rules import make_rule

NAMES = ("thompson", "kl-ucb", "imed")
SEEDS = st.integers(0, 2**63)


@pytest.mark.parametrize("sees", ["shared", "both"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("every_arm_shared", [True, False])
@settings(max_examples=60)
@given(data=st.data(), seed=SEEDS)
def test_engine_equals_reference(name, sees, every_arm_shared, data, seed):
    game, rule = data.draw(games(every_arm_shared, arms())), make_rule(name, sees=sees)
    assert play_run(game, rule, seed) == play_run(game, rule, seed, reference=True)


@pytest.mark.parametrize("sees", ["shared", "both"])
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30)
@given(game=games(), seed=SEEDS)
def test_every_pull_of_a_shared_arm_is_broadcast_and_nothing_is_eliminated(name, sees, game, seed):
    tally = play_run(game, make_rule(name, sees=sees), seed)
    shared = np.zeros_like(tally.explore, dtype=bool)
    for agent in range(game.agents):
        shared[agent, game.sharing.of(agent)] = True
    assert not tally.commit[shared].any()
    assert not tally.explore[~shared].any()
    assert (tally.active == shared.any(axis=0)).all()


@pytest.mark.parametrize("name", NAMES)
def test_where_nobody_shares_to_see_both_is_to_see_ones_own(name):
    game = Game(bernoulli([0.9, 0.7, 0.6]), Sharing.nothing(agents=3, arms=3), horizon=400)
    for seed in range(5):
        assert play_run(game, make_rule(name, sees="both"), seed) == play_run(game, make_rule(name), seed)


@pytest.mark.parametrize("name", NAMES)
def test_where_everyone_shares_everything_to_see_both_is_to_see_what_is_shared(name):
    game = Game(bernoulli([0.9, 0.7, 0.6]), Sharing.everything(agents=3, arms=3), horizon=400)
    for seed in range(5):
        shared, both = (play_run(game, make_rule(name, sees=sees), seed) for sees in ("shared", "both"))
        assert shared == both


@pytest.mark.parametrize("name", ["kl-ucb", "imed"])
def test_an_arm_that_is_never_broadcast_is_pulled_once_by_those_who_see_what_is_shared(name):
    """The best arm is hidden: each agent tries it once, learns nothing, and follows the broadcasts."""
    game = Game(bernoulli([0.9, 0.5, 0.1]), Sharing.lists([[1], [2], []], 3), horizon=500)
    for seed in range(5):
        tally = play_run(game, make_rule(name, sees="shared"), seed)
        assert tally.commit[:, 0].tolist() == [1, 1, 1]


# --- an independent implementation ----------------------------------------------------------------------------


def divergence(p, q):
    p, q = np.clip(p, 1e-12, 1 - 1e-12), np.clip(q, 1e-12, 1 - 1e-12)
    return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))


def thompson(n, mean, generator):
    return generator.beta(1 + n * mean, 1 + n * (1 - mean))


def imed(n, mean, generator):
    best = mean.max(axis=1, keepdims=True)
    return -n * divergence(mean, best) - np.log(np.maximum(n, 1))


def kl_ucb(n, mean, generator):
    low, high = mean, np.ones_like(mean)
    level = np.log(np.maximum(n.sum(axis=1, keepdims=True), 1))
    for _ in range(25):
        middle = (low + high) / 2
        inside = n * divergence(mean, middle) <= level
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return low


INDICES = {"thompson": thompson, "imed": imed, "kl-ucb": kl_ucb}
MEANS = np.array([0.9, 0.8, 0.7])


def independent_regret(name, both, agents, horizon, runs, generator):
    """The overall regret of many runs side by side; agent m shares arm m mod 3, ties are broken at random."""
    every, arms = np.arange(runs), len(MEANS)
    n, total = np.zeros((agents + 1, runs, arms)), np.zeros((agents + 1, runs, arms))  # the last row is public
    regret = np.zeros(runs)
    for _ in range(horizon):
        for agent in range(agents):
            seen, paid = (x[-1] + x[agent] if both else x[-1] for x in (n, total))
            index = INDICES[name](seen, paid / np.maximum(seen, 1), generator)
            if name != "thompson":
                wanted = (seen == 0) & ((n[agent] == 0) | (np.arange(arms) == agent % arms))
                index = np.where(wanted, 1e9, np.where(seen == 0, -1e9, index))
            arm = np.argmax(index + 1e-6 * generator.random(index.shape), axis=1)
            record = np.where(arm == agent % arms, agents, agent)
            n[record, every, arm] += 1
            total[record, every, arm] += generator.random(runs) < MEANS[arm]
            regret += MEANS.max() - MEANS[arm]
    return regret


@pytest.mark.parametrize(
    ("name", "sees", "horizon"),
    [
        ("imed", "both", 3000),
        ("thompson", "both", 1500),
        ("kl-ucb", "both", 500),
        ("imed", "shared", 1000),
        ("thompson", "shared", 1000),
        ("kl-ucb", "shared", 500),
    ],
)
def test_regret_is_that_of_an_independent_implementation(name, sees, horizon):
    """Within four standard errors of each other; the seeds are fixed."""
    agents, runs = 3, 600
    game = Game(bernoulli(MEANS.tolist()), Sharing.round_robin(agents, 3), horizon)
    ours = play(game, make_rule(name, sees=sees), runs=runs, seed=1, baseline=False).overall_regret
    theirs = independent_regret(name, sees == "both", agents, horizon, runs, np.random.default_rng(1))
    stderr = np.hypot(ours.stderr, theirs.std(ddof=1) / np.sqrt(runs))
    assert abs(ours.mean - theirs.mean()) < 4 * stderr
    assert stderr < 0.06 * ours.mean  # close enough to notice

"""Members that differ or lie: pull by pull, with the rules of Partage."""

import math

import numpy as np
import pytest
from bench.when_not_to_collaborate import RULES, mixed

from partage import Game, Sharing, bernoulli, play

MEANS = [0.9, 0.5]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_members_that_are_alike_and_honest_lose_what_a_game_does(rule):
    ours = mixed(rule, np.tile(MEANS, (4, 1)), 100, 60, seed=1).sum(axis=1)
    game = Game(bernoulli(MEANS), Sharing.round_robin(4, 2), 100)
    known = play(game, rule, runs=400, seed=1, settlement="none", baseline=False).overall_regret
    error = math.hypot(ours.std(ddof=1) / math.sqrt(len(ours)), known.stderr)
    assert abs(ours.mean() - known.mean) < 4 * error


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_member_that_differs_follows_the_others(rule):
    means = np.tile(MEANS, (10, 1))
    means[9] = [0.5, 0.9]
    regrets = mixed(rule, means, 200, 4, seed=1)
    assert regrets[:, 9].mean() > 0.4 * 200 / 2
    assert regrets[:, :9].mean() < regrets[:, 9].mean() / 2


def test_a_lie_is_believed():
    rule = RULES["Shared-IMED"]
    regrets = mixed(rule, np.tile(MEANS, (4, 1)), 200, 4, seed=1, told=lambda agent, arm, reward: 1.0 - reward)
    assert regrets.sum(axis=1).mean() > 0.4 * 800 / 2

"""Rules that each agent plays alone, against implementations that have nothing in common with ours but the papers."""

import numpy as np
import pytest

from partage import Game, Sharing, bernoulli, play
from partage.rules import RULES

MEANS = np.arange(9, -1, -1) / 10
HORIZON, RUNS = 1000, 400


def divergence(p, q):
    p, q = np.clip(p, 1e-12, 1 - 1e-12), np.clip(q, 1e-12, 1 - 1e-12)
    return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))


def two_ucb(n, s, step, generator):
    return s / n + np.sqrt(2 * np.log(HORIZON) / n)


def kl_ucb(n, s, step, generator):
    low, high = s / n, np.ones_like(s)
    for _ in range(25):
        middle = (low + high) / 2
        inside = n * divergence(s / n, middle) <= np.log(step)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return low


def imed(n, s, step, generator):
    best = (s / n).max(axis=1, keepdims=True)
    return -(n * divergence(s / n, best) + np.log(n))


def thompson(n, s, step, generator):
    return generator.beta(1 + s, 1 + n - s)


INDICES = {"two-ucb": two_ucb, "kl-ucb": kl_ucb, "imed": imed, "thompson": thompson}


def independent_regret(index, generator):
    """The regret of many runs side by side: pull every arm once (Thompson need not), then the highest index."""
    n, s = np.zeros((RUNS, len(MEANS))), np.zeros((RUNS, len(MEANS)))
    every = np.arange(RUNS)
    for step in range(HORIZON):
        if step < len(MEANS) and index is not thompson:
            arm = np.full(RUNS, step)
        else:
            noise = 1e-9 * generator.random(n.shape)  # ties at random
            arm = np.argmax(index(n, s, step, generator) + noise, axis=1)
        s[every, arm] += generator.random(RUNS) < MEANS[arm]
        n[every, arm] += 1
    return (n * (MEANS.max() - MEANS)).sum(axis=1)


@pytest.mark.parametrize("name", INDICES)
def test_regret_is_that_of_an_independent_implementation(name):
    """Within four standard errors of each other; the seeds are fixed."""
    game = Game(bernoulli(MEANS.tolist()), Sharing.nothing(agents=1, arms=10), HORIZON)
    ours = play(game, RULES[name](), runs=RUNS, seed=1, baseline=False).overall_regret
    theirs = independent_regret(INDICES[name], np.random.default_rng(1))
    stderr = np.hypot(ours.stderr, theirs.std(ddof=1) / np.sqrt(RUNS))
    assert abs(ours.mean - theirs.mean()) < 4 * stderr
    assert stderr < 0.04 * ours.mean  # close enough to notice

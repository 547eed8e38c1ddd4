"""river: `UCB` with delta = 1, which its docs call UCB1, and `ThompsonSampling` with `proba.Beta(1, 1)`."""

import random

from problem import MEANS, main
from river import bandit, proba


def play(algorithm, steps, seed):
    """Play one run."""
    chance, arms = random.Random(seed), list(range(len(MEANS)))
    if algorithm == "thompson":
        policy = bandit.ThompsonSampling(reward_obj=proba.Beta(1, 1), seed=seed)
    else:
        policy = bandit.UCB(delta=1, seed=seed)
    counts = [0] * len(MEANS)
    for _ in range(steps):
        arm = policy.pull(arms)
        policy.update(arm, chance.random() < MEANS[arm])
        counts[arm] += 1
    return [counts]


if __name__ == "__main__":
    main(play)

"""mabwiser: `UCB1` with alpha = 1, and `ThompsonSampling`, whose counts start at 1 and 1."""

import random

from mabwiser.mab import MAB, LearningPolicy
from problem import MEANS, main


def play(algorithm, steps, seed):
    """Play one run."""
    chance, arms = random.Random(seed), list(range(len(MEANS)))
    policy = LearningPolicy.ThompsonSampling() if algorithm == "thompson" else LearningPolicy.UCB1(alpha=1)
    learner, counts = MAB(arms, policy, seed=seed), [0] * len(MEANS)

    def pull(arm):
        counts[arm] += 1
        return int(chance.random() < MEANS[arm])

    if algorithm == "thompson":
        learner.fit([], [])
    else:
        learner.fit(arms, [pull(arm) for arm in arms])  # each arm once
    for _ in range(steps - sum(counts)):
        arm = learner.predict()
        learner.partial_fit([arm], [pull(arm)])
    return [counts]


if __name__ == "__main__":
    main(play)

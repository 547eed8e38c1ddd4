"""Plain Python, with the standard library alone."""

import random
from math import log, sqrt

from problem import MEANS, main


def play(algorithm, steps, seed):
    """Play one run."""
    chance = random.Random(seed)
    draw, arms = chance.random, range(len(MEANS))
    counts, wins = [0] * len(MEANS), [0] * len(MEANS)
    for step in range(steps):
        if algorithm == "thompson":
            draws = [chance.betavariate(1 + wins[arm], 1 + counts[arm] - wins[arm]) for arm in arms]
            arm = draws.index(max(draws))
        elif step < len(MEANS):
            arm = step
        else:
            twice = 2 * log(step)
            bounds = [wins[arm] / counts[arm] + sqrt(twice / counts[arm]) for arm in arms]
            arm = bounds.index(max(bounds))
        counts[arm] += 1
        wins[arm] += draw() < MEANS[arm]
    return [counts]


if __name__ == "__main__":
    main(play)

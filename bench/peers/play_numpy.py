"""numpy, with all runs of a batch at once."""

import numpy as np
from problem import MEANS, main

RUNS = 200


def play(algorithm, steps, seed):
    """Play a batch of runs."""
    chance, means, every = np.random.default_rng(seed), np.array(MEANS), np.arange(RUNS)
    counts, wins = np.zeros((RUNS, len(means))), np.zeros((RUNS, len(means)))
    for step in range(steps):
        if algorithm == "thompson":
            arm = chance.beta(1 + wins, 1 + counts - wins).argmax(axis=1)
        elif step < len(means):
            arm = np.full(RUNS, step)
        else:
            arm = (wins / counts + np.sqrt(2 * np.log(step) / counts)).argmax(axis=1)
        counts[every, arm] += 1
        wins[every, arm] += chance.random(RUNS) < means[arm]
    return counts.astype(int).tolist()


if __name__ == "__main__":
    main(play)

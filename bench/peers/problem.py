"""The problem that Partage and its peers solve: one learner, 10 Bernoulli arms, 20,000 steps.

Each peer runs as a program of its own, in an environment of its own that does not have Partage. It plays either of

- `ucb1`: the arm with the highest mean + sqrt(2 log t / n), each arm once at the start (Auer et al. 2002);
- `thompson`: the arm with the highest draw from its posterior, Beta(1, 1) before the first pull.

`python play_NAME.py ALGORITHM SECONDS STEPS` plays runs for some seconds and prints, as JSON, the processor time per
run and the regret of every run.
"""

import json
import sys
import time

MEANS = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]
STEPS = 20_000
MOST = 1000  # runs


def regret(pulls):
    """Return the pseudo-regret of a run: its pulls of each arm times their gaps."""
    return sum(count * (max(MEANS) - mean) for count, mean in zip(pulls, MEANS))


def main(play):
    """Time a peer. `play(algorithm, steps, seed)` plays one or more runs and returns the pulls of each run."""
    algorithm, seconds, steps = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    play(algorithm, 100, 0)  # imports and caches
    ends, seed = time.perf_counter() + seconds, 0
    times, regrets = [], []
    while len(regrets) < MOST and (not times or time.perf_counter() < ends):
        seed += 1
        began = time.process_time()
        found = play(algorithm, steps, seed)
        times.append((time.process_time() - began) / len(found))
        assert all(sum(pulls) == steps for pulls in found)
        regrets += [regret(pulls) for pulls in found]
    print(json.dumps({"seconds": times, "regrets": regrets}))

"""Plain compiled loops to measure the engine against."""

import math

import numpy as np
from numba import njit

from partage.engine.rewards import bernoulli_word


@njit(cache=True)
def bare_loop(broadcasts, mean, two_log):
    """Do the least that a broadcast needs: draw a reward, update a count and a mean, take one square root."""
    state = np.uint64(88172645463325252)
    total, checksum = 0.0, 0.0
    for count in range(1, broadcasts + 1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        if np.float64(state >> np.uint64(11)) * (1.0 / 9007199254740992.0) < mean:
            total += 1.0
        checksum += total / count + math.sqrt(two_log / count)
    return checksum


@njit(cache=True)
def pull_by_pull(means, shares, horizon, steps, k0, k1, rank):
    """Play Balanced-ETC (B = 1) one pull at a time, for agents that share one Bernoulli arm each.

    The comparison is fair: the leader, the bounds and the fewest broadcasts are updated, not recomputed, and a commit
    is one comparison and one addition. Play the first `steps` of `horizon`; return explore and commit pulls by agent.
    """
    agents, arms = len(shares), len(means)
    two_log = 2 * math.log(horizon)
    counts, sums = np.zeros(arms, np.int64), np.zeros(arms)
    mean = np.full(arms, -math.inf)
    upper, lower = np.full(arms, math.inf), np.full(arms, -math.inf)
    active = np.ones(arms, np.bool_)
    n_active, least = arms, 0
    word, group_of = np.zeros(arms, np.uint64), np.full(arms, -1)
    explore, commit = np.zeros(agents, np.int64), np.zeros((arms, agents), np.int64)
    leader = np.argmin(rank)
    for _ in range(steps):
        for agent in range(agents):
            arm = shares[agent]
            if n_active == 1 or not active[arm] or counts[arm] > least:
                commit[leader, agent] += 1
                continue
            explore[agent] += 1
            entry = counts[arm]
            if entry >> 6 != group_of[arm]:
                group_of[arm] = entry >> 6
                word[arm] = bernoulli_word(k0, k1, means[arm], entry >> 6, arm, 0)
            sums[arm] += np.float64((word[arm] >> np.uint64(entry & 63)) & np.uint64(1))
            counts[arm] += 1
            mean[arm] = sums[arm] / counts[arm]
            radius = math.sqrt(two_log / counts[arm])
            upper[arm], lower[arm] = mean[arm] + radius, mean[arm] - radius
            highest = np.max(lower)
            for i in range(arms):
                if active[i] and upper[i] <= highest:
                    active[i] = False
                    n_active -= 1
            least, leader = np.int64(2**62), -1
            for i in range(arms):
                if active[i]:
                    least = min(least, counts[i])
                    if leader < 0 or mean[i] > mean[leader] or (mean[i] == mean[leader] and rank[i] < rank[leader]):
                        leader = i
    return explore, commit

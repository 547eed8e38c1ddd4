"""The active arms of the rules that keep broadcasts balanced: how many broadcasts are open, and which arm leads."""

import math

import numpy as np

from partage.compiled import inlined, uncounted

_FAR = np.int64(2**63 - 1)


@inlined
def most_open_at(balance, least):
    """Return how often an open arm may have been broadcast."""
    return math.inf if math.isinf(balance) else balance * least


@uncounted
def least_of(actives, n_active, counts):
    """Return the fewest broadcasts of an active arm, and how many arms have that few."""
    least, arms_at = _FAR, np.int64(0)
    for j in range(n_active):
        arm = actives[j]
        if counts[arm] < least:
            least, arms_at = counts[arm], np.int64(1)
        elif counts[arm] == least:
            arms_at += 1
    return least, arms_at


@inlined
def is_better(arm, other, mean, rank):
    """Whether an arm has the higher mean, ties by the tie order."""
    return mean[arm] > mean[other] or (mean[arm] == mean[other] and rank[arm] < rank[other])


@uncounted
def best_of_actives(actives, n_active, mean, rank):
    """Return the active arm with the highest mean, ties by the tie order."""
    best = actives[0]
    for j in range(n_active):
        if is_better(actives[j], best, mean, rank):
            best = actives[j]
    return best

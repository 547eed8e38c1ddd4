"""2-UCB alone, compiled.

The index of an arm that is not pulled stays, so the arms live in a heap by index and a step is O(log N). Where the
arm on top would stay there whatever it pays in its next pulls, those pulls are added from the tape together.
"""

import math

import numpy as np
from numba import njit

from partage.engine.tally import all_rows, clear
from partage.engine.tape import add_rewards

_MARGIN = 1e-12  # what a stretch must leave to spare, above rounding


@njit(cache=True, nogil=True)
def _before(a, b, index, rank):
    """Whether arm a is pulled rather than b."""
    return index[a] > index[b] or (index[a] == index[b] and rank[a] < rank[b])


@njit(cache=True, nogil=True)
def _sink(heap, index, rank):
    """Restore the heap after the index of its top has changed."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= len(heap):
            return
        if child + 1 < len(heap) and _before(heap[child + 1], heap[child], index, rank):
            child += 1
        if not _before(heap[child], heap[place], index, rank):
            return
        heap[place], heap[child] = heap[child], heap[place]
        place = child


@njit(cache=True, nogil=True)
def play_two_ucb(game, k0, k1, tie_order, checkpoints, curve, outcome):
    """Play one run in which every agent runs 2-UCB alone. `curve[c]` is the overall regret up to `checkpoints[c]`."""
    clear(game, outcome)
    all_rows(outcome)
    arms, two_log, table = game.arms, game.two_log, game.rewards
    rank = np.empty(arms, np.int64)
    rank[tie_order] = np.arange(arms)
    curve[:] = 0.0
    for agent in range(game.agents):
        counts, sums = np.zeros(arms, np.int64), np.zeros(arms)
        index = np.full(arms, math.inf)
        word, group_of = np.zeros(arms, np.uint64), np.full(arms, -1)
        heap = tie_order.copy()  # all infinite: in tie order
        step, checkpoint, longest = 0, 0, 1
        while step < game.horizon:
            arm = heap[0]
            until = game.horizon
            if checkpoint < len(checkpoints):
                until = min(until, checkpoints[checkpoint])

            # As many pulls as leave the arm on top whatever they pay, and one more.
            pulls = 1
            if counts[arm] > 0 and arms > 1:
                second = heap[1]
                if arms > 2 and _before(heap[2], second, index, rank):
                    second = heap[2]
                longest = min(2 * longest, until - step)
                while longest > 0:
                    seen = counts[arm] + longest
                    if sums[arm] / seen + math.sqrt(two_log / seen) > index[second] + _MARGIN:
                        break
                    longest >>= 1
                pulls = min(longest + 1, until - step)
                longest = max(longest, 1)
            elif arms == 1:
                pulls = until - step

            sums[arm] = add_rewards(k0, k1, table, arm, counts[arm], pulls, 1 + agent, sums[arm], word, group_of)
            counts[arm] += pulls
            step += pulls
            index[arm] = sums[arm] / counts[arm] + math.sqrt(two_log / counts[arm])
            _sink(heap, index, rank)

            while checkpoint < len(checkpoints) and checkpoints[checkpoint] == step:
                for i in range(arms):
                    curve[checkpoint] += game.gaps[i] * counts[i]
                checkpoint += 1
        for i in range(arms):
            outcome.commit[i, agent] = counts[i]

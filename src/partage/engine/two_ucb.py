"""2-UCB alone, compiled.

The index of an arm that is not pulled stays, so the arms live in a heap by index and a step is O(log N). A Bernoulli
arm on top is pulled in stretches: only zeros can take it down, so as many pulls are taken together as hold no more
zeros than it can bear.
"""

import math

import numpy as np

from partage.arms import BERNOULLI
from partage.compiled import compiled
from partage.engine.rewards import bernoulli_word, ones, ranks, reward
from partage.engine.tally import all_rows, clear

_MARGIN = 1e-12  # what a stretch must leave to spare, above rounding


@compiled
def _sink(heap, index, rank):
    """Restore the heap after the index of its top has changed: highest index first, ties by rank."""
    place, arm = 0, heap[0]
    while 2 * place + 1 < len(heap):
        child = 2 * place + 1
        if child + 1 < len(heap):
            left, right = heap[child], heap[child + 1]
            if index[right] > index[left] or (index[right] == index[left] and rank[right] < rank[left]):
                child += 1
        other = heap[child]
        if index[other] < index[arm] or (index[other] == index[arm] and rank[other] > rank[arm]):
            break
        heap[place] = other
        place = child
    heap[place] = arm


@compiled
def _stretch(k0, k1, mean, arm, stream, count, total, second, two_log, most, word, group_of):
    """Pull a Bernoulli arm while it surely stays above the index `second`, and once more; at most `most` times.

    Returns the pulls and what they paid. With z zeros among c pulls the mean is never below total / (count + z), and
    the radius never below that of count + c.
    """
    pulls, paid = 0, 0
    while True:
        entry = count + pulls
        group = entry >> 6
        if group != group_of[arm]:
            group_of[arm] = group
            word[arm] = bernoulli_word(k0, k1, mean, group, arm, stream)
        chunk = min(most - pulls, ((group + 1) << 6) - entry)
        zeros = ~word[arm] >> np.uint64(entry & 63)
        if chunk < 64:
            zeros &= (np.uint64(1) << np.uint64(chunk)) - np.uint64(1)
        in_chunk = ones(zeros)
        bar = second + _MARGIN - math.sqrt(two_log / (entry + chunk))
        bears = 64.0 if bar <= 0.0 else (total + paid) / bar - entry
        if in_chunk <= bears:
            pulls += chunk
            paid += chunk - in_chunk
            if pulls == most:
                return pulls, paid
            continue
        if bears < 0.0:  # nothing is sure but the next pull
            return pulls + 1, paid + 1 - np.int64(zeros & np.uint64(1))
        borne = np.int64(bears)
        for _ in range(borne):
            zeros &= zeros - np.uint64(1)
        taken = ones((zeros & (~zeros + np.uint64(1))) - np.uint64(1))  # pulls before the first zero not borne
        return pulls + taken + 1, paid + taken - borne


@compiled
def play_two_ucb(game, k0, k1, tie_order, checkpoints, curve, outcome):
    """Play one run in which every agent runs 2-UCB alone. `curve[c]` is the overall regret up to `checkpoints[c]`."""
    clear(game, outcome)
    all_rows(outcome)
    arms, two_log, table = game.arms, game.two_log, game.rewards
    rank = ranks(tie_order)
    word, group_of = np.zeros(arms, np.uint64), np.empty(arms, np.int64)
    for c in range(len(curve)):
        curve[c] = 0.0
    for agent in range(game.agents):
        counts, sums = np.zeros(arms, np.int64), np.zeros(arms)
        index = np.full(arms, math.inf)
        heap = tie_order.copy()  # all infinite: in tie order
        for i in range(arms):
            group_of[i] = -1
        step, checkpoint = 0, 0
        while step < game.horizon:
            arm = heap[0]
            if table.kinds[arm] == BERNOULLI and counts[arm] > 0:
                second = index[heap[1]] if arms > 1 else -math.inf
                if arms > 2:
                    second = max(second, index[heap[2]])
                until = checkpoints[checkpoint] if checkpoint < len(checkpoints) else game.horizon
                pulls, paid = _stretch(
                    k0, k1, table.first[arm], arm, 1 + agent,
                    counts[arm], sums[arm], second, two_log, until - step, word, group_of,
                )  # fmt: skip
                sums[arm] += paid
            else:
                pulls = 1
                sums[arm] += reward(k0, k1, table, arm, counts[arm], 1 + agent)
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

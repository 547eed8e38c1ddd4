"""2-UCB alone, compiled.

Pulling an arm does not change the index of any other arm, so the arms are stored in a heap by index, and a step takes
O(log N). A Bernoulli arm on top is pulled in stretches: only zeros lower its index, so pulls are batched as long as
their zeros cannot move it from the top.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from partage.arms import BERNOULLI
from partage.compiled import compiled, uncounted
from partage.engine.rewards import bernoulli_word, ones, ranks, reward
from partage.engine.tally import all_rows, clear

if TYPE_CHECKING:
    from partage.engine.run import Run
    from partage.rules import TwoUCB

PLAYS_HIDDEN_ARMS = True

_MARGIN = 1e-12  # safety margin of a stretch, above rounding errors


def play(run: "Run", rule: "TwoUCB") -> None:
    """Play one run."""
    play_two_ucb(run.table, *run.key, run.tie_order, run.checkpoints, run.curve, run.outcome)


@uncounted
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


@uncounted
def _stretch(k0, k1, mean, arm, stream, count, total, second, two_log, most, word, group_of):
    """Pull a Bernoulli arm while its index certainly stays above `second`, and once more; at most `most` times.

    Return the pulls and the sum of their rewards. With z zeros among c pulls the mean is never below
    total / (count + z), and the radius never below that of count + c.
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
        affords = 64.0 if bar <= 0.0 else (total + paid) / bar - entry
        if in_chunk <= affords:
            pulls += chunk
            paid += chunk - in_chunk
            if pulls == most:
                return pulls, paid
            continue
        if affords < 0.0:  # only the next pull is certain
            return pulls + 1, paid + 1 - np.int64(zeros & np.uint64(1))
        afforded = np.int64(affords)
        for _ in range(afforded):
            zeros &= zeros - np.uint64(1)
        taken = ones((zeros & (~zeros + np.uint64(1))) - np.uint64(1))  # pulls before the first zero too many
        return pulls + taken + 1, paid + taken - afforded


@compiled
def play_two_ucb(game, k0, k1, tie_order, checkpoints, curve, outcome):
    """Play one run of 2-UCB by every agent. `curve[c]` is the overall regret up to `checkpoints[c]`."""
    clear(game.public, outcome)
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

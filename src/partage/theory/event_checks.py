"""Checks of runs after the play: whether the good event E held, and how fast active arms were broadcast.

These checks do not affect the play. E depends only on each arm's tape up to its final count, so it is read from the
tape. The check of exploration counts broadcasts again, step by step, from the moments at which arms were eliminated.
"""

import math

import numpy as np

from partage.arms import BERNOULLI
from partage.compiled import compiled
from partage.engine.rewards import AGENT_ORDER, TIE_ORDER, bernoulli_word, permutation, reward
from partage.engine.sharers import sharers_in_order

_BERNOULLI, _TIE_ORDER, _AGENT_ORDER = BERNOULLI, TIE_ORDER, AGENT_ORDER


@compiled
def _stays_close(k0, k1, table, arm, mean, count, stream, log_horizon):
    """Whether |mean of the first n rewards - mu| <= sqrt(3 log T / (2 n)) for every n up to `count`.

    With S the sum of n rewards this is (S - n mu)^2 <= 1.5 n log T.
    """
    total, limit = 0.0, 1.5 * log_horizon
    word = np.uint64(0)
    for entry in range(count):
        if table.kinds[arm] == _BERNOULLI:
            if entry & 63 == 0:
                word = bernoulli_word(k0, k1, table.first[arm], entry >> 6, arm, stream)
            total += np.float64((word >> np.uint64(entry & 63)) & np.uint64(1))
        else:
            total += reward(k0, k1, table, arm, entry, stream)
        off = total - (entry + 1) * mean
        if off * off > limit * (entry + 1):
            return False
    return True


@compiled
def event_held(table, means, keys, counts, stream, log_horizon, held):
    """Write into `held` in which runs the mean of every arm stayed close up to its count: the paper's event E."""
    for run in range(len(keys)):
        held[run] = True
        for arm in range(len(means)):
            if held[run]:
                held[run] = _stays_close(
                    keys[run, 0], keys[run, 1], table, arm, means[arm], counts[run, arm], stream, log_horizon
                )


@compiled
def _least(seen, active):
    """Return the fewest broadcasts of an active arm, and how many active arms have that few."""
    least, arms_at = -1, 0
    for arm in range(len(seen)):
        if active[arm]:
            if arms_at == 0 or seen[arm] < least:
                least, arms_at = seen[arm], 1
            elif seen[arm] == least:
                arms_at += 1
    return least, arms_at


@compiled
def check_exploration(game, balance, keys, eliminated_step, eliminated_agent, counts, ratio):
    """Count the broadcasts of Balanced-ETC again, and note how close they come to t / N - 1.

    Who explores follows from the counts, the order of agents and the active arms, so the moments of elimination are
    all that is needed of the play. `counts` becomes the broadcasts at the end, for comparison with the play. `ratio`
    becomes the least of (N_i(t) + 1) N / t over active arms i and over steps t at whose start more than one arm is
    active: the lemma says that it is at least 1.
    """
    agents, arms = game.agents, game.arms
    order = np.arange(agents)
    firsts, places, _ = sharers_in_order(agents, arms, game.starts, game.shared, order)
    rank = np.empty(arms, np.int64)
    active = np.empty(arms, np.bool_)
    pointer = np.empty(arms, np.int64)
    for run in range(len(keys)):
        tie_order = permutation(keys[run, 0], keys[run, 1], _TIE_ORDER, arms)
        for i in range(arms):
            rank[tie_order[i]] = i
        if game.shuffled:
            order = permutation(keys[run, 0], keys[run, 1], _AGENT_ORDER, agents)
            firsts, places, _ = sharers_in_order(agents, arms, game.starts, game.shared, order)
        seen = counts[run]
        seen[:] = 0
        active[:] = True
        n_active, least, at_least = arms, 0, arms
        open_up_to = math.inf if math.isinf(balance) else 0.0
        ratio[run] = math.inf
        step = 0
        while step < game.horizon and n_active > 1:
            step += 1
            ratio[run] = min(ratio[run], arms * (least + 1) / step)
            place = 0
            for i in range(arms):
                pointer[i] = firsts[i]  # each arm's next sharer in this step
            while n_active > 1 and place < agents:
                # The next agent that shares an open arm, and the least-broadcast of its open arms.
                explorer, arm = agents, -1
                for i in range(arms):
                    if not active[i] or seen[i] > open_up_to:
                        continue
                    while pointer[i] < firsts[i + 1] and places[pointer[i]] < place:
                        pointer[i] += 1
                    at = pointer[i]
                    if at == firsts[i + 1] or places[at] > explorer:
                        continue
                    if places[at] < explorer or seen[i] < seen[arm] or (seen[i] == seen[arm] and rank[i] < rank[arm]):
                        explorer, arm = places[at], i
                if arm < 0:
                    break
                seen[arm] += 1
                place = explorer + 1
                at_least -= seen[arm] - 1 == least
                leaves = False
                for i in range(arms):
                    if active[i] and eliminated_step[run, i] == step and eliminated_agent[run, i] == order[explorer]:
                        active[i], leaves = False, True
                        n_active -= 1
                if at_least == 0 or leaves:  # the least count changed, or which arms have it
                    least, at_least = _least(seen, active)
                    if not math.isinf(balance):
                        open_up_to = balance * least

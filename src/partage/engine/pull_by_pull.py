"""Compiled play, pull by pull, for what depends on private rewards: O(M T) by nature.

Any rule on a game with arms that nobody shares, and sharing without a protocol.
"""

import math

import numpy as np

from partage.compiled import compiled
from partage.engine.decisions import best_of, new_case, open_arms, revise
from partage.engine.rewards import TAPE, ranks, reward
from partage.engine.tally import all_rows, clear


@compiled
def _index(count, total, two_log):
    """The 2-UCB index."""
    return total / count + math.sqrt(two_log / count) if count > 0 else math.inf


@compiled
def _best_hidden(agent, hidden, own_counts, own_sums, rank, two_log):
    """Return the hidden arm with the highest private index, and that index."""
    best, highest = hidden[0], -math.inf
    for arm in hidden:
        index = _index(own_counts[agent, arm], own_sums[agent, arm], two_log)
        if index > highest or (index == highest and rank[arm] < rank[best]):
            best, highest = arm, index
    return best, highest


@compiled
def play_with_hidden_arms(game, rule, k0, k1, tie_order, order, outcome):
    """Play one run of a rule on a game with arms that nobody shares."""
    clear(game, outcome)
    all_rows(outcome)
    agents, arms, two_log = game.agents, game.arms, game.two_log
    counts, sums, active = outcome.counts, outcome.sums, outcome.active
    rank = ranks(tie_order)
    hidden = np.flatnonzero(~game.public)
    own_counts, own_sums = np.zeros((agents, arms), np.int64), np.zeros((agents, arms))
    best, highest = np.empty(agents, np.int64), np.empty(agents)
    for agent in range(agents):
        best[agent], highest[agent] = _best_hidden(agent, hidden, own_counts, own_sums, rank, two_log)
    case = new_case(arms)
    leader = best_of(active, counts, sums, rank)
    n_active = open_arms(rule, counts, active, leader, case)

    for step in range(game.horizon):
        for place in range(agents):
            agent = order[place]
            entry, arm = -1, -1
            if n_active > 1:
                for e in range(game.starts[agent], game.starts[agent + 1]):
                    i = game.shared[e]
                    if case.opened[i] and (
                        entry < 0 or counts[i] < counts[arm] or (counts[i] == counts[arm] and rank[i] < rank[arm])
                    ):
                        entry, arm = e, i
            if entry >= 0:
                outcome.explore[entry] += 1
                sums[arm] += reward(k0, k1, game.rewards, arm, counts[arm], TAPE)
                counts[arm] += 1
                leader = revise(rule, two_log, arm, counts, sums, active, game.public, rank, leader, case)
                n_active = open_arms(rule, counts, active, leader, case)
                for i in range(arms):
                    if active[i]:
                        outcome.eliminated_step[i], outcome.eliminated_agent[i] = -1, -1
                    elif game.public[i] and outcome.eliminated_step[i] < 0:
                        outcome.eliminated_step[i], outcome.eliminated_agent[i] = step + 1, agent
                continue

            arm = best[agent]
            if leader >= 0:
                index = _index(
                    counts[leader] + own_counts[agent, leader], sums[leader] + own_sums[agent, leader], two_log
                )
                if index > highest[agent] or (index == highest[agent] and rank[leader] < rank[arm]):
                    arm = leader
            own_sums[agent, arm] += reward(k0, k1, game.rewards, arm, own_counts[agent, arm], 1 + agent)
            own_counts[agent, arm] += 1
            if arm == best[agent]:
                best[agent], highest[agent] = _best_hidden(agent, hidden, own_counts, own_sums, rank, two_log)
    for agent in range(agents):
        outcome.commit[:, agent] = own_counts[agent]


@compiled
def play_no_protocol(game, k0, k1, tie_order, order, outcome):
    """Play one run in which each agent runs 2-UCB on all she sees and broadcasts whatever she shares."""
    clear(game, outcome)
    all_rows(outcome)
    agents, arms, two_log = game.agents, game.arms, game.two_log
    counts, sums = outcome.counts, outcome.sums
    own_counts, own_sums = np.zeros((agents, arms), np.int64), np.zeros((agents, arms))
    entry_of = np.full((agents, arms), -1)
    for agent in range(agents):
        for entry in range(game.starts[agent], game.starts[agent + 1]):
            entry_of[agent, game.shared[entry]] = entry

    for _ in range(game.horizon):
        for place in range(agents):
            agent = order[place]
            arm, highest = -1, -math.inf
            for i in tie_order:  # the first of equals wins
                index = _index(counts[i] + own_counts[agent, i], sums[i] + own_sums[agent, i], two_log)
                if index > highest:
                    arm, highest = i, index
            entry = entry_of[agent, arm]
            if entry >= 0:
                outcome.explore[entry] += 1
                sums[arm] += reward(k0, k1, game.rewards, arm, counts[arm], TAPE)
                counts[arm] += 1
            else:
                own_sums[agent, arm] += reward(k0, k1, game.rewards, arm, own_counts[agent, arm], 1 + agent)
                own_counts[agent, arm] += 1
    for agent in range(agents):
        outcome.commit[:, agent] = own_counts[agent]

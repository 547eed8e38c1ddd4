"""Balanced-GLR and KL-ETC, jumping from broadcast to broadcast as `partage.engine.balanced_etc` does.

These rules broadcast little, so what is open is worked out anew after each broadcast.
"""

import numpy as np

from partage.arms import BERNOULLI
from partage.compiled import compiled
from partage.engine.balanced_etc import add_interval, by_agent, first_from, regret_up_to, row_of_arm
from partage.engine.decisions import new_case, open_arms, revise
from partage.engine.rewards import TAPE, bernoulli_sum, ranks, reward
from partage.engine.tally import clear

_FAR = np.int64(2**63 - 1)


@compiled
def play_contenders(game, rule, k0, k1, tie_order, order, sharers, checkpoints, curve, outcome):
    """Play one run of a rule on a game in which every arm is shared; arguments as in `play_balanced_etc`."""
    clear(game, outcome)
    agents, arms, table = game.agents, game.arms, game.rewards
    firsts, places, entries = sharers
    counts, sums, active = outcome.counts, outcome.sums, outcome.active
    explore, commit, gaps = outcome.explore, outcome.commit, game.gaps
    end = agents * game.horizon
    rank = ranks(tie_order)
    word, group_of = np.zeros(arms, np.uint64), np.full(arms, -1)
    case = new_case(arms)

    now, now_lap, now_place = 0, 0, 0
    leader = tie_order[0]
    rows = np.full(arms, -1)
    whole = np.zeros(arms, np.int64)
    committed = np.zeros(arms, np.int64)
    row = row_of_arm(leader, rows, outcome)
    since, explored_since, checkpoint = 0, 0, 0

    while open_arms(rule, counts, active, leader, case) > 1:
        # 1. Who explores next: the first sharer of an open arm; with several, her least-broadcast.
        pull, arm, sharer = _FAR, -1, -1
        for i in range(arms):
            if not case.opened[i]:
                continue
            at, lap = first_from(places, firsts[i], firsts[i + 1], now_place), now_lap
            if at == firsts[i + 1]:
                at, lap = firsts[i], now_lap + agents
            if lap + places[at] < pull or (
                lap + places[at] == pull
                and (counts[i] < counts[arm] or (counts[i] == counts[arm] and rank[i] < rank[arm]))
            ):
                pull, arm, sharer = lap + places[at], i, at

        # 2. All pulls before that are commits on the leader.
        while checkpoint < len(checkpoints) and checkpoints[checkpoint] * agents <= pull:
            steps = checkpoints[checkpoint] * agents
            curve[checkpoint] = regret_up_to(steps, gaps, counts, committed, leader, since, explored_since)
            checkpoint += 1
        if pull >= end:
            break

        # 3. She explores, and the board is revised.
        place = places[sharer]
        explore[entries[sharer]] += 1
        commit[row, place] -= 1
        commit[row, place + 1] += 1
        explored_since += 1
        now, now_lap, now_place = pull + 1, pull - place, place + 1
        if table.kinds[arm] == BERNOULLI:
            sums[arm] += bernoulli_sum(k0, k1, table.first[arm], arm, counts[arm], 1, TAPE, word, group_of)
        else:
            sums[arm] += reward(k0, k1, table, arm, counts[arm], TAPE)
        counts[arm] += 1
        before = leader
        leader = revise(rule, game.two_log, arm, counts, sums, active, game.public, rank, leader, case)
        for i in range(arms):
            if active[i]:
                outcome.eliminated_step[i], outcome.eliminated_agent[i] = -1, -1
            elif outcome.eliminated_step[i] < 0:
                outcome.eliminated_step[i], outcome.eliminated_agent[i] = (pull - place) // agents + 1, order[place]

        # 4. A new leader.
        if leader != before:
            whole[row] = add_interval(commit[row], whole[row], agents, since, now)
            committed[before] += now - since - explored_since
            since, explored_since = now, 0
            row = row_of_arm(leader, rows, outcome)

    while checkpoint < len(checkpoints):
        steps = checkpoints[checkpoint] * agents
        curve[checkpoint] = regret_up_to(steps, gaps, counts, committed, leader, since, explored_since)
        checkpoint += 1
    whole[row] = add_interval(commit[row], whole[row], agents, since, end)
    by_agent(outcome, whole, order)

"""Shared-IMED where agents also use their own rewards to commit.

Each agent may commit to another arm, so pulls are walked one by one while anything can change. An agent is *settled*
once it keeps all rewards that it may of the arm it commits to; what it does then changes only with a broadcast. While
all agents are settled and no arm is open, pulls up to the next tick of the clock are counted at once.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from partage.clock import TICKS
from partage.compiled import compiled, uncounted
from partage.engine.alone import add_to_curve
from partage.engine.decisions import best_of, new_case, open_arms, revise
from partage.engine.rewards import TAPE, ranks, reward
from partage.engine.shared_imed import rule_table
from partage.engine.tally import all_rows, clear

if TYPE_CHECKING:
    from partage.engine.run import Run
    from partage.rules import SharedIMED

__all__ = ["PLAYS_HIDDEN_ARMS", "play", "rule_table"]

PLAYS_HIDDEN_ARMS = False
_TICKS = np.array(TICKS)


def play(run: "Run", rule: "SharedIMED") -> None:
    """Play one run."""
    table = rule_table(rule, run.table)
    orders = run.tie_order, run.order
    play_with_own_rewards(run.table, table, rule.own, *run.key, *orders, run.checkpoints, run.curve, run.outcome)


@compiled
def play_with_own_rewards(game, rule, keeps, k0, k1, tie_order, order, checkpoints, curve, outcome):
    """Play one run on a game in which every arm is shared.

    `curve[c]` is the overall regret up to `checkpoints[c]`.
    """
    clear(game.public, outcome)
    all_rows(outcome)
    agents, arms, table = game.agents, game.arms, game.rewards
    counts, sums, active, commit = outcome.counts, outcome.sums, outcome.active, outcome.commit
    rank = ranks(tie_order)
    own_counts, own_sums = np.zeros((agents, arms), np.int64), np.zeros((agents, arms))
    choice, settled_at = np.zeros(agents, np.int64), np.full(agents, np.int64(-1))
    case = new_case(rule, arms)
    leader = best_of(active, counts, sums, rank)
    now, end = np.int64(0), agents * game.horizon
    clock, tick = np.int64(0), np.int64(0)
    version, unsettled = np.int64(0), agents
    several = open_arms(rule, clock, counts, sums, active, leader, case) > 1
    any_open = several and case.opened.any()
    pulled, checkpoint = np.zeros(arms, np.int64), np.int64(0)
    curve[:] = 0.0

    while now < end:
        checkpoint = add_to_curve(checkpoint, now // agents, checkpoints, game.gaps, pulled, curve)
        if _TICKS[tick] == now:
            clock, tick = _TICKS[tick], tick + 1
            several = open_arms(rule, clock, counts, sums, active, leader, case) > 1
            any_open = several and case.opened.any()
        if unsettled == 0 and not any_open:
            until = min(end, _TICKS[tick])
            if checkpoint < len(checkpoints):
                until = min(until, checkpoints[checkpoint] * agents)
            for place in range(agents):
                arm, pulls = choice[order[place]], _pulls_of(place, now, until, agents)
                commit[arm, order[place]] += pulls
                pulled[arm] += pulls
            now = until
            continue

        agent = order[now % agents]
        now += 1
        entry, arm = -1, -1
        if any_open:
            for e in range(game.starts[agent], game.starts[agent + 1]):
                i = game.shared[e]
                if case.opened[i] and (
                    entry < 0 or counts[i] < counts[arm] or (counts[i] == counts[arm] and rank[i] < rank[arm])
                ):
                    entry, arm = e, i
        if entry >= 0:
            outcome.explore[entry] += 1
            pulled[arm] += 1
            told = reward(k0, k1, table, arm, counts[arm], TAPE)
            sums[arm] += told
            counts[arm] += 1
            leader = revise(rule, game.two_log, arm, told, counts, sums, active, game.public, rank, leader, case)
            several = open_arms(rule, clock, counts, sums, active, leader, case) > 1
            any_open = several and case.opened.any()
            version, unsettled = version + 1, agents
            continue

        if settled_at[agent] != version:
            choice[agent] = _highest_mean(counts, sums, own_counts[agent], own_sums[agent], tie_order)
        arm = choice[agent]
        commit[arm, agent] += 1
        pulled[arm] += 1
        if own_counts[agent, arm] < keeps:
            own_sums[agent, arm] += reward(k0, k1, table, arm, own_counts[agent, arm], 1 + agent)
            own_counts[agent, arm] += 1
        elif settled_at[agent] != version:
            settled_at[agent] = version
            unsettled -= 1
    add_to_curve(checkpoint, game.horizon, checkpoints, game.gaps, pulled, curve)


@uncounted
def _highest_mean(counts, sums, own_counts, own_sums, tie_order):
    """Return the arm with the highest mean of the broadcasts and an agent's own rewards, ties by the tie order."""
    best, highest = tie_order[0], -math.inf
    for arm in tie_order:
        seen = counts[arm] + own_counts[arm]
        if seen > 0 and (sums[arm] + own_sums[arm]) / seen > highest:
            best, highest = arm, (sums[arm] + own_sums[arm]) / seen
    return best


@uncounted
def _pulls_of(place, start, stop, agents):
    """Return how many of the pulls `start` to `stop - 1` the agent at this place makes."""
    whole, rest = (stop - start) // agents, (stop - start) % agents
    return whole + ((place - start) % agents < rest)

"""Games with arms that nobody shares, pull by pull: what an agent pulls depends on rewards that only it has seen."""

import math
from typing import TYPE_CHECKING

import numpy as np

from partage.clock import TICKS
from partage.compiled import compiled, uncounted
from partage.engine.alone import add_to_curve
from partage.engine.decisions import RuleTable, best_of, new_case, note_eliminations, open_arms, revise
from partage.engine.rewards import TAPE, ranks, reward
from partage.engine.tally import all_rows, clear

if TYPE_CHECKING:
    from partage.engine.run import Run

_TICKS = np.array(TICKS)


def play(run: "Run", rule: RuleTable) -> None:
    """Play one run of a rule that is laid out as a table."""
    play_with_hidden_arms(
        run.table, rule, *run.key, run.tie_order, run.order, run.checkpoints, run.curve, run.outcome
    )


@uncounted
def two_ucb_index(count, total, two_log):
    """Return the 2-UCB index of an arm: infinite if it was never pulled."""
    return total / count + math.sqrt(two_log / count) if count > 0 else math.inf


@uncounted
def _best_hidden(agent, hidden, own_counts, own_sums, rank, two_log):
    """Return the hidden arm with the highest private index, and that index."""
    best, highest = hidden[0], -math.inf
    for arm in hidden:
        index = two_ucb_index(own_counts[agent, arm], own_sums[agent, arm], two_log)
        if index > highest or (index == highest and rank[arm] < rank[best]):
            best, highest = arm, index
    return best, highest


@compiled
def play_with_hidden_arms(game, rule, k0, k1, tie_order, order, checkpoints, curve, outcome):
    """Play one run of a rule on a game with arms that nobody shares.

    Where an agent would commit, it plays 2-UCB over those arms and the leader: with its private record for those, and
    with the public record plus its own pulls for the leader. `curve[c]` is the overall regret up to `checkpoints[c]`.
    """
    clear(game.public, outcome)
    all_rows(outcome)
    agents, arms, two_log = game.agents, game.arms, game.two_log
    counts, sums, active = outcome.counts, outcome.sums, outcome.active
    rank = ranks(tie_order)
    hidden = np.flatnonzero(~game.public)
    own_counts, own_sums = np.zeros((agents, arms), np.int64), np.zeros((agents, arms))
    best, highest = np.empty(agents, np.int64), np.empty(agents)
    for agent in range(agents):
        best[agent], highest[agent] = _best_hidden(agent, hidden, own_counts, own_sums, rank, two_log)
    case = new_case(rule, arms)
    leader = best_of(active, counts, sums, rank)
    clock, tick = np.int64(0), np.int64(0)
    n_active = open_arms(rule, clock, counts, sums, active, leader, case)
    pulled, checkpoint = np.zeros(arms, np.int64), np.int64(0)
    curve[:] = 0.0

    for step in range(game.horizon):
        for place in range(agents):
            if rule.clocked and _TICKS[tick] == step * agents + place:
                clock, tick = _TICKS[tick], tick + 1
                n_active = open_arms(rule, clock, counts, sums, active, leader, case)
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
                pulled[arm] += 1
                told = reward(k0, k1, game.rewards, arm, counts[arm], TAPE)
                sums[arm] += told
                counts[arm] += 1
                leader = revise(rule, two_log, arm, told, counts, sums, active, game.public, rank, leader, case)
                n_active = open_arms(rule, clock, counts, sums, active, leader, case)
                note_eliminations(
                    step + 1, agent, game.public, active, outcome.eliminated_step, outcome.eliminated_agent
                )
                continue

            arm = best[agent]
            if leader >= 0:
                index = two_ucb_index(
                    counts[leader] + own_counts[agent, leader], sums[leader] + own_sums[agent, leader], two_log
                )
                if index > highest[agent] or (index == highest[agent] and rank[leader] < rank[arm]):
                    arm = leader
            own_sums[agent, arm] += reward(k0, k1, game.rewards, arm, own_counts[agent, arm], 1 + agent)
            own_counts[agent, arm] += 1
            pulled[arm] += 1
            if arm == best[agent]:
                best[agent], highest[agent] = _best_hidden(agent, hidden, own_counts, own_sums, rank, two_log)
        checkpoint = add_to_curve(checkpoint, step + 1, checkpoints, game.gaps, pulled, curve)
    for agent in range(agents):
        for arm in range(game.arms):
            outcome.commit[arm, agent] = own_counts[agent, arm]

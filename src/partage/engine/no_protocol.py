"""Sharing without a protocol, pull by pull: what an agent pulls depends on rewards that only it has seen."""

import math
from typing import TYPE_CHECKING

import numpy as np

from partage.compiled import compiled
from partage.engine.alone import add_to_curve
from partage.engine.pull_by_pull import two_ucb_index
from partage.engine.rewards import TAPE, reward
from partage.engine.tally import all_rows, clear

if TYPE_CHECKING:
    from partage.engine.run import Run
    from partage.rules import NoProtocol

PLAYS_HIDDEN_ARMS = True


def play(run: "Run", rule: "NoProtocol") -> None:
    """Play one run."""
    play_no_protocol(run.table, *run.key, run.tie_order, run.order, run.checkpoints, run.curve, run.outcome)


@compiled
def play_no_protocol(game, k0, k1, tie_order, order, checkpoints, curve, outcome):
    """Play one run in which each agent runs 2-UCB on all it sees and broadcasts every pull of an arm it shares.

    `curve[c]` is the overall regret up to `checkpoints[c]`.
    """
    clear(game.public, outcome)
    all_rows(outcome)
    agents, arms, two_log = game.agents, game.arms, game.two_log
    counts, sums = outcome.counts, outcome.sums
    own_counts, own_sums = np.zeros((agents, arms), np.int64), np.zeros((agents, arms))
    entry_of = np.full((agents, arms), -1)
    for agent in range(agents):
        for entry in range(game.starts[agent], game.starts[agent + 1]):
            entry_of[agent, game.shared[entry]] = entry

    pulled, checkpoint = np.zeros(arms, np.int64), np.int64(0)
    curve[:] = 0.0
    for step in range(game.horizon):
        for place in range(agents):
            agent = order[place]
            arm, highest = -1, -math.inf
            for i in tie_order:  # the first of equals wins
                index = two_ucb_index(counts[i] + own_counts[agent, i], sums[i] + own_sums[agent, i], two_log)
                if index > highest:
                    arm, highest = i, index
            entry = entry_of[agent, arm]
            pulled[arm] += 1
            if entry >= 0:
                outcome.explore[entry] += 1
                sums[arm] += reward(k0, k1, game.rewards, arm, counts[arm], TAPE)
                counts[arm] += 1
            else:
                own_sums[agent, arm] += reward(k0, k1, game.rewards, arm, own_counts[agent, arm], 1 + agent)
                own_counts[agent, arm] += 1
        checkpoint = add_to_curve(checkpoint, step + 1, checkpoints, game.gaps, pulled, curve)
    for agent in range(agents):
        for arm in range(arms):
            outcome.commit[arm, agent] = own_counts[agent, arm]

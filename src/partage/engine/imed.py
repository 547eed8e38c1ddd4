"""IMED, compiled: alone, and on what is shared."""

import math
from typing import TYPE_CHECKING

import numpy as np

from partage.compiled import compiled, uncounted
from partage.engine.alone import add_to_curve, new_own, pull
from partage.engine.seeing import first_unseen, look, new_records, pull_and_share, write
from partage.engine.tally import all_rows, clear
from partage.rules.imed import imed_index, lowest_index

if TYPE_CHECKING:
    from partage.engine.run import Run
    from partage.rules import IMED

PLAYS_HIDDEN_ARMS = True


def play(run: "Run", rule: "IMED") -> None:
    """Play one run."""
    if rule.sees != "own":
        both = rule.sees == "both"
        play_imed_on_shared(
            run.table, both, *run.key, run.tie_order, run.order, run.checkpoints, run.curve, run.outcome
        )
        return
    play_imed(run.table, *run.key, run.tie_order, run.checkpoints, run.curve, run.outcome)


@compiled
def play_imed(game, k0, k1, tie_order, checkpoints, curve, outcome):
    """Play one run of IMED by every agent. `curve[c]` is the overall regret up to `checkpoints[c]`."""
    clear(game.public, outcome)
    all_rows(outcome)
    arms, table, gaps = game.arms, game.rewards, game.gaps
    curve[:] = 0.0
    index = np.zeros(arms)
    for agent in range(game.agents):
        own = new_own(arms)
        counts, sums = own.counts, own.sums
        checkpoint = np.int64(0)
        best = -math.inf  # the highest mean at which the indices were computed
        for done in range(game.horizon):
            if done < arms:
                arm = tie_order[done]
            else:
                best = _update(arm, best, counts, sums, index)
                arm = _lowest(index, tie_order)
            pull(k0, k1, table, agent, arm, own)
            if checkpoint < len(checkpoints):
                checkpoint = add_to_curve(checkpoint, done + 1, checkpoints, gaps, counts, curve)
        for i in range(arms):
            outcome.commit[i, agent] = counts[i]


@compiled
def play_imed_on_shared(game, both, k0, k1, tie_order, order, checkpoints, curve, outcome):
    """Play one run of IMED on what is shared, and with `both` also on an agent's private pulls."""
    clear(game.public, outcome)
    all_rows(outcome)
    table, gaps, explore = game.rewards, game.gaps, outcome.explore
    records = new_records(game)
    counts, sums = np.zeros(game.arms, np.int64), np.zeros(game.arms)  # what the agent sees
    chosen, changed = tie_order[0], True
    checkpoint = np.int64(0)
    curve[:] = 0.0
    for step in range(game.horizon):
        for place in range(game.agents):
            agent = order[place]
            if both or changed:  # the same broadcasts give the same arm
                look(both, agent, records, counts, sums)
                chosen = lowest_index(counts, sums, tie_order)
            arm = first_unseen(agent, records, counts, tie_order)
            changed = pull_and_share(k0, k1, table, agent, chosen if arm < 0 else arm, records, explore)
        checkpoint = add_to_curve(checkpoint, step + 1, checkpoints, gaps, records.pulled, curve)
    write(records, outcome)


@uncounted
def _update(last, before, counts, sums, index):
    """Update the indices after a pull of the arm `last`; return the highest mean.

    The index of another arm changes only if the highest mean does.
    """
    best = -math.inf
    for arm in range(len(counts)):
        best = max(best, sums[arm] / counts[arm])
    if best == before:
        index[last] = imed_index(counts[last], sums[last], best)
    else:
        for arm in range(len(counts)):
            index[arm] = imed_index(counts[arm], sums[arm], best)
    return best


@uncounted
def _lowest(index, tie_order):
    """Return the arm with the lowest index, the first of equals in the tie order."""
    chosen = tie_order[0]
    for arm in tie_order:
        if index[arm] < index[chosen]:
            chosen = arm
    return chosen

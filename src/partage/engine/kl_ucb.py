"""KL-UCB, compiled: alone, and on what is shared.

A bound takes 40 divergences, so as few as possible are computed. For an agent alone, let q lie between the highest
bound and the second highest. While the bound of the pulled arm stays above q, which takes one divergence to check,
and log t stays below the evidence n kl(mean, q) of every other arm, which does not change, the same arm is pulled
again.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from partage.compiled import compiled, uncounted
from partage.engine.alone import add_to_curve, new_own, pull
from partage.engine.seeing import first_unseen, look, new_records, pull_and_share, write
from partage.engine.tally import all_rows, clear
from partage.evidence import kl
from partage.rules.kl_ucb import MARGIN, highest_bound, kl_upper

if TYPE_CHECKING:
    from partage.engine.run import Run
    from partage.rules import KLUCB

PLAYS_HIDDEN_ARMS = True


def play(run: "Run", rule: "KLUCB") -> None:
    """Play one run."""
    if rule.sees != "own":
        both = rule.sees == "both"
        play_kl_ucb_on_shared(
            run.table, both, *run.key, run.tie_order, run.order, run.checkpoints, run.curve, run.outcome
        )
        return
    play_kl_ucb(run.table, *run.key, run.tie_order, run.checkpoints, run.curve, run.outcome)


@compiled
def play_kl_ucb(game, k0, k1, tie_order, checkpoints, curve, outcome):
    """Play one run of KL-UCB by every agent. `curve[c]` is the overall regret up to `checkpoints[c]`."""
    clear(game.public, outcome)
    all_rows(outcome)
    arms, table, gaps = game.arms, game.rewards, game.gaps
    curve[:] = 0.0
    for agent in range(game.agents):
        own = new_own(arms)
        counts, sums = own.counts, own.sums
        arm, checkpoint = tie_order[0], np.int64(0)
        between, until = 0.0, 0.0  # q, and the least evidence of another arm for being below it
        for done in range(game.horizon):
            if done < arms:
                arm = tie_order[done]
            else:
                level = math.log(done)
                stays = level * (1.0 + MARGIN) < until
                if stays:
                    mean = sums[arm] / counts[arm]
                    stays = mean > between or counts[arm] * kl(mean, between) < level * (1.0 - MARGIN)
                if not stays:
                    arm, between = _highest_bound(level, counts, sums, tie_order)
                    until = _least_evidence(arm, between, counts, sums)
            pull(k0, k1, table, agent, arm, own)
            if checkpoint < len(checkpoints):
                checkpoint = add_to_curve(checkpoint, done + 1, checkpoints, gaps, counts, curve)
        for i in range(arms):
            outcome.commit[i, agent] = counts[i]


@compiled
def play_kl_ucb_on_shared(game, both, k0, k1, tie_order, order, checkpoints, curve, outcome):
    """Play one run of KL-UCB on what is shared, and with `both` also on an agent's private pulls."""
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
                chosen = highest_bound(counts, sums, tie_order)
            arm = first_unseen(agent, records, counts, tie_order)
            changed = pull_and_share(k0, k1, table, agent, chosen if arm < 0 else arm, records, explore)
        checkpoint = add_to_curve(checkpoint, step + 1, checkpoints, gaps, records.pulled, curve)
    write(records, outcome)


@uncounted
def _highest_bound(level, counts, sums, tie_order):
    """Return the arm with the highest bound, the first of equals, and the middle between that and the next bound."""
    best, highest, second = tie_order[0], -1.0, 0.0
    for arm in tie_order:
        bound = kl_upper(sums[arm] / counts[arm], level / counts[arm])
        if bound > highest:
            best, highest, second = arm, bound, max(0.0, highest)
        else:
            second = max(second, bound)
    return best, 0.5 * (highest + second)


@uncounted
def _least_evidence(best, between, counts, sums):
    """Return the least n kl(mean, q) of any other arm; 0 if the mean of one is not below q."""
    least = math.inf
    for arm in range(len(counts)):
        if arm != best:
            mean = sums[arm] / counts[arm]
            least = min(least, counts[arm] * kl(mean, between) if mean < between else 0.0)
    return least

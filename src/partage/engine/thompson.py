"""Thompson sampling, compiled: alone, and on what is shared."""

import math
from typing import TYPE_CHECKING

import numpy as np

from partage import tape
from partage.compiled import compiled, inlined, uncounted
from partage.engine.alone import add_to_curve, new_own, pull
from partage.engine.rewards import philox, unit
from partage.engine.seeing import look, new_records, pull_and_share, write
from partage.engine.tally import all_rows, clear

if TYPE_CHECKING:
    from partage.engine.run import Run
    from partage.rules import Thompson

PLAYS_HIDDEN_ARMS = True

_OTHER, _ONE = np.uint64(tape.OTHER), np.uint64(1)
_gamma_from = uncounted(tape.gamma_from)
_DECISIONS, _DRAWS_PER_PULL = np.int64(tape.DECISIONS), np.int64(tape.DRAWS_PER_PULL)


def play(run: "Run", rule: "Thompson") -> None:
    """Play one run."""
    if rule.sees != "own":
        both = rule.sees == "both"
        play_thompson_on_shared(
            run.table, both, *run.key, run.tie_order, run.order, run.checkpoints, run.curve, run.outcome
        )
        return
    play_thompson(run.table, *run.key, run.tie_order, run.checkpoints, run.curve, run.outcome)


@compiled
def play_thompson(game, k0, k1, tie_order, checkpoints, curve, outcome):
    """Play one run of Thompson sampling by every agent. `curve[c]` is the overall regret up to `checkpoints[c]`."""
    clear(game.public, outcome)
    all_rows(outcome)
    arms, table, gaps = game.arms, game.rewards, game.gaps
    curve[:] = 0.0
    for agent in range(game.agents):
        own = new_own(arms)
        counts, sums = own.counts, own.sums
        checkpoint = np.int64(0)
        for done in range(game.horizon):
            arm = _highest_draw(k0, k1, agent, done, counts, sums, tie_order)
            pull(k0, k1, table, agent, arm, own)
            if checkpoint < len(checkpoints):
                checkpoint = add_to_curve(checkpoint, done + 1, checkpoints, gaps, counts, curve)
        for i in range(arms):
            outcome.commit[i, agent] = counts[i]


@compiled
def play_thompson_on_shared(game, both, k0, k1, tie_order, order, checkpoints, curve, outcome):
    """Play one run of Thompson sampling on what is shared, and with `both` also on an agent's private pulls."""
    clear(game.public, outcome)
    all_rows(outcome)
    table, gaps, explore = game.rewards, game.gaps, outcome.explore
    records = new_records(game)
    counts, sums = np.zeros(game.arms, np.int64), np.zeros(game.arms)  # what the agent sees
    checkpoint = np.int64(0)
    curve[:] = 0.0
    for step in range(game.horizon):
        for place in range(game.agents):
            agent = order[place]
            look(both, agent, records, counts, sums)
            arm = _highest_draw(k0, k1, agent, step, counts, sums, tie_order)
            pull_and_share(k0, k1, table, agent, arm, records, explore)
        checkpoint = add_to_curve(checkpoint, step + 1, checkpoints, gaps, records.pulled, curve)
    write(records, outcome)


@inlined
def _highest_draw(k0, k1, agent, done, counts, sums, tie_order):
    """Return the arm with the highest draw of an agent that has made `done` pulls."""
    arm, highest = tie_order[0], -1.0
    for draw in range(len(counts)):
        i = tie_order[draw]
        drawn = _beta(k0, k1, agent, done * _DRAWS_PER_PULL + draw, 1.0 + sums[i], 1.0 + counts[i] - sums[i])
        if drawn > highest:
            arm, highest = i, drawn
    return arm


@uncounted
def _beta(k0, k1, agent, entry, a, b):
    """Draw a Beta(a, b) number, as `partage.tape.Draws.beta` does."""
    block = np.uint64(0)
    while True:
        w0, w1, w2, w3 = philox(k0, k1, block, np.uint64(entry), np.uint64(_DECISIONS + agent), _OTHER)
        block += _ONE
        radius, angle = math.sqrt(-2.0 * math.log(1.0 - unit(w0))), 2.0 * math.pi * unit(w1)
        x = _gamma_from(a, radius * math.cos(angle), 1.0 - unit(w2))
        y = _gamma_from(b, radius * math.sin(angle), 1.0 - unit(w3))
        if x >= 0.0 and y >= 0.0:
            return x / (x + y)

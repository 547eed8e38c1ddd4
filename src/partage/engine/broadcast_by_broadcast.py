"""Balanced-GLR, Shared-IMED and KL-ETC, jumping from broadcast to broadcast as `partage.engine.balanced_etc` does.

These rules broadcast little, so the open arms are recomputed after each broadcast. Where they depend on the clock,
they are recomputed at each of its ticks, too.
"""

from typing import TYPE_CHECKING

import numpy as np

from partage.clock import TICKS
from partage.compiled import compiled, inlined
from partage.engine.commits import change_leader, explored_at, finish_commits, start_commits, write_curve
from partage.engine.decisions import RuleTable, new_case, note_eliminations, open_arms, revise
from partage.engine.rewards import TAPE, next_reward, ranks
from partage.engine.sharers import first_from
from partage.engine.tally import clear

if TYPE_CHECKING:
    from partage.engine.run import Run

_NONE, _FAR = np.int64(-1), np.int64(2**63 - 1)
_TICKS = np.array(TICKS)


def play(run: "Run", rule: RuleTable) -> None:
    """Play one run of a rule that is laid out as a table."""
    run.call(play_broadcasts, rule)


@compiled
def play_broadcasts(game, rule, k0, k1, tie_order, order, sharers, checkpoints, curve, outcome):
    """Play one run of a rule on a game in which every arm is shared; arguments as in `play_balanced_etc`."""
    clear(game.public, outcome)
    agents, arms, table, gaps, public = game.agents, game.arms, game.rewards, game.gaps, game.public
    counts, sums, active = outcome.counts, outcome.sums, outcome.active
    explore, eliminated_step, eliminated_agent = outcome.explore, outcome.eliminated_step, outcome.eliminated_agent
    firsts, places, entries = sharers.firsts, sharers.places, sharers.entries
    end = agents * game.horizon
    rank = ranks(tie_order)
    word, group_of = np.zeros(arms, np.uint64), np.full(arms, _NONE)
    case = new_case(rule, arms)
    leader = tie_order[0]
    commits = start_commits(leader, arms, outcome)
    current, commit, opened = commits.current, outcome.commit, case.opened
    now, checkpoint = np.int64(0), np.int64(0)
    clock, tick = np.int64(0), np.int64(0)

    while open_arms(rule, clock, counts, sums, active, leader, case) > 1:
        # 1. Who explores next. All pulls before that are commits on the leader.
        pull, arm, sharer = _next_explorer(now, now % agents, agents, opened, counts, rank, firsts, places)
        if rule.clocked and _TICKS[tick] <= min(pull, end):
            now, clock, tick = max(now, _TICKS[tick]), _TICKS[tick], tick + 1
            continue
        if checkpoint < len(checkpoints):
            checkpoint = write_curve(checkpoint, pull, checkpoints, agents, gaps, counts, commits, curve)
        if pull >= end:
            break

        # 2. It explores, and the board is revised.
        place, now = np.int64(places[sharer]), pull + 1
        explore[entries[sharer]] += 1
        explored_at(place, np.int64(1), current, commit)
        reward = next_reward(k0, k1, table, arm, counts[arm], TAPE, word, group_of)
        sums[arm] += reward
        counts[arm] += 1
        before = leader
        leader = revise(rule, game.two_log, arm, reward, counts, sums, active, public, rank, leader, case)
        note_eliminations(pull // agents + 1, order[place], public, active, eliminated_step, eliminated_agent)
        if leader != before:
            change_leader(leader, now, agents, commits, outcome)

    write_curve(checkpoint, end, checkpoints, agents, gaps, counts, commits, curve)
    finish_commits(end, order, commits, outcome)


@inlined
def _next_explorer(now, now_place, agents, opened, counts, rank, firsts, places):
    """Return the next explore pull, its arm and its sharer.

    The first sharer of an open arm explores; if it shares several, the least-broadcast.
    """
    pull, arm, sharer = _FAR, _NONE, _NONE
    for i in range(len(opened)):
        if not opened[i]:
            continue
        at, lap = first_from(places, firsts[i], firsts[i + 1], now_place), now - now_place
        if at == firsts[i + 1]:
            at, lap = firsts[i], lap + agents
        if lap + places[at] < pull or (
            lap + places[at] == pull
            and (counts[i] < counts[arm] or (counts[i] == counts[arm] and rank[i] < rank[arm]))
        ):
            pull, arm, sharer = lap + places[at], i, at
    return pull, arm, sharer

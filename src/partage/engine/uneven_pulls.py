"""Uneven games, pull by pull: where some arm has no sharer at times, agents then play on records of their own."""

import math
from typing import TYPE_CHECKING

import numpy as np

from partage.clock import TICKS
from partage.compiled import compiled, inner, uncounted
from partage.engine.decisions import RuleTable, new_case
from partage.engine.pull_by_pull import two_ucb_index
from partage.engine.reports import is_full, new_reports, next_due, oldest_claim, with_room
from partage.engine.rewards import ranks, reward
from partage.engine.tally import all_rows, clear
from partage.engine.uneven_board import (
    CLOCK,
    LEADER,
    arrive,
    clear_uneven,
    explore,
    find_open,
    finish,
    lapse,
    new_board,
    regret_so_far,
    tell_next,
    use_up,
)

if TYPE_CHECKING:
    from partage.engine.run import Run

_TICKS = np.array(TICKS)


def play(run: "Run", rule: RuleTable) -> None:
    """Play one run of a rule that is laid out as a table."""
    play_uneven_pulls(
        *run.uneven_tables, rule, *run.key, run.tie_order, run.order, run.checkpoints, run.curve, run.outcome,
        run.uneven,
    )  # fmt: skip


@compiled
def play_uneven_pulls(game, world, rule, k0, k1, tie_order, order, checkpoints, curve, outcome, uneven):
    """Play one run of a rule on any uneven game. `curve[c]` is the overall regret up to `checkpoints[c]`."""
    board, case, reports = (
        new_board(game, world, ranks(tie_order)),
        new_case(rule, game.arms),
        new_reports(game.agents),
    )
    clear(board.public, outcome)
    all_rows(outcome)
    clear_uneven(uneven)
    state = board.state
    kept = game.agents if world.hides else 0
    own_counts, own_sums = np.zeros((kept, game.arms), np.int64), np.zeros((kept, game.arms))
    made, times, heap = np.zeros(game.agents, np.int64), np.zeros(game.agents), np.zeros(game.agents, np.int64)
    size = new_schedule(world, order, times, heap)
    before, pulls, tick, phase, arrived, used = 0.0, np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    n_open, checkpoint = np.int64(0), np.int64(0)

    while size > 0:
        place = heap[0]
        now, agent = times[place], order[place]

        # 1. What happens since the last instant.
        if now > before:
            before = now
            while checkpoint < len(checkpoints) and checkpoints[checkpoint] < now:
                curve[checkpoint] = regret_so_far(game, world, uneven)
                checkpoint += 1
            while world.used_up[used] < now:
                use_up(game, world.users[used], board)
                used += 1
            while True:
                due, first = next_due(reports), oldest_claim(reports)
                lapses = reports.pulled[first] + world.claim_steps if first >= 0 else math.inf
                if world.arrivals[arrived] < min(now, due, lapses):
                    arrive(game, world, world.arrives[arrived], world.joins[arrived], board, reports, outcome)
                    arrived += 1
                elif due <= min(now, lapses):
                    tell_next(game, rule, board, case, reports, outcome, uneven)
                elif lapses <= now:
                    lapse(game, board, reports)
                else:
                    break
            while world.phase_starts[phase + 1] < now:
                phase += 1
            n_open = find_open(rule, board, case, outcome)
        if _TICKS[tick] == pulls:
            state[CLOCK], tick = pulls, tick + 1
            n_open = find_open(rule, board, case, outcome)

        # 2. The agent explores, or commits.
        pulls += 1
        made[agent] += 1
        entry = np.int64(-1)
        if n_open > 0 and reports.claim[agent] < 0:
            entry = _least_open(game, agent, board, case, outcome)
        if entry >= 0:
            if is_full(reports):
                reports = with_room(reports)
            explore(k0, k1, game, world, rule, phase, agent, entry, now, board, case, reports, outcome, uneven)
            n_open = find_open(rule, board, case, outcome)
        else:
            arm = state[LEADER]
            if world.hides:
                arm = committed(game, agent, board, outcome, own_counts, own_sums)
                row = world.rows[phase, agent] * game.arms + arm
                own_sums[agent, arm] += reward(k0, k1, game.rewards, row, own_counts[agent, arm], 1 + agent)
                own_counts[agent, arm] += 1
            uneven.commit[phase, arm, agent] += 1

        # 3. When it pulls again.
        if made[agent] < world.makes[agent]:
            times[place] = world.start[agent] + (made[agent] + 1) / world.pace[agent]
        else:
            size -= 1
            heap[0] = heap[size]
        sink(heap, size, times)
    curve[checkpoint:] = regret_so_far(game, world, uneven)
    finish(outcome, uneven)


@inner
def new_schedule(world, order, times, heap):
    """Make a heap of places by the first pull of their agents; return its size."""
    size = 0
    for place in range(len(order)):
        agent = order[place]
        if world.makes[agent] > 0:
            times[place] = world.start[agent] + 1 / world.pace[agent]
            at = size
            size += 1
            while at > 0 and times[place] < times[heap[(at - 1) // 2]]:  # of equal times, the earlier place is first
                heap[at] = heap[(at - 1) // 2]
                at = (at - 1) // 2
            heap[at] = place
    return size


@uncounted
def sink(heap, size, times):
    """Restore the heap after its top has changed."""
    if size == 0:
        return
    at, place = 0, heap[0]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _is_earlier(heap[child + 1], heap[child], times):
            child += 1
        if _is_earlier(place, heap[child], times):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = place


@uncounted
def _is_earlier(place, other, times):
    return times[place] < times[other] or (times[place] == times[other] and place < other)


@uncounted
def _least_open(game, agent, board, case, outcome):
    """Return the entry of the least-broadcast open arm that an agent shares, claims included; -1 if there is none."""
    found, least, least_rank = np.int64(-1), np.int64(0), np.int64(0)
    for entry in range(game.starts[agent], game.starts[agent + 1]):
        arm = game.shared[entry]
        if case.opened[arm]:
            handed, rank = outcome.counts[arm] + board.claims[arm], board.rank[arm]
            if found < 0 or handed < least or (handed == least and rank < least_rank):
                found, least, least_rank = np.int64(entry), handed, rank
    return found


@uncounted
def committed(game, agent, board, outcome, own_counts, own_sums):
    """Return the arm that a commit pulls: by 2-UCB over the leader and the arms that nobody shares now."""
    best, highest, leader = np.int64(-1), -math.inf, board.state[LEADER]
    for arm in range(game.arms):
        hidden = board.sharers[arm] == 0 and (outcome.active[arm] or not board.public[arm])
        if hidden or arm == leader:
            count = outcome.counts[arm] + own_counts[agent, arm]
            index = two_ucb_index(count, outcome.sums[arm] + own_sums[agent, arm], game.two_log)
            if best < 0 or index > highest or (index == highest and board.rank[arm] < board.rank[best]):
                best, highest = np.int64(arm), index
    return best

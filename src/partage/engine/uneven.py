"""Uneven games in which every arm has a sharer throughout, from event to event.

An event is an explore pull, a report, a lapse, a tick of the clock, a change of arms, a checkpoint, or an agent that
joins, leaves or uses up its horizon. Every pull in between is a commit on the leader, and these are counted by
arithmetic.

A position is a time and a place in the order of agents: before the pull of that agent at that time. Reports and
lapses come before all pulls of their time; joins, leaves and changes come after them.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from partage.clock import TICKS
from partage.compiled import compiled, inlined, inner, uncounted
from partage.engine.decisions import RuleTable, new_case
from partage.engine.reports import is_full, new_reports, next_due, oldest_claim, with_room
from partage.engine.rewards import ranks
from partage.engine.sharers import first_from
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
from partage.engine.uneven_layout import first_pull_from, pull_time

if TYPE_CHECKING:
    from partage.engine.run import Run

_TICKS = np.array(TICKS)
_NOTHING, _REPORT, _LAPSE, _TICK, _USED_UP, _PHASE, _ARRIVAL, _CHECKPOINT = range(8)


def play(run: "Run", rule: RuleTable) -> None:
    """Play one run of a rule that is laid out as a table."""
    play_uneven(
        *run.uneven_tables, rule, *run.key, run.tie_order, run.order, run.layout, run.checkpoints, run.curve,
        run.outcome, run.uneven,
    )  # fmt: skip


@compiled
def play_uneven(game, world, rule, k0, k1, tie_order, order, layout, checkpoints, curve, outcome, uneven):
    """Play one run of a rule on an uneven game in which every arm has a sharer throughout.

    `curve[c]` is the overall regret up to `checkpoints[c]`.
    """
    agents, rank = game.agents, ranks(tie_order)
    board, case, reports = new_board(game, world, rank), new_case(rule, game.arms), new_reports(agents)
    clear(board.public, outcome)
    all_rows(outcome)
    clear_uneven(uneven)
    state, committed = board.state, np.zeros(agents, np.int64)
    nexts, times = np.zeros(len(world.class_pace), np.int64), np.full(len(world.class_pace), -math.inf)
    time, place = 0.0, np.int64(0)  # the position
    tick, used, phase, arrived = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    n_open, checkpoint = np.int64(0), np.int64(0)

    while True:
        # 1. What comes next: an event, or before it the next explore pull.
        kind, at, at_place = _NOTHING, math.inf, agents
        first = oldest_claim(reports)
        lapses = reports.pulled[first] + world.claim_steps if first >= 0 else math.inf
        due = next_due(reports)
        begun = place > 0  # what is due now had to wait for the pulls of this time
        if due <= lapses and due < math.inf:
            kind, at, at_place = _REPORT, due, np.int64(-1)
        elif lapses < math.inf:
            kind, at, at_place = _LAPSE, lapses, np.int64(-1)
        if kind != _NOTHING and begun and at <= time:
            at, at_place = time, agents + 1
        if rule.clocked:
            kind, at, at_place = _earlier(
                kind, at, at_place, _TICK, layout.tick_times[tick], layout.tick_places[tick]
            )
        kind, at, at_place = _earlier(kind, at, at_place, _USED_UP, world.used_up[used], agents)
        if checkpoint < len(checkpoints):
            kind, at, at_place = _earlier(
                kind, at, at_place, _CHECKPOINT, np.float64(checkpoints[checkpoint]), agents
            )
        kind, at, at_place = _earlier(kind, at, at_place, _PHASE, world.phase_starts[phase + 1], agents + 2)
        kind, at, at_place = _earlier(kind, at, at_place, _ARRIVAL, world.arrivals[arrived], agents + 3)
        if at > world.end or (at == world.end and at_place >= agents):  # after the last pull of all
            kind, at, at_place = _NOTHING, world.end, agents
        pull_at, sharer = at, np.int64(-1)
        if n_open > 0:
            pull_at, sharer = _next_explorer(
                world, layout, order, time, place, at, at_place, nexts, times, reports, board, case, outcome
            )

        # 2. The explore pull. All pulls since the last one were commits.
        before = state[LEADER]
        if sharer >= 0:
            explorer_place, entry = layout.places[sharer], layout.entries[sharer]
            agent = order[explorer_place]
            uneven.commit[phase, before, agent] -= 1
            time, place = pull_at, explorer_place + 1
            if is_full(reports):
                reports = with_room(reports)
            explore(k0, k1, game, world, rule, phase, agent, entry, time, board, case, reports, outcome, uneven)
            n_open = find_open(rule, board, case, outcome)
            if state[LEADER] != before:
                _count_commits(world, order, time, place, uneven.commit[phase, before], committed)
            continue

        # 3. Or the event.
        if at > time or at_place > place:
            time, place = at, min(max(at_place, np.int64(0)), agents)
        if kind == _NOTHING:
            break
        if kind == _REPORT:
            tell_next(game, rule, board, case, reports, outcome, uneven)
        elif kind == _LAPSE:
            lapse(game, board, reports)
        elif kind == _TICK:
            state[CLOCK], tick = _TICKS[tick], tick + 1
        elif kind == _USED_UP:
            use_up(game, world.users[used], board)
            used += 1
        elif kind == _ARRIVAL:
            arrive(game, world, world.arrives[arrived], world.joins[arrived], board, reports, outcome)
            arrived += 1
        if before >= 0 and (state[LEADER] != before or kind == _PHASE or kind == _CHECKPOINT):
            _count_commits(world, order, time, place, uneven.commit[phase, before], committed)
        if kind == _CHECKPOINT:
            curve[checkpoint] = regret_so_far(game, world, uneven)
            checkpoint += 1
        elif kind == _PHASE:
            phase += 1
        else:
            n_open = find_open(rule, board, case, outcome)

    if state[LEADER] >= 0:  # nobody pulls before there is a leader
        _count_commits(world, order, time, place, uneven.commit[phase, state[LEADER]], committed)
    curve[checkpoint:] = regret_so_far(game, world, uneven)
    finish(outcome, uneven)


@inlined
def _earlier(kind, at, at_place, other, other_at, other_place):
    """Return the earlier of two events; of two at the same position, the first."""
    if other_at < at or (other_at == at and other_place < at_place):
        return other, other_at, other_place
    return kind, at, at_place


@uncounted
def _next_explorer(
    world, layout, order, time, place, until, until_place, nexts, times, reports, board, case, outcome
):
    """Return when the next agent explores, and which sharer it is; -1 if none does before the position `until`.

    The first sharer of an open arm without an open claim explores; if it shares several, the least-broadcast.
    """
    best, best_place, sharer, least, least_rank = until, until_place, np.int64(-1), np.int64(0), np.int64(0)
    places, starts = layout.places, layout.starts
    for arm in range(len(case.opened)):
        if not case.opened[arm]:
            continue
        handed, rank = outcome.counts[arm] + board.claims[arm], board.rank[arm]
        for segment in range(layout.firsts[arm], layout.firsts[arm + 1]):
            of, start, stop = layout.classes[segment], starts[segment], starts[segment + 1]
            if times[of] < time:
                nexts[of] = first_pull_from(world, of, time)
                times[of] = pull_time(world, of, nexts[of]) if nexts[of] <= world.class_makes[of] else math.inf
            at = times[of]
            if at > best or at == math.inf:
                continue
            from_place = place if at == time else np.int64(0)
            found = _without_claim(places, first_from(places, start, stop, from_place), stop, order, reports)
            if found == stop and from_place > 0 and nexts[of] < world.class_makes[of]:
                at, found = pull_time(world, of, nexts[of] + 1), _without_claim(places, start, stop, order, reports)
            if found == stop:
                continue
            its = places[found]
            if (
                at < best
                or (at == best and its < best_place)
                or (
                    sharer >= 0
                    and at == best
                    and its == best_place
                    and (handed < least or (handed == least and rank < least_rank))
                )
            ):
                best, best_place, sharer, least, least_rank = at, its, found, handed, rank
    return best, sharer


@inlined
def _without_claim(places, start, stop, order, reports):
    """Return the first sharer in start:stop that has no open claim; `stop` if all have one."""
    while start < stop and reports.claim[order[places[start]]] >= 0:
        start += 1
    return start


@inner
def _count_commits(world, order, time, place, commit, committed):
    """Add the pulls up to this position to the commits of each agent, less those counted before."""
    classes = len(world.class_pace)
    before, pulling = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    for of in range(classes):
        pull = first_pull_from(world, of, time)
        before[of] = pull - 1
        pulling[of] = pull <= world.class_makes[of] and pull_time(world, of, pull) == time
    for at in range(len(order)):
        agent = order[at]
        of = world.class_of[agent]
        made = before[of] + (pulling[of] if at < place else 0)
        commit[agent] += made - committed[agent]
        committed[agent] = made

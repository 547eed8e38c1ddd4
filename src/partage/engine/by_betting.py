"""Balanced-GLR by betting on Bernoulli arms, from broadcast to broadcast.

It decides as `partage.engine.broadcast_by_broadcast` does, but computes less (docs/engine.md has the argument):

- the evidence against an arm is known to lie between two numbers, as long as the leader's record stays in a box
  (`partage.engine.bet_tables`). An arm is looked at when the record leaves its box, or when its range contains the
  level that opens arms; then the box is made smaller;
- that an arm is not beaten is known in the same way, while the record of all leaders stays in a box;
- what the rule computes is computed only where bounds do not decide (`partage.engine.bet_rows`);
- the open arms wait in a queue for their next sharer (`partage.engine.open_queue`).
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.betting import LOG_MIXED
from partage.clock import TICKS
from partage.compiled import compiled, inlined, inner, uncounted
from partage.engine.arm_list import take_out
from partage.engine.bet_quiet import longest_quiet
from partage.engine.bet_rows import ARM, TO, add_segment, exact_beaten, exact_evidence, new_rows
from partage.engine.bet_tables import (
    ROOM,
    best_q,
    evidence_in_box,
    gain_of_zero,
    more_slip,
    prices,
    slip_of,
    wealth_below,
)
from partage.engine.commits import change_leader, explored_at, finish_commits, start_commits, write_curve
from partage.engine.decisions import RuleTable, new_case, open_arms
from partage.engine.open_queue import fill, move_to_front, new_queue, remove, requeue, take_next
from partage.engine.quiet import (
    BY_COUNTS,
    CLOSED,
    CONTENDER,
    FROM,
    GONE,
    OPEN,
    STOPPED,
    TRIED_FIRST,
    next_pause,
    pays,
    shortest_pause,
)
from partage.engine.rewards import TAPE, add_rewards, next_reward, ranks
from partage.engine.stretch_circles import (
    AT,
    follow,
    give_up,
    new_path,
    reopen_by_counts,
    repeat,
    start_path,
    whole_circles,
)
from partage.engine.tally import clear
from partage.evidence import free_evidence
from partage.rules.indifference import is_indifferent

if TYPE_CHECKING:
    from partage.engine.run import Run

_NONE, _FAR = np.int64(-1), np.int64(2**63 - 1)
_TICKS = np.array(TICKS)
_POINT = 10  # from here on, a box is the leader's record alone
_UNSURE = np.int8(3)  # bounds do not say whether the arm is worth exploring
_FEWEST, _MOST, _LOWEST, _HIGHEST, _LEAST, _LARGEST, _LEFT, _INVERSE = range(8)
_LED, _MEAN, _SLACK, _PER_ZERO, _SHIFT, _LATEST = range(6)
_BLOCK = 16
_FEW = 8  # arms that are not closed in a quiet stretch, at most
_SURE = 1e-6  # far above what rounding adds to a wealth
_ABOVE, _BELOW = 1.0 + 1e-11, 1.0 - 1e-11


def play(run: "Run", rule: RuleTable) -> None:
    """Play one run of Balanced-GLR by betting on Bernoulli arms."""
    run.call(play_by_betting, rule, prices())


class Records(NamedTuple):
    """What is stored of each arm.

    Attributes
    ----------
    word, group_of
        Its last word of rewards, and which word that is.
    total, mean
        The sum of its rewards and their mean; -1 if there is none.
    state, opened
        Whether it is gone, stopped or a contender; whether it is open.
    alive, slot
        The active arms that were broadcast, without the leader, and where each arm is in that list.
    bounds
        The fewest and most broadcasts, and the lowest and highest mean, that the leader has in the arm's box; the
        least and largest evidence there; how many pulls must be left, for that to be so; and 1 / count.
    proofs
        Why it is not beaten: up to which count and mean of the bets on all leaders that is known, how much the wealth
        lacks there, how much a reward of 0 adds, how far q is from the pooled mean, and up to which of the arm's own
        counts rounding is paid for.
    fences, walls
        What all bounds and proofs of a block of arms have in common. For evidence, that is the least of a closed arm
        and the largest of an open one.
    width, proof_width
        How often each box was halved.
    todo, moved
        Arms to look at, and those that were looked at since the last broadcast.
    read, modes, few
        In a quiet stretch: how many of its rewards are read, what its evidence says about opening it, and the arms
        that are not closed.
    bands
        Between which means it stays in a quiet stretch, and its evidence.
    parts
        Room for bounds on bets.
    """

    word: NDArray[np.uint64]
    group_of: NDArray[np.int64]
    total: NDArray[np.int64]
    mean: NDArray[np.float64]
    state: NDArray[np.int8]
    opened: NDArray[np.bool_]
    alive: NDArray[np.int64]
    slot: NDArray[np.int64]
    bounds: NDArray[np.float64]
    proofs: NDArray[np.float64]
    width: NDArray[np.int64]
    proof_width: NDArray[np.int64]
    fences: NDArray[np.float64]
    walls: NDArray[np.float64]
    todo: NDArray[np.int64]
    moved: NDArray[np.int64]
    read: NDArray[np.int64]
    modes: NDArray[np.int8]
    few: NDArray[np.int64]
    bands: NDArray[np.float64]
    parts: NDArray[np.float64]


@inner
def _new_records(arms):
    """Make room for all arms."""
    return Records(
        np.zeros(arms, np.uint64), np.full(arms, _NONE), np.zeros(arms, np.int64), np.full(arms, -1.0),
        np.full(arms, CONTENDER), np.ones(arms, np.bool_), np.zeros(arms, np.int64), np.full(arms, _NONE),
        np.full((arms, 8), -1.0), np.full((arms, 6), -1.0), np.zeros(arms, np.int64), np.zeros(arms, np.int64),
        np.zeros((arms // _BLOCK + 1, 7)), np.full((arms // _BLOCK + 1, 2), math.inf), np.zeros(arms, np.int64),
        np.zeros(arms, np.int64), np.zeros(arms, np.int64), np.zeros(arms, np.int8), np.zeros(arms, np.int64),
        np.zeros((arms, 4)), np.zeros(ROOM),
    )  # fmt: skip


@compiled
def play_by_betting(game, rule, k0, k1, tie_order, order, sharers, checkpoints, curve, outcome, price):
    """Play one run on a game in which every arm is shared; arguments as in `play_balanced_etc`."""
    clear(game.public, outcome)
    rank, commits = ranks(tie_order), start_commits(tie_order[0], game.arms, outcome)
    checkpoint = _explore(
        game, rule, k0, k1, tie_order[0], rank, order, sharers, price, checkpoints, curve, outcome, commits,
        new_case(rule, game.arms), new_queue(game.arms, sharers.firsts), _new_records(game.arms),
        new_rows(game.arms), new_path(game.arms, rule.lead, game.horizon >= FROM),
    )  # fmt: skip
    end = game.agents * game.horizon
    write_curve(checkpoint, end, checkpoints, game.agents, game.gaps, outcome.counts, commits, curve)
    finish_commits(end, order, commits, outcome)


@uncounted
def _explore(
    game, rule, k0, k1, leader, rank, order, sharers, price, checkpoints, curve, outcome, commits, case, queue,
    records, rows, path,
):  # fmt: skip
    """Play until nothing is explored any more; return the next checkpoint."""
    agents, arms, table, gaps = game.agents, game.arms, game.rewards, game.gaps
    counts, sums, active, explore = outcome.counts, outcome.sums, outcome.active, outcome.explore
    firsts, places, entries = sharers.firsts, sharers.places, sharers.entries
    word, group_of, total, mean = records.word, records.group_of, records.total, records.mean
    state, opened, alive, slot = records.state, records.opened, records.alive, records.slot
    bounds, proofs, width, proof_width = records.bounds, records.proofs, records.width, records.proof_width
    todo, moved, parts, led, led_paid = records.todo, records.moved, records.parts, rows.led, rows.led_paid
    fences, walls = records.fences, records.walls
    segments, n_segments = rows.segments, rows.n_segments
    q_arms, q_pulls, ends, queued = queue.arms, queue.pulls, queue.ends, queue.queued
    sharer, lap = queue.sharer, queue.lap
    read, modes, few, bands = records.read, records.modes, records.few, records.bands
    current, commit, walked = commits.current, outcome.commit, path.state
    lead, threshold, clocked, all_pulls = rule.lead, rule.threshold, rule.clocked, rule.all_pulls
    needed, end = rule.threshold + LOG_MIXED, agents * game.horizon

    highest, n_active, n_alive, n_unseen, n_worth = -1.0, arms, np.int64(0), arms, arms
    now, lap_start, now_place, place = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    checkpoint, clock, tick, left = np.int64(0), np.int64(0), np.int64(0), np.float64(all_pulls)
    most, n_open, witness, n_todo, free, spread = np.int64(1), arms, _NONE, np.int64(0), 0.0, 0.0
    quiet, longest, patience, n_few = np.int64(0), np.int64(64), FROM, np.int64(0)
    skipped, pause = np.int64(0), shortest_pause(arms)
    fill(arms, agents, firsts, places, sharer, lap, q_arms, q_pulls, ends, queued)
    for i in range(arms):
        proofs[i, _PER_ZERO] = proofs[i, _SHIFT] = 0.0
        _take_down(i // _BLOCK, fences)

    while n_active > 1:
        # 1. Who explores next. All pulls before that are commits on the leader.
        if ends[1] > len(q_arms) - arms - 2:
            move_to_front(q_arms, q_pulls, ends)
        pull = q_pulls[ends[0]] if ends[1] > ends[0] else _FAR
        arm, before, was_led, ended, recount, reward = leader, leader, False, True, False, 0.0
        if clocked and _TICKS[tick] <= min(pull, end):
            now, clock, tick = max(now, _TICKS[tick]), _TICKS[tick], tick + 1
            now_place = now % agents
            lap_start, left = now - now_place, np.float64(max(0, all_pulls - clock))
            if counts[leader] == 0:
                continue
            if quiet > 0:
                longest = _end_quiet(k0, k1, table, leader, counts, sums, alive, n_alive, records, rows)
                pause = next_pause(skipped, pause, arms)
                patience = np.int64(0) if pays(skipped, arms) else pause
                quiet, was_led, highest = np.int64(0), True, 1.0
        else:
            if checkpoint < len(checkpoints):
                checkpoint = write_curve(checkpoint, pull, checkpoints, agents, gaps, counts, commits, curve)
            if pull >= end:
                break

            # 2. It explores.
            arm, at, place = take_next(
                pull, counts, rank, agents, firsts, places, sharer, lap, q_arms, q_pulls, ends, queued
            )
            now, lap_start, now_place = pull + 1, pull - place, place + 1
            explore[entries[at]] += 1
            explored_at(place, np.int64(1), current, commit)
            if quiet > 0:
                # In a quiet stretch, counts alone say which arms are open, and rewards are read when it ends.
                counts[arm] += 1
                if counts[arm] - read[arm] < quiet:
                    skipped += 1
                    if arm != leader:
                        most = max(most, counts[arm])
                    n_open = reopen_by_counts(
                        leader, lead, most, True, few, n_few, modes, counts, opened, lap_start, now_place,
                        agents, firsts, places, sharer, lap, q_arms, q_pulls, ends, queued,
                    )  # fmt: skip
                    if walked[AT] >= 0:
                        follow(at, lead, counts[leader], most, few, n_few, counts, path)
                        until = _TICKS[tick] if clocked else _FAR
                        if checkpoint < len(checkpoints):
                            until = min(until, checkpoints[checkpoint] * agents)
                        times = whole_circles(
                            quiet, now, now_place, min(until, end), lead, most, leader, few, n_few, modes, counts,
                            read, opened, path,
                        )  # fmt: skip
                        if times > 0:
                            pulls = repeat(
                                times, now, leader, few, n_few, sharers, counts, read, queue, path, current, outcome
                            )
                            now, lap_start, skipped = now + pulls, lap_start + pulls, skipped + pulls
                            for j in range(n_few):
                                most = max(most, counts[few[j]])
                    continue
                give_up(quiet, path)
                longest = _end_quiet(k0, k1, table, leader, counts, sums, alive, n_alive, records, rows)
                pause = next_pause(skipped, pause, arms)
                patience = np.int64(0) if pays(skipped, arms) else pause
                quiet, was_led, highest = np.int64(0), True, 1.0
                recount = True
            else:
                ended = False
                reward = next_reward(k0, k1, table, arm, counts[arm], TAPE, word, group_of)
                counts[arm] += 1
                total[arm] += np.int64(reward)
                sums[arm] += reward
                mean[arm] = sums[arm] / counts[arm]
                bounds[arm, _INVERSE] = 1.0 / counts[arm]
                was_led = arm == leader and counts[arm] > 1
                if was_led:
                    led[arm] += 1
                    led[arms] += 1
                    led_paid[arm] += np.int64(reward)
                    led_paid[arms] += np.int64(reward)
                    last = n_segments[0] - 1
                    if last >= 0 and segments[last, ARM] == arm and segments[last, TO] == counts[arm] - 1:
                        segments[last, TO] += 1
                    else:
                        add_segment(k0, k1, table, arm, counts[arm] - 1, counts[arm], rows)
                elif counts[arm] == 1:
                    n_unseen -= 1

            # 3. The leader. `highest` is at least the highest mean of the others.
            first = n_unseen == arms - 1 and counts[arm] == 1
            if first:
                leader, n_worth = arm, n_worth - 1
            elif arm == leader:
                if mean[arm] <= highest:
                    leader, highest = _best(leader, mean, rank, alive, n_alive)
            else:
                if counts[arm] == 1:
                    alive[n_alive], slot[arm] = arm, n_alive
                    n_alive += 1
                highest = max(highest, mean[arm])
                most = max(most, counts[arm]) if state[arm] == CONTENDER else most
                if mean[arm] > mean[leader] or (mean[arm] == mean[leader] and rank[arm] < rank[leader]):
                    leader = arm
            if leader != before or first:
                if leader != before:
                    change_leader(leader, now, agents, commits, outcome)
                if slot[leader] >= 0:
                    n_alive = take_out(leader, n_alive, alive, slot)
                    n_worth -= state[leader] == CONTENDER
                if counts[before] > 0 and before != leader:
                    alive[n_alive], slot[before] = before, n_alive
                    n_alive, n_worth = n_alive + 1, n_worth + 1
                    state[before], highest = CONTENDER, max(highest, mean[before])
                    n_open += opened[before]
                n_open -= opened[leader]
                state[leader], recount = CONTENDER, True
                bounds[leader, _MOST], proofs[leader, _SLACK], proofs[leader, _LED] = -1.0, -1.0, -1.0
                walls[before // _BLOCK, _LED] = fences[before // _BLOCK, _MOST] = -1.0
                witness = _NONE if witness == leader else witness

            # 4. Which arms are beaten, for good.
            n_todo = np.int64(0)
            if was_led:
                all_led = np.float64(max(1, led[arms]))
                all_mean = led_paid[arms] / all_led
                for block in range(len(walls)):
                    if all_led <= walls[block, _LED] and all_mean <= walls[block, _MEAN]:
                        continue
                    walls[block, _LED] = walls[block, _MEAN] = math.inf
                    for i in range(block * _BLOCK, min(arms, block * _BLOCK + _BLOCK)):
                        if slot[i] < 0:
                            continue
                        if all_led > proofs[i, _LED] or all_mean > proofs[i, _MEAN]:
                            todo[n_todo] = i
                            n_todo += 1
                        else:
                            walls[block, _LED] = min(walls[block, _LED], proofs[i, _LED])
                            walls[block, _MEAN] = min(walls[block, _MEAN], proofs[i, _MEAN])
            else:
                if arm != leader:
                    if reward == 0.0:
                        proofs[arm, _SLACK] -= proofs[arm, _PER_ZERO]
                    if proofs[arm, _SLACK] < 0.0 or counts[arm] > proofs[arm, _LATEST]:
                        todo[0], n_todo = arm, np.int64(1)
                elif before != leader and counts[before] > 0:
                    todo[0], n_todo = before, np.int64(1)
            for j in range(n_todo):
                i = todo[j]
                if _is_beaten(
                    k0, k1, table, i, threshold, counts, sums, total, proofs, proof_width, price, parts, rows
                ):
                    active[i] = False
                    n_active -= 1
                    n_alive = take_out(i, n_alive, alive, slot)
                    n_worth -= state[i] == CONTENDER
                    recount |= counts[i] == most
                    state[i] = GONE
                    witness = _NONE if witness == i else witness
                    n_open -= opened[i]
                    opened[i] = False
                    if queued[i]:
                        queued[i] = False
                        remove(i, q_arms, q_pulls, ends)
                    outcome.eliminated_step[i], outcome.eliminated_agent[i] = pull // agents + 1, order[place]
                else:
                    walls[i // _BLOCK, _LED] = min(walls[i // _BLOCK, _LED], proofs[i, _LED])
                    walls[i // _BLOCK, _MEAN] = min(walls[i // _BLOCK, _MEAN], proofs[i, _MEAN])
            if n_active <= 1:
                break

        # 5. Which arms to look at: their record has changed, or the leader's is no longer in their box.
        ahead, best = counts[leader], mean[leader]
        n_todo = np.int64(0)
        if ended or arm == leader or leader != before:
            free, spread = free_evidence(ahead), _spread(best, np.float64(ahead))
            for block in range(len(fences)):
                if (
                    fences[block, _FEWEST] <= ahead
                    and ahead <= fences[block, _MOST]
                    and fences[block, _LOWEST] <= best
                    and best <= fences[block, _HIGHEST]
                    and fences[block, _LEFT] <= left
                    and fences[block, _LARGEST] < free
                    and free < fences[block, _LEAST]
                ):
                    continue
                _take_down(block, fences)
                for i in range(block * _BLOCK, min(arms, block * _BLOCK + _BLOCK)):
                    if slot[i] < 0:
                        continue
                    inside = (
                        bounds[i, _FEWEST] <= ahead
                        and ahead <= bounds[i, _MOST]
                        and bounds[i, _LOWEST] <= best
                        and best <= bounds[i, _HIGHEST]
                        and bounds[i, _LEFT] <= left
                    )
                    if not inside or (
                        state[i] == CONTENDER
                        and counts[i] <= ahead
                        and (bounds[i, _LARGEST] >= free if opened[i] else bounds[i, _LEAST] <= free)
                    ):
                        width[i] = max(width[i] + (1 if inside else -1), 0)
                        todo[n_todo] = i
                        n_todo += 1
                    else:
                        _put_up(i, block, bounds, fences)
                        if state[i] == CONTENDER and counts[i] <= ahead:
                            _put_level(i, block, opened[i], bounds, fences)
        elif state[arm] != GONE:
            todo[0], n_todo = arm, np.int64(1)
        n_moved = n_todo
        for j in range(n_todo):
            moved[j] = todo[j]
        whole, sure, slow, low, high = witness == _NONE, True, _NONE, free, free
        while True:
            for j in range(n_todo):
                i = todo[j]
                count, base, many, worst, top = (
                    np.float64(counts[i]),
                    np.float64(ahead),
                    np.float64(ahead),
                    best,
                    best,
                )
                if width[i] < _POINT:
                    share = 1.0 / np.float64(1 << width[i])
                    many += math.floor(share * (0.125 * base + 4.0))
                    if count > ahead:  # it may open when the leader has as many
                        many = min(many, count - 1.0)
                    worst, top = max(0.0, best - share * spread), min(1.0, best + share * spread)
                least, largest = evidence_in_box(count, mean[i], base, many, worst, top, price, parts)
                bounds[i, _FEWEST], bounds[i, _MOST], bounds[i, _LOWEST], bounds[i, _HIGHEST] = base, many, worst, top
                bounds[i, _LEAST], bounds[i, _LARGEST], bounds[i, _LEFT] = least, largest, 0.0
                now_state = CONTENDER
                if all_pulls > 0:
                    now_state, bounds[i, _LEFT] = _state_in_box(
                        needed, left, count, mean[i], base, many, worst, top, least, largest
                    )
                    if now_state == _UNSURE and width[i] >= _POINT:
                        exactly = exact_evidence(k0, k1, table, i, leader, counts, sums, rows)
                        stops = is_indifferent(exactly, needed, counts[i], mean[i], ahead, best, np.int64(left))
                        now_state, bounds[i, _LEFT] = STOPPED if stops else CONTENDER, left
                if (now_state == CONTENDER) != (state[i] == CONTENDER):
                    n_worth += 1 if now_state == CONTENDER else -1
                    recount = True
                state[i] = now_state
                _put_up(i, i // _BLOCK, bounds, fences)
            n_todo = np.int64(0)

            # 6. The level that opens arms: what is free if a witness's pace allows less, or else the slowest pace.
            if witness >= 0 and (
                state[witness] != CONTENDER
                or ahead * bounds[witness, _LARGEST] >= lead * counts[witness] * free * _BELOW
            ):
                witness = _NONE
            slow, by_counts, low, high, pace = _NONE, False, free, free, 0.0
            if witness == _NONE:
                whole = True
                least_pace, pace = math.inf, math.inf
                for j in range(n_alive):
                    i = alive[j]
                    if state[i] == CONTENDER:
                        least_pace = min(least_pace, bounds[i, _LEAST] * bounds[i, _INVERSE])
                        if bounds[i, _LARGEST] * bounds[i, _INVERSE] < pace:
                            slow, pace = i, bounds[i, _LARGEST] * bounds[i, _INVERSE]
                if slow >= 0:
                    if ahead * pace < lead * free * _BELOW:
                        witness, slow = slow, _NONE
                    else:
                        low, high = ahead * least_pace / lead * _BELOW, ahead * pace / lead * _ABOVE
                        by_counts = low > free
                        low, high = max(free, low), max(free, high)

            # 7. Which arms are open. Where bounds do not decide, smaller boxes may.
            sure = True
            for j in range(n_alive if whole else n_moved):
                i = alive[j] if whole else moved[j]
                if state[i] == GONE or state[i] == STOPPED:
                    continue
                unsure = state[i] == _UNSURE
                if not unsure and slow >= 0:
                    if by_counts:
                        unsure = i != slow and bounds[i, _LEAST] * bounds[i, _INVERSE] <= pace * _ABOVE
                    else:
                        unsure = ahead * bounds[i, _LEAST] * bounds[i, _INVERSE] <= lead * free * _ABOVE
                if not unsure and counts[i] <= ahead and not (by_counts and i == slow):
                    unsure = bounds[i, _LEAST] <= high and bounds[i, _LARGEST] >= low
                if unsure:
                    sure = False
                    if width[i] < _POINT:
                        width[i] += 2
                        todo[n_todo] = i
                        n_todo += 1
            if sure:
                break
            if slow >= 0 and width[slow] < _POINT and (n_todo == 0 or todo[n_todo - 1] != slow):
                narrower = True
                for j in range(n_todo):
                    narrower &= todo[j] != slow
                if narrower:
                    width[slow] += 2
                    todo[n_todo] = slow
                    n_todo += 1
            if n_todo == 0:
                break
        if not sure:
            _decide_exactly(k0, k1, table, rule, clock, leader, counts, sums, active, alive, n_alive, case, rows)
        if recount:
            most = np.int64(1)
            for j in range(n_alive):
                if state[alive[j]] == CONTENDER:
                    most = max(most, counts[alive[j]])

        # 8. Arms that open or close.
        for j in range(n_alive if whole or not sure else n_moved):
            i = alive[j] if whole or not sure else moved[j]
            if not sure:
                behind = case.opened[i]
            elif state[i] != CONTENDER or counts[i] > ahead:
                behind = False
            elif i == slow and by_counts:
                behind = lead * counts[i] <= ahead
            else:
                behind = bounds[i, _LARGEST] < low
            if state[i] == CONTENDER and counts[i] <= ahead:
                _put_level(i, i // _BLOCK, behind, bounds, fences)
            if behind != opened[i]:
                n_open += 1 if behind else -1
                opened[i] = behind
            if opened[i] != queued[i]:
                requeue(
                    i, opened[i], lap_start, now_place, agents, firsts, places, sharer, lap, q_arms, q_pulls, ends,
                    queued,
                )  # fmt: skip
        opened[leader] = n_worth > 0 and (n_open == 0 or ahead <= lead * most)
        if opened[leader] != queued[leader]:
            requeue(
                leader, opened[leader], lap_start, now_place, agents, firsts, places, sharer, lap, q_arms, q_pulls,
                ends, queued,
            )  # fmt: skip

        # 9. How long rewards need not be read.
        patience -= 1
        if patience <= 0:
            n_few, skipped = np.int64(0), np.int64(0)
            if sure and n_unseen == 0 and n_worth == n_alive and max(ahead, most) >= FROM and ends[1] > ends[0]:
                for j in range(n_alive):
                    i = alive[j]
                    modes[i], read[i] = CLOSED, counts[i]
                    if by_counts and i == slow:
                        modes[i] = BY_COUNTS
                    elif bounds[i, _LARGEST] < low:
                        modes[i] = OPEN
                    if modes[i] != CLOSED:
                        few[n_few] = i
                        n_few += 1
                if n_few <= _FEW:
                    read[leader], until = ahead, min(_TICKS[tick], end) if clocked else end
                    quiet = longest_quiet(
                        k0, k1, table, rule, left, threshold - _SURE, min(max(TRIED_FIRST, 2 * longest), until - now),
                        leader, counts, total, alive, n_alive, modes, bands, proofs[:, _SHIFT], rows, price, parts,
                    )  # fmt: skip
                    longest = quiet
                    if quiet > 0:
                        start_path(quiet, now, now_place, most, opened, path)
            if quiet == 0:
                patience = pause = next_pause(np.int64(0), pause, arms)
    if quiet > 0:
        _end_quiet(k0, k1, table, leader, counts, sums, alive, n_alive, records, rows)
    return checkpoint


@uncounted
def _end_quiet(k0, k1, table, leader, counts, sums, alive, n_alive, records, rows):
    """Read the rewards of a quiet stretch. What is known about arms that had some no longer holds.

    Return how many there were of an arm, at the most.
    """
    most = np.int64(0)
    start, stop, before = records.read[leader], counts[leader], records.total[leader]
    for j in range(n_alive + 1):
        i = alive[j] if j < n_alive else leader
        if counts[i] > records.read[i]:
            most = max(most, counts[i] - records.read[i])
            sums[i] = add_rewards(
                k0, k1, table, i, records.read[i], counts[i], TAPE, sums[i], records.word, records.group_of
            )
            records.total[i] = np.int64(sums[i])
            records.mean[i] = sums[i] / counts[i]
            records.bounds[i, _INVERSE], records.bounds[i, _MOST] = 1.0 / counts[i], -1.0
            records.proofs[i, _LED], records.proofs[i, _SLACK] = -1.0, -1.0
            records.fences[i // _BLOCK, _MOST] = records.walls[i // _BLOCK, _LED] = -1.0
    if stop > start:
        every = len(rows.led) - 1
        for i in (leader, every):
            rows.led[i] += stop - start
            rows.led_paid[i] += records.total[leader] - before
        add_segment(k0, k1, table, leader, start, stop, rows)
    return most


@inlined
def _take_down(block, fences):
    """Forget what bounds the boxes of a block of arms."""
    fences[block, _FEWEST] = fences[block, _LOWEST] = fences[block, _LEFT] = fences[block, _LARGEST] = -1.0
    fences[block, _MOST] = fences[block, _HIGHEST] = fences[block, _LEAST] = math.inf


@inlined
def _put_up(arm, block, bounds, fences):
    """Make sure that the leader's record leaves the box of a block before that of an arm."""
    fences[block, _FEWEST] = max(fences[block, _FEWEST], bounds[arm, _FEWEST])
    fences[block, _MOST] = min(fences[block, _MOST], bounds[arm, _MOST])
    fences[block, _LOWEST] = max(fences[block, _LOWEST], bounds[arm, _LOWEST])
    fences[block, _HIGHEST] = min(fences[block, _HIGHEST], bounds[arm, _HIGHEST])
    fences[block, _LEFT] = max(fences[block, _LEFT], bounds[arm, _LEFT])


@inlined
def _put_level(arm, block, is_open, bounds, fences):
    """Make sure that a block notices if what is free comes into the range of an arm's evidence."""
    if is_open:
        fences[block, _LARGEST] = max(fences[block, _LARGEST], bounds[arm, _LARGEST])
    else:
        fences[block, _LEAST] = min(fences[block, _LEAST], bounds[arm, _LEAST])


@uncounted
def _best(leader, mean, rank, alive, n_alive):
    """Return the active arm with the highest mean, ties by the tie order, and the highest mean of the others."""
    best, highest = leader, -1.0
    for j in range(n_alive):
        i = alive[j]
        if mean[i] > mean[best] or (mean[i] == mean[best] and rank[i] < rank[best]):
            highest, best = max(highest, mean[best]), i
        else:
            highest = max(highest, mean[i])
    return best, highest


@inlined
def _state_in_box(needed, left, count, mean, fewest, most, lowest, highest, least, largest):
    """Return an arm's state while the leader is in a box, and how many pulls must be left for that.

    The rule's formula (`partage.rules.indifference`), with each number at the end of its range that is worse.
    """
    radius, share = math.sqrt(needed * (count + fewest) / (2.0 * count * fewest)), fewest / most
    narrow = radius * (2.0 * share / (1.0 + share)) * _BELOW  # at most the radius at the largest count
    wide = radius * _ABOVE
    if narrow > highest - mean + 1e-9:
        broadcasts = count * max(0.0, needed / max(1.0, least) - 1.0)
        enough = broadcasts * (wide + highest - mean) / (narrow - highest + mean) * (1.0 + 1e-9)
        if left >= enough:
            return CONTENDER, enough
    broadcasts = count * (needed / max(1.0, largest) - 1.0)
    if max(0.0, (wide - lowest + mean + 1e-9) * left) < broadcasts * (narrow + lowest - mean) * (1.0 - 1e-9):
        return STOPPED, 0.0
    return _UNSURE, 0.0


@uncounted
def _is_beaten(k0, k1, table, arm, threshold, counts, sums, total, proofs, proof_width, price, parts, rows):
    """Whether an arm is beaten. If it is not, write down why, and for how long that is known.

    What is written down holds for records that are longer than today's, so it pays for the rounding of their rows.
    The row of all leaders has as many rewards as there are at the end of the box, and those of the arm itself, which
    the rule subtracts: `slip_of` all of them pays for both rows. The row of bets against the arm grows without a box.
    So `more_slip` is subtracted from the bound until that row is an eighth longer. Then the arm is looked at again.
    """
    every = len(rows.led) - 1
    count, paid, many = counts[arm], total[arm], np.float64(counts[arm])
    latest = many + math.floor(0.125 * many + 64.0)
    bound = threshold - _SURE - more_slip(many, latest)
    led, led_paid = np.float64(rows.led[every] - rows.led[arm]), np.float64(rows.led_paid[every] - rows.led_paid[arm])
    shift = proofs[arm, _SHIFT]
    mean = led_paid / led if led > 0.0 else 1.0
    width, searched = max(proof_width[arm] - 1, 0), False
    while True:
        most, highest = led, mean
        if width < _POINT:
            share = 1.0 / np.float64(1 << width)
            most += math.floor(share * (0.125 * led + 4.0))
            highest = min(1.0, mean + share * _spread(mean, max(1.0, led)))
        pooled = (paid + highest * most + 0.5) / (count + most + 1.0)
        q = min(1.0, max(0.0, pooled + shift))
        every_most = most + rows.led[arm]
        slip = slip_of(every_most)
        wealth = wealth_below(bound, q, many, many, paid / many, led, most, highest, slip, price, parts)
        if wealth < bound:
            proofs[arm, _LED], proofs[arm, _LATEST] = every_most, latest
            off = highest * rows.led[arm] - rows.led_paid[arm]
            proofs[arm, _MEAN] = highest - off / max(1.0, rows.led[every] if off > 0.0 else proofs[arm, _LED])
            proofs[arm, _SLACK], proofs[arm, _PER_ZERO], proofs[arm, _SHIFT] = bound - wealth, gain_of_zero(q), shift
            proof_width[arm] = width
            return False
        if width < _POINT:
            width = min(width + 2, _POINT)
        elif searched:
            break
        else:
            searched = True
            shift = best_q(bound, q, count, paid, led, led_paid, rows.rows[every, 0], parts) - pooled
    proof_width[arm], proofs[arm, _LED], proofs[arm, _SLACK] = width, -1.0, -1.0
    return exact_beaten(k0, k1, table, arm, threshold, counts, sums, rows)


@inlined
def _spread(mean, count):
    """Return half the width of the widest box, in which a mean is expected to stay for some time."""
    return 0.5 * math.sqrt(mean * (1.0 - mean) / count) + 0.25 / count


@uncounted
def _decide_exactly(k0, k1, table, rule, clock, leader, counts, sums, active, alive, n_alive, case, rows):
    """Write the open arms into the case, as the rule computes them."""
    for j in range(n_alive):
        case.evidence[alive[j]] = exact_evidence(k0, k1, table, alive[j], leader, counts, sums, rows)
    open_arms(rule, clock, counts, sums, active, leader, case)

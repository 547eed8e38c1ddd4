"""Balanced-GLR (by likelihood) and Shared-IMED on Bernoulli arms, from broadcast to broadcast.

It decides as `partage.engine.broadcast_by_broadcast` does, but computes less (docs/engine.md has the argument):

- evidence comes from tables (`partage.engine.evidence_table`), and the formulas of the rule are computed only where
  a number from the tables is too close to its threshold;
- a broadcast of another arm than the leader changes the evidence about that arm alone;
- the open arms wait in a queue for their next sharer (`partage.engine.open_queue`).
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.clock import TICKS
from partage.compiled import compiled, inlined, inner, uncounted
from partage.engine.arm_list import take_out
from partage.engine.commits import change_leader, explored_at, finish_commits, start_commits, write_curve
from partage.engine.decisions import IMED, RuleTable, new_case, open_arms
from partage.engine.evidence_table import SIZE, evidence_between, loss_of, margin, own_terms, tables
from partage.engine.open_queue import fill, move_to_front, new_queue, requeue, take_next
from partage.engine.quiet import (
    CLOSED,
    CONTENDER,
    FROM,
    GONE,
    STOPPED,
    TRIED_FIRST,
    longest_quiet,
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
from partage.evidence import apart, mixture_loss
from partage.rules.indifference import is_indifferent
from partage.rules.shared_imed import worth_knowing

if TYPE_CHECKING:
    from partage.engine.run import Run

_NONE, _FAR = np.int64(-1), np.int64(2**63 - 1)
_TICKS = np.array(TICKS)
_BLOCK = 32
_NOT_SURE = np.int8(-1)
_WIDTH = 0.1  # of a box, in standard deviations of the leader's sum


def play(run: "Run", rule: RuleTable) -> None:
    """Play one run of Balanced-GLR or Shared-IMED on Bernoulli arms."""
    run.call(play_by_evidence, rule, tables())


class Records(NamedTuple):
    """What is stored of each arm.

    Attributes
    ----------
    word, group_of
        Its last word of rewards, and which word that is.
    total, mean, own, inverse
        The sum of its rewards, their mean (-1: there is none), its own terms of the evidence, and 1 / count.
    evidence
        The evidence against it, when it was last looked at; for Shared-IMED, the least that it can be in its sleep.
    level
        What its evidence is compared with: for Balanced-GLR the threshold and its own mixture loss, for Shared-IMED
        the evidence up to which exploring pays (-inf: to be computed again).
    anchor
        For Shared-IMED: the level and the logarithm of the count when the level was computed. The level falls no
        faster than that logarithm rises.
    state, opened
        Whether it is gone, stopped or a contender; whether it is open.
    awake, slot
        The arms that are awake, and where each arm is in that list.
    keys, blocks
        The evidence below which an arm that sleeps needs no look, and the least of these in each block of arms.
    read, modes, few
        In a quiet stretch: how many of its rewards are read, what its evidence says about opening it, and the arms
        that are not closed.
    lowest, highest
        Between which means it stays in a quiet stretch.
    """

    word: NDArray[np.uint64]
    group_of: NDArray[np.int64]
    total: NDArray[np.int64]
    mean: NDArray[np.float64]
    own: NDArray[np.float64]
    inverse: NDArray[np.float64]
    evidence: NDArray[np.float64]
    level: NDArray[np.float64]
    anchor: NDArray[np.float64]
    state: NDArray[np.int8]
    opened: NDArray[np.bool_]
    awake: NDArray[np.int64]
    slot: NDArray[np.int64]
    keys: NDArray[np.float64]
    blocks: NDArray[np.float64]
    read: NDArray[np.int64]
    modes: NDArray[np.int8]
    few: NDArray[np.int64]
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]


@inner
def _new_records(arms):
    """Make room for all arms."""
    return Records(
        np.zeros(arms, np.uint64), np.full(arms, _NONE), np.zeros(arms, np.int64), np.full(arms, -1.0),
        np.zeros(arms), np.ones(arms), np.zeros(arms), np.zeros(arms), np.zeros(arms), np.full(arms, CONTENDER),
        np.ones(arms, np.bool_), np.zeros(arms, np.int64), np.full(arms, _NONE), np.full(arms, math.inf),
        np.full(arms // _BLOCK + 1, math.inf), np.zeros(arms, np.int64), np.zeros(arms, np.int8),
        np.zeros(arms, np.int64), np.zeros(arms), np.zeros(arms),
    )  # fmt: skip


@compiled
def play_by_evidence(game, rule, k0, k1, tie_order, order, sharers, checkpoints, curve, outcome, tables):
    """Play one run on a game in which every arm is shared; arguments as in `play_balanced_etc`."""
    clear(game.public, outcome)
    rank, commits = ranks(tie_order), start_commits(tie_order[0], game.arms, outcome)
    case, queue, records = new_case(rule, game.arms), new_queue(game.arms, sharers.firsts), _new_records(game.arms)
    checkpoint = _explore(
        game, rule, k0, k1, tie_order[0], rank, order, sharers, tables, checkpoints, curve, outcome, commits, case,
        queue, records, new_path(game.arms, rule.lead, game.horizon >= FROM),
    )  # fmt: skip
    end = game.agents * game.horizon
    write_curve(checkpoint, end, checkpoints, game.agents, game.gaps, outcome.counts, commits, curve)
    finish_commits(end, order, commits, outcome)


@uncounted
def _explore(
    game, rule, k0, k1, leader, rank, order, sharers, tables, checkpoints, curve, outcome, commits, case, queue,
    records, path,
):  # fmt: skip
    """Play until nothing is explored any more; return the next checkpoint."""
    agents, arms, table, gaps = game.agents, game.arms, game.rewards, game.gaps
    counts, sums, active, explore = outcome.counts, outcome.sums, outcome.active, outcome.explore
    firsts, places, entries = sharers.firsts, sharers.places, sharers.entries
    power, logs, losses, halves = tables.power, tables.logs, tables.losses, tables.halves
    word, group_of, total, mean, own = records.word, records.group_of, records.total, records.mean, records.own
    inverse, evidence, level, anchor = records.inverse, records.evidence, records.level, records.anchor
    state, opened, awake, slot = records.state, records.opened, records.awake, records.slot
    keys, blocks, read, modes, few = records.keys, records.blocks, records.read, records.modes, records.few
    q_arms, q_pulls, ends, queued = queue.arms, queue.pulls, queue.ends, queue.queued
    sharer, lap = queue.sharer, queue.lap
    current, commit, walked = commits.current, outcome.commit, path.state
    by_clock, lead, threshold = rule.kind == IMED, rule.lead, rule.threshold
    clocked, all_pulls = rule.clocked, rule.all_pulls
    end = agents * game.horizon

    highest, n_active, top = -1.0, arms, np.int64(1)
    now, lap_start, now_place, place = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    checkpoint, clock, tick = np.int64(0), np.int64(0), np.int64(0)
    left, price = np.float64(all_pulls), 4.0 / all_pulls if all_pulls > 0 else 0.0
    dearest = 2.0 * price  # up to this price, arms that sleep cannot be stopped
    free, loss, ahead_own, ahead_total, log_clock = 0.0, 0.0, 0.0, np.int64(0), 0.0
    most, n_open, witness = np.int64(1), np.int64(0), _NONE
    n_awake, n_asleep, asleep_most, most_ahead, rebuilt = np.int64(0), np.int64(0), np.int64(0), np.int64(0), False
    asleep_least, asleep_pace, slowest, off, enough = math.inf, math.inf, math.inf, 0.0, 0.0
    low, low_total, high, high_total = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    low_own, high_own, least_loss, most_loss = 0.0, 0.0, 0.0, 0.0
    quiet, longest, patience, n_few = np.int64(0), np.int64(64), np.int64(0), np.int64(0)
    skipped, pause = np.int64(0), shortest_pause(arms)
    fill(arms, agents, firsts, places, sharer, lap, q_arms, q_pulls, ends, queued)
    for i in range(arms):
        if i != leader:
            awake[n_awake], slot[i] = i, n_awake
            n_awake += 1

    while n_active > 1:
        # 1. Who explores next. All pulls before that are commits on the leader.
        if ends[1] > len(q_arms) - arms - 2:
            move_to_front(q_arms, q_pulls, ends)
        pull = q_pulls[ends[0]] if ends[1] > ends[0] else _FAR
        anew, relevel, ticked, all_wake, demoted, arm = False, False, False, False, _NONE, leader
        if clocked and _TICKS[tick] <= min(pull, end):
            now, clock, tick = max(now, _TICKS[tick]), _TICKS[tick], tick + 1
            now_place = now % agents
            lap_start = now - now_place
            left, log_clock = np.float64(max(0, all_pulls - clock)), math.log(max(1.0, rule.clock * clock))
            if all_pulls > 0:
                price = 4.0 / left if left > 0.0 else math.inf
            if counts[leader] == 0:
                continue
            anew, relevel, ticked, all_wake = True, quiet > 0, True, quiet > 0 or price > dearest
            if price > dearest:
                dearest = 2.0 * price
            if quiet > 0:
                longest = _read_rewards(k0, k1, table, counts, sums, read, records, power)
                pause = next_pause(skipped, pause, arms)
                patience = np.int64(0) if pays(skipped, arms) else pause
                quiet, highest = np.int64(0), _highest_but(leader, mean)
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
            counts[arm] += 1
            top = max(top, counts[arm])

            # 3. In a quiet stretch, counts alone say which arms are open, and rewards are read when it ends.
            if quiet > 0:
                if counts[arm] - read[arm] < quiet:
                    skipped += 1
                    if arm != leader:
                        most = max(most, counts[arm])
                    n_open = reopen_by_counts(
                        leader, lead, most, not by_clock, few, n_few, modes, counts, opened, lap_start, now_place,
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
                            top = max(top, most, counts[leader])
                    continue
                give_up(quiet, path)
                longest = _read_rewards(k0, k1, table, counts, sums, read, records, power)
                pause = next_pause(skipped, pause, arms)
                patience = np.int64(0) if pays(skipped, arms) else pause
                quiet, highest = np.int64(0), _highest_but(leader, mean)
                anew, relevel, all_wake = True, True, True
            else:
                reward = next_reward(k0, k1, table, arm, counts[arm] - 1, TAPE, word, group_of)
                total[arm] += np.int64(reward)
                sums[arm] += reward
                mean[arm] = sums[arm] / counts[arm]
                own[arm] = own_terms(counts[arm], total[arm], power)

            # 4. The leader. `highest` is at least the highest mean of the others.
            before = leader
            if anew:
                pass  # a quiet stretch ends with the leader it began with
            elif counts[before] == 0:
                leader = arm
            elif arm == leader:
                if mean[arm] <= highest:
                    leader = _best(mean, rank)
                    highest = _highest_but(leader, mean)
            else:
                highest = max(highest, mean[arm])
                if mean[arm] > mean[leader] or (mean[arm] == mean[leader] and rank[arm] < rank[leader]):
                    leader = arm
                    highest = max(highest, mean[before])
            if leader != before:
                change_leader(leader, now, agents, commits, outcome)
                anew, demoted = True, before
                if slot[leader] < 0:
                    if keys[leader] < math.inf:
                        keys[leader], n_asleep = math.inf, n_asleep - 1
                    awake[n_awake], slot[leader] = leader, n_awake
                    n_awake += 1
                awake[slot[leader]], slot[before], slot[leader] = before, slot[leader], _NONE
                state[leader], witness = CONTENDER, _NONE
                if not active[leader]:
                    active[leader] = True
                    n_active += 1
                    outcome.eliminated_step[leader], outcome.eliminated_agent[leader] = -1, -1

        # 5. Where the leader's record leaves its box, all arms wake.
        ahead = counts[leader]
        slip = margin(2 * top)
        everything = anew or arm == leader
        if everything:
            ahead_own, ahead_total = own[leader], total[leader]
            if not by_clock:
                loss = loss_of(ahead, ahead_total, losses, halves)
                free = 2.0 + _log_of(ahead, logs)
            if (
                all_wake
                or ahead < low
                or ahead > high
                or ahead_total * low < low_total * ahead
                or ahead_total * high > high_total * ahead
            ):
                low, low_total, high, high_total = _box(ahead, ahead_total)
                low_own, high_own = own_terms(low, low_total, power), own_terms(high, high_total, power)
                if not by_clock:
                    least_loss, most_loss = _losses_in_box(low, low_total, high, high_total, losses, halves)
                n_awake, n_asleep, asleep_most, rebuilt = np.int64(0), np.int64(0), np.int64(0), True
                asleep_least, asleep_pace = math.inf, math.inf
                for i in range(arms):
                    keys[i], slot[i] = math.inf, _NONE
                    if i != leader:
                        awake[n_awake], slot[i] = i, n_awake
                        n_awake += 1
                for i in range(len(blocks)):
                    blocks[i] = math.inf
            elif ahead < most_ahead:  # another leader, with fewer broadcasts than some arms that sleep
                for i in range(arms):
                    if slot[i] < 0 and i != leader and opened[i] and counts[i] > ahead:
                        awake[n_awake], slot[i] = i, n_awake
                        n_awake += 1
            most_ahead = ahead

        # 6. What the record says about each arm that is awake, and which arms are open.
        if by_clock:
            if anew:
                most = np.int64(1)
                for i in range(arms):
                    if i == leader:
                        continue
                    most = max(most, counts[i])
                    if ticked and counts[i] > 0:
                        level[i] = _level_of(log_clock - _log_of(counts[i], logs))
                        anchor[i] = level[i] + _log_of(counts[i], logs)
                        if slot[i] < 0 and not opened[i] and evidence[i] <= level[i]:
                            awake[n_awake], slot[i] = i, n_awake
                            n_awake += 1
            elif arm != leader:
                most = max(most, counts[arm])
            stays = False  # asleep, and open wherever in the box the leader's record is
            if not everything and slot[arm] < 0 and opened[arm] and counts[arm] <= ahead:
                largest = evidence_between(counts[arm], total[arm], own[arm], high, high_total, high_own, power)
                stays = largest < anchor[arm] - _log_of(counts[arm], logs) - 2.0 * slip
            if stays:
                level[arm] = -math.inf
                requeue(
                    arm, True, lap_start, now_place, agents, firsts, places, sharer, lap, q_arms, q_pulls, ends,
                    queued,
                )  # fmt: skip
            j = n_awake if everything else 1 - np.int64(stays)
            while j > 0:
                j -= 1
                i = awake[j] if everything else arm
                if counts[i] > 0:
                    found = evidence_between(counts[i], total[i], own[i], ahead, ahead_total, ahead_own, power)
                    if relevel or i == arm or i == demoted or level[i] == -math.inf:
                        level[i] = _level_of(log_clock - _log_of(counts[i], logs))
                        anchor[i] = level[i] + _log_of(counts[i], logs)
                    opened[i] = found <= level[i]
                    if abs(found - level[i]) <= slip:
                        opened[i] = apart(counts[i], sums[i], ahead, sums[leader]) <= worth_knowing(
                            rule.clock * clock, counts[i]
                        )
                    opened[i] &= counts[i] <= ahead
                    if rebuilt or i == arm:
                        least, largest = _evidence_in_box(
                            counts[i], total[i], own[i], low, low_total, low_own, high, high_total, high_own, power
                        )
                        asleep = least > level[i] + 2.0 * slip or (
                            largest < level[i] - 2.0 * slip and counts[i] <= ahead
                        )
                        evidence[i] = least - 2.0 * slip
                        if asleep and slot[i] >= 0:
                            n_awake = take_out(i, n_awake, awake, slot)
                        elif not asleep and slot[i] < 0:
                            awake[n_awake], slot[i] = i, n_awake
                            n_awake += 1
                if opened[i] != queued[i]:
                    requeue(
                        i, opened[i], lap_start, now_place, agents, firsts, places, sharer, lap, q_arms, q_pulls,
                        ends, queued,
                    )  # fmt: skip
        else:
            settled, sure = everything, True
            for j in range(n_awake if everything else 1):
                i = awake[j] if everything else arm
                if counts[i] == 0:
                    continue
                if relevel or i == arm or i == demoted:
                    level[i] = threshold + loss_of(counts[i], total[i], losses, halves)
                    inverse[i] = 1.0 / counts[i]
                found = evidence_between(counts[i], total[i], own[i], ahead, ahead_total, ahead_own, power)
                evidence[i] = found
                needed = level[i] + loss
                if found < needed * (1.0 - counts[i] * needed * price) - slip:
                    now_state = CONTENDER
                elif found > needed + slip:
                    now_state = GONE
                else:
                    now_state = _NOT_SURE
                    if found < needed - slip:
                        now_state = _by_tables(found, needed, counts[i], mean[i], ahead, mean[leader], left)
                    if now_state == _NOT_SURE:
                        now_state = _state_of(rule, left, counts[i], sums[i], ahead, sums[leader])
                if now_state != state[i]:
                    settled = True
                    if (now_state == GONE) == active[i]:
                        active[i] = now_state != GONE
                        n_active += 1 if active[i] else -1
                        if active[i]:
                            outcome.eliminated_step[i], outcome.eliminated_agent[i] = -1, -1
                        else:
                            outcome.eliminated_step[i] = pull // agents + 1
                            outcome.eliminated_agent[i] = order[place]
                    state[i] = now_state
            if not settled:
                most = max(most, counts[arm])
                off = slip * (2.0 + ahead * inverse[arm])
                if witness == _NONE or (
                    arm == witness and ahead * evidence[arm] * inverse[arm] > lead * (free - off)
                ):
                    settled = True
                else:
                    behind = counts[arm] <= ahead and evidence[arm] <= free and state[arm] == CONTENDER
                    sure = abs(evidence[arm] - free) > slip
                    n_open += np.int64(behind) - np.int64(opened[arm])
                    opened[arm], enough = behind, free
                    opened[leader] = n_open == 0 or ahead <= lead * most
            if settled:
                while True:
                    slowest, second, slow, most, worth = math.inf, math.inf, _NONE, np.int64(1), n_asleep
                    for j in range(n_awake):
                        i = awake[j]
                        if state[i] == CONTENDER:
                            worth += 1
                            if counts[i] > 0:
                                most = max(most, counts[i])
                                pace = evidence[i] * inverse[i]
                                if pace < slowest:
                                    slowest, second, slow = pace, slowest, i
                                elif pace < second and not (counts[i] == counts[slow] and total[i] == total[slow]):
                                    second = pace
                    paced = ahead * slowest / lead
                    off = slip * (2.0 + ahead * inverse[slow]) if slow >= 0 else slip
                    witness = slow if paced < free - off else _NONE
                    enough = max(free, paced)
                    by_pace = witness == _NONE and slowest + 2.0 * slip >= asleep_pace
                    if n_asleep == 0 or (enough + off < asleep_least and not by_pace):
                        break
                    asleep_least = math.inf
                    if by_pace:
                        asleep_pace = math.inf
                    for block in range(len(blocks)):
                        if by_pace or blocks[block] <= enough + off:
                            least = math.inf
                            for i in range(block * _BLOCK, min(arms, block * _BLOCK + _BLOCK)):
                                if keys[i] == math.inf:
                                    continue
                                if (
                                    keys[i] * inverse[i] <= slowest + 2.0 * slip
                                    if by_pace
                                    else keys[i] <= enough + off
                                ):
                                    keys[i], n_asleep = math.inf, n_asleep - 1
                                    awake[n_awake], slot[i] = i, n_awake
                                    n_awake += 1
                                    evidence[i] = evidence_between(
                                        counts[i], total[i], own[i], ahead, ahead_total, ahead_own, power
                                    )
                                else:
                                    least = min(least, keys[i])
                                    if by_pace:
                                        asleep_pace = min(asleep_pace, keys[i] * inverse[i])
                            blocks[block] = least
                        asleep_least = min(asleep_least, blocks[block])
                if asleep_most > most:
                    most = _most_of(leader, counts, state)
                    asleep_most = most
                n_open = np.int64(0)
                for j in range(n_awake):
                    i = awake[j]
                    behind = False
                    if state[i] == CONTENDER:
                        if counts[i] == 0:
                            behind = True
                        elif counts[i] <= ahead:
                            behind = evidence[i] <= enough
                            if abs(evidence[i] - enough) <= off:
                                behind = lead * counts[i] <= ahead
                                sure &= (
                                    paced > free + off
                                    and second - slowest > 2.0 * slip
                                    and counts[i] == counts[slow]
                                    and total[i] == total[slow]
                                )
                    opened[i] = behind
                    n_open += behind
                opened[leader] = worth > 0 and (n_open == 0 or ahead <= lead * most)
            if not sure:
                _decide_exactly(rule, clock, counts, sums, active, leader, case)
                n_open = np.int64(0)
                for i in range(arms):
                    opened[i] = case.opened[i]
                    n_open += i != leader and opened[i]
            if settled or not sure:
                for j in range(n_awake):
                    i = awake[j]
                    if opened[i] != queued[i]:
                        requeue(
                            i, opened[i], lap_start, now_place, agents, firsts, places, sharer, lap, q_arms, q_pulls,
                            ends, queued,
                        )  # fmt: skip
            elif opened[arm] != queued[arm]:
                requeue(
                    arm, opened[arm], lap_start, now_place, agents, firsts, places, sharer, lap, q_arms, q_pulls,
                    ends, queued,
                )  # fmt: skip

            # 7. Closed arms sleep until the level that opens arms is near, if nothing else can happen to them.
            if rebuilt or arm != leader:
                j = n_awake if rebuilt else np.int64(1)
                while j > 0:
                    j -= 1
                    i = awake[j] if rebuilt else arm
                    if opened[i] or state[i] == STOPPED:
                        continue
                    least, largest = _evidence_in_box(
                        counts[i], total[i], own[i], low, low_total, low_own, high, high_total, high_own, power
                    )
                    if state[i] == GONE:
                        if least > level[i] + most_loss + 2.0 * slip:
                            n_awake = take_out(i, n_awake, awake, slot)
                        continue
                    share = 1.0 - counts[i] * (level[i] + most_loss) * dearest
                    least -= 2.0 * slip
                    if (
                        least > enough + off
                        and largest < (level[i] + least_loss) * share - 2.0 * slip
                        and i != witness
                        and (witness != _NONE or least * inverse[i] > slowest + 2.0 * slip)
                    ):
                        n_awake, n_asleep = take_out(i, n_awake, awake, slot), n_asleep + 1
                        keys[i], block = least, i // _BLOCK
                        blocks[block] = min(blocks[block], least)
                        asleep_least = min(asleep_least, least)
                        asleep_pace = min(asleep_pace, least * inverse[i])
                        asleep_most = max(asleep_most, counts[i])
        rebuilt = False
        if by_clock:
            opened[leader] = ahead <= lead * most
        if opened[leader] != queued[leader]:
            requeue(
                leader, opened[leader], lap_start, now_place, agents, firsts, places, sharer, lap, q_arms, q_pulls,
                ends, queued,
            )  # fmt: skip

        # 8. How long rewards need not be read.
        patience -= 1
        if patience <= 0 and top >= FROM and ends[1] > ends[0]:
            until = min(_TICKS[tick], end) if clocked else end
            quiet = longest_quiet(
                k0, k1, table, rule, clock, price, min(max(TRIED_FIRST, 2 * longest), until - now), leader, counts,
                total, state, modes, records.lowest, records.highest,
            )  # fmt: skip
            longest, n_few, skipped = quiet, np.int64(0), np.int64(0)
            if quiet == 0:
                patience = pause = next_pause(skipped, pause, arms)
            else:
                for i in range(arms):
                    read[i] = counts[i]
                    if modes[i] != CLOSED:
                        few[n_few] = i
                        n_few += 1
                start_path(quiet, now, now_place, most, opened, path)

    if quiet > 0:
        _read_rewards(k0, k1, table, counts, sums, read, records, power)
    return checkpoint


@uncounted
def _read_rewards(k0, k1, table, counts, sums, read, records, power):
    """Read the rewards of a quiet stretch. Return how many there were of an arm, at the most."""
    most = np.int64(0)
    for i in range(len(counts)):
        if counts[i] > read[i]:
            most = max(most, counts[i] - read[i])
            sums[i] = add_rewards(k0, k1, table, i, read[i], counts[i], TAPE, sums[i], records.word, records.group_of)
            records.total[i] = np.int64(sums[i])
            records.mean[i] = sums[i] / counts[i]
            records.own[i] = own_terms(counts[i], records.total[i], power)
    return most


@uncounted
def _box(count, total):
    """Return two records around the leader's. Its means stay between theirs, and its count too, for a while."""
    width = np.int64(_WIDTH * math.sqrt(total * (count - total) / count)) + 1
    high = count + count // 8 + 4
    return (
        count,
        max(np.int64(0), total - width),
        high,
        min(high, np.int64(math.ceil((total + width) * (high / count)))),
    )


@uncounted
def _losses_in_box(low, low_total, high, high_total, losses, halves):
    """Return the least and the largest mixture loss that a record in the box can have."""
    series = 1.0 / (12.0 * low)
    fewest_failures = low * (high - high_total) // high
    most = _loss_of(high, losses) + series - _half_of(low_total, halves) - _half_of(fewest_failures, halves)
    return _loss_of(low, losses) - series, most


@inlined
def _loss_of(count, losses):
    """Return a number of the table, or one that is at most 1 / (12 count) off it."""
    return losses[count] if count < SIZE else 0.5 * math.log(0.5 * math.pi * count)


@inlined
def _half_of(x, halves):
    """Return a number of the table, or a lower one."""
    return halves[x] if x < SIZE else -1.0 / (24.0 * x)


@inlined
def _evidence_in_box(count, total, own, low, low_total, low_own, high, high_total, high_own, power):
    """Return the least and the largest evidence against an arm in the box.

    It rises with the leader's count and with its mean, as long as that is the higher one.
    """
    least, largest = 0.0, evidence_between(count, total, own, high, high_total, high_own, power)
    if total * low < low_total * count:
        least = evidence_between(count, total, own, low, low_total, low_own, power)
    return least, largest


@uncounted
def _most_of(leader, counts, state):
    """Return how often the contender with the most broadcasts was broadcast."""
    most = np.int64(1)
    for i in range(len(counts)):
        if i != leader and state[i] == CONTENDER:
            most = max(most, counts[i])
    return most


@inlined
def _level_of(x):
    """Return the evidence up to which exploring pays, as `worth_knowing` does up to rounding."""
    return x - 0.5 - 0.5 * math.log(max(1.0, x))


@inlined
def _log_of(count, logs):
    return logs[count] if count < len(logs) else math.log(count)


@uncounted
def _best(mean, rank):
    """Return the arm with the highest mean, ties by the tie order."""
    best = 0
    for i in range(len(mean)):
        if mean[i] > mean[best] or (mean[i] == mean[best] and rank[i] < rank[best]):
            best = i
    return best


@uncounted
def _highest_but(leader, mean):
    """Return the highest mean of all arms but the leader."""
    highest = -1.0
    for i in range(len(mean)):
        if i != leader:
            highest = max(highest, mean[i])
    return highest


@inlined
def _by_tables(evidence, needed, count, mean, ahead, leader, left):
    """Return whether an arm that is not gone is stopped or a contender; `_NOT_SURE` if that depends on rounding.

    See `is_indifferent`. Evidence from tables moves either side by much less than a millionth of what is compared.
    """
    gap, radius = leader - mean, math.sqrt(needed * (count + ahead) / (2.0 * count * ahead))
    broadcasts = count * (needed / max(1.0, evidence) - 1.0)
    spare = (radius - gap) * left - broadcasts * (radius + gap)
    if abs(spare) <= 1e-6 * (radius + abs(gap)) * (left + count * needed):
        return _NOT_SURE
    return STOPPED if spare < 0.0 else CONTENDER


@uncounted
def _state_of(rule, left, count, total, ahead, ahead_total):
    """Return whether an arm is gone, stopped or a contender, as the rule computes it."""
    evidence = apart(count, total, ahead, ahead_total)
    loss, ahead_loss = mixture_loss(count, total), mixture_loss(ahead, ahead_total)
    if not evidence - loss - ahead_loss < rule.threshold:
        return GONE
    needed = rule.threshold + loss + ahead_loss
    if rule.all_pulls > 0 and is_indifferent(
        evidence, needed, count, total / count, ahead, ahead_total / ahead, np.int64(left)
    ):
        return STOPPED
    return CONTENDER


@uncounted
def _decide_exactly(rule, clock, counts, sums, active, leader, case):
    """Write the open arms into the case, as the rule computes them."""
    for i in range(len(counts)):
        case.evidence[i], case.loss[i] = 0.0, mixture_loss(counts[i], sums[i])
        if i != leader and counts[i] > 0:
            case.evidence[i] = apart(counts[i], sums[i], counts[leader], sums[leader])
    open_arms(rule, clock, counts, sums, active, leader, case)

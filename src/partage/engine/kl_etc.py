"""KL-ETC, jumping from broadcast to broadcast as `partage.engine.balanced_etc` does.

On Bernoulli arms most broadcasts compare no arms: intervals that meet show that nothing is separated
(`partage.engine.intervals`), and while all is calm, arms are read ahead, each up to its last reward that changes
nothing. Open arms wait in a queue, and long records have quiet stretches and circles. Other arms are played by
`broadcast_by_broadcast`, and games in which members may lie by `bounded`.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.arms import BernoulliTable
from partage.compiled import compiled, inner, uncounted
from partage.engine import bounded, broadcast_by_broadcast
from partage.engine.actives import best_of_actives, is_better, least_of, most_open_at
from partage.engine.circles import (
    CIRCLES_AFTER,
    PULLS,
    ROUNDS,
    WALKED,
    count_circles,
    look_for_circle,
    new_trail,
    walk,
)
from partage.engine.commits import change_leader, explored_at, finish_commits, start_commits, write_curve
from partage.engine.decisions import KL_ETC, RuleTable
from partage.engine.evidence_table import (
    SIZE,
    evidence_between,
    loss_of,
    margin,
    net_of,
    own_part,
    own_terms,
    tables,
)
from partage.engine.intervals import (
    CUT,
    HIGH,
    LOW,
    N_BOTTOMS,
    N_TOPS,
    distance,
    freeze,
    is_outside,
    new_intervals,
    put_in,
    set_points,
    take_out,
)
from partage.engine.open_queue import (
    fill,
    move_to_front,
    new_queue,
    open_waiting,
    postpone,
    put_back,
    remove,
    take_next,
)
from partage.engine.quiet import band
from partage.engine.rewards import TAPE, add_rewards, bernoulli_word, next_reward, ones, ranks
from partage.engine.tally import GameTable, clear
from partage.evidence import apart, mixture_loss
from partage.rules.balanced_glr import elimination_threshold

if TYPE_CHECKING:
    from partage.engine.run import Run
    from partage.rules import KLETC

PLAYS_HIDDEN_ARMS = False

_NONE = np.int64(-1)
_SHORTEST_QUIET, _LONGEST_QUIET = np.int64(8), np.int64(2**40)
_SHORTEST_WAIT, _LONGEST_WAIT = np.int64(1), np.int64(64)  # rounds before all may be calm again
_LEAST_LEAD = 4.0  # rewards that the leader is ahead by, for all to be calm
_SLIP = 1e-6  # rewards by which a mean must be on its side of the cut, far above rounding errors
_SLACK = 2.0  # broadcasts of an arm that move the end of its interval by less than the points are away from it


def play(run: "Run", rule: "KLETC", circles_after: np.int64 = CIRCLES_AFTER) -> None:
    """Play one run."""
    table = rule_table(rule, run.table)
    if rule.tolerate:
        bounded.play(run, table)
    elif isinstance(run.table.rewards, BernoulliTable):
        run.call(play_kl_etc, table, tables(), circles_after)
    else:
        broadcast_by_broadcast.play(run, table)


def rule_table(rule: "KLETC", table: GameTable) -> RuleTable:
    """Lay out the rule for kernels."""
    threshold = elimination_threshold(table.arms, table.horizon)
    return RuleTable(KL_ETC, rule.balance, 0.0, threshold, tolerate=rule.tolerate)


class Records(NamedTuple):
    """What is stored of each arm.

    Attributes
    ----------
    word, group_of, read
        Its last word of rewards, which word that is, and how many rewards were read.
    total, mean
        The sum of its rewards and their mean; -1 if there is none.
    safe, ahead
        While all is calm: up to which reward the arm changes nothing, and the sum of its rewards up to there.
    actives
        The active arms.
    waiting
        The active arms that are not open, in the order in which they were closed.
    leaving
        The arms that are eliminated by the latest broadcast.
    """

    word: NDArray[np.uint64]
    group_of: NDArray[np.int64]
    read: NDArray[np.int64]
    total: NDArray[np.int64]
    mean: NDArray[np.float64]
    safe: NDArray[np.int64]
    ahead: NDArray[np.int64]
    actives: NDArray[np.int64]
    waiting: NDArray[np.int64]
    leaving: NDArray[np.int64]


@inner
def _new_records(arms):
    """Make room for all arms."""
    return Records(
        np.zeros(arms, np.uint64), np.full(arms, _NONE), np.zeros(arms, np.int64), np.zeros(arms, np.int64),
        np.full(arms, -1.0), np.zeros(arms, np.int64), np.zeros(arms, np.int64), np.arange(arms),
        np.zeros(arms, np.int64), np.zeros(arms, np.int64),
    )  # fmt: skip


@compiled
def play_kl_etc(
    game, rule, k0, k1, tie_order, order, sharers, checkpoints, curve, outcome, tables, circles_after
):  # fmt: skip
    """Play one run on a game in which every arm is shared; arguments as in `play_balanced_etc`."""
    clear(game.public, outcome)
    arms, long = game.arms, rule.balance == 1.0 and game.horizon > circles_after
    rank, commits = ranks(tie_order), start_commits(tie_order[0], arms, outcome)
    checkpoint = _explore(
        game, rule, k0, k1, tie_order[0], rank, order, sharers, tables, checkpoints, curve, outcome, circles_after,
        commits, new_queue(arms, sharers.firsts), _new_records(arms), new_intervals(arms),
        new_trail(game.agents, long),
    )  # fmt: skip
    end = game.agents * game.horizon
    write_curve(checkpoint, end, checkpoints, game.agents, game.gaps, outcome.counts, commits, curve)
    finish_commits(end, order, commits, outcome)


@uncounted
def _explore(
    game, rule, k0, k1, leader, rank, order, sharers, tables, checkpoints, curve, outcome, circles_after, commits,
    queue, records, intervals, trail,
):  # fmt: skip
    """Play until one arm is left, or to the end; return the next checkpoint."""
    agents, arms, table, gaps = game.agents, game.arms, game.rewards, game.gaps
    counts, sums, active, explore = outcome.counts, outcome.sums, outcome.active, outcome.explore
    firsts, places, entries = sharers.firsts, sharers.places, sharers.entries
    word, group_of, read, total, mean = records.word, records.group_of, records.read, records.total, records.mean
    actives, waiting, leaving = records.actives, records.waiting, records.leaving
    safe, net, points = records.safe, intervals.net, intervals.points
    tops, bottoms, top_at, bottom_at = intervals.tops, intervals.bottoms, intervals.top_at, intervals.bottom_at
    q_arms, q_pulls, ends, queued = queue.arms, queue.pulls, queue.ends, queue.queued
    sharer, lap = queue.sharer, queue.lap
    current, commit, walked = commits.current, outcome.commit, trail.state
    balance, threshold, end = rule.balance, rule.threshold, agents * game.horizon
    long = len(trail.sharers) > 0

    n_active, n_waiting, n_leaving = arms, np.int64(0), np.int64(0)
    now, lap_start, now_place = np.int64(0), np.int64(0), np.int64(0)
    least, at_least, top, checkpoint = np.int64(0), arms, np.int64(1), np.int64(0)
    most_open = most_open_at(balance, least)
    quiet, longest, patience, wait = np.int64(0), _SHORTEST_QUIET, np.int64(0), _SHORTEST_WAIT
    calm, skipped, limit = False, np.int64(0), min(circles_after, SIZE // 2)
    fill(arms, agents, firsts, places, sharer, lap, q_arms, q_pulls, ends, queued)

    while n_active > 1:
        # 1. Who explores next. All pulls before that are commits on the leader.
        if ends[1] > len(q_arms) - arms - 2:
            move_to_front(q_arms, q_pulls, ends)
        pull = q_pulls[ends[0]]
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
        if long and walked[WALKED] >= 0:
            walk(at, trail)

        # 3. Which arms are open now. Where a round starts, whole circles may be counted at once.
        n_waiting = put_back(
            arm, counts[arm] <= most_open, n_waiting, waiting, lap_start, now_place, agents, firsts, places, sharer,
            lap, q_arms, q_pulls, ends, queued,
        )  # fmt: skip
        at_least -= counts[arm] - 1 == least
        if at_least == 0:
            least, at_least = least_of(actives, n_active, counts)
            most_open = most_open_at(balance, least)
            n_waiting = open_waiting(
                most_open, n_waiting, waiting, counts, active, lap_start, now_place, agents, firsts, places, sharer,
                lap, q_arms, q_pulls, ends, queued,
            )  # fmt: skip
            if long and least >= circles_after:
                look_for_circle(now, now_place, agents, n_active, trail)
                if walked[ROUNDS] > 0 and quiet > 0:
                    until = end if checkpoint == len(checkpoints) else checkpoints[checkpoint] * agents
                    circles = count_circles(
                        quiet, until - now, actives, n_active, places, entries, read, lap, trail, current, outcome
                    )
                    least += circles * walked[ROUNDS]
                    most_open = most_open_at(balance, least)
                    lap_start += circles * walked[PULLS]
                    now += circles * walked[PULLS]
                    postpone(circles * walked[PULLS], q_pulls, ends)

        # 4. Rewards, unless nothing can depend on them yet.
        if calm:
            if counts[arm] > safe[arm]:
                _look_ahead(k0, k1, table, arm, arm == leader, threshold, limit, tables, records, points)
            if counts[arm] <= safe[arm]:
                skipped += 1
                continue
            for j in range(n_active):
                _read_safe(actives[j], counts[actives[j]] - (actives[j] == arm), sums, tables, records, intervals)
            calm = False
            wait = _SHORTEST_WAIT if skipped > 8 * n_active else min(2 * wait, _LONGEST_WAIT)
            patience = wait * n_active
        if quiet > 0:
            if counts[arm] - read[arm] < quiet:
                continue
            for j in range(n_active):
                _read_rewards(k0, k1, table, actives[j], counts, sums, tables, records, intervals)
                top = max(top, counts[actives[j]])
            quiet, patience = np.int64(0), np.int64(0)
        else:
            mean_before = mean[arm]
            reward = next_reward(k0, k1, table, arm, read[arm], TAPE, word, group_of)
            read[arm] += 1
            total[arm] += np.int64(reward)
            sums[arm] += reward
            mean[arm] = sums[arm] / counts[arm]
            net[arm] = net_of(counts[arm], total[arm], tables)

            # 5. Eliminations. Only this arm's record has changed.
            slip = margin(2 * top)
            half = 0.5 * threshold - slip
            below = is_outside(counts[arm], total[arm], net[arm], half, HIGH, points)
            above = is_outside(counts[arm], total[arm], net[arm], half, LOW, points)
            if (above and mean[arm] < points[LOW]) or (below and mean[arm] > points[HIGH]):
                set_points(half, _SLACK / counts[arm], active, counts, total, mean, intervals)
            elif points[LOW] < points[HIGH]:
                below &= mean[arm] < points[HIGH]
                above &= mean[arm] > points[LOW]
                if below != (bottom_at[arm] >= 0):
                    if below:
                        put_in(arm, N_BOTTOMS, bottoms, bottom_at, points)
                    else:
                        take_out(arm, N_BOTTOMS, bottoms, bottom_at, points)
                if above != (top_at[arm] >= 0):
                    if above:
                        put_in(arm, N_TOPS, tops, top_at, points)
                    else:
                        take_out(arm, N_TOPS, tops, top_at, points)
            n_leaving = np.int64(0)
            if bottom_at[arm] >= 0:
                for j in range(np.int64(points[N_TOPS])):
                    if _separates(tops[j], arm, threshold, slip, counts, total, sums, mean, tables):
                        leaving[0], n_leaving = arm, np.int64(1)
                        break
            if top_at[arm] >= 0:
                for j in range(np.int64(points[N_BOTTOMS])):
                    if _separates(arm, bottoms[j], threshold, slip, counts, total, sums, mean, tables):
                        leaving[n_leaving] = bottoms[j]
                        n_leaving += 1
            if n_leaving > 0:
                if n_leaving == n_active:  # never eliminate all of them
                    n_leaving = _all_but(best_of_actives(actives, n_active, mean, rank), leaving, n_leaving)
                n_active = _eliminate(
                    pull // agents + 1, order[place], half, leaving, n_leaving, actives, n_active, total, queue,
                    intervals, outcome,
                )  # fmt: skip
                walked[WALKED] = -1
                least, at_least = least_of(actives, n_active, counts)
                most_open = most_open_at(balance, least)
                n_waiting = open_waiting(
                    most_open, n_waiting, waiting, counts, active, lap_start, now_place, agents, firsts, places,
                    sharer, lap, q_arms, q_pulls, ends, queued,
                )  # fmt: skip

            # 6. The leader.
            before = leader
            if not active[leader] or (arm == leader and mean[arm] < mean_before):
                leader = best_of_actives(actives, n_active, mean, rank)
            elif active[arm] and is_better(arm, leader, mean, rank):
                leader = arm
            if leader != before:
                change_leader(leader, now, agents, commits, outcome)
            patience -= 1

        # 7. How long rewards need not be read.
        if patience <= 0 and top < limit:
            if points[LOW] < points[HIGH]:
                half = 0.5 * threshold - margin(2 * top)
                set_points(half, 0.0, active, counts, total, mean, intervals)
            calm = _is_calm(leader, actives, n_active, counts, records, points)
            skipped = np.int64(0)
            if not calm:
                wait = min(2 * wait, _LONGEST_WAIT)
                patience = wait * n_active
        elif patience <= 0:
            if top >= circles_after:
                half = 0.5 * threshold - margin(2 * top)
                set_points(half, 0.0, active, counts, total, mean, intervals)
            quiet = _longest_quiet(
                k0,
                k1,
                table,
                min(2 * longest, end - now),
                threshold,
                leader,
                actives,
                n_active,
                counts,
                total,
                points,
            )
            longest = max(quiet, _SHORTEST_QUIET)
            if quiet == 0:
                patience = 16 * n_active

    for j in range(n_active):
        if calm:
            _read_safe(actives[j], counts[actives[j]], sums, tables, records, intervals)
        else:
            _read_rewards(k0, k1, table, actives[j], counts, sums, tables, records, intervals)
    return checkpoint


# --- while all is calm ----------------------------------------------------------------------------------------


@uncounted
def _is_calm(leader, actives, n_active, counts, records, points):
    """Whether a point is in all intervals and a cut is between the leader's mean and all others.

    Then an arm changes nothing as long as its interval holds the point and its mean stays on its side of the cut.
    """
    if points[LOW] < points[HIGH]:
        return False
    second, mean = -1.0, records.mean
    for j in range(n_active):
        arm = actives[j]
        records.safe[arm], records.ahead[arm] = counts[arm], records.total[arm]
        if counts[arm] == 0:
            return False
        if arm != leader:
            second = max(second, mean[arm])
    points[CUT] = 0.5 * (second + mean[leader])
    return (mean[leader] - second) * counts[leader] > _LEAST_LEAD


@uncounted
def _look_ahead(k0, k1, table, arm, leads, threshold, limit, tables, records, points):
    """Read ahead in the word of an arm's next reward, up to the last one that changes nothing."""
    safe, total = records.safe[arm], records.ahead[arm]
    if safe >> 6 != records.group_of[arm]:
        records.group_of[arm] = safe >> 6
        records.word[arm] = bernoulli_word(k0, k1, table.first[arm], safe >> 6, arm, TAPE)
    word, last = records.word[arm] >> np.uint64(safe & 63), min(limit, (safe | 63) + 1)
    log_q, log_rest, cut = points[LOW + 1], points[LOW + 2], points[CUT]
    half = 0.5 * threshold - margin(2 * limit - 1)
    while safe < last:
        count, won = safe + 1, total + np.int64(word & np.uint64(1))
        over = won - cut * count
        if distance(count, won, net_of(count, won, tables), log_q, log_rest) >= half:
            break
        if (over if leads else -over) <= _SLIP:
            break
        word >>= np.uint64(1)
        safe, total = count, won
    records.safe[arm], records.ahead[arm] = safe, total


@uncounted
def _read_safe(arm, count, sums, tables, records, intervals):
    """Read the rewards of an arm up to the `count`th, which were read ahead."""
    if count == records.read[arm]:
        return
    total, after = records.ahead[arm], records.safe[arm] - count
    if after > 0:
        rest = records.word[arm] >> np.uint64(count & 63)
        total -= ones(rest & ((np.uint64(1) << np.uint64(after)) - np.uint64(1)))
    records.read[arm], records.total[arm], sums[arm] = count, total, np.float64(total)
    records.mean[arm] = sums[arm] / count
    intervals.net[arm] = net_of(count, total, tables)


# --- rewards and eliminations ---------------------------------------------------------------------------------


@uncounted
def _read_rewards(k0, k1, table, arm, counts, sums, tables, records, intervals):
    """Add the rewards of an arm that are not read yet."""
    count, read = counts[arm], records.read
    if count == read[arm]:
        return
    sums[arm] = add_rewards(k0, k1, table, arm, read[arm], count, TAPE, sums[arm], records.word, records.group_of)
    read[arm], records.total[arm] = count, np.int64(sums[arm])
    records.mean[arm] = sums[arm] / count
    intervals.net[arm] = net_of(count, records.total[arm], tables)


@uncounted
def _separates(better, worse, threshold, slip, counts, total, sums, mean, tables):
    """Whether the record shows that an arm has a higher mean than another one."""
    if mean[better] <= mean[worse]:
        return False
    n, k = counts[worse], counts[better]
    power, losses, halves = tables.power, tables.losses, tables.halves
    evidence = evidence_between(
        n,
        total[worse],
        own_terms(n, total[worse], power),
        k,
        total[better],
        own_terms(k, total[better], power),
        power,
    )
    net = evidence - loss_of(n, total[worse], losses, halves) - loss_of(k, total[better], losses, halves)
    if abs(net - threshold) > 3.0 * slip:
        return net > threshold
    exact = apart(n, sums[worse], k, sums[better])
    return exact - mixture_loss(n, sums[worse]) - mixture_loss(k, sums[better]) >= threshold


@uncounted
def _all_but(best, leaving, n_leaving):
    """Let the best of all arms stay; return how many leave."""
    left = np.int64(0)
    for j in range(n_leaving):
        if leaving[j] != best:
            leaving[left] = leaving[j]
            left += 1
    return left


@uncounted
def _eliminate(step, agent, half, leaving, n_leaving, actives, n_active, total, queue, intervals, outcome):
    """Eliminate these arms; return how many are left."""
    for j in range(n_leaving):
        arm = leaving[j]
        outcome.active[arm] = False
        outcome.eliminated_step[arm], outcome.eliminated_agent[arm] = step, agent
        freeze(arm, half, outcome.counts, total, intervals)
        if queue.queued[arm]:
            queue.queued[arm] = False
            remove(arm, queue.arms, queue.pulls, queue.ends)
    left = np.int64(0)
    for j in range(n_active):
        if outcome.active[actives[j]]:
            actives[left] = actives[j]
            left += 1
    return left


@uncounted
def _longest_quiet(k0, k1, table, most, threshold, leader, actives, n_active, counts, total, points):
    """Return for how many broadcasts of each arm rewards need not be read: up to `most`, 0 if too few."""
    if points[LOW] < points[HIGH]:
        return np.int64(0)
    pulls = min(most, _LONGEST_QUIET)
    while pulls >= _SHORTEST_QUIET:
        if _stays_quiet(k0, k1, table, pulls, threshold, leader, actives, n_active, counts, total, points):
            return pulls
        pulls >>= 1
    return np.int64(0)


@uncounted
def _stays_quiet(k0, k1, table, pulls, threshold, leader, actives, n_active, counts, total, points):
    """Whether `pulls` more rewards of each active arm eliminate no arm and leave the leader.

    n kl(mean, q) rises with n and is convex in the mean, so it is largest at the end, on one side of the band in
    which the mean stays. A mixture loss is at least 0.5 log(pi n / 2).
    """
    if counts[leader] == 0:
        return False
    worst, _ = band(k0, k1, table.first[leader], leader, counts[leader], total[leader], pulls)
    log_q, log_rest = points[LOW + 1], points[LOW + 2]
    for j in range(n_active):
        arm = actives[j]
        if counts[arm] == 0:
            return False
        last = counts[arm] + pulls
        lowest, highest = band(k0, k1, table.first[arm], arm, counts[arm], total[arm], pulls)
        if arm != leader and highest >= worst - 1e-12:
            return False
        most = 0.5 * threshold + 0.5 * math.log(0.5 * math.pi * counts[arm]) - margin(2 * last)
        for mean in (lowest, highest):
            won = min(np.float64(last), last * mean)
            if distance(last, won, own_part(last, won), log_q, log_rest) >= most:
                return False
    return True

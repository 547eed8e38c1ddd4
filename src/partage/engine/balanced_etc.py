"""Balanced-ETC, jumping from broadcast to broadcast.

Number the pulls of a run from 0: the agent at place p of the order makes pull `step * M + p`. Between two broadcasts
nothing public changes, so

- every pull in between is a commit on the same leader, and is counted by arithmetic (`partage.engine.commits`);
- who explores next follows from the counts and the order of agents alone: the first agent from here on that shares an
  open arm. Each arm keeps a pointer to its next sharer.

The time of a run is therefore proportional to its broadcasts, not to M times T. Most broadcasts cost even less. While
no elimination and no change of leader can happen, whatever the next rewards of each arm are, rewards are not read one
by one; they are added from the tape together when that ends (`quiet`). And where arms take turns (B = 1), who
explores in a round depends only on the place at which the round starts, so a long run soon goes in circles, and whole
circles are counted at once (`partage.engine.circles`).

Tuples are unpacked before the main loop, because numba updates a reference count whenever it reads an array from one.

`partage.engine.reference` plays the same rule pull by pull; both give the same tally, bit for bit.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.compiled import compiled, inlined, uncounted
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
from partage.engine.decisions import ETC, RuleTable
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
from partage.engine.rewards import TAPE, add_rewards, next_reward, ranks
from partage.engine.tally import GameTable, clear

if TYPE_CHECKING:
    from partage.engine.run import Run
    from partage.rules import BalancedETC

PLAYS_HIDDEN_ARMS = False

_NONE = np.int64(-1)
_SHORTEST_QUIET, _LONGEST_QUIET = np.int64(8), np.int64(2**40)
_MARGIN = 1e-9  # safety margin of a quiet stretch, far above rounding errors


def play(run: "Run", rule: "BalancedETC", circles_after: np.int64 = CIRCLES_AFTER) -> None:
    """Play one run."""
    run.call(play_balanced_etc, rule.balance, circles_after)


def rule_table(rule: "BalancedETC", table: GameTable) -> RuleTable:
    """Lay out the rule for the kernel that plays games with arms that nobody shares."""
    return RuleTable(ETC, rule.balance, 0.0, 0.0)


class Bounds(NamedTuple):
    """Mean and confidence interval of each arm, as far as its rewards have been read."""

    mean: NDArray[np.float64]
    upper: NDArray[np.float64]
    lower: NDArray[np.float64]


class Reader(NamedTuple):
    """How many entries of each arm's tape are in the sums; its last word of rewards, and which word that is."""

    read: NDArray[np.int64]
    word: NDArray[np.uint64]
    group_of: NDArray[np.int64]


@compiled
def play_balanced_etc(game, balance, k0, k1, tie_order, order, sharers, checkpoints, curve, outcome, circles_after):
    """Play one run of Balanced-ETC on a game in which every arm is shared.

    `curve[c]` becomes the overall regret up to step `checkpoints[c]`. Circles are looked for once every active arm
    has `circles_after` broadcasts.
    """
    clear(game.public, outcome)
    agents, arms, two_log = game.agents, game.arms, game.two_log
    table, gaps = game.rewards, game.gaps
    counts, sums, active, explore = outcome.counts, outcome.sums, outcome.active, outcome.explore
    firsts, places, entries = sharers.firsts, sharers.places, sharers.entries
    end = agents * game.horizon

    rank = ranks(tie_order)
    queue = new_queue(arms, sharers.firsts)
    bounds = Bounds(np.full(arms, -math.inf), np.full(arms, math.inf), np.full(arms, -math.inf))
    reader = Reader(np.zeros(arms, np.int64), np.zeros(arms, np.uint64), np.full(arms, _NONE))
    q_arms, q_pulls, ends, queued = queue.arms, queue.pulls, queue.ends, queue.queued
    sharer, lap = queue.sharer, queue.lap
    read, word, group_of = reader.read, reader.word, reader.group_of
    mean, upper, lower = bounds.mean, bounds.upper, bounds.lower
    long = balance == 1.0 and game.horizon > circles_after
    trail = new_trail(agents, long)
    actives, n_active = np.arange(arms), arms
    waiting, n_waiting = np.empty(arms, np.int64), np.int64(0)  # active arms that are not open
    leader = tie_order[0]
    commits = start_commits(leader, arms, outcome)
    current, commit, walked = commits.current, outcome.commit, trail.state[WALKED:]

    # The next pull, the first pull of its lap, and its place there.
    now, lap_start, now_place = np.int64(0), np.int64(0), np.int64(0)
    least, at_least = np.int64(0), arms  # the fewest broadcasts of an active arm, and how many arms have that few
    most_open = most_open_at(balance, least)
    frozen, highest_lower, highest_arm = -math.inf, -math.inf, _NONE  # highest lower bound: of eliminated, of all
    quiet, longest, patience = np.int64(0), _SHORTEST_QUIET, np.int64(0)
    checkpoint = np.int64(0)
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
        if walked[0] >= 0:
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
                if trail.state[ROUNDS] > 0 and quiet > 0:
                    until = end if checkpoint == len(checkpoints) else checkpoints[checkpoint] * agents
                    circles = count_circles(
                        quiet, until - now, actives, n_active, places, entries, read, lap, trail, current, outcome
                    )
                    least += circles * trail.state[ROUNDS]
                    most_open = most_open_at(balance, least)
                    lap_start += circles * trail.state[PULLS]
                    now += circles * trail.state[PULLS]
                    postpone(circles * trail.state[PULLS], q_pulls, ends)

        # 4. Rewards, unless nothing can depend on them yet.
        if quiet > 0:
            if counts[arm] - read[arm] < quiet:
                continue
            for j in range(n_active):
                _read_rewards(k0, k1, table, actives[j], counts, sums, two_log, reader, bounds)
            highest_lower, highest_arm = _highest(actives, n_active, lower, frozen)
            quiet, patience = np.int64(0), np.int64(0)
        else:
            mean_before = mean[arm]
            sums[arm] += next_reward(k0, k1, table, arm, read[arm], TAPE, word, group_of)
            read[arm] += 1
            _set_bounds(arm, counts[arm], sums[arm], two_log, mean, upper, lower)

            # 5. Eq. 1. Only this arm's bounds have changed.
            rose = lower[arm] > highest_lower
            if rose:
                highest_lower, highest_arm = lower[arm], arm
            elif highest_arm == arm:
                highest_lower, highest_arm = _highest(actives, n_active, lower, frozen)
            if upper[arm] <= highest_lower or (rose and _any_below(highest_lower, actives, n_active, bounds)):
                n_active, frozen = _eliminate(
                    highest_lower, frozen, pull // agents + 1, order[place], actives, n_active, bounds, rank, queue,
                    outcome,
                )  # fmt: skip
                walked[0] = -1
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
        if patience <= 0:
            quiet = _longest_quiet(longest, leader, actives, n_active, counts, sums, frozen, two_log)
            longest = max(quiet, _SHORTEST_QUIET)
            if quiet == 0:
                patience = 4 * n_active

    for j in range(n_active):
        _read_rewards(k0, k1, table, actives[j], counts, sums, two_log, reader, bounds)
    write_curve(checkpoint, end, checkpoints, agents, gaps, counts, commits, curve)
    finish_commits(end, order, commits, outcome)


# --- rewards and eliminations ---------------------------------------------------------------------------------


@uncounted
def _read_rewards(k0, k1, table, arm, counts, sums, two_log, reader, bounds):
    """Add the rewards of an arm that are not read yet, and set its bounds."""
    count = counts[arm]
    sums[arm] = add_rewards(
        k0, k1, table, arm, reader.read[arm], count, TAPE, sums[arm], reader.word, reader.group_of
    )
    reader.read[arm] = count
    if count > 0:
        _set_bounds(arm, count, sums[arm], two_log, bounds.mean, bounds.upper, bounds.lower)


@inlined
def _set_bounds(arm, count, total, two_log, mean, upper, lower):
    """Set the mean of an arm and its bounds."""
    mean[arm] = total / count
    radius = math.sqrt(two_log / count)
    upper[arm], lower[arm] = mean[arm] + radius, mean[arm] - radius


@uncounted
def _highest(actives, n_active, lower, frozen):
    """Return the highest lower bound, and its arm (-1 if that arm is eliminated)."""
    highest, of = frozen, _NONE
    for j in range(n_active):
        arm = actives[j]
        if lower[arm] > highest:
            highest, of = lower[arm], arm
    return highest, of


@uncounted
def _any_below(highest_lower, actives, n_active, bounds):
    """Whether some active arm's upper bound is at most the highest lower bound."""
    for j in range(n_active):
        if bounds.upper[actives[j]] <= highest_lower:
            return True
    return False


@uncounted
def _eliminate(highest_lower, frozen, at_step, agent, actives, n_active, bounds, rank, queue, outcome):
    """Eliminate by Eq. 1; return how many arms are left, and the highest lower bound of those eliminated."""
    best = best_of_actives(actives, n_active, bounds.mean, rank)
    staying = np.int64(0)
    for j in range(n_active):
        i = actives[j]
        if bounds.upper[i] > highest_lower:
            actives[staying] = i
            staying += 1
            continue
        outcome.active[i] = False
        outcome.eliminated_step[i], outcome.eliminated_agent[i] = at_step, agent
        frozen = max(frozen, bounds.lower[i])
        if queue.queued[i]:
            queue.queued[i] = False
            remove(i, queue.arms, queue.pulls, queue.ends)
    if staying == 0:  # never eliminate all of them
        actives[0], staying = best, np.int64(1)
        outcome.active[best] = True
        outcome.eliminated_step[best], outcome.eliminated_agent[best] = -1, -1
    return staying, frozen


@uncounted
def _longest_quiet(longest, leader, actives, n_active, counts, sums, frozen, two_log):
    """Return for how many broadcasts of each arm rewards need not be read: up to twice `longest`, 0 if too few."""
    pulls = min(2 * longest, _LONGEST_QUIET)
    while pulls >= _SHORTEST_QUIET:
        if _stays_quiet(pulls, leader, actives, n_active, counts, sums, frozen, two_log):
            return pulls
        pulls >>= 1
    return np.int64(0)


@uncounted
def _stays_quiet(pulls, leader, actives, n_active, counts, sums, frozen, two_log):
    """Whether `pulls` more rewards of each active arm cannot eliminate an arm or change the leader.

    The worst case is at the end: an arm that only loses has the lowest upper bound there, and one that only wins has
    the highest lower bound.
    """
    lead = sums[leader] / (counts[leader] + pulls)
    lowest_upper, highest_lower = math.inf, frozen
    for j in range(n_active):
        arm = actives[j]
        seen = counts[arm] + pulls
        radius = math.sqrt(two_log / seen)
        high = (sums[arm] + pulls) / seen
        if arm != leader and high >= lead - _MARGIN:
            return False
        lowest_upper = min(lowest_upper, sums[arm] / seen + radius)
        highest_lower = max(highest_lower, high - radius)
    return lowest_upper > highest_lower + _MARGIN

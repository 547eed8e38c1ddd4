"""The engine: Balanced-ETC, jumping from broadcast to broadcast.

Number the pulls of a run from 0: the agent at place p of the order makes pull `step * M + p`. Between two broadcasts
nothing public changes, so

- every pull in between is a commit on the same leader, and is counted by arithmetic on the interval;
- who explores next follows from the counts and the order of agents alone: the first agent, from here on, who
  shares an open arm. Each arm keeps a pointer to its next sharer.

A run therefore costs time in its broadcasts, not in M times T. Most broadcasts cost even less: while no elimination
and no change of leader can happen whatever the next rewards of each arm are, the rewards are not looked at one by
one; they are added from the tape together when that ends (`quiet`). And where arms take turns (B = 1), who explores
in a round depends only on the place at which it starts, so a long run soon goes in circles, which are then counted
and not walked (`trail`).

`partage.engine.reference` plays the same rule pull by pull; both give the same tally, bit for bit.
"""

import math

import numpy as np

from partage.arms import BERNOULLI
from partage.compiled import compiled
from partage.engine.rewards import TAPE, add_rewards, bernoulli_sum, ranks, reward
from partage.engine.tally import clear

_FAR = np.int64(2**63 - 1)
_SHORTEST_QUIET = 8
CIRCLES_AFTER = 2**15  # broadcasts of an arm after which looking for circles pays
_TRAIL = 2**16  # broadcasts in the longest circle that is looked for
_MARGIN = 1e-9  # what a quiet stretch must leave to spare, far above rounding


@compiled
def sharers_in_order(game, order):
    """List each arm's sharers as they act: `firsts` by arm, then place in the order and entry of each."""
    firsts = np.zeros(game.arms + 1, np.int64)
    for entry in range(len(game.shared)):
        firsts[game.shared[entry] + 1] += 1
    for arm in range(game.arms):
        firsts[arm + 1] += firsts[arm]
    filled = firsts.copy()
    places = np.empty(len(game.shared), np.int32)
    entries = np.empty(len(game.shared), np.int32)
    for place in range(game.agents):
        agent = order[place]
        for entry in range(game.starts[agent], game.starts[agent + 1]):
            at = filled[game.shared[entry]]
            filled[game.shared[entry]] += 1
            places[at], entries[at] = place, entry
    return firsts, places, entries


@compiled
def first_from(places, start, stop, place):
    """Return the first index in start:stop whose place is at least `place` (stop where none is)."""
    for at in range(start, min(start + 6, stop)):  # it is usually near
        if places[at] >= place:
            return at
    low, high = min(start + 6, stop), stop
    while low < high:
        middle = (low + high) // 2
        if places[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _stays_quiet(pulls, leader, actives, n_active, counts, sums, frozen, two_log):
    """Whether no rewards at all, up to `pulls` more of each active arm, can eliminate an arm or change the leader.

    The worst case is at the end: an arm that only loses has the lowest upper bound there, one that only wins the
    highest lower bound.
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


@compiled
def row_of_arm(arm, row_of, outcome):
    """Return the row that counts commits on this arm, taking a fresh one if it never led before."""
    if row_of[arm] < 0:
        row = outcome.rows[0]
        outcome.rows[0] += 1
        outcome.led[row] = arm
        for agent in range(outcome.commit.shape[1]):
            outcome.commit[row, agent] = 0
        row_of[arm] = row
    return row_of[arm]


@compiled
def add_interval(row, whole, agents, since, until):
    """Note one commit for every pull from `since` to `until - 1`: whole steps, then differences by place."""
    steps = (until - since) // agents
    start, rest = since % agents, (until - since) % agents
    row[start] += 1
    if start + rest <= agents:
        row[start + rest] -= 1
    else:
        row[agents] -= 1
        row[0] += 1
        row[start + rest - agents] -= 1
    return whole + steps


@compiled
def play_balanced_etc(
    game, balance, k0, k1, tie_order, order, sharers, checkpoints, curve, outcome, circles_after=CIRCLES_AFTER
):
    """Play one run of Balanced-ETC on a game in which every arm is shared.

    `curve[c]` becomes the overall regret up to step `checkpoints[c]`. `sharers` are those of `sharers_in_order`.
    """
    clear(game, outcome)
    agents, arms, two_log, table = game.agents, game.arms, game.two_log, game.rewards
    firsts, places, entries = sharers
    counts, sums, active = outcome.counts, outcome.sums, outcome.active
    explore, commit, gaps = outcome.explore, outcome.commit, game.gaps
    end = agents * game.horizon

    rank = ranks(tie_order)
    mean = np.full(arms, -math.inf)
    upper, lower = np.full(arms, math.inf), np.full(arms, -math.inf)
    highest_lower, highest_arm, frozen = -math.inf, -1, -math.inf  # of all arms; of the eliminated ones
    read = np.zeros(arms, np.int64)  # entries of the tape that are in `sums`
    word, group_of = np.zeros(arms, np.uint64), np.full(arms, -1)

    pointer = firsts.copy()  # each arm's next sharer: pull number `lap + places[pointer]`
    lap = np.zeros(arms, np.int64)
    now, now_lap, now_place = 0, 0, 0

    actives, n_active = np.arange(arms), arms
    opens = np.arange(arms)
    n_open = arms
    least, at_least = 0, arms
    open_up_to = math.inf if math.isinf(balance) else 0.0

    leader = tie_order[0]
    row_of = np.full(arms, -1)
    whole = np.zeros(arms, np.int64)  # whole steps of commits, by row
    committed = np.zeros(arms, np.int64)  # commits of all agents together
    row = row_of_arm(leader, row_of, outcome)
    since, explored_since = 0, 0

    long = balance == 1.0 and game.horizon > circles_after
    trail = np.empty(_TRAIL if long else 0, np.int32)  # sharers who explored, since a start of a round
    round_of = np.full(agents if long else 0, -1)  # the round of the trail that started at a place
    start_of = np.empty(_TRAIL if long else 0, np.int64)  # and the number of its first pull
    walked, circle_start, circle_rounds, circle_pulls = -1, 0, 0, 0

    checkpoint = 0
    quiet, longest, patience = 0, _SHORTEST_QUIET, 0

    while n_active > 1:
        # 1. Who explores next: the first sharer of an open arm; with several, her least-broadcast.
        pull, arm, at = _FAR, -1, -1
        for j in range(n_open):
            i = opens[j]
            next_pull = lap[i] + places[pointer[i]]
            if next_pull < now:
                if lap[i] < now_lap:
                    lap[i], pointer[i] = now_lap, firsts[i]
                pointer[i] = first_from(places, pointer[i], firsts[i + 1], now_place)
                if pointer[i] == firsts[i + 1]:
                    pointer[i] = firsts[i]
                    lap[i] += agents
                next_pull = lap[i] + places[pointer[i]]
            if next_pull < pull or (
                next_pull == pull and (counts[i] < counts[arm] or (counts[i] == counts[arm] and rank[i] < rank[arm]))
            ):
                pull, arm, at = next_pull, i, j

        # 2. All pulls before that are commits on the leader.
        while checkpoint < len(checkpoints) and checkpoints[checkpoint] * agents <= pull:
            curve[checkpoint] = regret_up_to(
                checkpoints[checkpoint] * agents, gaps, counts, committed, leader, since, explored_since
            )
            checkpoint += 1
        if pull >= end:
            break

        # 3. She explores.
        place = places[pointer[arm]]
        explore[entries[pointer[arm]]] += 1
        commit[row, place] -= 1  # a difference by place, as in `add_interval`
        commit[row, place + 1] += 1
        explored_since += 1
        counts[arm] += 1
        now, now_lap, now_place = pull + 1, lap[arm], place + 1

        if 0 <= walked < _TRAIL:
            trail[walked] = pointer[arm]
            walked += 1

        # 4. Which arms are open now.
        if counts[arm] - 1 == least:
            at_least -= 1
        if at_least == 0:
            least, at_least = _least_of(actives, n_active, counts)
            if not math.isinf(balance):
                open_up_to = balance * least
            n_open = _open_arms(actives, n_active, counts, open_up_to, opens)

            # A round starts. Where one has started at this place before, the trail goes in circles.
            if long and least >= circles_after:
                at_place = now_place if now_place < agents else 0
                if walked < 0:
                    walked, circle_rounds = 0, 0
                    for place_before in range(agents):
                        round_of[place_before] = -1
                if walked < _TRAIL and round_of[at_place] >= 0:
                    circle_start = round_of[at_place]
                    circle_rounds = walked // n_active - circle_start
                    circle_pulls = now - start_of[circle_start]
                    walked = _TRAIL
                elif walked < _TRAIL:
                    round_of[at_place] = walked // n_active
                    start_of[walked // n_active] = now
                if circle_rounds > 0 and quiet > 0:
                    until = end
                    if checkpoint < len(checkpoints):
                        until = min(end, checkpoints[checkpoint] * agents)
                    unread = _most_unread(actives, n_active, counts, read)
                    circles = min((quiet - 1 - unread) // circle_rounds, (until - now) // circle_pulls)
                    if circles > 0:
                        circle = trail[circle_start * n_active : (circle_start + circle_rounds) * n_active]
                        _explore_again(circle, circles, places, entries, explore, commit[row])
                        for j in range(n_active):
                            counts[actives[j]] += circles * circle_rounds
                            lap[actives[j]] += circles * circle_pulls
                        least += circles * circle_rounds
                        open_up_to = balance * least
                        explored_since += circles * circle_rounds * n_active
                        now, now_lap = now + circles * circle_pulls, now_lap + circles * circle_pulls
        elif counts[arm] > open_up_to:
            n_open -= 1
            opens[at] = opens[n_open]

        # 5. The reward, unless nothing can depend on it yet.
        if quiet > 0:
            if counts[arm] - read[arm] < quiet:
                continue
            for j in range(n_active):
                i = actives[j]
                sums[i] = add_rewards(k0, k1, table, i, read[i], counts[i] - read[i], TAPE, sums[i], word, group_of)
                read[i] = counts[i]
                if counts[i] > 0:
                    mean[i] = sums[i] / counts[i]
                    radius = math.sqrt(two_log / counts[i])
                    upper[i], lower[i] = mean[i] + radius, mean[i] - radius
            highest_lower, highest_arm = _highest(actives, n_active, lower, frozen)
            quiet, patience = 0, 0
        else:
            if table.kinds[arm] == BERNOULLI:
                sums[arm] += bernoulli_sum(k0, k1, table.first[arm], arm, read[arm], 1, TAPE, word, group_of)
            else:
                sums[arm] += reward(k0, k1, table, arm, read[arm], TAPE)
            read[arm] = counts[arm]
            mean_before = mean[arm]
            mean[arm] = sums[arm] / counts[arm]
            radius = math.sqrt(two_log / counts[arm])
            upper[arm], lower[arm] = mean[arm] + radius, mean[arm] - radius

            # 6. Eq. 1. Only this arm's bounds have changed.
            rose = lower[arm] > highest_lower
            if rose:
                highest_lower, highest_arm = lower[arm], arm
            elif highest_arm == arm:
                highest_lower, highest_arm = _highest(actives, n_active, lower, frozen)
            eliminates = upper[arm] <= highest_lower
            if rose and not eliminates:
                for j in range(n_active):
                    eliminates = eliminates or upper[actives[j]] <= highest_lower
            if eliminates:
                best = _best_of(actives, n_active, mean, rank)
                n_staying = 0
                for j in range(n_active):
                    i = actives[j]
                    if upper[i] > highest_lower:
                        actives[n_staying] = i
                        n_staying += 1
                        continue
                    active[i] = False
                    outcome.eliminated_step[i] = lap[arm] // agents + 1
                    outcome.eliminated_agent[i] = order[place]
                    frozen = max(frozen, lower[i])
                if n_staying == 0:  # never all of them
                    actives[0], n_staying = best, 1
                    active[best] = True
                    outcome.eliminated_step[best], outcome.eliminated_agent[best] = -1, -1
                n_active = n_staying
                walked = -1
                least, at_least = _least_of(actives, n_active, counts)
                if not math.isinf(balance):
                    open_up_to = balance * least
                n_open = _open_arms(actives, n_active, counts, open_up_to, opens)

            # 7. The leader.
            new_leader = leader
            if not active[leader] or (arm == leader and mean[arm] < mean_before):
                new_leader = _best_of(actives, n_active, mean, rank)
            elif active[arm] and (
                mean[arm] > mean[leader] or (mean[arm] == mean[leader] and rank[arm] < rank[leader])
            ):
                new_leader = arm
            if new_leader != leader:
                whole[row] = add_interval(commit[row], whole[row], agents, since, now)
                committed[leader] += now - since - explored_since
                leader, since, explored_since = new_leader, now, 0
                row = row_of_arm(leader, row_of, outcome)
            patience -= 1

        # 8. Can the rewards be left alone for a while?
        if patience <= 0:
            longest = min(2 * longest, 2**40)
            while longest >= _SHORTEST_QUIET and not _stays_quiet(
                longest, leader, actives, n_active, counts, sums, frozen, two_log
            ):
                longest >>= 1
            if longest >= _SHORTEST_QUIET:
                quiet = longest
            else:
                longest, patience = _SHORTEST_QUIET, 4 * n_active

    for j in range(n_active):
        i = actives[j]
        sums[i] = add_rewards(k0, k1, table, i, read[i], counts[i] - read[i], TAPE, sums[i], word, group_of)
    while checkpoint < len(checkpoints):
        curve[checkpoint] = regret_up_to(
            checkpoints[checkpoint] * agents, gaps, counts, committed, leader, since, explored_since
        )
        checkpoint += 1
    whole[row] = add_interval(commit[row], whole[row], agents, since, end)
    by_agent(outcome, whole, order)


@compiled
def _most_unread(actives, n_active, counts, read):
    """Return how many rewards of an active arm are still to be added, at most."""
    most = 0
    for j in range(n_active):
        most = max(most, counts[actives[j]] - read[actives[j]])
    return most


@compiled
def _explore_again(sharers, times, places, entries, explore, row):
    """Let these sharers explore once more, that many times over."""
    for sharer in sharers:
        explore[entries[sharer]] += times
        row[places[sharer]] -= times
        row[places[sharer] + 1] += times


@compiled
def by_agent(outcome, whole, order):
    """Turn whole steps and differences by place into commits by agent."""
    by_place = np.empty(len(order), np.int64)
    for row in range(outcome.rows[0]):
        commits = whole[row]
        for place in range(len(order)):
            commits += outcome.commit[row, place]
            by_place[place] = commits
        for place in range(len(order)):
            outcome.commit[row, order[place]] = by_place[place]


@compiled
def regret_up_to(pull, gaps, counts, committed, leader, since, explored_since):
    """Overall regret of all pulls before number `pull`, none of which is ahead of the last broadcast's interval."""
    regret = gaps[leader] * (pull - since - explored_since)
    for arm in range(len(gaps)):
        regret += gaps[arm] * (counts[arm] + committed[arm])
    return regret


@compiled
def _least_of(actives, n_active, counts):
    """Return the fewest broadcasts of an active arm, and how many arms have that few."""
    least, arms_at = _FAR, 0
    for j in range(n_active):
        arm = actives[j]
        if counts[arm] < least:
            least, arms_at = counts[arm], 1
        elif counts[arm] == least:
            arms_at += 1
    return least, arms_at


@compiled
def _open_arms(actives, n_active, counts, open_up_to, opens):
    """List the open arms in `opens`; return how many they are."""
    n_open = 0
    for j in range(n_active):
        arm = actives[j]
        if counts[arm] <= open_up_to:
            opens[n_open] = arm
            n_open += 1
    return n_open


@compiled
def _highest(actives, n_active, lower, frozen):
    """Return the highest lower bound, and its arm (-1 for an eliminated one)."""
    highest, of = frozen, -1
    for j in range(n_active):
        arm = actives[j]
        if lower[arm] > highest:
            highest, of = lower[arm], arm
    return highest, of


@compiled
def _best_of(actives, n_active, mean, rank):
    """Return the active arm with the highest mean, ties by the tie order."""
    best = actives[0]
    for j in range(n_active):
        arm = actives[j]
        if mean[arm] > mean[best] or (mean[arm] == mean[best] and rank[arm] < rank[best]):
            best = arm
    return best

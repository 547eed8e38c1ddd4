"""Balanced-GLR and KL-ETC where members may lie (`tolerate` above 0), jumping from broadcast to broadcast.

The same steps as in `partage.engine.broadcast_by_broadcast`, on a record that is kept by member. What a record says
whichever members are left out is computed by the shared functions of `partage.rules.influence`.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.clock import TICKS
from partage.compiled import compiled, inner
from partage.engine.commits import change_leader, explored_at, finish_commits, start_commits, write_curve
from partage.engine.decisions import GLR, RuleTable, note_eliminations
from partage.engine.rewards import TAPE, next_reward, ranks
from partage.engine.sharers import first_from
from partage.engine.tally import clear
from partage.evidence import free_evidence, mixture_loss
from partage.rules.balanced_glr import is_behind
from partage.rules.indifference import is_indifferent
from partage.rules.influence import beaten_without_any, below, fair_share, trimmed_mean, worst_record

if TYPE_CHECKING:
    from partage.engine.run import Run

_NONE, _FAR = np.int64(-1), np.int64(2**63 - 1)
_TICKS = np.array(TICKS)


class Books(NamedTuple):
    """What is kept besides the record of all members together.

    Attributes
    ----------
    slots, number
        The number of each agent among those that broadcast, in order of their first broadcast (-1: it never did), and
        how many they are.
    told, paid
        Broadcasts and their sums, by arm and member.
    trimmed, fair
        The trimmed mean of each arm, and how often a member may have broadcast it and still explore it.
    kept, kept_sums, led, led_sums, evidence
        What is left of the record of each arm and the leader without the members that prove most, and its evidence.
    able, leaving, opened
        Whether an arm can be settled, leaves, and is open.
    """

    slots: NDArray[np.int64]
    number: NDArray[np.int64]
    told: NDArray[np.int64]
    paid: NDArray[np.float64]
    trimmed: NDArray[np.float64]
    fair: NDArray[np.int64]
    kept: NDArray[np.int64]
    kept_sums: NDArray[np.float64]
    led: NDArray[np.int64]
    led_sums: NDArray[np.float64]
    evidence: NDArray[np.float64]
    able: NDArray[np.bool_]
    leaving: NDArray[np.bool_]
    opened: NDArray[np.bool_]


def play(run: "Run", rule: RuleTable) -> None:
    """Play one run of a rule that is laid out as a table."""
    run.call(play_bounded, rule)


@inner
def _new_books(agents, arms, firsts, tolerate):
    able = np.zeros(arms, np.bool_)
    for arm in range(arms):
        able[arm] = firsts[arm + 1] - firsts[arm] > tolerate
    return Books(
        np.full(agents, _NONE),
        np.zeros(1, np.int64),
        np.zeros((arms, agents), np.int64),
        np.zeros((arms, agents)),
        np.full(arms, -math.inf),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms),
        np.zeros(arms, np.int64),
        np.zeros(arms),
        np.zeros(arms),
        able,
        np.zeros(arms, np.bool_),
        np.zeros(arms, np.bool_),
    )


@compiled
def play_bounded(game, rule, k0, k1, tie_order, order, sharers, checkpoints, curve, outcome):
    """Play one run of a rule on a game in which every arm is shared; arguments as in `play_balanced_etc`."""
    clear(game.public, outcome)
    agents, arms, table, gaps, public = game.agents, game.arms, game.rewards, game.gaps, game.public
    counts, sums, active = outcome.counts, outcome.sums, outcome.active
    explore, eliminated_step, eliminated_agent = outcome.explore, outcome.eliminated_step, outcome.eliminated_agent
    firsts, places, entries = sharers.firsts, sharers.places, sharers.entries
    end = agents * game.horizon
    rank = ranks(tie_order)
    word, group_of = np.zeros(arms, np.uint64), np.full(arms, _NONE)
    books = _new_books(agents, arms, firsts, rule.tolerate)
    compared, leader = _NONE, tie_order[0]  # the leader that arms are compared with, and the one that commits pull
    commits = start_commits(leader, arms, outcome)
    current, commit = commits.current, outcome.commit
    now, checkpoint = np.int64(0), np.int64(0)
    clock, tick = np.int64(0), np.int64(0)

    while _open_arms(rule, clock, counts, active, compared, books) > 1:
        pull, arm, sharer = _next_explorer(now, now % agents, agents, counts, rank, firsts, places, order, books)
        if rule.clocked and _TICKS[tick] <= min(pull, end):
            now, clock, tick = max(now, _TICKS[tick]), _TICKS[tick], tick + 1
            continue
        if checkpoint < len(checkpoints):
            checkpoint = write_curve(checkpoint, pull, checkpoints, agents, gaps, counts, commits, curve)
        if pull >= end:
            break

        place, now = np.int64(places[sharer]), pull + 1
        explore[entries[sharer]] += 1
        explored_at(place, np.int64(1), current, commit)
        reward = next_reward(k0, k1, table, arm, counts[arm], TAPE, word, group_of)
        sums[arm] += reward
        counts[arm] += 1
        _enter(rule, order[place], arm, reward, books)
        before = leader
        if rule.kind == GLR:
            compared = _revise_glr(rule, arm, counts, sums, active, rank, compared, books)
        else:
            _revise_kl_etc(rule, arm, counts, sums, active, rank, books)
        leader = _best_trimmed(active, rank, books)
        note_eliminations(pull // agents + 1, order[place], public, active, eliminated_step, eliminated_agent)
        if leader != before:
            change_leader(leader, now, agents, commits, outcome)

    write_curve(checkpoint, end, checkpoints, agents, gaps, counts, commits, curve)
    finish_commits(end, order, commits, outcome)


@inner
def _enter(rule, agent, arm, reward, books):
    """Enter a broadcast into the records by member."""
    if books.slots[agent] < 0:
        books.slots[agent] = books.number[0]
        books.number[0] += 1
    slot, members = books.slots[agent], books.number[0]
    books.told[arm, slot] += 1
    books.paid[arm, slot] += reward
    books.trimmed[arm] = trimmed_mean(books.told[arm], books.paid[arm], members, rule.tolerate)
    books.fair[arm] = fair_share(books.told[arm], members, rule.tolerate)


@inner
def _best_trimmed(arms_in, rank, books):
    """Return the arm with the highest trimmed mean among these, ties by the tie order."""
    best, trimmed = _NONE, books.trimmed
    for arm in range(len(arms_in)):
        if arms_in[arm] and (
            best < 0 or trimmed[arm] > trimmed[best] or (trimmed[arm] == trimmed[best] and rank[arm] < rank[best])
        ):
            best = np.int64(arm)
    return best


@inner
def _beaten(rule, low, high, counts, sums, books):
    """Whether the record shows that `high` has a higher mean than `low`, whichever members are left out."""
    told, paid = books.told, books.paid
    record = (counts[low], sums[low], counts[high], sums[high])
    return beaten_without_any(
        told[low], paid[low], told[high], paid[high], books.number[0], record, rule.tolerate, rule.threshold
    )


@inner
def _revise_glr(rule, arm, counts, sums, active, rank, before, books):
    """Revise by Balanced-GLR; return the leader that arms are compared with, -1 if there is none yet."""
    for i in range(len(active)):
        books.leaving[i] = books.trimmed[i] > -math.inf
    leader = _best_trimmed(books.leaving, rank, books)
    if leader < 0:
        return leader
    told, paid = books.told, books.paid
    anew = leader != before or arm == leader
    for i in range(len(active)):
        if i == leader or counts[i] == 0:
            active[i] = True
        elif anew or i == arm:
            active[i] = not _beaten(rule, i, leader, counts, sums, books)
            n, s, k, w = worst_record(
                told[i],
                paid[i],
                told[leader],
                paid[leader],
                books.number[0],
                (counts[i], sums[i], counts[leader], sums[leader]),
                rule.tolerate,
            )
            books.kept[i], books.kept_sums[i], books.led[i], books.led_sums[i] = n, s, k, w
            books.evidence[i] = below(n, s, k, w)
    return leader


@inner
def _revise_kl_etc(rule, arm, counts, sums, active, rank, books):
    """Revise by KL-ETC: compare `arm`, whose record has changed, with every other arm."""
    staying = 0
    for i in range(len(active)):
        books.leaving[i] = False
    for i in range(len(active)):
        if counts[i] > 0 and i != arm:
            low, high = (arm, i) if sums[arm] / counts[arm] < sums[i] / counts[i] else (i, arm)
            if active[low] and _beaten(rule, low, high, counts, sums, books):
                books.leaving[low] = True
    for i in range(len(active)):
        staying += active[i] and not books.leaving[i]
    best = _best_trimmed(active, rank, books)
    for i in range(len(active)):
        if books.leaving[i] and (staying > 0 or i != best):
            active[i] = False


@compiled
def _open_arms(rule, clock, counts, active, leader, books):
    """Write which arms are open; return how many arms are active and can be settled."""
    contenders, least = 0, np.int64(2**62)
    for arm in range(len(active)):
        books.opened[arm] = False
        if active[arm] and books.able[arm]:
            contenders += 1
            if books.trimmed[arm] > -math.inf:
                least = min(least, counts[arm])
    if contenders <= 1:
        return contenders
    if rule.kind == GLR and leader >= 0:
        _open_by_pace(rule, clock, counts, active, leader, books)
        return contenders
    first = 1 + rule.tolerate
    most = float(first)
    if rule.kind != GLR:
        most = rule.balance * (first if least == 2**62 else least)
    for arm in range(len(active)):
        books.opened[arm] = active[arm] and books.able[arm] and counts[arm] <= most
    return contenders


@inner
def _open_by_pace(rule, clock, counts, active, leader, books):
    """Open the arms by Balanced-GLR; none if exploring no longer pays."""
    slowest, most, worth = math.inf, 1, 0
    for arm in range(len(active)):
        others = active[arm] and books.able[arm] and arm != leader
        books.leaving[arm] = others and _stops(rule, clock, arm, books)
        if others and not books.leaving[arm]:
            worth += 1
            if books.trimmed[arm] > -math.inf:
                slowest = min(slowest, books.evidence[arm] / counts[arm])
                most = max(most, counts[arm])
    if worth == 0:
        return
    ahead, free, n_open = counts[leader], free_evidence(counts[leader]), 0
    for arm in range(len(active)):
        if active[arm] and books.able[arm] and arm != leader and not books.leaving[arm]:
            books.opened[arm] = counts[arm] <= max(1, ahead) and (
                books.trimmed[arm] == -math.inf
                or is_behind(books.evidence[arm], counts[arm], counts[arm], slowest, ahead, rule.lead, free)
            )
            n_open += books.opened[arm]
    books.opened[leader] = n_open == 0 or counts[leader] <= rule.lead * most


@inner
def _stops(rule, clock, arm, books):
    """Whether a contender is no longer worth exploring."""
    n, s, k, w = books.kept[arm], books.kept_sums[arm], books.led[arm], books.led_sums[arm]
    if rule.all_pulls == 0 or books.trimmed[arm] == -math.inf or n == 0 or k == 0:
        return False
    needed = rule.threshold + mixture_loss(n, s) + mixture_loss(k, w)
    left = max(0, rule.all_pulls - clock)
    return is_indifferent(books.evidence[arm], needed, n, s / n, k, max(w / k, s / n), left)


@inner
def _next_explorer(now, now_place, agents, counts, rank, firsts, places, order, books):
    """Return the next explore pull, its arm and its sharer: the first that may explore an open arm that it shares.

    If it may explore several, it explores the one that it broadcast least, and among these the least-broadcast. At
    most `tolerate` sharers of an arm have more than their fair share of it.
    """
    pull, arm, sharer, own = _FAR, _NONE, _NONE, _NONE
    for i in range(len(counts)):
        if not books.opened[i]:
            continue
        at, lap = first_from(places, firsts[i], firsts[i + 1], now_place), now - now_place
        while True:
            if at == firsts[i + 1]:
                at, lap = firsts[i], lap + agents
            slot = books.slots[order[places[at]]]
            mine = books.told[i, slot] if slot >= 0 else 0
            if mine <= books.fair[i]:
                break
            at += 1
        if lap + places[at] < pull or (
            lap + places[at] == pull and (mine, counts[i], rank[i]) < (own, counts[arm], rank[arm])
        ):
            pull, arm, sharer, own = lap + places[at], i, at, mine
    return pull, arm, sharer

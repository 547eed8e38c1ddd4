"""Quiet stretches of Balanced-GLR and Shared-IMED: broadcasts whose rewards change no decision.

Evidence rises with both counts, with the leader's mean and as the other mean falls. So a band in which each mean
stays bounds the evidence all along a stretch. In a short stretch the band is the widest that any rewards allow, in a
long one it is that of the rewards on the tape, read ahead. If the bounds leave the leader, the state of every arm and
the side of its threshold on which its evidence is, then the open arms depend on counts alone (docs/engine.md).
"""

import math

import numpy as np

from partage.compiled import inlined, uncounted
from partage.engine.decisions import IMED
from partage.engine.rewards import TAPE, bernoulli_word, ones
from partage.evidence import apart, free_evidence
from partage.rules.shared_imed import worth_knowing

CLOSED, OPEN, BY_COUNTS = np.int8(0), np.int8(1), np.int8(2)  # the evidence closes, opens or leaves it to the counts
GONE, STOPPED, CONTENDER = np.int8(0), np.int8(1), np.int8(2)
FROM = np.int64(1000)  # broadcasts of an arm from which on stretches are looked for
TRIED_FIRST = np.int64(128)  # rewards of the first stretch; later ones have up to twice those of the last
_SHORTEST, _LONGEST = np.int64(16), np.int64(2**40)
_LONGEST_PAUSE = np.int64(2**13)  # broadcasts between two searches, with few arms
_FEW, _MANY = np.int64(8), np.int64(64)  # rewards between two means that are read ahead, of a short and a long record


@inlined
def pays(skipped, arms):
    """Whether a stretch skipped enough broadcasts to pay for the search, and for waking all arms at its end."""
    return skipped > 4 * arms


@inlined
def shortest_pause(arms):
    """Return the fewest broadcasts between two searches."""
    return np.int64(64) + 4 * arms


@inlined
def next_pause(skipped, pause, arms):
    """Return after how many broadcasts to search again: after twice as many as last time if that did not pay."""
    return shortest_pause(arms) if pays(skipped, arms) else min(2 * pause, _LONGEST_PAUSE + 256 * arms)


@uncounted
def longest_quiet(k0, k1, table, rule, clock, price, most, leader, counts, total, state, modes, lowest, highest):
    """Return how many rewards of each arm need not be read: up to `most`, 0 if too few; write the modes."""
    if not _modes_now(rule, clock, leader, counts, total, state, modes):
        return np.int64(0)
    pulls = min(most, _LONGEST)
    while pulls >= _SHORTEST:
        for i in range(len(counts)):
            if i == leader or modes[i] != CLOSED:
                lowest[i], highest[i] = band(k0, k1, table.first[i], i, counts[i], total[i], pulls)
            else:
                lowest[i] = highest[i] = total[i] / counts[i]
        if _stays_quiet(rule, clock, price, pulls, leader, counts, total, state, modes, lowest, highest):
            return pulls
        pulls >>= 1
    return np.int64(0)


@uncounted
def _modes_now(rule, clock, leader, counts, total, state, modes):
    """Write which side of its threshold the evidence about each arm is on; return whether a stretch may follow."""
    ahead, paid = counts[leader], np.float64(total[leader])
    slowest, slow = math.inf, -1
    for i in range(len(counts)):
        modes[i] = CLOSED
        if counts[i] == 0 or state[i] == STOPPED:
            return False
        if i != leader and state[i] == CONTENDER:
            evidence = apart(counts[i], np.float64(total[i]), ahead, paid)
            if rule.kind == IMED:
                modes[i] = OPEN if evidence <= worth_knowing(rule.clock * clock, counts[i]) else CLOSED
            elif evidence / counts[i] < slowest:
                slowest, slow = evidence / counts[i], i
    if rule.kind == IMED:
        return True
    if slow < 0:
        return False
    free, paced = free_evidence(ahead), ahead * slowest / rule.lead
    for i in range(len(counts)):
        if i != leader and state[i] == CONTENDER:
            evidence = apart(counts[i], np.float64(total[i]), ahead, paid)
            modes[i] = OPEN if evidence <= max(free, paced) else CLOSED
    if paced > free:
        modes[slow] = BY_COUNTS
    return True


@uncounted
def band(k0, k1, mean, arm, count, total, pulls):
    """Return bounds on the mean of an arm until it has `pulls` more rewards."""
    stop, step = count + pulls, _FEW if count < 64 * _MANY else _MANY
    if pulls < 2 * step:
        return total / stop, (total + pulls) / stop
    lowest, highest, entry, group, word = total / count, total / count, count, np.int64(-1), np.uint64(0)
    while entry < stop:
        if entry >> 6 != group:
            group = entry >> 6
            word = bernoulli_word(k0, k1, mean, group, arm, TAPE)
        until = min(stop, (entry // step + 1) * step)
        bits = word >> np.uint64(entry & 63)
        if until - entry < 64:
            bits &= (np.uint64(1) << np.uint64(until - entry)) - np.uint64(1)
        lowest = min(lowest, total / until)
        total += ones(bits)
        highest = max(highest, total / entry)
        entry = until
    return lowest, min(1.0, highest)


@uncounted
def _stays_quiet(rule, clock, price, pulls, leader, counts, total, state, modes, lowest, highest):
    """Whether `pulls` more rewards of the leader and of each arm that is not closed change nothing but counts.

    Until then, means stay between `lowest` and `highest`.
    """
    ahead, paid = counts[leader], np.float64(total[leader])
    last, worst, best = ahead + pulls, lowest[leader], highest[leader]
    off = 1e-6 + 1e-13 * last
    least_free, most_free = free_evidence(ahead), free_evidence(last)
    least_loss, most_loss = _losses(ahead, paid, last)
    free, slow, least_pace, most_pace = False, -1, 0.0, 0.0
    for i in range(len(counts)):
        if i == leader:
            continue
        count, won, moves = counts[i], np.float64(total[i]), (pulls if modes[i] != CLOSED else 0)
        if highest[i] >= worst - 1e-12:
            return False
        least = apart(count, count * highest[i], ahead, ahead * worst)
        most = apart(count + moves, (count + moves) * lowest[i], last, last * best)
        if rule.kind == IMED:
            if modes[i] == CLOSED and least <= worth_knowing(rule.clock * clock, count) + off:
                return False
            if modes[i] == OPEN and most >= worth_knowing(rule.clock * clock, count + moves) - off:
                return False
            continue
        least_own, most_own = _losses(count, won, count + moves)
        needed, most_needed = rule.threshold + least_loss + least_own, rule.threshold + most_loss + most_own
        if state[i] == GONE:
            if least <= most_needed + off:
                return False
            continue
        if most >= needed * (1.0 - (count + moves) * most_needed * price) - off:
            return False
        if modes[i] == BY_COUNTS:
            slow, least_pace, most_pace = i, least / (count + moves), most / count
        free |= last * (most / count) / rule.lead <= least_free - off
    if rule.kind == IMED:
        return True
    least_enough, most_enough = least_free, most_free
    if slow >= 0:
        least_enough, most_enough = ahead * least_pace / rule.lead, last * most_pace / rule.lead
        if least_enough <= most_free + off:
            return False
    elif not free:
        return False
    for i in range(len(counts)):
        if i == leader or i == slow or state[i] != CONTENDER:
            continue
        count, moves = counts[i], (pulls if modes[i] != CLOSED else 0)
        least = apart(count, count * highest[i], ahead, ahead * worst)
        most = apart(count + moves, (count + moves) * lowest[i], last, last * best)
        if slow >= 0 and least / (count + moves) <= most_pace * (1.0 + 1e-9):
            return False
        if modes[i] == CLOSED and least <= most_enough + off:
            return False
        if modes[i] == OPEN and most >= least_enough - off:
            return False
    return True


@inlined
def _losses(count, total, last):
    """Return bounds on the mixture loss of a record until it has `last` rewards."""
    least = 0.5 * math.log(0.5 * math.pi * count)
    most = 0.5 * math.log(0.5 * math.pi * last) + _rest(total) + _rest(count - total) + 1.0 / (12.0 * count)
    return least, most


@inlined
def _rest(x):
    """Return a bound on the part of the mixture loss that is about x rewards of one kind."""
    return 0.35 if x < 1.0 else 1.0 / (24.0 * x)

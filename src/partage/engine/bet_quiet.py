"""Quiet stretches of Balanced-GLR by betting, as `partage.engine.quiet` has them for likelihoods.

A stretch is quiet if bounds on evidence and wealth leave the leader, the state of every arm and the side of its
threshold on which its evidence is. Then the open arms depend on counts alone.
"""

import math

import numpy as np

from partage.betting import LOG_MIXED
from partage.compiled import uncounted
from partage.engine.bet_tables import evidence_in_boxes, slip_of, wealth_below
from partage.engine.quiet import BY_COUNTS, CLOSED, band
from partage.evidence import free_evidence

_SHORTEST, _LONGEST = np.int64(16), np.int64(2**40)
_ABOVE, _BELOW = 1.0 + 1e-9, 1.0 - 1e-9


@uncounted
def longest_quiet(
    k0, k1, table, rule, left, bound, most, leader, counts, total, alive, n_alive, modes, bands, shifts, rows, price,
    parts,
):  # fmt: skip
    """Return how many rewards of each arm need not be read: up to `most`, 0 if too few.

    `modes` say what the evidence about each arm does now, and `bands` has room for bounds on means and evidence.
    """
    pulls = min(most, _LONGEST)
    while pulls >= _SHORTEST:
        bands[leader, 0], bands[leader, 1] = band(
            k0, k1, table.first[leader], leader, counts[leader], total[leader], pulls
        )
        for j in range(n_alive):
            i = alive[j]
            if modes[i] == CLOSED:
                bands[i, 0] = bands[i, 1] = total[i] / counts[i]
            else:
                bands[i, 0], bands[i, 1] = band(k0, k1, table.first[i], i, counts[i], total[i], pulls)
            if bands[i, 1] >= bands[leader, 0] - 1e-12:
                break
        else:
            if _stays_quiet(
                rule, left, bound, pulls, leader, counts, total, alive, n_alive, modes, bands, shifts, rows, price,
                parts,
            ):  # fmt: skip
                return pulls
        pulls >>= 1
    return np.int64(0)


@uncounted
def _stays_quiet(
    rule, left, bound, pulls, leader, counts, total, alive, n_alive, modes, bands, shifts, rows, price, parts
):  # fmt: skip
    """Whether `pulls` more rewards of the leader and of each arm that is not closed change nothing but counts."""
    ahead, last = np.float64(counts[leader]), np.float64(counts[leader] + pulls)
    worst, best = bands[leader, 0], bands[leader, 1]
    free, slow = False, np.int64(-1)
    least_enough, most_enough, pace = free_evidence(ahead), free_evidence(last), 0.0
    for j in range(n_alive):
        i = alive[j]
        few, many = np.float64(counts[i]), np.float64(counts[i] + (pulls if modes[i] != CLOSED else 0))
        least, largest = evidence_in_boxes(
            few, many, bands[i, 0], bands[i, 1], ahead, last, worst, best, price, parts
        )
        if rule.all_pulls > 0 and _may_stop(rule, left, few, many, ahead, last, best - bands[i, 0], least):
            return False
        if not _stays_below(bound, pulls, i, leader, few, many, counts, total, bands, shifts[i], rows, price, parts):
            return False
        bands[i, 2], bands[i, 3] = least, largest
        free |= last * largest <= rule.lead * few * least_enough * _BELOW
        if modes[i] == BY_COUNTS:
            slow = i
    if slow >= 0:
        few, many = np.float64(counts[slow]), np.float64(counts[slow] + pulls)
        pace = bands[slow, 3] / few * _ABOVE
        most_free = most_enough
        least_enough, most_enough = ahead * (bands[slow, 2] / many) / rule.lead * _BELOW, last * pace / rule.lead
        if least_enough <= most_free:
            return False
    elif not free:
        return False
    for j in range(n_alive):
        i = alive[j]
        if i == slow:
            continue
        many = counts[i] + (pulls if modes[i] != CLOSED else 0)
        if slow >= 0 and bands[i, 2] <= pace * many:
            return False
        if bands[i, 2] <= most_enough if modes[i] == CLOSED else bands[i, 3] >= least_enough:
            return False
    return True


@uncounted
def _may_stop(rule, left, few, many, ahead, last, gap, least):
    """Whether exploring an arm may no longer pay, if it is at most `gap` worse than the leader."""
    needed = rule.threshold + LOG_MIXED
    wide = math.sqrt(0.5 * needed * (1.0 / few + 1.0 / ahead)) * _ABOVE
    narrow = math.sqrt(0.5 * needed * (1.0 / many + 1.0 / last)) * _BELOW
    if narrow <= gap + 1e-9:
        return True
    broadcasts = many * max(0.0, needed / max(1.0, least) - 1.0)
    return left < broadcasts * (wide + gap) / (narrow - gap) * _ABOVE


@uncounted
def _stays_below(bound, pulls, arm, leader, few, many, counts, total, bands, shift, rows, price, parts):
    """Whether an arm is not beaten all along: the leader's next rewards are bets on leaders."""
    every = len(rows.led) - 1
    led = np.float64(rows.led[every] - rows.led[arm])
    paid = np.float64(rows.led_paid[every] - rows.led_paid[arm])
    ahead, last, best = np.float64(counts[leader]), np.float64(counts[leader] + pulls), bands[leader, 1]
    highest = 1.0
    if led > 0.0:  # the mean of all bets on leaders moves towards the leader's
        earlier = paid - total[leader]
        highest = min(1.0, max((earlier + best * ahead) / led, (earlier + best * last) / (led + pulls)))
    q = min(1.0, max(0.0, (total[arm] + paid + 0.5) / (few + led + 1.0) + shift))
    slip = slip_of(np.float64(rows.led[every] + pulls))
    wealth = wealth_below(bound, q, few, many, bands[arm, 0], led, led + pulls, highest, slip, price, parts)
    return wealth < bound

"""Bets on Bernoulli arms from counts: bounds on what the rule computes reward by reward.

With rewards of 0 and 1, a row of bets is a function of whole numbers: S log(1 - beta/2) + (n - S) log(1 + beta/2) for
bets against an arm that paid S times in n broadcasts. The rule adds one reward after the other, so its numbers differ
from that by rounding, at most by `slip_of`. All bounds here are bounds on what the rule computes, rounding included.

A *box* is a range of counts and of means for the record of a leader. Bets against the arm rise with q, and so do
those on the leader as q falls and its mean rises. So the ends of the ranges bound every part of the wealth.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from partage.betting import GRID, MIXED, STAKES, contest, lost, won
from partage.compiled import inlined, uncounted

CELLS = 512
UP = np.array([won(g, 1.0) for g in range(GRID)])  # what a bet gains by a reward that it was on
DOWN = np.array([lost(g, 1.0) for g in range(GRID)])  # and by one that it was against
_STAKES = np.array(STAKES)
_NONE = np.int64(-1)
ROOM = 2 * GRID + 4  # of `parts`: bets against the arm, four bets that are not made, and bets on the leader
_ON = GRID + 4
_NEGLIGIBLE = -30.0


@cache
def prices() -> NDArray[np.float64]:
    """Return the logarithms of fair prices of bets on the leader, for each stake at every 512th of q.

    They are concave in q, so chords lie below them. Those of bets against an arm are the same at 1 - q.
    """
    table = np.array([[won(g, cell / CELLS) for g in range(GRID)] for cell in range(CELLS + 1)])
    table.setflags(write=False)  # all threads share it
    return table


@inlined
def slip_of(count):
    """Return how far sums of so many rewards may be off, as a multiple of the largest term.

    The rule adds one after the other. The k-th of these sums is at most k terms large, so it is rounded by at most
    k / 2^53 terms, and all of them together move the last by n (n + 1) / 2^54. The square pays for twice that: for a
    row, and for a part of the row that is subtracted from it (bets on the arm itself when it led). What is linear
    pays for what else is rounded a few times per reward: means, prices and their products with counts.
    """
    return 1.2e-16 * count * count + 2e-14 * count


@inlined
def more_slip(count, later):
    """Return how much rounding may add to a wealth while the arm's rewards grow from `count` to `later`.

    Every part of the wealth has one row of bets against the arm, so none grows by more than the largest stake's.
    """
    return (slip_of(later) - slip_of(count)) * -DOWN[GRID - 1]


@inlined
def _rest(count):
    """Return how far logarithms of rounded prices may be off, for so many rewards."""
    return 1e-12 + 4e-15 * count


@uncounted
def _write_parts(own_few, own_many, own_mean, q_against, few, many, mean, q_on, slip_on, price, parts):
    """Write upper bounds on the bets against an arm at `q_against` and on a leader at `q_on`.

    The arm has from `own_few` to `own_many` rewards of mean `own_mean`, the leader from `few` to `many` of `mean`.
    """
    at = (1.0 - q_against) * CELLS
    cell = min(np.int64(at), CELLS - 1)
    share = at - cell
    on_at = q_on * CELLS
    on_cell = min(np.int64(on_at), CELLS - 1)
    on_share = on_at - on_cell
    slip, own_other, other = slip_of(own_many), 1.0 - own_mean, 1.0 - mean
    for g in range(GRID):
        chord = price[cell, g] + share * (price[cell + 1, g] - price[cell, g])
        gain = own_mean * DOWN[g] + own_other * UP[g] - chord
        parts[g] = max(own_few * gain, own_many * gain) - slip * DOWN[g]
        chord = price[on_cell, g] + on_share * (price[on_cell + 1, g] - price[on_cell, g])
        gain = mean * UP[g] + other * DOWN[g] - chord
        parts[_ON + g] = max(few * gain, many * gain) - slip_on * DOWN[g]


@uncounted
def _largest(parts):
    """Return the largest sum of a bet against the arm and one on the leader, with their stakes (-1: none)."""
    largest, stake = -math.inf, 0
    for g in range(GRID):
        second = max(max(0.0, parts[_ON + g]), max(parts[_ON + g - 2], parts[_ON + g - 4]))
        if parts[g] + second > largest:
            largest, stake = parts[g] + second, g
    best, other = 0.0, _NONE
    for its in (stake, stake - 2, stake - 4):
        if parts[_ON + its] > best:
            best, other = parts[_ON + its], np.int64(its)
    return largest, stake, other


@uncounted
def evidence_in_box(count, mean, fewest, most, lowest, highest, price, parts):
    """Return bounds on the evidence against an arm while the leader's record stays in a box."""
    paid = count * mean + 0.5
    few, many = 1.0 / (count + fewest + 1.0), 1.0 / (count + most + 1.0)
    low = min((paid + lowest * fewest) * few, (paid + lowest * most) * many)
    high = max((paid + highest * fewest) * few, (paid + highest * most) * many)
    return _between(count, count, mean, mean, fewest, most, lowest, highest, low, high, price, parts)


@uncounted
def evidence_in_boxes(few, many, low_mean, high_mean, fewest, most, lowest, highest, price, parts):
    """Return bounds on the evidence against an arm while its record and the leader's both stay in a box."""
    low, high = math.inf, 0.0
    for count in (few, many):
        for led in (fewest, most):
            share = 1.0 / (count + led + 1.0)
            low = min(low, (count * low_mean + led * lowest + 0.5) * share)
            high = max(high, (count * high_mean + led * highest + 0.5) * share)
    return _between(few, many, low_mean, high_mean, fewest, most, lowest, highest, low, high, price, parts)


@uncounted
def _between(few, many, low_mean, high_mean, fewest, most, lowest, highest, low, high, price, parts):
    """Return bounds on the evidence, given those on q.

    Chords bound all parts from above. The part that is largest then is also a bound from below.
    """
    high = min(high, 1.0)
    slip_on = slip_of(most)
    _write_parts(few, many, low_mean, high, fewest, most, highest, low, slip_on, price, parts)
    largest, stake, other = _largest(parts)
    rest = _rest(many + most)
    if largest <= 0.0:
        return 0.0, rest
    gain = high_mean * DOWN[stake] + (1.0 - high_mean) * UP[stake] - math.log(1.0 - _STAKES[stake] * (low - 0.5))
    least = min(few * gain, many * gain) + slip_of(many) * DOWN[stake]
    if other >= 0:
        gain = lowest * UP[other] + (1.0 - lowest) * DOWN[other] - math.log(1.0 + _STAKES[other] * (high - 0.5))
        least += min(fewest * gain, most * gain) + slip_on * DOWN[other]
    return max(0.0, least - rest), largest + rest


@uncounted
def wealth_below(bound, q, few, many, mean, fewest, most, highest, slip_on, price, parts):
    """Return an upper bound on the logarithm of the wealth at q.

    The arm has from `few` to `many` rewards with at least this mean, and bets on leaders were made on `fewest` to
    `most` rewards with at most the mean `highest`. The largest part is a bound, and is returned if it is below
    `bound`. Otherwise all parts are added up.
    """
    _write_parts(few, many, mean, q, fewest, most, highest, q, slip_on, price, parts)
    largest, _, _ = _largest(parts)
    rest = _rest(many + most)
    if largest < bound:
        return largest + rest
    wealth = 0.0
    for g in range(GRID):
        first = parts[g] - largest
        for part in (first, first + parts[_ON + g], first + parts[_ON + g - 2], first + parts[_ON + g - 4]):
            wealth += math.exp(max(part, _NEGLIGIBLE))
    return largest + math.log(wealth / MIXED) + rest


@inlined
def gain_of_zero(q):
    """Return the most that a reward of 0 adds to the logarithm of the wealth against its arm at q."""
    return UP[GRID - 1] - math.log(1.0 - _STAKES[GRID - 1] * (q - 0.5)) + 1e-12


@uncounted
def best_q(bound, q, count, total, led, led_total, none, parts):
    """Return a q at which the wealth is below `bound`, up to rounding, or near its least. The search starts at q."""
    against, on = parts[:GRID], parts[_ON : _ON + GRID]
    for g in range(GRID):
        against[g] = total * DOWN[g] + (count - total) * UP[g]
        on[g] = led_total * UP[g] + (led - led_total) * DOWN[g]
    _, found, _ = contest(bound, q, count, against, led, on, none)
    return found

"""The rule's own rows of bets, reward by reward, for the few decisions that are too close for `bet_tables`.

A row is a sum of rewards in the order in which they came, and it is caught up from the tape when it is needed. The
rewards that bets on leaders were made on are noted as segments: an arm, and from which to which of its broadcasts.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.betting import GRID, contest, largest_bet, pooled_mean
from partage.compiled import inner, uncounted
from partage.engine.bet_tables import DOWN, UP
from partage.engine.rewards import TAPE, bernoulli_word

_AGAINST, _ON, _LED = range(3)
_SEGMENTS = 4096  # where they are used up, rows are caught up
ARM, _FROM, TO = range(3)


class Rows(NamedTuple):
    """Rows of bets.

    Attributes
    ----------
    rows
        For each arm, the bets against it, those on it, and those on it while it led; and one more of the last kind,
        on all leaders.
    done
        How many rewards of each arm are in its first two rows.
    led, led_paid
        How many rewards each arm had while it led, and their sum; the last ones are those of all leaders.
    segments, n_segments
        Rewards of leaders that are not in the rows yet, and how many segments they are.
    """

    rows: NDArray[np.float64]
    done: NDArray[np.int64]
    led: NDArray[np.int64]
    led_paid: NDArray[np.int64]
    segments: NDArray[np.int64]
    n_segments: NDArray[np.int64]


@inner
def new_rows(arms):
    """Make room for all arms."""
    return Rows(
        np.zeros((arms + 1, 3, GRID)), np.zeros((arms, 2), np.int64), np.zeros(arms + 1, np.int64),
        np.zeros(arms + 1, np.int64), np.empty((_SEGMENTS, 3), np.int64), np.zeros(1, np.int64),
    )  # fmt: skip


@uncounted
def add_segment(k0, k1, table, arm, start, stop, rows):
    """Note that rewards `start` to `stop - 1` of an arm came while it led."""
    last = rows.n_segments[0] - 1
    if last >= 0 and rows.segments[last, ARM] == arm and rows.segments[last, TO] == start:
        rows.segments[last, TO] = stop
        return
    if rows.n_segments[0] == _SEGMENTS:
        _catch_up_leaders(k0, k1, table, rows)
    at = rows.n_segments[0]
    rows.segments[at, ARM], rows.segments[at, _FROM], rows.segments[at, TO] = arm, start, stop
    rows.n_segments[0] = at + 1


@uncounted
def exact_evidence(k0, k1, table, arm, leader, counts, sums, rows):
    """Return the evidence against an arm, as the rule computes it."""
    _catch_up(k0, k1, table, arm, _AGAINST, counts[arm], rows)
    _catch_up(k0, k1, table, leader, _ON, counts[leader], rows)
    q = pooled_mean(counts[arm], sums[arm], counts[leader], sums[leader])
    none = rows.rows[len(rows.led) - 1, _AGAINST]
    return max(
        0.0, largest_bet(q, counts[arm], rows.rows[arm, _AGAINST], counts[leader], rows.rows[leader, _ON], none)
    )


@uncounted
def exact_beaten(k0, k1, table, arm, threshold, counts, sums, rows):
    """Whether an arm is beaten, as the rule computes it."""
    _catch_up(k0, k1, table, arm, _AGAINST, counts[arm], rows)
    _catch_up_leaders(k0, k1, table, rows)
    every = len(rows.led) - 1
    led = np.float64(rows.led[every] - rows.led[arm])
    q = pooled_mean(counts[arm], sums[arm], led, np.float64(rows.led_paid[every] - rows.led_paid[arm]))
    beaten, _, _ = contest(
        threshold, q, counts[arm], rows.rows[arm, _AGAINST], led, rows.rows[every, _LED], rows.rows[arm, _LED]
    )
    return beaten


@uncounted
def _catch_up(k0, k1, table, arm, which, count, rows):
    """Add the rewards that are missing in a row of an arm."""
    for_one, for_zero = (DOWN, UP) if which == _AGAINST else (UP, DOWN)
    _add(k0, k1, table.first[arm], arm, rows.done[arm, which], count, for_one, for_zero, rows.rows[arm, which])
    rows.done[arm, which] = count


@uncounted
def _catch_up_leaders(k0, k1, table, rows):
    """Add the rewards that are missing in the rows of bets on leaders."""
    every = len(rows.led) - 1
    for at in range(rows.n_segments[0]):
        arm, start, stop = rows.segments[at, ARM], rows.segments[at, _FROM], rows.segments[at, TO]
        _add(k0, k1, table.first[arm], arm, start, stop, UP, DOWN, rows.rows[arm, _LED])
        _add(k0, k1, table.first[arm], arm, start, stop, UP, DOWN, rows.rows[every, _LED])
    rows.n_segments[0] = 0


@uncounted
def _add(k0, k1, mean, arm, start, stop, for_one, for_zero, row):
    """Add rewards `start` to `stop - 1` of an arm to a row, one after the other."""
    group, word = np.int64(-1), np.uint64(0)
    for entry in range(start, stop):
        if entry >> 6 != group:
            group = entry >> 6
            word = bernoulli_word(k0, k1, mean, group, arm, TAPE)
        if (word >> np.uint64(entry & 63)) & np.uint64(1):
            for g in range(GRID):
                row[g] += for_one[g]
        else:
            for g in range(GRID):
                row[g] += for_zero[g]

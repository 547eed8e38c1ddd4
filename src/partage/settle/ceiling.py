"""Ceilings of the equal-share settlements: a lower bound on the cost of playing 2-UCB alone.

A ceiling is the mean regret of 512 plays of 2-UCB, less three standard errors. 2-UCB's regret is not monotone in a
gap, so each arm contributes the cheaper end of its gap; 32 more plays choose it. The plays have a fixed seed, so that
equal records give equal ceilings.

This module needs numba; `partage.settle.core.ceilings_of` imports it when ceilings are needed.
"""

import math
from collections.abc import Sequence

import numpy as np

from partage.compiled import compiled
from partage.engine.rewards import bernoulli_sum
from partage.settle import CEILING_SEED

TRIALS, PLAYS = 32, 512  # plays that choose an end of each gap, and plays that measure
LONGEST = 10**6  # steps of a play; regret never falls with pulls, so a cut play is still a lower bound
_BLOCKS = 10  # an arm with n pulls is pulled in blocks of n / 2^10
_SEED = CEILING_SEED


def ceilings(
    best: float, lower: Sequence[float], upper: Sequence[float], two_log: float, steps: Sequence[int]
) -> list[float]:
    """Return the ceiling over each number of pulls in `steps`.

    A play over fewer steps is the beginning of a longer one, so all of them read the same plays: one set to choose
    the ends, and one to measure for each distinct choice.

    Parameters
    ----------
    best
        The leader's mean.
    lower, upper
        Both ends of the gap of each eliminated arm; 0 for other arms.
    two_log
        2 log T.
    steps
        Numbers of pulls, in any order.
    """
    marks, places = np.unique(np.minimum(np.array(steps, np.int64), LONGEST), return_inverse=True)
    if not len(marks):
        return []
    found: list[float] = _ceilings(best, np.array(lower), np.array(upper), two_log, marks)[places].tolist()
    return found


@compiled
def _ceilings(best, lower, upper, two_log, marks):
    """Return the ceiling over each number of pulls in `marks`: increasing, at least one, none above `LONGEST`."""
    rows, arms = len(marks), len(lower)
    made = np.zeros((rows, arms), np.int64)
    excess = np.zeros((rows, arms))  # how much more the upper end costs than the lower
    for play in range(TRIALS):
        _play_alone(PLAYS + play, best, lower, two_log, marks, made)
        for row in range(rows):
            for arm in range(arms):
                excess[row, arm] -= lower[arm] * made[row, arm]
        _play_alone(PLAYS + play, best, upper, two_log, marks, made)
        for row in range(rows):
            for arm in range(arms):
                excess[row, arm] += upper[arm] * made[row, arm]
    cheaper = np.zeros((rows, arms))
    for row in range(rows):
        for arm in range(arms):
            cheaper[row, arm] = lower[arm] if excess[row, arm] > 0.0 else upper[arm]

    # Rows may differ in which ends are cheaper. Rows with the same ends are measured together.
    least, measured, alike = np.zeros(rows), np.zeros(rows, np.bool_), np.zeros(rows, np.int64)
    for first in range(rows):
        if measured[first]:
            continue
        size = 0
        for row in range(first, rows):
            same = not measured[row]
            for arm in range(arms):
                same = same and cheaper[row, arm] == cheaper[first, arm]
            if same:
                alike[size], measured[row] = row, True
                size += 1
        costs = _measured(best, cheaper[first], two_log, marks[alike[:size]])
        for place in range(size):
            least[alike[place]] = costs[place]
    return least


@compiled
def _measured(best, gaps, two_log, marks):
    """Return the mean cost of 2-UCB alone up to each of the steps `marks`, less three standard errors."""
    rows, arms = len(marks), len(gaps)
    made = np.zeros((rows, arms), np.int64)
    total, squares = np.zeros(rows), np.zeros(rows)
    for play in range(PLAYS):
        _play_alone(play, best, gaps, two_log, marks, made)
        for row in range(rows):
            cost = 0.0
            for arm in range(arms):
                cost += gaps[arm] * made[row, arm]
            total[row] += cost
            squares[row] += cost * cost
    least = np.zeros(rows)
    for row in range(rows):
        mean = total[row] / PLAYS
        stderr = math.sqrt(max(0.0, squares[row] / PLAYS - mean * mean) / (PLAYS - 1))
        least[row] = max(0.0, mean - 3.0 * stderr)
    return least


@compiled
def _play_alone(play, best, gaps, two_log, marks, made):
    """Play 2-UCB once, with a best arm that always pays its mean; count the pulls up to each of the steps `marks`.

    Between two pulls of other arms, the best arm is pulled until its index, best + sqrt(two_log / n), falls below
    theirs: a closed formula. Arms without a gap cost nothing and are left out. An arm with n pulls is pulled in
    blocks of n / 1,024. Of the last block, 2-UCB may have made a single pull only, so `made[k]` counts one, whether
    step `marks[k]` ends the block or cuts it.
    """
    arms, steps = len(gaps), marks[-1]
    index, sums = np.full(arms, -math.inf), np.zeros(arms)
    pulls, sure = np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    word, group_of = np.zeros(arms, np.uint64), np.full(arms, -1)
    k0, k1 = np.uint64(_SEED), np.uint64(play)
    for arm in range(arms):
        if gaps[arm] > 0.0:
            index[arm] = math.inf
    of_best, step = 1, 1
    mark = _note(0, step, marks, sure, made)
    while step < steps:
        arm, second = 0, -math.inf
        for i in range(1, arms):
            if index[i] > index[arm]:
                second = index[arm]
                arm = i
            else:
                second = max(second, index[i])
        if index[arm] <= best:
            _note(mark, steps, marks, sure, made)
            return
        if index[arm] < best + math.sqrt(two_log / of_best):
            until = min(math.floor(two_log / (index[arm] - best) ** 2) + 1.0, 2.0**62)
            step += np.int64(until) - of_best
            of_best = np.int64(until)
            mark = _note(mark, step, marks, sure, made)
            continue
        bar = max(second, best + math.sqrt(two_log / of_best))
        mean = max(0.0, best - gaps[arm])
        while step < steps:
            block = max(1, pulls[arm] >> _BLOCKS)
            sums[arm] += bernoulli_sum(k0, k1, mean, arm, pulls[arm], block, 0, word, group_of)
            sure[arm] = pulls[arm] + 1
            pulls[arm] += block
            step += block
            if marks[mark] <= step:
                mark = _note(mark, step, marks, sure, made)
            index[arm] = sums[arm] / pulls[arm] + math.sqrt(two_log / pulls[arm])
            if index[arm] < bar:
                break


@compiled
def _note(mark, step, marks, sure, made):
    """Write the pulls into the rows of all marks up to `step`, from row `mark` on; return the next row."""
    while mark < len(marks) and marks[mark] <= step:
        for arm in range(len(sure)):
            made[mark, arm] = sure[arm]
        mark += 1
    return mark

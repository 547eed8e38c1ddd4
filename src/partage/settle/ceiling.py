"""Ceilings by play: a lower bound on the cost of playing 2-UCB alone.

A ceiling is 0.95 of the mean regret of 512 plays of 2-UCB, less three standard errors, at the cheapest corner of the
box of gaps that the record allows. 2-UCB's regret is not monotone in a gap, so 32 more plays of each corner find the
cheapest: of all corners for up to four arms, otherwise from the cheaper end of each arm by itself, by flipping one
arm after the other. The plays have a fixed seed, so that equal records give equal ceilings.

This module needs numba; `partage.settle.core.ceilings_of` imports it when such ceilings are needed.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from partage.compiled import compiled
from partage.engine.rewards import bernoulli_sum
from partage.settle import CEILING_SEED

TRIALS, PLAYS = 32, 512  # plays that choose a corner, and plays that measure
LONGEST = 10**6  # steps of a play; regret never falls with pulls, so a cut play is still a lower bound
FACTOR = 0.95  # of the plays: the best arm has luck, too, which matters where pulls are few
ALL_CORNERS, MOST_FLIPS = 4, 16  # arms: up to how many every corner is tried, and how many are flipped otherwise
_BLOCKS = 10  # an arm with n pulls is pulled in blocks of n / 2^10
_SEED = CEILING_SEED

Corner = tuple[bool, ...]  # for each arm, whether its gap is at the upper end


def ceilings(
    best: float, lower: Sequence[float], upper: Sequence[float], two_log: float, steps: Sequence[int]
) -> list[float]:
    """Return the ceiling over each number of pulls in `steps`.

    A play over fewer steps is the beginning of a longer one, so all of them read the same plays.

    Parameters
    ----------
    best
        The leader's mean. Where a gap may be larger, the plays take the largest gap for the best mean, so that every
        arm pays what its gap says.
    lower, upper
        Both ends of the gap of each separated arm; 0 for other arms.
    two_log
        2 log T.
    steps
        Numbers of pulls, in any order.
    """
    marks, places = np.unique(np.array([min(step, LONGEST) for step in steps], np.int64), return_inverse=True)
    if not len(marks):
        return []
    low, high = np.array(lower, np.float64), np.array(upper, np.float64)
    best = min(1.0, max(best, float(high.max(initial=0.0))))
    copies = int((high <= 0.0).sum()) or 1  # arms that may be as good as the best share its pulls
    tried: dict[Corner, NDArray[np.float64]] = {}

    def costs(corner: Corner) -> NDArray[np.float64]:
        """Return what each arm costs at a corner, over each number of pulls."""
        if corner not in tried:
            tried[corner] = _tried(best, copies, np.where(corner, high, low), two_log, marks)
        return tried[corner]

    # Each number of pulls is searched for by itself: a member computes its ceiling without those of the others.
    chosen = [_cheapest(low < high, costs, row) for row in range(len(marks))]
    least = np.zeros(len(marks))
    for corner in dict.fromkeys(chosen):
        rows = np.array([row for row, other in enumerate(chosen) if other == corner])
        least[rows] = _measured(best, copies, np.where(corner, high, low), two_log, marks[rows])
    # With fewer pulls than arms, 2-UCB pulls some of them once each, in any order.
    least = FACTOR * np.minimum(least, marks * low.mean())
    found: list[float] = least[places].tolist()
    return found


def _cheapest(wide: NDArray[np.bool_], costs: Callable[[Corner], NDArray[np.float64]], row: int) -> Corner:
    """Return the cheapest of the corners that are tried, for one number of pulls."""
    arms = len(wide)

    def cost(corner: Corner) -> float:
        return float(costs(corner)[row].sum())

    if wide.sum() <= ALL_CORNERS:
        return min(itertools.product(*((False, True) if each else (False,) for each in wide)), key=cost)
    saved = costs((False,) * arms)[row] - costs(tuple(wide.tolist()))[row]  # by the upper end of each arm
    corner = tuple(bool(each) for each in wide & (saved >= 0.0))
    unsure = sorted(np.flatnonzero(wide).tolist(), key=lambda arm: (abs(saved[arm]), arm))[:MOST_FLIPS]
    for arm in unsure:
        flipped = (*corner[:arm], not corner[arm], *corner[arm + 1 :])
        corner = min(corner, flipped, key=cost)
    return corner


def first_ceilings(
    best: float, lower: Sequence[float], upper: Sequence[float], two_log: float, steps: Sequence[int]
) -> list[float]:
    """Return the ceilings of formats 1 and 2, which may be too high: each arm takes its cheaper end by itself.

    They also charge the whole gap of an arm whose mean cannot be that far below the leader's.
    """
    marks, places = np.unique(np.array([min(step, LONGEST) for step in steps], np.int64), return_inverse=True)
    if not len(marks):
        return []
    found: list[float] = _first_ceilings(best, np.array(lower), np.array(upper), two_log, marks)[places].tolist()
    return found


@compiled
def _first_ceilings(best, lower, upper, two_log, marks):
    """Return `first_ceilings` over `marks`: increasing, at least one, none above `LONGEST`."""
    rows, arms = len(marks), len(lower)
    made = np.zeros((rows, arms), np.int64)
    excess = np.zeros((rows, arms))  # how much more the upper end costs than the lower
    for play in range(TRIALS):
        _play_alone(PLAYS + play, best, 1, lower, two_log, marks, made)
        for row in range(rows):
            for arm in range(arms):
                excess[row, arm] -= lower[arm] * made[row, arm]
        _play_alone(PLAYS + play, best, 1, upper, two_log, marks, made)
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
        costs = _measured(best, 1, cheaper[first], two_log, marks[alike[:size]])
        for place in range(size):
            least[alike[place]] = costs[place]
    return least


@compiled
def _tried(best, copies, gaps, two_log, marks):
    """Return the mean cost of each arm up to each of the steps `marks`, from few plays of 2-UCB alone."""
    rows, arms = len(marks), len(gaps)
    made, costs = np.zeros((rows, arms), np.int64), np.zeros((rows, arms))
    for play in range(TRIALS):
        _play_alone(PLAYS + play, best, copies, gaps, two_log, marks, made)
        for row in range(rows):
            for arm in range(arms):
                costs[row, arm] += gaps[arm] * made[row, arm]
    return costs / TRIALS


@compiled
def _measured(best, copies, gaps, two_log, marks):
    """Return the mean cost of 2-UCB alone up to each of the steps `marks`, less three standard errors."""
    rows, arms = len(marks), len(gaps)
    made = np.zeros((rows, arms), np.int64)
    total, squares = np.zeros(rows), np.zeros(rows)
    for play in range(PLAYS):
        _play_alone(play, best, copies, gaps, two_log, marks, made)
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
def _play_alone(play, best, copies, gaps, two_log, marks, made):
    """Play 2-UCB once, with a best arm that always pays its mean; count the pulls up to each of the steps `marks`.

    Between two pulls of other arms, the best arm is pulled until its index, best + sqrt(two_log / n), falls below
    theirs: a closed formula. There are `copies` of it, which are pulled equally often. An arm with n pulls is pulled
    in blocks of n / 1,024. Of the last block, 2-UCB may have made a single pull only, so `made[k]` counts one,
    whether step `marks[k]` ends the block or cuts it.
    """
    arms, steps = len(gaps), marks[-1]
    index, sums = np.full(arms, -math.inf), np.zeros(arms)
    pulls, sure = np.zeros(arms, np.int64), np.zeros(arms, np.int64)
    word, group_of = np.zeros(arms, np.uint64), np.full(arms, -1)
    k0, k1 = np.uint64(_SEED), np.uint64(play)
    for arm in range(arms):
        if gaps[arm] > 0.0:
            index[arm] = math.inf
    of_best, step = 1, copies
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
            until = min(math.floor(two_log / (index[arm] - best) ** 2) + 1.0, 2.0**62 / copies)
            step += copies * (np.int64(until) - of_best)
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

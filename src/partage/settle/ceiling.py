"""Ceilings by play: a lower bound on the cost of playing 2-UCB alone.

A ceiling is 0.95 of the mean regret of 512 plays of 2-UCB, less three standard errors, at the cheapest corner of the
box of gaps that the record allows. 2-UCB's regret is not monotone in a gap, so 32 more plays of each corner find the
cheapest: of all corners for up to four arms, otherwise from the cheaper end of each arm by itself, by flipping one
arm after the other. The plays have a fixed seed, so that equal records give equal ceilings.

This module needs numba; `partage.settle.core.ceilings_of` imports it when such ceilings are needed.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from partage.compiled import compiled
from partage.settle.plays import PLAYS, TRIALS, levels_of, measured, new_state, play_alone, taken_to, tried

LONGEST = 10**6  # steps of a play; regret never falls with pulls, so a cut play is still a lower bound
FACTOR = 0.95  # of the plays: the best arm has luck, too, which matters where pulls are few
ALL_CORNERS, MOST_FLIPS = 4, 16  # arms: up to how many every corner is tried, and how many are flipped otherwise
_KEPT = 4096  # records whose ceilings are kept in memory

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
    ends = tuple(float(end) for end in lower), tuple(float(end) for end in upper)
    found = _ceilings(float(best), *ends, float(two_log), tuple(marks.tolist()))
    return [found[place] for place in places.tolist()]


@lru_cache(_KEPT)
def _ceilings(
    best: float, lower: tuple[float, ...], upper: tuple[float, ...], two_log: float, steps: tuple[int, ...]
) -> tuple[float, ...]:
    """Return the ceilings over increasing numbers of pulls. Runs and pages with the same record share them."""
    low, high, marks = np.array(lower), np.array(upper), np.array(steps, np.int64)
    best = min(1.0, max(best, float(high.max(initial=0.0))))
    copies = int((high <= 0.0).sum()) or 1  # arms that may be as good as the best share its pulls
    level = float(levels_of(best, copies, low, two_log, marks)[0])  # below it at every corner, but for bad luck
    starts = tuple(taken_to(level, best, copies, gaps, two_log, marks[0]) for gaps in (low, high))
    known: dict[Corner, NDArray[np.float64]] = {}

    def costs(corner: Corner) -> NDArray[np.float64]:
        """Return what each arm costs at a corner, over each number of pulls."""
        if corner not in known:
            at_upper = np.array(corner, np.bool_)
            gaps = np.where(at_upper, high, low)
            known[corner] = tried(best, copies, gaps, two_log, marks, level, at_upper, starts)
        return known[corner]

    # Each number of pulls is searched for by itself: a member computes its ceiling without those of the others.
    chosen = [_cheapest(low < high, costs, row) for row in range(len(marks))]
    least = np.zeros(len(marks))
    for corner in dict.fromkeys(chosen):
        rows = np.array([row for row, other in enumerate(chosen) if other == corner])
        least[rows] = measured(best, copies, np.where(corner, high, low), two_log, marks[rows])
    # With fewer pulls than arms, 2-UCB pulls some of them once each, in any order.
    limits: list[float] = (FACTOR * np.minimum(least, marks * low.mean())).tolist()
    return tuple(limits)


def _cheapest(wide: NDArray[np.bool_], costs: Callable[[Corner], NDArray[np.float64]], row: int) -> Corner:
    """Return the cheapest of the corners that are tried, for one number of pulls."""
    arms = len(wide)

    def cost(corner: Corner) -> float:
        return float(costs(corner)[row].sum())

    if not wide.any():
        return (False,) * arms
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
    levels = levels_of(best, 1, lower, two_log, marks), levels_of(best, 1, upper, two_log, marks)
    for play in range(TRIALS):
        play_alone(PLAYS + play, best, 1, lower, two_log, marks, levels[0], new_state(lower), made)
        for row in range(rows):
            for arm in range(arms):
                excess[row, arm] -= lower[arm] * made[row, arm]
        play_alone(PLAYS + play, best, 1, upper, two_log, marks, levels[1], new_state(upper), made)
        for row in range(rows):
            for arm in range(arms):
                excess[row, arm] += upper[arm] * made[row, arm]
    cheaper = np.zeros((rows, arms))
    for row in range(rows):
        for arm in range(arms):
            cheaper[row, arm] = lower[arm] if excess[row, arm] > 0.0 else upper[arm]

    # Rows may differ in which ends are cheaper. Rows with the same ends are measured together.
    least, known, alike = np.zeros(rows), np.zeros(rows, np.bool_), np.zeros(rows, np.int64)
    for first in range(rows):
        if known[first]:
            continue
        size = 0
        for row in range(first, rows):
            same = not known[row]
            for arm in range(arms):
                same = same and cheaper[row, arm] == cheaper[first, arm]
            if same:
                alike[size], known[row] = row, True
                size += 1
        costs = measured(best, 1, cheaper[first], two_log, marks[alike[:size]])
        for place in range(size):
            least[alike[place]] = costs[place]
    return least

"""Intervals around the means of Bernoulli arms: which pairs of arms KL-ETC may have separated.

KL-ETC separates two arms if Z >= threshold + loss + loss'. Z is the least n kl(mean, q) + n' kl(mean', q) over all q.
So it does not if there is a q with n kl(mean, q) - loss < threshold / 2 for both of them: if the intervals of such q
meet. The same holds for all arms at once. Two points are kept, `low` and `high`, so that

- no active arm's interval ends below `low`, and no arm's interval starts above `high`;
- the *tops* are the arms whose interval starts above `low`, and the *bottoms* are the active arms whose interval ends
  below `high`. Only a top can separate an arm, and only a bottom can be separated.

Mostly all intervals have a point in common. Then both points are that one, and there are neither tops nor bottoms.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.compiled import inlined, inner, uncounted

_NONE = np.int64(-1)
_CLOSE, _STEPS = 0.002, 6  # how far inside an interval its end may be, as a share of half the threshold
_LEAST = 1e-300  # of a point: its logarithm is finite
_MOST = 1.0 - 2.0**-53
LOW, _, _, HIGH, _, _, FROZEN, N_TOPS, N_BOTTOMS, CUT = range(10)  # the logarithms of a point follow it


class Intervals(NamedTuple):
    """What is stored of each arm's interval, and the two points.

    Attributes
    ----------
    net
        The terms of n kl(mean, q) that do not depend on q, less the mixture loss.
    tops, bottoms, top_at, bottom_at
        The tops and the bottoms, and where each arm is in these lists (-1: it is not).
    points
        `low` and `high`, each with log q and log(1 - q); the highest start of an interval of an eliminated arm; how
        many tops and bottoms there are.
    """

    net: NDArray[np.float64]
    tops: NDArray[np.int64]
    bottoms: NDArray[np.int64]
    top_at: NDArray[np.int64]
    bottom_at: NDArray[np.int64]
    points: NDArray[np.float64]


@inner
def new_intervals(arms):
    """Make room for all arms."""
    points = np.zeros(10)
    _set_point(LOW, 0.5, points)
    _set_point(HIGH, 0.5, points)
    return Intervals(
        np.zeros(arms), np.zeros(arms, np.int64), np.zeros(arms, np.int64), np.full(arms, _NONE),
        np.full(arms, _NONE), points,
    )  # fmt: skip


@inlined
def distance(count, total, net, log_q, log_rest):
    """Return n kl(mean, q) less the mixture loss, or n kl(mean, q) if `net` does not subtract it."""
    return net - total * log_q - (count - total) * log_rest


@inlined
def _set_point(at, q, points):
    q = min(max(q, _LEAST), _MOST)
    points[at], points[at + 1], points[at + 2] = q, math.log(q), math.log1p(-q)


@uncounted
def end_of(count, total, net, half):
    """Return a point above the mean, just inside the arm's interval; 1 if the mean is 1."""
    if total == count:
        return 1.0
    mean, slack = total / count, _CLOSE * half
    spread = (total + 1.0) * (count - total + 1.0) / ((count + 2.0) * (count + 2.0))
    q = mean + math.sqrt((2.0 * half + math.log(0.5 * math.pi * count)) * spread / count)
    q = min(q, 0.5 + 0.5 * mean)
    for _ in range(_STEPS):  # Newton's, to a point inside; the distance is convex in q, so they end above it
        over = distance(count, total, net, math.log(q), math.log1p(-q)) - half
        if -2.0 * slack < over < 0.0:
            return q
        q = min(q - (over + slack) * q * (1.0 - q) / (count * (q - mean)), 0.5 + 0.5 * q)
    while distance(count, total, net, math.log(q), math.log1p(-q)) >= half:
        q = mean + 0.99 * (q - mean)
        if q <= mean:
            return mean
    return q


@uncounted
def start_of(count, total, net, half):
    """Return a point below the mean, just inside the arm's interval; 0 if the mean is 0."""
    return 1.0 - end_of(count, count - total, net, half)


@inlined
def is_outside(count, total, net, half, at, points):
    """Whether the point at this place is outside the arm's interval."""
    return distance(count, total, net, points[at + 1], points[at + 2]) >= half


@uncounted
def _outermost(half, active, counts, total):
    """Return the active arms whose interval seems to end first and to start last; -1 if none was explored."""
    first, last, least, most = _NONE, _NONE, math.inf, -math.inf
    for i in range(len(counts)):
        if active[i] and counts[i] > 0:
            mean, n = total[i] / counts[i], counts[i] + 2.0
            reach = math.sqrt(2.0 * half * (total[i] + 1.0) * (n - total[i] - 1.0) / n) / n
            if mean + reach < least:
                first, least = i, mean + reach
            if mean - reach > most:
                last, most = i, mean - reach
    return first, last


@uncounted
def set_points(half, slack, active, counts, total, mean, intervals):
    """Choose both points anew, `slack` away from the ends of intervals, and list the tops and the bottoms."""
    net, points = intervals.net, intervals.points
    first, last = _outermost(half, active, counts, total)
    low, high = 1.0, points[FROZEN]
    if first >= 0:
        low = end_of(counts[first], total[first], net[first], half)
        high = max(high, start_of(counts[last], total[last], net[last], half))
    _set_point(LOW, low, points)
    _set_point(HIGH, high, points)
    for i in range(len(counts)):
        if active[i] and counts[i] > 0:
            if mean[i] < points[LOW] and is_outside(counts[i], total[i], net[i], half, LOW, points):
                _set_point(LOW, end_of(counts[i], total[i], net[i], half), points)
            if mean[i] > points[HIGH] and is_outside(counts[i], total[i], net[i], half, HIGH, points):
                _set_point(HIGH, start_of(counts[i], total[i], net[i], half), points)
    low, high = points[LOW] - slack, points[HIGH] + slack
    if low >= high:
        low = high = 0.5 * (low + high)
    _set_point(LOW, low, points)
    if low < high:
        _set_point(HIGH, high, points)
    else:
        points[HIGH], points[HIGH + 1], points[HIGH + 2] = points[LOW], points[LOW + 1], points[LOW + 2]

    for j in range(np.int64(points[N_TOPS])):
        intervals.top_at[intervals.tops[j]] = _NONE
    for j in range(np.int64(points[N_BOTTOMS])):
        intervals.bottom_at[intervals.bottoms[j]] = _NONE
    points[N_TOPS], points[N_BOTTOMS] = 0.0, 0.0
    if points[LOW] == points[HIGH]:
        return
    for i in range(len(counts)):
        if counts[i] > 0 and (active[i] or points[FROZEN] > points[LOW]):
            if mean[i] > points[LOW] and is_outside(counts[i], total[i], net[i], half, LOW, points):
                put_in(i, N_TOPS, intervals.tops, intervals.top_at, points)
            if active[i] and mean[i] < points[HIGH] and is_outside(counts[i], total[i], net[i], half, HIGH, points):
                put_in(i, N_BOTTOMS, intervals.bottoms, intervals.bottom_at, points)


@inlined
def put_in(arm, which, members, member_at, points):
    """Put an arm into the list of tops or bottoms."""
    size = np.int64(points[which])
    members[size], member_at[arm] = arm, size
    points[which] = size + 1


@inlined
def take_out(arm, which, members, member_at, points):
    """Take an arm out of the list of tops or bottoms."""
    size = np.int64(points[which]) - 1
    last = members[size]
    members[member_at[arm]], member_at[last] = last, member_at[arm]
    member_at[arm] = _NONE
    points[which] = size


@uncounted
def freeze(arm, half, counts, total, intervals):
    """Remember where the interval of an arm starts that is eliminated now."""
    points = intervals.points
    start = start_of(counts[arm], total[arm], intervals.net[arm], half)
    points[FROZEN] = max(points[FROZEN], start)
    if intervals.bottom_at[arm] >= 0:
        take_out(arm, N_BOTTOMS, intervals.bottoms, intervals.bottom_at, points)

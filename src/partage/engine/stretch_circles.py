"""Quiet stretches of `by_evidence` and `by_betting`: there, counts alone decide, so exploring repeats itself.

From the start of a stretch, the sharers that explore are written down, and how close each comparison of counts came
to going the other way. Once the place and the open arms are those of the start again, the same sharers explore once
more, as long as no comparison goes the other way. That may be counted at once. All comparisons are linear in the
counts, so how often is arithmetic:

- an arm is open while its count is at most the leader's and, where counts decide, `lead` times its count is;
- the leader is open while its count is at most `lead` times the largest other count;
- an agent that shares several open arms explores the one with the lowest count.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.compiled import inlined, inner, uncounted
from partage.engine.commits import explored_at
from partage.engine.open_queue import requeue
from partage.engine.quiet import BY_COUNTS

_TRAIL = np.int64(2**16)  # broadcasts in the longest circle that is looked for
AT, _PLACE, _PULL, _MOST, _HINT = range(5)
_BY_LEADER, _BY_LEAD = range(2)
_FAR = np.int64(2**62)


class Path(NamedTuple):
    """What was explored since the start of a stretch.

    Attributes
    ----------
    sharers
        The sharers that explored.
    state
        How many of them are written down (-1: nothing is); place, pull and the largest count of another arm than the
        leader at the start; how many broadcasts of an arm a stretch must have for another circle.
    was_open
        Which arms were open at the start.
    kept, missed
        For each comparison and arm, by how much it held at least, and the most by which it did not (below 0). The
        last column is the leader's own comparison.
    """

    sharers: NDArray[np.int64]
    state: NDArray[np.int64]
    was_open: NDArray[np.bool_]
    kept: NDArray[np.float64]
    missed: NDArray[np.float64]


@inner
def new_path(arms, lead, kept):
    """Make room for a path, if one is kept. Products with a lead that is no short binary fraction are rounded."""
    kept = kept and lead * 1024.0 == math.floor(lead * 1024.0)
    state = np.zeros(5, np.int64)
    state[AT], state[_HINT] = -1, np.int64(0) if kept else _FAR
    room = arms + 1 if kept else 0
    return Path(
        np.empty(_TRAIL if kept else 0, np.int64), state, np.zeros(arms, np.bool_), np.zeros((2, room)),
        np.zeros((2, room)),
    )  # fmt: skip


@uncounted
def start_path(quiet, now, place, most, opened, path):
    """Start a path with a stretch, if the stretch is long enough."""
    state = path.state
    state[AT] = -1
    if quiet < state[_HINT]:
        return
    state[AT], state[_PLACE], state[_PULL], state[_MOST] = 0, place, now, most
    for i in range(len(opened)):
        path.was_open[i] = opened[i]
    path.kept[:, :] = math.inf
    path.missed[:, :] = -math.inf


@inlined
def reopen_by_counts(
    leader, lead, most, leader_always, few, n_few, modes, counts, opened, lap_start, place, agents, firsts, places,
    sharer, lap, q_arms, q_pulls, ends, queued,
):  # fmt: skip
    """Open and close arms after a broadcast of a quiet stretch; return how many are open besides the leader.

    `most` is the largest count of another arm than the leader. If no other arm is open, the leader is, if it is
    `leader_always`.
    """
    ahead, n_open = counts[leader], np.int64(0)
    for j in range(n_few):
        i = few[j]
        opened[i] = counts[i] <= ahead and (modes[i] != BY_COUNTS or lead * counts[i] <= ahead)
        n_open += opened[i]
        if opened[i] != queued[i]:
            requeue(
                i, opened[i], lap_start, place, agents, firsts, places, sharer, lap, q_arms, q_pulls, ends, queued
            )
    opened[leader] = ahead <= lead * most or (n_open == 0 and leader_always)
    if opened[leader] != queued[leader]:
        requeue(
            leader, opened[leader], lap_start, place, agents, firsts, places, sharer, lap, q_arms, q_pulls, ends,
            queued,
        )  # fmt: skip
    return n_open


@uncounted
def follow(sharer, lead, ahead, most, few, n_few, counts, path):
    """Write down a sharer that explored, and how the comparisons came out after that."""
    state = path.state
    if state[AT] == _TRAIL:
        state[AT] = -1
        return
    path.sharers[state[AT]] = sharer
    state[AT] += 1
    for j in range(n_few):
        i = few[j]
        _note(_BY_LEADER, i, np.float64(ahead - counts[i]), path)
        _note(_BY_LEAD, i, ahead - lead * counts[i], path)
    _note(_BY_LEAD, len(path.was_open), lead * most - ahead, path)


@uncounted
def _note(which, column, by, path):
    if by >= 0.0:
        path.kept[which, column] = min(path.kept[which, column], by)
    else:
        path.missed[which, column] = max(path.missed[which, column], by)


@uncounted
def _repeats(kept, missed, change):
    """Return how often a comparison comes out the same, if it changes by this much each time."""
    if change < 0.0:
        return math.floor(kept / -change) if kept < math.inf else math.inf
    if change > 0.0 and missed > -math.inf:
        return math.ceil(-missed / change) - 1.0
    return math.inf


@uncounted
def whole_circles(
    quiet, now, place, until, lead, most, leader, few, n_few, modes, counts, read, opened, path
):  # fmt: skip
    """Return how often the path can be repeated from here: 0 unless it ends where it started."""
    state = path.state
    if place != state[_PLACE] or now >= until:
        return np.int64(0)
    if opened[leader] != path.was_open[leader]:
        return np.int64(0)
    for j in range(n_few):
        if opened[few[j]] != path.was_open[few[j]]:
            return np.int64(0)
    ahead, led, rise = counts[leader], counts[leader] - read[leader], most - state[_MOST]
    pulls, longest = now - state[_PULL], max(led, rise)
    if longest == 0:
        return np.int64(0)
    times = np.float64((until - now) // pulls)
    times = min(times, np.float64((quiet - 1 - longest) // longest))
    highest = np.int64(0)
    for j in range(n_few):
        i = few[j]
        if counts[i] > read[i]:
            highest = max(highest, read[i])
            if counts[i] - read[i] != rise:
                return np.int64(0)
            change = np.float64(led - rise)
            if change != 0.0:  # where an agent shares both arms, a tie would make a difference, too
                times = min(times, _repeats(path.kept[_BY_LEADER, i] - 1.0, -math.inf, min(change, 0.0)))
                started = read[leader] - read[i]  # the path was written down from the broadcast after that on
                if path.missed[_BY_LEADER, i] > -math.inf or min(path.kept[_BY_LEADER, i], started) < 1.0:
                    return np.int64(0)
            if modes[i] == BY_COUNTS:
                times = min(times, _repeats(path.kept[_BY_LEAD, i], path.missed[_BY_LEAD, i], led - lead * rise))
        elif opened[i]:
            return np.int64(0)
        elif led > 0:
            opens = np.float64(counts[i]) if counts[i] > ahead else lead * counts[i]
            times = min(times, math.ceil((opens - ahead) / led) - 1.0)
    if rise > 0 and highest != state[_MOST]:
        return np.int64(0)
    column = len(path.was_open)
    times = min(times, _repeats(path.kept[_BY_LEAD, column], path.missed[_BY_LEAD, column], lead * rise - led))
    return np.int64(max(times, 0.0))


@uncounted
def repeat(times, now, leader, few, n_few, sharers, counts, read, queue, path, current, outcome):
    """Count the path `times` more often, and end it; return how many pulls that takes."""
    state, pulls = path.state, times * (now - path.state[_PULL])
    for at in range(state[AT]):
        sharer = path.sharers[at]
        outcome.explore[sharers.entries[sharer]] += times
        explored_at(np.int64(sharers.places[sharer]), times, current, outcome.commit)
    state[_HINT] = 2 * (counts[leader] - read[leader])
    for j in range(n_few + 1):
        i = few[j] if j < n_few else leader
        state[_HINT] = max(state[_HINT], 2 * (counts[i] - read[i]))
        counts[i] += times * (counts[i] - read[i])
        queue.lap[i] += pulls
    for at in range(queue.ends[0], queue.ends[1]):
        queue.pulls[at] += pulls
    state[AT] = -1
    return pulls


@uncounted
def give_up(quiet, path):
    """End a path that did not return to its start: stretches as long as this one are too short."""
    if path.state[AT] >= 0:
        path.state[AT], path.state[_HINT] = -1, max(2 * quiet, path.state[_HINT])

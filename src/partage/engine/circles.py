"""Circles: where arms take turns (B = 1), who explores in a round depends only on the place at which it starts.

Sooner or later a round starts at a place where one has started before, and from there on agents explore in circles.
A quiet stretch then counts whole circles at once.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.compiled import inner, uncounted
from partage.engine.commits import explored_at

CIRCLES_AFTER = np.int64(2**15)  # broadcasts of an arm after which looking for circles pays
_TRAIL = np.int64(2**16)  # broadcasts in the longest circle that is looked for
WALKED, _START, ROUNDS, PULLS = range(4)


class Trail(NamedTuple):
    """The sharers that explored since some round started, to find out when rounds go in circles.

    `round_of` holds the round that started at a place, and `pull_of` the first pull of a round. `state` holds how far
    the trail goes (-1: it is not recorded; `_TRAIL`: no further), and the first round, rounds and pulls of the
    circle.
    """

    sharers: NDArray[np.int32]
    round_of: NDArray[np.int64]
    pull_of: NDArray[np.int64]
    state: NDArray[np.int64]


@inner
def new_trail(agents, kept):
    """Make room for a trail, if one is recorded."""
    longest, places = (_TRAIL, agents) if kept else (np.int64(0), np.int64(0))
    state = np.zeros(4, np.int64)
    state[WALKED] = -1
    return Trail(np.empty(longest, np.int32), np.empty(places, np.int64), np.empty(longest, np.int64), state)


@uncounted
def walk(sharer, trail):
    """Add a sharer that explored to the trail."""
    walked = trail.state[WALKED]
    if walked < _TRAIL:
        trail.sharers[walked] = sharer
        trail.state[WALKED] += 1


@uncounted
def look_for_circle(now, now_place, agents, n_active, trail):
    """Start a round here. If one started at this place before, the trail goes in circles from there on."""
    state, at_place = trail.state, now_place % agents
    if state[WALKED] < 0:
        state[WALKED], state[ROUNDS] = 0, 0
        for place in range(agents):
            trail.round_of[place] = -1
    walked = state[WALKED]
    if walked == _TRAIL:
        return
    before = trail.round_of[at_place]
    if before >= 0:
        state[_START], state[ROUNDS] = before, walked // n_active - before
        state[PULLS] = now - trail.pull_of[before]
        state[WALKED] = _TRAIL
    else:
        trail.round_of[at_place] = walked // n_active
        trail.pull_of[walked // n_active] = now


@uncounted
def count_circles(quiet, pulls_left, actives, n_active, places, entries, read, lap, trail, current, outcome):
    """Go round as often as fits into the quiet stretch and the pulls left; return how often."""
    unread = np.int64(0)
    for j in range(n_active):
        unread = max(unread, outcome.counts[actives[j]] - read[actives[j]])
    rounds, pulls = trail.state[ROUNDS], trail.state[PULLS]
    circles = min((quiet - 1 - unread) // rounds, pulls_left // pulls)
    if circles <= 0:
        return np.int64(0)
    for walked in range(trail.state[_START] * n_active, (trail.state[_START] + rounds) * n_active):
        sharer = trail.sharers[walked]
        outcome.explore[entries[sharer]] += circles
        explored_at(np.int64(places[sharer]), circles, current, outcome.commit)
    for j in range(n_active):
        outcome.counts[actives[j]] += circles * rounds
        lap[actives[j]] += circles * pulls
    return circles

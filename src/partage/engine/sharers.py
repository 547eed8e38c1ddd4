"""Who shares each arm, in the order in which agents act. Kernels that jump from broadcast to broadcast need it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.compiled import compiled, inlined


class Sharers(NamedTuple):
    """The sharers of each arm, in the order in which they act.

    Arm i has the sharers `firsts[i]` to `firsts[i + 1] - 1`. `places` holds the place of each in the order of agents,
    and `entries` its entry in the sharing (see `GameTable`).
    """

    firsts: NDArray[np.int64]
    places: NDArray[np.int32]
    entries: NDArray[np.int32]


@compiled
def sharers_in_order(agents, arms, starts, shared, order):
    """List the sharers of each arm, given which agent acts at each place."""
    firsts = np.zeros(arms + 1, np.int64)
    for entry in range(len(shared)):
        firsts[shared[entry] + 1] += 1
    for arm in range(arms):
        firsts[arm + 1] += firsts[arm]
    filled = firsts.copy()
    places = np.empty(len(shared), np.int32)
    entries = np.empty(len(shared), np.int32)
    for place in range(agents):
        agent = order[place]
        for entry in range(starts[agent], starts[agent + 1]):
            at = filled[shared[entry]]
            filled[shared[entry]] += 1
            places[at], entries[at] = place, entry
    return Sharers(firsts, places, entries)


@inlined
def first_from(places, start, stop, place):
    """Return the first index in start:stop whose place is at least `place`; `stop` if there is none."""
    for at in range(start, min(start + 6, stop)):  # it is usually near
        if places[at] >= place:
            return at
    low, high = min(start + 6, stop), stop
    while low < high:
        middle = (low + high) // 2
        if places[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low

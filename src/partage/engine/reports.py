"""Reports that are out: a heap of those that are due, and the open claims in the order in which they lapse."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.compiled import inlined, inner, uncounted

_NONE = np.int64(-1)
_SIZE, _FREE, _OLDEST, _NEWEST = range(4)


class Reports(NamedTuple):
    """The reports that are out.

    Attributes
    ----------
    heap
        Slots, the next to be told first: by the time at which it is due, then by its number.
    free
        Slots not in use.
    due, reward, number, entry, agent
        Of each slot: when it is told, the reward, the number of the pull, its entry of the sharing, its agent.
    claim
        Of each agent: the number of its open claim; -1 if it has none.
    claimed
        Of each agent: the entry of the sharing of its open claim.
    pulled
        Of each agent: when it made that pull.
    older, newer
        Of each agent with an open claim: whose claim is the next older and newer one; -1 if there is none.
    sizes
        Reports that are out, free slots, and who has the oldest and the newest open claim.
    """

    heap: NDArray[np.int64]
    free: NDArray[np.int64]
    due: NDArray[np.float64]
    reward: NDArray[np.float64]
    number: NDArray[np.int64]
    entry: NDArray[np.int64]
    agent: NDArray[np.int64]
    claim: NDArray[np.int64]
    claimed: NDArray[np.int64]
    pulled: NDArray[np.float64]
    older: NDArray[np.int64]
    newer: NDArray[np.int64]
    sizes: NDArray[np.int64]


@inner
def new_reports(agents):
    """Make room for one report of each agent."""
    return Reports(
        np.zeros(agents, np.int64),
        np.arange(agents),
        np.zeros(agents),
        np.zeros(agents),
        np.zeros(agents, np.int64),
        np.zeros(agents, np.int64),
        np.zeros(agents, np.int64),
        np.full(agents, _NONE),
        np.zeros(agents, np.int64),
        np.zeros(agents),
        np.full(agents, _NONE),
        np.full(agents, _NONE),
        np.array([0, agents, -1, -1]),
    )


@inlined
def is_full(reports):
    """Whether there is no slot for one more report: claims that lapsed may still be told."""
    return reports.sizes[_FREE] == 0


@inner
def with_room(reports):
    """Return the same reports with twice as many slots."""
    slots = len(reports.heap)
    free, sizes = np.zeros(2 * slots, np.int64), reports.sizes
    for slot in range(slots):
        free[slot] = slots + slot
    sizes[_FREE] = slots
    more, nothing = np.zeros(slots, np.int64), np.zeros(slots)
    return Reports(
        np.concatenate((reports.heap, more)),
        free,
        np.concatenate((reports.due, nothing)),
        np.concatenate((reports.reward, nothing)),
        np.concatenate((reports.number, more)),
        np.concatenate((reports.entry, more)),
        np.concatenate((reports.agent, more)),
        reports.claim,
        reports.claimed,
        reports.pulled,
        reports.older,
        reports.newer,
        sizes,
    )


@uncounted
def _is_earlier(reports, slot, other):
    due, its = reports.due[slot], reports.due[other]
    return due < its or (due == its and reports.number[slot] < reports.number[other])


@uncounted
def send(reports, agent, entry, reward, number, now, due):
    """Add a report that is due later, and open its claim. There is a slot for it (`with_room`)."""
    sizes, heap = reports.sizes, reports.heap
    sizes[_FREE] -= 1
    slot = reports.free[sizes[_FREE]]
    reports.due[slot], reports.reward[slot], reports.number[slot] = due, reward, number
    reports.entry[slot], reports.agent[slot] = entry, agent
    place = sizes[_SIZE]
    sizes[_SIZE] += 1
    while place > 0 and _is_earlier(reports, slot, heap[(place - 1) // 2]):
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = slot

    reports.claim[agent], reports.claimed[agent], reports.pulled[agent] = number, entry, now
    reports.older[agent], reports.newer[agent] = sizes[_NEWEST], -1
    if sizes[_NEWEST] >= 0:
        reports.newer[sizes[_NEWEST]] = agent
    else:
        sizes[_OLDEST] = agent
    sizes[_NEWEST] = agent


@uncounted
def next_due(reports):
    """Return when the next report is told; infinity if none is out."""
    return reports.due[reports.heap[0]] if reports.sizes[_SIZE] > 0 else np.inf


@uncounted
def received(reports):
    """Take the next report off the heap; return its slot, which keeps its content until the next `send`."""
    sizes, heap = reports.sizes, reports.heap
    first = heap[0]
    sizes[_SIZE] -= 1
    size, slot, place = sizes[_SIZE], heap[sizes[_SIZE]], 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _is_earlier(reports, heap[child + 1], heap[child]):
            child += 1
        if _is_earlier(reports, slot, heap[child]):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = slot
    reports.free[sizes[_FREE]] = first
    sizes[_FREE] += 1
    return first


@uncounted
def oldest_claim(reports):
    """Return whose claim is the oldest open one; -1 if none is open."""
    return reports.sizes[_OLDEST]


@uncounted
def end_claim(reports, agent):
    """End the open claim of an agent."""
    older, newer, sizes = reports.older[agent], reports.newer[agent], reports.sizes
    if older >= 0:
        reports.newer[older] = newer
    else:
        sizes[_OLDEST] = newer
    if newer >= 0:
        reports.older[newer] = older
    else:
        sizes[_NEWEST] = older
    reports.claim[agent] = -1

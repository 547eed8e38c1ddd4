"""The open arms in the order in which they can be explored next: a queue of arms by their next pull.

An arm that was explored usually goes to the end, so inserting from there takes a few steps, however many arms are
open.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.compiled import inlined, inner, uncounted
from partage.engine.sharers import first_from

_HEAD, _TAIL = range(2)


class Queue(NamedTuple):
    """The queue, and where each arm stands.

    Attributes
    ----------
    arms, pulls
        The queued arms and their next pulls, from `ends[0]` to `ends[1] - 1`, the earliest pull first.
    ends
        Where the queue starts and ends.
    queued
        Whether an arm is in the queue.
    sharer, lap
        The next sharer of each arm: the agent that makes pull `lap + places[sharer]`.
    """

    arms: NDArray[np.int64]
    pulls: NDArray[np.int64]
    ends: NDArray[np.int64]
    queued: NDArray[np.bool_]
    sharer: NDArray[np.int64]
    lap: NDArray[np.int64]


@inner
def new_queue(arms, firsts):
    """Make an empty queue."""
    room = 4 * arms + 16
    return Queue(
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.zeros(2, np.int64),
        np.zeros(arms, np.bool_),
        firsts[:arms].copy(),
        np.zeros(arms, np.int64),
    )


@inlined
def advance(arm, lap_start, place, agents, firsts, places, sharer, lap):
    """Move an arm's pointer to its first sharer from this place of this lap on; return that sharer's pull."""
    if lap[arm] < lap_start:
        lap[arm], sharer[arm] = lap_start, firsts[arm]
    if lap[arm] == lap_start and places[sharer[arm]] < place:
        sharer[arm] = first_from(places, sharer[arm], firsts[arm + 1], place)
        if sharer[arm] == firsts[arm + 1]:
            sharer[arm] = firsts[arm]
            lap[arm] += agents
    return lap[arm] + places[sharer[arm]]


@inlined
def insert(arm, pull, q_arms, q_pulls, ends):
    """Put an arm into the queue."""
    at = ends[_TAIL]
    ends[_TAIL] = at + 1
    while at > ends[_HEAD] and q_pulls[at - 1] > pull:
        q_arms[at], q_pulls[at] = q_arms[at - 1], q_pulls[at - 1]
        at -= 1
    q_arms[at], q_pulls[at] = arm, pull


@inlined
def requeue(arm, is_open, lap_start, place, agents, firsts, places, sharer, lap, q_arms, q_pulls, ends, queued):
    """Put an arm that opens into the queue, and take one that closes out of it."""
    queued[arm] = is_open
    if is_open:
        insert(arm, advance(arm, lap_start, place, agents, firsts, places, sharer, lap), q_arms, q_pulls, ends)
    else:
        remove(arm, q_arms, q_pulls, ends)


@inlined
def take_next(pull, counts, rank, agents, firsts, places, sharer, lap, q_arms, q_pulls, ends, queued):
    """Take the arm that is explored at this pull, the next one, out of the queue; return it, its sharer and place.

    If the agent shares several open arms, that is the least-broadcast, and the others wait for their next sharers.
    """
    start = ends[_HEAD]
    arm, head = q_arms[start], start + 1
    while head < ends[_TAIL] and q_pulls[head] == pull:
        i = q_arms[head]
        if counts[i] < counts[arm] or (counts[i] == counts[arm] and rank[i] < rank[arm]):
            arm = i
        head += 1
    at = sharer[arm]
    place = np.int64(places[at])
    ends[_HEAD] = head
    queued[arm] = False
    for j in range(start, head):
        i = q_arms[j]
        if i != arm:
            its = advance(i, pull - place, place + 1, agents, firsts, places, sharer, lap)
            insert(i, its, q_arms, q_pulls, ends)
    return arm, at, place


@uncounted
def fill(arms, agents, firsts, places, sharer, lap, q_arms, q_pulls, ends, queued):
    """Put all arms into the queue, as at the start of a run."""
    start = np.int64(0)
    for arm in range(arms):
        insert(arm, advance(arm, start, start, agents, firsts, places, sharer, lap), q_arms, q_pulls, ends)
        queued[arm] = True


@inlined
def put_back(
    arm, is_open, n_waiting, waiting, lap_start, place, agents, firsts, places, sharer, lap, q_arms, q_pulls, ends,
    queued,
):  # fmt: skip
    """Put an arm that was explored into the queue, or among the waiting ones; return how many of those there are."""
    if not is_open:
        waiting[n_waiting] = arm
        return n_waiting + 1
    queued[arm] = True
    insert(arm, advance(arm, lap_start, place, agents, firsts, places, sharer, lap), q_arms, q_pulls, ends)
    return n_waiting


@uncounted
def open_waiting(
    most_open, n_waiting, waiting, counts, active, lap_start, place, agents, firsts, places, sharer, lap, q_arms,
    q_pulls, ends, queued,
):  # fmt: skip
    """Put the waiting arms that are open now into the queue; return how many wait on."""
    left = np.int64(0)
    for j in range(n_waiting):
        arm = waiting[j]
        if active[arm] and counts[arm] <= most_open:
            queued[arm] = True
            insert(arm, advance(arm, lap_start, place, agents, firsts, places, sharer, lap), q_arms, q_pulls, ends)
        elif active[arm]:
            waiting[left] = arm
            left += 1
    return left


@uncounted
def remove(arm, q_arms, q_pulls, ends):
    """Take an arm out of the queue."""
    at = ends[_HEAD]
    while q_arms[at] != arm:
        at += 1
    ends[_TAIL] -= 1
    while at < ends[_TAIL]:
        q_arms[at], q_pulls[at] = q_arms[at + 1], q_pulls[at + 1]
        at += 1


@uncounted
def postpone(pulls, q_pulls, ends):
    """Let all queued arms be explored so many pulls later."""
    for at in range(ends[_HEAD], ends[_TAIL]):
        q_pulls[at] += pulls


@uncounted
def move_to_front(q_arms, q_pulls, ends):
    """Move the queue to the start of its room."""
    head, length = ends[_HEAD], ends[_TAIL] - ends[_HEAD]
    for at in range(length):
        q_arms[at], q_pulls[at] = q_arms[head + at], q_pulls[head + at]
    ends[_HEAD], ends[_TAIL] = 0, length

"""When agents of an uneven game pull, by arithmetic: the times of each class, and at which pull the clock ticks."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.clock import TICKS
from partage.compiled import compiled, inner, uncounted

_TICKS = np.array(TICKS)


class Layout(NamedTuple):
    """Who pulls where, for an order of agents.

    Arm i has the segments `firsts[i]` to `firsts[i + 1] - 1`, one per class that has sharers of it.

    Attributes
    ----------
    firsts, classes, starts
        The segments of each arm; of each segment its class, and its first sharer. The next segment begins where it
        ends.
    places, entries
        Of each sharer: its place in the order of agents, in increasing order, and its entry of the sharing.
    tick_times, tick_places
        The pull before which the clock ticks: its time, and the place of its agent. The last time is infinite.
    """

    firsts: NDArray[np.int64]
    classes: NDArray[np.int64]
    starts: NDArray[np.int64]
    places: NDArray[np.int64]
    entries: NDArray[np.int64]
    tick_times: NDArray[np.float64]
    tick_places: NDArray[np.int64]


@uncounted
def pull_time(world, of, pull):
    """Return when agents of a class make this pull, counted from 1."""
    return world.class_start[of] + pull / world.class_pace[of]


@uncounted
def first_pull_from(world, of, time):
    """Return the first pull of a class at this time or later; one more than it makes if there is none."""
    most = world.class_makes[of]
    pull = max(np.int64(1), np.int64(min((time - world.class_start[of]) * world.class_pace[of], most + 1.0)))
    while pull > 1 and pull_time(world, of, pull - 1) >= time:  # by the very times of the pulls, which are rounded
        pull -= 1
    while pull <= most and pull_time(world, of, pull) < time:
        pull += 1
    return pull


@compiled
def lay_out(game, world, order):
    """Lay out a game for an order of agents."""
    n_classes, n_entries = len(world.class_pace), len(game.shared)
    sizes = np.zeros(game.arms * n_classes, np.int64)
    for agent in range(game.agents):
        for entry in range(game.starts[agent], game.starts[agent + 1]):
            sizes[game.shared[entry] * n_classes + world.class_of[agent]] += 1
    firsts, classes = np.zeros(game.arms + 1, np.int64), np.zeros(n_entries, np.int64)
    starts, filled = np.zeros(n_entries + 1, np.int64), np.zeros(game.arms * n_classes, np.int64)
    segment, total = 0, 0
    for key in range(game.arms * n_classes):
        if sizes[key] > 0:
            classes[segment], starts[segment], filled[key] = key % n_classes, total, total
            segment += 1
            total += sizes[key]
        firsts[key // n_classes + 1] = segment
    starts[segment] = total
    places, entries = np.zeros(n_entries, np.int64), np.zeros(n_entries, np.int64)
    for place in range(game.agents):
        agent = order[place]
        for entry in range(game.starts[agent], game.starts[agent + 1]):
            key = game.shared[entry] * n_classes + world.class_of[agent]
            places[filled[key]], entries[filled[key]] = place, entry
            filled[key] += 1
    times, tick_places = _ticks(world, order)
    return Layout(firsts, classes, starts, places, entries, times, tick_places)


@uncounted
def _pulls_until(world, time):
    """Return the pulls of all agents before this time, and at it."""
    before, at = 0, 0
    for of in range(len(world.class_pace)):
        pull = first_pull_from(world, of, time)
        before += (pull - 1) * world.class_sizes[of]
        if pull <= world.class_makes[of] and pull_time(world, of, pull) == time:
            at += world.class_sizes[of]
    return before, at


@inner
def _ticks(world, order):
    """Return before which pulls the clock ticks: the pull number of a tick, counted from 0."""
    pulls = 0
    for of in range(len(world.class_pace)):
        pulls += world.class_makes[of] * world.class_sizes[of]
    times, places = np.full(len(_TICKS) + 1, math.inf), np.zeros(len(_TICKS) + 1, np.int64)
    low = 0.0
    for tick in range(len(_TICKS)):
        if _TICKS[tick] >= pulls:
            break
        high = world.end  # by bisection: more pulls than the tick happen until `high`, and not until `low`
        while True:
            middle = low + (high - low) / 2.0
            if middle <= low or middle >= high:
                break
            before, at = _pulls_until(world, middle)
            if before + at > _TICKS[tick]:
                high = middle
            else:
                low = middle
        before, _ = _pulls_until(world, high)
        times[tick], places[tick] = high, _place_of(world, order, high, _TICKS[tick] - before)
    return times, places


@inner
def _place_of(world, order, time, number):
    """Return the place of the agent that makes the pull of this number, counted from 0, at this time."""
    pulling = np.zeros(len(world.class_pace), np.bool_)
    for of in range(len(pulling)):
        pull = first_pull_from(world, of, time)
        pulling[of] = pull <= world.class_makes[of] and pull_time(world, of, pull) == time
    for place in range(len(order)):
        if pulling[world.class_of[order[place]]]:
            if number == 0:
                return place
            number -= 1
    return -1

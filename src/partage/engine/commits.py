"""Commits counted by arithmetic: every pull between two broadcasts is a commit on the same leader.

Pulls are numbered from 0: the agent at place p of the order makes pull `step * M + p`. The pulls under one leader are
an interval. It is counted as whole steps plus a rest, and the rest as differences by place, which are summed up at
the end. Explore pulls inside an interval are subtracted as they happen.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.compiled import inlined, inner, uncounted

_LEADER, _ROW, _SINCE, _EXPLORED = range(4)


class Commits(NamedTuple):
    """Commits so far.

    Attributes
    ----------
    row_of
        The row of the outcome that counts the commits on each arm; -1 if it never led.
    whole
        Whole steps of commits, by row.
    in_all
        Commits of all agents together on each arm, up to the last change of leader.
    current
        The current interval: its leader, the leader's row, its first pull, and the explore pulls in it.
    """

    row_of: NDArray[np.int64]
    whole: NDArray[np.int64]
    in_all: NDArray[np.int64]
    current: NDArray[np.int64]


@inner
def start_commits(leader, arms, outcome):
    """Start the first interval."""
    commits = Commits(
        np.zeros(arms, np.int64), np.zeros(arms, np.int64), np.zeros(arms, np.int64), np.zeros(4, np.int64)
    )
    for arm in range(arms):
        commits.row_of[arm] = -1
    _start_interval(leader, np.int64(0), commits, outcome)
    return commits


@uncounted
def change_leader(leader, now, agents, commits, outcome):
    """End the current interval before pull `now`, and start the next one with this leader."""
    current = commits.current
    commits.in_all[current[_LEADER]] += now - current[_SINCE] - current[_EXPLORED]
    _end_interval(now, agents, commits, outcome)
    _start_interval(leader, now, commits, outcome)


@inlined
def explored_at(place, times, current, commit):
    """Subtract `times` explore pulls of the agent at this place from the current interval.

    `current` and `commit` are those of the `Commits` and of the outcome. Unpacking the tuples at every broadcast
    would be slow.
    """
    row = current[_ROW]
    commit[row, place] -= times  # a difference by place
    commit[row, place + 1] += times
    current[_EXPLORED] += times


@uncounted
def write_curve(checkpoint, before, checkpoints, agents, gaps, counts, commits, curve):
    """Write the overall regret at all checkpoints up to pull `before`; return the next checkpoint.

    No pull at or after `before` is a broadcast yet, so all pulls since the last one are commits on the leader.
    """
    current = commits.current
    while checkpoint < len(checkpoints) and checkpoints[checkpoint] * agents <= before:
        commits_of_leader = checkpoints[checkpoint] * agents - current[_SINCE] - current[_EXPLORED]
        regret = gaps[current[_LEADER]] * commits_of_leader
        for arm in range(len(gaps)):
            regret += gaps[arm] * (counts[arm] + commits.in_all[arm])
        curve[checkpoint] = regret
        checkpoint += 1
    return checkpoint


@inner
def finish_commits(end, order, commits, outcome):
    """End the last interval before pull `end`, and turn steps and differences by place into commits by agent."""
    agents = len(order)
    _end_interval(end, agents, commits, outcome)
    moved = False
    for place in range(agents):
        moved = moved or order[place] != place
    by_place = np.zeros(agents if moved else 0, np.int64)
    for row in range(outcome.rows[0]):
        running = commits.whole[row]
        for place in range(agents):
            running += outcome.commit[row, place]
            outcome.commit[row, place] = running
        if moved:
            for place in range(agents):  # `by_place[:] = …` takes two seconds to compile, for its error message
                by_place[place] = outcome.commit[row, place]
            for place in range(agents):
                outcome.commit[row, order[place]] = by_place[place]


@uncounted
def _start_interval(leader, now, commits, outcome):
    """Start an interval at pull `now`; a leader that never led before takes a fresh row."""
    if commits.row_of[leader] < 0:
        row = outcome.rows[0]
        outcome.rows[0] += 1
        outcome.led[row] = leader
        for place in range(outcome.commit.shape[1]):
            outcome.commit[row, place] = 0
        commits.row_of[leader] = row
    current = commits.current
    current[_LEADER], current[_ROW], current[_SINCE], current[_EXPLORED] = leader, commits.row_of[leader], now, 0


@uncounted
def _end_interval(now, agents, commits, outcome):
    """Count one commit for every pull of the current interval: whole steps, then differences by place."""
    since, row = commits.current[_SINCE], commits.current[_ROW]
    commits.whole[row] += (now - since) // agents
    start, rest = since % agents, (now - since) % agents
    by_place = outcome.commit[row]
    by_place[start] += 1
    if start + rest <= agents:
        by_place[start + rest] -= 1
    else:
        by_place[agents] -= 1
        by_place[0] += 1
        by_place[start + rest - agents] -= 1

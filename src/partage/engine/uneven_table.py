"""Uneven games as arrays: agents that differ, arms that change, and claims that lapse."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.arms import RewardTable, reward_table
from partage.engine.tally import (
    Floats,
    GameTable,
    Ints,
    Uneven,
    always_shared,
    game_table,
    reward_rows,
    row_numbers,
)
from partage.game import Game
from partage.traits import KINDS, OF


class UnevenTable(NamedTuple):
    """What an uneven game has besides a `GameTable`. Times are in steps.

    Attributes
    ----------
    pace, start, makes, horizons
        Of each agent: its pace, the time at which it joins, the pulls that it makes, and its horizon. Pull k happens
        at time `start + k / pace`.
    delay_kind, delay_of, delay_steps
        How late each agent reports (`partage.traits.drawn_delay`).
    class_of, class_pace, class_start, class_makes, class_sizes
        Agents of one class pull at the same times. The class of each agent, and the above of each class.
    rows
        The row of arms that each agent meets, by phase and agent: arm i of row r is arm `r * N + i` of the rewards.
    gaps
        The gap of each arm to the best one of its row.
    phase_starts
        The times after which each phase begins, and infinity.
    arrivals, arrives, joins
        When an agent joins or leaves, which agent, and whether it joins; a last time is infinite.
    used_up, users
        When agents make the last pull of their horizons, in increasing order and up to infinity, and which agents.
    claim_steps
        How long a claim is open; infinite if it does not lapse.
    end
        The time of the last pull of all.
    hides
        Whether some arm has no sharer at times.
    """

    pace: Floats
    start: Floats
    makes: Ints
    horizons: Ints
    delay_kind: Ints
    delay_of: Ints
    delay_steps: Floats
    class_of: Ints
    class_pace: Floats
    class_start: Floats
    class_makes: Ints
    class_sizes: Ints
    rows: Ints
    gaps: Floats
    phase_starts: Floats
    arrivals: Floats
    arrives: Ints
    joins: NDArray[np.bool_]
    used_up: Floats
    users: Ints
    claim_steps: float
    end: float
    hides: bool


def uneven_game_table(game: Game) -> GameTable:
    """Lay out an uneven game for kernels: with the rewards of all rows, and the longest horizon, which rules take."""
    rows = reward_rows(game)
    return game_table(game)._replace(
        horizon=game.longest,
        two_log=2 * math.log(game.longest),
        rewards=RewardTable(*reward_table([arm for row in rows for arm in row])),  # one type, so compiled once
    )


def uneven_table(game: Game) -> UnevenTable:
    """Lay out what makes a game uneven; nothing in it may be left to draw."""
    traits = [game.traits_of(agent) for agent in range(game.agents)]
    makes = [one.pulls(game.horizon) for one in traits]
    classes: dict[tuple[float, float, int], int] = {}
    keys = [(one.pace, one.joins - 1.0, made) for one, made in zip(traits, makes, strict=True)]
    class_of = np.array([classes.setdefault(key, len(classes)) for key in keys], np.int64)

    lasts = [one.time_of(made) if made else 0.0 for one, made in zip(traits, makes, strict=True)]
    users = [agent for agent in range(game.agents) if makes[agent] == game.horizon_of(agent)]
    users.sort(key=lambda agent: lasts[agent])
    arrivals = [(one.joins - 1.0, True, agent) for agent, one in enumerate(traits)]
    arrivals += [(one.leaves - 1.0, False, agent) for agent, one in enumerate(traits) if one.leaves is not None]
    arrivals = [*sorted(arrivals), (math.inf, False, 0)]
    rows = reward_rows(game)
    return UnevenTable(
        np.array([one.pace for one in traits]),
        np.array([one.joins - 1.0 for one in traits]),
        np.array(makes, np.int64),
        np.array([game.horizon_of(agent) for agent in range(game.agents)], np.int64),
        np.array([KINDS.index(one.late.kind) for one in traits], np.int64),
        np.array([OF.index(one.late.of) for one in traits], np.int64),
        np.array([one.late.steps for one in traits]),
        class_of,
        np.array([pace for pace, _, _ in classes]),
        np.array([start for _, start, _ in classes]),
        np.array([made for _, _, made in classes], np.int64),
        np.bincount(class_of).astype(np.int64),
        row_numbers(game),
        np.array([max(arm.mean for arm in row) - arm.mean for row in rows for arm in row]),
        np.array([*(step - 1.0 for step in game.phases), math.inf]),
        np.array([time for time, _, _ in arrivals]),
        np.array([agent for _, _, agent in arrivals], np.int64),
        np.array([joins for _, joins, _ in arrivals], np.bool_),
        np.array([*(lasts[agent] for agent in users), math.inf]),
        np.array([*users, 0], np.int64),
        math.inf if game.claim_steps is None else float(game.claim_steps),
        game.end,
        not always_shared(game),
    )


def can_jump(table: UnevenTable) -> bool:
    """Whether pulls can be counted by arithmetic: no private records, and pulls of an agent at distinct times."""
    steps = 1 / table.class_pace
    return not table.hides and bool(np.all(steps > 64 * math.ulp(table.end + 1)))


def new_uneven(game: GameTable, table: UnevenTable) -> Uneven:
    """Make room for one run."""
    phases, entries = len(table.rows), len(game.shared)
    return Uneven(
        np.zeros((phases, entries), np.int64),
        np.zeros((phases, game.arms, game.agents), np.int64),
        np.zeros(entries, np.int64),
        np.zeros(entries),
    )

"""Tallies: what happened in one run, and the arrays that kernels read and fill."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.arms import RewardTable, reward_table
from partage.compiled import inner
from partage.game import Game
from partage.sharing import Sharing

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tally:
    """What happened in one run.

    Attributes
    ----------
    explore, commit
        Explore and commit pulls, by agent and arm (the paper's N^e and N^c). Private pulls count as commits.
    broadcasts, sums
        The public record at the end: broadcasts of each arm (the paper's N_i(T)) and the sum of their rewards.
    active
        Which arms were still active (the paper's A(T)).
    eliminated_step, eliminated_agent
        Step (1 to T) and agent (from 0) of the broadcast that eliminated the arm; -1 if none did.
    """

    explore: Ints
    commit: Ints
    broadcasts: Ints
    sums: Floats
    active: NDArray[np.bool_]
    eliminated_step: Ints
    eliminated_agent: Ints

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and all(
            np.array_equal(mine, getattr(other, name)) for name, mine in vars(self).items()
        )

    __hash__ = None  # type: ignore[assignment]


class GameTable(NamedTuple):
    """A game as arrays. Agent m shares the arms `shared[starts[m]:starts[m + 1]]`: its entries of the sharing."""

    agents: int
    arms: int
    horizon: int
    two_log: float
    rewards: RewardTable
    gaps: Floats
    starts: Ints
    shared: NDArray[np.int32]
    public: NDArray[np.bool_]
    shuffled: bool


def game_table(game: Game) -> GameTable:
    """Lay out a game in which nothing is left to draw (see `Game.drawn`)."""
    sharing = game.sharing
    assert isinstance(sharing, Sharing)
    return GameTable(
        game.agents,
        len(game.arms),
        game.horizon,
        2 * math.log(game.horizon),
        reward_table(game.fixed_arms()),
        game.gaps,
        sharing.starts,
        sharing.shared,
        sharing.sharers() > 0,
        sharing.shuffled,
    )


class Outcome(NamedTuple):
    """What a kernel writes about one run.

    Explore pulls are stored by entry of the sharing. Commit pulls are stored in rows: row r holds the commits of each
    agent on arm `led[r]`. Only arms that led were ever committed to, so only `rows[0]` rows are in use.
    """

    counts: Ints
    sums: Floats
    active: NDArray[np.bool_]
    eliminated_step: Ints
    eliminated_agent: Ints
    explore: Ints
    led: Ints
    rows: Ints
    commit: Ints


def new_outcome(game: GameTable) -> Outcome:
    """Make room for one run. Kernels may fill it again and again."""
    arms = game.arms
    return Outcome(
        np.zeros(arms, np.int64),
        np.zeros(arms),
        np.zeros(arms, np.bool_),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(len(game.shared), np.int64),
        np.zeros(arms, np.int64),
        np.zeros(1, np.int64),
        np.empty((arms, game.agents + 1), np.int64),  # a row takes no memory until it is used
    )


@inner
def clear(public, outcome):
    """Make an outcome ready for the next run."""
    for arm in range(len(public)):
        outcome.counts[arm], outcome.sums[arm], outcome.active[arm] = 0, 0.0, public[arm]
        outcome.eliminated_step[arm], outcome.eliminated_agent[arm] = -1, -1
    for entry in range(len(outcome.explore)):
        outcome.explore[entry] = 0
    outcome.rows[0] = 0


@inner
def all_rows(outcome):
    """Give every arm a row of commits: row i is arm i."""
    rows, width = outcome.commit.shape
    for row in range(rows):
        outcome.led[row] = row
        for agent in range(width):
            outcome.commit[row, agent] = 0
    outcome.rows[0] = rows


def tally_of(game: GameTable, outcome: Outcome) -> Tally:
    """Return an outcome by agent and arm."""
    explore = np.zeros((game.agents, game.arms), np.int64)
    owner = np.repeat(np.arange(game.agents), np.diff(game.starts))
    explore[owner, game.shared] = outcome.explore
    commit = np.zeros((game.agents, game.arms), np.int64)
    rows = outcome.rows[0]
    commit[:, outcome.led[:rows]] = outcome.commit[:rows, : game.agents].T
    return Tally(
        explore,
        commit,
        outcome.counts.copy(),
        outcome.sums.copy(),
        outcome.active.copy(),
        outcome.eliminated_step.copy(),
        outcome.eliminated_agent.copy(),
    )


def outcome_of(game: GameTable, tally: Tally) -> Outcome:
    """Return a tally in the form that kernels write."""
    owner = np.repeat(np.arange(game.agents), np.diff(game.starts))
    commit = np.zeros((game.arms, game.agents + 1), np.int64)
    commit[:, :-1] = tally.commit.T
    return Outcome(
        tally.broadcasts,
        tally.sums,
        tally.active,
        tally.eliminated_step,
        tally.eliminated_agent,
        tally.explore[owner, game.shared],
        np.arange(game.arms),
        np.array([game.arms]),
        commit,
    )

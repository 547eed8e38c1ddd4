"""Tallies: what happened in one run, and the arrays that kernels read and fill."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.arms import Arm, RewardTable, reward_table
from partage.compiled import inner
from partage.game import Game
from partage.sharing import Sharing
from partage.traits import PAPERS

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
    explore_by_phase, commit_by_phase
        Explore and commit pulls by phase of the game, agent and arm; None for the paper's game, which has one phase.
    told, told_sums
        Explore pulls whose reward was told, and the sums of those rewards, by agent and arm; None for the paper's
        game, in which all are told.
    effects
        Each arm's estimated effect less the leader's, where the rule compares arms within members, nan if it was not
        compared; otherwise None.
    """

    explore: Ints
    commit: Ints
    broadcasts: Ints
    sums: Floats
    active: NDArray[np.bool_]
    eliminated_step: Ints
    eliminated_agent: Ints
    explore_by_phase: Ints | None = None
    commit_by_phase: Ints | None = None
    told: Ints | None = None
    told_sums: Floats | None = None
    effects: Floats | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and all(
            _same(mine, getattr(other, name)) for name, mine in vars(self).items()
        )

    __hash__ = None  # type: ignore[assignment]


def _same(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    """Whether two arrays are equal; nan equals nan."""
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def phase_at(game: Game, time: float) -> int:
    """Return the phase of the game at this time: a change at step s counts for pulls after time s - 1."""
    return bisect_left(game.phases, time, key=lambda step: step - 1) - 1


def always_shared(game: Game) -> bool:
    """Whether every arm has a sharer at every pull of the game: nobody is left to a private record of an arm."""
    sharing = game.sharing
    assert isinstance(sharing, Sharing)
    if game.traits is None:
        return bool(np.all(sharing.sharers()))
    stays: list[list[tuple[float, float]]] = [[] for _ in game.arms]
    for agent, one in enumerate(game.traits):
        for arm in sharing.of(agent):
            stays[arm].append((one.joins - 1, math.inf if one.leaves is None else one.leaves - 1))
    return all(_covers(sorted(of_arm), game.end) for of_arm in stays)


def _covers(stays: Sequence[tuple[float, float]], end: float) -> bool:
    """Whether these stays, sorted, leave no gap from time 0 to the end; none of them counts at its first moment."""
    until = 0.0
    for joins, leaves in stays:
        if joins <= until:
            until = max(until, leaves)
    return until >= end


def reward_rows(game: Game) -> list[list[Arm]]:
    """Return the distinct rows of arms that agents meet. The first is that of the game's own arms."""
    rows = [game.fixed_arms()]
    for phase in range(len(game.phases)):
        for traits in dict.fromkeys(game.traits or (PAPERS,)):
            row = game.arms_for(traits, phase)
            if row not in rows:
                rows.append(row)
    return rows


def row_numbers(game: Game) -> Ints:
    """Return which of `reward_rows` each agent meets, by phase and agent."""
    rows, numbers = reward_rows(game), np.zeros((len(game.phases), game.agents), np.int64)
    if game.uneven:
        for phase in range(len(game.phases)):
            of = {
                traits: rows.index(game.arms_for(traits, phase)) for traits in dict.fromkeys(game.traits or (PAPERS,))
            }
            numbers[phase] = [of[game.traits_of(agent)] for agent in range(game.agents)]
    return numbers


def gaps_by_phase(game: Game) -> Floats:
    """Return the gaps of every agent's own arms, by phase, agent and arm: to the arm that is best for it then."""
    means = np.array([[arm.mean for arm in row] for row in reward_rows(game)])
    gaps: Floats = means.max(axis=1, keepdims=True) - means
    return gaps[row_numbers(game)]


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


class Uneven(NamedTuple):
    """What else happened in one run of a game that is not the paper's.

    Attributes
    ----------
    explore
        Explore pulls by phase and entry of the sharing.
    commit
        Commit pulls by phase, arm and agent.
    told, told_sums
        Explore pulls whose reward was told, and the sums of those rewards, by entry of the sharing.
    """

    explore: Ints
    commit: Ints
    told: Ints
    told_sums: Floats


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


def tally_of(game: GameTable, outcome: Outcome, uneven: Uneven | None = None) -> Tally:
    """Return an outcome by agent and arm."""
    commit = np.zeros((game.agents, game.arms), np.int64)
    rows = outcome.rows[0]
    commit[:, outcome.led[:rows]] = outcome.commit[:rows, : game.agents].T
    more: tuple[Any, ...] = ()
    if uneven is not None:
        explore = np.stack([_by_agent(game, row) for row in uneven.explore])
        told = _by_agent(game, uneven.told), _by_agent(game, uneven.told_sums)
        more = explore, uneven.commit.transpose(0, 2, 1).copy(), *told
    return Tally(
        _by_agent(game, outcome.explore),
        commit,
        outcome.counts.copy(),
        outcome.sums.copy(),
        outcome.active.copy(),
        outcome.eliminated_step.copy(),
        outcome.eliminated_agent.copy(),
        *more,
    )


def outcome_of(game: GameTable, tally: Tally) -> Outcome:
    """Return a tally in the form that kernels write."""
    commit = np.zeros((game.arms, game.agents + 1), np.int64)
    commit[:, :-1] = tally.commit.T
    return Outcome(
        tally.broadcasts,
        tally.sums,
        tally.active,
        tally.eliminated_step,
        tally.eliminated_agent,
        tally.explore[_owners(game), game.shared],
        np.arange(game.arms),
        np.array([game.arms]),
        commit,
    )


def uneven_of(game: GameTable, tally: Tally) -> Uneven | None:
    """Return the rest of a tally in the form that kernels write; None for the paper's game."""
    if tally.told is None or tally.told_sums is None:
        return None
    assert tally.explore_by_phase is not None
    assert tally.commit_by_phase is not None
    owners = _owners(game)
    return Uneven(
        tally.explore_by_phase[:, owners, game.shared],
        tally.commit_by_phase.transpose(0, 2, 1).copy(),
        tally.told[owners, game.shared],
        tally.told_sums[owners, game.shared],
    )


def _owners(game: GameTable) -> Ints:
    """Return the agent of each entry of the sharing."""
    return np.repeat(np.arange(game.agents), np.diff(game.starts))


def _by_agent(game: GameTable, by_entry: NDArray[Any]) -> NDArray[Any]:
    """Return what is stored by entry of the sharing by agent and arm."""
    table = np.zeros((game.agents, game.arms), by_entry.dtype)
    table[_owners(game), game.shared] = by_entry
    return table

"""Folding: turn the outcome of a run into its figures of merit, so that the outcome need not be kept."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.board import Board, Record
from partage.compiled import compiled
from partage.engine.tally import GameTable, Outcome
from partage.settle import EQUAL_SHARE, EQUAL_SHARE_EXPECTED, NONE, Settlement
from partage.settle.core import common_charge, equal_charge, finished, rates_and_ceilings, risks_of

FIGURES = (
    "overall_regret",
    "average_regret",
    "max_individual_regret",
    "max_incentive_regret",
    "explore_regret",
    "commit_regret",
    "controller_profit",
    "broadcasts",
)
SETTLED = ("viable", "finished", "uncovered")  # of an equal-share settlement; their columns follow `FIGURES`
_VIABLE, _FINISHED, _UNCOVERED = (len(FIGURES) + place for place in range(len(SETTLED)))


class Folded(NamedTuple):
    """What is kept of some runs: one row per run, and sums over runs for each agent."""

    figures: NDArray[np.float64]
    broadcasts: NDArray[np.int64]
    eliminated_step: NDArray[np.int64]
    eliminated_agent: NDArray[np.int64]
    curves: NDArray[np.float64]
    regret: NDArray[np.float64]
    regret_squares: NDArray[np.float64]
    incentive: NDArray[np.float64]
    incentive_squares: NDArray[np.float64]


def new_folded(runs: int, agents: int, arms: int, checkpoints: int) -> Folded:
    """Return empty arrays for some runs."""
    return Folded(
        np.full((runs, len(FIGURES) + len(SETTLED)), np.nan),
        np.zeros((runs, arms), np.int64),
        np.full((runs, arms), -1),
        np.full((runs, arms), -1),
        np.zeros((runs, checkpoints)),
        *(np.zeros(agents) for _ in range(4)),
    )


def join(parts: list[Folded]) -> Folded:
    """Put the runs of several parts one after the other. The order of the parts affects the last bit of sums."""
    rows = [np.concatenate([part[i] for part in parts]) for i in range(5)]
    sums = [np.sum([part[i] for part in parts], axis=0) for i in range(5, 9)]
    return Folded(*rows, *sums)


def fold(game: GameTable, outcome: Outcome, settlement: Settlement, row: int, folded: Folded) -> None:
    """Settle one run and write its figures of merit into row `row`."""
    rates, risks, charge, ceiling = np.zeros(game.arms), np.zeros(game.arms), 0.0, 0.0
    if settlement.kind != NONE:
        board = _board(game, outcome)
        found, ceilings = rates_and_ceilings(settlement, board, [game.horizon])
        rates = np.array(found)
        if ceilings is None:
            charge = common_charge(settlement, board, outcome.counts.tolist(), None) or 0.0
        else:
            (ceiling,) = ceilings
            folded.figures[row, _FINISHED] = finished(board)
        if settlement.kind == EQUAL_SHARE:
            risks = np.array(risks_of(board))
    _fold(game, outcome, settlement, rates, risks, charge, ceiling, row, folded)


def _board(game: GameTable, outcome: Outcome) -> Board:
    """Return the board at the end of a run."""
    board = Board(game.horizon, range(game.arms), game.public.tolist())
    board.record = Record(outcome.counts.tolist(), outcome.sums.tolist())
    board.active = outcome.active.tolist()
    return board


@compiled
def _fold(game, outcome, settlement, rates, risks, charge, ceiling, row, folded):
    """Add up the pulls of each agent, and write the figures of merit into row `row`."""
    agents, arms = game.agents, game.arms
    counts, gaps = outcome.counts, game.gaps
    regret, compensation, uncovered = np.zeros(agents), np.zeros(agents), np.zeros(agents)
    explored = 0.0
    for agent in range(agents):
        for entry in range(game.starts[agent], game.starts[agent + 1]):
            pulls, arm = outcome.explore[entry], game.shared[entry]
            explored += gaps[arm] * pulls
            regret[agent] += gaps[arm] * pulls
            compensation[agent] += rates[arm] * pulls
            uncovered[agent] += risks[arm] * pulls
    for row_of_commits in range(outcome.rows[0]):
        arm = outcome.led[row_of_commits]
        for agent in range(agents):
            pulls = outcome.commit[row_of_commits, agent]
            regret[agent] += gaps[arm] * pulls
            compensation[agent] += rates[arm] * pulls
            uncovered[agent] += risks[arm] * pulls

    compensated, most_uncovered = 0.0, 0.0
    for agent in range(agents):
        compensated += compensation[agent]
        most_uncovered = max(most_uncovered, uncovered[agent])
    if settlement.kind == EQUAL_SHARE or settlement.kind == EQUAL_SHARE_EXPECTED:
        bill = (1.0 + settlement.fee) * compensated
        charge = equal_charge(bill, agents, ceiling)
        folded.figures[row, _VIABLE] = bill <= agents * ceiling
        if settlement.kind == EQUAL_SHARE:
            folded.figures[row, _UNCOVERED] = most_uncovered

    overall, highest, highest_incentive = 0.0, -np.inf, -np.inf
    for agent in range(agents):
        incentive = regret[agent] - compensation[agent] + charge
        overall += regret[agent]
        highest = max(highest, regret[agent])
        highest_incentive = max(highest_incentive, incentive)
        folded.regret[agent] += regret[agent]
        folded.regret_squares[agent] += regret[agent] ** 2
        folded.incentive[agent] += incentive
        folded.incentive_squares[agent] += incentive**2

    settled, figures = settlement.kind != NONE, folded.figures
    figures[row, 0] = overall
    figures[row, 1] = overall / agents
    figures[row, 2] = highest
    figures[row, 3] = highest_incentive if settled else np.nan
    figures[row, 4] = explored
    figures[row, 5] = overall - explored
    figures[row, 6] = agents * charge - compensated if settled else np.nan
    figures[row, 7] = 0.0
    for arm in range(arms):
        figures[row, 7] += counts[arm]
        folded.broadcasts[row, arm] = counts[arm]
        folded.eliminated_step[row, arm] = outcome.eliminated_step[arm]
        folded.eliminated_agent[row, arm] = outcome.eliminated_agent[arm]

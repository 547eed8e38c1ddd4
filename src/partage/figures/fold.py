"""Folding: a run's tally becomes its figures of merit, and the tally is let go."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from partage.settle import PAPER
from partage.settle.paper import paper_charge, paper_rates

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
_PAPER = PAPER


class Folded(NamedTuple):
    """What is kept of some runs: a row a run, and sums over the runs by agent."""

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
    """Make room for some runs."""
    return Folded(
        np.full((runs, len(FIGURES)), np.nan),
        np.zeros((runs, arms), np.int64),
        np.full((runs, arms), -1),
        np.full((runs, arms), -1),
        np.zeros((runs, checkpoints)),
        *(np.zeros(agents) for _ in range(4)),
    )


def join(parts: list[Folded]) -> Folded:
    """Put the runs of several parts one after the other. The order of the parts decides the last bit of sums."""
    rows = [np.concatenate([part[i] for part in parts]) for i in range(5)]
    sums = [np.sum([part[i] for part in parts], axis=0) for i in range(5, 9)]
    return Folded(*rows, *sums)


@njit(cache=True, nogil=True)
def fold(game, outcome, settlement, row, folded):
    """Settle one run and write its figures of merit into row `row`."""
    agents, arms = game.agents, game.arms
    counts, gaps = outcome.counts, game.gaps
    settled = settlement.kind == _PAPER
    rates = np.zeros(arms)
    charge = 0.0
    if settled:
        log_horizon = game.two_log / 2.0
        paper_rates(counts, outcome.active, game.public, log_horizon, settlement.factor, rates)
        charge = paper_charge(counts, outcome.active, game.public, log_horizon, settlement.factor)

    regret, compensation = np.zeros(agents), np.zeros(agents)
    explored = 0.0
    for agent in range(agents):
        for entry in range(game.starts[agent], game.starts[agent + 1]):
            pulls, arm = outcome.explore[entry], game.shared[entry]
            explored += gaps[arm] * pulls
            regret[agent] += gaps[arm] * pulls
            compensation[agent] += rates[arm] * pulls
    for row_of_commits in range(outcome.rows[0]):
        arm = outcome.led[row_of_commits]
        for agent in range(agents):
            pulls = outcome.commit[row_of_commits, agent]
            regret[agent] += gaps[arm] * pulls
            compensation[agent] += rates[arm] * pulls

    overall, compensated, highest, highest_incentive = 0.0, 0.0, -np.inf, -np.inf
    for agent in range(agents):
        incentive = regret[agent] - compensation[agent] + charge
        overall += regret[agent]
        compensated += compensation[agent]
        highest = max(highest, regret[agent])
        highest_incentive = max(highest_incentive, incentive)
        folded.regret[agent] += regret[agent]
        folded.regret_squares[agent] += regret[agent] ** 2
        folded.incentive[agent] += incentive
        folded.incentive_squares[agent] += incentive**2

    figures = folded.figures[row]
    figures[0] = overall
    figures[1] = overall / agents
    figures[2] = highest
    figures[3] = highest_incentive if settled else np.nan
    figures[4] = explored
    figures[5] = overall - explored
    figures[6] = agents * charge - compensated if settled else np.nan
    figures[7] = np.sum(counts)
    folded.broadcasts[row] = counts
    folded.eliminated_step[row] = outcome.eliminated_step
    folded.eliminated_agent[row] = outcome.eliminated_agent

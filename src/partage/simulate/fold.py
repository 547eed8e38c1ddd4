"""Folding: a run's tally becomes its figures of merit, and the tally is let go."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.compiled import compiled
from partage.settle import EQUAL_SHARE, EQUAL_SHARE_EXPECTED, NONE, PAPER
from partage.settle.equal_share import ceiling, gaps_of
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
SETTLED = ("viable", "finished", "uncovered")  # of an equal-share settlement; they stand behind `FIGURES`


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
        np.full((runs, len(FIGURES) + len(SETTLED)), np.nan),
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


@compiled
def fold(game, outcome, settlement, row, folded):
    """Settle one run and write its figures of merit into row `row`."""
    agents, arms = game.agents, game.arms
    counts, gaps = outcome.counts, game.gaps
    kind = settlement.kind
    equal_share = kind == EQUAL_SHARE or kind == EQUAL_SHARE_EXPECTED
    rates, left, lower = np.zeros(arms), np.zeros(arms), np.zeros(arms)
    log_horizon, factor = game.two_log / 2.0, settlement.factor
    charge, most, arms_left = 0.0, 0.0, 0
    if kind == PAPER:
        paper_rates(counts, outcome.active, game.public, log_horizon, factor, rates)
        charge = paper_charge(counts, outcome.active, game.public, log_horizon, factor)
    elif equal_share:
        expected = kind == EQUAL_SHARE_EXPECTED
        best = gaps_of(counts, outcome.sums, outcome.active, game.public, game.horizon, expected, lower, rates)
        for arm in range(arms):
            if outcome.active[arm]:  # a pull of an arm that is left is never paid
                left[arm], rates[arm] = rates[arm], 0.0
                arms_left += game.public[arm]
        most = ceiling(best, lower, rates, game.two_log, game.horizon)

    regret, compensation, uncovered = np.zeros(agents), np.zeros(agents), np.zeros(agents)
    explored = 0.0
    for agent in range(agents):
        for entry in range(game.starts[agent], game.starts[agent + 1]):
            pulls, arm = outcome.explore[entry], game.shared[entry]
            explored += gaps[arm] * pulls
            regret[agent] += gaps[arm] * pulls
            compensation[agent] += rates[arm] * pulls
            uncovered[agent] += left[arm] * pulls
    for row_of_commits in range(outcome.rows[0]):
        arm = outcome.led[row_of_commits]
        for agent in range(agents):
            pulls = outcome.commit[row_of_commits, agent]
            regret[agent] += gaps[arm] * pulls
            compensation[agent] += rates[arm] * pulls
            uncovered[agent] += left[arm] * pulls

    compensated, most_uncovered = 0.0, 0.0
    for agent in range(agents):
        compensated += compensation[agent]
        most_uncovered = max(most_uncovered, uncovered[agent])
    if equal_share:
        bill = (1.0 + settlement.fee) * compensated
        charge = min(bill / agents, most)
        folded.figures[row, len(FIGURES)] = bill <= agents * most
        folded.figures[row, len(FIGURES) + 1] = arms_left <= 1
        if kind == EQUAL_SHARE:
            folded.figures[row, len(FIGURES) + 2] = most_uncovered

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

    figures = folded.figures
    figures[row, 0] = overall
    figures[row, 1] = overall / agents
    figures[row, 2] = highest
    figures[row, 3] = highest_incentive if kind != NONE else np.nan
    figures[row, 4] = explored
    figures[row, 5] = overall - explored
    figures[row, 6] = agents * charge - compensated if kind != NONE else np.nan
    figures[row, 7] = 0.0
    for arm in range(arms):
        figures[row, 7] += counts[arm]
        folded.broadcasts[row, arm] = counts[arm]
        folded.eliminated_step[row, arm] = outcome.eliminated_step[arm]
        folded.eliminated_agent[row, arm] = outcome.eliminated_agent[arm]

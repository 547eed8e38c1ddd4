"""Folding: turn the outcome of a run into its figures of merit, so that the outcome need not be stored."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.board import Board, Record
from partage.compiled import compiled
from partage.engine.tally import Floats, GameTable, Outcome
from partage.settle import DUES, EQUAL_SHARE, EQUAL_SHARE_EXPECTED, NONE, POOL, Settlement
from partage.settle.core import common_charge, equal_charge, finished, rates_and_ceilings, risks_of
from partage.simulate.disagreement import COLUMNS as DISAGREEMENT

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
SETTLED = ("viable", "finished", "uncovered", "scale", "charge", "compensation", "bill")
COLUMNS = (*FIGURES, *SETTLED, "out", "compared")  # the columns of `Folded.figures`
_OVERALL, _AVERAGE, _HIGHEST, _HIGHEST_INCENTIVE, _EXPLORE, _COMMIT, _PROFIT, _BROADCASTS = range(len(FIGURES))
_VIABLE, _FINISHED, _UNCOVERED, _SCALE, _CHARGE, _COMPENSATION, _BILL = range(
    len(FIGURES), len(FIGURES) + len(SETTLED)
)


class Folded(NamedTuple):
    """The figures of some runs: one row per run, and sums over runs for each agent.

    A figure that does not apply is nan: those of a settlement where there is none; in the paper's game, also `out`,
    the explore pulls whose reward was never told, and `compared`, the arms that several agents told. `disagreements`
    has a row for each disagreement that the reports of a run show (`partage.simulate.disagreement`).
    """

    figures: NDArray[np.float64]
    broadcasts: NDArray[np.int64]
    eliminated_step: NDArray[np.int64]
    eliminated_agent: NDArray[np.int64]
    curves: NDArray[np.float64]
    regret: NDArray[np.float64]
    regret_squares: NDArray[np.float64]
    incentive: NDArray[np.float64]
    incentive_squares: NDArray[np.float64]
    disagreements: NDArray[np.float64]


def new_folded(runs: int, agents: int, arms: int, checkpoints: int) -> Folded:
    """Return empty arrays for some runs."""
    empty = (
        np.full((runs, len(COLUMNS)), np.nan),
        np.zeros((runs, arms), np.int64),
        np.full((runs, arms), -1),
        np.full((runs, arms), -1),
        np.zeros((runs, checkpoints)),
        *(np.zeros(agents) for _ in range(4)),
        np.zeros((0, len(DISAGREEMENT))),
    )
    return Folded._make(empty)


def join(parts: list[Folded]) -> Folded:
    """Put the runs of several parts one after the other. The order of the parts affects the last bit of sums."""
    if len(parts) == 1:  # of millions of agents, perhaps
        return parts[0]
    rows = [np.concatenate([part[i] for part in parts]) for i in (*range(5), 9)]
    sums = [np.sum([part[i] for part in parts], axis=0) for i in range(5, 9)]
    return Folded._make([*rows[:5], *sums, rows[5]])


def fold(
    game: GameTable,
    outcome: Outcome,
    settlement: Settlement,
    row: int,
    folded: Folded,
    price: float = 0.0,
    commits_paid: bool = True,
    effects: Floats | None = None,
) -> None:
    """Settle one run and write its figures of merit into row `row`.

    Each broadcast costs its agent `price`, which an equal share compensates. Commits are not compensated unless
    `commits_paid`: where agents commit by their own rewards, nobody else knows what they pulled. A pool and dues
    never pay for commits. `effects` are those that the rule estimated, if it compares arms within members.
    """
    rates = risks = np.zeros(game.arms)
    charge, ceiling, figures = 0.0, math.inf, folded.figures[row]
    if settlement.kind != NONE:
        board = _board(game, outcome, effects)
        found, ceilings = rates_and_ceilings(settlement, board, [game.horizon], many=True)
        rates = np.array(found)
        if ceilings is not None:
            (ceiling,) = ceilings
        elif not settlement.is_prepaid:
            charge = common_charge(settlement, board, board.counts, None) or 0.0
        if ceilings is not None or settlement.is_prepaid:
            figures[_FINISHED] = finished(settlement, board)
        if settlement.kind == EQUAL_SHARE:
            risks = np.array(risks_of(settlement, board))
    commits_paid = commits_paid and settlement.pays_commits
    underwriting = math.inf if settlement.underwriting is None else settlement.underwriting
    _fold(
        (game.gaps, game.starts, game.shared),
        (outcome.explore, outcome.led, outcome.rows, outcome.commit, outcome.counts),
        (settlement.kind, settlement.fee, rates, risks, charge, ceiling, price, commits_paid),
        (settlement.prepaid, underwriting),
        figures,
        (folded.regret, folded.regret_squares, folded.incentive, folded.incentive_squares),
    )
    folded.broadcasts[row] = outcome.counts
    folded.eliminated_step[row] = outcome.eliminated_step
    folded.eliminated_agent[row] = outcome.eliminated_agent


def _board(game: GameTable, outcome: Outcome, effects: Floats | None) -> Board:
    """Return the board at the end of a run."""
    board = Board(game.horizon, range(game.arms), game.public.tolist())
    board.record = Record(outcome.counts.tolist(), outcome.sums.tolist())
    board.active = outcome.active.tolist()
    board.state = with_effects(effects)
    return board


def with_effects(effects: Floats | None) -> Any:
    """Return the state of a board on which the rule estimated these effects; None if it estimated none."""
    return None if effects is None else {"effects": [None if math.isnan(one) else one for one in effects.tolist()]}


@compiled
def _fold(game, outcome, settlement, limits, figures, sums):
    """Add up what each agent lost, received and paid. Unused array arguments would cost time, so it has none."""
    gaps, starts, shared = game
    explore, led, rows, commit, counts = outcome
    kind, fee, rates, risks, charge, ceiling, price, commits_paid = settlement
    prepaid, underwriting = limits
    paid = price if kind == EQUAL_SHARE or kind == EQUAL_SHARE_EXPECTED else 0.0
    agents, risky = len(starts) - 1, kind == EQUAL_SHARE and risks.any()
    regret, compensation, uncovered = np.zeros(agents), np.zeros(agents), np.zeros(agents if risky else 0)
    explored = 0.0
    for agent in range(agents):
        for entry in range(starts[agent], starts[agent + 1]):
            pulls, arm = explore[entry], shared[entry]
            explored += (gaps[arm] + price) * pulls
            regret[agent] += (gaps[arm] + price) * pulls
            compensation[agent] += (rates[arm] + paid) * pulls
            if risky:
                uncovered[agent] += risks[arm] * pulls
    for row in range(rows[0]):
        arm = led[row]
        for agent in range(agents):
            pulls = commit[row, agent]
            regret[agent] += gaps[arm] * pulls
            if commits_paid:
                compensation[agent] += rates[arm] * pulls
            if risky:
                uncovered[agent] += risks[arm] * pulls

    compensated, most_uncovered = 0.0, 0.0
    for agent in range(agents):
        compensated += compensation[agent]
    for agent in range(len(uncovered)):
        most_uncovered = max(most_uncovered, uncovered[agent])
    if kind == EQUAL_SHARE or kind == EQUAL_SHARE_EXPECTED:
        bill = (1.0 + fee) * compensated
        charge = equal_charge(bill, agents, ceiling)
        figures[_VIABLE] = bill <= agents * ceiling
        if kind == EQUAL_SHARE:
            figures[_UNCOVERED] = most_uncovered

    # What cannot be paid is not: the same formulas as in `partage.settle.pool`, in floats.
    in_full, earned, funds, scale = compensated, compensated, agents * charge + underwriting, 1.0
    if kind == POOL:
        earned, funds = (1.0 + fee) * compensated, agents * prepaid + underwriting
    if kind != DUES and earned > funds:
        scale = funds / earned
    if kind == POOL:
        charge = min(prepaid, scale * earned / agents)
    elif kind == DUES:
        charge = prepaid
    compensated = 0.0
    for agent in range(agents):
        compensation[agent] *= scale
        if kind == DUES:
            compensation[agent] = min(prepaid, compensation[agent])
        compensated += compensation[agent]
    if kind == DUES and earned > compensated:
        scale = compensated / earned
    if kind == POOL or kind == DUES:
        figures[_VIABLE] = scale == 1.0

    total_regret, regret_squares, total_incentive, incentive_squares = sums
    overall, highest, highest_incentive = 0.0, -np.inf, -np.inf
    for agent in range(agents):
        incentive = regret[agent] - compensation[agent] + charge
        overall += regret[agent]
        highest = max(highest, regret[agent])
        highest_incentive = max(highest_incentive, incentive)
        total_regret[agent] += regret[agent]
        regret_squares[agent] += regret[agent] * regret[agent]
        total_incentive[agent] += incentive
        incentive_squares[agent] += incentive * incentive

    broadcasts = 0
    for arm in range(len(counts)):
        broadcasts += counts[arm]

    figures[_OVERALL] = overall
    figures[_AVERAGE] = overall / agents
    figures[_HIGHEST] = highest
    figures[_EXPLORE] = explored
    figures[_COMMIT] = overall - explored
    figures[_BROADCASTS] = broadcasts
    if kind != NONE:
        figures[_HIGHEST_INCENTIVE] = highest_incentive
        figures[_PROFIT] = agents * charge - compensated
        figures[_SCALE] = scale
        figures[_CHARGE] = charge
        figures[_COMPENSATION] = compensated
        figures[_BILL] = in_full

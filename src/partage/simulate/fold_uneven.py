"""Folding runs of games whose agents differ: each has gaps, a number of pulls and a ceiling of its own."""

import math
from typing import NamedTuple

import numpy as np

from partage.board import Board, Record
from partage.engine.run import Run
from partage.engine.tally import Floats, Ints, Tally
from partage.settle import DUES, EQUAL_SHARE, NONE, POOL, Settlement
from partage.settle.core import charge_of, common_charge, finished, rates_and_ceilings, risks_of, water_level
from partage.simulate.fold import COLUMNS, Folded, with_effects


class _Paid(NamedTuple):
    """What agents receive and pay, and the figures of the settlement."""

    compensation: Floats
    charges: Floats
    figures: dict[str, float]


def fold_uneven(
    run: Run, settlement: Settlement, row: int, folded: Folded, price: float = 0.0, commits_paid: bool = True
) -> None:
    """Settle one run and write its figures of merit into row `row`, as `partage.simulate.fold.fold` does.

    Settlements know what was told: an explore pull whose reward was not told costs its agent regret, and nobody
    compensates it. A broadcast costs `price` once it is told.
    """
    tally, gaps = run.tally(), run.own_gaps
    told, explore, commit = tally.told, tally.explore_by_phase, tally.commit_by_phase
    assert told is not None
    assert explore is not None
    assert commit is not None
    explored = (explore * gaps).sum(axis=(0, 2)) + price * told.sum(axis=1)
    regret = explored + (commit * gaps).sum(axis=(0, 2))
    paid = _settled(_board(run, tally), told, tally.commit, settlement, price, commits_paid)
    incentive = regret - paid.compensation + paid.charges

    figures = {
        "overall_regret": regret.sum(),
        "average_regret": regret.mean(),
        "max_individual_regret": regret.max(),
        "explore_regret": explored.sum(),
        "commit_regret": regret.sum() - explored.sum(),
        "broadcasts": tally.broadcasts.sum(),
        "out": tally.explore.sum() - told.sum(),
        "compared": np.count_nonzero((told > 0).sum(axis=0) > 1),
        **paid.figures,
    }
    if settlement.kind != NONE:
        figures["max_incentive_regret"] = incentive.max()
    for name, value in figures.items():
        folded.figures[row, COLUMNS.index(name)] = value
    folded.broadcasts[row] = tally.broadcasts
    folded.eliminated_step[row] = tally.eliminated_step
    folded.eliminated_agent[row] = tally.eliminated_agent
    folded.regret[:] += regret
    folded.regret_squares[:] += regret**2
    folded.incentive[:] += incentive
    folded.incentive_squares[:] += incentive**2


def _settled(
    board: Board, told: Ints, commit: Ints, settlement: Settlement, price: float, commits_paid: bool
) -> _Paid:
    """Return what everyone receives and pays: as `partage.settle.core.settle` does, with the price of broadcasts."""
    agents = len(told)
    if settlement.kind == NONE:
        return _Paid(np.zeros(agents), np.zeros(agents), {})
    figures: dict[str, float] = {}
    told_and_commits = told + commit
    rates, ceilings = rates_and_ceilings(settlement, board, told_and_commits.sum(axis=1).tolist(), many=True)
    paid_for = told_and_commits if commits_paid and settlement.pays_commits else told
    compensation = paid_for @ np.array(rates)
    if ceilings is not None:
        compensation += price * told.sum(axis=1)
    bill = float(compensation.sum())
    earned = (1.0 + settlement.fee) * bill

    scale, underwriting = 1.0, math.inf if settlement.underwriting is None else settlement.underwriting
    if settlement.kind == DUES:
        charges = np.full(agents, settlement.prepaid)
        compensation = np.minimum(settlement.prepaid, compensation)
        scale = float(compensation.sum()) / bill if compensation.sum() < bill else 1.0
    elif settlement.kind == POOL:
        funds = agents * settlement.prepaid + underwriting
        scale = funds / earned if earned > funds else 1.0
        charges = np.full(agents, min(settlement.prepaid, scale * earned / agents))
        compensation *= scale
    else:
        level = common_charge(settlement, board, board.counts, None) if ceilings is None else None
        if ceilings is not None:
            level = water_level(ceilings, earned)
            figures["viable"] = float(level is not None)
        charges = np.array([charge_of(level, ceiling) for ceiling in ceilings or [None] * agents])
        funds = float(charges.sum()) + underwriting
        scale = funds / bill if bill > funds else 1.0
        compensation *= scale

    if settlement.is_prepaid:
        figures["viable"] = float(scale == 1.0)
    if settlement.is_prepaid or ceilings is not None:
        figures["finished"] = float(finished(settlement, board))
    if settlement.kind == EQUAL_SHARE:
        figures["uncovered"] = float((told_and_commits @ np.array(risks_of(settlement, board))).max())
    compensated, charged = float(compensation.sum()), float(charges.sum())
    figures |= {"controller_profit": charged - compensated, "scale": scale, "charge": charged / agents}
    return _Paid(compensation, charges, figures | {"compensation": compensated, "bill": bill})


def _board(run: Run, tally: Tally) -> Board:
    """Return the board at the end of a run. Rules take the largest horizon for T, and so do settlements."""
    public = run.table.public & (tally.active | (tally.broadcasts > 0))  # not the arms whose sharers never joined
    board = Board(run.game.longest, range(run.table.arms), public.tolist())
    board.record = Record(tally.broadcasts.tolist(), tally.sums.tolist())
    board.active = tally.active.tolist()
    board.state = with_effects(tally.effects)
    return board

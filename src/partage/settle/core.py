"""The settlement of one game in units of reward, for simulation, audit and live play alike.

It needs two inputs: the board at the end, and how often each agent pulled each arm.

- Each pull of an eliminated arm is compensated at the arm's rate (`rates_of`). Pulls of the arms left are not.
- Every agent pays the same charge (`common_charge`), but in an equal-share settlement never more than its ceiling: a
  lower bound on what playing 2-UCB alone would have cost it (`ceilings_of`).
- The settlement is finished if at most one arm is left (`finished`). Otherwise agents may have lost something on the
  arms left that nobody compensates (`uncovered`).

`settle` puts these parts together. A member of a live collaboration can compute them too: with the total pulls of
each arm and everybody's ceilings, it can check its own account without seeing the pulls of the others.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from partage.board import Board
from partage.compiled import shared
from partage.errors import MissingExtra
from partage.settle import EQUAL_SHARE_EXPECTED, NONE, PAPER, Settlement
from partage.settle.equal_share import gaps_of
from partage.settle.paper import paper_charge, paper_rates


class Settled(NamedTuple):
    """A settlement in units of reward.

    Attributes
    ----------
    rates
        The compensation for one pull of each arm.
    common_charge
        What every agent pays, up to its ceiling. None if nothing is charged, and if every agent pays its ceiling.
    ceilings
        The most that each agent may pay. None unless the settlement is an equal share.
    finished
        Whether at most one arm is left. Otherwise individual rationality is not claimed.
    uncovered
        The most that an agent may have lost on the arms left, which nobody compensates: the largest such amount
        over all agents. 0 if the settlement is finished.
    viable
        Whether the charges cover the compensations and the fee.
    """

    rates: tuple[float, ...]
    common_charge: float | None
    ceilings: tuple[float, ...] | None
    finished: bool
    uncovered: float
    viable: bool


class Measured(NamedTuple):
    """The part of a settlement that is stated once a collaboration is closed: the common charge and the ceilings."""

    common_charge: float | None
    ceilings: tuple[float, ...] | None


def settle(
    settlement: Settlement, board: Board, pulls: Sequence[Sequence[int]], measured: Measured | None = None
) -> Settled:
    """Compute a settlement.

    Parameters
    ----------
    settlement, board
        Which settlement, and the board at the end.
    pulls
        One row per agent, one column per arm: explore pulls that were reported, and commit pulls.
    measured
        The common charge and ceilings, if they are known already. Measuring ceilings takes up to a second.
    """
    totals = [sum(row[arm] for row in pulls) for arm in range(board.arms)]
    if measured is None:
        rates, ceilings = rates_and_ceilings(settlement, board, [sum(row) for row in pulls])
        common = common_charge(settlement, board, totals, ceilings, rates)
    else:
        rates = rates_of(settlement, board)
        common, ceilings = measured
    charges_cover = (common or 0.0) * len(pulls) >= worth(rates, totals)
    return Settled(
        rates=rates,
        common_charge=common,
        ceilings=ceilings,
        finished=finished(board),
        uncovered=uncovered(board, pulls) if settlement.kind != NONE else 0.0,
        viable=charges_cover if ceilings is None else common is not None,
    )


# --- rates and ceilings ---------------------------------------------------------------------------------------


def rates_of(settlement: Settlement, board: Board) -> tuple[float, ...]:
    """Return the compensation for one pull of each arm: 0 for the arms left."""
    return _gaps_and_rates(settlement, board)[2]


def ceilings_of(settlement: Settlement, board: Board, steps: Sequence[int]) -> tuple[float, ...] | None:
    """Return the most that agents with these numbers of pulls may pay. None: there is no limit.

    Raises
    ------
    MissingExtra
        If the settlement has ceilings and numba, which measures them, is not installed.
    """
    return rates_and_ceilings(settlement, board, steps)[1]


def rates_and_ceilings(
    settlement: Settlement, board: Board, steps: Sequence[int]
) -> tuple[tuple[float, ...], tuple[float, ...] | None]:
    """Return `rates_of` and `ceilings_of`, which read the same gaps."""
    best, lower, rates = _gaps_and_rates(settlement, board)
    if not settlement.has_ceilings:
        return rates, None
    try:
        from partage.settle.ceiling import ceilings
    except ModuleNotFoundError as error:
        raise MissingExtra("Measuring ceilings", "server") from error
    return rates, tuple(ceilings(best, lower, rates, 2 * math.log(board.horizon), steps))


def worth(rates: Iterable[float], pulls: Iterable[int]) -> float:
    """Return the compensation for these pulls of each arm.

    The sum is rounded once, so the order of adding does not matter.
    """
    return math.fsum(rate * count for rate, count in zip(rates, pulls, strict=True))


def _gaps_and_rates(settlement: Settlement, board: Board) -> tuple[float, list[float], tuple[float, ...]]:
    """Return the leader's mean and the lower ends of the gaps, which matter to ceilings only, and the rates."""
    best, lower, rates = 0.0, [0.0] * board.arms, [0.0] * board.arms
    if settlement.kind == PAPER:
        log_horizon = math.log(board.horizon)
        paper_rates(board.counts, board.active, board.public, log_horizon, settlement.factor, rates)
    elif settlement.kind != NONE:
        record = board.counts, board.record.sums, board.active, board.public
        best = gaps_of(*record, board.horizon, settlement.kind == EQUAL_SHARE_EXPECTED, lower, rates)
        rates = [0.0 if board.active[arm] else rates[arm] for arm in range(board.arms)]
    return best, lower, tuple(rates)


# --- the charge -----------------------------------------------------------------------------------------------


def common_charge(
    settlement: Settlement,
    board: Board,
    totals: Iterable[int],
    ceilings: Sequence[float] | None,
    rates: Sequence[float] | None = None,
) -> float | None:
    """Return what every agent pays, up to its ceiling. None if nothing is charged, or everyone pays their ceiling.

    Parameters
    ----------
    settlement, board
        Which settlement, and the board at the end.
    totals
        The pulls of each arm, over all agents.
    ceilings
        Every agent's ceiling.
    rates
        The result of `rates_of`, if it is known already.
    """
    if settlement.kind == NONE:
        return None
    if settlement.kind == PAPER:
        log_horizon = math.log(board.horizon)
        return float(paper_charge(board.counts, board.active, board.public, log_horizon, settlement.factor))
    compensations = worth(rates_of(settlement, board) if rates is None else rates, totals)
    return water_level(ceilings or (), (1.0 + settlement.fee) * compensations)


def water_level(ceilings: Iterable[float], bill: float) -> float | None:
    """Return the x for which min(x, ceiling) sums to `bill`; None if all ceilings together are less.

    >>> water_level([1.0, 5.0, 9.0], 7.0)
    3.0
    """
    if bill <= 0:
        return 0.0
    rest, rising = Fraction(bill), sorted(ceilings)
    for place, ceiling in enumerate(rising):
        level = rest / (len(rising) - place)  # for the agents below their ceiling
        if level <= ceiling:
            return float(level)
        rest -= Fraction(ceiling)
    return None


@shared
def equal_charge(bill: float, agents: int, ceiling: float) -> float:
    """Return the `water_level` for agents with one ceiling in common, or the ceiling if all pay it."""
    return min(bill / agents, ceiling)


# --- the arms left --------------------------------------------------------------------------------------------


def arms_left(board: Board) -> list[int]:
    """Return the arms left: active and public."""
    return [arm for arm in board.actives() if board.public[arm]]


def finished(board: Board) -> bool:
    """Whether at most one arm is left."""
    return len(arms_left(board)) <= 1


def risks_of(board: Board) -> list[float]:
    """Return the most that one pull of each arm left may have lost; 0 for other arms, and if only one is left."""
    left, risks = arms_left(board), [0.0] * board.arms
    if len(left) > 1:
        ends = [1.0] * board.arms  # if none of them was broadcast, a pull may have lost everything
        if any(board.counts[arm] for arm in left):
            record = board.counts, board.record.sums, board.active, board.public
            gaps_of(*record, board.horizon, False, [0.0] * board.arms, ends)
        for arm in left:
            risks[arm] = ends[arm]
    return risks


def uncovered(board: Board, pulls: Iterable[Sequence[int]]) -> float:
    """Return the most that an agent may have lost on the arms left: the largest amount over all agents."""
    risks = risks_of(board)
    return max((worth(risks, row) for row in pulls), default=0.0) if any(risks) else 0.0

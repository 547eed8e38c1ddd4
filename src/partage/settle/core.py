"""The settlement of one game in units of reward, for simulation, audit and live play alike.

It needs two inputs: the board at the end, and how often each agent made the pulls that the settlement pays for.

- The arms left are those that may still be the best (`arms_left`). Pulls of the others are compensated, each at the
  arm's rate (`rates_of`).
- Every agent pays the same charge (`common_charge`), but in an equal-share settlement never more than its ceiling: a
  lower bound on what playing alone would have cost it (`ceilings_of`), and in a pool never more than it prepaid.
- Where the controller underwrites a limited loss, all compensations are scaled down so that it loses no more.
- The settlement is finished if at most one arm is left (`finished`). Otherwise agents may have lost something on the
  arms left that nobody compensates (`uncovered`).

`settle` puts these parts together. A member of a live collaboration can compute them too: with the total pulls of
each arm and everybody's ceilings, it can check its own account without seeing the pulls of the others.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from partage.board import Board
from partage.compiled import can_compile, shared
from partage.errors import MissingExtra
from partage.evidence import mixture_loss
from partage.settle import DUES, EQUAL_SHARE_EXPECTED, NONE, PAPER, Settlement
from partage.settle.ends import mean_end
from partage.settle.equal_share import find_gaps, find_left, find_means, find_risks, leader_of, level_of
from partage.settle.first_gaps import gaps_of
from partage.settle.noiseless import least_cost, lower_bound
from partage.settle.paper import paper_charge, paper_rates
from partage.settle.pool import Rates, contrast_rates, in_common, pool_rates, underwritten

MANY_ARMS = 24  # from so many on, compiled functions find gaps and ceilings also outside of simulations


class Amounts(NamedTuple):
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
        over all agents. 0 if the settlement is finished, and where commits are not paid for and not counted.
    viable
        Whether the charges cover the compensations and the fee; in a pool and with dues, whether all compensations
        are paid in full.
    scale
        The fraction of all compensations that is paid.
    """

    rates: tuple[float, ...]
    common_charge: float | None
    ceilings: tuple[float, ...] | None
    finished: bool
    uncovered: float
    viable: bool
    scale: float = 1.0


class Measured(NamedTuple):
    """The part of a settlement that is stated once a collaboration is closed.

    It is the common charge, the ceilings, and the arms left; None if these are found again. A pool and dues compute
    their charge again in any case, since that is exact arithmetic.
    """

    common_charge: float | None
    ceilings: tuple[float, ...] | None
    left: tuple[int, ...] | None = None


def settle(
    settlement: Settlement, board: Board, pulls: Sequence[Sequence[int]], measured: Measured | None = None
) -> Amounts:
    """Compute a settlement.

    Parameters
    ----------
    settlement, board
        Which settlement, and the board at the end.
    pulls
        One row per agent, one column per arm: the pulls that the settlement pays for. These are explore pulls that
        were reported, and commit pulls too if `settlement.pays_commits`.
    measured
        The common charge and ceilings, if they are known already. Playing 2-UCB for ceilings may take a second.
    """
    rows = [[int(count) for count in row] for row in pulls]  # numpy's integers would wrap when added up
    totals = [sum(row[arm] for row in rows) for arm in range(board.arms)]
    left = None if measured is None else measured.left
    if settlement.is_prepaid:
        return _settle_prepaid(settlement, board, rows, totals, left)
    if measured is None:
        rates, ceilings = rates_and_ceilings(settlement, board, [sum(row) for row in rows])
        common = common_charge(settlement, board, totals, ceilings, rates)
    else:
        rates = rates_of(settlement, board, left)
        common, ceilings = measured.common_charge, measured.ceilings
    charges_cover = (common or 0.0) * len(rows) >= worth(rates, totals)
    scale = Fraction(1)
    if settlement.underwriting is not None:
        charges = sum((Fraction(charge_of(common, each)) for each in ceilings or [None] * len(rows)), Fraction(0))
        scale = underwritten(charges, Fraction(settlement.underwriting), Rates(rates).worth(totals))
    return Amounts(
        rates=rates,
        common_charge=common,
        ceilings=ceilings,
        finished=finished(settlement, board, left),
        uncovered=uncovered(settlement, board, rows, left) if settlement.kind != NONE else 0.0,
        viable=charges_cover if ceilings is None else common is not None,
        scale=float(scale),
    )


def _settle_prepaid(
    settlement: Settlement,
    board: Board,
    rows: Sequence[Sequence[int]],
    totals: Sequence[int],
    left: Sequence[int] | None,
) -> Amounts:
    """Settle a pool or dues."""
    rates = rates_of(settlement, board, left)
    exact, prepaid = Rates(rates), Fraction(settlement.prepaid)
    bill = exact.worth(totals)
    if settlement.kind == DUES:
        paid = sum((min(prepaid, exact.worth(row)) for row in rows), Fraction(0))
        scale, charge = underwritten(paid, Fraction(0), bill), prepaid
    else:
        underwriting = Fraction(settlement.underwriting or 0.0)
        scale, charge = in_common(bill, len(rows), prepaid, underwriting, settlement.fee)
    return Amounts(
        rates=rates,
        common_charge=float(charge),
        ceilings=None,
        finished=finished(settlement, board, left),
        uncovered=0.0,
        viable=scale == 1,
        scale=float(scale),
    )


def charge_of(common: float | None, ceiling: float | None) -> float:
    """Return what an agent pays, given the common charge and its ceiling."""
    return min((amount for amount in (common, ceiling) if amount is not None), default=0.0)


# --- rates and ceilings ---------------------------------------------------------------------------------------


class Box(NamedTuple):
    """The games that a record allows: the best mean from `low` to `high`, each arm's gap from `lower` to `upper`.

    `leader` is the arm of the highest mean, `best`. It has no gap, and neither have arms that may be as good, or that
    nobody shares.
    """

    leader: int
    best: float
    low: float
    high: float
    lower: list[float]
    upper: list[float]


def rates_of(settlement: Settlement, board: Board, left: Iterable[int] | None = None) -> tuple[float, ...]:
    """Return the compensation for one pull of each arm: 0 for the arms left, which are found unless given."""
    if settlement.is_prepaid:
        rates, left = [0.0] * board.arms, _left(settlement, board, left)
        if board.effects is not None:
            return contrast_rates(board.effects, left)
        pool_rates(board.counts, board.record.sums, left, board.public, rates)
        return tuple(rates)
    if settlement.kind == PAPER:
        rates, log_horizon = [0.0] * board.arms, math.log(board.horizon)
        paper_rates(board.counts, board.active, board.public, log_horizon, settlement.factor, rates)
        return tuple(rates)
    return tuple(box_of(settlement, board, left).upper) if settlement.has_ceilings else (0.0,) * board.arms


def ceilings_of(
    settlement: Settlement, board: Board, steps: Sequence[int], left: Iterable[int] | None = None
) -> tuple[float, ...] | None:
    """Return the most that agents with these numbers of pulls may pay. None: there is no limit.

    The arms left are found unless they are given.

    Raises
    ------
    MissingExtra
        If ceilings are the cost of 2-UCB, and numba, which measures it, is not installed.
    """
    return rates_and_ceilings(settlement, board, steps, left)[1]


def rates_and_ceilings(
    settlement: Settlement,
    board: Board,
    steps: Sequence[int],
    left: Iterable[int] | None = None,
    many: bool = False,
) -> tuple[tuple[float, ...], tuple[float, ...] | None]:
    """Return `rates_of` and `ceilings_of`, which read the same gaps.

    With `many`, compiled functions find them for any number of arms: it takes seconds to compile them, but many
    boards are settled. The bits are the same.
    """
    if not settlement.has_ceilings:
        return rates_of(settlement, board, left), None
    box = box_of(settlement, board, left, many)
    if settlement.alone == "two-ucb":
        return tuple(box.upper), tuple(_played(settlement, board.horizon, box, steps))
    return tuple(box.upper), tuple(_by_formula(settlement, box, steps, many))


def worth(rates: Iterable[float], pulls: Iterable[int]) -> float:
    """Return the compensation for these pulls of each arm.

    The sum is rounded once, so the order of adding does not matter.
    """
    return math.fsum(rate * count for rate, count in zip(rates, pulls, strict=True))


def box_of(settlement: Settlement, board: Board, arms_left: Iterable[int] | None = None, many: bool = False) -> Box:
    """Return the games that an equal share reads from the record. The upper ends of its gaps are the rates.

    For `many`, see `rates_and_ceilings`.
    """
    counts, sums, public, coverage = board.counts, board.record.sums, board.public, settlement.coverage
    expected = settlement.kind == EQUAL_SHARE_EXPECTED
    lower, upper = [0.0] * board.arms, [0.0] * board.arms
    if coverage is None:
        best = gaps_of(counts, sums, board.active, public, board.horizon, expected, lower, upper)
        upper = [0.0 if board.active[arm] else upper[arm] for arm in range(board.arms)]
        return Box(-1, best, best, best, lower, upper)
    leader, left = leader_of(counts, sums, public), _left(settlement, board, arms_left)
    if leader < 0:
        return Box(leader, 0.0, 0.0, 0.0, lower, upper)
    best = sums[leader] / counts[leader]
    if expected:
        for arm in range(board.arms):
            if public[arm] and not left[arm]:
                lower[arm] = upper[arm] = best - sums[arm] / counts[arm]
        smooth = (sums[leader] + 0.5) / (counts[leader] + 1.0)  # an arm that never failed may still fail
        return Box(leader, best, smooth, smooth, lower, upper)
    lower, upper = _gaps(counts, sums, left, public, coverage, many)
    # The inequality holds for the leader and each other arm, so also for the one that it loses least on.
    others = [mixture_loss(counts[arm], sums[arm]) for arm in range(board.arms) if arm != leader and counts[arm]]
    spend = level_of(board.arms, coverage) + mixture_loss(counts[leader], sums[leader]) + min(others, default=0.0)
    low, high = (mean_end(counts[leader], best, spend, side) for side in (-1.0, 1.0))
    return Box(leader, best, low, high, lower, upper)


def _gaps(
    counts: Sequence[int],
    sums: Sequence[float],
    left: Sequence[bool],
    public: Sequence[bool],
    coverage: float,
    many: bool,
) -> tuple[list[float], list[float]]:
    """Return both ends of the gap of every separated arm."""
    if (many or len(counts) >= MANY_ARMS) and can_compile():
        from partage.settle.many_arms import gaps

        return gaps(counts, sums, left, public, coverage)
    lower, upper = [0.0] * len(counts), [0.0] * len(counts)
    find_gaps(counts, sums, left, public, coverage, lower, upper)
    return lower, upper


def _by_formula(settlement: Settlement, box: Box, steps: Sequence[int], many: bool) -> list[float]:
    """Return ceilings by the formula of `partage.settle.noiseless`."""
    lower, upper = ([end for arm, end in enumerate(ends) if arm != box.leader] for ends in (box.lower, box.upper))
    cost: Callable[..., float] = least_cost
    if (many or len(lower) >= MANY_ARMS) and can_compile():
        from partage.settle.many_arms import cost_of

        cost = cost_of(lower, upper)
    found = {each: lower_bound(settlement.alone, box.low, box.high, lower, upper, each, cost) for each in {*steps}}
    return [found[each] for each in steps]


def _played(settlement: Settlement, horizon: int, box: Box, steps: Sequence[int]) -> list[float]:
    """Return ceilings by plays of 2-UCB."""
    try:
        from partage.settle.ceiling import ceilings, first_ceilings
    except ModuleNotFoundError as error:
        raise MissingExtra("Measuring ceilings", "server") from error
    measure = first_ceilings if settlement.coverage is None else ceilings
    return measure(box.best, box.lower, box.upper, 2 * math.log(horizon), steps)


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
    if settlement.is_prepaid:
        raise ValueError("The charge of a pool depends on the number of agents; use settle.")
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


def arms_left(settlement: Settlement, board: Board, slack: float = 0.0) -> list[int]:
    """Return the public arms that may still be the best.

    An equal share finds them in the record. For other settlements, and by the terms of formats 1 and 2, they are the
    arms that the rule did not eliminate; if it eliminates nothing, a pool and dues leave the leader alone. `slack`
    widens the threshold: another machine's logarithms may differ in the last digit.
    """
    return [arm for arm, is_left in enumerate(_left(settlement, board, slack=slack)) if is_left]


def _left(
    settlement: Settlement, board: Board, stated: Iterable[int] | None = None, slack: float = 0.0
) -> list[bool]:
    if stated is not None:
        known = {*stated}
        return [arm in known for arm in range(board.arms)]
    if settlement.every_arm:
        leader = leader_of(board.counts, board.record.sums, board.public)
        return [arm == leader for arm in range(board.arms)]
    left = [board.active[arm] and board.public[arm] for arm in range(board.arms)]
    if settlement.coverage is not None:
        find_left(board.counts, board.record.sums, board.public, settlement.coverage, left, slack)
    return left


def finished(settlement: Settlement, board: Board, left: Iterable[int] | None = None) -> bool:
    """Whether at most one arm is left."""
    return sum(_left(settlement, board, left)) <= 1


def risks_of(settlement: Settlement, board: Board, arms_left: Iterable[int] | None = None) -> list[float]:
    """Return the most that one pull of each arm left may have lost; 0 for other arms, and if only one is left."""
    left, risks = _left(settlement, board, arms_left), [0.0] * board.arms
    if sum(left) <= 1:
        return risks
    if settlement.coverage is not None:
        low, high = [0.0] * board.arms, [1.0] * board.arms
        find_means(board.counts, board.record.sums, settlement.coverage, low, high)
        find_risks(left, low, high, risks)
        return risks
    ends = [1.0] * board.arms  # if none of them was broadcast, a pull may have lost everything
    if any(board.counts[arm] for arm in range(board.arms) if left[arm]):
        record = board.counts, board.record.sums, board.active, board.public
        gaps_of(*record, board.horizon, False, [0.0] * board.arms, ends)
    return [ends[arm] if left[arm] else 0.0 for arm in range(board.arms)]


def uncovered(
    settlement: Settlement, board: Board, pulls: Iterable[Sequence[int]], left: Iterable[int] | None = None
) -> float:
    """Return the most that an agent may have lost on the arms left: the largest amount over all agents."""
    risks = risks_of(settlement, board, left)
    return max((worth(risks, row) for row in pulls), default=0.0) if any(risks) else 0.0

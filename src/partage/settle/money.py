"""The settlement of a live collaboration in money: integer micro-units that sum to zero.

`settle` is a pure function of the board at the close and of everyone's pulls. It is put together from parts that a
member can compute as well: given the pulls of each arm in all and everybody's ceilings, she needs no other agent's
pulls to check her own account.

>>> import numpy as np
>>> from partage.board import Board, Record
>>> from partage.rules import BalancedGLR
>>> from partage.settle import settlement_for
>>> board = Board(horizon=1000, tie_order=[0, 1], public=[True, True])
>>> board.record, board.active = Record([300, 100], [270.0, 30.0]), [True, False]
>>> pulls = np.array([[900, 100], [950, 0], [1000, 0], [1000, 0], [30, 0]])
>>> settled = settle(settlement_for("equal-share-expected", BalancedGLR()), board, pulls, value=0.01)
>>> [account.net for account in settled.accounts], settled.profit
([461001, -138999, -138999, -138999, -44005], 1)
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.board import Board
from partage.settle import EQUAL_SHARE_EXPECTED, NONE, PAPER, Settlement
from partage.settle.equal_share import CEILING_SEED as CEILING_SEED  # whoever records ceilings names it
from partage.settle.equal_share import ceilings, gaps_of
from partage.settle.paper import paper_charge, paper_rates

MICRO = 1_000_000  # micro-units in a unit of money


class Account(NamedTuple):
    """What one agent gets and pays, and the most that she may pay where there is such a limit, in micro-units."""

    compensation: int
    charge: int
    ceiling: int | None = None

    @property
    def net(self) -> int:
        """What she receives, or pays if it is below 0."""
        return self.compensation - self.charge


@dataclass(frozen=True)
class Settled:
    """Who gets and pays what.

    Attributes
    ----------
    settlement
        Its name.
    accounts
        One an agent, in the order of the pulls.
    profit
        What the controller keeps: charges less compensations, in micro-units.
    rates
        What a pull of each arm is compensated with, in units of reward, as are the next two.
    common_charge
        What everyone pays but for her ceiling. None where nothing is charged, and where everyone pays her ceiling.
    ceilings
        The most that each agent may pay; None unless the settlement is an equal share.
    finished
        Whether at most one arm is left. Otherwise no individual rationality is claimed.
    uncovered
        Units of reward that an agent may at most have lost on the arms left, which nobody compensates: of the agent
        for whom that is most, and 0 if the settlement is finished.
    viable
        Whether the charges pay for the compensations and the fee.
    """

    settlement: str
    accounts: tuple[Account, ...]
    profit: int
    rates: tuple[float, ...]
    common_charge: float | None
    ceilings: tuple[float, ...] | None
    finished: bool
    uncovered: float
    viable: bool


def settle(settlement: Settlement, board: Board, pulls: NDArray[np.int64], value: float = 1.0) -> Settled:
    """Settle a collaboration.

    Parameters
    ----------
    settlement, board
        Which settlement, and the board at the close.
    pulls
        A row an agent who joined, a column an arm: her explore pulls that were told, and her commit pulls.
    value
        Money per unit of reward.
    """
    rates = rates_of(settlement, board)
    totals = pulls.sum(axis=0).tolist()
    limits = ceilings_of(settlement, board, pulls.sum(axis=1).tolist())
    common = common_charge(settlement, board, totals, limits)
    accounts = tuple(
        account(rates, row, common, limit, value)
        for row, limit in zip(pulls.tolist(), [None] * len(pulls) if limits is None else limits, strict=True)
    )
    paid = (common or 0.0) * len(pulls) >= worth(rates, totals) if limits is None else common is not None
    left = [arm for arm in board.actives() if board.public[arm]]
    return Settled(
        settlement=settlement.name,
        accounts=accounts,
        profit=sum(row.charge - row.compensation for row in accounts),
        rates=rates,
        common_charge=common,
        ceilings=limits,
        finished=len(left) <= 1,
        uncovered=_uncovered(board, left, pulls) if len(left) > 1 and settlement.kind != NONE else 0.0,
        viable=paid,
    )


# --- parts that a member can compute as well ------------------------------------------------------------------


def rates_of(settlement: Settlement, board: Board) -> tuple[float, ...]:
    """Return what a pull of each arm is compensated with, in units of reward: 0 for arms that are left."""
    rates = np.zeros(board.arms)
    if settlement.kind == PAPER:
        record = _Record.of(board)
        paper_rates(record.counts, record.active, record.public, math.log(board.horizon), settlement.factor, rates)
    elif settlement.kind != NONE:
        _, _, rates = _gaps(settlement, board)
    return tuple(rates.tolist())


def ceilings_of(settlement: Settlement, board: Board, steps: Iterable[int]) -> tuple[float, ...] | None:
    """Return the most that agents with these numbers of pulls pay, in units of reward; None: there is no limit."""
    if settlement.kind in (NONE, PAPER):
        return None
    best, lower, upper = _gaps(settlement, board)
    return tuple(ceilings(best, lower, upper, 2 * math.log(board.horizon), np.array([*steps], np.int64)).tolist())


def common_charge(
    settlement: Settlement, board: Board, totals: Iterable[int], limits: Sequence[float] | None
) -> float | None:
    """Return what everyone pays but for her ceiling, in units of reward.

    None where nothing is charged, and where everyone pays her ceiling. `totals` are the pulls of each arm, of all
    agents together; `limits` everyone's ceilings.
    """
    if settlement.kind == NONE:
        return None
    if settlement.kind == PAPER:
        record = _Record.of(board)
        log_horizon = math.log(board.horizon)
        return float(paper_charge(record.counts, record.active, record.public, log_horizon, settlement.factor))
    return water_level(limits or (), (1.0 + settlement.fee) * worth(rates_of(settlement, board), totals))


def worth(rates: Iterable[float], pulls: Iterable[int]) -> float:
    """Return what these pulls of each arm are compensated with, in units of reward.

    The sum is the exact one, rounded once, so that nobody's order of adding matters.
    """
    return math.fsum(rate * count for rate, count in zip(rates, pulls, strict=True))


def water_level(limits: Iterable[float], bill: float) -> float | None:
    """Return the x for which min(x, limit) sums to `bill`; None if all limits together are less.

    >>> water_level([1.0, 5.0, 9.0], 7.0)
    3.0
    """
    if bill <= 0:
        return 0.0
    rest, rising = Fraction(bill), sorted(limits)
    for place, limit in enumerate(rising):
        level = rest / (len(rising) - place)  # of those who are not at their limit yet
        if level <= limit:
            return float(level)
        rest -= Fraction(limit)
    return None


def account(
    rates: Iterable[float], pulls: Iterable[int], common: float | None, limit: float | None, value: float
) -> Account:
    """Return the account of an agent with these pulls of each arm, from the common charge and her ceiling."""
    charge = min((amount for amount in (common, limit) if amount is not None), default=0.0)
    return Account(
        compensation=micro_units(worth(rates, pulls), value),
        charge=micro_units(charge, value),
        ceiling=None if limit is None else micro_units(limit, value),
    )


def micro_units(amount: float, value: float) -> int:
    """Return units of reward as money, rounded half to even.

    >>> [micro_units(amount, 1e-6) for amount in (0.5, 1.5, 2.5)]
    [0, 2, 2]
    """
    return round(amount * value * MICRO)


# --- the record -----------------------------------------------------------------------------------------------


class _Record(NamedTuple):
    """The board as compiled code reads it."""

    counts: NDArray[np.int64]
    sums: NDArray[np.float64]
    active: NDArray[np.bool_]
    public: NDArray[np.bool_]

    @classmethod
    def of(cls, board: Board) -> "_Record":
        counts, active = np.array(board.counts, np.int64), np.array(board.active, np.bool_)
        # Of an arm that is out and was never broadcast nothing is known: it stands outside, as if nobody shared it.
        public = np.array(board.public, np.bool_) & (active | (counts > 0))
        return cls(counts, np.array(board.record.sums, np.float64), active & public, public)


def _gaps(settlement: Settlement, board: Board) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the leader's mean and both ends of the gaps of the arms that are out, 0 for the others."""
    record, lower, upper = _Record.of(board), np.zeros(board.arms), np.zeros(board.arms)
    best = gaps_of(*record, board.horizon, settlement.kind == EQUAL_SHARE_EXPECTED, lower, upper)
    upper[record.active] = 0.0  # a pull of an arm that is left is never paid
    return float(best), lower, upper


def _uncovered(board: Board, left: Sequence[int], pulls: NDArray[np.int64]) -> float:
    """Return the most that an agent may have lost on the arms left, in units of reward."""
    ends = np.ones(board.arms)  # so it is if none of them was broadcast
    if any(board.counts[arm] for arm in left):
        gaps_of(*_Record.of(board), board.horizon, False, np.zeros(board.arms), ends)
    return max((math.fsum(row) for row in (pulls[:, left] * ends[left]).tolist()), default=0.0)

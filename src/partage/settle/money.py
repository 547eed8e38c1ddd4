"""Settlements in money: integer micro-units that sum to zero.

`settle` rounds the settlement that `partage.settle.core` computes. Amounts are rounded half to even, one by one; the
controller's profit absorbs the difference.

>>> from partage.board import Board, Record
>>> from partage.rules import BalancedGLR
>>> from partage.settle import settlement_for
>>> board = Board(horizon=1000, tie_order=[0, 1], public=[True, True])
>>> board.record, board.active = Record([300, 100], [270.0, 30.0]), [True, False]
>>> pulls = [[988, 12], [950, 0], [1000, 0], [1000, 0], [30, 0]]
>>> settled = settle(settlement_for("equal-share-expected", BalancedGLR()), board, pulls, value=0.01)
>>> [account.net for account in settled.accounts], settled.profit
([55632, -16368, -16368, -16368, -6527], -1)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from partage.board import Board
from partage.settle import CEILING_SEED, Settlement, core
from partage.settle.core import Measured, ceilings_of, common_charge, rates_of, worth

__all__ = [
    "CEILING_SEED",
    "MICRO",
    "Account",
    "Settled",
    "account",
    "ceilings_of",
    "common_charge",
    "micro_units",
    "rates_of",
    "settle",
    "worth",
]

MICRO = 1_000_000  # micro-units in a unit of money


class Account(NamedTuple):
    """What one agent receives and pays, and the most that it may pay if there is such a limit, in micro-units."""

    compensation: int
    charge: int
    ceiling: int | None = None

    @property
    def net(self) -> int:
        """What the agent receives; it pays if this is below 0."""
        return self.compensation - self.charge


@dataclass(frozen=True)
class Settled:
    """A settlement in money.

    Attributes
    ----------
    settlement
        Its name.
    accounts
        One per agent, in the order of the pulls.
    profit
        What the controller keeps: charges less compensations, in micro-units.
    rates, common_charge, ceilings, finished, uncovered, viable
        As in `partage.settle.core.Amounts`, in units of reward.
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


def settle(
    settlement: Settlement,
    board: Board,
    pulls: Iterable[Iterable[int]],
    value: float = 1.0,
    measured: Measured | None = None,
) -> Settled:
    """Settle a collaboration.

    Parameters
    ----------
    settlement, board, pulls, measured
        As for `partage.settle.core.settle`. If the collaboration is closed, the close event states what was measured.
    value
        Money per unit of reward.
    """
    rows = [[int(count) for count in row] for row in pulls]
    found = core.settle(settlement, board, rows, measured)
    ceilings: Sequence[float | None] = found.ceilings if found.ceilings is not None else [None] * len(rows)
    accounts = tuple(
        account(found.rates, row, found.common_charge, ceiling, value)
        for row, ceiling in zip(rows, ceilings, strict=True)
    )
    profit = sum(row.charge - row.compensation for row in accounts)
    return Settled(settlement.name, accounts, profit, **found._asdict())


def account(
    rates: Iterable[float], pulls: Iterable[int], common: float | None, ceiling: float | None, value: float
) -> Account:
    """Return the account of an agent with these pulls of each arm."""
    charge = min((amount for amount in (common, ceiling) if amount is not None), default=0.0)
    return Account(
        compensation=micro_units(worth(rates, pulls), value),
        charge=micro_units(charge, value),
        ceiling=None if ceiling is None else micro_units(ceiling, value),
    )


def micro_units(amount: float, value: float) -> int:
    """Return units of reward as money, rounded half to even.

    >>> [micro_units(amount, 1e-6) for amount in (0.5, 1.5, 2.5)]
    [0, 2, 2]
    """
    return round(amount * value * MICRO)

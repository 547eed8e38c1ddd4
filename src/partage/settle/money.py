"""Settlements in money: integer micro-units that sum to zero.

`settle` rounds the settlement that `partage.settle.core` computes. Amounts are rounded half to even, one by one; the
controller's profit absorbs the difference. Where the controller's loss is limited, compensations are rounded down and
charges up instead: so the limit holds to the micro-unit.

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

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from partage.board import Board
from partage.settle import CEILING_SEED, DUES, Settlement, core
from partage.settle.core import Measured, ceilings_of, charge_of, common_charge, rates_of, worth
from partage.settle.pool import Rates, in_common, underwritten

__all__ = [
    "CEILING_SEED",
    "MICRO",
    "Account",
    "Books",
    "Settled",
    "account",
    "books_of",
    "ceilings_of",
    "common_charge",
    "micro_units",
    "rates_of",
    "settle",
    "worth",
]

MICRO = 1_000_000  # micro-units in a unit of money


class Account(NamedTuple):
    """What one agent receives and pays, and the most that it may pay if there is such a limit, in micro-units.

    In a pool and with dues, the limit is what it prepaid.
    """

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
    rates, common_charge, ceilings, finished, uncovered, viable, scale
        As in `partage.settle.core.Amounts`, in units of reward.
    prepaid, underwriting
        What every agent prepaid (0 if nobody did), and the most that the controller may lose (None if there is no
        limit), in micro-units.
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
    scale: float = 1.0
    prepaid: int = 0
    underwriting: int | None = None


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
    limited = settlement.underwriting is not None
    accounts = tuple(
        account(found.rates, row, found.common_charge, ceiling, value, limited)
        for row, ceiling in zip(rows, ceilings, strict=True)
    )
    stated = found._asdict()
    if limited:
        totals = [sum(row[arm] for row in rows) for arm in range(board.arms)]
        books = books_of(settlement, found.rates, totals, [each.charge for each in accounts], value)
        accounts = tuple(books.account(row, each) for row, each in zip(rows, accounts, strict=True))
        stated |= {"prepaid": books.prepaid or 0, "underwriting": books.underwriting}
        if settlement.kind != DUES:
            stated["scale"] = float(books.scale)
    profit = sum(row.charge - row.compensation for row in accounts)
    return Settled(settlement.name, accounts, profit, **stated)


def account(
    rates: Iterable[float],
    pulls: Iterable[int],
    common: float | None,
    ceiling: float | None,
    value: float,
    limited: bool = False,
) -> Account:
    """Return the account of an agent with these pulls of each arm, where all compensations are paid in full.

    If the controller's loss is `limited`, charges are rounded up, and `Books` say what is paid.
    """
    rounded = micro_units_up if limited else micro_units
    return Account(
        compensation=micro_units(worth(rates, pulls), value),
        charge=rounded(charge_of(common, ceiling), value),
        ceiling=None if ceiling is None else rounded(ceiling, value),
    )


class Books(NamedTuple):
    """What all accounts have in common where the controller's loss is limited, exactly and in micro-units.

    Attributes
    ----------
    rates
        The compensation for one pull of each arm, before scaling.
    scale
        The fraction of a compensation that is paid.
    prepaid
        What everyone prepaid, the most that anyone is charged; None if nobody prepays.
    charge
        What everyone is charged; None if charges differ, as in an equal share.
    most
        The most that anyone receives; None if there is no such limit.
    underwriting
        The most that the controller may lose.
    """

    rates: Rates
    scale: Fraction
    prepaid: int | None
    charge: int | None
    most: int | None
    underwriting: int

    def account(self, pulls: Iterable[int], plain: Account | None = None) -> Account:
        """Return the account of an agent with these pulls of each arm.

        If charges differ, `plain` is the `account` in full.
        """
        earned = math.floor(self.scale * self.rates.worth(pulls))
        compensation = earned if self.most is None else min(self.most, earned)
        if self.charge is not None:
            return Account(compensation, self.charge, self.prepaid)
        assert plain is not None
        return plain._replace(compensation=compensation)


def books_of(
    settlement: Settlement, rates: Iterable[float], totals: Iterable[int], charges: Sequence[int], value: float
) -> Books:
    """Return what all accounts have in common where the controller's loss is limited.

    An agent can compute it: it needs the total pulls of each arm, not those of any other agent.

    Parameters
    ----------
    settlement, rates
        Which settlement, and its rates in units of reward.
    totals
        The pulls that are paid for, of each arm, over all agents.
    charges
        The charges of all agents in micro-units if they do not prepay; otherwise only their number is read.
    value
        Money per unit of reward.
    """
    unit = Fraction(value) * MICRO
    exact = Rates(rates, unit)
    # Where D and U were agreed in money and divided by `value`, the nearest integers are what was agreed.
    prepaid, underwriting = (
        round(Fraction(each or 0.0) * unit) for each in (settlement.prepaid, settlement.underwriting)
    )
    if settlement.kind == DUES:
        return Books(exact, Fraction(1), prepaid, prepaid, prepaid, underwriting)
    bill = exact.worth(totals)
    if not settlement.is_prepaid:
        scale = underwritten(Fraction(sum(charges)), Fraction(underwriting), bill)
        return Books(exact, scale, None, None, None, underwriting)
    scale, charge = in_common(bill, len(charges), Fraction(prepaid), Fraction(underwriting), settlement.fee)
    return Books(exact, scale, prepaid, math.ceil(charge), None, underwriting)


def micro_units(amount: float, value: float) -> int:
    """Return units of reward as money, rounded half to even.

    >>> [micro_units(amount, 1e-6) for amount in (0.5, 1.5, 2.5)]
    [0, 2, 2]
    """
    return round(amount * value * MICRO)


def micro_units_up(amount: float, value: float) -> int:
    """Return units of reward as money, rounded up.

    >>> micro_units_up(0.25, 1e-6), micro_units_up(3.0, 1.0)
    (1, 3000000)
    """
    return math.ceil(Fraction(amount) * Fraction(value) * MICRO)

"""The settlement of a collaboration's state.

While a collaboration is open, its settlement is the one it would have if it closed now. Measuring ceilings may take a
second, so `inputs` copies what a settlement reads from the state, and `settled` may run on the copy in a thread. Once
a collaboration is closed, the close event states what was measured, and the rest is arithmetic.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from partage.board import Board
from partage.ledger.events import Close
from partage.ledger.messages import SettlementRow, SettlementView
from partage.ledger.state import State
from partage.settle import Settlement
from partage.settle.core import Measured
from partage.settle.money import Settled, micro_units, settle


class Row(NamedTuple):
    """An agent and its numbers of pulls."""

    agent: str
    name: str
    explore: int
    commit: int


class Inputs(NamedTuple):
    """Everything that a settlement reads, independent of the state it was copied from.

    Attributes
    ----------
    seq
        The number of the last event in the state.
    settlement, value, fee
        From the configuration.
    board
        The board, without `by_member`: no settlement reads it, and it is large.
    pulls
        Settled pulls, one row per agent in order of joining, one column per arm: explore pulls that were reported,
        and commit pulls if these are paid.
    agents
        The agents, in the same order.
    closed
        The close event; None while the collaboration is open.
    """

    seq: int
    settlement: Settlement
    value: float
    fee: float
    board: Board
    pulls: Sequence[Sequence[int]]
    agents: tuple[Row, ...]
    closed: Close | None


def inputs(state: State) -> Inputs:
    """Copy what the settlement of a state reads."""
    config = state.config
    agents = tuple(
        Row(member.id, member.name, sum(member.explore.values()), state.commits_of(member.id))
        for member in state.members.values()
    )
    board = state.board.copy(by_member=False)
    return Inputs(state.seq, state.settlement, config.value, config.fee, board, state.pulls(), agents, state.closed)


def settled(given: Inputs) -> Settled:
    """Return the settlement. If the collaboration is closed, what the close event states stands."""
    return settle(given.settlement, given.board, given.pulls, given.value, _measured(given))


def _measured(given: Inputs) -> Measured | None:
    """Return the charge, ceilings and arms left of the close event; None while the collaboration is open."""
    closed = given.closed
    if closed is None:
        return None
    ceilings = closed.ceilings
    return Measured(
        closed.common_charge,
        None if ceilings is None else tuple(ceilings[row.agent] for row in given.agents),
        None if closed.left is UNSET else closed.left,
    )


def settlement_of(state: State) -> Settled:
    """Return the settlement of a state: as it closed, or as if it closed now."""
    return settled(inputs(state))


def settlement_view(given: State | Inputs, found: Settled) -> SettlementView:
    """Return a settlement as the operator sees it, with rows in order of joining.

    Pass the inputs that the settlement was computed from if the state may have changed since.
    """
    given = inputs(given) if isinstance(given, State) else given
    rows = [
        SettlementRow(
            row.agent,
            row.name,
            row.explore,
            row.commit,
            account.compensation,
            account.charge,
            account.net,
            found.prepaid,
        )
        for row, account in zip(given.agents, found.accounts, strict=True)
    ]
    return SettlementView(
        closed=given.closed is not None,
        settlement=found.settlement,
        rows=rows,
        compensation=sum(row.compensation for row in rows),
        charge=sum(row.charge for row in rows),
        profit=found.profit,
        finished=found.finished,
        viable=found.viable,
        uncovered=micro_units(found.uncovered, given.value),
        value=given.value,
        fee=given.fee,
        scale=found.scale,
        prepaid=found.prepaid,
        underwriting=found.underwriting,
    )


def csv_lines(view: SettlementView) -> Iterator[list[int | float | str | None]]:
    """Yield a settlement as lines of a table: its head, the agents, then the controller, whose nets sum to zero.

    `scale` is the fraction of the compensations that is paid, and `limit` the most that each can lose, if that is
    agreed.
    """
    columns = ("agent", "name", "explore", "commit", "compensation", "charge", "net", "prepaid")
    yield [*columns, "scale", "limit"]
    for row in view.rows:
        yield [*(getattr(row, column) for column in columns), view.scale, row.prepaid or None]
    totals = (view.charge, view.compensation, view.profit)
    yield ["controller", "", "", "", *totals, "", view.scale, view.underwriting]


def own_view(view: SettlementView, agent: str) -> SettlementView:
    """Return a settlement as an agent sees it: its own row, and the totals."""
    return msgspec.structs.replace(view, rows=[row for row in view.rows if row.agent == agent])

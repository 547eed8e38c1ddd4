"""Accounts: who gets and pays what, from a collaboration's state.

While it is open the settlement is what it would be if it closed now, which takes up to a second or so where ceilings
are measured by plays: `inputs` takes what it reads out of the state, and `settled` may run on that in a thread. Once
it is closed, the close event says what was measured, and the rest is arithmetic.
"""

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from partage.board import Board, Record
from partage.ledger.events import Close
from partage.ledger.messages import SettlementRow, SettlementView
from partage.ledger.state import State
from partage.settle import NONE, PAPER, Settlement
from partage.settle.money import Settled, account, micro_units, rates_of, settle


class Row(NamedTuple):
    """An agent and how much she pulled."""

    agent: str
    name: str
    explore: int
    commit: int


class Inputs(NamedTuple):
    """All that a settlement reads, with nothing in common with the state that it was taken from.

    Attributes
    ----------
    seq
        The last event that it knows.
    settlement, value, fee
        From the configuration.
    board
        The board.
    pulls
        Settled pulls: told explore pulls and commit pulls, agents in order of joining times arms.
    agents
        The agents in the same order.
    closed
        The close event, if it is closed.
    """

    seq: int
    settlement: Settlement
    value: float
    fee: float
    board: Board
    pulls: NDArray[np.int64]
    agents: tuple[Row, ...]
    closed: Close | None


def inputs(state: State) -> Inputs:
    """Return what the settlement of a state reads."""
    config = state.config
    board = Board(config.horizon, state.board.tie_order, list(state.board.public))
    board.record = Record(list(state.board.record.counts), list(state.board.record.sums))
    board.active, board.shared = list(state.board.active), list(state.board.shared)
    agents = tuple(
        Row(member.id, member.name, sum(member.explore.values()), sum(member.commit.values()))
        for member in state.members.values()
    )
    pulls = np.array(state.pulls(), np.int64).reshape(len(agents), board.arms)
    return Inputs(state.seq, state.settlement, config.value, config.fee, board, pulls, agents, state.closed)


def settled(given: Inputs) -> Settled:
    """Return the settlement, from the close event's charge and ceilings if there is one."""
    if given.closed is None:
        return settle(given.settlement, given.board, given.pulls, given.value)
    return _settled_at_close(given, given.closed)


def settlement_of(state: State) -> Settled:
    """Return the settlement of a state: as if it closed now, or as it closed."""
    return settled(inputs(state))


def settlement_view(given: State | Inputs, found: Settled) -> SettlementView:
    """Return a settlement as the operator sees it, rows in order of joining.

    Give the inputs that it was computed from, where the state may have gone on since.
    """
    given = inputs(given) if isinstance(given, State) else given
    rows = [
        SettlementRow(row.agent, row.name, row.explore, row.commit, account.compensation, account.charge, account.net)
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
    )


def own_view(view: SettlementView, agent: str) -> SettlementView:
    """Return a settlement as an agent sees it: her own row, and the totals."""
    return msgspec.structs.replace(view, rows=[row for row in view.rows if row.agent == agent])


def _settled_at_close(given: Inputs, closed: Close) -> Settled:
    """Return the settlement with the charge and the ceilings of the close event: no plays."""
    ceilings = closed.ceilings
    limits = None if ceilings is None else tuple(ceilings[row.agent] for row in given.agents)
    rates, common = rates_of(given.settlement, given.board), closed.common_charge
    accounts = tuple(
        account(rates, pulls, common, limit, given.value)
        for pulls, limit in zip(given.pulls.tolist(), limits or [None] * len(given.agents), strict=True)
    )
    # What an agent may have lost on the arms left does not depend on how the others are settled: any settlement
    # without plays tells it, and the paper's is one.
    plain = given.settlement if given.settlement.kind in (NONE, PAPER) else Settlement(PAPER, factor=1.0)
    rest = settle(plain, given.board, given.pulls, given.value)
    return Settled(
        settlement=given.settlement.name,
        accounts=accounts,
        profit=sum(row.charge - row.compensation for row in accounts),
        rates=rates,
        common_charge=common,
        ceilings=limits,
        finished=rest.finished,
        uncovered=rest.uncovered,
        viable=rest.viable if limits is None else common is not None,
    )

"""The settlement of a collaboration's state.

While a collaboration is open, its settlement is the one it would have if it closed now. Measuring ceilings may take a
second, so `inputs` copies what a settlement reads from the state, and `settled` may run on the copy in a thread. Once
a collaboration is closed, the close event states what was measured, and the rest is arithmetic.
"""

import re
import unicodedata
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from partage.agreement import disagreements
from partage.board import Board, Record
from partage.ledger.disagreements import disagreement_views
from partage.ledger.events import Close
from partage.ledger.messages import Out, SettlementRow, SettlementView
from partage.ledger.outstanding import out_view
from partage.ledger.state import State
from partage.ledger.tallies import tallies_of
from partage.settle import Settlement
from partage.settle.core import Measured, arms_left
from partage.settle.money import Settled, micro_units, settle


class Row(NamedTuple):
    """An agent and its pulls of each arm: explore pulls that were reported, and commits with an arm.

    `commits` is how many commits its row of the settlement shows.
    """

    agent: str
    name: str
    explore: Mapping[int, int]
    commit: Mapping[int, int]
    commits: int


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
    agents, names
        The agents, in order of joining, and the names of the arms.
    named, format
        Whether commits are settled with their arms, and the collaboration's format.
    closed
        The close event; None while the collaboration is open.
    told
        Who told what (`Board.by_member`), to see who differs. No amount depends on it.
    out
        The claims that are not told.
    """

    seq: int
    settlement: Settlement
    value: float
    fee: float
    board: Board
    agents: tuple[Row, ...]
    names: tuple[str, ...]
    named: bool
    format: int
    closed: Close | None
    told: Mapping[Hashable, Record]
    out: Out | None

    def pulls(self) -> list[list[int]]:
        """Return the settled pulls, one row per agent, one column per arm: with commit pulls if these are named."""
        found = []
        for row in self.agents:
            pulls = [0] * self.board.arms
            for counts in (row.explore, row.commit) if self.named else (row.explore,):
                for arm, count in counts.items():
                    pulls[arm] += count
            found.append(pulls)
        return found

    def total(self, kind: str) -> tuple[int, ...]:
        """Return the `explore` or the `commit` pulls of each arm, of all agents together."""
        found = [0] * self.board.arms
        for row in self.agents:
            for arm, pulls in getattr(row, kind).items():
                found[arm] += pulls
        return tuple(found)


def inputs(state: State, *, told: bool = True) -> Inputs:
    """Copy what the settlement of a state reads; without `told`, its view names nobody who differs."""
    config = state.config
    agents = tuple(
        Row(member.id, member.name, dict(member.explore), dict(member.commit), state.commits_of(member.id))
        for member in state.members.values()
    )
    board = state.board.copy(by_member=False)
    terms = (state.settlement, config.value, config.fee)
    found = (state.board.copied_records() if told else {}, out_view(state))
    return Inputs(
        state.seq, *terms, board, agents, tuple(state.arms), state.names_commits, state.format, state.closed, *found
    )


def settled(given: Inputs) -> Settled:
    """Return the settlement. If the collaboration is closed, what the close event states stands."""
    return settle(given.settlement, given.board, given.pulls(), given.value, _measured(given))


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


def closing(given: Inputs, found: Settled, secret: bytes) -> dict[str, Any]:
    """Return what the close event of this settlement states.

    `secret` is known to the operator alone; the salts of the tallies follow from it.
    """
    settlement, ceilings = given.settlement, found.ceilings
    agents = [row.agent for row in given.agents]
    stated: dict[str, Any] = {
        "explore": given.total("explore"),
        "common_charge": None if settlement.is_prepaid else found.common_charge,
        "ceilings": None if ceilings is None else dict(zip(agents, ceilings, strict=True)),
        "ceiling_seed": settlement.ceiling_seed,
        "profit": found.profit,
    }
    if given.named:
        stated["commit"] = given.total("commit")
    if given.format > 3:
        stated |= {"left": tuple(arms_left(settlement, given.board)), "scale": found.scale}
    if settlement.is_prepaid:
        charges = {account.charge for account in found.accounts}  # everyone's is the same
        stated |= {"prepaid": found.prepaid, "charge": max(charges, default=0)}
    if given.named and given.format > 4:
        stated["tallies"] = tallies_of({row.agent: row.commit for row in given.agents}, secret)
        if settlement.has_ceilings:
            pulls = {row.agent: sum(row.explore.values()) + sum(row.commit.values()) for row in given.agents}
            stated["pulls"] = pulls
    return stated


def closed_with(state: State, secret: bytes) -> dict[str, Any]:
    """Return what the close event of a state would state now."""
    given = inputs(state)
    return closing(given, settled(given), secret)


def settlement_of(state: State) -> Settled:
    """Return the settlement of a state: as it closed, or as if it closed now."""
    return settled(inputs(state))


def settlement_view(given: State | Inputs, found: Settled) -> SettlementView:
    """Return a settlement as the operator sees it, with rows in order of joining.

    Pass the inputs that the settlement was computed from if the state may have changed since. Comparing many members
    takes long, so it may run on the inputs in a thread.
    """
    given = inputs(given) if isinstance(given, State) else given
    names = {row.agent: row.name for row in given.agents}
    rows = [
        SettlementRow(
            row.agent,
            row.name,
            sum(row.explore.values()),
            row.commits,
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
        disagreements=disagreement_views(disagreements(given.told, given.board.arms), names.__getitem__, given.names),
        out=given.out,
    )


def csv_lines(view: SettlementView) -> Iterator[list[int | float | str | None]]:
    """Yield a settlement as lines of a table: its head, the agents, then the controller, whose nets sum to zero.

    `scale` is the fraction of the compensations that is paid, and `limit` the most that each can lose, if that is
    agreed. Agents choose their names, so those that a spreadsheet may read as a formula begin with an apostrophe.
    """
    columns = ("agent", "name", "explore", "commit", "compensation", "charge", "net", "prepaid")
    yield [*columns, "scale", "limit"]
    for row in view.rows:
        cells = (getattr(row, column) for column in columns)
        yield [*(plain(cell) if isinstance(cell, str) else cell for cell in cells), view.scale, row.prepaid or None]
    totals = (view.charge, view.compensation, view.profit)
    yield ["controller", "", "", "", *totals, "", view.scale, view.underwriting]


_FORMULA = "=+-@|%"
_SEPARATORS = ",;\t\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # that a spreadsheet may take for the end of a cell


def plain(text: str) -> str:
    """Return a text as a cell that no spreadsheet reads as a formula: such a cell gets an apostrophe first.

    Spreadsheets skip spaces and invisible characters before a formula, read full-width signs as signs, and may split
    a line at other separators than the comma.

    >>> plain("=1+1"), plain("Pens"), plain("Pens; @SUM(A1)")
    ("'=1+1", 'Pens', "Pens;' @SUM(A1)")
    """
    first, *others = re.split(f"([{_SEPARATORS}])", text)
    start = "'" if _is_formula(text) else ""
    return start + first + "".join(f"'{cell}" if _is_formula(cell) else cell for cell in others)


def _is_formula(cell: str) -> bool:
    for sign in unicodedata.normalize("NFKC", cell):
        if sign in _FORMULA:
            return True
        if sign != "\u2800" and unicodedata.category(sign)[0] not in "ZCM":
            return False
    return False


def own_view(view: SettlementView, agent: str) -> SettlementView:
    """Return a settlement as an agent sees it: its own row and salt, and the totals."""
    own = {other: salt for other, salt in view.salts.items() if other == agent}
    return msgspec.structs.replace(view, rows=[row for row in view.rows if row.agent == agent], salts=own)

"""One attack on one game: what liars gain, what the others and the operator lose, and how far that is from the bound.

The same play is settled in several ways. A play does not depend on its settlement, except that made-up commits are
worth reporting only where commits are paid.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from partage.game import Game
from partage.ledger.config import LiveRule
from partage.settle import settlement_for
from partage.settle.money import MICRO, Settled, settle
from partage.studies.attack_liars import BEST, Attack
from partage.studies.attack_table import Table

PLAYED = ("regret", "right arm leads", "broadcasts")
GAIN, OTHERS, OPERATOR, ROOM, OPERATORS_ROOM = "gain", "others", "operator", "room", "operator's room"


class Terms(NamedTuple):
    """A settlement and its terms, in units of reward: what everyone prepays (D), what the operator underwrites (U).

    With U of None, the operator bears any loss.
    """

    name: str
    settlement: str
    prepaid: float | None = None
    underwriting: float | None = None

    @property
    def figures(self) -> tuple[str, ...]:
        """What is measured: how far something is from its bound only if it has one."""
        if self.settlement in ("none", "pool", "dues"):
            return GAIN, OTHERS, OPERATOR, ROOM, OPERATORS_ROOM
        return (GAIN, OTHERS, OPERATOR) if self.underwriting is None else (GAIN, OTHERS, OPERATOR, OPERATORS_ROOM)


@dataclass(frozen=True)
class Cell:
    """An attack on honest members, one for each agent of the game. `cell(seed, run)` plays it.

    Of every run there are the regret of the honest members together, whether the best arm leads at the end, and the
    broadcasts. Of every settlement there are, in units of reward:

    - gain: what the liars receive less what they pay, all together (with what the operator keeps, if they are one of
      them);
    - others: what the honest members receive less what they pay, all together;
    - operator: what the operator keeps;
    - room: how far the gain is below its bound, and
    - operator's room: how far the operator's loss is below U.
    """

    game: Game
    rule: LiveRule
    attack: Attack
    terms: Sequence[Terms]

    @property
    def figures(self) -> tuple[str, ...]:
        """The names of the figures."""
        return (*PLAYED, *(f"{terms.name}: {figure}" for terms in self.terms for figure in terms.figures))

    def __call__(self, seed: int, run: int) -> list[float]:
        """Play a run and return its figures."""
        attack = self.attack
        table = Table(self.game, self.rule, seed, run, attack.liars, attack.operator)
        table.play()
        honest = [seat for seat in table.seats if seat.is_honest]
        regret = sum(self.game.gaps[arm] * pulls for seat in honest for arm, pulls in enumerate(seat.pulls))
        found = [regret, table.state.target() == BEST, sum(table.state.board.counts)]
        for terms in self.terms:
            found += self._settled(table, terms)
        return [float(value) for value in found]

    def _settled(self, table: Table, terms: Terms) -> list[float]:
        settlement = settlement_for(
            terms.settlement, self.rule, prepaid=terms.prepaid, underwriting=terms.underwriting
        )
        pulls = table.paid() if settlement.pays_commits else table.told()
        settled = settle(settlement, table.state.board, pulls)
        rows = list(zip(table.seats, settled.accounts, strict=True))
        others = sum(account.net for seat, account in rows if seat.is_honest)
        gain = sum(account.net for seat, account in rows if not seat.is_honest)
        if self.attack.with_operator:
            gain += settled.profit
        bound, loss = bounds(settled, len(self.attack.liars), self.attack.with_operator)
        found = {GAIN: gain, OTHERS: others, OPERATOR: settled.profit}
        if bound is not None:
            found[ROOM] = bound - gain
        if loss is not None:
            found[OPERATORS_ROOM] = loss + settled.profit
        return [found[figure] / MICRO for figure in terms.figures]


def bounds(settled: Settled, liars: int, with_operator: bool = False) -> tuple[int | None, int | None]:
    """Return the most that so many liars together can gain, and the most that the operator can lose, in micro-units.

    None: there is no bound. docs/trust.md has the proofs. A member who prepaid loses at most that, and all amounts
    sum to zero: so liars gain what the others prepaid and the operator underwrites, at most. If the operator is one
    of them, what the operator underwrites is no gain.
    """
    if settled.settlement == "none":
        return 0, 0
    if settled.settlement not in ("pool", "dues"):
        return None, settled.underwriting
    theirs = (len(settled.accounts) - liars) * settled.prepaid
    if with_operator:
        return theirs, settled.underwriting
    underwriting = settled.underwriting or 0
    return (0 if settled.settlement == "dues" else theirs + underwriting), underwriting

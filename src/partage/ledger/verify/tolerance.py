"""Decisions of another machine: accepted if rounding explains the difference.

Logarithms may differ in the last digit between platforms, so evidence that lies on a threshold can fall on either
side of it. The decision in the ledger stands if the evidence is within `TOLERANCE` of the threshold. Everything else
that a decision reads (counts, means, the tie order) is exact on every platform.
"""

import copy
from collections.abc import Iterable

from msgspec import UNSET

from partage.board import Pull
from partage.ledger.events import AnyEvent, Claim, Commit, Tell
from partage.ledger.state import State
from partage.rules.exploring import explore_or_commit

TOLERANCE = 1e-9
_SLACKS = (-TOLERANCE, TOLERANCE, 0.0)


class Range:
    """The sets of arms that are possible: each has all of `least`, and nothing outside `most`."""

    def __init__(self, found: Iterable[Iterable[int]]) -> None:
        sets = [frozenset(arms) for arms in found]
        self.least = frozenset.intersection(*sets)
        self.most = frozenset.union(*sets)

    def __contains__(self, arms: frozenset[int]) -> bool:
        return self.least <= arms <= self.most


class TolerantState(State):
    """A state that takes the decisions of the event that is being verified, where they are possible.

    Attributes
    ----------
    stated
        The event. If its decisions are not possible, the state decides as the rule does here, and the move then
        writes a different event.
    """

    stated: AnyEvent | None = None

    def decide(self, agent: str) -> Pull:
        """Return the stated pull if it is possible, otherwise the rule's."""
        own, stated = super().decide(agent), self.stated
        if isinstance(stated, Claim):
            wanted = Pull(stated.arm, share=True)
        elif isinstance(stated, Commit) and stated.asked:
            wanted = Pull(stated.runs[0].arm, share=False)
        else:
            return own
        if wanted == own:
            return own
        # Of all that may be open, the fewest arms that make this pull possible.
        opened = self._open_range()
        needed = opened.least | ({wanted.arm} & opened.most if wanted.share else frozenset())
        possible = explore_or_commit(self.board, self.members[agent].shares, None, sorted(needed))
        return wanted if wanted == possible else own

    def blocking_arms(self) -> list[int]:
        """Return the arms that were open for certain."""
        return sorted(self._open_range().least)

    def revise(self) -> None:
        """Leave the stated arms active if that is possible, otherwise those that the rule leaves."""
        board, stated = self.board, self.stated
        before, rule_state = board.active, board.state
        found = []
        for slack in _SLACKS:  # the last is none, and what it comes to is left on the board
            board.active, board.state = list(before), copy.deepcopy(rule_state)
            self.rule.revise(board, slack)
            found.append(board.actives())
        if self.format == 1 or not isinstance(stated, Tell):
            return
        unchanged = [arm for arm, active in enumerate(before) if active]
        active = frozenset(unchanged if stated.active is UNSET else stated.active)
        if active in Range(found):
            board.active = [arm in active for arm in range(board.arms)]

    def _open_range(self) -> Range:
        return Range(self.rule.open_arms(self.board, slack) for slack in _SLACKS)

"""Decisions of another machine: accepted if rounding explains the difference.

Logarithms may differ in the last digit between platforms, so evidence that lies on a threshold can fall on either
side of it. The decision in the ledger is accepted if the evidence is within `TOLERANCE` of the threshold. Everything
else that a decision reads (counts, means, the tie order) is exact on every platform.
"""

import copy

from msgspec import UNSET

from partage.board import Pull
from partage.ledger.events import AnyEvent, Attach, Claim, Commit, SetAside, Tell
from partage.ledger.state import State
from partage.rules.exploring import explore_or_commit

TOLERANCE = 1e-9
SLACKS = (-TOLERANCE, TOLERANCE)  # of thresholds: what holds for both is certain, what holds for one is possible
DECIDING = Tell | Attach | SetAside  # events that state which arms are active after them


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
        if wanted == own or self.config.rule_source is not UNSET:  # only our rules know what rounding explains
            return own
        # The pull is possible if it follows from the arms that are open for certain, and its own.
        certain, possible = self._open_arms()
        opened = certain | ({wanted.arm} & possible if wanted.share else frozenset())
        shares = self.offered(self.members[agent], sorted(opened))
        decided = explore_or_commit(self.board, shares, None, sorted(opened))
        return wanted if wanted == decided else own

    def blocking_arms(self) -> list[int]:
        """Return the arms that are open for certain; none where some agents are not offered open arms."""
        return [] if self.rule.offers else sorted(self._open_arms()[0])

    def revise(self) -> None:
        """Keep the stated arms active if that is possible, otherwise those that the rule keeps active."""
        board, stated = self.board, self.stated
        before, rule_state = list(board.active), copy.deepcopy(board.state)
        self.rule.revise(board)
        if self.format == 1 or not isinstance(stated, DECIDING):
            return
        own, rule_state_after = board.active, board.state
        wanted = before if stated.active is UNSET else [arm in stated.active for arm in range(board.arms)]
        if wanted == own:
            return
        found = []
        for slack in SLACKS:
            board.active, board.state = list(before), copy.deepcopy(rule_state)
            self.rule.revise(board, slack)
            found.append(board.active)
        possible = all(arm in arms for arm, *arms in zip(wanted, *found, strict=True))
        board.active, board.state = wanted if possible else own, rule_state_after

    def _open_arms(self) -> tuple[frozenset[int], frozenset[int]]:
        """Return the arms that are open for certain, and those that are possibly open."""
        one, other = (frozenset(self.rule.open_arms(self.board, slack)) for slack in SLACKS)
        return one & other, one | other

"""Settlements: who gets and who pays what, from the public record and the counts of pulls alone."""

import math
from typing import NamedTuple

from partage.engine.reference import Rule
from partage.errors import InputError, SettlementError
from partage.rules import BalancedETC
from partage.settle.paper import balance_factor

NONE, PAPER = 0, 1
SETTLEMENTS = ("paper", "none")


class Settlement(NamedTuple):
    """A settlement, ready for compiled code: which one, and the paper's c = (1 + sqrt(B))^2."""

    kind: int
    factor: float

    @property
    def name(self) -> str:
        """What the command line and JSON call it."""
        return "paper" if self.kind == PAPER else "none"


def settlement_for(name: str, rule: Rule) -> Settlement:
    """Return the settlement of this name for a rule; "default" is the paper's where it is defined, else none."""
    if name not in ("default", *SETTLEMENTS):
        raise InputError(f"The settlement is {name!r}; it must be one of {', '.join(SETTLEMENTS)}.")
    defined = isinstance(rule, BalancedETC) and math.isfinite(rule.balance)
    if name == "none" or (name == "default" and not defined):
        return Settlement(NONE, 0.0)
    if not isinstance(rule, BalancedETC):
        raise SettlementError(
            f"The paper's settlement is not defined for the rule {rule.name}, which does not eliminate by Eq. 1; "
            "use the settlement none."
        )
    if not defined:
        raise SettlementError(
            "The paper's settlement is not defined for an infinite balance; use a finite balance, "
            "or the settlement none."
        )
    return Settlement(PAPER, balance_factor(rule.balance))

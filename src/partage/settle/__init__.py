"""Settlements: who gets and who pays what, from the public record and the counts of pulls alone."""

import math
from typing import NamedTuple

from partage.errors import InputError, SettlementError
from partage.rules import BalancedETC
from partage.rules.rule import Rule
from partage.settle.paper import balance_factor

NONE, PAPER, EQUAL_SHARE, EQUAL_SHARE_EXPECTED = range(4)
SETTLEMENTS = ("paper", "equal-share", "equal-share-expected", "none")
_KINDS = {"none": NONE, "paper": PAPER, "equal-share": EQUAL_SHARE, "equal-share-expected": EQUAL_SHARE_EXPECTED}


class Settlement(NamedTuple):
    """A settlement, ready for compiled code: which one, the paper's c = (1 + sqrt(B))^2, and the controller's fee."""

    kind: int
    factor: float = 0.0
    fee: float = 0.0

    @property
    def name(self) -> str:
        """What the command line and JSON call it."""
        return next(name for name, kind in _KINDS.items() if kind == self.kind)


def settlement_for(name: str, rule: Rule, fee: float = 0.0) -> Settlement:
    """Return the settlement of this name for a rule; "default" is the paper's where it is defined, else none.

    `fee` is what the controller of an equal-share settlement takes on top, as a part of all compensations.
    """
    if name not in ("default", *SETTLEMENTS):
        raise InputError(f"The settlement is {name!r}; it must be one of {', '.join(SETTLEMENTS)}.")
    if isinstance(fee, bool) or not isinstance(fee, (int, float)) or not 0 <= fee < math.inf:
        raise InputError(f"The fee is {fee!r}; it must be a number of at least 0, a part of all compensations.")
    defined = isinstance(rule, BalancedETC) and math.isfinite(rule.balance)
    if name == "default":
        name = "paper" if defined else "none"
    if fee and not name.startswith("equal-share"):
        raise InputError(
            f"The fee is {fee!r}, and the settlement {name} takes none; leave it out, or use equal-share."
        )
    if name != "paper":
        return Settlement(_KINDS[name], fee=float(fee))
    if not isinstance(rule, BalancedETC):
        raise SettlementError(
            f"The paper's settlement is not defined for the rule {rule.name}, which does not eliminate by Eq. 1; "
            "use equal-share or none."
        )
    if not defined:
        raise SettlementError(
            "The paper's settlement is not defined for an infinite balance; use a finite one, equal-share or none."
        )
    return Settlement(PAPER, balance_factor(rule.balance))

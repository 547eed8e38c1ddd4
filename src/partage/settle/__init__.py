"""Settlements: what each agent receives and pays, computed from the public record and the pull counts only.

- `core` computes a settlement in units of reward: rates, ceilings, charge, and whether it is finished and viable.
- `paper` and `equal_share` hold the formulas; `ceiling` plays 2-UCB to measure ceilings (it needs numba).
- `money` rounds a settlement to integer micro-units.
"""

import math
from typing import NamedTuple

from partage.errors import InputError, SettlementError
from partage.rules.rule import ANY_RULE, Rule
from partage.settle.paper import balance_factor

NONE, PAPER, EQUAL_SHARE, EQUAL_SHARE_EXPECTED = range(4)
SETTLEMENTS = ("paper", "equal-share", "equal-share-expected", "none")
CEILING_SEED = 0  # of the plays that measure ceilings; ledgers state it
_KINDS = {"none": NONE, "paper": PAPER, "equal-share": EQUAL_SHARE, "equal-share-expected": EQUAL_SHARE_EXPECTED}


class Settlement(NamedTuple):
    """A settlement as numbers: which one, the paper's c = (1 + sqrt(B))^2, and the controller's fee."""

    kind: int
    factor: float = 0.0
    fee: float = 0.0

    @property
    def name(self) -> str:
        """The name in the command line and in JSON."""
        return next(name for name, kind in _KINDS.items() if kind == self.kind)

    @property
    def has_ceilings(self) -> bool:
        """Whether charges are limited by ceilings: true of the equal-share settlements."""
        return self.kind in (EQUAL_SHARE, EQUAL_SHARE_EXPECTED)


def settlement_for(name: str, rule: Rule, fee: float = 0.0) -> Settlement:
    """Return the settlement of this name for a rule.

    Parameters
    ----------
    name
        One of `SETTLEMENTS`, or "default": the paper's if it is defined for the rule, otherwise none.
    rule
        The rule that is played. Its `settlements` say which ones fit; a rule without this attribute fits
        `partage.rules.rule.ANY_RULE`.
    fee
        What the controller of an equal-share settlement adds to the bill, as a fraction of all compensations.

    >>> from partage import BalancedETC, TwoUCB
    >>> settlement_for("default", BalancedETC()).name, settlement_for("default", TwoUCB()).name
    ('paper', 'none')
    """
    if not isinstance(name, str) or name not in ("default", *SETTLEMENTS):
        raise InputError(f"The settlement is {name!r}; it must be one of {', '.join(SETTLEMENTS)}.")
    if isinstance(fee, bool) or not isinstance(fee, (int, float)) or not 0 <= fee < math.inf:
        raise InputError(f"The fee is {fee!r}; it must be a number of at least 0, a fraction of all compensations.")
    fits: tuple[str, ...] = getattr(rule, "settlements", ANY_RULE)
    if name == "default":
        name = "paper" if "paper" in fits else "none"
    if fee and not name.startswith("equal-share"):
        raise InputError(f"The fee is {fee!r}, but the settlement {name} takes none; omit it, or use equal-share.")
    if name not in fits:
        infinite = " with an infinite balance" if getattr(rule, "balance", 1.0) == math.inf else ""
        raise SettlementError(
            f"The settlement {name} is not defined for the rule {rule.name}{infinite}; use one of {', '.join(fits)}."
        )
    factor = balance_factor(getattr(rule, "balance", 1.0)) if name == "paper" else 0.0
    return Settlement(_KINDS[name], factor, float(fee))

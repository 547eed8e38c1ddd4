"""Rules: how agents decide, one rule a file."""

import math

from partage.errors import InputError
from partage.rules.balanced_etc import BalancedETC, FullSharing
from partage.rules.balanced_glr import BalancedGLR
from partage.rules.kl_etc import KLETC
from partage.rules.no_protocol import NoProtocol
from partage.rules.two_ucb import TwoUCB

__all__ = ["KLETC", "RULES", "BalancedETC", "BalancedGLR", "FullSharing", "NoProtocol", "TwoUCB", "rule_by_name"]

RULES = ("balanced-etc", "unbalanced-etc", "balanced-glr", "kl-etc", "two-ucb", "full-sharing", "no-protocol")
_BALANCED: dict[str, type[BalancedETC] | type[KLETC]] = {
    rule.name: rule for rule in (BalancedETC, KLETC, FullSharing)
}


def rule_by_name(name: str, balance: float | None = None) -> BalancedETC | KLETC | BalancedGLR | TwoUCB | NoProtocol:
    """Return the rule of this name (`RULES`), with a balance where the rule has one (1 by default).

    >>> rule_by_name("unbalanced-etc")
    BalancedETC(balance=inf)
    """
    if name in _BALANCED:
        return _BALANCED[name](1.0 if balance is None else balance)
    if name not in RULES:
        raise InputError(f"The rule is {name!r}; it must be one of {', '.join(RULES)}.")
    if balance is not None and not (name == "unbalanced-etc" and balance == math.inf):
        raise InputError(f"The rule {name} takes no balance, and {balance!r} was given; leave it out.")
    if name == "unbalanced-etc":
        return BalancedETC(math.inf)
    if name == "balanced-glr":
        return BalancedGLR()
    return TwoUCB() if name == "two-ucb" else NoProtocol()

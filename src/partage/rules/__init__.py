"""Rules: how agents decide, one rule a file."""

import math

from partage.errors import InputError
from partage.rules.balanced_etc import BalancedETC, FullSharing
from partage.rules.no_protocol import NoProtocol
from partage.rules.two_ucb import TwoUCB

__all__ = ["RULES", "BalancedETC", "FullSharing", "NoProtocol", "TwoUCB", "rule_by_name"]

RULES = ("balanced-etc", "unbalanced-etc", "two-ucb", "full-sharing", "no-protocol")


def rule_by_name(name: str, balance: float | None = None) -> BalancedETC | FullSharing | TwoUCB | NoProtocol:
    """Return the rule of this name (`RULES`), with a balance where the rule has one (1 by default).

    >>> rule_by_name("unbalanced-etc")
    BalancedETC(balance=inf)
    """
    if name == "balanced-etc":
        return BalancedETC(1.0 if balance is None else balance)
    if name == "full-sharing":
        return FullSharing(1.0 if balance is None else balance)
    if name not in RULES:
        raise InputError(f"The rule is {name!r}; it must be one of {', '.join(RULES)}.")
    if balance is not None and not (name == "unbalanced-etc" and balance == math.inf):
        raise InputError(f"The rule {name} takes no balance, and {balance!r} was given; leave it out.")
    if name == "unbalanced-etc":
        return BalancedETC(math.inf)
    return TwoUCB() if name == "two-ucb" else NoProtocol()

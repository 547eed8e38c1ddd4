"""Balanced-ETC without a balance: a baseline."""

import math
from dataclasses import dataclass, field

from partage.rules.balanced_etc import BalancedETC


@dataclass(frozen=True)
class UnbalancedETC(BalancedETC):
    """Explore every active arm as often as its sharers can: Balanced-ETC with an infinite balance.

    >>> UnbalancedETC().balance
    inf
    """

    balance: float = field(default=math.inf, init=False)

    name = "unbalanced-etc"
    summary = "No balance: every active arm is broadcast as often as its sharers can."
    parameters = ()

"""Settlements: what each agent receives and pays, computed from the public record and the pull counts only.

- `core` computes a settlement in units of reward: rates, ceilings, charge, and whether it is finished and viable.
- `paper` and `equal_share` hold the formulas, and `ends` what a record allows. `first_gaps` holds what differs in
  collaborations of formats 1 and 2.
- `noiseless` is the formula of ceilings; `ceiling` plays 2-UCB to measure them (it needs numba).
- `money` rounds a settlement to integer micro-units.
"""

import math
from typing import NamedTuple

from partage.errors import InputError, SettlementError
from partage.rules.rule import ANY_RULE, Rule
from partage.settle.paper import balance_factor

NONE, PAPER, EQUAL_SHARE, EQUAL_SHARE_EXPECTED = range(4)
SETTLEMENTS = ("paper", "equal-share", "equal-share-expected", "none")
ALONE = ("two-ucb", "kl-ucb", "imed", "thompson", "best")  # learners alone, as the bar that agents are compared with
COVERAGE = 0.99  # the default
CEILING_SEED = 0  # of the plays that measure ceilings; ledgers state it
_KINDS = {"none": NONE, "paper": PAPER, "equal-share": EQUAL_SHARE, "equal-share-expected": EQUAL_SHARE_EXPECTED}


class Settlement(NamedTuple):
    """A settlement as numbers.

    Attributes
    ----------
    kind
        Which one.
    factor
        The paper's c = (1 + sqrt(B))^2.
    fee
        The controller's fee, as a fraction of all compensations.
    alone
        The learner that agents could play alone instead: one of `ALONE`. Ceilings are at most what it costs.
    coverage
        The probability with which the gaps that an equal share reads from the record hold. None for other
        settlements, and for an equal share by the terms of formats 1 and 2 (`first_terms`).
    """

    kind: int
    factor: float = 0.0
    fee: float = 0.0
    alone: str = "best"
    coverage: float | None = None

    @property
    def name(self) -> str:
        """The name in the command line and in JSON."""
        return next(name for name, kind in _KINDS.items() if kind == self.kind)

    @property
    def ceiling_seed(self) -> str | None:
        """The seed of the plays that measure ceilings, as ledgers state it; None if nothing is played for them."""
        return str(CEILING_SEED) if self.has_ceilings and self.alone == "two-ucb" else None

    @property
    def has_ceilings(self) -> bool:
        """Whether charges are limited by ceilings: true of the equal-share settlements."""
        return self.kind in (EQUAL_SHARE, EQUAL_SHARE_EXPECTED)


def settlement_for(
    name: str, rule: Rule, fee: float = 0.0, alone: str | None = None, coverage: float | None = None
) -> Settlement:
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
    alone
        The learner that agents are compared with: one of `ALONE`. By default 2-UCB for the paper's settlement,
        otherwise the best of all.
    coverage
        The probability with which an equal share covers: at least 0.5 and below 1; by default 0.99.

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
    if alone is not None and (not isinstance(alone, str) or alone not in ALONE):
        raise InputError(f"The learner alone is {alone!r}; it must be one of {', '.join(ALONE)}.")
    if coverage is not None:
        if isinstance(coverage, bool) or not isinstance(coverage, (int, float)) or not 0.5 <= coverage < 1:
            raise InputError(f"The coverage is {coverage!r}; it must be a number from 0.5 to below 1, a probability.")
        if not name.startswith("equal-share"):
            raise InputError(
                f"The coverage is {coverage!r}, but the settlement {name} has none; omit it, or use equal-share."
            )
    if name not in fits:
        infinite = " with an infinite balance" if getattr(rule, "balance", 1.0) == math.inf else ""
        raise SettlementError(
            f"The settlement {name} is not defined for the rule {rule.name}{infinite}; use one of {', '.join(fits)}."
        )
    factor = balance_factor(getattr(rule, "balance", 1.0)) if name == "paper" else 0.0
    if name.startswith("equal-share"):
        coverage = COVERAGE if coverage is None else float(coverage)
    return Settlement(_KINDS[name], factor, float(fee), alone or ("two-ucb" if name == "paper" else "best"), coverage)


def first_terms(settlement: Settlement) -> Settlement:
    """Return a settlement by the terms of formats 1 and 2: 2-UCB is the bar, and the coverage is 1 - 2/T."""
    return settlement._replace(alone="two-ucb", coverage=None)

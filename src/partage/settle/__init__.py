"""Settlements: what each agent receives and pays, computed from the public record and the pull counts only.

- `core` computes a settlement in units of reward: rates, ceilings, charge, and whether it is finished and viable.
- `paper`, `equal_share` and `pool` hold the formulas, and `ends` what a record allows. `first_gaps` holds what
  differs in collaborations of formats 1 and 2.
- `noiseless` is the formula of ceilings; `ceiling` measures them by `plays` of 2-UCB (both need numba).
- `money` rounds a settlement to integer micro-units.
"""

import math
from typing import NamedTuple, TypeGuard

from partage.errors import InputError, SettlementError
from partage.rules.rule import ANY_RULE, Rule
from partage.settle.paper import balance_factor

NONE, PAPER, EQUAL_SHARE, EQUAL_SHARE_EXPECTED, POOL, DUES = range(6)
SETTLEMENTS = ("paper", "equal-share", "equal-share-expected", "none", "pool", "dues")
ALONE = ("two-ucb", "kl-ucb", "imed", "thompson", "best")  # learners alone, as the bar that agents are compared with
COVERAGE = 0.99  # the default
CEILING_SEED = 0  # of the plays that measure ceilings; ledgers state it
_KINDS = {
    "none": NONE,
    "paper": PAPER,
    "equal-share": EQUAL_SHARE,
    "equal-share-expected": EQUAL_SHARE_EXPECTED,
    "pool": POOL,
    "dues": DUES,
}
_WITH_FEE = ("equal-share", "equal-share-expected", "pool")
_PREPAID = ("pool", "dues")


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
    prepaid
        The most that an agent of a pool can be charged, and what everyone pays as dues, in units of reward (D).
    underwriting
        The most that the controller may lose, in units of reward (U). None: it bears any loss.
    every_arm
        Whether a pool or dues pay for every arm but the leader, because the rule eliminates nothing; otherwise for
        eliminated arms.
    """

    kind: int
    factor: float = 0.0
    fee: float = 0.0
    alone: str = "best"
    coverage: float | None = None
    prepaid: float = 0.0
    underwriting: float | None = None
    every_arm: bool = False

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

    @property
    def is_prepaid(self) -> bool:
        """Whether every agent prepays: true of `pool` and `dues`."""
        return self.kind in (POOL, DUES)

    @property
    def pays_commits(self) -> bool:
        """Whether commits are paid for. A pool and dues pay told claims only: explore pulls that were reported."""
        return self.kind in (PAPER, EQUAL_SHARE, EQUAL_SHARE_EXPECTED)

    @property
    def assumes_truth(self) -> bool:
        """Whether a member who makes reports up can gain without a limit, unless there is an underwriting."""
        return self.pays_commits


def settlement_for(
    name: str,
    rule: Rule,
    fee: float = 0.0,
    alone: str | None = None,
    coverage: float | None = None,
    prepaid: float | None = None,
    underwriting: float | None = None,
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
        What the controller of an equal share or a pool adds to the bill, as a fraction of all compensations.
    alone
        The learner that agents are compared with: one of `ALONE`. By default 2-UCB for the paper's settlement,
        otherwise the best of all.
    coverage
        The probability with which an equal share covers: at least 0.5 and below 1; by default 0.99.
    prepaid
        D, in units of reward. A pool and dues need it; other settlements take none.
    underwriting
        U, in units of reward. By default 0 for a pool; for the paper's settlement and the equal shares None, so that
        the controller bears any loss. Dues need none.

    >>> from partage import BalancedETC, TwoUCB
    >>> settlement_for("default", BalancedETC()).name, settlement_for("default", TwoUCB()).name
    ('paper', 'none')
    """
    if not isinstance(name, str) or name not in ("default", *SETTLEMENTS):
        raise InputError(f"The settlement is {name!r}; it must be one of {', '.join(SETTLEMENTS)}.")
    if not _is_number(fee) or not 0 <= fee < math.inf:
        raise InputError(f"The fee is {fee!r}; it must be a number of at least 0, a fraction of all compensations.")
    fits: tuple[str, ...] = getattr(rule, "settlements", ANY_RULE)
    if name == "default":
        name = "paper" if "paper" in fits else "none"
    if fee and name not in _WITH_FEE:
        raise InputError(
            f"The fee is {fee!r}, but the settlement {name} takes none; omit it, or use equal-share or pool."
        )
    if alone is not None and (not isinstance(alone, str) or alone not in ALONE):
        raise InputError(f"The learner alone is {alone!r}; it must be one of {', '.join(ALONE)}.")
    covers = "coverage" in terms_taken(name)
    if coverage is not None:
        if not _is_number(coverage) or not 0.5 <= coverage < 1:
            raise InputError(f"The coverage is {coverage!r}; it must be a number from 0.5 to below 1, a probability.")
        if not covers:
            raise InputError(
                f"The coverage is {coverage!r}, but the settlement {name} has none; omit it, or use equal-share."
            )
    if name not in fits:
        infinite = " with an infinite balance" if getattr(rule, "balance", 1.0) == math.inf else ""
        raise SettlementError(
            f"The settlement {name} is not defined for the rule {rule.name}{infinite}; use one of {', '.join(fits)}."
        )
    return Settlement(
        _KINDS[name],
        balance_factor(getattr(rule, "balance", 1.0)) if name == "paper" else 0.0,
        float(fee),
        alone or ("two-ucb" if name == "paper" else "best"),
        (COVERAGE if coverage is None else float(coverage)) if covers else None,
        _prepaid(name, prepaid),
        _underwriting(name, underwriting),
        name in _PREPAID and not getattr(rule, "eliminates", False),
    )


def terms_taken(name: str) -> set[str]:
    """Return which of the terms fee, coverage, prepaid and underwriting a settlement takes.

    >>> sorted(terms_taken("pool")), sorted(terms_taken("dues"))
    (['fee', 'prepaid', 'underwriting'], ['prepaid'])
    """
    taken = {
        "fee": name in _WITH_FEE,
        "coverage": name.startswith("equal-share"),
        "prepaid": name in _PREPAID,
        "underwriting": name in SETTLEMENTS and name not in ("none", "dues"),
    }
    return {term for term, takes in taken.items() if takes}


def _prepaid(name: str, prepaid: object) -> float:
    """Return the prepaid amount, if it is allowed."""
    if prepaid is None:
        if name in _PREPAID:
            raise InputError(
                f"The settlement {name} needs a prepaid amount, the most that any agent can be charged; give it, or "
                "choose another settlement."
            )
        return 0.0
    if not _is_number(prepaid) or not 0 <= prepaid < math.inf:
        raise InputError(f"The prepaid amount is {prepaid!r}; it must be a finite number of at least 0.")
    if name not in _PREPAID:
        raise InputError(
            f"The prepaid amount is {prepaid!r}, but in the settlement {name} nobody prepays; omit it, or use pool "
            "or dues."
        )
    return float(prepaid)


def _underwriting(name: str, underwriting: object) -> float | None:
    """Return the underwriting, if it is allowed."""
    if underwriting is None:
        return 0.0 if name in _PREPAID else None
    if not _is_number(underwriting) or not 0 <= underwriting < math.inf:
        raise InputError(f"The underwriting is {underwriting!r}; it must be a finite number of at least 0.")
    if name in ("none", "dues"):
        raise InputError(
            f"The underwriting is {underwriting!r}, but the controller never loses with the settlement {name}; "
            "omit it."
        )
    return float(underwriting)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def first_terms(settlement: Settlement) -> Settlement:
    """Return a settlement by the terms of formats 1 and 2: 2-UCB is the bar, and the coverage is 1 - 2/T."""
    return settlement._replace(alone="two-ucb", coverage=None)

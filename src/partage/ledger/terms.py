"""What the money of a collaboration means, in sentences: for the create form, the join page and the command line."""

from collections.abc import Mapping
from typing import Any

from partage.ledger.config import PREPAID
from partage.ledger.events import FORMAT
from partage.ledger.fields import LEAST_MONEY

BOOKS = "Partage keeps the books; the money moves elsewhere."
PREPAY = (
    "With pool and dues a member prepays D, may get back more or less (with dues never more), and never loses more "
    "than D."
)
TRUTHFUL = "The settlements paper and equal-share assume truthful members, and need --underwriting."
FORM = (
    "What every member prepays (D): it may get back more or less, and never loses more. Leave it empty to settle no "
    "money."
)

# What each settlement is, for whoever creates a collaboration.
SUMMARIES = {
    "pool": "Members prepay D. Explore pulls are compensated from the pool, scaled down if it does not suffice, and "
    "all pay the same charge, at most D. You lose at most U. Recommended.",
    "dues": "Members prepay D and get back what their explore pulls earned, at most D. You keep the rest and lose "
    "nothing.",
    "paper": "As in the paper; assumes truthful members. The controller breaks even with a few thousand agents.",
    "equal-share": "Assumes truthful members. Every agent is covered with high probability; all pay the same share, "
    "up to a ceiling.",
    "equal-share-expected": "Assumes truthful members. Every agent is covered on average; the lowest charges.",
    "none": "No money moves.",
}


# What members learn of each other at the close where commits are paid, from format 5 on.
TALLIED = (
    "At the close, all members see how many commit pulls of each option every member was paid for, without names; "
    "in a small group they can tell whose each number is."
)
COUNTED = "They also see, by name, how many pulls of each member were settled."


def for_member(
    settlement: str,
    prepaid: float | None = None,
    underwriting: float | None = None,
    format: int = FORMAT,
    currency: str = "",
) -> str:
    """Return what a settlement means for somebody who is about to join, in a collaboration of this format.

    >>> for_member("pool", 20.0, 0.0)
    'You prepay 20; you may get back more or less, and you never lose more than 20.'
    >>> for_member("dues", 2.5, currency="EUR")
    'You prepay 2.50 EUR; you get back what your explore pulls earned, at most 2.50 EUR.'
    >>> for_member("none")
    'No money moves.'
    """
    if settlement == "none":
        return SUMMARIES["none"]
    if settlement in PREPAID and prepaid is not None:
        paid = f"{amount(prepaid)} {currency}".strip()
        if settlement == "dues":
            return f"You prepay {paid}; you get back what your explore pulls earned, at most {paid}."
        return f"You prepay {paid}; you may get back more or less, and you never lose more than {paid}."
    limit = (
        ""
        if underwriting is None
        else f", as far as the charges and the operator's {f'{amount(underwriting)} {currency}'.strip()} suffice"
    )
    return (
        "At the end, members who tried worse options for the others are compensated, and everyone pays their share"
        f"{limit}; this assumes truthful members.{_disclosed(settlement) if format > 4 else ''}"
    )


def _disclosed(settlement: str) -> str:
    """Return what members agree to disclose at the close."""
    return f" {TALLIED}" + (f" {COUNTED}" if settlement.startswith("equal-share") else "")


def of_histories(histories: int) -> str:
    """Return what past rewards mean for somebody who is about to join; empty if none are taken."""
    if not histories:
        return ""
    return (
        f" Members may attach up to {histories:,} past rewards of each option that they share: everyone sees them, "
        "and nobody is paid for them."
    )


def warnings_of(config: Mapping[str, Any], members: int) -> list[str]:
    """Return what the creator of a collaboration should know about its terms, in sentences.

    A prepaid amount that covers nothing is allowed, but most likely a mistake.

    >>> terms = {"settlement": "pool", "prepaid": 0.05, "underwriting": 0.0, "fee": 0.0, "value": 1.0}
    >>> print(*warnings_of(terms, members=12))
    A prepaid of 0.05 covers next to nothing: 12 members hold 0.60, and a single explore pull may lose 1.
    >>> warnings_of({**terms, "prepaid": 5.0}, members=12)
    []
    """
    if config["settlement"] not in PREPAID:
        return []
    held = members * config["prepaid"] + (config["underwriting"] or 0.0)
    if held >= (1 + config["fee"]) * config["value"]:
        return []
    return [
        f"A prepaid of {amount(config['prepaid'])} covers next to nothing: {members:,} members hold {amount(held)}, "
        f"and a single explore pull may lose {amount(config['value'])}."
    ]


def amount(money: float) -> str:
    """Return an amount of money as people write it, to the micro-unit.

    >>> amount(20.0), amount(1234.5), amount(0.000001)
    ('20', '1,234.50', '0.000001')
    """
    text = f"{round(money / LEAST_MONEY) * LEAST_MONEY:,.6f}".rstrip("0")
    whole, _, rest = text.partition(".")
    return f"{whole}.{rest.ljust(2, '0')}" if rest else whole

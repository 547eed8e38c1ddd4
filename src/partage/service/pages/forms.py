"""The create form: what it offers, and how its fields become a request of the API.

Rules, their parameters, settlements and defaults come from the registry and `partage.ledger.config`.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from partage.ledger.config import DEFAULTS as CONFIG
from partage.ledger.fields import not_allowed
from partage.ledger.messages import NewCollaboration
from partage.ledger.refusals import Refused
from partage.rules import Parameter, live_rules
from partage.settle import SETTLEMENTS, settlement_for

SUMMARIES = {
    "paper": "As in the paper. The controller breaks even with a few thousand agents.",
    "equal-share": "Every agent is covered with high probability; all pay the same share, up to a ceiling.",
    "equal-share-expected": "Every agent is covered on average; the lowest charges. Recommended.",
    "none": "No money moves.",
}


class RuleOption(NamedTuple):
    """A rule in the form: the settlements that fit it, and which of the form's parameters it takes."""

    name: str
    summary: str
    settlements: tuple[str, ...]
    parameters: tuple[str, ...]


class SettlementOption(NamedTuple):
    """A settlement in the form, and which of the form's fields it takes."""

    name: str
    summary: str
    takes: tuple[str, ...]


def rule_options() -> list[RuleOption]:
    """Return the rules to choose from."""
    return [
        RuleOption(name, rule.summary, rule().settlements, tuple(p.name for p in rule.parameters if p.name in CONFIG))
        for name, rule in live_rules().items()
    ]


def settlement_options() -> list[SettlementOption]:
    """Return the settlements to choose from."""
    return [SettlementOption(name, SUMMARIES.get(name, ""), _takes(name)) for name in SETTLEMENTS]


def _takes(settlement: str) -> tuple[str, ...]:
    """Return the fields that only an equal share takes, if it is one."""
    rule = next(made for made in (rule() for rule in live_rules().values()) if settlement in made.settlements)
    return ("fee", "alone", "coverage") if settlement_for(settlement, rule).has_ceilings else ()


def parameters() -> dict[str, Parameter]:
    """Return the parameters of rules that a collaboration can set."""
    return {p.name: p for rule in live_rules().values() for p in rule.parameters if p.name in CONFIG}


def defaults() -> dict[str, str]:
    """Return the form's fields as they are at first."""
    first = {"name": "", "arms": "", "horizon": "10000", "invites": "3"}
    return first | {name: "" if value is None else _text(value) for name, value in CONFIG.items()}


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def number(form: Mapping[str, str], field: str) -> float:
    """Return the number in a field. Commas, spaces and underscores may separate thousands."""
    text = form.get(field, "").strip()
    for separator in (",", " ", "_", "\u202f"):
        text = text.replace(separator, "")
    try:
        found = float(text or defaults()[field])
    except ValueError:
        raise not_allowed(field) from None
    if not math.isfinite(found):
        raise not_allowed(field)
    return found


def arms_of(text: str) -> list[str]:
    r"""Return the arms, one per line; if there is one line, it is split at commas.

    >>> arms_of("Pens, blue\n Paper \n\n"), arms_of("Pens, Paper,")
    (['Pens, blue', 'Paper'], ['Pens', 'Paper'])
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) == 1:
        lines = [part.strip() for part in lines[0].split(",") if part.strip()]
    return lines


def new_collaboration(form: Mapping[str, str]) -> NewCollaboration:
    """Return the collaboration that a form asks for. Its fields are checked where it is created."""
    balance: float | str | None = form.get("balance", "").strip().lower() or None
    if balance is not None and balance != "inf":
        try:
            balance = float(balance)
        except ValueError:
            raise not_allowed("balance") from None
    invites = number(form, "invites")
    if invites != int(invites):
        raise not_allowed("invites")
    return NewCollaboration(
        name=form.get("name", "").strip(),
        arms=arms_of(form.get("arms", "")),
        horizon=number(form, "horizon"),
        rule=form.get("rule") or CONFIG["rule"],
        balance=balance,
        settlement=form.get("settlement") or CONFIG["settlement"],
        fee=number(form, "fee"),
        alone=form.get("alone", "").strip() or None,
        coverage=number(form, "coverage") if form.get("coverage", "").strip() else None,
        value=number(form, "value"),
        claim_seconds=number(form, "claim_seconds"),
        invites=int(invites),
        request=form.get("request") or None,
    )


def at_field(refusal: Refused) -> dict[str, str]:
    """Return a refusal's sentence under the form field it belongs to, or under "" if it belongs to none."""
    field = (refusal.field or "").split("[")[0].split(".")[0]
    if field not in defaults():
        return {"": refusal.sentence}
    # The sentence is shown beside the field, so it need not name it.
    return {field: refusal.sentence.replace(f"The field {refusal.field} must be ", "This must be ")}

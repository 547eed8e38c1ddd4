"""The create form: what it offers, and how its fields become a request of the API.

Rules, their parameters, settlements and defaults come from the registry and `partage.ledger.config`.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from partage.ledger.config import DEFAULTS as CONFIG
from partage.ledger.config import PREPAID
from partage.ledger.fields import not_allowed
from partage.ledger.messages import NewCollaboration
from partage.ledger.refusals import Refused
from partage.ledger.terms import SUMMARIES
from partage.rules import Parameter, live_parameters, live_rules
from partage.settle import SETTLEMENTS, settlement_for

# The form's first choice is the default. The terms that assume truthful members come last.
DEFAULT = "A pool if members prepay (below), otherwise no money moves."
ORDER = ("pool", "dues", "none")
CLAIM_INTERVAL = 1.0  # seconds, proposed by the form


class RuleOption(NamedTuple):
    """A rule in the form: the settlements that fit it, and which of the form's fields it takes."""

    name: str
    summary: str
    settlements: tuple[str, ...]
    fields: tuple[str, ...]


class SettlementOption(NamedTuple):
    """A settlement in the form, and which of the form's fields it takes."""

    name: str
    summary: str
    takes: tuple[str, ...]


def rule_options() -> list[RuleOption]:
    """Return the rules to choose from."""
    return [
        RuleOption(name, rule.summary, rule().settlements, tuple(fields_of(name)))
        for name, rule in live_rules().items()
    ]


def settlement_options() -> list[SettlementOption]:
    """Return the settlements to choose from."""
    names = [*ORDER, *(name for name in SETTLEMENTS if name not in ORDER)]
    options = [SettlementOption(name, SUMMARIES.get(name, ""), _takes(name)) for name in names]
    return [SettlementOption("", DEFAULT, _takes("pool")), *options]


def _takes(settlement: str) -> tuple[str, ...]:
    """Return the fields that only some settlements take."""
    rule = next(made for made in (rule() for rule in live_rules().values()) if settlement in made.settlements)
    made = settlement_for(settlement, rule, prepaid=1.0 if settlement in PREPAID else None)
    found = ["prepaid"] if made.is_prepaid else []
    if settlement == "pool" or made.has_ceilings:
        found.append("fee")
    if settlement == "pool" or made.assumes_truth:
        found.append("underwriting")
    return (*found, "alone", "coverage") if made.has_ceilings else tuple(found)


def fields_of(rule: str) -> dict[str, Parameter]:
    """Return the fields for the parameters of a rule.

    Rules that take the same parameter may have different defaults, so each has a field of its own; the balance is
    one field.
    """
    own = {p.name: p for p in live_rules()[rule].parameters if p.name in CONFIG}
    return own | {f"{rule}.{name}": parameter for name, parameter in live_parameters(rule).items()}


def parameter_fields() -> dict[str, Parameter]:
    """Return the fields for the parameters of all rules."""
    return {field: parameter for rule in live_rules() for field, parameter in fields_of(rule).items()}


def defaults() -> dict[str, str]:
    """Return the form's fields as they are at first."""
    first = {"name": "", "arms": "", "horizon": "10000", "invites": "3"}
    first |= dict.fromkeys(parameter_fields(), "")
    first |= {name: "" if value is None else text_of(value) for name, value in CONFIG.items()}
    return first | {"claim_interval": text_of(CLAIM_INTERVAL)}


def text_of(value: object) -> str:
    """Return a value as people type it.

    >>> text_of(3.0), text_of(True), text_of("betting")
    ('3', 'true', 'betting')
    """
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


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
    rule = form.get("rule") or CONFIG["rule"]
    settlement = form.get("settlement") or None
    prepays = settlement or "pool"
    taken = _takes(prepays) if prepays in SETTLEMENTS else ()  # the form hides the other fields
    return NewCollaboration(
        name=form.get("name", "").strip(),
        arms=arms_of(form.get("arms", "")),
        horizon=number(form, "horizon"),
        rule=rule,
        balance=balance,
        parameters=_parameters(form, rule),
        settlement=settlement,
        fee=number(form, "fee"),
        prepaid=_optional(form, "prepaid") if "prepaid" in taken else None,
        underwriting=_optional(form, "underwriting") if "underwriting" in taken else None,
        alone=form.get("alone", "").strip() or None,
        coverage=_optional(form, "coverage"),
        value=number(form, "value"),
        claim_seconds=number(form, "claim_seconds"),
        claim_interval=number(form, "claim_interval"),
        signed=form.get("signed", "") in ("true", "yes"),
        currency=form.get("currency", "").strip() or None,
        histories=_whole(form, "histories"),
        most_arms=_whole(form, "most_arms") if form.get("most_arms", "").strip() else None,
        invites=_whole(form, "invites"),
        request=form.get("request") or None,
    )


def _whole(form: Mapping[str, str], field: str) -> int:
    """Return the whole number in a field."""
    found = number(form, field)
    if found != int(found):
        raise not_allowed(field)
    return int(found)


def _optional(form: Mapping[str, str], field: str) -> float | None:
    """Return the number in a field that may be empty."""
    return number(form, field) if form.get(field, "").strip() else None


def _parameters(form: Mapping[str, str], rule: str) -> dict[str, bool | int | float | str]:
    """Return the rule's parameters that were filled in; numbers as numbers."""
    found: dict[str, bool | int | float | str] = {}
    for name in live_parameters(rule) if rule in live_rules() else ():
        text = form.get(f"{rule}.{name}", "").strip()
        if text:
            try:
                found[name] = float(text)
            except ValueError:
                found[name] = text
    return found


def at_field(refusal: Refused, form: Mapping[str, str]) -> dict[str, str]:
    """Return a refusal's sentence under the form field it belongs to, or under "" if it belongs to none."""
    field, _, name = (refusal.field or "").split("[")[0].partition(".")
    if field == "parameters":
        field = f"{form.get('rule') or CONFIG['rule']}.{name}"
    if field not in defaults():
        return {"": refusal.sentence}
    # The sentence is shown beside the field, so it need not name it.
    return {field: refusal.sentence.replace(f"The field {refusal.field} must be ", "This must be ")}

"""What people type into forms, turned into what the API takes."""

import math
from collections.abc import Mapping

from partage.ledger.messages import NewCollaboration, not_allowed
from partage.ledger.refusals import Refused

RULES = {
    "balanced-etc": "The paper's rule: every arm in play is broadcast about equally often.",
    "balanced-glr": "Far fewer broadcasts: the evidence decides which arms are still worth trying. Recommended.",
    "kl-etc": "The paper's order of exploring, with a sharper test.",
    "unbalanced-etc": "No balance: an arm may be broadcast as often as its sharers like.",
}
SETTLEMENTS = {
    "": "The paper's for balanced-etc with a finite balance; none for the others.",
    "paper": "As in the paper; it pays for itself with thousands of agents.",
    "equal-share": "Everyone is covered with high probability, and all pay the same share, up to a ceiling.",
    "equal-share-expected": "Everyone is covered on average; the cheapest for all.",
    "none": "No money moves.",
}
DEFAULTS = {
    "name": "",
    "arms": "",
    "horizon": "10000",
    "rule": "balanced-etc",
    "balance": "",
    "settlement": "equal-share-expected",  # with it the controller does not lose where agents are few
    "fee": "0",
    "value": "1",
    "claim_seconds": "60",
    "invites": "3",
}


def number(form: Mapping[str, str], field: str) -> float:
    """Return the number in a field; thousands may be set apart by commas, spaces or underscores."""
    text = form.get(field, "").strip()
    for apart in (",", " ", "_", "\u202f"):
        text = text.replace(apart, "")
    try:
        found = float(text or DEFAULTS[field])
    except ValueError:
        raise not_allowed(field) from None
    if not math.isfinite(found):
        raise not_allowed(field)
    return found


def arms_of(text: str) -> list[str]:
    r"""Return the arms, one a line; in a single line, between commas.

    >>> arms_of("Pens, blue\n Paper \n\n"), arms_of("Pens, Paper,")
    (['Pens, blue', 'Paper'], ['Pens', 'Paper'])
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) == 1:
        lines = [part.strip() for part in lines[0].split(",") if part.strip()]
    return lines


def new_collaboration(form: Mapping[str, str]) -> NewCollaboration:
    """Return the collaboration that a form asks for; its fields are checked further where it is created."""
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
        rule=form.get("rule", DEFAULTS["rule"]),
        balance=balance,
        settlement=form.get("settlement") or None,
        fee=number(form, "fee"),
        value=number(form, "value"),
        claim_seconds=number(form, "claim_seconds"),
        invites=int(invites),
        request=form.get("request") or None,
    )


def at_field(refusal: Refused) -> dict[str, str]:
    """Return a refusal by the form's field it belongs to; under "" if it belongs to none."""
    field = (refusal.field or "").split("[")[0].split(".")[0]
    sentence = refusal.sentence
    if field in DEFAULTS:  # beside the field its name need not be said again
        lead = f"The field {refusal.field} must be "
        sentence = sentence.replace(lead, "This must be ")
    return {field if field in DEFAULTS else "": sentence}

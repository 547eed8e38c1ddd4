"""The wire: what requests and answers are made of, and every check of what is sent.

Checks say what is allowed and never repeat what was sent.
"""

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from partage.ledger.refusals import Refused, invalid
from partage.rules import live_rules, make_rule
from partage.settle import SETTLEMENTS, settlement_for

LARGEST_BODY = 256 * 1024
MOST_ARMS = 1000
MOST_INVITES = 1000
LONGEST_NAME = 100
LONGEST_HORIZON = 10**15  # a whole number that every JSON reader keeps exact
LONGEST_CLAIM = 7 * 24 * 3600
MOST_VALUE = 1e12
LIVE_RULES = tuple(live_rules())


class Body(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of a request."""


class NewCollaboration(Body, frozen=True, kw_only=True):
    """A collaboration to create."""

    name: str
    arms: list[str]
    horizon: int | float
    balance: float | str | None = None
    rule: str = "balanced-etc"
    settlement: str | None = None
    fee: float = 0.0
    value: float = 1.0
    claim_seconds: float = 60.0
    invites: int = 1
    request: str | None = None


class NewInvites(Body, frozen=True, kw_only=True):
    """More invites: how many, and for how long each may be used."""

    invites: int = 1
    hours: float = 7 * 24.0
    request: str | None = None


class NewAgent(Body, frozen=True, kw_only=True):
    """An agent who joins."""

    name: str
    shares: list[str]
    request: str | None = None


class Ask(Body, frozen=True, kw_only=True):
    """The question what to pull next."""

    request: str | None = None
    explore_only: bool = False


class Tell(Body, frozen=True, kw_only=True):
    """The reward of a claim. The pull itself makes it safe to repeat; a `request` is taken and not needed."""

    pull: int
    reward: float
    request: str | None = None


class CommitRun(Body, frozen=True, kw_only=True):
    """Commit pulls of an arm on a version of the board."""

    version: int
    arm: str
    pulls: int


class Commits(Body, frozen=True, kw_only=True):
    """Commit pulls that the client decided by itself."""

    request: str
    runs: list[CommitRun]


class Consent(Body, frozen=True, kw_only=True):
    """The arms to share from now on."""

    shares: list[str]
    request: str | None = None


class Error(Struct, omit_defaults=True):
    """What is wrong, and what is allowed."""

    error: str
    field: str | None = None


class Created(Struct):
    """A new collaboration, and the codes that let agents join."""

    id: str
    invites: list[str]


class Joined(Struct):
    """A new agent and her token, which is shown this once."""

    agent: str
    token: str


class Pull(Struct):
    """A pull to make. With `share`, it is a claim: tell its reward; otherwise its reward is hers alone."""

    pull: int
    arm: str
    share: bool
    version: int


class Told(Struct):
    """The board's version with this report, and the ledger's head after it."""

    version: int
    head: str


class ArmOnBoard(Struct):
    """An arm: its record (`sum` of rewards over `broadcasts`), and where it stands."""

    name: str
    broadcasts: int
    sum: float
    mean: float | None
    radius: float | None
    active: bool
    public: bool
    sharers: int
    claims: int
    open: bool


class BoardView(Struct):
    """The board: the public state. `version` counts broadcasts; `leader` is null before the first."""

    version: int
    closed: bool
    leader: str | None
    arms: list[ArmOnBoard]
    horizon: int
    rule: str
    balance: float | str | None
    tie_order: list[str]
    agents: int


class CollaborationView(Struct):
    """The configuration of a collaboration, and how far it is."""

    id: str
    name: str
    arms: list[str]
    horizon: int
    rule: str
    balance: float | str | None
    settlement: str
    fee: float
    value: float
    claim_seconds: float
    created: int
    tie_seed: str
    tie_order: list[str]
    agents: int
    version: int
    closed: bool


class AgentView(Struct):
    """An agent as the operator, or she herself, sees her."""

    agent: str
    name: str
    shares: list[str]
    explore: int
    commit: int
    left: bool
    horizon_left: int


class InviteView(Struct):
    """An invite that may still be used; its code is not kept."""

    id: str
    created: int
    expires: int


class SettlementRow(Struct):
    """An agent's part, in micro-units. net = compensation - charge: positive, she receives."""

    agent: str
    name: str
    explore: int
    commit: int
    compensation: int
    charge: int
    net: int


class SettlementView(Struct):
    """Who gets and pays what, in micro-units. Before the close: as if it closed now."""

    closed: bool
    settlement: str
    rows: list[SettlementRow]
    compensation: int
    charge: int
    profit: int
    finished: bool
    viable: bool
    uncovered: int
    value: float
    fee: float


_NAME = f"a text of 1 to {LONGEST_NAME} characters, not all of them spaces and none a control character"

# What a field must be, for sentences.
_ALLOWED = {
    "name": _NAME,
    "arms": f"a list of 1 to {MOST_ARMS:,} different names of 1 to {LONGEST_NAME} characters",
    "horizon": f"a whole number from 2 to {LONGEST_HORIZON:,}",
    "balance": 'a number of at least 1, or "inf"',
    "rule": "one of " + ", ".join(LIVE_RULES),
    "settlement": "one of " + ", ".join(SETTLEMENTS),
    "fee": "a number from 0 to 100, a part of all compensations",
    "value": f"a number above 0, at most {MOST_VALUE:,.0f}, the money per unit of reward",
    "claim_seconds": f"a number above 0, at most {LONGEST_CLAIM:,}",
    "invites": f"a whole number from 0 to {MOST_INVITES:,}",
    "hours": "a number above 0, at most 8,760",
    "request": f"a text of 1 to {LONGEST_NAME} characters, a new one for each request",
    "shares": "a list of names of arms of this collaboration, each once",
    "explore_only": "true or false",
    "pull": "the number of a pull that ask gave you",
    "reward": "a number from 0 to 1",
    "runs": "a list of at least one {version, arm, pulls}",
    "version": "a whole number of at least 0, a version of the board",
    "arm": "the name of an arm of this collaboration",
    "pulls": "a whole number of at least 1",
    "shares[]": "the name of an arm",
    "arms[]": _NAME,
}


def not_allowed(field: str) -> Refused:
    """Return the refusal of a field that is not what it must be."""
    name = re.sub(r"\[\d*\]$", "[]", field.rsplit(".", 1)[-1])
    name = name if name in _ALLOWED else name.split("[")[0]
    return invalid(field, f"The field {field} must be {_ALLOWED.get(name, 'something else')}.")


def refusal_of(message: str, kind: Any) -> Refused:
    """Turn msgspec's message into a sentence of ours. It names places and types, never what was sent."""
    what, _, place = message.partition(" - at `$")
    field = place.rstrip("`").removeprefix(".").replace("[...]", "[]")
    known = ", ".join(getattr(kind, "__struct_fields__", ()))
    if "unknown field" in what:
        return Refused(422, f"The body has a field that is not known here; known are {known}.", field or None)
    if "missing required field" in what:
        name = what.rsplit("`", 2)[-2]
        full = f"{field}.{name}" if field else name
        return invalid(full, f"The field {full} is missing; it must be {_ALLOWED.get(name, 'there')}.")
    if not field:
        return Refused(400, f"The body must be a JSON object with the fields {known}.")
    return not_allowed(field)


def not_json() -> Refused:
    """Return the refusal of a body that cannot be read."""
    return Refused(400, 'The body is not JSON; send an object such as {"request": "…"}.')


def checked_name(field: str, name: str) -> str:
    """Return a name that people can read: 1 to 100 characters, not all space, none of them a control character."""
    if not name.strip() or len(name) > LONGEST_NAME or any(unicodedata.category(c) in ("Cc", "Cs") for c in name):
        raise not_allowed(field)
    return name


def checked_request(request: str | None) -> str | None:
    """Return the id of a request."""
    return None if request is None else checked_name("request", request)


def checked_arms(field: str, names: Sequence[str], arms: dict[str, int]) -> list[int]:
    """Return the numbers of these arms, or say which there are."""
    if len(set(names)) != len(names):
        raise not_allowed(field)
    try:
        return [arms[name] for name in names]
    except KeyError:
        raise unknown_arm(field, arms) from None


def unknown_arm(field: str, arms: dict[str, int]) -> Refused:
    """Return the refusal of an arm that is not in the collaboration."""
    some = ", ".join(list(arms)[:10]) + (f" and {len(arms) - 10} more" if len(arms) > 10 else "")
    return invalid(field, f"The field {field} names an arm that is not in this collaboration; its arms are {some}.")


def checked_config(new: NewCollaboration) -> dict[str, Any]:
    """Return the configuration of a new collaboration, defaults filled in, each number of the type that is stored."""
    checked_name("name", new.name)
    if not 1 <= len(new.arms) <= MOST_ARMS:
        raise not_allowed("arms")
    for place, arm in enumerate(new.arms):
        checked_name(f"arms[{place}]", arm)
    if len(set(new.arms)) != len(new.arms):
        raise not_allowed("arms")
    if new.horizon != int(new.horizon) or not 2 <= new.horizon <= LONGEST_HORIZON:
        raise not_allowed("horizon")
    if new.rule not in LIVE_RULES:
        raise not_allowed("rule")
    if new.settlement is not None and new.settlement not in SETTLEMENTS:
        raise not_allowed("settlement")
    for field, lowest, most in (
        ("fee", 0.0, 100.0),
        ("value", 0.0, MOST_VALUE),
        ("claim_seconds", 0.0, LONGEST_CLAIM),
    ):
        number = getattr(new, field)
        if not lowest <= number <= most or (number == 0 and field != "fee"):
            raise not_allowed(field)
    if not 0 <= new.invites <= MOST_INVITES:
        raise not_allowed("invites")
    checked_request(new.request)

    balance = new.balance
    takes_balance = new.rule in ("balanced-etc", "kl-etc")
    if isinstance(balance, str) and balance != "inf":
        raise not_allowed("balance")
    if isinstance(balance, int | float) and not balance >= 1:
        raise not_allowed("balance")
    if not takes_balance and balance is not None and not (new.rule == "unbalanced-etc" and balance == "inf"):
        raise invalid("balance", f"The rule {new.rule} takes no balance; leave it out.")
    if takes_balance and balance is None:
        balance = 1.0
    rule = make_rule(new.rule, balance=math.inf if balance == "inf" else balance)
    paper = new.rule == "balanced-etc" and balance != "inf"
    name = new.settlement or ("paper" if paper else "none")
    if name == "paper" and not paper:
        raise invalid(
            "settlement",
            "The paper's settlement is defined for the rule balanced-etc with a finite balance only; "
            "use equal-share, equal-share-expected or none.",
        )
    if new.fee and not name.startswith("equal-share"):
        raise invalid("fee", f"The settlement {name} takes no fee; leave it out, or use equal-share.")
    settlement_for(name, rule, new.fee)
    return {
        "name": new.name,
        "arms": tuple(new.arms),
        "horizon": int(new.horizon),
        "rule": new.rule,
        "balance": balance if balance is None or isinstance(balance, str) else float(balance),
        "settlement": name,
        "fee": float(new.fee),
        "value": float(new.value),
        "claim_seconds": float(new.claim_seconds),
    }

"""The fields of requests: what each must be, and the refusal if it is not.

Sentences say what is allowed and never repeat what was sent.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from partage.ledger.keys import public_bytes
from partage.ledger.refusals import Refused, invalid
from partage.ledger.ties import is_commitment, is_part
from partage.rules import live_rules
from partage.settle import ALONE, SETTLEMENTS

LARGEST_BODY = 256 * 1024  # bytes
MOST_ARMS = 1000
MOST_PAID_ARMS = 100  # where commits are paid: the close tallies each member's commits of each arm
MOST_PLAYED_ARMS = 10  # where ceilings are measured by plays of 2-UCB, which take long with more
MOST_INVITES = 1000
MOST_HOURS = 8760
MOST_RUNS = 1000  # in one report of commit pulls
MOST_HISTORY = 1000  # past rewards of one arm that one member may attach: bets cost as much for each as for a tell
LONGEST_NAME = 100
LONGEST_CURRENCY = 12
LONGEST_REASON = 500
LONGEST_HORIZON = 10**15  # every JSON reader keeps whole numbers of this size exact
MOST_PACE = 1e9  # pulls per hour
LONGEST_CLAIM = 7 * 24 * 3600  # seconds
MOST_VALUE = 1e12
MOST_MONEY = 1e9  # of prepaid and underwriting: a float has all micro-units of it, also as a multiple of `value`
LEAST_MONEY = 1e-6  # amounts are whole micro-units

RESERVED = ("controller", "operator")  # names that members cannot take

_VISIBLE = "with no control, formatting or other invisible characters, and not only spaces"
_NAME = f"a text of 1 to {LONGEST_NAME} characters, {_VISIBLE}"

_ALLOWED = {
    "name": _NAME,
    "arms": f"a list of 1 to {MOST_ARMS:,} different names of 1 to {LONGEST_NAME} characters, in whatever case",
    "arms[]": _NAME,
    "horizon": f"a whole number from 2 to {LONGEST_HORIZON:,}",
    "balance": 'a number of at least 1, or "inf"',
    "parameters": "an object with parameters of the rule: texts, numbers, true or false",
    "settlement": "one of " + ", ".join(SETTLEMENTS),
    "fee": "a number from 0 to 100: the controller's fee, as a fraction of all compensations",
    "alone": "one of " + ", ".join(ALONE) + ": the learner that agents could play alone",
    "coverage": "a number from 0.5 to below 1: the probability with which an equal share covers",
    "value": f"a number above 0, at most {MOST_VALUE:,.0f}: money per unit of reward",
    "claim_seconds": f"a number above 0, at most {LONGEST_CLAIM:,}",
    "prepaid": (
        f"a number from {LEAST_MONEY:f} to {MOST_MONEY:,.0f}: the money that every member prepays, and the most that "
        "it can lose"
    ),
    "underwriting": f"a number from 0 to {MOST_MONEY:,.0f}: the most money that the operator can lose",
    "claim_interval": (f"a number from 0 to {LONGEST_CLAIM:,}: the least seconds between two claims of one member"),
    "currency": f"a text of 1 to {LONGEST_CURRENCY} characters: what amounts are in, such as EUR or hours",
    "signed": "true or false: whether members sign their requests",
    "most_arms": f"a whole number from the number of arms to {MOST_ARMS:,}: how many there may be later",
    "histories": f"a whole number from 0 to {MOST_HISTORY:,}: past rewards that each member may attach for each arm",
    "invites": f"a whole number from 0 to {MOST_INVITES:,}",
    "hours": f"a number above 0, at most {MOST_HOURS:,}",
    "reason": f"a text of 1 to {LONGEST_REASON} characters, {_VISIBLE}",
    "request": f"a text of 1 to {LONGEST_NAME} characters, a new one for each request",
    "shares": "a list of arms of this collaboration, each at most once",
    "shares[]": "the name of an arm",
    "pace": f"a number above 0, at most {MOST_PACE:,.0f}: pulls per hour",
    "key": "a public Ed25519 key: 32 bytes in base64",
    "tie_commitment": "64 hex digits: the SHA-256 of a nonce of 16 bytes",
    "nonce": "32 hex digits: the 16 bytes whose SHA-256 you joined with",
    "checkpoint": "a checkpoint of this ledger as a signed note, with your cosignature",
    "explore_only": "true or false",
    "pull": "the number of a pull that ask returned",
    "reward": "a number from 0 to 1",
    "rewards": f"a list of 1 to {MOST_HISTORY:,} numbers from 0 to 1, as many as the collaboration takes",
    "rewards[]": "a number from 0 to 1",
    "runs": f"a list of at most {MOST_RUNS:,} {{version, arm, pulls}}, with at least one pull here or in unnamed",
    "unnamed": "a whole number of at least 0",
    "version": "a whole number of at least 0: a version of the board",
    "arm": "the name of an arm of this collaboration",
    "pulls": "a whole number of at least 1",
}


def _text(longest: int) -> dict[str, Any]:
    return {"min_length": 1, "max_length": longest, "pattern": r"^[^\u0000-\u001f\u007f-\u009f]+$"}


# What of this the OpenAPI document can say, in the terms of JSON Schema. A struct may have a limit of its own.
LIMITS: dict[str, dict[str, Any]] = {
    "name": _text(LONGEST_NAME),
    "arms": {"min_items": 1, "max_items": MOST_ARMS, "unique_items": True},
    "arms[]": _text(LONGEST_NAME),
    "horizon": {"minimum": 2, "maximum": LONGEST_HORIZON},
    "rule": {"enum": list(live_rules())},
    "balance": {"minimum": 1, "enum": ["inf"]},
    "settlement": {"enum": list(SETTLEMENTS)},
    "fee": {"minimum": 0, "maximum": 100},
    "alone": {"enum": list(ALONE)},
    "coverage": {"minimum": 0.5, "exclusive_maximum": 1},
    "value": {"exclusive_minimum": 0, "maximum": MOST_VALUE},
    "claim_seconds": {"exclusive_minimum": 0, "maximum": LONGEST_CLAIM},
    "prepaid": {"minimum": LEAST_MONEY, "maximum": MOST_MONEY},
    "underwriting": {"minimum": 0, "maximum": MOST_MONEY},
    "claim_interval": {"minimum": 0, "maximum": LONGEST_CLAIM},
    "currency": _text(LONGEST_CURRENCY),
    "histories": {"minimum": 0, "maximum": MOST_HISTORY},
    "most_arms": {"minimum": 1, "maximum": MOST_ARMS},
    "invites": {"minimum": 0, "maximum": MOST_INVITES},
    "NewInvites.invites": {"minimum": 1, "maximum": MOST_INVITES},
    "hours": {"exclusive_minimum": 0, "maximum": MOST_HOURS},
    "reason": _text(LONGEST_REASON),
    "request": _text(LONGEST_NAME),
    "shares": {"max_items": MOST_ARMS, "unique_items": True},
    "pace": {"exclusive_minimum": 0, "maximum": MOST_PACE},
    "key": {"pattern": "^[A-Za-z0-9+/]{43}=$"},
    "tie_commitment": {"pattern": "^[0-9a-f]{64}$"},
    "nonce": {"pattern": "^[0-9a-f]{32}$"},
    "reward": {"minimum": 0, "maximum": 1},
    "rewards": {"min_items": 1, "max_items": MOST_HISTORY},
    "rewards[]": {"minimum": 0, "maximum": 1},
    "runs": {"max_items": MOST_RUNS},
    "unnamed": {"minimum": 0},
    "version": {"minimum": 0},
    "pulls": {"minimum": 1},
}


ENUMS = {name: LIMITS[name] for name in ("rule", "settlement", "alone")}  # which answers keep, too


def allowed(field: str) -> str:
    """Return what a field must be, as the end of a sentence.

    >>> allowed("reward"), allowed("runs[3].pulls")
    ('a number from 0 to 1', 'a whole number of at least 1')
    """
    name = re.sub(r"\[\d*\]$", "[]", field.rsplit(".", 1)[-1])
    if name == "rule":  # more may be loaded
        return "one of " + ", ".join(live_rules())
    return _ALLOWED.get(name) or _ALLOWED[name.split("[")[0]]


def not_allowed(field: str) -> Refused:
    """Return the refusal of a field whose value is not allowed."""
    try:
        return invalid(field, f"The field {field} must be {allowed(field)}.")
    except KeyError:
        return invalid(field, f"The field {field} is invalid.")


def unknown_arm(field: str, arms: Mapping[str, int]) -> Refused:
    """Return the refusal of an arm that is not in the collaboration."""
    some = ", ".join(list(arms)[:10]) + (f" and {len(arms) - 10} more" if len(arms) > 10 else "")
    sentence = f"The field {field} names an arm that is not in this collaboration; its arms are {some}."
    return invalid(field, sentence, "unknown_arm")


# --- names ----------------------------------------------------------------------------------------------------

# Control, format, surrogate and private-use characters, and separators of lines and paragraphs. What is unassigned
# depends on Python's version, so only new names are checked for it, not those in a ledger.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_UNASSIGNED = frozenset({"Cn"})
# Characters of other categories that show nothing: fillers, joiners, variation selectors, and the empty Braille cell.
_EMPTY = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def normal(text: str) -> str:
    """Return a text as it is stored: in Unicode's form NFKC, with single spaces between words and none around them.

    >>> normal("  Moulin\u00a0 \uff21 ")
    'Moulin A'
    """
    return " ".join(part for part in unicodedata.normalize("NFKC", text).split(" ") if part)


def alike(name: str) -> str:
    """Return what two names have in common that people would take for one: they differ only in case.

    >>> alike("Stra\u00dfe") == alike("STRASSE")
    True
    """
    return normal(normal(name).casefold())


def checked_name(field: str, name: str) -> str:
    """Return a name as it is stored: normal, and all of it can be seen."""
    return _visible(field, name, LONGEST_NAME, _HIDDEN)


def checked_new_name(field: str, name: str) -> str:
    """Return a new name as it is stored: also without characters that this Python does not know."""
    return _visible(field, name, LONGEST_NAME, _HIDDEN | _UNASSIGNED)


def checked_member_name(name: str) -> str:
    """Return the name of a new member as it is stored: also not one that stands for somebody else."""
    name = checked_name("name", name)
    if alike(name) in RESERVED:
        raise invalid("name", f"The names {' and '.join(RESERVED)} are reserved; choose another.", "reserved_name")
    return name


def checked_reason(reason: str) -> str:
    """Return a reason as it is stored: normal, and all of it can be seen."""
    return _visible("reason", reason, LONGEST_REASON, _HIDDEN)


def _visible(field: str, text: str, longest: int, hidden: Collection[str]) -> str:
    found = normal(text)
    if not 0 < len(found) <= longest or unicodedata.category(found[0])[0] == "M":  # a mark needs a letter before it
        raise not_allowed(field)
    if _EMPTY.search(found) or any(c != " " and (unicodedata.category(c) in hidden or c.isspace()) for c in found):
        raise not_allowed(field)
    return found


def checked_text(field: str, text: str, longest: int = LONGEST_NAME) -> str:
    """Return a text as it is: an id, or a name by the terms of formats 1 to 4."""
    if not text.strip() or len(text) > longest or any(unicodedata.category(c) in ("Cc", "Cs") for c in text):
        raise not_allowed(field)
    return text


def checked_commitment(commitment: str | None) -> str | None:
    """Return a commitment to a nonce, or None if the agent made none."""
    if commitment is not None and not is_commitment(commitment):
        raise not_allowed("tie_commitment")
    return commitment


def checked_key(key: str | None) -> str | None:
    """Return a public key, or None if the agent has none."""
    if key is not None and public_bytes(key) is None:
        raise not_allowed("key")
    return key


def checked_nonce(nonce: str) -> str:
    """Return a nonce for the tie order."""
    if not is_part(nonce):
        raise not_allowed("nonce")
    return nonce


def checked_request(request: str | None) -> str | None:
    """Return a request id, or None if the request has none."""
    return None if request is None else checked_text("request", request)


def checked_reward(reward: float) -> float:
    """Return a reward in [0, 1]."""
    if not 0 <= reward <= 1:
        raise not_allowed("reward")
    return reward


def checked_rewards(rewards: Sequence[float]) -> tuple[float, ...]:
    """Return past rewards, each in [0, 1]."""
    if not 1 <= len(rewards) <= MOST_HISTORY:
        raise not_allowed("rewards")
    for place, reward in enumerate(rewards):
        if not 0 <= reward <= 1:
            raise not_allowed(f"rewards[{place}]")
    return tuple(float(reward) for reward in rewards)


def checked_arms(field: str, names: Sequence[str], arms: Mapping[str, int]) -> list[int]:
    """Return the numbers of these arms, each of which may be named once."""
    if len(set(names)) != len(names):
        raise not_allowed(field)
    try:
        return [arms[name] for name in names]
    except KeyError:
        raise unknown_arm(field, arms) from None

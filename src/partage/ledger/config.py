"""The configuration of a collaboration: its fields, their defaults, and what is allowed.

The API, the create form, the command line and `verify` all read it here.
"""

import math
from typing import Any

import msgspec
from msgspec import Struct

from partage.ledger.fields import (
    LIVE_RULES,
    LONGEST_CLAIM,
    LONGEST_HORIZON,
    MOST_ARMS,
    MOST_VALUE,
    allowed,
    checked_name,
    not_allowed,
)
from partage.ledger.refusals import invalid
from partage.rules import KLETC, BalancedETC, BalancedGLR, rule_by_name
from partage.settle import SETTLEMENTS

__all__ = ["DEFAULTS", "Config", "LiveRule", "allowed", "checked_config", "live_rule"]

LiveRule = BalancedETC | BalancedGLR | KLETC


class Config(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a collaboration is set up. The defaults are the ones we recommend.

    Attributes
    ----------
    name
        What people call it.
    arms
        The names of the arms.
    horizon
        Pulls per agent.
    rule, balance
        The rule that decides each pull, and its balance, if it takes one: a number, or "inf".
    settlement, fee
        How the agents settle, and the controller's fee as a fraction of all compensations.
    value
        Money per unit of reward.
    claim_seconds
        How long a claim waits for its report.
    """

    name: str
    arms: list[str]
    horizon: int | float
    rule: str = "balanced-glr"
    balance: float | str | None = None
    settlement: str | None = "equal-share-expected"  # null stands for the default, as it did in release 0.1
    fee: float = 0.0
    value: float = 1.0
    claim_seconds: float = 60.0


DEFAULTS: dict[str, Any] = {
    field.name: field.default for field in msgspec.structs.fields(Config) if field.default is not msgspec.NODEFAULT
}


def checked_config(config: Config) -> dict[str, Any]:
    """Return a configuration as it is recorded: checked, defaults filled in, each number of the recorded type.

    Raises
    ------
    Refused
        A field is not allowed, or fields do not fit each other; the sentence says what is allowed.
    """
    checked_name("name", config.name)
    if not 1 <= len(config.arms) <= MOST_ARMS:
        raise not_allowed("arms")
    for place, arm in enumerate(config.arms):
        checked_name(f"arms[{place}]", arm)
    if len(set(config.arms)) != len(config.arms):
        raise not_allowed("arms")
    if not 2 <= config.horizon <= LONGEST_HORIZON or config.horizon != int(config.horizon):
        raise not_allowed("horizon")
    if config.rule not in LIVE_RULES:
        raise not_allowed("rule")
    if not 0 <= config.fee <= 100:
        raise not_allowed("fee")
    if not 0 < config.value <= MOST_VALUE:
        raise not_allowed("value")
    if not 0 < config.claim_seconds <= LONGEST_CLAIM:
        raise not_allowed("claim_seconds")
    balance = _checked_balance(config.rule, config.balance)
    return {
        "name": config.name,
        "arms": tuple(config.arms),
        "horizon": int(config.horizon),
        "rule": config.rule,
        "balance": balance,
        "settlement": _checked_settlement(config, live_rule(config.rule, balance)),
        "fee": float(config.fee),
        "value": float(config.value),
        "claim_seconds": float(config.claim_seconds),
    }


def live_rule(name: str, balance: float | str | None) -> LiveRule:
    """Return the rule of a collaboration. A balance of "inf" is how JSON says infinity."""
    rule = rule_by_name(name, _number(balance))
    assert isinstance(rule, LiveRule)
    return rule


def _number(balance: float | str | None) -> float | None:
    return None if balance is None else float(balance)


def _checked_balance(rule: str, balance: float | str | None) -> float | str | None:
    """Return the balance as it is recorded: the rule's default where none was given."""
    if isinstance(balance, str):
        if balance != "inf":
            raise not_allowed("balance")
    elif balance is not None:
        balance = float(balance)
        if not 1 <= balance < math.inf:
            raise not_allowed("balance")
    takes_balance = rule in ("balanced-etc", "kl-etc")
    if takes_balance:
        return 1.0 if balance is None else balance
    if balance is not None and not (rule == "unbalanced-etc" and balance == "inf"):
        raise invalid("balance", f"The rule {rule} takes no balance; leave it out.")
    return balance


def _checked_settlement(config: Config, rule: LiveRule) -> str:
    """Return the settlement, which must fit the rule and the fee."""
    name = config.settlement or DEFAULTS["settlement"]
    if name not in SETTLEMENTS:
        raise not_allowed("settlement")
    paper = isinstance(rule, BalancedETC) and math.isfinite(rule.balance)
    fitting = [one for one in SETTLEMENTS if one != "paper" or paper]
    if name not in fitting:
        sentence = f"This settlement does not fit the rule and its balance; these do: {', '.join(fitting)}."
        raise invalid("settlement", sentence)
    if config.fee and not name.startswith("equal-share"):
        raise invalid("fee", f"The settlement {name} takes no fee; leave it out, or use equal-share.")
    return str(name)

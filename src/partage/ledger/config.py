"""The configuration of a collaboration: its fields, their defaults, and what is allowed.

The API, the create form, the command line and `verify` all read it here.
"""

import math
from collections.abc import Collection, Hashable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, Struct, UnsetType

from partage.board import Board, Pull, Record
from partage.errors import InputError
from partage.ledger.events import FORMAT, Create
from partage.ledger.fields import (
    LEAST_MONEY,
    LONGEST_CLAIM,
    LONGEST_CURRENCY,
    LONGEST_HORIZON,
    MOST_ARMS,
    MOST_HISTORY,
    MOST_MONEY,
    MOST_PAID_ARMS,
    MOST_PLAYED_ARMS,
    MOST_VALUE,
    alike,
    allowed,
    checked_name,
    checked_text,
    not_allowed,
)
from partage.ledger.own_rules import make_own, own_rule
from partage.ledger.refusals import invalid
from partage.rules import OWN_RULES, Parameter, Rule, live_parameters, live_rules, make_rule
from partage.rules.network_glr import check_arms
from partage.rules.weighing import Weighed
from partage.settle import ALONE, SETTLEMENTS, Settlement, settlement_for
from partage.tape import Draws

__all__ = ["DEFAULTS", "PREPAID", "Config", "LiveRule", "allowed", "checked_config", "live_rule", "rule_of"]

PREPAID = ("pool", "dues")  # settlements whose members prepay


class Config(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a collaboration is set up. The defaults are the ones we recommend.

    Attributes
    ----------
    name
        Display name.
    arms
        The names of the arms.
    horizon
        Pulls per agent.
    rule, balance, parameters
        The rule that decides each pull, its balance, if it takes one (a number, or "inf"), and its other parameters,
        by name.
    settlement, fee
        How the agents settle, and the controller's fee as a fraction of all compensations. None: a pool if the
        members prepay, otherwise nothing is settled.
    prepaid
        What every member prepays, and the most that it can lose, in the money that `value` is in.
    underwriting
        The most that the operator can lose, in the same money. The settlements that assume truthful members need it.
    alone, coverage
        The learner that agents could play alone instead, which limits what they pay, and the probability with which
        an equal share covers. None: the default, which depends on the settlement.
    value, currency
        Money per unit of reward, and what amounts are in, e.g. EUR or hours; None: not stated.
    claim_seconds
        How long a claim waits for its report.
    claim_interval
        The least time between two claims of one member, in seconds.
    signed
        Whether members sign their requests, so that nobody else can make them in their names.
    histories
        How many past rewards of each arm that it shares a member may attach (docs/histories.md); 0: none.
    most_arms
        The largest number of arms, if the operator may add some later; None: there are no others.
    """

    name: str
    arms: list[str]
    horizon: int | float
    rule: str = "shared-imed"
    balance: float | str | None = None
    parameters: dict[str, bool | int | float | str] = {}
    settlement: str | None = None
    fee: float = 0.0
    prepaid: float | None = None
    underwriting: float | None = None
    alone: str | None = None
    coverage: float | None = None
    value: float = 1.0
    claim_seconds: float = 60.0
    claim_interval: float = 0.0
    signed: bool = False
    currency: str | None = None
    histories: int = 0
    most_arms: int | None = None


DEFAULTS: dict[str, Any] = {
    field.name: field.default for field in msgspec.structs.fields(Config) if field.default is not msgspec.NODEFAULT
}


def checked_config(config: Config, format: int = FORMAT) -> dict[str, Any]:
    """Return a configuration as it is recorded: checked, defaults filled in, each number of the recorded type.

    Fields that the format does not have are UNSET.

    Raises
    ------
    Refused
        A field is not allowed, or fields do not fit each other; the sentence says what is allowed.
    """
    check = checked_name if format > 4 else checked_text
    title = check("name", config.name)
    if not 1 <= len(config.arms) <= MOST_ARMS:
        raise not_allowed("arms")
    arms = [check(f"arms[{place}]", arm) for place, arm in enumerate(config.arms)]
    if len({alike(arm) if format > 4 else arm for arm in arms}) != len(arms):
        raise not_allowed("arms")
    if not 2 <= config.horizon <= LONGEST_HORIZON or config.horizon != int(config.horizon):
        raise not_allowed("horizon")
    if config.rule not in live_rules() or (config.rule in OWN_RULES and format < 7):
        raise not_allowed("rule")
    if not 0 <= config.fee <= 100:
        raise not_allowed("fee")
    if not 0 < config.value <= MOST_VALUE:
        raise not_allowed("value")
    if not 0 < config.claim_seconds <= LONGEST_CLAIM:
        raise not_allowed("claim_seconds")
    if not 0 <= config.claim_interval <= LONGEST_CLAIM:
        raise not_allowed("claim_interval")
    balance = _checked_balance(config.rule, config.balance)
    parameters = _checked_parameters(config.rule, config.parameters)
    rule = _checked_rule(config.rule, balance, parameters)
    places = _checked_most_arms(config.most_arms, len(arms)) if format > 6 else len(arms)
    _check_compared(rule, places)
    name = _checked_settlement(config, rule, format)
    prepaid, underwriting = _checked_sureties(config, name) if format > 3 else (None, None)
    settlement = settlement_for(name, rule, 0.0, config.alone, config.coverage, prepaid)
    if format > 4:
        _check_size(settlement, places)
    recorded: dict[str, Any] = {
        "name": title,
        "arms": tuple(arms),
        "horizon": int(config.horizon),
        "rule": config.rule,
        "balance": balance,
        "parameters": parameters,
        "settlement": settlement.name,
        "fee": float(config.fee),
        "alone": settlement.alone,
        "coverage": settlement.coverage,
        "value": float(config.value),
        "claim_seconds": float(config.claim_seconds),
        "prepaid": prepaid,
        "underwriting": underwriting,
        "claim_interval": float(config.claim_interval),
        "signed": config.signed,
        "currency": _checked_currency(config.currency) if isinstance(config.currency, str) else UNSET,
        "histories": _checked_histories(config.histories or 0, rule, settlement) or UNSET,
        "most_arms": places if places > len(arms) else UNSET,
    }
    if config.rule in OWN_RULES:
        recorded["rule_source"] = OWN_RULES[config.rule].source
    return recorded | dict.fromkeys(_LATER[format], UNSET)


# The fields that a format does not have.
_LATER: dict[int, tuple[str, ...]] = {7: (), 6: ("histories", "most_arms")}
_LATER[5] = ("currency", *_LATER[6])
_LATER[4] = ("signed", *_LATER[5])
_LATER[3] = ("prepaid", "underwriting", "claim_interval", *_LATER[4])
_LATER[2] = _LATER[1] = ("parameters", "alone", "coverage", *_LATER[3])


def _checked_currency(currency: str) -> str:
    """Return the name of a currency or unit, which stands behind every amount."""
    found = checked_name("currency", currency)
    if len(found) > LONGEST_CURRENCY:
        raise not_allowed("currency")
    return found


def _checked_most_arms(most: int | UnsetType | None, arms: int) -> int:
    """Return the largest number of arms: at least as many as there are, and just as many unless it is given."""
    if most is None or most is UNSET:
        return arms
    if not arms <= most <= MOST_ARMS:
        raise not_allowed("most_arms")
    return most


def _checked_histories(histories: int, rule: "LiveRule", settlement: Settlement) -> int:
    """Return how many past rewards a member may attach, which must fit the rule and the settlement."""
    if not 0 <= histories <= MOST_HISTORY:
        raise not_allowed("histories")
    if histories and settlement.name == "paper":
        sentence = (
            "The settlement paper charges for every reward on the board, and past ones were not pulled here; "
            "leave the histories out, or use another settlement."
        )
        raise invalid("histories", sentence)
    if histories and rule.by_contrasts:
        sentence = (
            f"The rule {rule.name} needs to know how pulls were chosen, and of past ones nobody does; "
            "leave the histories out, or use another rule."
        )
        raise invalid("histories", sentence)
    return histories


def _check_compared(rule: "LiveRule", arms: int) -> None:
    """Refuse more arms than the rule can compare."""
    if rule.by_contrasts:
        try:
            check_arms(arms)
        except InputError as error:
            raise invalid("arms", str(error), "too_many_arms") from None


def _check_size(settlement: Settlement, arms: int) -> None:
    """Refuse more arms than can be settled in seconds."""
    if settlement.pays_commits and arms > MOST_PAID_ARMS:
        sentence = f"The settlement {settlement.name} pays commits, so there may be {MOST_PAID_ARMS} arms at most."
        raise invalid("arms", f"{sentence} With pool, dues and none there may be more.", "too_many_arms")
    if settlement.ceiling_seed is not None and arms > MOST_PLAYED_ARMS:
        sentence = f"Plays of two-ucb measure ceilings of {MOST_PLAYED_ARMS} arms at most; set alone to best."
        raise invalid("alone", sentence, "too_many_arms")


def _checked_rule(name: str, balance: float | str | None, parameters: dict[str, Any]) -> "LiveRule":
    """Return the rule, whose parameters must fit each other."""
    try:
        return live_rule(name, balance, parameters)
    except InputError as error:
        if name in OWN_RULES:
            raise invalid("parameters", str(error)) from None
        if not parameters.get("tolerate"):
            raise
        sentence = "Evidence by betting tolerates no liars; set tolerate to 0, or evidence to likelihood."
        raise invalid("parameters.tolerate", sentence) from None


class LiveRule(Rule, Protocol):
    """What live play needs of a rule: it decides from the board and an agent's shares, without a private record."""

    @property
    def clocked(self) -> bool:
        """Whether it reads the board's clock."""

    @property
    def tolerate(self) -> int:
        """How many members may lie without misleading the others."""

    @property
    def each_reward(self) -> bool:
        """Whether `revise` must be called after each reward."""

    @property
    def offers(self) -> bool:
        """Whether what an agent may explore depends on what it broadcast before."""

    @property
    def by_contrasts(self) -> bool:
        """Whether it compares arms within members only."""

    @property
    def eliminates(self) -> bool:
        """Whether it ever eliminates an arm."""

    @property
    def by_intervals(self) -> bool:
        """Whether it eliminates an arm once the arm's interval lies below another's."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What can be set."""

    @property
    def settlements(self) -> tuple[str, ...]:
        """The settlements that fit it."""

    def decide(
        self, board: Board, shares: Collection[int], own: Record | None = None, draws: Draws | None = None
    ) -> Pull:
        """Return the next pull of an agent that shares these arms."""

    def revise(self, board: Board, slack: float = 0.0) -> None:
        """Set which arms are active after a broadcast."""

    def open_arms(self, board: Board, slack: float = 0.0) -> list[int]:
        """Return the arms that may be explored."""

    def offered(
        self, board: Board, member: Hashable, shares: Collection[int], opened: Collection[int]
    ) -> Collection[int]:
        """Return those of a member's arms that it may explore."""

    def own_leaders(self, board: Board) -> dict[str, int]:
        """Return the members who commit to an arm of their own, and that arm."""

    def shown(self, board: Board) -> Any:
        """Return what the board shows of the rule's public state."""

    def weigh(self, board: Board) -> Weighed | None:
        """Return the rule's own evidence against each arm."""

    def leading(self, board: Board) -> int | None:
        """Return the arm that a commit pulls; None if that is the active arm with the highest mean."""


def live_rule(
    name: str, balance: float | str | None, parameters: Mapping[str, bool | int | float | str] | None = None
) -> LiveRule:
    """Return the rule of a collaboration. A balance of "inf" is how JSON says infinity."""
    given = {"balance": None if balance is None else float(balance), **(parameters or {})}
    rule: LiveRule = make_own(OWN_RULES[name], given) if name in OWN_RULES else make_rule(name, **given)
    return rule


def rule_of(create: Create) -> LiveRule:
    """Return the rule of a collaboration as it was created: formats 1 and 2 state no parameters but `balance`."""
    if create.rule_source is not UNSET:
        own_rule(create.rule, create.rule_source)  # refuses another one of this name
    if create.parameters is UNSET:
        return live_rule(create.rule, create.balance, _FIRST_TERMS.get(create.rule))
    return live_rule(create.rule, create.balance, create.parameters)


# What rules did before they could be told otherwise.
_FIRST_TERMS: dict[str, dict[str, bool | int | float | str]] = {"balanced-glr": {"indifference": False}}


def _checked_parameters(
    name: str, given: Mapping[str, bool | int | float | str]
) -> dict[str, bool | int | float | str]:
    """Return the rule's parameters but the balance, as they are recorded; quiet ones only if they were changed."""
    known = live_parameters(name)
    clients = {one.name: one.default for one in live_rules()[name].parameters if not one.live}
    for key, value in given.items():
        if key in clients:
            if value != clients[key]:
                sentence = f"The parameter {key} is an option of each member's client, own_rewards; leave it out."
                raise invalid(f"parameters.{key}", sentence)
        elif key == "balance":
            raise invalid("parameters.balance", "The balance is a field of its own; it is not one of the parameters.")
        elif key not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise invalid("parameters", f"The rule {name} has no such parameter; {takes}.")
    found = {}
    for key, parameter in known.items():
        try:
            found[key] = parameter.check(given.get(key, parameter.default))
        except InputError:
            sentence = f"The parameter {key} is invalid; it must be {parameter.allowed}."
            raise invalid(f"parameters.{key}", sentence) from None
        if parameter.quiet and found[key] == parameter.default:
            del found[key]
    return found


def _checked_balance(name: str, balance: float | str | None) -> float | str | None:
    """Return the balance as it is recorded: the rule's default where none was given."""
    if isinstance(balance, str):
        if balance != "inf":
            raise not_allowed("balance")
    elif balance is not None:
        balance = float(balance)
        if not 1 <= balance < math.inf:
            raise not_allowed("balance")
    for parameter in live_rules()[name].parameters:
        if parameter.name == "balance":
            return float(parameter.default) if balance is None else balance
    try:
        live_rule(name, balance)  # a rule of fixed balance takes that one
    except InputError:
        raise invalid("balance", f"The rule {name} takes no balance; leave it out.") from None
    return balance


def _checked_settlement(config: Config, rule: LiveRule, format: int) -> str:
    """Return the settlement, which must fit the rule and its own fields."""
    name = config.settlement or ("none" if config.prepaid is None else "pool")
    if name not in SETTLEMENTS or (name in PREPAID and format < 4):
        raise not_allowed("settlement")
    if name not in rule.settlements:
        sentence = f"This settlement does not fit the rule and its balance; these do: {', '.join(rule.settlements)}."
        raise invalid("settlement", sentence)
    if config.fee and not name.startswith("equal-share") and name != "pool":
        raise invalid("fee", f"The settlement {name} takes no fee; leave it out, or use pool or equal-share.")
    if config.alone is not None and config.alone not in ALONE:
        raise not_allowed("alone")
    if config.coverage is not None and not 0.5 <= config.coverage < 1:
        raise not_allowed("coverage")
    if config.coverage is not None and not name.startswith("equal-share"):
        raise invalid("coverage", f"The settlement {name} has no coverage; leave it out, or use equal-share.")
    return name


def _checked_sureties(config: Config, settlement: str) -> tuple[float | None, float | None]:
    """Return what members prepay and what the operator underwrites, as the settlement needs them."""
    prepaid, underwriting = config.prepaid, config.underwriting
    if prepaid is not None and not LEAST_MONEY <= prepaid <= MOST_MONEY:
        raise not_allowed("prepaid")
    if underwriting is not None and not 0 <= underwriting <= MOST_MONEY:
        raise not_allowed("underwriting")
    if settlement in PREPAID:
        if prepaid is None:
            sentence = f"The settlement {settlement} needs prepaid: the money that every member prepays."
            raise invalid("prepaid", sentence)
        if settlement == "dues" and underwriting is not None:
            sentence = "The settlement dues never pays out more than was prepaid; leave the underwriting out."
            raise invalid("underwriting", sentence)
        return float(prepaid), None if settlement == "dues" else float(underwriting or 0.0)
    if prepaid is not None:
        sentence = f"Members of a collaboration with the settlement {settlement} prepay nothing; use pool or dues."
        raise invalid("prepaid", sentence)
    if settlement == "none":
        if underwriting is not None:
            sentence = "Without a settlement no money moves, so there is nothing to underwrite; leave it out."
            raise invalid("underwriting", sentence)
        return None, None
    if underwriting is None:
        sentence = (
            f"The settlement {settlement} assumes truthful members; it needs underwriting, the most money that the "
            "operator may lose to others (0 or more), or use pool with prepaid."
        )
        raise invalid("underwriting", sentence)
    return None, float(underwriting)

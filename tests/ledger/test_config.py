"""The configuration of a collaboration: defaults, what is allowed, and what fits together."""

import math
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from partage.ledger.config import DEFAULTS, Config, allowed, checked_config, live_rule
from partage.ledger.messages import NewCollaboration, checked_new_collaboration, refusal_of
from partage.ledger.refusals import CODES, Refused
from partage.rules import live_rules
from partage.settle import SETTLEMENTS


def config(**given: Any) -> Config:
    return Config(**{"name": "Trial", "arms": ["a", "b"], "horizon": 100, **given})


def refusal(**given: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        checked_config(config(**given))
    assert refused.value.status == 422
    assert refused.value.code in CODES
    return refused.value


def test_the_defaults_are_the_recommended_ones() -> None:
    assert DEFAULTS == {
        "rule": "shared-imed",
        "balance": None,
        "settlement": None,
        "fee": 0.0,
        "prepaid": None,
        "underwriting": None,
        "alone": None,
        "coverage": None,
        "value": 1.0,
        "claim_seconds": 60.0,
        "claim_interval": 0.0,
        "signed": False,
        "currency": None,
        "histories": 0,
        "most_arms": None,
    }
    recorded = {
        **DEFAULTS,
        "settlement": "none",
        "alone": "best",
        "currency": UNSET,
        "histories": UNSET,
        "most_arms": UNSET,
    }
    recorded["parameters"] = {"lead": 4.0}
    assert checked_config(config()) == {"name": "Trial", "arms": ("a", "b"), "horizon": 100, **recorded}


def test_every_default_fits_every_live_rule() -> None:
    for rule in live_rules():
        checked = checked_config(config(rule=rule, prepaid=2))
        assert (checked["settlement"], checked["prepaid"], checked["underwriting"]) == ("pool", 2.0, 0.0)
        takes_balance = any(parameter.name == "balance" for parameter in live_rules()[rule].parameters)
        assert checked["balance"] == (1.0 if takes_balance else None)
        assert live_rule(rule, checked["balance"]).name == rule


def test_a_checked_configuration_is_checked_to_the_same() -> None:
    checked = checked_config(config(rule="kl-etc", balance=2, fee=1, horizon=1e6, prepaid=5))
    again = {**checked, "arms": list(checked["arms"])}
    assert checked_config(Config(**again)) == checked
    assert [type(checked[name]) for name in ("horizon", "balance", "fee", "prepaid")] == [int, float, float, float]


def test_by_default_a_pool_is_settled_if_members_prepay_and_otherwise_nothing() -> None:
    assert checked_config(config(settlement=None))["settlement"] == "none"
    assert checked_config(config(prepaid=3))["settlement"] == "pool"
    assert checked_config(config(prepaid=3, settlement="dues"))["underwriting"] is None
    assert checked_config(config(prepaid=3, underwriting=8))["underwriting"] == 8.0


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"settlement": "pool"}, "prepaid", "needs prepaid"),
        ({"settlement": "dues"}, "prepaid", "needs prepaid"),
        ({"settlement": "paper"}, "underwriting", "assumes truthful members"),
        ({"settlement": "equal-share"}, "underwriting", "assumes truthful members"),
        ({"settlement": "equal-share-expected"}, "underwriting", "assumes truthful members"),
        ({"settlement": "none", "prepaid": 5}, "prepaid", "use pool or dues"),
        ({"settlement": "paper", "prepaid": 5, "underwriting": 5}, "prepaid", "use pool or dues"),
        ({"settlement": "dues", "prepaid": 5, "underwriting": 5}, "underwriting", "leave the underwriting out"),
        ({"settlement": "dues", "prepaid": 5, "fee": 0.1}, "fee", "takes no fee"),
        ({"settlement": "none", "underwriting": 5}, "underwriting", "no money moves"),
        ({"underwriting": 5}, "underwriting", "no money moves"),
    ],
)
def test_terms_that_do_not_fit_each_other(given: dict[str, Any], field: str, words: str) -> None:
    refused = refusal(rule="balanced-etc", **given)
    assert refused.field == field
    assert words in refused.sentence
    assert refused.sentence.count(". ") == 0


def test_earlier_formats_need_no_sureties() -> None:
    for settlement in ("paper", "equal-share", "none"):
        checked = checked_config(config(rule="balanced-etc", settlement=settlement), 3)
        assert {checked[name] for name in ("prepaid", "underwriting", "claim_interval")} == {msgspec.UNSET}
    with pytest.raises(Refused):
        checked_config(config(settlement="pool", prepaid=1.0), 3)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "   "),
        ("name", "a\nb"),
        ("name", "x" * 101),
        ("arms", []),
        ("arms", ["a", "a"]),
        ("arms", [f"arm {number}" for number in range(1001)]),
        ("horizon", 1),
        ("horizon", 2.5),
        ("horizon", 10**15 + 1),
        ("horizon", math.inf),
        ("horizon", math.nan),
        ("rule", "chance"),
        ("rule", "two-ucb"),
        ("balance", 0.5),
        ("balance", "1"),
        ("balance", math.inf),
        ("balance", math.nan),
        ("settlement", "charity"),
        ("fee", -0.1),
        ("fee", 101),
        ("fee", math.nan),
        ("alone", "chance"),
        ("alone", ""),
        ("coverage", 0.4),
        ("coverage", 1),
        ("coverage", math.nan),
        ("value", 0),
        ("value", 1e13),
        ("claim_seconds", 0),
        ("claim_seconds", 8 * 24 * 3600),
        ("prepaid", -1),
        ("prepaid", 0),
        ("prepaid", 1e-7),
        ("prepaid", math.nan),
        ("prepaid", math.inf),
        ("underwriting", -1),
        ("underwriting", math.inf),
        ("underwriting", math.nan),
        ("claim_interval", -1),
        ("claim_interval", math.nan),
        ("claim_interval", 8 * 24 * 3600),
    ],
)
def test_what_is_not_allowed_is_refused_with_what_is(field: str, value: Any) -> None:
    given = {"rule": "balanced-etc", "settlement": "equal-share", "underwriting": 1, field: value}
    refused = refusal(**given)
    assert (refused.field, refused.code) == (field, "invalid_field")
    assert refused.sentence == f"The field {field} must be {allowed(field)}."
    assert refused.sentence.isascii()
    assert "nan" not in refused.sentence


def test_an_arm_that_is_not_allowed_is_named_by_its_place() -> None:
    assert refusal(arms=["a", "\0"]).field == "arms[1]"


def test_allowed_rules_and_settlements_come_from_their_registries() -> None:
    assert allowed("rule") == "one of " + ", ".join(live_rules())
    assert "two-ucb" not in allowed("rule")
    assert allowed("settlement") == "one of " + ", ".join(SETTLEMENTS)


def test_a_balance_for_a_rule_that_takes_none() -> None:
    for rule in ("balanced-glr", "unbalanced-etc"):
        assert refusal(rule=rule, balance=2.0).sentence == f"The rule {rule} takes no balance; leave it out."
    assert checked_config(config(rule="unbalanced-etc", balance="inf"))["balance"] == "inf", "as in release 0.1"


def test_a_settlement_that_does_not_fit_the_rule() -> None:
    for rule, balance in (("balanced-glr", None), ("kl-etc", 1.0), ("balanced-etc", "inf"), ("unbalanced-etc", None)):
        refused = refusal(rule=rule, balance=balance, settlement="paper")
        assert refused.field == "settlement"
        assert "equal-share, equal-share-expected, none" in refused.sentence
    assert checked_config(config(rule="balanced-etc", settlement="paper", underwriting=0))["settlement"] == "paper"


def test_the_bar_and_the_coverage_depend_on_the_settlement() -> None:
    def terms(**given: Any) -> tuple[Any, Any]:
        checked = checked_config(config(rule="balanced-etc", **given))
        return checked["alone"], checked["coverage"]

    assert terms(settlement="paper", underwriting=0) == ("two-ucb", None)
    assert terms(settlement="none") == ("best", None)
    assert terms(settlement="equal-share", underwriting=0) == ("best", 0.99)
    assert terms(settlement="equal-share", alone="imed", coverage=0.9, underwriting=0) == ("imed", 0.9)
    assert refusal(rule="balanced-etc", settlement="paper", coverage=0.9).field == "coverage"
    assert refusal(rule="shared-imed", prepaid=1, coverage=0.9).field == "coverage"


def test_a_fee_for_a_settlement_that_takes_none() -> None:
    assert refusal(settlement="none", fee=0.1).field == "fee"
    for given in ({"settlement": "equal-share", "underwriting": 0}, {"settlement": "pool", "prepaid": 1}):
        assert checked_config(config(fee=0.1, **given))["fee"] == 0.1


def test_the_other_parameters_are_recorded_with_their_defaults() -> None:
    checked = checked_config(config(rule="shared-imed", parameters={"lead": 2}))
    assert checked["parameters"] == {"lead": 2.0}
    assert checked_config(config(rule="balanced-etc"))["parameters"] == {}
    checked = checked_config(config(rule="balanced-glr", parameters={"evidence": "betting", "indifference": False}))
    assert checked["parameters"] == {"lead": 3.0, "evidence": "betting", "indifference": False}


@pytest.mark.parametrize(
    ("rule", "parameters", "field", "words"),
    [
        ("balanced-glr", {"stakes": 1}, "parameters", "no such parameter; it takes lead, evidence, indifference"),
        ("balanced-etc", {"lead": 2}, "parameters", "no such parameter; it takes none"),
        ("shared-imed", {"lead": 0.5}, "parameters.lead", "must be a finite number of at least 1"),
        ("shared-imed", {"lead": "2"}, "parameters.lead", "must be a finite number of at least 1"),
        ("balanced-glr", {"evidence": "hearsay"}, "parameters.evidence", "must be likelihood or betting"),
        ("balanced-glr", {"indifference": 1}, "parameters.indifference", "must be true or false"),
        ("balanced-etc", {"balance": 2}, "parameters.balance", "a field of its own"),
        ("shared-imed", {"own": 30}, "parameters.own", "an option of each member's client"),
    ],
)
def test_a_parameter_that_is_not_allowed(rule: str, parameters: Any, field: str, words: str) -> None:
    refused = refusal(rule=rule, parameters=parameters)
    assert refused.field == field
    assert words in refused.sentence
    assert "hearsay" not in refused.sentence


def test_no_own_rewards_is_what_a_collaboration_has() -> None:
    assert checked_config(config(rule="shared-imed", parameters={"own": 0}))["parameters"] == {"lead": 4.0}


def test_a_new_collaboration_is_a_configuration_with_invites() -> None:
    new = NewCollaboration(name="Trial", arms=["a"], horizon=10, invites=1001)
    with pytest.raises(Refused) as refused:
        checked_new_collaboration(new)
    assert refused.value.field == "invites"
    assert checked_new_collaboration(NewCollaboration(name="Trial", arms=["a"], horizon=10))["rule"] == "shared-imed"


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        (b'{"name":"x","arms":["a"],"horizon":2,"odd":1}', 422, "unknown_field", None),
        (b'{"name":"x","arms":["a"]}', 422, "missing_field", "horizon"),
        (b'{"name":"x","arms":["a"],"horizon":"2"}', 422, "invalid_field", "horizon"),
        (b'{"name":"x","arms":[1],"horizon":2}', 422, "invalid_field", "arms[0]"),
        (b"[]", 400, "invalid_body", None),
    ],
)
def test_bodies_that_are_refused(body: bytes, status: int, code: str, field: str | None) -> None:
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.json.decode(body, type=NewCollaboration)
    refused = refusal_of(str(error.value), NewCollaboration)
    assert (refused.status, refused.code, refused.field) == (status, code, field)
    assert refused.sentence.endswith(".")


@pytest.mark.parametrize(
    ("settlement", "alone", "most"),
    [("paper", None, 100), ("equal-share", None, 100), ("equal-share", "two-ucb", 10), ("pool", None, 1000)],
)
def test_no_more_arms_than_can_be_settled_in_seconds(settlement: str, alone: str | None, most: int) -> None:
    """Open collaborations keep what they began with."""
    surety = {"prepaid": 20.0} if settlement == "pool" else {"underwriting": 0.0}
    terms = {"rule": "balanced-etc", "settlement": settlement, "alone": alone, "name": "T", "horizon": 100, **surety}

    def config(arms: int) -> Config:
        return Config(arms=[f"arm {arm}" for arm in range(arms)], **terms)

    checked_config(config(most))
    with pytest.raises(Refused) as refused:
        checked_config(config(most + 1))
    assert refused.value.code in CODES
    if most < 1000:
        assert refused.value.code == "too_many_arms"
        assert len(checked_config(config(most + 1), 4)["arms"]) == most + 1

"""Liars at the controller: what they gain, what it costs the others and the operator. Amounts in micro-units.

The attack of phantom commits: tell a made-up 1.0 for a bad arm, withdraw all consent, and report the whole horizon as
commits on the version where that arm led. With an equal share that paid 2,129 units of reward to one liar of 11.
"""

import random
from typing import Any

import pytest
from tests.support.api import Host, Member, serving

from partage.ledger.verify import verify

MEANS = {"a": 0.95, "b": 0.6, "c": 0.1}  # far apart, so that a short game eliminates
HORIZON, HONEST, PREPAID = 400, 10, 20.0
MICRO = 1_000_000


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with serving(f"sqlite:///{tmp_path_factory.mktemp('liars')}/partage.db") as server:
        yield server.url


def attacked(url: str, settlement: str, attack: str, liars: int, underwriting: float | None = None) -> Host:
    """A collaboration of honest members and liars, closed."""
    config: dict[str, Any] = {"settlement": settlement, "prepaid": PREPAID, "underwriting": underwriting}
    given = {name: value for name, value in config.items() if value is not None}
    host = Host(url, arms=list(MEANS), horizon=HORIZON, rule="balanced-glr", invites=20, **given)
    dice = random.Random(11)
    honest = [host.join(*MEANS, name=f"Honest {number}") for number in range(HONEST)]
    crooks = [host.join(*(MEANS if attack == "active" else ()), name=f"Crook {number}") for number in range(liars)]
    for crook in crooks:
        lie(crook, attack)
    for _ in range(30):
        for member in honest:
            pull = member.ask(explore_only=True)
            if pull:
                member.tell(pull["pull"], float(dice.random() < MEANS[pull["arm"]]))
            else:
                member.ok("POST", "/commits", {"request": f"{dice.random()}", "unnamed": 5})
    host.ok("POST", "/close")
    return host


def lie(crook: Member, attack: str) -> None:
    """Tell a made-up 1.0 (active), and report the rest of the horizon as commits."""
    if attack == "active":
        pull = crook.ask()
        crook.tell(pull["pull"], 1.0)
        crook.ok("PATCH", "/agents/me", {"shares": []})
        run = {"version": 1, "arm": pull["arm"], "pulls": HORIZON - 1}
        crook.refused(422, "POST", "/commits", {"request": "phantom", "runs": [run]}, code="unnamed_only")
    if attack != "none":
        left = crook.ok("GET", "/agents/me")["horizon_left"]
        crook.ok("POST", "/commits", {"request": "phantoms", "unnamed": left})


@pytest.mark.parametrize(("attack", "liars"), [("active", 1), ("passive", 1), ("active", 5)])
@pytest.mark.parametrize(("settlement", "underwriting"), [("pool", None), ("pool", 3.0), ("dues", None)])
def test_phantom_commits_gain_nothing(
    url: str, settlement: str, underwriting: float | None, attack: str, liars: int
) -> None:
    host = attacked(url, settlement, attack, liars, underwriting)
    found = host.ok("GET", "/settlement")
    rows, prepaid, limit = found["rows"], round(PREPAID * MICRO), round((underwriting or 0.0) * MICRO)
    gain = sum(row["net"] for row in rows if row["name"].startswith("Crook"))
    most = 0 if settlement == "dues" else HONEST * prepaid + limit
    assert gain <= most, "the bound, in every run"
    # What a liar is paid for is what it told: one pull each, at most one unit of reward.
    assert gain <= (liars if attack == "active" else 0) * MICRO
    assert all(0 <= row["charge"] <= prepaid for row in rows)
    assert len({row["charge"] for row in rows}) == 1, "whoever reports nothing pays the same"
    assert found["compensation"] > 0, "there is something to gain"
    assert found["profit"] >= -limit
    assert sum(row["net"] for row in rows) + found["profit"] == 0
    ledger = host.call("GET", "/ledger").content.splitlines(keepends=True)
    assert verify(ledger).ok


@pytest.mark.parametrize("settlement", ["pool", "dues"])
def test_amounts_do_not_depend_on_commit_reports(url: str, settlement: str) -> None:
    """The same members who share nothing: with phantom commits, and without."""
    lied, silent = (attacked(url, settlement, attack, 2).ok("GET", "/settlement") for attack in ("passive", "none"))
    assert [row["net"] for row in lied["rows"] if row["name"].startswith("Crook")] == [-lied["rows"][0]["charge"]] * 2
    for found in (lied, silent):
        assert all(row["compensation"] == 0 for row in found["rows"] if row["name"].startswith("Crook"))


@pytest.mark.parametrize("underwriting", [0.0, 2.0])
def test_where_commits_are_paid_the_operator_loses_no_more_than_it_underwrites(url: str, underwriting: float) -> None:
    """Such a settlement assumes truthful members: a liar gains at the cost of the others, but not of the operator."""
    terms = {"settlement": "equal-share-expected", "underwriting": underwriting}
    host = Host(url, arms=list(MEANS), horizon=HORIZON, rule="balanced-glr", invites=4, **terms)
    crook = host.join(*MEANS, name="Crook")
    pull = crook.ask()
    crook.tell(pull["pull"], 1.0)
    crook.ok("PATCH", "/agents/me", {"shares": []})
    run = {"version": 1, "arm": pull["arm"], "pulls": HORIZON - 1}
    crook.ok("POST", "/commits", {"request": "phantom", "runs": [run]})
    honest = [host.join(*MEANS) for _ in range(3)]
    dice = random.Random(11)
    for _ in range(60):
        for member in honest:
            pull = member.ask()
            if pull["share"]:
                member.tell(pull["pull"], float(dice.random() < MEANS[pull["arm"]]))
    found = host.ok("POST", "/close")
    assert found["profit"] >= -underwriting * MICRO
    assert verify(host.call("GET", "/ledger").content.splitlines(keepends=True)).ok


def test_who_leaves_early_is_settled_like_everyone_else(url: str) -> None:
    host = Host(url, arms=list(MEANS), horizon=HORIZON, rule="balanced-glr", prepaid=PREPAID, invites=4)
    members = [host.join(*MEANS) for _ in range(3)]
    gone = host.join()
    gone.ok("DELETE", "/agents/me")
    for _ in range(120):
        for member in members:
            pull = member.ask(explore_only=True)
            if pull:
                member.tell(pull["pull"], MEANS[pull["arm"]])
    found = host.ok("POST", "/close")
    charges = [row["charge"] for row in found["rows"]]
    assert charges[3] == charges[0] > 0
    assert found["compensation"] > 0

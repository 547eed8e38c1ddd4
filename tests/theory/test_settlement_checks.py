"""The audit of pools, dues and limited losses: it holds on played runs, and it notices a violation."""

import json

import pytest
from tests.support.command_line import without_compiling

from partage import BalancedETC, BalancedGLR, Game, SharedIMED, Sharing, audit, bernoulli
from partage.cli import app
from partage.settle import settlement_for
from partage.settle.money import Account
from partage.theory import settlement_checks
from partage.theory.audit_row import HOLDS, VIOLATED
from partage.theory.settlement_checks import settlement_verdicts

GAME = Game(bernoulli([0.9, 0.7, 0.5]), Sharing.round_robin(6, 3), 2000)
FILE = """
horizon = 2000
rule = "balanced-glr"
settlement = "pool"
prepaid = 2.0
underwriting = 1.5
arms = [{ mean = 0.9 }, { mean = 0.7 }, { mean = 0.5 }]
[agents]
count = 6
"""


@pytest.mark.parametrize("rule", [BalancedGLR(), SharedIMED()], ids=lambda rule: rule.name)
@pytest.mark.parametrize(
    ("name", "terms", "promises"),
    [
        ("pool", {"prepaid": 0.5, "underwriting": 2.0, "fee": 0.1}, 4),
        ("pool", {"prepaid": 100.0}, 4),
        ("dues", {"prepaid": 1.0}, 4),
        ("equal-share-expected", {"underwriting": 0.0}, 2),
        ("equal-share-expected", {}, 0),
    ],
)
def test_the_promises_hold_on_played_runs(rule, name, terms, promises):
    rows = settlement_verdicts(GAME, rule, settlement_for(name, rule, **terms), runs=20, seed=0)
    assert len(rows) == promises
    for row in rows:
        assert (row.verdict, row.violations, row.runs) == (HOLDS, 0, 20)
        assert row.measured_value <= row.bound_value


def test_a_limit_that_is_reached_has_no_slack():
    settlement = settlement_for("paper", BalancedETC(), underwriting=3.0)
    (_, loss) = settlement_verdicts(GAME, BalancedETC(), settlement, runs=5, seed=0)
    assert loss.bound_value == 3.0
    assert loss.measured_value == pytest.approx(3.0, abs=1e-5)
    assert loss.slack == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("wrong", [Account(10**9, 0, 0), Account(0, 10**9, 0), Account(-1, 5 * 10**8, 0)])
def test_a_violation_is_noticed(monkeypatch, wrong):
    settlement = settlement_for("pool", BalancedGLR(), prepaid=2.0)
    right = settlement_checks.settle

    def broken(*args):
        found = right(*args)
        return type(found)(**{**vars(found), "accounts": (wrong, *found.accounts[1:])})

    monkeypatch.setattr(settlement_checks, "settle", broken)
    rows = settlement_verdicts(GAME, BalancedGLR(), settlement, runs=3, seed=0)
    assert rows[0].verdict == VIOLATED  # the sum
    assert sum(row.verdict == VIOLATED for row in rows) >= 2


def test_the_audit_of_a_game_file_checks_its_settlement(tmp_path, capsys):
    file = tmp_path / "game.toml"
    file.write_text(FILE)
    with pytest.raises(SystemExit) as stop:
        app(["audit", str(file), "--runs=20", "--json"], prog_name="partage")
    printed = capsys.readouterr()
    assert (stop.value.code, without_compiling(printed.err)) == (0, "")
    (section,) = json.loads(printed.out)["audits"]
    about = [row for row in section["promises"] if row["label"] == "pool"]
    assert [row["verdict"] for row in about] == [HOLDS] * 4
    assert about[1]["bound_value"] == 1.5


def test_the_audit_without_a_settlement_is_about_the_paper_alone():
    rows = audit(GAME, BalancedGLR(), runs=2, settlement=settlement_for("none", BalancedGLR()))
    assert all(row.number != "docs/trust.md" for row in rows)

"""`partage simulate` shows agents that differ: each with its bar, the reports that are out, and who played."""

import json
from pathlib import Path

import pytest

from partage.cli import app

TOP = 'horizon = 60\nrule = "balanced-glr"\nsettlement = "pool"\nprepaid = 5\n'
ARMS = '[[arms]]\nname = "SMS"\nmean = 0.7\n[[arms]]\nname = "Letter"\nmean = 0.4\n'
AGENTS = """
[[agent]]
name = "City"
shares = ["SMS", "Letter"]
pace = 2
horizon = 90
delay = { kind = "uniform", steps = 4, of = "failures" }
[[agent]]
name = "Village"
shares = ["Letter"]
offset = -0.1
delay = 59.5
[[agent]]
name = "Harbour"
means = [0.2, 0.9]
joins = 5
leaves = 50
"""


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "130")

    def simulate(game: str, *flags: str) -> str:
        path = tmp_path / "game.toml"
        path.write_text(game)
        with pytest.raises(SystemExit) as stop:
            app(["simulate", str(path), "--runs=3", *flags], prog_name="partage")
        printed = capsys.readouterr()
        assert stop.value.code == 0, printed.err
        return printed.out

    return simulate


def words(text: str) -> str:
    return " ".join(text.split())


def test_agents_in_the_json(run):
    found = json.loads(run(TOP + "claim_steps = 20\n" + ARMS + AGENTS, "--json"))
    assert (found["claim_steps"], found["horizon"]) == (20.0, 60)
    assert isinstance(found["by_reference"], bool)
    assert found["out"]["mean"] >= 0
    assert found["best_alone_at_least"] is None
    city, village, own = found["by_agent"]
    assert list(city) == ["name", "pace", "horizon", "traits", "regret", "incentive_regret", "bar"]
    assert (city["name"], city["pace"], city["horizon"]) == ("City", 2.0, 90)
    assert city["traits"] == {"delay": {"kind": "uniform", "steps": 4.0, "of": "failures"}}
    assert village["traits"] == {"delay": 59.5, "offset": -0.1}
    assert own["traits"] == {"means": [0.2, 0.9], "joins": 5, "leaves": 50}
    assert all(list(agent["bar"]) == ["mean", "stderr"] for agent in found["by_agent"])
    above = [agent["incentive_regret"]["mean"] > agent["bar"]["mean"] for agent in found["by_agent"]]
    assert found["individually_rational"] is not any(above)


def test_a_row_for_each_agent(run):
    shown = run(TOP + ARMS + AGENTS)
    assert "3 agents, 2 arms, horizon 60 to 90" in shown
    (city,) = [line for line in shown.splitlines() if line.startswith("City  ")]
    assert "pace 2, uniform delay 4 of failures" in city
    (own,) = [line for line in shown.splitlines() if line.startswith("Harbour  ")]
    assert "means 0.2, 0.9, joins 5, leaves 50" in own
    assert "Never told: the rewards of " in shown
    assert "2-UCB regret of one agent alone, mean over agents" in shown
    assert "for that agent alone" in words(shown)


def test_without_a_settlement_and_a_bar(run):
    shown = run(TOP.replace("pool", "none").replace("prepaid = 5\n", "") + ARMS + AGENTS, "--no-baseline")
    assert "not judged, because no learner alone was played" in words(shown)
    (head,) = [line for line in shown.splitlines() if line.startswith("agent ")]
    assert head.split() == ["agent", "differs", "in", "horizon", "regret", "alone"]


def test_many_agents_are_shown_by_kind(run):
    slow = '[[agent]]\nname = "Shop"\nshares = ["SMS"]\npace = 0.5\ncount = 25\n'
    many = slow + '[[agent]]\ncount = 6\nshares = ["Letter"]\n'
    shown = run(TOP + ARMS + many)
    rows = [line for line in shown.splitlines() if line.startswith(("25: Shop 1 …", "6: agent 26 …"))]
    assert len(rows) == 2
    assert "pace 0.5" in rows[0]
    assert "Shop 2 " not in shown


def test_arms_that_change(run):
    arms = ARMS.replace("mean = 0.7\n", "mean = 0.7\nchange = { step = 30, mean = 0.1 }\n")
    shown = run(TOP + arms + '[[agent]]\nshares = ["SMS", "Letter"]\ncount = 2\n')
    assert "not judged, because arms change" in words(shown)
    assert "0.7, 0.1 from step 30" in shown
    found = json.loads(run(TOP + arms + '[[agent]]\nshares = ["SMS", "Letter"]\ncount = 2\n', "--json"))
    assert found["arms"][0]["changes"] == [{"step": 30, "mean": 0.1}]
    assert "changes" not in found["arms"][1]
    assert found["alone_regret"] == {}

"""`partage compare`, several rules of `partage simulate`, and the files that both write."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from partage.cli import app

GAME = ["--means=0.9,0.5", "--agents=4", "--horizon=1000", "--runs=5"]


def run(*arguments: str, code: int = 0) -> str:
    ended = CliRunner().invoke(app, list(arguments))
    assert ended.exit_code == code, ended.output
    return ended.stdout if code == 0 else ended.output


def test_rules_with_parameters_are_compared():
    asked = ["balanced-etc", "balanced-glr:lead=2", "balanced-glr:lead=4,evidence=betting"]
    told = json.loads(run("compare", *GAME, *(f"--rule={rule}" for rule in asked), "--json"))
    assert list(told["results"]) == asked
    assert told["compared_with"] == "balanced-etc"
    assert told["results"][asked[2]]["parameters"] == {"lead": 4.0, "evidence": "betting"}
    for rule in asked[1:]:
        ours, theirs = (told["results"][name]["metrics"]["overall_regret"]["mean"] for name in (rule, asked[0]))
        assert told["differences"][rule]["overall_regret"]["mean"] == pytest.approx(ours - theirs)


def test_simulate_compares_several_rules():
    told = json.loads(run("simulate", *GAME, "--rule=balanced-glr", "--rule=two-ucb", "--lead=2", "--json"))
    assert told["results"]["balanced-glr"]["parameters"] == {"lead": 2.0}
    assert "parameters" not in told["results"]["two-ucb"]
    assert "difference" in run("simulate", *GAME, "--rule=balanced-glr", "--rule=balanced-etc")


def test_files_are_written(tmp_path: Path):
    for name in ("a.png", "a.svg", "a.pdf"):
        run("simulate", *GAME, "--plot", str(tmp_path / name))
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()
    run("simulate", *GAME, "--csv", str(tmp_path / "a.csv"), "--csv-by", "agent")
    run("compare", *GAME, "--csv", str(tmp_path / "b.csv"), "--plot", str(tmp_path / "b.png"))
    with open(tmp_path / "a.csv") as file:
        assert [row["agent"] for row in csv.DictReader(file)] == [f"agent {n}" for n in range(1, 5)]
    with open(tmp_path / "b.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["rule"] for row in rows] == [
        rule for rule in ("balanced-etc", "balanced-glr", "shared-imed") for _ in range(5)
    ]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["simulate", "--plot=a.bmp"], "must end in .png, .svg, .pdf"),
        (["simulate", "--csv=nowhere/a.csv"], "the folder nowhere does not exist"),
        (["simulate", "--csv-by=day"], "must be one of run, arm, agent, step"),
        (["compare", "--rule=balanced-glr:lead"], "as in balanced-glr:lead=2"),
        (["compare", "--rule=two-ucb", "--rule=two-ucb"], "given twice"),
        (["simulate", "--rule=two-ucb", "--rule=imed", "--lead=2"], "No rule that is compared takes lead"),
    ],
)
def test_mistakes_are_one_sentence(flags, words):
    said = run(flags[0], *GAME, *flags[1:], code=2)
    assert words in " ".join(said.split())

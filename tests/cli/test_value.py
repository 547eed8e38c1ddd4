"""`partage value`: a table, a figure and JSON of what sharing is worth."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import partage

GAME = """
horizon = 200
rule = "balanced-etc"
[unit]
worst = 0
best = 10
name = "euros"
[[arms]]
name = "pens"
mean = 0.9
[[arms]]
name = "ink"
mean = 0.5
[[agent]]
name = "Ada"
shares = ["pens"]
[[agent]]
name = "Bob"
shares = ["pens", "ink"]
"""


@pytest.fixture
def game(tmp_path: Path) -> str:
    path = tmp_path / "game.toml"
    path.write_text(GAME)
    return str(path)


def test_table_figure_and_json(game, tmp_path):
    figure = tmp_path / "value.svg"
    shown = partage("value", game, "--agent=Ada", "--runs=5", f"--plot={figure}", COLUMNS="130")
    assert shown.code == 0, shown.err
    assert "What sharing is worth to Ada, which shares pens" in shown.out
    assert "in euros" in shown.out
    assert [line.split("  ")[0] for line in shown.out.splitlines()[-2:]] == ["not pens", "also ink"]
    assert figure.read_text().startswith("<?xml")
    found = json.loads(partage("value", game, "--agent=Ada", "--runs=5", "--json").out)
    assert found["unit"] == {"worst": 0.0, "best": 10.0, "name": "euros"}
    assert [change["kind"] for change in found["changes"]] == ["fewer", "more"]
    assert found["changes"][0]["own_settled"]["stderr"] >= 0


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--agent=Eve",), "the agent is 'Eve'; it must be one of 'Ada', 'Bob'"),
        (("--agent=Ada", "--runs=0"), "the number of runs is 0"),
        (("--agent=Ada", "--runs=2", "--plot=value.txt"), "The figure value.txt cannot be written"),
    ],
)
def test_what_is_refused(game, flags, sentence):
    printed = partage("value", game, *flags)
    assert printed.code == 2
    assert sentence in printed.err

"""The README shows what really happens."""

import re
import shlex

import pytest
from tests.docs.pages import blocks, page
from typer.testing import CliRunner

from partage.cli import app
from partage.rules import RULES

README = "README.md"


def test_the_command_prints_what_the_readme_shows():
    shown = re.search(r"^    \$ partage (.*)\n((?:    .*\n|\n)+)", page(README), re.MULTILINE)
    done = CliRunner().invoke(app, shlex.split(shown[1]))
    assert done.exit_code == 0

    def lines(text):
        text = re.sub(r" in [\d.]+ m?s$", " in no time", text, flags=re.MULTILINE)
        return [line.strip() for line in text.splitlines() if line.strip()]

    assert lines(done.stdout) == lines(shown[2])


def test_the_python_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = [text for kind, text in blocks(README) if kind == "python"]
    assert len(code) >= 2
    names = {}
    for block in code:
        exec(block, names)
        for expression, value in re.findall(
            r"^(result\.\S+) +# ([\d.]+|True|False)(?:\.\.\.)?$", block, re.MULTILINE
        ):
            found = eval(expression, names)
            assert str(found).startswith(value.rstrip(".")), expression
    assert (tmp_path / "result.png").exists()


@pytest.mark.parametrize("name", ["README.md", "docs/game.md"])
def test_every_rule_is_described(name):
    for rule in RULES:
        assert f"`{rule}`" in page(name)


GAME_FILES = [text for name in (README, "docs/game.md") for kind, text in blocks(name) if kind == "toml"]


@pytest.mark.parametrize("block", GAME_FILES)
def test_the_game_files_can_be_simulated(block, tmp_path):
    game = tmp_path / "game.toml"
    game.write_text(block)
    done = CliRunner().invoke(app, ["simulate", str(game), "--runs", "3"])
    assert done.exit_code == 0, done.output

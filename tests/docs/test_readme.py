"""What the README shows is what happens."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from partage.cli import app

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_command_prints_what_the_readme_says():
    shown = re.search(r"^    \$ partage (.*)\n((?:    .*\n|\n)+)", README, re.MULTILINE)
    printed = CliRunner().invoke(app, shlex.split(shown[1]))
    assert printed.exit_code == 0

    def lines(text):
        text = re.sub(r" in [\d.]+ m?s$", " in no time", text, flags=re.MULTILINE)
        return [line.strip() for line in text.splitlines() if line.strip()]

    assert lines(printed.stdout) == lines(shown[2])


def test_the_python_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 2
    names = {}
    for block in blocks:
        exec(block, names)
        for expression, value in re.findall(
            r"^(result\.\S+) +# ([\d.]+|True|False)(?:\.\.\.)?$", block, re.MULTILINE
        ):
            told = eval(expression, names)
            assert str(told).startswith(value.rstrip(".")), expression
    assert (tmp_path / "result.png").exists()


@pytest.mark.parametrize("block", re.findall(r"```toml\n(.*?)```", README, re.DOTALL))
def test_the_game_files_play(block, tmp_path):
    game = tmp_path / "game.toml"
    game.write_text(block)
    printed = CliRunner().invoke(app, ["simulate", str(game), "--runs", "3"])
    assert printed.exit_code == 0, printed.output

"""`partage doctor`: what is installed and works, and how to mend what does not."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from partage import compiled, errors
from partage.cli import app


def run(*arguments: str) -> tuple[int, str]:
    ended = CliRunner().invoke(app, ["doctor", *arguments], env={"PARTAGE_DATABASE": ""})
    return ended.exit_code, ended.stdout


def checks(*arguments: str) -> dict[str, dict]:
    code, printed = run(*arguments, "--json")
    told = json.loads(printed)
    assert code == (0 if told["ok"] else 1)
    return {one["name"]: one for one in told["checks"]}


def test_what_is_installed_works():
    found = checks()
    assert found["Python"]["works"] is True
    assert "numpy" in found["extra research"]["found"]
    assert found["compiled code"]["works"] is True
    assert {f"extra {name}" for name in errors.EXTRAS} < set(found)
    code, printed = run()
    assert code == 0
    assert "extra research" in printed


def test_an_extra_that_is_missing_is_no_failure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(errors.EXTRAS, "ray", ("no_such_package",))
    missing = checks()["extra ray"]
    assert missing["works"] is None
    assert missing["mend"] == "to install it: pip install 'partage[ray]'"


def test_databases_are_tried(tmp_path: Path):
    assert checks("--database", str(tmp_path / "new.db"))["database"]["works"] is True
    assert not (tmp_path / "new.db").exists()
    assert checks("--database", str(tmp_path / "no" / "new.db"))["database"]["works"] is False
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"This is no database, and it is longer than a header." * 20)
    found = checks("--database", str(broken))["database"]
    assert (found["works"], "not a database" in found["found"]) == (False, True)
    assert run("--database", str(broken))[0] == 1


def test_a_cache_that_cannot_be_written_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(compiled, "folder", lambda: tmp_path / "file" / "cache")
    found = checks()["compiled code"]
    assert found["works"] is False
    assert "make it writable" in found["mend"]

"""The command line where only httpx, msgspec, typer and rich are installed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

LEDGERS = Path(__file__).parents[1] / "golden" / "release-0.1"

BLOCKED = """\
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
from partage.cli import main
sys.argv = ["partage", *sys.argv[1:]]
main()
"""
EXTRAS = {
    "numpy", "numba", "llvmlite", "scipy", "polars", "joblib", "matplotlib", "jinja2", "litestar", "uvicorn",
    "sqlalchemy", "prometheus_client", "psycopg", "dask", "distributed", "ray", "click", "yaml",
}  # fmt: skip


def partage(*arguments: str, blocked: set[str] = EXTRAS) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BLOCKED.format(blocked=blocked), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["simulate", "--means=0.9,0.5", "--agents=2", "--horizon=10"], "research"),
        (["audit"], "research"),
        (["reproduce"], "research"),
        (["studies"], "research"),
        (["serve"], "server"),
        (["demo"], "server"),
    ],
)
def test_a_missing_extra_is_named(arguments, extra):
    ended = partage(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert f"needs the extra {extra}; install it with: pip install 'partage[{extra}]'." in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["serve", "--database=postgresql://me@there/db"], "postgres"),
        (["reproduce", "balanced", "--on=dask"], "dask"),
        (["reproduce", "balanced", "--on=ray=here:1"], "ray"),
    ],
)
def test_an_extra_of_an_extra_is_named(arguments, extra):
    ended = partage(*arguments, blocked={"psycopg", "dask", "distributed", "ray"})
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"pip install 'partage[{extra}]'." in ended.stderr


def test_help_needs_no_extra():
    for arguments in (["--help"], ["simulate", "--help"], ["serve", "--help"], ["--version"]):
        ended = partage(*arguments)
        assert (ended.returncode, ended.stderr) == (0, "")


def test_a_ledger_verifies_with_ceilings_taken_on_trust():
    ended = partage("verify", str(LEDGERS / "glr-expected.ndjson"), "--json")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["ok"]
    assert any("ceiling" in sentence for sentence in found["trusted"]), found["trusted"]
    shown = partage("verify", str(LEDGERS / "glr-expected.ndjson"))
    assert "is valid: the whole ledger" in shown.stdout


def test_the_operators_and_agents_commands_reach_for_the_network(tmp_path):
    ended = partage("collaboration", "list", "--url=http://127.0.0.1:1", "--token-file=-")
    assert "needs the operator's token" in ended.stderr
    ended = partage("agent", "join", "http://127.0.0.1:1", "Morel", f"--state={tmp_path}/state.json")
    assert "not an invite's link" in ended.stderr

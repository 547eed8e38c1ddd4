"""The ledger on a base install: no numpy, numba, SQLAlchemy or litestar."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.golden.live import RELEASE, TOKENS
from tests.support.patience import PATIENCE
from tests.support.sequences import Table, created

from partage.ledger.events import Close
from partage.ledger.verify import verify

HEAVY = ("litestar", "matplotlib", "numba", "numpy", "polars", "scipy", "sqlalchemy", "uvicorn")

BLOCK = f"""
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {HEAVY}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Block())
"""


def run(script: str, *given: str) -> Any:
    """Run a script in a fresh interpreter, and return the JSON that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", script, *given], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_importing_the_ledger_imports_nothing_heavy() -> None:
    script = """
import importlib, json, pkgutil, sys
import partage.ledger
for module in pkgutil.walk_packages(partage.ledger.__path__, "partage.ledger."):
    importlib.import_module(module.name)
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""
    loaded = run(script)
    assert "msgspec" in loaded
    assert not set(HEAVY) & set(loaded)


VERIFY = """
import json, sys
import msgspec
from partage.ledger.verify import verify
print(json.dumps(msgspec.to_builtins(verify(sys.argv[1], agent=sys.argv[2] or None))))
"""


@pytest.mark.parametrize(
    ("name", "measured"),
    [
        ("etc-paper", False),
        ("etc-paper-member", False),
        ("glr-expected", True),
        ("glr-expected-member", True),
        ("kl-equal-share", True),
        ("none-shared", False),
    ],
)
def test_a_base_install_verifies_everything_but_ceilings(name: str, measured: bool) -> None:
    ledger = RELEASE / f"{name}.ndjson"
    agent = TOKENS["members"][name.removesuffix("-member")][0]["agent"] if name.endswith("-member") else ""
    found = run(BLOCK + VERIFY, str(ledger), agent)
    full = msgspec.to_builtins(verify(ledger, agent=agent or None))
    for part in ("lines", "head", "problem", "whole", "agent", "board", "settlement", "row"):
        assert found[part] == full[part], part
    assert any("partage[server]" in sentence for sentence in found["trusted"]) == measured
    assert not any("partage[server]" in sentence for sentence in full["trusted"])
    assert any("ceiling" in sentence and "computed again" in sentence for sentence in full["checked"]) == measured
    assert not any("ceiling" in sentence and "computed again" in sentence for sentence in found["checked"])


@pytest.mark.parametrize("settlement", ["equal-share", "equal-share-expected"])
@pytest.mark.parametrize("alone", ["best", "imed"])
def test_a_base_install_computes_ceilings_by_formula(settlement: str, alone: str, tmp_path: Path) -> None:
    """From format 3 on, unless 2-UCB is the bar."""
    table = Table(created(horizon=400, settlement=settlement, alone=alone))
    agents = [table.join(0, 1), table.join(0), table.join()]
    for _ in range(150):
        for agent in agents:
            table.work(agent, lambda arm: 0.9 - 0.7 * arm)
    table.close()
    closed = table.events[-1]
    assert isinstance(closed, Close)
    assert closed.ceilings is not None
    assert min(closed.ceilings.values()) > 0
    assert closed.ceiling_seed is None
    ledger = tmp_path / "ledger.ndjson"
    ledger.write_bytes(b"".join(table.lines()))
    found = run(BLOCK + VERIFY, str(ledger), "")
    assert found == msgspec.to_builtins(verify(ledger))
    assert found["problem"] is None
    assert found["settlement"]["finished"]
    assert any("every ceiling" in sentence for sentence in found["checked"])


def test_a_base_install_does_not_measure_the_ceilings_of_an_open_collaboration() -> None:
    ledger = RELEASE / "glr-open.ndjson"
    found = run(BLOCK + VERIFY, str(ledger), "")
    assert found["problem"] is None
    assert found["settlement"] is None
    assert any("if it closed now" in sentence and "partage[server]" in sentence for sentence in found["trusted"])
    assert verify(ledger).settlement is not None


def test_a_base_install_finds_a_changed_ledger() -> None:
    script = """
import json, sys
from partage.ledger.verify import verify
lines = open(sys.argv[1], "rb").read().splitlines(keepends=True)
where = next(at for at, line in enumerate(lines) if b'"kind":"tell"' in line)
lines[where] = lines[where].replace(b'"version":1', b'"version":2')
print(json.dumps([where + 1, verify(lines).problem.line]))
"""
    changed, named = run(BLOCK + script, str(RELEASE / "glr-expected.ndjson"))
    assert changed == named

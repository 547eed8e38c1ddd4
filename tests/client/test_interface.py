"""The public names, and what importing them costs."""

import subprocess
import sys
from pathlib import Path

from partage import client
from partage.client import Closed, Forked, HorizonReached, Refused, Unreachable
from partage.errors import PartageError


def test_public_names() -> None:
    assert client.__all__ == [
        "Agent",
        "AgentView",
        "ArmOnBoard",
        "AsyncAgent",
        "BoardView",
        "Closed",
        "CollaborationView",
        "Created",
        "Forked",
        "HorizonReached",
        "InviteView",
        "Operator",
        "Played",
        "Pull",
        "Refused",
        "SettlementRow",
        "SettlementView",
        "Unreachable",
    ]
    assert all(issubclass(error, PartageError) for error in (Closed, Forked, HorizonReached, Refused, Unreachable))


def test_the_client_imports_nothing_heavy() -> None:
    program = "import sys, partage.client; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {"numba", "numpy", "scipy", "polars", "joblib", "matplotlib", "sqlalchemy", "litestar", "uvicorn"}
    assert not heavy & set(ended.stdout.split())


def test_the_page_names_every_call_of_the_operator() -> None:
    text = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
    hidden = {"disconnect", "ledger_parts"}  # details of the command line
    for name in {name for name in vars(client.Operator) if not name.startswith("_")} - hidden:
        assert f"`{name}(" in text, name

"""The live part of the golden file: the OpenAPI document, and what release 0.1 left behind, opened by this release.

`release-0.1/` holds a database, ledgers (whole, and a member's copy), tokens and a client's state file, all written
by release 0.1 over HTTP, and what its server answered (`answers.json`).
"""

import hashlib
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from tests.support.patience import PATIENCE
from tests.support.server import Server
from typer.testing import CliRunner

from partage.cli import app

RELEASE = Path(__file__).parent / "release-0.1"
TOKENS = json.loads((RELEASE / "tokens.json").read_text())
ANSWERS = json.loads((RELEASE / "answers.json").read_text())
# The lines of each ledger when the fixture was made, by the collaboration's name. What this release adds comes after.
LEDGERS = {
    answers["collaboration"]["name"]: len((RELEASE / f"{stem}.ndjson").read_bytes().splitlines())
    for stem, answers in ANSWERS.items()
}


def openapi_document() -> Any:
    """Return the OpenAPI document that a server gives out."""
    with tempfile.TemporaryDirectory() as folder, Server(f"{folder}/partage.db") as server:
        document = httpx.get(f"{server.url}/schema/openapi.json", timeout=PATIENCE).json()
    del document["info"]["version"]
    return document


def verdicts_of_release() -> dict[str, Any]:
    """Return what `partage verify --json` says of each ledger."""
    found = {}
    for ledger in sorted(RELEASE.glob("*.ndjson")):
        agent = []
        if ledger.stem.endswith("-member"):
            agent = ["--agent", TOKENS["members"][ledger.stem.removesuffix("-member")][0]["agent"]]
        outcome = CliRunner().invoke(app, ["verify", str(ledger), *agent, "--json"], catch_exceptions=False)
        found[ledger.stem] = json.loads(outcome.stdout)
    return found


def database_of_release() -> dict[str, Any]:
    """Start a server on the database, and return what it answers about each collaboration."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(RELEASE / "partage.db", folder)
        environment = {"PARTAGE_OPERATOR_TOKEN": TOKENS["operator"]}
        with (
            Server(f"{folder}/partage.db", env=environment) as server,
            httpx.Client(
                base_url=server.url, headers={"Authorization": f"Bearer {TOKENS['operator']}"}, timeout=PATIENCE
            ) as client,
        ):
            for one in client.get("/v1/collaborations").json():
                path = f"/v1/collaborations/{one['id']}"
                board = _without_claims(client, path)
                lines = LEDGERS[one["name"]]
                ledger = b"".join(client.get(f"{path}/ledger").content.splitlines(keepends=True)[:lines])
                found[one["name"]] = {
                    "collaboration": client.get(path).json() | {"key": ""},  # of this server, which is new
                    "board": board,
                    "agents": client.get(f"{path}/agents").json(),
                    "settlement": client.get(f"{path}/settlement").json(),
                    "ledger": hashlib.sha256(ledger).hexdigest(),
                }
    return found


def _without_claims(client: httpx.Client, path: str) -> Any:
    """Return the board once the claims that were open when the fixture was made have lapsed, which takes a moment."""
    until = time.monotonic() + PATIENCE
    while True:
        board = client.get(f"{path}/board").json()
        if not any(arm["claims"] for arm in board["arms"]) or time.monotonic() > until:
            return board
        time.sleep(0.1)

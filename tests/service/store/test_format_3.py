"""Collaborations of format 3, created before commits could earn nothing: they finish on the terms they began with.

`tests/golden/format-3` holds a database, ledgers (whole, and a member's copy) with their verdicts, tokens, and what
the server answered, all written by the last code of format 3 over HTTP.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from tests.service.store.test_release import assert_told
from tests.support.api import Member, Speaker, serving

from partage.ledger.verify import verify

FIXTURE = Path(__file__).parents[2] / "golden" / "format-3"
TOKENS = json.loads((FIXTURE / "tokens.json").read_text())
ANSWERS = json.loads((FIXTURE / "answers.json").read_text())
VERDICTS = json.loads((FIXTURE / "verdicts.json").read_text())


@pytest.mark.parametrize("name", VERDICTS)
def test_its_ledgers_verify_with_the_same_verdict(name: str) -> None:
    found = verify(FIXTURE / f"{name}.ndjson", agent="a1" if name.endswith("-member") else None)
    assert_told(VERDICTS[name], to_builtins(found), name)


def test_its_database_opens_and_its_collaborations_go_on(tmp_path: Path) -> None:
    shutil.copy(FIXTURE / "partage.db", tmp_path)
    with serving(f"sqlite:///{tmp_path}/partage.db") as server:
        for name, before in ANSWERS.items():
            operator = Speaker(server.url, TOKENS["operator"], before["id"])
            assert_told(before["collaboration"], operator.ok("GET"), name)
            for what in ("board", "agents", "settlement"):
                assert_told(before[what], operator.ok("GET", f"/{what}"), f"{name} {what}")
            members = [
                Member(server.url, one["token"], before["id"], one["agent"]) for one in TOKENS["members"][name]
            ]
            if not before["board"]["closed"]:
                _go_on(operator, members)
            written = (FIXTURE / f"{name}.ndjson").read_bytes()
            ledger = operator.call("GET", "/ledger").content
            assert ledger.startswith(written)
            assert {row["format"] for row in _rows(ledger)} == {3}
            assert verify(ledger.splitlines(keepends=True)).ok
            assert verify(members[0].call("GET", "/ledger").content.splitlines(keepends=True), agent="a1").ok


def _go_on(operator: Speaker, members: list[Member]) -> None:
    """Explore, report commits with their arms, and close: a commit on an eliminated arm is still paid as it was."""
    for member in members[:2]:
        member.work(1.0)
    before = operator.ok("GET", "/settlement")
    board = operator.board()
    run = {"version": board["version"], "arm": board["leader"], "pulls": 5}
    members[3].ok("POST", "/commits", {"request": "more", "runs": [run], "unnamed": 2})
    settled = operator.ok("POST", "/close")
    assert settled["rows"][3]["commit"] == before["rows"][3]["commit"] + 5
    if settled["settlement"] != "none":
        assert sum(row["net"] for row in settled["rows"]) + settled["profit"] == 0


def _rows(ledger: bytes) -> list[dict[str, Any]]:
    return [json.loads(line)["row"] for line in ledger.splitlines()]

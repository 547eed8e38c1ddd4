"""Collaborations of formats 3 to 5: they finish on the terms they began with.

`tests/golden/format-3`, `format-4` and `format-5` each hold a database, ledgers (whole, and a member's copy) with
their verdicts, tokens, and what the server answered, all written by the last code of that format over HTTP. In format
3 every settlement counts commits by arm; format 4 has pools, dues, an underwriting and set-asides; format 5 has
signed requests, whose members' state files are there too, and a tie order that is drawn together.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from tests.service.store.test_release import assert_told
from tests.support.api import Member, Speaker, serving

from partage.client import Agent
from partage.ledger.verify import verify

GOLDEN = Path(__file__).parents[2] / "golden"
FORMATS = (3, 4, 5)


def fixture(format: int, name: str) -> Any:
    """Return what a fixture holds under this name."""
    return json.loads((GOLDEN / f"format-{format}" / f"{name}.json").read_text())


LEDGERS = [(format, name) for format in FORMATS for name in fixture(format, "verdicts")]


@pytest.mark.parametrize(("format", "name"), LEDGERS)
def test_its_ledgers_verify_with_the_same_verdict(format: int, name: str) -> None:
    file = GOLDEN / f"format-{format}" / f"{name}.ndjson"
    found = verify(file, agent="a1" if name.endswith("-member") else None)
    before = fixture(format, "verdicts")[name]
    del before["trusted"]  # which today's release says in fewer words
    assert_told(before, to_builtins(found), name)
    assert found.trusted


@pytest.mark.parametrize("format", FORMATS)
def test_its_database_opens_and_its_collaborations_go_on(format: int, tmp_path: Path) -> None:
    shutil.copy(GOLDEN / f"format-{format}" / "partage.db", tmp_path)
    tokens = fixture(format, "tokens")
    with serving(f"sqlite:///{tmp_path}/partage.db") as server:
        for name, before in fixture(format, "answers").items():
            operator = Speaker(server.url, tokens["operator"], before["id"])
            assert_told(before["collaboration"], operator.ok("GET"), name)
            for what in ("board", "agents", "settlement"):
                assert_told(before[what], operator.ok("GET", f"/{what}"), f"{name} {what}")
            members = [
                Member(server.url, one["token"], before["id"], one["agent"]) for one in tokens["members"][name]
            ]
            if before["collaboration"].get("signed"):
                states = [GOLDEN / f"format-{format}" / one["state"] for one in tokens["members"][name]]
                _go_on_signed(operator, [Path(shutil.copy(state, tmp_path)) for state in states])
            elif not before["board"]["closed"]:
                _go_on(operator, members, before["collaboration"].get("named_commits", True))
            written = (GOLDEN / f"format-{format}" / f"{name}.ndjson").read_bytes()
            ledger = operator.call("GET", "/ledger").content
            assert ledger.startswith(written)
            assert {row["format"] for row in _rows(ledger)} == {format}
            assert verify(ledger.splitlines(keepends=True)).ok
            assert verify(members[0].call("GET", "/ledger").content.splitlines(keepends=True), agent="a1").ok


def _go_on(operator: Speaker, members: list[Member], named: bool) -> None:
    """Explore, report commits as the terms ask for them, and close: what they earn is paid as it was."""
    for member in members[:2]:
        member.work(1.0)
    before = operator.ok("GET", "/settlement")
    board = operator.board()
    report: dict[str, Any] = {"request": "more", "unnamed": 2}
    if named:
        report["runs"] = [{"version": board["version"], "arm": board["leader"], "pulls": 5}]
    members[3].ok("POST", "/commits", report)
    settled = operator.ok("POST", "/close")
    assert settled["rows"][3]["commit"] == before["rows"][3]["commit"] + (5 if named else 2)
    if settled["settlement"] != "none":
        assert sum(row["net"] for row in settled["rows"]) + settled["profit"] == 0


def _go_on_signed(operator: Speaker, states: list[Path]) -> None:
    """Let members go on from their state files: they sign with the keys in them."""
    before = operator.ok("GET", "/agents")
    for path in states:
        path.write_text(json.dumps(json.loads(path.read_text()) | {"url": operator.url}))
        with Agent.resume(path, listen=False) as agent:
            assert agent.play(lambda _arm: 1.0, 2).explore + agent.play(lambda _arm: 1.0, 2).commit > 0
    after = operator.ok("GET", "/agents")
    assert all(new["number"] > old["number"] for old, new in zip(before, after, strict=True))
    operator.ok("POST", "/close")


def _rows(ledger: bytes) -> list[dict[str, Any]]:
    return [json.loads(line)["row"] for line in ledger.splitlines()]

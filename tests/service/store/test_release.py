"""A database that release 0.1 wrote opens in this release, answers the same, and its collaborations go on."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from psycopg import sql
from tests.support.patience import PATIENCE
from tests.support.server import Server

from partage.ledger.verify import verify
from partage.service.store import open_store

RELEASE = Path(__file__).parents[2] / "golden" / "release-0.1"
TOKENS = json.loads((RELEASE / "tokens.json").read_text())
ANSWERS = json.loads((RELEASE / "answers.json").read_text())
TABLES = Path(__file__).with_name("release-0.1.sql").read_text()
PARENTS_FIRST = ("meta", "collaborations", "sessions", "events", "snapshots", "invites", "tokens")


@pytest.fixture
def released(database_url: str) -> str:
    """The address of a database as release 0.1 left it, of each kind."""
    if database_url.startswith("sqlite"):
        shutil.copy(RELEASE / "partage.db", database_url.removeprefix("sqlite:///"))
    else:
        copy_to_postgres(database_url)
    return database_url


def copy_to_postgres(url: str) -> None:
    """Make the tables of release 0.1 and fill them with the rows of its SQLite file."""
    with sqlite3.connect(RELEASE / "partage.db") as source, psycopg.connect(url.replace("+psycopg", "")) as target:
        target.execute(TABLES)
        for table in PARENTS_FIRST:
            found = source.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in found.description]
            insertion = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
                sql.Identifier(table),
                sql.SQL(", ").join(map(sql.Identifier, names)),
                sql.SQL(", ").join(sql.Placeholder() * len(names)),
            )
            flags = [name == "revoked" for name in names]  # SQLite has no booleans
            rows = [[bool(v) if flag else v for v, flag in zip(row, flags, strict=True)] for row in found]
            if rows:
                target.cursor().executemany(insertion, rows)
        target.execute("SELECT setval('collaborations_number_seq', (SELECT max(number) FROM collaborations))")
    source.close()


def assert_told(before: Any, now: Any, place: str) -> None:
    """Everything that 0.1 answered is answered still; this release may add fields, and open claims lapse."""
    if isinstance(before, dict):
        for name, value in before.items():
            if name not in ("claims", "open"):
                assert_told(value, now[name], f"{place}.{name}")
    elif isinstance(before, list):
        assert len(before) == len(now), place
        for number, (one, other) in enumerate(zip(before, now, strict=True)):
            assert_told(one, other, f"{place}[{number}]")
    else:
        assert before == now, place


def test_a_database_of_release_0_1(released: str) -> None:
    given = {"PARTAGE_OPERATOR_TOKEN": TOKENS["operator"]}
    operator = {"Authorization": f"Bearer {TOKENS['operator']}"}
    with Server(released, env=given) as server, httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        listed = {one["id"]: one for one in client.get("/v1/collaborations", headers=operator).json()}
        assert set(listed) == {before["id"] for before in ANSWERS.values()}
        for name, before in ANSWERS.items():
            path = f"/v1/collaborations/{before['id']}"
            assert_told(before["collaboration"], listed[before["id"]], name)
            for what in ("board", "agents", "settlement"):
                assert_told(before[what], client.get(f"{path}/{what}", headers=operator).json(), f"{name} {what}")
            ledger = client.get(f"{path}/ledger", headers=operator).content
            written = (RELEASE / f"{name}.ndjson").read_bytes()
            assert ledger.startswith(written)
            assert all(b'"kind":"lapse"' in line for line in ledger[len(written) :].splitlines())

        # One that was open goes on by the terms it began with, and a new one is created beside it.
        path = f"/v1/collaborations/{ANSWERS['glr-open']['id']}"
        for member in TOKENS["members"]["glr-open"]:
            agent = {"Authorization": f"Bearer {member['token']}"}
            pull = client.post(f"{path}/ask", headers=agent, json={}).json()
            if pull["share"]:
                told = client.post(f"{path}/tell", headers=agent, json={"pull": pull["pull"], "reward": 0.5})
                assert told.status_code == 200
        assert client.post(f"{path}/close", headers=operator).status_code == 200
        lines = client.get(f"{path}/ledger", headers=operator).content.splitlines(keepends=True)
        assert verify(lines).ok
        assert len(lines) > len((RELEASE / "glr-open.ndjson").read_bytes().splitlines())
        body = {"name": "New", "arms": ["a", "b"], "horizon": 10}
        assert client.post("/v1/collaborations", headers=operator, json=body).status_code == 201
    with closing(open_store(released)) as store:
        assert store.meta("schema") == "3"  # release 0.1 knows schema 1 and refuses others

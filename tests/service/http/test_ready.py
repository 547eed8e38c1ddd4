"""`/ready` says whether the database takes writes."""

import resource
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from litestar.testing import TestClient
from tests.support.patience import PATIENCE
from tests.support.server import Server

from partage.service.http.app import create_app
from partage.service.runtime.controller import Controller
from partage.service.runtime.readiness import EVERY
from partage.service.runtime.system import System
from partage.service.store import StoreError, open_store


def test_a_look_is_a_write_and_its_outcome_is_kept_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, writes, full = 0, 0, False
    store = open_store(f"{tmp_path}/partage.db")
    write = store._write

    def counted(work: Any) -> Any:
        nonlocal writes
        writes += 1
        if full:
            raise StoreError("The disk is full.")
        return write(work)

    app = create_app(Controller(store, "token", System(clock=lambda: now)))
    with TestClient(app) as client:
        monkeypatch.setattr(store, "_write", counted)
        assert [client.get("/ready").status_code for _ in range(5)] == [200] * 5
        assert writes == 1
        full = True
        now += EVERY - 1
        assert client.get("/ready").status_code == 200
        now += 1
        answers = [client.get("/ready") for _ in range(5)]
        assert [answer.status_code for answer in answers] == [503] * 5
        assert answers[0].json()["code"] == "database_unavailable"
        assert writes == 2
        full = False
        now += EVERY
        assert client.get("/ready").status_code == 200
        now -= 10 * EVERY  # a clock that was set back does not keep an old outcome
        assert client.get("/ready").status_code == 200
        assert writes == 4


def test_a_full_disk(tmp_path: Path) -> None:
    """A limit on the size of files stands in for the full disk: writes fail, reads work."""
    with Server(f"sqlite:///{tmp_path}/partage.db") as server:

        def status_becomes(expected: int) -> bool:
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until:
                if httpx.get(f"{server.url}/ready", timeout=PATIENCE).status_code == expected:
                    return True
                time.sleep(0.1)
            return False

        hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1, hard))
        assert status_becomes(503)
        assert httpx.get(f"{server.url}/health", timeout=PATIENCE).status_code == 200
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (hard, hard))
        assert status_becomes(200)

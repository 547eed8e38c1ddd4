"""Collaborations by betting and by shared-imed over HTTP, with a restart from a snapshot in the middle."""

import random
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient
from tests.support.api import TOKEN

from partage.ledger.state import SNAPSHOT_FORMAT
from partage.ledger.verify import verify
from partage.service.http.app import create_app
from partage.service.runtime.controller import Controller
from partage.service.store import open_store

ARMS = ["a", "b", "c"]
MEANS = {"a": 0.9, "b": 0.5, "c": 0.3}
ROUNDS = 60


def opened(path: Path) -> Controller:
    return Controller(open_store(f"sqlite:///{path}"), TOKEN, snapshot_every=50)


def call(client: Any, token: str, method: str, path: str, body: Any = None) -> Any:
    answer = client.request(method, path, json=body, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code < 300, answer.text
    return answer


def play(client: Any, base: str, tokens: list[str], draw: random.Random) -> None:
    """Let every agent pull in turn, and tell at once."""
    for _ in range(ROUNDS):
        for token in tokens:
            pull = call(client, token, "POST", f"{base}/ask", {}).json()
            if pull["share"]:
                reward = round(MEANS[pull["arm"]] * draw.random() ** 0.25, 3)
                call(client, token, "POST", f"{base}/tell", {"pull": pull["pull"], "reward": reward})


@pytest.mark.parametrize(
    ("rule", "parameters"), [("balanced-glr", {"evidence": "betting"}), ("shared-imed", {"lead": 2.0})]
)
def test_played_over_http_restarted_closed_and_verified(
    rule: str, parameters: dict[str, Any], tmp_path: Path
) -> None:
    path, draw = tmp_path / "partage.db", random.Random(3)
    config = {"name": "Trial", "arms": ARMS, "horizon": 1000, "rule": rule, "parameters": parameters, "invites": 3}
    controller = opened(path)
    with TestClient(create_app(controller)) as client:
        made = call(client, TOKEN, "POST", "/v1/collaborations", config).json()
        base = f"/v1/collaborations/{made['id']}"
        tokens = [
            call(client, code, "POST", f"{base}/agents", {"name": code[:20], "shares": shares}).json()["token"]
            for code, shares in zip(made["invites"], (["a", "b"], ["b", "c"], []), strict=True)
        ]
        play(client, base, tokens, draw)
        before = call(client, TOKEN, "GET", f"{base}/board").json()
    restarted = opened(path)
    found = restarted.store.snapshot(made["id"], SNAPSHOT_FORMAT)
    assert found is not None
    assert found[0] > 100, "the restart begins from a snapshot"
    with TestClient(create_app(restarted)) as client:
        after = call(client, TOKEN, "GET", f"{base}/board").json()
        assert after == before
        assert (after["state"] is not None) == (parameters.get("evidence") == "betting")
        assert call(client, TOKEN, "GET", base).json()["parameters"].items() >= parameters.items()
        play(client, base, tokens, draw)
        board = call(client, TOKEN, "GET", f"{base}/board").json()
        assert board["leader"] == "a"
        assert board["clock"] > after["clock"] > 100
        call(client, TOKEN, "POST", f"{base}/close")
        whole = verify(call(client, TOKEN, "GET", f"{base}/ledger").content.splitlines(keepends=True))
        assert whole.ok, whole.problem
        assert whole.board is not None
        assert [arm.active for arm in whole.board.arms] == [arm["active"] for arm in board["arms"]]
        for number, token in enumerate(tokens, 1):
            copy = verify(call(client, token, "GET", f"{base}/ledger").content.splitlines(True), agent=f"a{number}")
            assert copy.ok, copy.problem

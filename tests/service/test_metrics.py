"""Metrics: what was served, by path template, counted over all workers."""

import re

import httpx
import pytest
from tests.support.patience import PATIENCE
from tests.support.server import Server


def counted(url: str, path: str) -> float:
    text = httpx.get(f"{url}/metrics", timeout=PATIENCE).text
    return sum(
        float(n) for n in re.findall(rf'partage_requests_total\{{path="{re.escape(path)}",[^}}]*\}} (\S+)', text)
    )


def test_the_workers_count_together(postgres_url: str) -> None:
    with Server(postgres_url, workers=2) as server:
        before = counted(server.url, "/health")
        for _ in range(20):  # a connection each, so that either worker may get it
            assert httpx.get(f"{server.url}/health", timeout=PATIENCE).status_code == 200
        assert counted(server.url, "/health") == before + 20


def test_labels_are_templates_and_tell_nothing_of_ids(server: Server) -> None:
    httpx.get(f"{server.url}/v1/collaborations/c0ffee/board", timeout=PATIENCE)
    httpx.get(f"{server.url}/no/such/c0ffee", timeout=PATIENCE)
    text = httpx.get(f"{server.url}/metrics", timeout=PATIENCE).text
    assert 'path="/v1/collaborations/{id}/board",status="401"' in text
    assert "c0ffee" not in text


@pytest.mark.parametrize("token", ["abc", "a token that is long enough"])
def test_a_short_token_of_the_operator_draws_a_warning(tmp_path, token: str) -> None:
    with Server(str(tmp_path / "partage.db"), env={"PARTAGE_OPERATOR_TOKEN": token}) as server:
        assert ("can be guessed" in server.output) == (token == "abc")
        assert token not in server.output

"""The headers of answers: what browsers and proxies may do with them, and which methods an address takes."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from litestar.testing import TestClient

from partage.service.http.app import create_app
from partage.service.http.auth import csrf_token
from partage.service.runtime.controller import Controller
from partage.service.store import open_store

TOKEN = "pt_op_the-token-of-all-these-tests"
OPERATOR = {"Authorization": f"Bearer {TOKEN}"}
ONE = "/v1/collaborations/{id}"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """The application in this process."""
    with TestClient(create_app(Controller(open_store(f"{tmp_path}/partage.db"), TOKEN))) as client:
        yield client


@pytest.fixture
def id(client: TestClient) -> str:
    """A collaboration."""
    new = {"name": "x", "arms": ["a"], "horizon": 9}
    id: str = client.post("/v1/collaborations", json=new, headers=OPERATOR).json()["id"]
    return id


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/collaborations", 200),
        ("GET", ONE, 200),
        ("GET", f"{ONE}/settlement", 200),
        ("GET", f"{ONE}/ledger", 200),
        ("GET", "/v1/collaborations/c000000000000", 404),
        ("GET", "/nothing", 404),
        ("PUT", ONE, 405),
        ("POST", f"{ONE}/tell", 403),
        ("POST", "/v1/collaborations", 400),
        ("GET", "/health", 200),
        ("GET", "/ready", 200),
        ("GET", "/metrics", 200),
        ("GET", "/schema", 200),
        ("GET", "/", 200),
    ],
)
def test_answers_are_neither_sniffed_nor_kept(
    client: TestClient, id: str, method: str, path: str, status: int
) -> None:
    answer = client.request(method, path.format(id=id), headers=OPERATOR)
    assert answer.status_code == status
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
    assert answer.headers.get_list("cache-control") == ["no-store"]


def test_answers_without_a_token_too(client: TestClient, id: str) -> None:
    answer = client.get(f"/v1/collaborations/{id}/board")
    assert (answer.status_code, answer.headers["cache-control"]) == (401, "no-store")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_board_and_files_keep_their_own_rules(client: TestClient, id: str) -> None:
    board = client.get(f"/v1/collaborations/{id}/board", headers=OPERATOR)
    assert board.headers.get_list("cache-control") == ["no-cache"]
    assert board.headers["x-content-type-options"] == "nosniff"
    again = client.get(f"/v1/collaborations/{id}/board", headers=OPERATOR | {"If-None-Match": board.headers["etag"]})
    assert (again.status_code, again.headers["cache-control"]) == (304, "no-cache")
    assert client.get("/static/style.css").headers.get_list("cache-control") == ["no-cache"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/collaborations", {"GET", "POST", "OPTIONS"}),
        ("GET", f"{ONE}/ask", {"POST", "OPTIONS"}),
        ("POST", f"{ONE}/agents/me", {"GET", "PATCH", "DELETE", "OPTIONS"}),
        ("DELETE", "/health", {"GET", "OPTIONS"}),
        ("GET", "/login", {"POST", "OPTIONS"}),
    ],
)
def test_another_method_is_told_which_ones_there_are(
    client: TestClient, id: str, method: str, path: str, allowed: set[str]
) -> None:
    answer = client.request(method, path.format(id=id), headers=OPERATOR)
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert set(answer.headers["allow"].split(", ")) == allowed
    asked = client.options(path.format(id=id))
    assert asked.status_code == 204
    assert [set(one.split(", ")) for one in asked.headers.get_list("allow")] == [allowed]


# the Host header


def invite_links(client: TestClient, **headers: str) -> list[str]:
    """Return the invite links that the operator's page shows for a new collaboration."""
    found = re.search(r'name="login" value="(\w{64})"', client.get("/").text)
    assert found is not None
    client.post("/login", data={"token": TOKEN, "login": found[1]}, follow_redirects=False)
    csrf = csrf_token(client.cookies["partage_session"])
    form = {"name": "x", "arms": "a, b", "horizon": "100", "invites": "2"}
    answer: httpx.Response = client.post("/collaborations", data=form, headers={"x-csrf-token": csrf, **headers})
    return re.findall(r'value="([^"]*/join#[^"]*)"', answer.text)


def test_the_host_header_does_not_get_into_invite_links(client: TestClient) -> None:
    forged = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
    links = invite_links(client, **forged)
    assert len(links) == 2
    assert all(link.startswith("/join#c") for link in links)  # the page completes them


def test_invite_links_have_the_public_address(tmp_path: Path) -> None:
    controller = Controller(open_store(f"{tmp_path}/public.db"), TOKEN)
    with TestClient(create_app(controller, public_url="https://partage.example.org")) as client:
        links = invite_links(client, Host="evil.example")
        assert len(links) == 2
        assert all(link.startswith("https://partage.example.org/join#c") for link in links)

"""Limits: guesses, requests, costly calls and streams, each with a 429 that says when to try again."""

import asyncio
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from litestar.testing import TestClient

from partage.errors import InputError
from partage.ledger import views
from partage.ledger.messages import AgentView
from partage.ledger.refusals import Refused
from partage.service.http import limits
from partage.service.http.app import create_app
from partage.service.http.limits import COSTLY, LOG_INS, Buckets, Guard, Limits, Rate
from partage.service.runtime.controller import Controller
from partage.service.runtime.system import System
from partage.service.store import open_store

TOKEN = "pt_op_the-token-of-all-these-tests"
OPERATOR = {"Authorization": f"Bearer {TOKEN}"}


class Clock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(tmp_path: Path, clock: Clock) -> Iterator[TestClient]:
    """The application in this process, with small limits."""
    controller = Controller(open_store(f"{tmp_path}/partage.db"), TOKEN, System(clock=clock))
    small = Limits(requests=5, wrong_tokens=2, streams=3, streams_each=2)
    with TestClient(create_app(controller, limits=small)) as client:
        yield client


def assert_limited(answer: httpx.Response, most: float) -> int:
    """Check a 429; return when to try again."""
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many_requests"), answer.text
    seconds = int(answer.headers["retry-after"])
    assert 1 <= seconds <= most
    return seconds


def joined(client: TestClient) -> tuple[str, dict[str, str]]:
    """Return the path of a new collaboration, and the header of its agent."""
    new = {"name": "x", "arms": ["a", "b"], "horizon": 99}
    made = client.post("/v1/collaborations", json=new, headers=OPERATOR).json()
    path = f"/v1/collaborations/{made['id']}"
    invited = {"Authorization": f"Bearer {made['invites'][0]}"}
    token = client.post(f"{path}/agents", json={"name": "Ann", "shares": ["a"]}, headers=invited).json()["token"]
    return path, {"Authorization": f"Bearer {token}"}


# buckets


@given(
    rate=st.builds(Rate, st.floats(0.1, 1000), st.integers(1, 100)),
    steps=st.lists(st.integers(-5000, 5000), min_size=1, max_size=200),
)
def test_a_bucket_never_gives_more_than_its_rate(rate: Rate, steps: list[int]) -> None:
    clock = Clock()
    buckets, taken, forward = Buckets(rate, clock), 0, 0
    for step in steps:
        clock.now += step
        forward += max(0, step)
        wait = buckets.take("ann")
        taken += not wait
        assert 0 <= wait <= 1 / rate.per_second
        assert taken <= rate.at_once + forward / 1000 * rate.per_second + 1e-6
    if wait := buckets.take("ann"):
        clock.now += int(1000 * wait) + 1
        assert buckets.take("ann") == 0.0  # what it says is right


def test_buckets_are_forgotten_when_they_are_full(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setattr(limits, "MOST_CALLERS", 10)
    buckets = Buckets(Rate(1, 2), clock)
    for caller in range(100):
        buckets.take(caller)
    assert len(buckets._left) <= 10
    clock.now += 2000
    buckets.take("ann")
    assert len(buckets._left) <= 10


# guesses


def send_login(client: TestClient, token: str) -> httpx.Response:
    """Send the form to log in."""
    page = client.get("/").text
    login = page.split('name="login" value="')[1].split('"')[0]
    return client.post("/login", data={"token": token, "login": login}, follow_redirects=False)


def test_log_in_guesses(client: TestClient, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):  # successes are not counted
        assert send_login(client, TOKEN).status_code == 303
        client.cookies.clear()
    for _ in range(int(LOG_INS.at_once)):
        assert send_login(client, "Zq9-guess").status_code == 401
    wait = assert_limited(send_login(client, "Zq9-guess"), 1 / LOG_INS.per_second)
    assert_limited(send_login(client, TOKEN), wait)  # not even the right one: it would be a guess that succeeds
    failures = [record for record in caplog.records if record.getMessage() == "log-in failed"]
    assert [vars(record)["code"] for record in failures] == ["unknown_token"] * 10 + ["too_many_requests"] * 2
    assert all(vars(record)["address"] == "testclient" for record in failures)
    assert "Zq9" not in caplog.text
    clock.now += 1000 * wait
    assert send_login(client, TOKEN).status_code == 303


def test_guesses_from_many_addresses(clock: Clock) -> None:
    guard = Guard(Limits(), clock)
    for number in range(int(limits.ALL_LOG_INS.at_once)):
        with pytest.raises(Refused, match="unknown"), guard.log_in(f"192.0.2.{number}"):
            raise Refused(401, "unknown_token", "It is unknown.")
    with pytest.raises(Refused, match="too many failed log-ins"), guard.log_in("198.51.100.1"):
        pass


def test_wrong_tokens(client: TestClient, clock: Clock) -> None:
    path, agent = joined(client)
    for number in range(10):
        answer = client.get(f"{path}/board", headers={"Authorization": f"Bearer guess-{number}"})
        assert answer.status_code == 401
    wait = assert_limited(client.get(f"{path}/board", headers={"Authorization": "Bearer another"}), 30)
    assert_limited(client.get(f"{path}/board", headers=OPERATOR), 30)  # it might be guessed
    assert_limited(client.post(f"{path}/agents", json={"name": "x", "shares": []}, headers=OPERATOR), 30)
    assert_limited(client.post("/join", json={"collaboration": "x"}, headers=OPERATOR), 30)
    for header in ({}, {"Authorization": "Basic x"}):  # no guesses
        assert client.get(f"{path}/board", headers=header).status_code == 401
    clock.now += 1000 * wait
    assert client.get(f"{path}/board", headers=OPERATOR).status_code == 200
    assert client.get(f"{path}/board", headers=OPERATOR).status_code == 200  # right ones are not counted
    assert client.get(f"{path}/board", headers=agent).status_code == 200


def test_a_member_at_the_address_of_guesses_plays_on(client: TestClient) -> None:
    path, agent = joined(client)
    assert client.get(f"{path}/board", headers=agent).status_code == 200
    for number in range(15):
        client.get(f"{path}/board", headers={"Authorization": f"Bearer guess-{number}"})
    assert_limited(client.get(f"{path}/board", headers={"Authorization": "Bearer another"}), 30)
    assert client.get(f"{path}/board", headers=agent).status_code == 200


# requests


def test_requests_of_one_agent(client: TestClient, clock: Clock) -> None:
    path, agent = joined(client)
    other_path, other = joined(client)
    for _ in range(10):
        assert client.post(f"{path}/ask", headers=agent).status_code == 200
    assert_limited(client.post(f"{path}/ask", headers=agent), 1)
    assert_limited(client.get(f"{path}/board", headers=agent), 1)
    assert client.get(f"{other_path}/board", headers=other).status_code == 200
    for _ in range(30):
        assert client.get(f"{path}/board", headers=OPERATOR).status_code == 200
    clock.now += 1000
    assert [client.get(f"{path}/board", headers=agent).status_code for _ in range(6)] == [200] * 5 + [429]


@pytest.mark.parametrize(
    ("kind", "method", "call", "body"),
    [
        ("ledger", "GET", "/ledger", None),
        ("settlement", "GET", "/settlement", None),
        ("consent", "PATCH", "/agents/me", {"shares": ["a"]}),
        ("close", "POST", "/close", None),
    ],
)
def test_costly_calls(
    client: TestClient,
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
    kind: str,
    method: str,
    call: str,
    body: Any,
) -> None:
    guard: Guard = client.app.state.guard
    monkeypatch.setitem(guard._costly, kind, Buckets(Rate(1, 3), clock))
    path, agent = joined(client)
    other_path, other = joined(client)
    if kind == "close":
        agent = other = OPERATOR
    for _ in range(3):
        assert client.request(method, path + call, headers=agent, json=body).is_success
    assert_limited(client.request(method, path + call, headers=agent, json=body), 1)
    assert client.request(method, other_path + call, headers=other, json=body).is_success
    assert client.get(f"{path}/board", headers=agent).is_success  # other calls go on
    clock.now += 1000
    assert client.request(method, path + call, headers=agent, json=body).is_success


def rotated(client: TestClient, path: str, agent: dict[str, str]) -> httpx.Response:
    """Ask for a new token."""
    return client.post(f"{path}/agents/me/token", headers=agent)


def test_new_tokens(client: TestClient, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """An agent gets few of them at once, and none renews a limit or stays in memory when it has ended."""
    guard: Guard = client.app.state.guard
    monkeypatch.setitem(guard._costly, "token", Buckets(Rate(1, 3), clock))
    path, agent = joined(client)
    ended = []
    for _ in range(3):
        made = rotated(client, path, agent)
        assert made.status_code == 200
        ended.append(agent)
        agent = {"Authorization": f"Bearer {made.json()['token']}"}
    assert_limited(rotated(client, path, agent), 1)
    assert len(client.app.state.controller.sessions._agents) == 1
    assert client.get(f"{path}/board", headers=agent).status_code == 200
    for header in ended:
        assert client.get(f"{path}/board", headers=header).json()["code"] == "token_ended"
    assert len(client.app.state.controller.sessions._agents) == 1
    for _ in range(10 - 5):  # the requests that are left of those at once
        assert client.get(f"{path}/board", headers=agent).status_code == 200
    assert_limited(client.get(f"{path}/board", headers=agent), 1)


def test_a_token_that_has_ended_counts_as_a_wrong_one(client: TestClient) -> None:
    path, agent = joined(client)
    rotated(client, path, {"Authorization": f"Bearer {rotated(client, path, agent).json()['token']}"})
    for _ in range(10):
        assert client.get(f"{path}/board", headers=agent).status_code == 401
    assert_limited(client.get(f"{path}/board", headers=agent), 30)


def test_an_own_entry_costs_the_same_with_any_number_of_members(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, agent = joined(client)
    for name in ("Bob", "Cleo"):
        code = client.post(f"{path}/invites", headers=OPERATOR).json()["invites"][0]
        invited = {"Authorization": f"Bearer {code}"}
        assert client.post(f"{path}/agents", json={"name": name, "shares": []}, headers=invited).is_success
    made: list[str] = []

    def counted(**fields: Any) -> AgentView:
        made.append(fields["agent"])
        return AgentView(**fields)

    monkeypatch.setattr(views, "AgentView", counted)
    assert client.get(f"{path}/agents/me", headers=agent).json()["name"] == "Ann"
    assert client.patch(f"{path}/agents/me", json={"shares": ["b"]}, headers=agent).json()["shares"] == ["b"]
    assert made == ["a1", "a1"]


def test_honest_clients_stay_far_below(clock: Clock) -> None:
    guard = Guard(Limits(), clock)
    for _ in range(20):  # a thousand requests per second of one agent
        for _ in range(1000):
            guard.request("agent")
        clock.now += 1000
    for kind in COSTLY:
        for _ in range(25):
            guard.costly(kind, "agent")
    with pytest.raises(Refused):  # and the limit is there
        deque(map(guard.request, ["agent"] * int(2 * Limits().requests + 1)))


# streams


def test_streams(client: TestClient) -> None:
    """Streams are counted while they are open: two of one token here, and three of all."""
    path, agent = joined(client)
    other_path, other = joined(client)

    async def scene() -> list[Any]:
        found: list[Any] = []
        opened: list[tuple[asyncio.Event, asyncio.Task[None]]] = []

        async def open_stream(path: str, header: dict[str, str]) -> None:
            began, gone = asyncio.Event(), asyncio.Event()
            headers = [(name.lower().encode(), value.encode()) for name, value in header.items()]
            scope = {"type": "http", "method": "GET", "path": f"{path}/events", "raw_path": b"", "query_string": b""}
            scope |= {"headers": headers, "client": ("192.0.2.1", 1), "http_version": "1.1", "scheme": "http"}
            scope |= {"server": ("x", 1), "root_path": "", "asgi": {"version": "3.0"}}

            async def receive() -> Any:
                await gone.wait()
                return {"type": "http.disconnect"}

            async def send(message: Any) -> None:
                if message["type"] == "http.response.start":
                    found.append((message["status"], dict(message["headers"]).get(b"retry-after")))
                    began.set()

            task = asyncio.create_task(client.app(scope, receive, send))
            opened.append((gone, task))
            await asyncio.wait_for(began.wait(), 60)

        async def close_stream(place: int) -> None:
            gone, task = opened[place]
            gone.set()
            await asyncio.wait_for(task, 60)

        await open_stream(path, agent)
        await open_stream(path, agent)
        await open_stream(path, agent)  # the third of this token
        await open_stream(other_path, other)
        await open_stream(other_path, other)  # the fourth of all
        await close_stream(0)
        await open_stream(other_path, other)
        for place in range(len(opened)):
            await close_stream(place)
        return found

    found = client.blocking_portal.call(scene) if hasattr(client, "blocking_portal") else asyncio.run(scene())
    assert [status for status, _ in found] == [200, 200, 429, 200, 429, 200]
    assert [after for status, after in found if status == 429] == [b"5", b"30"]
    guard: Guard = client.app.state.guard
    assert (guard._streams.total, guard._streams._of) == (0, {})


def test_ledgers_at_once(clock: Clock) -> None:
    guard = Guard(Limits(), clock)
    with (
        guard.ledger("bob"),
        guard.ledger("ann"),
        guard.ledger("ann"),
        pytest.raises(Refused, match="Too many ledgers"),
        guard.ledger("ann"),
    ):
        pass
    with guard.ledger("ann"):
        assert guard._ledgers.total == 1


# settings


def test_limits_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Limits.of_environment() == Limits()
    monkeypatch.setenv("PARTAGE_REQUESTS_PER_SECOND", "50")
    monkeypatch.setenv("PARTAGE_STREAMS_PER_TOKEN", "2")
    assert Limits.of_environment() == Limits(requests=50, streams_each=2)
    for wrong in ("many", "0", "-1", "inf", "nan"):
        monkeypatch.setenv("PARTAGE_STREAMS", wrong)
        with pytest.raises(InputError, match="PARTAGE_STREAMS must be a number above 0"):
            Limits.of_environment()

"""Connections: headers that do not end, requests that do not arrive, and what must not be mistaken for them."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.patience import PATIENCE

from partage.service.http import protocol
from partage.service.http.limits import LARGEST_HEAD
from partage.service.http.protocol import LimitedProtocol

START = b"GET / HTTP/1.1\r\nHost: x\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the size of the body."""
    if scope["type"] != "http":
        return
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message["more_body"]
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    """A server with this protocol, in a thread."""
    config = uvicorn.Config(
        app, http=LimitedProtocol, ws="none", lifespan="off", log_config=None, timeout_keep_alive=1
    )
    server = uvicorn.Server(config)
    bound = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[bound])), daemon=True)
    thread.start()
    yield bound.getsockname()
    server.should_exit = True
    thread.join(PATIENCE)
    bound.close()


def answers(address: tuple[str, int], *parts: bytes) -> bytes:
    """Send parts as far as the server takes them, and return all that it answers until it ends the connection."""
    with socket.create_connection(address, timeout=PATIENCE) as connection:
        try:
            for part in parts:
                connection.sendall(part)
        except OSError:
            pass
        found = b""
        try:
            while more := connection.recv(65536):
                found += more
        except ConnectionResetError:
            pass
    return found


def assert_refused(found: bytes, status: int, code: str) -> None:
    head, _, body = found.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), found[:200]
    assert b"nosniff" in head
    assert json.loads(body)["code"] == code


# sizes


@pytest.mark.parametrize(
    "endless",
    [
        START + b"X: " + b"x" * 10_000_000,
        START + b"X: x\r\n" * 1_000_000,
        START + b"x" * 1_000_000,
        b"GET /" + b"x" * 1_000_000,
        b"GET / HTTP/1.1\r\nCookie: " + b"a=b; " * 200_000,
    ],
    ids=["one header", "many headers", "a name", "an address", "cookies"],
)
def test_headers_without_end(address: tuple[str, int], endless: bytes) -> None:
    assert_refused(answers(address, endless), 431, "headers_too_large")
    slowly = [endless[place : place + 4001] for place in range(0, 100_000, 4001)]
    assert_refused(answers(address, *slowly), 431, "headers_too_large")


def test_empty_lines_without_end(address: tuple[str, int]) -> None:
    assert_refused(answers(address, b"\r\n" * 100_000), 431, "headers_too_large")


@pytest.mark.parametrize("rest", [b"1\r\nx\r\n0\r\nT: " + b"x" * 1_000_000, b"1;" + b"x" * 1_000_000, b"0" * 100_000])
def test_what_is_no_body_without_end(address: tuple[str, int], rest: bytes) -> None:
    found = answers(address, b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + rest)
    assert found == b"" or found.startswith(b"HTTP/1.1 400")


def test_no_parser_sees_more_than_the_limit(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever arrives at once, the parser gets it in pieces, and not one more after the limit."""
    fed = 0
    parse = protocol.HttpToolsProtocol.data_received

    def counted(self: Any, data: bytes) -> None:
        nonlocal fed
        fed += len(data)
        assert len(data) <= LARGEST_HEAD
        parse(self, data)

    monkeypatch.setattr(protocol.HttpToolsProtocol, "data_received", counted)
    assert_refused(answers(address, START + b"X: " + b"x" * 50_000_000), 431, "headers_too_large")
    assert fed <= 2 * LARGEST_HEAD


def test_headers_up_to_the_limit(address: tuple[str, int]) -> None:
    room = LARGEST_HEAD - len(START) - len(b"X: \r\n\r\n")
    close = START + b"X: " + b"x" * room + b"\r\n"
    assert answers(address, close[:-20] + b"\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_bodies_of_any_kind(address: tuple[str, int]) -> None:
    url = f"http://{address[0]}:{address[1]}/"
    for size in (0, 1, 100_000, 3_000_000):
        assert httpx.post(url, content=b"x" * size, timeout=PATIENCE).text == str(size)
    one_by_one = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    one_by_one += b"1\r\nx\r\n" * 200_000 + b"0\r\n\r\n"
    assert answers(address, one_by_one).endswith(b"200000")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.sampled_from([0, 1, 10, 30_000, 40_000, 100_000]), min_size=1, max_size=5),
    cuts=st.lists(st.integers(1, 70_000), max_size=8),
)
def test_requests_in_one_connection(address: tuple[str, int], sizes: list[int], cuts: list[int]) -> None:
    """However requests are cut into packets, each gets its answer."""
    sent = b"".join(
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size for size in sizes
    )
    sent += START + b"Connection: close\r\n\r\n"
    parts, place = [], 0
    for cut in cuts:
        parts.append(sent[place : place + cut])
        place += cut
    found = answers(address, *parts, sent[place:])
    bodies = [part.split(b"HTTP/1.1")[0] for part in found.split(b"\r\n\r\n")[1:]]
    assert bodies == [str(size).encode() for size in [*sizes, 0]]


# times


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"GET / HT", START, START + b"X: x"])
def test_a_request_that_does_not_arrive(
    address: tuple[str, int], sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_TIME", 0.05)
    assert_refused(answers(address, sent), 408, "invalid_body")
    whole = START.replace(b"GET", b"POST") + b"Content-Length: 1\r\n\r\nx"
    found = answers(address, whole + sent)
    assert found.startswith(b"HTTP/1.1 200")
    assert (b"HTTP/1.1 408" in found) == bool(sent.strip())  # a connection that only waits is closed without a word


def test_a_body_that_does_not_arrive(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "BODY_TIME", 0.05)
    assert answers(address, START + b"Content-Length: 5\r\n\r\nx") == b""
    assert answers(address, START + b"Transfer-Encoding: chunked\r\n\r\n5\r\nx") == b""

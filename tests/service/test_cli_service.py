"""The command line of the live controller: serve, collaboration, agent, verify, demo."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest
from tests.service.server import Server


def partage(*arguments: str, env: dict[str, str] | None = None, **options) -> subprocess.CompletedProcess:
    """Run the command line as a process, and return what it printed."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("PARTAGE_")} | (env or {})
    command = [sys.executable, "-m", "partage.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=given, check=False, **options)


def sentence(ended: subprocess.CompletedProcess, code: int = 2) -> str:
    """Return the one sentence of an error."""
    assert ended.returncode == code, ended
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1, ended.stderr
    return ended.stderr


# --- serve ----------------------------------------------------------------------------------------------------


def test_the_operators_token_is_printed_once(tmp_path):
    database = f"{tmp_path}/partage.db"
    with Server(database) as first:
        assert first.operator_token.startswith("pt_op_")
        assert first.output.count(first.operator_token) == 1
        assert "Ctrl-C" in first.output
    with Server(database) as second:
        assert second.operator_token == ""
        assert "pt_op_" not in second.output
        answer = httpx.get(
            f"{second.url}/v1/collaborations", headers={"Authorization": f"Bearer {first.operator_token}"}
        )
        assert answer.json() == []


def test_the_operators_token_of_the_environment(tmp_path):
    token = "a-token-of-my-own-that-nobody-guesses"
    with Server(f"{tmp_path}/partage.db", env={"PARTAGE_OPERATOR_TOKEN": token}) as server:
        answer = httpx.get(f"{server.url}/v1/collaborations", headers={"Authorization": f"Bearer {token}"})
        assert answer.json() == []
    assert token not in server.output
    assert "pt_op_" not in server.output


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_stop_ends_its_streams_and_well(server, how):
    operator = {"Authorization": f"Bearer {server.operator_token}"}
    new = {"name": "bakers", "arms": ["a", "b"], "horizon": 100}
    made = httpx.post(f"{server.url}/v1/collaborations", json=new, headers=operator).json()
    ended, began = threading.Event(), threading.Event()

    def listen() -> None:
        with httpx.stream("GET", f"{server.url}/v1/collaborations/{made['id']}/events", headers=operator) as stream:
            for _ in stream.iter_lines():
                began.set()
        ended.set()

    thread = threading.Thread(target=listen)
    thread.start()
    assert began.wait(10)
    started = time.monotonic()
    assert server.stop(how) == 0
    assert time.monotonic() - started < 5
    thread.join(5)
    assert ended.is_set()  # the last chunk came: not a connection that was cut
    assert "Traceback" not in server.output


def test_a_port_that_is_taken_is_a_sentence_and_costs_no_token(tmp_path):
    database = f"{tmp_path}/partage.db"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = partage("serve", "--database", database, "--port", str(port))
    assert (
        sentence(ended) == f"The port {port} of 127.0.0.1 is taken; use another, or --port 0 for any that is free.\n"
    )
    with Server(database) as server:
        assert server.operator_token


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--workers=2"], "SQLite serves one process, and 2 workers were asked for"),
        (["--workers=0"], "between 1 and 64"),
        (["--port=70000"], "between 0, which is any free one, and 65535"),
        (["--host=no such host"], "is not known here"),
        (["--log-level=loud"], "one of debug, info, warning"),
        (["--database=mysql://me:secret@there/db"], "SQLite or PostgreSQL"),
    ],
)
def test_what_serve_cannot_do(flags, words, tmp_path):
    said = sentence(partage("serve", *flags, env={"PARTAGE_DATABASE": f"{tmp_path}/partage.db"}))
    assert words in said
    assert "secret" not in said


def test_several_workers_on_postgresql(postgres_url):
    with Server(postgres_url, workers=2) as server:
        operator = {"Authorization": f"Bearer {server.operator_token}"}
        for _ in range(8):
            assert httpx.get(f"{server.url}/v1/collaborations", headers=operator).status_code == 200
        assert server.output.count("pt_op_") == 1
        assert server.stop() == 0
    assert "Traceback" not in server.output

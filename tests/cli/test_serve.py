"""`partage serve`."""

import signal
import socket
import threading

import httpx
import pytest
from tests.support.command_line import partage, sentence
from tests.support.patience import PATIENCE
from tests.support.server import Server


def test_the_operators_token_is_printed_once(tmp_path):
    database = f"{tmp_path}/partage.db"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = sentence(partage("serve", "--database", database, "--port", str(port)))
    assert said.startswith(f"The port {port} of 127.0.0.1 is ")  # no token was made, since nobody would have seen it
    with Server(database) as first:
        assert first.operator_token.startswith("pt_op_")
        assert first.output.count(first.operator_token) == 1
        assert "Ctrl-C" in first.output
    with Server(database) as second:
        assert second.operator_token == ""
        assert "pt_op_" not in second.output
        operator = {"Authorization": f"Bearer {first.operator_token}"}
        assert httpx.get(f"{second.url}/v1/collaborations", headers=operator, timeout=PATIENCE).json() == []


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_stop_ends_its_streams_and_exits_well(tmp_path, how):
    token = "a-token-of-my-own-that-nobody-guesses"
    operator = {"Authorization": f"Bearer {token}"}
    with Server(f"{tmp_path}/partage.db", env={"PARTAGE_OPERATOR_TOKEN": token}) as server:
        new = {"name": "bakers", "arms": ["a", "b"], "horizon": 100}
        made = httpx.post(f"{server.url}/v1/collaborations", json=new, headers=operator, timeout=PATIENCE).json()
        events = f"{server.url}/v1/collaborations/{made['id']}/events"
        ended, began = threading.Event(), threading.Event()

        def listen() -> None:
            with httpx.stream("GET", events, headers=operator, timeout=PATIENCE) as stream:
                for _ in stream.iter_lines():
                    began.set()
            ended.set()

        thread = threading.Thread(target=listen)
        thread.start()
        assert began.wait(PATIENCE)
        assert server.stop(how) == 0
        thread.join(PATIENCE)
        assert ended.is_set()  # the last chunk came: the connection was not cut
    assert '"message": "stopped"' in server.output
    assert "graceful shutdown exceeded" not in server.output  # the stream ended by itself, and nothing was cancelled
    assert "Traceback" not in server.output
    assert token not in server.output
    assert "pt_op_" not in server.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--workers=2"], "--workers 1"),
        (["--workers=0"], "between 1 and 64"),
        (["--port=70000"], "65535"),
        (["--host=no such host"], "The host no such host"),
        (["--log-level=loud"], "one of debug, info, warning"),
        (["--public-url=partage.example.org"], "such as https://"),
        (["--public-url=https://a.example/?x=<b>"], "such as https://"),
        (["--database=mysql://me:secret@there/db"], "SQLite or PostgreSQL"),
    ],
)
def test_what_serve_cannot_do(options, words, tmp_path):
    said = sentence(partage("serve", *options, PARTAGE_DATABASE=f"{tmp_path}/partage.db"))
    assert words in said
    assert "secret" not in said


def test_several_workers_on_postgresql(postgres_url):
    with Server(postgres_url, workers=2) as server:
        operator = {"Authorization": f"Bearer {server.operator_token}"}
        for _ in range(8):
            assert httpx.get(f"{server.url}/v1/collaborations", headers=operator, timeout=PATIENCE).status_code == 200
        assert server.output.count("pt_op_") == 1
        assert server.stop() == 0
    assert "Traceback" not in server.output


def test_a_start_without_the_token_of_the_last_one_is_refused(tmp_path):
    database, own = f"{tmp_path}/partage.db", "a-token-of-my-own-that-nobody-guesses"

    def listed(server, token):
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.get(f"{server.url}/v1/collaborations", headers=headers, timeout=PATIENCE).status_code

    with Server(database) as first:
        printed = first.operator_token
        assert listed(first, printed) == 200
    with Server(database, env={"PARTAGE_OPERATOR_TOKEN": own}) as second:
        assert (listed(second, own), listed(second, printed)) == (200, 401)
    said = sentence(partage("serve", "--database", database, "--port=0"))
    assert "PARTAGE_OPERATOR_TOKEN" in said
    assert "--new-token" in said
    said = sentence(partage("serve", "--database", database, "--new-token", PARTAGE_OPERATOR_TOKEN=own))
    assert "unset" in said
    with Server(database, options=["--new-token"]) as third:
        assert third.operator_token not in ("", printed)
        assert (listed(third, third.operator_token), listed(third, own), listed(third, printed)) == (200, 401, 401)

"""The command line of the live controller: serve, collaboration, agent, verify, demo."""

import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from tests.support.server import Server

from partage.cli import app
from partage.client import Agent


def partage(*arguments: str, env: dict[str, str] | None = None, **options) -> subprocess.CompletedProcess:
    """Run the command line as a process, and return what it printed."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("PARTAGE_")}
    given |= {"COLUMNS": "118"} | (env or {})
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


# --- collaboration, agent, verify -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def controller(tmp_path_factory):
    """A server for all tests that do not mind one another's collaborations."""
    with Server(f"{tmp_path_factory.mktemp('controller')}/partage.db") as running:
        yield running


@pytest.fixture
def operator(controller):
    """The command line as the operator of the server."""

    def run(*arguments: str, code: int = 0, **options) -> str:
        env = {"PARTAGE_URL": controller.url, "PARTAGE_OPERATOR_TOKEN": controller.operator_token}
        ended = partage("collaboration", *arguments, env=env, **options)
        assert ended.returncode == code, ended
        assert controller.operator_token not in ended.stdout + ended.stderr
        return ended.stdout if code == 0 else ended.stderr

    return run


NEW = ["create", "Bakers of [red]", "--arm=Moulin A", "--arm=Moulin B", "--horizon=1e3", "--rule=balanced-glr"]
NEW += ["--settlement=equal-share", "--fee=0.05", "--value=2", "--claim-seconds=30", "--invites=2"]


def play(path: Path, steps: int) -> str:
    """Play as the agent of a state file; returns the head that her client kept."""
    with Agent.resume(path) as agent:
        agent.play(lambda arm: float(arm == "Moulin A"), steps)
        return agent.head


def test_a_collaboration_from_its_creation_to_its_verified_ledger(controller, operator, tmp_path):
    made = json.loads(operator(*NEW, "--json"))
    id, links = made["id"], made["links"]
    assert links == [f"{controller.url}/join#{id}.{code}" for code in made["invites"]]
    assert "Bakers of [red]" in operator("list")
    (listed,) = (one for one in json.loads(operator("list", "--json")) if one["id"] == id)
    assert (listed["id"], listed["rule"], listed["fee"], listed["claim_seconds"]) == (id, "balanced-glr", 0.05, 30)

    # Agents join: by a link on standard input, and by address, id and the invite in the environment.
    morel, haddad = tmp_path / "morel.json", tmp_path / "haddad.json"
    shares = ["--share=Moulin A", "--share=Moulin B"]
    joined = partage("agent", "join", "-", "Morel", *shares, f"--state={morel}", input=links[0] + "\n")
    assert joined.returncode == 0, joined
    assert "Morel has joined as agent a1" in joined.stdout
    assert "Agent.resume" in joined.stdout
    token = json.loads(morel.read_text())["token"]
    assert token not in joined.stdout + joined.stderr
    more = [
        "agent",
        "join",
        controller.url,
        "Haddad",
        "--share=Moulin B",
        f"--collaboration={id}",
        f"--state={haddad}",
    ]
    joined = partage(*more, "--json", env={"PARTAGE_INVITE": made["invites"][1]})
    assert json.loads(joined.stdout)["agent"] == "a2", joined

    head = play(morel, 20)
    play(haddad, 20)
    shown = operator("show", id)
    assert "Bakers of [red]" in shown
    assert "●" in shown
    board = json.loads(operator("show", id, "--json"))["board"]
    assert board["version"] > 0

    assert "if it closed now" in operator("settlement", id)
    assert "give --yes" in operator("close", id, code=2, stdin=subprocess.DEVNULL)
    assert json.loads(operator("show", id, "--json"))["closed"] is False
    closed = operator("close", id, "--yes")
    assert "Settlement equal-share\n" in closed
    settled = json.loads(operator("settlement", id, "--json"))
    rows = list(csv.DictReader(operator("settlement", id, "--csv").splitlines()))
    assert [row["name"] for row in rows] == ["Morel", "Haddad", ""]
    assert sum(int(row["net"]) for row in rows) == 0
    assert [int(row["net"]) for row in rows] == [*(row["net"] for row in settled["rows"]), settled["profit"]]
    assert operator("settlement", id, "--csv", "--json", code=2).startswith("--csv and --json exclude")

    whole, copy = tmp_path / "whole.ndjson", tmp_path / "copy.ndjson"
    assert f"check them with: partage verify {whole}" in operator("ledger", id, "-o", str(whole))
    assert operator("ledger", id, "-o", "-") == whole.read_text()
    found = partage("verify", str(whole), "--head", head)
    assert found.returncode == 0, found
    for words in ("is right: the whole ledger", "Checked:", "Taken on trust:", "Settlement equal-share", "Haddad"):
        assert words in found.stdout
    with Agent.resume(morel) as agent:
        agent.ledger(copy)
    found = json.loads(partage("verify", str(copy), "--head", head, "--agent=a1", "--json").stdout)
    assert (found["ok"], found["whole"], found["agent"], found["problem"]) == (True, False, "a1", None)
    assert found["row"] == settled["rows"][0]

    # Wrong: a changed line, another history, an agent who is not in it.
    lines = whole.read_text().splitlines(keepends=True)
    at = next(place for place, line in enumerate(lines) if '"reward":' in line)
    other = '"reward":0.0' if '"reward":1.0' in lines[at] else '"reward":1.0'
    lines[at] = re.sub(r'"reward":[\d.]+', other, lines[at])
    changed = tmp_path / "changed.ndjson"
    changed.write_text("".join(lines))
    wrong = partage("verify", str(changed))
    assert wrong.returncode == 1
    assert f"is wrong. Line {at + 1}: its hash does not fit" in wrong.stdout
    assert wrong.stderr == ""
    assert json.loads(partage("verify", str(changed), "--json").stdout)["problem"][0] == at + 1
    wrong = partage("verify", str(whole), "--head", "0" * 63 + "1")
    assert wrong.returncode == 1
    assert "The history was rewritten" in wrong.stdout
    assert "not in this ledger" in sentence(partage("verify", str(whole), "--agent=a9"))


def test_more_invites(controller, operator):
    id = json.loads(operator(*NEW, "--json"))["id"]
    made = operator("invite", id, "--count=2", "--hours=1")
    assert made.count(f"{controller.url}/join#{id}.pt_in_") == 2
    assert len(json.loads(operator("invite", id, "--json"))["links"]) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "c0"], "There is no such collaboration."),
        (["show", "../c0"], "The id of a collaboration is one word"),
        (["create", "Bakers", "--arm=A", "--horizon=soon"], "--horizon must be a number"),
        (["create", "Bakers", "--arm=A", "--horizon=inf"], "--horizon must be a number"),
        (["create", "Bakers", "--arm=A", "--horizon=1"], "The field horizon must be a whole number from 2"),
        (["create", "Bakers", "--arm=A", "--arm=A", "--horizon=9"], "The field arms must be a list of"),
        (["create", "Bakers", "--arm=A", "--horizon=9", "--balance=much"], "--balance must be a number"),
        (["create", "Bakers", "--horizon=9"], "Missing option"),
        (["ledger", "c0", "-o", "/nowhere/at/all"], "The file /nowhere/at/all cannot be written"),
        (["list", "--url=ftp://there"], "must look like http://127.0.0.1:8000"),
        (["list", "--url=http://me:secret@there"], "must look like http://127.0.0.1:8000"),
    ],
)
def test_what_the_controller_refuses_is_a_sentence(arguments, words, operator):
    said = operator(*arguments, code=2)
    assert words in said
    assert said.count("\n") == 1
    assert "secret" not in said


def test_the_token_comes_from_a_file_or_the_environment_and_never_shows(server, tmp_path):
    token, file = "pt_op_not-the-operators", tmp_path / "token"
    env = {"PARTAGE_URL": server.url}
    said = sentence(partage("collaboration", "list", env=env))
    assert "PARTAGE_OPERATOR_TOKEN" in said
    assert "--token-file" in said
    assert sentence(partage("collaboration", "list", f"--token-file={file}", env=env)).startswith("The token file")
    file.write_text(token + "\n")
    assert sentence(partage("collaboration", "list", f"--token-file={file}", env=env)) == (
        "This token is not known here.\n"
    )
    file.write_text(f"not a {token}")
    assert token not in sentence(partage("collaboration", "list", f"--token-file={file}", env=env))
    file.write_text(server.operator_token + "\n")
    good = partage("collaboration", "list", f"--token-file={file}", env=env)
    assert good.stdout.startswith("There is no collaboration yet")
    good = partage("collaboration", "list", "--token-file=-", "--json", env=env, input=server.operator_token)
    assert json.loads(good.stdout) == []


def test_a_controller_that_is_not_there():
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    env = {"PARTAGE_URL": url, "PARTAGE_OPERATOR_TOKEN": "pt_op_secret"}
    said = sentence(partage("collaboration", "list", env=env))
    assert said.startswith(f"No controller answers at {url}; start one with partage serve")
    assert "pt_op_secret" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["http://127.0.0.1:1"], "This is no invite's link"),
        (["-"], "must look like http"),
        (["http://127.0.0.1:1", "--collaboration=c0"], "Joining needs an invite"),
        (["http://127.0.0.1:1/join#c0.pt_in_secret"], "could not be reached"),
    ],
)
def test_who_cannot_join_gets_a_sentence(arguments, words, tmp_path):
    command = ["agent", "join", *arguments, "Morel", f"--state={tmp_path}/morel.json"]
    said = sentence(partage(*command, input=""))
    assert words in said
    assert "secret" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["/nowhere/at/all"], "The file /nowhere/at/all cannot be read"),
        (["README.md", "--head=12"], "A head is 64 hexadecimal digits"),
        ([], "Missing argument"),
    ],
)
def test_what_verify_cannot_read(arguments, words):
    assert words in sentence(partage("verify", *arguments))


def test_a_file_that_is_no_ledger_is_wrong_from_its_first_line(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"\x00\xff\n")
    ended = partage("verify", str(file))
    assert ended.returncode == 1
    assert "Line 1: it is no line of a ledger" in ended.stdout


# --- demo -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="looks at processes as Unix has them")
def test_the_demo_plays_settles_and_verifies(tmp_path):
    folder = tmp_path / "demo"
    ended = partage("demo", "--fast", f"--folder={folder}")
    assert ended.returncode == 0, ended
    assert ended.stderr == ""
    shown = ended.stdout
    places = [
        shown.index(words)
        for words in (
            "Starting a controller",
            "in a browser",
            "pt_op_",
            "pt_ag_",
            "/join#",
            "They begin.",
            "is found to be the best",
            "Closing. Leader: Moulin du Pont Vieux",
            "Settlement equal-share",
            "operator.ndjson is right: the whole ledger",
            "morel.ndjson is right: an agent's copy",
            "The head that was kept is that of line",
            "Her row is what her pulls and the board come to",
        )
    ]
    assert places == sorted(places)
    assert "Le Fournil d'Inès shares Minoterie Aubry from now on" in shown
    assert "Le Pétrin leaves" in shown
    with pytest.raises(httpx.TransportError):  # the controller is gone with it
        httpx.get(re.search(r"http://[\d.:]+", shown)[0])
    again = partage("demo", "--fast", f"--folder={folder}")
    assert (again.returncode, again.stderr) == (2, f"The folder {folder} has a demo already; name another.\n")


@pytest.mark.skipif(os.name == "nt", reason="sends a Unix signal")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_demo_and_its_controller(how):
    env = {name: value for name, value in os.environ.items() if not name.startswith("PARTAGE_")}
    program = (
        "import signal; from partage.cli import app;"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"  # in the background it would be ignored
        "app(['demo'])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )
    try:
        while not (line := process.stdout.readline()).startswith("They begin"):
            assert line, process.stderr.read()
            if found := re.search(r"http://[\d.:]+", line):
                url = found[0]
        assert httpx.get(f"{url}/ready").status_code == 200
        process.send_signal(how)
        _, complained = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert complained == ""
    with pytest.raises(httpx.TransportError):
        httpx.get(url)


@pytest.mark.parametrize(
    ("flag", "words"), [("--pace=0", "The pace must be"), ("--rule=luck", "The field rule must")]
)
def test_what_the_demo_cannot_do(flag, words):
    ended = partage("demo", "--fast", flag)
    ended.stdout = ended.stdout.removeprefix("Starting a controller …\n")
    assert words in sentence(ended)


# --- help -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "serve",
        "verify",
        "demo",
        "agent join",
        *(f"collaboration {name}" for name in ("create", "list", "show", "invite", "close", "settlement", "ledger")),
    ],
)
def test_every_help_has_an_example(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit) as stop:
        app([*command.split(), "--help"], prog_name="partage")
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    examples = [line for line in printed.splitlines() if line.startswith(f" partage {command} ")]
    assert examples, printed

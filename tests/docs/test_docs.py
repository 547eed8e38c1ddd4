"""What the docs of the live controller say is what happens: the tutorial and the API's examples run word for word."""

import ast
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from tests.support.server import Server
from typer.main import get_command

import partage
from partage.cli import app
from partage.client import Agent, AsyncAgent, Played, Pull
from partage.client.base import Options
from partage.ledger import events
from partage.ledger import messages as wire
from partage.service.http.app import create_app
from partage.service.runtime.controller import Controller
from partage.service.store import open_store

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = ("tutorial", "api", "client", "deployment", "privacy", "controller")
PATIENCE = 300  # seconds for the whole tutorial; an idle machine takes some twenty


class Block(NamedTuple):
    """A fenced block of a page: its language and its text."""

    kind: str
    text: str


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def blocks(name: str) -> Iterator[Block]:
    for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL):
        yield Block(kind, text)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def shell(script: str, folder: Path, **given: str) -> list[str]:
    """Run a script in which `partage` and `python` are these; returns what it printed between its marks."""
    if shutil.which("curl") is None:
        assert "CI" not in os.environ, "curl is not installed."
        pytest.skip("curl is not installed.")
    programs = folder / "programs"
    programs.mkdir()
    for name, start in (("python", ""), ("partage", " -m partage.cli")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{start} "$@"\n')
        (programs / name).chmod(0o755)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PARTAGE_")}
    env |= {"PATH": f"{programs}:{env['PATH']}", "COLUMNS": "100", "LC_ALL": "C.UTF-8", **given}
    env["PYTHONPATH"] = str(Path(partage.__file__).parent.parent)  # a relative one would not hold in other folders
    # Whatever still runs at the end, well or not, is ended: the server first of all.
    script = f"set -eu -o pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"
    (folder / "script.sh").write_text(script)
    told = folder / "said"
    with open(told, "wb") as out:  # not a pipe, which a server that goes on would hold open
        command = ["bash", str(folder / "script.sh")]
        ended = subprocess.run(command, cwd=folder, env=env, timeout=PATIENCE, stdout=out, stderr=out, check=False)
    printed = told.read_text(encoding="utf-8")
    assert ended.returncode == 0, printed
    return printed.split("==== block\n")[1:]


def shape(text: str) -> list[str]:
    """Return lines without what chance decides: numbers, ids, hashes, which mill; and without rules and spaces."""
    text = re.sub(r"[0-9a-f]{64}|\bc[0-9a-f]{12}\b", "#", text)
    text = re.sub(r"-?\d[\d.,]*\d|-?\d", "#", text)
    text = re.sub(r"(North|East|West) Mill", "a mill", text)
    text = re.sub(r"[─├┤●]", "", text)
    return [line for raw in text.splitlines() if (line := " ".join(raw.split()))]


def assert_shown(shown: str, printed: str) -> None:
    """See that each line that the page shows was printed, in this order."""
    rest = iter(shape(printed))
    for line in shape(shown):
        assert any(line == found for found in rest), f"{line!r} was not printed:\n{printed}"


# --- the tutorial -----------------------------------------------------------------------------------------------


def test_the_tutorial_works_word_for_word(tmp_path):
    port = str(free_port())
    parts, shown = [], []
    for kind, text in blocks("tutorial"):
        text = text.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
        if kind == "python":  # to be saved under the name that it begins with
            name = re.match(r"# (\w+\.py)\n", text)[1]
            parts.append(f"cat > {name} <<'END OF FILE'\n{text}END OF FILE\n")
        elif kind == "sh":
            text = text.replace("partage serve ", f"partage serve --port {port} ")
            parts.append(f"echo '==== block'\n{text}")
            shown.append("")
        else:
            assert kind == "text"
            shown[-1] += text
    assert len(shown) > 12
    said = shell("".join(parts), tmp_path, PARTAGE_URL=f"http://127.0.0.1:{port}")
    assert len(said) == len(shown)
    for promised, printed in zip(shown, said, strict=True):
        assert_shown(promised, printed)
    # the loop as it was, without Partage
    assert subprocess.run([sys.executable, tmp_path / "three-shops" / "shop.py"], check=False).returncode == 0


def test_adding_partage_takes_five_lines():
    found = [text for kind, text in blocks("tutorial") if kind == "python"]
    harbour = next(text for text in found if text.startswith("# harbour.py"))
    assert re.findall(r"  # (\d)$", harbour, re.MULTILINE) == ["1", "2", "3", "4", "5"]


# --- the API ----------------------------------------------------------------------------------------------------


def paths_of(app) -> set[tuple[str, str]]:
    return {
        (method.upper(), path)
        for path, calls in app.openapi_schema.to_schema()["paths"].items()
        for method in calls
        if path != "/"
    }


def test_every_call_is_in_the_api_page_and_no_other(tmp_path):
    controller = Controller(open_store(f"{tmp_path}/partage.db"))
    try:
        served = paths_of(create_app(controller))
    finally:
        controller.store.close()
    told = set(re.findall(r"^### `(GET|POST|PATCH|DELETE|PUT) (\S+)`$", page("api"), re.MULTILINE))
    assert told - {("GET", "/metrics"), ("GET", "/schema")} == served


def test_every_field_of_the_wire_is_in_the_api_page():
    text = page("api")
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", text))))
    for kind in vars(wire).values():
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == wire.__name__:
            missing = set(kind.__struct_fields__) - named
            assert not missing, (kind.__name__, missing)
    for rule in wire.LIVE_RULES:
        assert f"`{rule}`" in text


def test_the_limits_in_the_api_page():
    text = page("api")
    for number in (
        wire.LARGEST_BODY // 1024,
        wire.MOST_ARMS,
        wire.LONGEST_NAME,
        wire.LONGEST_CLAIM,
        wire.MOST_INVITES,
    ):
        assert re.search(rf"\b{number:,}\b", text), number


def test_the_examples_of_the_api_page_are_served(tmp_path):
    parts, shown = [], []
    for kind, text in blocks("api"):
        if kind == "sh":
            parts.append(f"echo '==== block'\n{text}")
            shown.append("")
        elif kind == "json":
            shown[-1] += text
    with Server(f"{tmp_path}/partage.db") as server:
        said = shell("".join(parts), tmp_path, SERVER=server.url, OPERATOR=server.operator_token)
    assert len(said) == len(shown)
    for promised, printed in zip(shown, said, strict=True):
        for line in promised.splitlines():
            assert_same_keys(msgspec.json.decode(line), msgspec.json.decode(printed.splitlines()[0]))


def assert_same_keys(shown, told) -> None:
    """See that an answer has the keys that the page shows, in all places."""
    if isinstance(shown, dict):
        assert shown.keys() == told.keys()
        for key, value in shown.items():
            assert_same_keys(value, told[key])
    elif isinstance(shown, list) and shown and told:
        assert_same_keys(shown[0], told[0])


# --- the others -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_python_blocks_can_be_read(name):
    for kind, text in blocks(name):
        if kind == "python":
            ast.parse(text)


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page(name)):
        if "://" not in target:
            assert (DOCS / target).exists(), target


def test_the_privacy_page_names_every_field_of_the_ledger():
    text = page("privacy")
    for event in events.AnyEvent.__args__:
        assert f"`{event.__struct_config__.tag}`" in text
        for field in event.__struct_fields__:
            assert re.search(rf"`{field}`", text), (event.__name__, field)


@pytest.mark.parametrize("name", [*PAGES, "../README"])
def test_commands_and_flags_that_pages_name_exist(name):
    text = page(name)
    spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text) + [block.text for block in blocks(name)]
    told = [line for span in spans for line in span.replace("\\\n", " ").splitlines()]
    for words in re.findall(r"(?:^|; |do |bin/)partage ([a-z]+ [^\n|;>]*|[a-z]+$)", "\n".join(told), re.MULTILINE):
        command, given = get_command(app), words.split()
        while given and hasattr(command, "commands"):
            assert given[0] in command.commands, words
            command = command.commands[given.pop(0)]
        known = {flag for option in command.params for flag in option.opts}
        assert {word for word in given if re.match(r"--?[a-z]", word)} <= known, words


def test_the_client_page_names_all_that_an_agent_can():
    text = page("client")
    names = {name for name in dir(Agent) if not name.startswith("_")}
    assert names == {name for name in dir(AsyncAgent) if not name.startswith("_")}
    for name in names | set(Options.__annotations__) | set(Pull._fields) | set(Played.__dataclass_fields__):
        assert re.search(rf"`(Agent\.)?{name}\b", text), name
    for error in ("Closed", "HorizonReached", "Refused", "Unreachable"):
        assert f"`{error}`" in text


def test_deployed_files_agree_with_the_page():
    text = page("deployment")
    for file in ("deploy/partage.service", "deploy/Containerfile", "deploy/nginx.conf"):
        assert (ROOT / file).exists()
        assert file in text
    unit = (ROOT / "deploy/partage.service").read_text()
    assert "MemoryDenyWriteExecute=yes" not in unit  # compiled code could not run
    proxy = (ROOT / "deploy/nginx.conf").read_text()
    largest = int(re.search(r"client_max_body_size (\d+)k;", proxy)[1]) * 1024
    assert largest > wire.LARGEST_BODY  # so that the controller says the sentence, not the proxy a page
    assert "proxy_buffering off;" in proxy


def test_the_unit_is_one_for_systemd(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed.")
    unit = (ROOT / "deploy/partage.service").read_text()
    unit = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit, flags=re.MULTILINE)
    (tmp_path / "partage.service").write_text(unit)
    told = subprocess.run(
        [program, "verify", tmp_path / "partage.service"], capture_output=True, text=True, check=False
    )
    about = [line for line in told.stderr.splitlines() if "partage.service" in line]
    assert not about, told.stderr

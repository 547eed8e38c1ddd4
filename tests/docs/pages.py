"""The pages of the documentation, their fenced blocks, and how to run the commands in them."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.patience import PATIENCE

import partage

ROOT = Path(__file__).parents[2]
PAGES = sorted(str(file.relative_to(ROOT)) for file in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


class Block(NamedTuple):
    """A fenced block of a page: its language and its text."""

    kind: str
    text: str


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str) -> Iterator[Block]:
    for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL):
        yield Block(kind, text)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def run_script(script: str, folder: Path, **variables: str) -> list[str]:
    """Run a shell script with this Python and this Partage; return its output, split at the lines `==== block`."""
    if shutil.which("curl") is None:
        assert "CI" not in os.environ, "curl is not installed."
        pytest.skip("curl is not installed.")
    programs = folder / "programs"
    programs.mkdir()
    for name, start in (("python", ""), ("partage", " -m partage.cli")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{start} "$@"\n')
        (programs / name).chmod(0o755)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PARTAGE_")}
    env |= {"PATH": f"{programs}:{env['PATH']}", "COLUMNS": "100", "LC_ALL": "C.UTF-8", **variables}
    env["PYTHONPATH"] = str(Path(partage.__file__).parent.parent)  # the script changes folders: no relative path
    # Whatever happens, stop the processes that still run at the end, such as the server.
    script = f"set -eu -o pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"
    (folder / "script.sh").write_text(script)
    output = folder / "output"
    with open(output, "wb") as out:  # a pipe would stay open as long as the server runs
        command = ["bash", str(folder / "script.sh")]
        ended = subprocess.run(
            command, cwd=folder, env=env, timeout=2 * PATIENCE, stdout=out, stderr=out, check=False
        )
    printed = output.read_text(encoding="utf-8")
    assert ended.returncode == 0, printed
    return printed.split("==== block\n")[1:]


def shape(text: str) -> list[str]:
    """Return the lines without what depends on chance: numbers, ids, hashes, mills, the state of an arm, bars."""
    text = re.sub(r"[0-9a-f]{64}|\bc[0-9a-f]{12}\b", "#", text)
    text = re.sub(r"-?\d[\d.,]*\d|-?\d", "#", text)
    text = re.sub(r"(North|East|West) Mill", "a mill", text)
    text = re.sub(r"^(a mill[^a-z\n]*)[a-z ]+$", r"\1", text, flags=re.MULTILINE)
    text = re.sub(r"[─├┤●]", "", text)
    return [line for raw in text.splitlines() if (line := " ".join(raw.split()))]


def assert_shown(shown: str, printed: str) -> None:
    """Check that each line on the page was printed, in this order."""
    rest = iter(shape(printed))
    for line in shape(shown):
        assert any(line == found for found in rest), f"{line!r} was not printed:\n{printed}"


def run_tutorial(name: str, folder: Path, **variables: str) -> int:
    """Run a page's blocks in order, check that they print what it shows, and return how many there are."""
    port = str(free_port())
    parts, shown = [], []
    for kind, text in blocks(name):
        text = text.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
        if kind == "python":  # to be saved under the name in its first line
            file = re.match(r"# (\w+\.py)\n", text)[1]
            parts.append(f"cat > {file} <<'END OF FILE'\n{text}END OF FILE\n")
        elif kind == "sh":
            text = text.replace("partage serve ", f"partage serve --port {port} ")
            parts.append(f"echo '==== block'\n{text}")
            shown.append("")
        elif kind != "console":  # console: what takes too long, or installs something
            assert kind == "text"
            shown[-1] += text
    printed = run_script("".join(parts), folder, **{"PARTAGE_URL": f"http://127.0.0.1:{port}", **variables})
    assert len(printed) == len(shown)
    for promised, found in zip(shown, printed, strict=True):
        assert_shown(promised, found)
    return len(shown)

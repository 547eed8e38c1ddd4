"""`partage demo`."""

import os
import re
import signal
import subprocess
import sys

import httpx
import pytest
from tests.support.command_line import INTERRUPTIBLE, partage, sentence
from tests.support.patience import PATIENCE

from partage.demo import bakers, runner
from partage.environment import for_child

BEST = "Moulin du Pont Vieux"


@pytest.fixture
def easy(monkeypatch):
    """A best supplier that a few broadcasts find, long before any baker's horizon ends, however slow the machine."""
    for name in bakers.SUPPLIERS:
        monkeypatch.setitem(bakers.SUPPLIERS, name, float(name == BEST))
    for module in (bakers, runner):
        monkeypatch.setattr(module, "HORIZON", 3000)
    monkeypatch.setattr(bakers, "CHANGES_AT", 10)
    monkeypatch.setattr(bakers, "COMMIT_PAUSE", 0.1)


@pytest.mark.skipif(os.name == "nt", reason="looks at processes as Unix has them")
def test_the_demo_plays_settles_and_verifies(tmp_path, easy):
    folder = tmp_path / "demo"
    ended = partage("demo", "--fast", "--minutes=600", f"--folder={folder}")
    assert ended.code == 0, ended
    assert ended.err == ""
    shown = ended.out
    places = [
        shown.index(words)
        for words in (
            "Starting a controller",
            "in a browser",
            "pt_op_",
            "pt_ag_",
            "/join#",
            "They begin.",
            f"{BEST} is found to be the best",
            f"Closing. Leader: {BEST}",
            "Settlement pool",
            "Everyone prepaid 30",
            "operator.ndjson is valid: the whole ledger",
            "morel.ndjson is valid: an agent's copy",
        )
    ]
    assert places == sorted(places)
    assert "Le Fournil d'Inès now shares Minoterie Aubry" in shown
    assert "Le Pétrin leaves" in shown
    with pytest.raises(httpx.TransportError):  # the controller ended with the demo
        httpx.get(re.search(r"http://[\d.:]+", shown)[0], timeout=PATIENCE)
    assert sentence_after_start(partage("demo", "--fast", f"--folder={folder}")) == (
        f"The folder {folder} already holds a demo; use another.\n"
    )


def sentence_after_start(ended):
    return sentence(ended._replace(out=ended.out.removeprefix("Starting a controller …\n")))


@pytest.mark.skipif(os.name == "nt", reason="sends a Unix signal")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_demo_and_its_controller(how):
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=for_child(),
    )
    try:
        while not (line := process.stdout.readline()).startswith("They begin"):
            assert line, process.stderr.read()
            if found := re.search(r"http://[\d.:]+", line):
                url = found[0]
        assert httpx.get(f"{url}/ready", timeout=PATIENCE).status_code == 200
        process.send_signal(how)
        _, complained = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert complained == ""
    with pytest.raises(httpx.TransportError):
        httpx.get(url, timeout=PATIENCE)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--pace=0", "The pace must be"),
        ("--minutes=0", "the minutes above 0"),
        ("--rule=luck", "The rule must be one of"),
    ],
)
def test_what_the_demo_cannot_do(option, words):
    assert words in sentence(partage("demo", "--fast", option))

"""`partage demo`."""

import os
import re
import signal
import subprocess
import sys

import httpx
import pytest
from tests.support.command_line import partage, sentence

from partage.environment import for_child


@pytest.mark.skipif(os.name == "nt", reason="looks at processes as Unix has them")
def test_the_demo_plays_settles_and_verifies(tmp_path):
    folder = tmp_path / "demo"
    ended = partage("demo", "--fast", "--minutes=1", f"--folder={folder}")
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
            "is found to be the best",
            "Closing. Leader: Moulin du Pont Vieux",
            "Settlement equal-share-expected",
            "operator.ndjson is valid: the whole ledger",
            "morel.ndjson is valid: an agent's copy",
        )
    ]
    assert places == sorted(places)
    assert "Le Fournil d'Inès now shares Minoterie Aubry" in shown
    assert "Le Pétrin leaves" in shown
    with pytest.raises(httpx.TransportError):  # the controller ended with the demo
        httpx.get(re.search(r"http://[\d.:]+", shown)[0])
    assert sentence_after_start(partage("demo", "--fast", f"--folder={folder}")) == (
        f"The folder {folder} already holds a demo; use another.\n"
    )


def sentence_after_start(ended):
    return sentence(ended._replace(out=ended.out.removeprefix("Starting a controller …\n")))


@pytest.mark.skipif(os.name == "nt", reason="sends a Unix signal")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_demo_and_its_controller(how):
    program = (
        "import signal; from partage.cli import app;"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"  # in the background it would be ignored
        "app(['demo'])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=for_child()
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
    ("option", "words"),
    [
        ("--pace=0", "The pace must be"),
        ("--minutes=0", "the minutes above 0"),
        ("--rule=luck", "The rule must be one of"),
    ],
)
def test_what_the_demo_cannot_do(option, words):
    assert words in sentence(partage("demo", "--fast", option))

"""`partage demo`."""

import os
import random
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
from partage.ledger.messages import ArmOnBoard, BoardView, Disagreement

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


def board_with_trouble() -> BoardView:
    arm = ArmOnBoard("Moulin Saint-Clair", 90, 70.0, 0.78, 0.3, True, True, 3, 0, True, lapses=1)
    differs = Disagreement("Moulin Saint-Clair", None, ["a11"], ["L'Épi d'Or"], 0.3, 0.2, 0.4, 9.0, "…")
    return BoardView(90, False, arm.name, [arm], 100, "balanced-glr", None, [arm.name], 3, disagreements=[differs])


def test_with_trouble_the_demo_tells_once_what_the_board_says(tmp_path):
    played = bakers.Bakers(None, "c1", tmp_path, None, 60.0, late=1.0)
    played.board = board_with_trouble()
    played._notice()
    played._notice()
    assert played.news == [
        "A claim on Moulin Saint-Clair has lapsed: somebody is late.",
        "L'Épi d'Or sees Moulin Saint-Clair differently.",
    ]
    calm = bakers.Bakers(None, "c1", tmp_path, None, 60.0)
    calm.board = board_with_trouble()
    calm._notice()
    assert calm.news == []


def test_with_trouble_one_baker_differs_and_one_lies(tmp_path):
    def mean(name, arm, **trouble):
        dice, played = random.Random(1), bakers.Bakers(None, "c1", tmp_path, None, 60.0, **trouble)
        return sum(played._reward(dice, name, arm) for _ in range(2000)) / 2000

    assert mean(bakers.LIES, bakers.LIE, late=1.0) == 1.0
    assert abs(mean(bakers.LIES, bakers.LIE) - bakers.SUPPLIERS[bakers.LIE]) < 0.05
    assert abs(mean(bakers.DIFFERS, BEST, late=1.0) - bakers.SUPPLIERS[BEST] - bakers.OFFSET) < 0.05


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

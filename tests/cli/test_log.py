"""`partage log` and `partage simulate --log`: from a file of events to a game, and a replay."""

import json
import tomllib
from pathlib import Path

import pytest
from tests.support.command_line import partage

EVENTS = "shop,product,minutes\n" + "".join(
    f"{shop},{product},{value}\n"
    for shop in ("Harbour", "Market")
    for product, values in (("bread", (30, 40, 20)), ("cake", (10, 12, 5)))
    for value in values * 30
)
COLUMNS = ("--agent=shop", "--arm=product", "--reward=minutes")


@pytest.fixture
def events(tmp_path: Path) -> str:
    path = tmp_path / "events.csv"
    path.write_text(EVENTS)
    return str(path)


def test_to_game_prints_a_game_file_and_says_what_it_found(events, tmp_path):
    printed = partage("log", "to-game", events, *COLUMNS, "--less-is-better", "--unit=minutes", "--horizon=500")
    assert printed.code == 0, printed.err
    found = tomllib.loads(printed.out)
    assert found["unit"] == {"worst": 40.0, "best": 5.0, "name": "minutes"}
    assert found["horizon"] == 500
    assert [arm["name"] for arm in found["arms"]] == ["bread", "cake"]
    assert [agent["shares"] for agent in found["agent"]] == [["bread", "cake"]] * 2
    assert "One mean of each arm for all agents fits" in printed.err
    game = tmp_path / "game.toml"
    game.write_text(printed.out)
    shown = partage("simulate", str(game), "--runs=2", "--rule=shared-imed", COLUMNS="120").out
    assert "; in minutes" in shown
    (bread,) = [line for line in shown.splitlines() if line.startswith("bread")]
    assert bread.split()[1] == "30"


def test_simulate_takes_a_log_and_a_consent_table(events, tmp_path):
    consent = tmp_path / "consent.csv"
    consent.write_text("shop,product\nHarbour,cake\n")
    flags = (*COLUMNS, "--rule=shared-imed", "--settlement=none", "--runs=2", "--json")
    found = json.loads(partage("simulate", f"--log={events}", f"--consent={consent}", *flags).out)
    assert found["unit"] == {"worst": 5.0, "best": 40.0, "name": "minutes"}
    reversed_ = partage("simulate", f"--log={events}", "--less-is-better", "--unit=min", *flags).out
    assert json.loads(reversed_)["unit"] == {"worst": 40.0, "best": 5.0, "name": "min"}
    assert found["horizon"] == 180
    assert [arm["mean"] for arm in found["arms"]] == pytest.approx([30, 9])
    assert found["arms"][0]["broadcasts"]["mean"] == 0  # nobody shares bread
    scaled = json.loads(partage("simulate", f"--log={events}", *flags).out)
    pulls = 2 * scaled["metrics"]["overall_regret"]["mean"] / 21  # in both runs together; 21 minutes is the gap
    assert pulls > 0
    assert pulls == pytest.approx(round(pulls))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("simulate", "--log=LOG", "--means=0.1"), "The game is given twice, by --log and by --means"),
        (("simulate", "game.toml", "--log=LOG"), "The game is given twice, by --log and by game.toml"),
        (("simulate", "--agent=shop"), "--agent describes a log, and there is none"),
        (("simulate", "--log=LOG"), "there is no column 'agent'"),
        (("log", "to-game", "LOG", *COLUMNS, "--means=mine"), "it must be fit, one or own"),
        (("log", "to-game", "LOG", *COLUMNS, "--horizon=few"), "The horizon is 'few'"),
        (("log", "replay", "LOG", *COLUMNS, "--seed=-1"), "The seed is -1"),
        (("log", "replay", "none.csv"), "none.csv: there is no such file."),
    ],
)
def test_what_is_refused(events, arguments, sentence):
    printed = partage(*(word.replace("LOG", events) for word in arguments))
    assert printed.code == 2
    assert sentence in printed.err
    assert printed.err.count("\n") == 1


def test_replay(events):
    flags = (*COLUMNS, "--rule=balanced-glr")
    found = json.loads(partage("log", "replay", events, *flags, "--json").out)
    assert found["events"] == 360
    assert 0 < found["effective_sample_size"] < 360
    assert found["uniform"]["fits"] is True
    shown = partage("log", "replay", events, *flags).out
    assert f"{found['effective_sample_size']:,} of 360 events count" in shown
    assert "19.50" in shown  # the mean of the log, in minutes

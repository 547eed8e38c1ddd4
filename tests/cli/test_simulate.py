"""What `partage simulate` prints: one JSON object, or tables for people."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.command_line import INTERRUPTIBLE, without_compiling
from tests.support.patience import PATIENCE
from typer.main import get_command

import partage
from partage.cli import app
from partage.cli.terminal import COMPILING
from partage.rules import parameters

METRICS = [
    "overall_regret",
    "average_regret",
    "max_individual_regret",
    "max_incentive_regret",
    "explore_regret",
    "commit_regret",
    "controller_profit",
    "broadcasts",
]
FLAGS = ["--means=0.9,0.5", "--agents=6", "--horizon=1e4", "--runs=4"]
FILE = """
horizon = 10_000
[[arms]]
mean = 0.9
[[arms]]
mean = 0.5
[agents]
count = 6
"""


@pytest.fixture
def run(capsys):
    def simulate(*arguments: str) -> str:
        with pytest.raises(SystemExit) as stop:
            app(["simulate", *arguments], prog_name="partage")
        printed = capsys.readouterr()
        assert stop.value.code == 0
        assert without_compiling(printed.err) == ""
        return printed.out

    return simulate


@pytest.fixture
def figures(run):
    def no_constants(constant: str) -> None:
        pytest.fail(f"{constant} is not JSON")

    def simulate(*arguments: str) -> dict:
        found = json.loads(run(*arguments, "--json"), parse_constant=no_constants)
        found.pop("seconds")
        return found

    return simulate


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "game.toml"
    path.write_text(FILE)
    return path


# --- JSON -----------------------------------------------------------------------------------------------------


def test_the_keys_of_the_json(run):
    found = json.loads(run(*FLAGS, "--json"))
    assert list(found) == [
        "rule",
        "settlement",
        "runs",
        "seed",
        "horizon",
        "balance",
        "agents",
        "seconds",
        "metrics",
        "two_ucb_regret",
        "alone",
        "alone_regret",
        "best_alone",
        "best_alone_at_least",
        "individually_rational",
        "arms",
    ]
    assert list(found["metrics"]) == METRICS
    for estimate in (*found["metrics"].values(), found["two_ucb_regret"], found["arms"][0]["broadcasts"]):
        assert list(estimate) == ["mean", "stderr"]
    assert [list(arm) for arm in found["arms"]] == [["name", "mean", "broadcasts", "eliminated"]] * 2
    assert isinstance(found["individually_rational"], bool)
    assert found["seconds"] >= 0


def test_the_defaults(figures):
    found = figures("--means=0.9,0.5", "--agents=6", "--horizon=1e4")
    asked = ["--sharing=round-robin", "--order=fixed", "--reward=bernoulli", "--rule=balanced-etc", "--balance=1"]
    asked += ["--settlement=paper", "--runs=100", "--seed=0", "--baseline"]
    assert found == figures("--means=0.9,0.5", "--agents=6", "--horizon=1e4", *asked)
    assert (found["rule"], found["balance"], found["settlement"]) == ("balanced-etc", 1.0, "paper")
    assert (found["runs"], found["seed"], found["agents"], found["horizon"]) == (100, 0, 6, 10_000)


def test_the_json_is_what_python_gives(figures):
    game = partage.Game(partage.bernoulli([0.9, 0.5]), partage.Sharing.round_robin(6, 2), horizon=10_000)
    expected = partage.play(game, partage.BalancedETC(balance=2), runs=4, seed=7).as_dict()
    expected.pop("seconds")
    assert figures(*FLAGS, "--balance=2", "--seed=7") == expected


def test_file_and_flags_agree(figures, file):
    assert figures(str(file), "--runs=4") == figures(*FLAGS)


def test_the_seed_decides_and_threads_do_not(figures):
    assert figures(*FLAGS, "--seed=1", "--jobs=1") == figures(*FLAGS, "--seed=1", "--jobs=3")
    assert figures(*FLAGS, "--seed=1")["metrics"] != figures(*FLAGS, "--seed=2")["metrics"]


def test_an_infinite_balance_is_a_text(figures):
    found = figures(*FLAGS, "--balance=inf")
    assert (found["balance"], found["settlement"]) == ("inf", "none")
    unbalanced = figures(*FLAGS, "--rule=unbalanced-etc")
    assert unbalanced.pop("rule") == "unbalanced-etc"
    assert found.pop("rule") == "balanced-etc"
    assert found == unbalanced


def test_one_run_has_no_standard_error(figures):
    found = figures(*FLAGS, "--runs=1")
    estimates = [*found["metrics"].values(), found["two_ucb_regret"], *(arm["broadcasts"] for arm in found["arms"])]
    assert [estimate["stderr"] for estimate in estimates] == [None] * len(estimates)


def test_incentive_figures_are_null_without_a_settlement(figures):
    settled, bare = figures(*FLAGS), figures(*FLAGS, "--settlement=none")
    assert bare["settlement"] == "none"
    for name in METRICS:
        incentive = name in ("max_incentive_regret", "controller_profit")
        assert bare["metrics"][name] == (None if incentive else settled["metrics"][name])


@pytest.mark.parametrize(
    ("rule", "balance", "settlement"),
    [
        ("balanced-etc", 1.0, "paper"),
        ("unbalanced-etc", "inf", "none"),
        ("two-ucb", None, "none"),
        ("thompson", None, "none"),
        ("kl-ucb", None, "none"),
        ("imed", None, "none"),
        ("full-sharing", 1.0, "paper"),
        ("no-protocol", None, "none"),
    ],
)
def test_every_rule(rule, balance, settlement, figures):
    found = figures(*FLAGS, f"--rule={rule}")
    assert (found["rule"], found["balance"], found["settlement"]) == (rule, balance, settlement)


@pytest.mark.parametrize("rule", ["thompson", "kl-ucb", "imed"])
@pytest.mark.parametrize("sees", ["own", "shared", "both"])
def test_what_agents_see(rule, sees, figures, run, file):
    found = figures(*FLAGS, f"--rule={rule}", f"--sees={sees}")
    game = partage.Game(partage.bernoulli([0.9, 0.5]), partage.Sharing.round_robin(6, 2), horizon=10_000)
    expected = partage.play(game, partage.rules.make_rule(rule, sees=sees), runs=4).as_dict()
    expected.pop("seconds")
    assert found == expected
    assert found["rule"] == rule
    assert found.get("parameters", {}) == ({} if sees == "own" else {"sees": sees})
    file.write_text(f'rule = "{rule}"\nsees = "{sees}"\n' + FILE)
    assert figures(str(file), "--runs=4") == found
    title = rule if sees == "own" else f"{rule} with sees {sees}"
    assert run(str(file), "--runs=1").startswith(f"{title}: 6 agents")


def test_a_long_horizon_plays_without_the_baseline(figures):
    found = figures("--means=0.9,0.5", "--agents=6", "--horizon=1e12", "--runs=3")
    assert found["horizon"] == 10**12
    assert found["two_ucb_regret"] is None
    assert found["individually_rational"] is None


def test_the_baseline_can_be_asked_for_and_left_out(figures):
    beyond = ["--means=0.9", "--agents=2", "--horizon=2e8", "--runs=6"]  # one arm: 2-UCB has nothing to do
    assert figures(*beyond)["two_ucb_regret"] is None
    assert figures(*beyond, "--baseline")["two_ucb_regret"] == {"mean": 0.0, "stderr": 0.0}
    assert figures(*FLAGS)["two_ucb_regret"] is not None
    left_out = figures(*FLAGS, "--no-baseline")
    assert left_out["two_ucb_regret"] is None
    assert left_out["individually_rational"] is None


def test_names_beyond_ascii_and_markup_come_through(figures, run, file):
    file.write_text(FILE.replace("mean = 0.9", 'mean = 0.9\nname = "thé [red]"'))
    assert figures(str(file), "--runs=2")["arms"][0]["name"] == "thé [red]"
    assert "thé [red]" in run(str(file), "--runs=2")


# --- flags over the file --------------------------------------------------------------------------------------


def test_flags_come_before_the_file(figures, file):
    file.write_text('rule = "full-sharing"\nbalance = 3\nsettlement = "none"\n' + FILE)
    found = figures(str(file), "--runs=2")
    assert (found["rule"], found["balance"], found["settlement"]) == ("full-sharing", 3.0, "none")
    found = figures(str(file), "--runs=2", "--rule=balanced-etc", "--balance=2", "--settlement=paper")
    assert (found["rule"], found["balance"], found["settlement"]) == ("balanced-etc", 2.0, "paper")


def test_every_parameter_of_a_rule_is_an_option(figures, file):
    flags = get_command(app).commands["simulate"].params
    assert set(parameters()) <= {flag.name for flag in flags}
    betting = partage.BalancedGLR(lead=4, evidence="betting")
    game = partage.read_game(file).game
    expected = partage.play(game, betting, runs=3).as_dict()
    expected.pop("seconds")
    assert expected["parameters"] == {"lead": 4.0, "evidence": "betting"}
    by_flags = ["--rule=balanced-glr", "--lead=4", "--evidence=betting", "--runs=3"]
    assert figures(str(file), *by_flags) == expected
    file.write_text('rule = "balanced-glr"\nlead = 4\nevidence = "betting"\n' + FILE)
    assert figures(str(file), "--runs=3") == expected
    assert "parameters" not in figures(str(file), "--runs=3", "--lead=3", "--evidence=likelihood")
    assert "parameters" not in figures(str(file), "--runs=3", "--rule=kl-etc")  # which takes neither


def test_the_files_balance_and_settlement_hold_where_the_flags_rule_has_them(figures, file):
    file.write_text('balance = 3\nsettlement = "paper"\n' + FILE)
    found = figures(str(file), "--runs=2", "--rule=full-sharing")
    assert (found["balance"], found["settlement"]) == (3.0, "paper")
    found = figures(str(file), "--runs=2", "--rule=two-ucb")
    assert (found["balance"], found["settlement"]) == (None, "none")


def test_what_agents_see_by_flags_and_file(figures, file):
    file.write_text('rule = "imed"\nsees = "both"\n' + FILE)
    assert figures(str(file), "--runs=2", "--rule=kl-ucb")["parameters"] == {"sees": "both"}
    assert figures(str(file), "--runs=2", "--sees=shared")["parameters"] == {"sees": "shared"}
    assert "parameters" not in figures(str(file), "--runs=2", "--rule=two-ucb")


# --- for people -----------------------------------------------------------------------------------------------


def test_the_tables(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(*FLAGS)
    assert "balanced-etc with balance 1: 6 agents, 2 arms, horizon 10,000" in shown
    assert "sharing round-robin; settlement paper; 4 runs from seed 0" in shown
    for name in METRICS:
        assert name.replace("_", " ") in shown
    assert "Individually rational: yes" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_the_tables_show_the_figures_of_the_json(run, figures):
    regret = figures(*FLAGS, "--runs=1")["metrics"]["overall_regret"]["mean"]
    (line,) = [line for line in run(*FLAGS, "--runs=1").splitlines() if line.startswith("overall regret")]
    assert float(line.split()[2].replace(",", "")) == pytest.approx(regret, rel=1e-5)
    assert line.split()[3] == "–"


def test_both_bars_are_in_the_table(run):
    assert "2-UCB regret of one agent alone" in run(*FLAGS)
    assert "best alone, at least (formula)" in run(*FLAGS)
    assert "best alone: " in run(*FLAGS, "--alone=best")
    assert "imed regret of one agent alone" in run(*FLAGS, "--alone=imed")


def test_the_terms_of_an_equal_share_come_from_flags_or_the_file(figures, file):
    found = figures(*FLAGS, "--settlement=equal-share", "--fee=0.1", "--alone=imed", "--coverage=0.9")
    assert (found["alone"], found["coverage"], found["fee"]) == ("imed", 0.9, 0.1)
    file.write_text('settlement = "equal-share"\nfee = 0.1\nalone = "imed"\ncoverage = 0.9\n' + FILE)
    assert figures(str(file), "--runs=4") == found
    assert figures(str(file), "--runs=4", "--coverage=0.95")["coverage"] == 0.95
    other = figures(str(file), "--runs=4", "--settlement=none")
    assert (other["settlement"], other["alone"]) == ("none", "imed")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--no-baseline"], "not judged, because no learner alone was played"),
        (
            ["--settlement=none", "--sharing=everyone-everything", "--agents=25", "--alone=two-ucb"],
            "yes, no agent's mean regret is above 2-UCB's",
        ),
        (["--settlement=none", "--sharing=everyone-everything", "--agents=25"], "above the best learner's ("),
        (["--settlement=none", "--alone=imed"], "above imed's"),
        (["--settlement=none", "--horizon=2e7"], "too large to play the best learner alone"),
        (
            ["--settlement=none", "--means=0.9,0.1", "--agents=2"],
            "no, the mean regret of",
        ),
    ],
)
def test_individual_rationality_in_words(flags, words, run):
    assert words in " ".join(run(*FLAGS, *flags).split())


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        app(["--version"], prog_name="partage")
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"partage {partage.__version__}\n"


# Says when the first runs begin, so that a signal comes while a kernel plays.
PLAYING = """
from partage.simulate import parallel
timed = parallel._timed
def announced(*chunk):
    print("playing", flush=True)
    return timed(*chunk)
parallel._timed = announced
"""


# --- as a process ---------------------------------------------------------------------------------------------


def test_a_process_prints_one_json_object_and_nothing_else():
    command = [sys.executable, "-m", "partage.cli", "simulate", *FLAGS, "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout)["runs"] == 4
    assert without_compiling(ended.stderr) == ""


@pytest.mark.parametrize(("cold", "said"), [(True, f"{COMPILING}\n"), (False, "")])
def test_the_first_simulation_says_that_it_compiles(cold, said, monkeypatch, capsys):
    monkeypatch.setattr("partage.compiled.is_cold", lambda: cold)
    with pytest.raises(SystemExit) as stop:
        app(["simulate", *FLAGS, "--json"], prog_name="partage")
    assert stop.value.code == 0
    assert capsys.readouterr().err == said


def test_every_public_name_and_every_room_is_there_without_an_import_of_its_own():
    program = (
        "import partage; names = dir(partage); assert set(partage.__all__) <= set(names), names\n"
        "assert callable(partage.play) and partage.testing.check_rule\n"
        "assert partage.arms.Bernoulli is partage.Bernoulli\n"
        "assert not hasattr(partage, 'nothing') and not hasattr(partage, '_nothing')\n"
        "from partage import *\n"
        "assert all(globals()[name] is getattr(partage, name) for name in partage.__all__)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_terminal_that_cannot_show_every_sign_gets_the_tables_all_the_same(file):
    file.write_text(FILE.replace("mean = 0.9", 'mean = 0.9\nname = "thé"'), encoding="utf-8")
    for flags, name in (([], "th?"), (["--json"], "th\\u00e9")):
        command = [sys.executable, "-m", "partage.cli", "simulate", str(file), "--runs=2", *flags]
        ended = subprocess.run(
            command, capture_output=True, check=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}
        )
        assert name in ended.stdout.decode("ascii")
        assert without_compiling(ended.stderr.decode()) == ""


@pytest.mark.skipif(os.name == "nt", reason="sends a Unix signal")
def test_ctrl_c_ends_a_long_play_without_a_traceback():
    # An arm that nobody shares: every pull is played, and this would take years.
    arguments = ["simulate", "--means=0.9,0.5", "--agents=1", "--horizon=1e15", "--jobs=1"]
    program = f"{PLAYING}{INTERRUPTIBLE}"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "playing\n"
        process.send_signal(signal.SIGINT)
        printed, complained = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 130
    assert printed == ""
    assert without_compiling(complained) == ""

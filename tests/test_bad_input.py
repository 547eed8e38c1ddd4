"""Nothing but bad input: each is refused in one sentence that names the place, the value and what is allowed.

In Python the sentence is an `InputError`; on the command line it stands alone on standard error, with exit code 2.
"""

import math
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import partage
from partage.cli import app
from partage.gamefile import read_game
from partage.rules import make_rule

TWO_ARMS = partage.bernoulli([0.9, 0.5])
FOUR_AGENTS = partage.Sharing.round_robin(agents=4, arms=2)
GAME = partage.Game(TWO_ARMS, FOUR_AGENTS, horizon=100)
ETC = partage.BalancedETC()


def assert_one_sentence(sentence: str, words: tuple[str, ...]) -> None:
    assert sentence.endswith(".")
    assert "\n" not in sentence
    for word in words:
        assert word in sentence


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command line says on standard error, having refused."""
    with pytest.raises(SystemExit) as stop:
        app(list(arguments), prog_name="partage")
    printed = capsys.readouterr()
    assert stop.value.code == 2
    assert printed.out == ""
    assert printed.err.endswith("\n")
    return printed.err[:-1]


# --- Python ---------------------------------------------------------------------------------------------------

BETWEEN = "between 0 and 1"
WHOLE = "whole number of at least"
PYTHON: dict[str, tuple[Callable[[], object], tuple[str, ...]]] = {
    "mean above 1": (lambda: partage.bernoulli([0.5, 1.5]), ("mean", "1.5", BETWEEN)),
    "mean below 0": (lambda: partage.Bernoulli(-0.1), ("mean", "-0.1", BETWEEN)),
    "mean is nan": (lambda: partage.Bernoulli(math.nan), ("mean", "nan", BETWEEN)),
    "mean is no number": (lambda: partage.Bernoulli("high"), ("mean", "'high'", BETWEEN)),
    "mean is true": (lambda: partage.Bernoulli(True), ("mean", "True", BETWEEN)),
    "mean is too long": (lambda: partage.Bernoulli(10**400), ("mean", BETWEEN)),
    "means are empty": (lambda: partage.bernoulli([]), ("means", "at least one")),
    "beta": (lambda: partage.Beta(0, 1), ("a of a beta arm", "0", "above 0")),
    "beta is infinite": (lambda: partage.Beta(1, math.inf), ("b of a beta arm", "inf", "finite")),
    "uniform ends": (lambda: partage.Uniform(0.7, 0.2), ("low end", "0.7", "0.2")),
    "uniform above 1": (lambda: partage.Uniform(0.7, 1.2), ("high end", "1.2", BETWEEN)),
    "constant": (lambda: partage.Constant(2), ("value", "2", BETWEEN)),
    "scale": (lambda: partage.TruncatedNormal(0.5, 0), ("scale", "0", "above 0")),
    "location": (lambda: partage.TruncatedNormal(math.nan, 1), ("location", "nan", "finite")),
    "weights": (lambda: partage.Discrete([0, 1], [0.5, 0.6]), ("weights", "1.1", "sum to 1")),
    "weight below 0": (lambda: partage.Discrete([0, 1], [-0.5, 1.5]), ("weight", "-0.5", BETWEEN)),
    "weights are fewer": (lambda: partage.Discrete([0, 1], [1.0]), ("2 values", "1 weights", "one weight")),
    "sample above 1": (lambda: partage.Empirical([0.5, 3]), ("empirical", "3", BETWEEN)),
    "sample is empty": (lambda: partage.Empirical([]), ("sample", "at least one")),
    "no arms": (lambda: partage.Game([], FOUR_AGENTS, 100), ("no arms", "at least one")),
    "an arm is a number": (lambda: partage.Game([0.5], FOUR_AGENTS, 100), ("0.5", "partage.Bernoulli")),
    "horizon of 1": (lambda: partage.Game(TWO_ARMS, FOUR_AGENTS, 1), ("horizon", "1", f"{WHOLE} 2")),
    "horizon of 2.5": (lambda: partage.Game(TWO_ARMS, FOUR_AGENTS, 2.5), ("horizon", "2.5", f"{WHOLE} 2")),
    "horizon is nan": (lambda: partage.Game(TWO_ARMS, FOUR_AGENTS, math.nan), ("horizon", "nan", f"{WHOLE} 2")),
    "M x T": (lambda: partage.Game(TWO_ARMS, FOUR_AGENTS, 2**62), ("4 agents", f"{2**62:,}", f"{2**63 - 1:,}")),
    "M alone": (lambda: partage.Sharing.round_robin(10**30, 2), ("agents", f"{10**30:,}", "at most")),
    "no agents": (lambda: partage.Sharing.round_robin(0, 2), ("agents", "0", f"{WHOLE} 1")),
    "no lists": (lambda: partage.Sharing.lists([], arms=2), ("agents", "0", f"{WHOLE} 1")),
    "shares an arm that is not there": (
        lambda: partage.Sharing.lists([[0], [0, 2]], arms=2),
        ("Agent 1", "arm 2", "0 to 1"),
    ),
    "random with few agents": (lambda: partage.Sharing.random(2, 3), ("2 agents", "3 arms", "at least 3")),
    "too many neighbours": (lambda: partage.Sharing.neighbours(5, 3, k=4), ("4", "at most", "3 arms")),
    "unknown pattern": (lambda: partage.Sharing.pattern("ring", 4, 2), ("'ring'", "round-robin", "scarce-best")),
    "sharing for other arms": (
        lambda: partage.Game(TWO_ARMS, partage.Sharing.round_robin(4, 3), 100),
        ("sharing", "3 arms", "game has 2"),
    ),
    "duplicate arm": (
        lambda: partage.Game([partage.Bernoulli(0.5, "pens")] * 2, FOUR_AGENTS, 100),
        ("Two arms", "'pens'", "must differ"),
    ),
    "duplicate agent": (
        lambda: partage.Game(TWO_ARMS, FOUR_AGENTS, 100, ["a", "b", "c", "a"]),
        ("Two agents", "'a'", "must differ"),
    ),
    "balance below 1": (lambda: partage.BalancedETC(balance=0.5), ("balance", "0.5", "at least 1")),
    "balance is nan": (lambda: partage.BalancedETC(balance=math.nan), ("balance", "nan", "at least 1")),
    "balance is a word": (lambda: partage.BalancedETC(balance="much"), ("balance", "'much'", "at least 1")),
    "unknown rule": (lambda: make_rule("three-ucb"), ("'three-ucb'", "two-ucb", "full-sharing")),
    "rule's name is a list": (lambda: make_rule([]), ("[]", "two-ucb", "full-sharing")),
    "rule's name is None": (lambda: make_rule(None), ("None", "two-ucb", "full-sharing")),
    "balance for 2-UCB": (lambda: make_rule("two-ucb", balance=2.0), ("two-ucb", "2.0", "no balance")),
    "sees too much": (lambda: partage.Thompson(sees="all"), ("sees", "'all'", "own, shared or both")),
    "sees None": (lambda: partage.IMED(sees=None), ("sees", "None", "own, shared or both")),
    "sees a list": (lambda: make_rule("kl-ucb", sees=["own"]), ("sees", "['own']", "own, shared or both")),
    "sees for 2-UCB": (lambda: make_rule("two-ucb", sees="both"), ("two-ucb", "'both'", "no sees")),
    "broadcast price below 0": (
        lambda: partage.play(GAME, ETC, broadcast_price=-1),
        ("broadcast price", "-1", "at least 0"),
    ),
    "runs below 1": (lambda: partage.play(GAME, ETC, runs=0), ("runs", "0", f"{WHOLE} 1")),
    "half a run": (lambda: partage.play(GAME, ETC, runs=2.5), ("runs", "2.5", f"{WHOLE} 1")),
    "seed below 0": (lambda: partage.play(GAME, ETC, seed=-1), ("seed", "-1", f"{WHOLE} 0")),
    "no jobs": (lambda: partage.play(GAME, ETC, jobs=0), ("jobs", "0", f"{WHOLE} 1")),
    "unknown settlement": (
        lambda: partage.play(GAME, ETC, settlement="fair"),
        ("settlement", "'fair'", "paper, equal-share, equal-share-expected, none"),
    ),
    "settlement is None": (lambda: partage.play(GAME, ETC, settlement=None), ("settlement", "None", "paper")),
    "settlement is a list": (lambda: partage.play(GAME, ETC, settlement=["none"]), ("settlement", "['none']")),
    "no game": (lambda: partage.play([0.9, 0.5], ETC), ("game", "[0.9, 0.5]", "partage.Game")),
    "rule is a name": (lambda: partage.play(GAME, "balanced-etc"), ("rule", "'balanced-etc'", "BalancedETC()")),
    "rule is None": (lambda: partage.play(GAME, None), ("rule", "None", "BalancedETC()")),
    "rule is a class": (lambda: partage.play(GAME, partage.TwoUCB), ("class TwoUCB", "TwoUCB()")),
    "rule without decide": (
        lambda: partage.play(GAME, type("Mine", (), {"name": "mine"})()),
        ("rule", "decide", "revise"),
    ),
    "one run of no game": (lambda: partage.play_run("game.toml", ETC), ("game", "'game.toml'", "partage.Game")),
    "one run of no rule": (lambda: partage.play_run(GAME, "two-ucb"), ("rule", "'two-ucb'", "BalancedETC()")),
    "one run of a class": (lambda: partage.play_run(GAME, partage.TwoUCB), ("class TwoUCB", "TwoUCB()")),
    "one run with a seed below 0": (lambda: partage.play_run(GAME, ETC, seed=-1), ("seed", "-1", f"{WHOLE} 0")),
    "one run with a word as seed": (lambda: partage.play_run(GAME, ETC, seed="x"), ("seed", "'x'", f"{WHOLE} 0")),
    "a run below 0": (lambda: partage.play_run(GAME, ETC, run=-1), ("run", "-1", f"{WHOLE} 0")),
    "half a run's number": (lambda: partage.play_run(GAME, ETC, run=0.5), ("run", "0.5", f"{WHOLE} 0")),
    "checkpoint is one number": (lambda: partage.play(GAME, ETC, checkpoints=5), ("checkpoints", "5", "list")),
    "checkpoint is a word": (lambda: partage.play(GAME, ETC, checkpoints=["x"]), ("checkpoint", "'x'", WHOLE)),
    "baseline is a word": (lambda: partage.play(GAME, ETC, baseline="no"), ("baseline", "'no'", "True, False")),
    "progress is a number": (lambda: partage.play(GAME, ETC, progress=3), ("progress", "3", "function")),
    "fee is a word": (
        lambda: partage.play(GAME, ETC, settlement="equal-share", fee="much"),
        ("fee", "'much'", "at least 0"),
    ),
    "a learner alone that does not exist": (
        lambda: partage.play(GAME, ETC, alone="chance"),
        ("alone", "'chance'", "two-ucb, kl-ucb, imed, thompson, best"),
    ),
    "coverage is a word": (
        lambda: partage.play(GAME, ETC, settlement="equal-share", coverage="much"),
        ("coverage", "'much'", "0.5 to below 1"),
    ),
    "coverage of 1": (
        lambda: partage.play(GAME, ETC, settlement="equal-share", coverage=1),
        ("coverage", "1", "0.5 to below 1"),
    ),
    "coverage of the paper's": (
        lambda: partage.play(GAME, ETC, settlement="paper", coverage=0.9),
        ("coverage", "0.9", "paper has none"),
    ),
    "played nowhere": (lambda: partage.play(GAME, ETC, on=None), ("place", "None", "threads")),
    "audit of agents that differ": (
        lambda: partage.audit(partage.Game(TWO_ARMS, FOUR_AGENTS, 100, claim_steps=3)),
        ("traits of agents, changes of arms or claim_steps", "the paper's game"),
    ),
    "audit of no game": (lambda: partage.audit("game.toml"), ("game", "'game.toml'", "partage.Game")),
    "audit of no rule": (lambda: partage.audit(GAME, "two-ucb"), ("rule", "'two-ucb'")),
    "agent of a result": (lambda: result().individual_regret(99), ("agent", "99", "at most 3")),
    "agent below 0": (lambda: result().incentive_regret(-1), ("agent", "-1", f"{WHOLE} 0")),
    "agent is an unknown name": (lambda: result().individual_regret("agent 9"), ("agent", "agent 9")),
    "agent of a game": (lambda: GAME.agent_name(4), ("agent", "4", "at most 3")),
    "agent of a sharing": (lambda: FOUR_AGENTS.of(4), ("agent", "4", "at most 3")),
    "frame by a number": (lambda: result().frame(by=3), ("by 3", "run, arm, agent")),
    "frame by a list": (lambda: result().frame(by=["run"]), ("by ['run']", "run, arm, agent")),
    "arms are a number": (lambda: partage.Game(3, FOUR_AGENTS, 100), ("Arm 0", "3", "partage.Bernoulli")),
    "sharing is a number": (lambda: partage.Game(TWO_ARMS, 4, 100), ("sharing", "4", "partage.Sharing")),
    "agents' names are a number": (lambda: partage.Game(TWO_ARMS, FOUR_AGENTS, 100, 4), ("1 agent names",)),
    "an agent's name is a number": (
        lambda: partage.Game(TWO_ARMS, FOUR_AGENTS, 100, [1, 2, 3, 4]),
        ("name of an agent", "1", "a string"),
    ),
    "an arm's name is a list": (
        lambda: partage.Game([partage.Bernoulli(0.5, ["pens"]), partage.Bernoulli(0.4)], FOUR_AGENTS, 100),
        ("name of an arm", "['pens']", "a string"),
    ),
    "shares are a number": (lambda: partage.Sharing.lists(3, arms=2), ("shares", "3", "one list of arms per agent")),
    "best arms are a number": (lambda: partage.Sharing.scarce_best(4, 2, best=1), ("best arms", "1", "list")),
    "ledger is a number": (lambda: partage.verify(123), ("ledger", "123", "path")),
    "ledger is None": (lambda: partage.verify(None), ("ledger", "None", "path")),
    "a ledger's line is a number": (lambda: partage.verify([1]), ("line", "1", "string or bytes")),
    "head is a number": (lambda: partage.verify([], head=1), ("head", "1", "a string")),
    "game file is a number": (lambda: partage.read_game(3), ("game file", "3", "a path")),
}


@cache
def result() -> partage.Result:
    return partage.play(GAME, ETC, runs=2, baseline=False)


@pytest.mark.parametrize("name", PYTHON)
def test_in_python(name: str) -> None:
    attempt, words = PYTHON[name]
    with pytest.raises(partage.InputError) as refused:
        attempt()
    assert_one_sentence(str(refused.value), words)


@pytest.mark.parametrize("rule", [partage.TwoUCB(), partage.NoProtocol(), partage.BalancedETC(balance=math.inf)])
def test_the_papers_settlement_where_it_is_not_defined(rule: partage.Rule) -> None:
    with pytest.raises(partage.SettlementError) as refused:
        partage.play(GAME, rule, settlement="paper")
    assert_one_sentence(str(refused.value), ("not defined", "equal-share, equal-share-expected, none"))


# --- flags ----------------------------------------------------------------------------------------------------

HOW = ("partage simulate game.toml", "--means 0.9,0.8,0.7 --agents 30 --horizon 1e6")
FLAGS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "mean above 1": ({"means": "0.9,1.5"}, ("--means: arm 2", "1.5", BETWEEN)),
    "mean below 0": ({"means": "-0.1,1"}, ("--means: arm 1", "-0.1", BETWEEN)),
    "mean is nan": ({"means": "0.9,nan"}, ("--means: arm 2", "nan", BETWEEN)),
    "mean is a word": ({"means": "high,0.3"}, ("--means: arm 1", "'high'", BETWEEN)),
    "a mean is missing": ({"means": "0.9,,0.3"}, ("--means: arm 2", "''", BETWEEN)),
    "constant above 1": ({"reward": "constant", "means": "0.9,1.5"}, ("--means: arm 2", "1.5", BETWEEN)),
    "no arms": ({"means": ""}, ("--means", "no arms", "at least one")),
    "no agents": ({"agents": "0"}, ("agents", "0", f"{WHOLE} 1")),
    "half an agent": ({"agents": "2.5"}, ("agents", "2.5", f"{WHOLE} 1")),
    "agents is a word": ({"agents": "few"}, ("agents", "'few'", f"{WHOLE} 1")),
    "horizon of 1": ({"horizon": "1"}, ("horizon", "1", f"{WHOLE} 2")),
    "horizon of 2.5": ({"horizon": "2.5"}, ("horizon", "2.5", f"{WHOLE} 2")),
    "horizon is infinite": ({"horizon": "inf"}, ("horizon", "inf", f"{WHOLE} 2")),
    "horizon is a word": ({"horizon": "long"}, ("horizon", "'long'", f"{WHOLE} 2")),
    "M x T": ({"agents": "1e10", "horizon": "1e10"}, ("10,000,000,000 agents", "64 bits", f"{2**63 - 1:,}")),
    "M alone": ({"agents": "1e15", "horizon": "2"}, ("agents", f"{10**15:,}", "at most")),
    "unknown pattern": ({"sharing": "ring"}, ("sharing", "'ring'", "round-robin", "nobody-nothing")),
    "too many neighbours": ({"sharing": "neighbours-3"}, ("3", "at most", "2 arms")),
    "random with few agents": ({"sharing": "random", "agents": "1"}, ("1 agents", "2 arms", "at least 2")),
    "unknown order": ({"order": "random"}, ("order", "'random'", "fixed or shuffled")),
    "unknown reward": ({"reward": "beta"}, ("reward", "'beta'", "bernoulli or constant", "game file")),
    "balance below 1": ({"balance": "0.99"}, ("balance", "0.99", "at least 1")),
    "balance is nan": ({"balance": "nan"}, ("balance", "nan", "at least 1")),
    "balance is a word": ({"balance": "much"}, ("balance", "'much'", "at least 1")),
    "unknown rule": ({"rule": "three-ucb"}, ("rule", "'three-ucb'", "balanced-etc", "no-protocol")),
    "balance for 2-UCB": ({"rule": "two-ucb", "balance": "2"}, ("two-ucb", "2", "no balance")),
    "sees too much": ({"rule": "imed", "sees": "all"}, ("sees", "'all'", "own, shared or both")),
    "sees for the default rule": ({"sees": "both"}, ("balanced-etc", "'both'", "no sees")),
    "balance for IMED": ({"rule": "imed", "sees": "both", "balance": "2"}, ("imed", "2", "no balance")),
    "unknown settlement": ({"settlement": "fair"}, ("settlement", "'fair'", "paper, equal-share")),
    "paper for 2-UCB": ({"rule": "two-ucb", "settlement": "paper"}, ("two-ucb", "not defined", "none")),
    "paper for inf": ({"balance": "inf", "settlement": "paper"}, ("infinite balance", "not defined", "none")),
    "no runs": ({"runs": "0"}, ("runs", "0", f"{WHOLE} 1")),
    "half a run": ({"runs": "1.5"}, ("runs", "1.5", f"{WHOLE} 1")),
    "seed below 0": ({"seed": "-1"}, ("seed", "-1", f"{WHOLE} 0")),
    "seed is a word": ({"seed": "lucky"}, ("seed", "'lucky'", f"{WHOLE} 0")),
    "no jobs": ({"jobs": "0"}, ("jobs", "0", f"{WHOLE} 1")),
}


@pytest.mark.parametrize("json", [[], ["--json"]], ids=["table", "json"])
@pytest.mark.parametrize("name", FLAGS)
def test_by_flags(name: str, json: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    change, words = FLAGS[name]
    flags = {"means": "0.9,0.5", "agents": "4", "horizon": "100"} | change
    said = complaint(capsys, "simulate", *(f"--{flag}={value}" for flag, value in flags.items()), *json)
    assert_one_sentence(said, words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", ("Missing command", "partage --help")),
        ("simulat", ("'simulat'", "'simulate'", "partage --help")),
        ("simulate", ("No game", *HOW)),
        ("simulate --json", ("No game", *HOW)),
        ("simulate --runs 3", ("No game", *HOW)),
        ("simulate --means 0.9,0.5 --horizon 100", ("lacks --agents", *HOW)),
        ("simulate --means 0.9,0.5 --agents 4", ("lacks --horizon", *HOW)),
        ("simulate --agents 4 --horizon 100", ("lacks --means", *HOW)),
        ("simulate --sharing random", ("No game", *HOW)),
        ("simulate --means", ("--means", "requires an argument", "--help")),
        ("simulate --arms 0.9,0.5", ("No such option", "--arms", "partage simulate --help")),
        ("simulate one.toml two.toml", ("unexpected", "two.toml", "partage simulate --help")),
        (
            "simulate game.toml --agents 4 --order shuffled",
            ("twice", "game.toml", "--agents, --order", "a file or options"),
        ),
    ],
)
def test_the_command_itself(arguments: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert_one_sentence(complaint(capsys, *arguments.split()), words)


# --- files ----------------------------------------------------------------------------------------------------

ARMS = '[[arms]]\nname = "pens"\nmean = 0.9\n[[arms]]\nname = "cups"\nmean = 0.5\n'
AGENTS = "[agents]\ncount = 4\n"
ENOUGH = ARMS + AGENTS
KINDS = ("bernoulli", "beta", "uniform", "truncated-normal", "constant", "discrete, empirical or mixture")
SHOP = 'agent 2 ("shop")'


def with_agent(keys: str, top: str = "") -> str:
    return f'horizon = 100\n{top}\n{ARMS}[[agent]]\n[[agent]]\nname = "shop"\n{keys}\n'


def with_reward(reward: str) -> str:
    return f'horizon = 100\n[[arms]]\nname = "pens"\n{reward}\n{AGENTS}'


FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "empty": ("", ("horizon is missing", "needs horizon")),
    "not TOML": ("horizon = = 3", ("not TOML", "line 1")),
    "no horizon": (ENOUGH, ("horizon is missing", "needs horizon")),
    "horizon of 1": ("horizon = 1\n" + ENOUGH, ("horizon", "1", f"{WHOLE} 2")),
    "horizon of 2.5": ("horizon = 2.5\n" + ENOUGH, ("horizon", "2.5", f"{WHOLE} 2")),
    "horizon is a text": ('horizon = "100"\n' + ENOUGH, ("horizon", "'100'", f"{WHOLE} 2")),
    "horizon is true": ("horizon = true\n" + ENOUGH, ("horizon", "True", f"{WHOLE} 2")),
    "M x T": (f"horizon = {2**62}\n" + ENOUGH, ("[agents]", "4 agents", f"{2**62:,}", f"{2**63 - 1:,}")),
    "unknown key": ("horizn = 100\n" + ENOUGH, ('"horizn"', 'did you mean "horizon"?', "horizon, rule, balance")),
    "unknown table": ("horizon = 100\n" + ENOUGH + "[colour]\n", ('"colour"', "arms, agents, agent")),
    "no arms": ("horizon = 100\n" + AGENTS, ("no arms", "at least one")),
    "empty arms": ("horizon = 100\narms = []\n" + AGENTS, ("no arms", "at least one")),
    "arms are numbers": ("horizon = 100\narms = [0.9, 0.5]\n" + AGENTS, ("arms", "[0.9, 0.5]", "[[arms]]")),
    "one table of arms": ("horizon = 100\n[arms]\nmean = 0.9\n" + AGENTS, ("arms", '{"mean": 0.9}', "[[arms]]")),
    "mean above 1": (with_reward("mean = 1.5"), ('arm 1 ("pens")', "mean", "1.5", BETWEEN)),
    "mean is nan": (with_reward("mean = nan"), ('arm 1 ("pens")', "mean", "nan", BETWEEN)),
    "mean is a text": (with_reward('mean = "0.9"'), ('arm 1 ("pens")', "mean", "'0.9'", BETWEEN)),
    "mean is a date": (with_reward("mean = 2025-01-01"), ('arm 1 ("pens")', "mean", "2025", BETWEEN)),
    "mean and reward": (
        with_reward('mean = 0.9\nreward = { kind = "constant", value = 0.3 }'),
        ('arm 1 ("pens")', "both mean and reward", "one of the two"),
    ),
    "neither mean nor reward": (with_reward(""), ('arm 1 ("pens")', "neither mean nor reward", "one of the two")),
    "unknown key of an arm": (
        with_reward("means = 0.9"),
        ('arm 1 ("pens")', '"means"', 'did you mean "mean"?', "name, mean, reward"),
    ),
    "reward is a text": (with_reward('reward = "beta"'), ('arm 1 ("pens")', '"beta"', "a kind", *KINDS)),
    "reward without kind": (
        with_reward("reward = { a = 2, b = 5 }"),
        ('arm 1 ("pens")', '{"a": 2', "a kind", *KINDS),
    ),
    "unknown kind": (
        with_reward('reward = { kind = "betta", a = 2, b = 5 }'),
        ('arm 1 ("pens")', '"betta"', 'did you mean "beta"?', *KINDS),
    ),
    "kind is a list": (with_reward('reward = { kind = ["beta"] }'), ('arm 1 ("pens")', '["beta"]', *KINDS)),
    "beta without b": (
        with_reward('reward = { kind = "beta", a = 2 }'),
        ('arm 1 ("pens")', "b is missing", "kind, a and b"),
    ),
    "beta with c": (
        with_reward('reward = { kind = "beta", a = 2, b = 5, c = 1 }'),
        ('arm 1 ("pens")', '"c"', "kind, a, b"),
    ),
    "beta below 0": (
        with_reward('reward = { kind = "beta", a = -2, b = 5 }'),
        ('arm 1 ("pens")', "parameter a", "-2", "above 0"),
    ),
    "weights": (
        with_reward('reward = { kind = "discrete", values = [0, 1], weights = [0.5, 0.6] }'),
        ('arm 1 ("pens")', "weights", "1.1", "sum to 1"),
    ),
    "values are a number": (
        with_reward('reward = { kind = "discrete", values = 1, weights = [1.0] }'),
        ('arm 1 ("pens")', "values", "1", "list of numbers"),
    ),
    "sample is empty": (
        with_reward('reward = { kind = "empirical", sample = [] }'),
        ('arm 1 ("pens")', "sample", "at least one"),
    ),
    "sample is not there": (
        with_reward('reward = { kind = "empirical", sample = "lost.txt" }'),
        ('arm 1 ("pens")', "lost.txt", "No such file", "file of numbers"),
    ),
    "sample is not of numbers": (
        with_reward('reward = { kind = "empirical", sample = "game.toml" }'),
        ('arm 1 ("pens")', "'horizon'", BETWEEN),
    ),
    "empty name": (
        "horizon = 100\n[[arms]]\nname = ''\nmean = 0.9\n" + AGENTS,
        ('arm 1 ("")', 'name is ""', "not empty"),
    ),
    "name is a number": (
        "horizon = 100\n[[arms]]\nname = 7\nmean = 0.9\n" + AGENTS,
        ("arm 1", "name is 7", "a text"),
    ),
    "duplicate arm": ("horizon = 100\n" + ARMS + ARMS + AGENTS, ("two arms", "'pens'", "must differ")),
    "takes another's name": (
        'horizon = 100\n[[arms]]\nmean = 0.9\n[[arms]]\nname = "arm 1"\nmean = 0.5\n' + AGENTS,
        ("two arms", "'arm 1'", "must differ"),
    ),
    "duplicate agent": (
        "horizon = 100\n" + ARMS + '[[agent]]\nname = "shop"\n' * 2,
        ("two agents", "'shop'", "must differ"),
    ),
    "no agents": ("horizon = 100\n" + ARMS, ("no agents", "[agents]", "[[agent]]")),
    "empty agents": ("horizon = 100\nagent = []\n" + ARMS, ("no agents", "[agents]", "[[agent]]")),
    "count of 0": ("horizon = 100\n" + ARMS + "[agents]\ncount = 0\n", ("[agents]", "agents is 0", f"{WHOLE} 1")),
    "no count": (
        "horizon = 100\n" + ARMS + '[agents]\nsharing = "random"\n',
        ("[agents]", "count is missing", "needs count"),
    ),
    "agents is a number": ("horizon = 100\nagents = 4\n" + ARMS, ("[agents]", "4", "one table with a count")),
    "both agents and agent": ("horizon = 100\n" + ENOUGH + "[[agent]]\n", ("both [agents] and [[agent]]", "one of")),
    "unknown key of agents": (
        "horizon = 100\n" + ENOUGH + 'share = "random"\n',
        ("[agents]", '"share"', 'did you mean "sharing"?', "count, sharing, order"),
    ),
    "unknown pattern": (
        "horizon = 100\n" + ENOUGH + 'sharing = "ring"\n',
        ("[agents]", "'ring'", "round-robin", "neighbours-K"),
    ),
    "pattern is a list": ("horizon = 100\n" + ENOUGH + "sharing = [1]\n", ("[agents]", "[1]", "round-robin")),
    "random with few agents": (
        "horizon = 100\n" + ARMS + '[agents]\ncount = 1\nsharing = "random"\n',
        ("[agents]", "1 agents", "2 arms", "at least 2"),
    ),
    "unknown order": ("horizon = 100\n" + ENOUGH + 'order = "any"\n', ("[agents]", "'any'", "fixed or shuffled")),
    "order outside": ('horizon = 100\norder = "fixed"\n' + ENOUGH, ("'fixed'", "outside [agents]", "inside")),
    "shares an arm that is not there": (
        "horizon = 100\n" + ARMS + '[[agent]]\n[[agent]]\nname = "shop"\nshares = ["pens", "cup"]\n',
        ('agent 2 ("shop")', '"cup"', 'did you mean "cups"?', '"pens", "cups"'),
    ),
    "shares a number": (
        "horizon = 100\n" + ARMS + "[[agent]]\nshares = [1]\n",
        ("agent 1:", "shares 1", '"pens", "cups"'),
    ),
    "shares a text": (
        "horizon = 100\n" + ARMS + '[[agent]]\nshares = "pens"\n',
        ("agent 1:", '"pens"', "list of names"),
    ),
    "shares an arm twice": (
        "horizon = 100\n" + ARMS + '[[agent]]\nshares = ["pens", "pens"]\n',
        ("agent 1:", '"pens" twice', "once"),
    ),
    "unknown key of an agent": (
        "horizon = 100\n" + ARMS + '[[agent]]\nshare = ["pens"]\n',
        ("agent 1:", '"share"', 'did you mean "shares"?', "name, shares"),
    ),
    "pace of 0": (with_agent("pace = 0"), (SHOP, "pace is 0", "finite number above 0")),
    "pace below 0": (with_agent("pace = -1.5"), (SHOP, "pace is -1.5", "finite number above 0")),
    "pace is nan": (with_agent("pace = nan"), (SHOP, "pace is nan", "finite number above 0")),
    "pace is infinite": (with_agent("pace = inf"), (SHOP, "pace is inf", "finite number above 0")),
    "pace is a text": (with_agent('pace = "slow"'), (SHOP, "pace is 'slow'", "finite number above 0")),
    "own horizon of 0": (with_agent("horizon = 0"), (SHOP, "horizon", "0", f"{WHOLE} 1")),
    "own horizon too long": (with_agent(f"horizon = {2**62}"), ("2 agents", f"{2**62:,}", f"{2**63 - 1:,}")),
    "delay below 0": (with_agent("delay = -1"), (SHOP, "delay is -1", "at least 0")),
    "delay is a text": (with_agent('delay = "long"'), (SHOP, "delay is 'long'", "finite number")),
    "delay is a list": (with_agent("delay = [1, 2]"), (SHOP, "delay is [1, 2]", "finite number")),
    "delay longer than the horizon": (
        with_agent("delay = 100"),
        ("delay of shop is 100 steps", "100 pulls take 100", "shorter"),
    ),
    "delay longer than a fast horizon": (
        with_agent("delay = { steps = 30 }\npace = 4"),
        ("delay of shop is 30 steps", "100 pulls take 25", "shorter"),
    ),
    "delay without steps": (with_agent('delay = { kind = "uniform" }'), (SHOP, "steps is missing", "needs steps")),
    "unknown kind of delay": (
        with_agent('delay = { kind = "normal", steps = 3 }'),
        (SHOP, '"normal"', "constant, uniform or exponential"),
    ),
    "delay of what": (
        with_agent('delay = { of = "wins", steps = 3 }'),
        (SHOP, '"wins"', "all, successes or failures"),
    ),
    "unknown key of a delay": (
        with_agent("delay = { mean = 3, steps = 3 }"),
        (SHOP, '"mean"', "steps, kind, of"),
    ),
    "offset above the mean": (
        with_agent("offset = 0.2"),
        ("offset 0.2 of shop", "pens is 1.1", "between 0 and 1"),
    ),
    "offset below the mean": (
        with_agent("offset = -0.6"),
        ("offset -0.6 of shop", "cups is -0.1", "between 0 and 1"),
    ),
    "offset after a change": (
        "horizon = 100\n[[arms]]\nmean = 0.5\nchange = { step = 9, mean = 0.95 }\n[[agent]]\noffset = 0.1\n",
        ("offset 0.1 of agent 1", "arm 1 is 1.05", "between 0 and 1"),
    ),
    "offset of 2": (with_agent("offset = 2"), (SHOP, "offset is 2", "between -1 and 1")),
    "offset below -1": (with_agent("offset = -2"), (SHOP, "offset is -2", "between -1 and 1")),
    "offset of other rewards": (
        'horizon = 100\n[[arms]]\nreward = { kind = "beta", a = 2, b = 5 }\n[[agent]]\noffset = 0.1\n',
        ("offset of agent 1 is 0.1", "arm 1 is not a Bernoulli arm", "rewards of its own"),
    ),
    "own mean above 1": (with_agent("means = [0.5, 1.5]"), (SHOP, "mean", "1.5", BETWEEN)),
    "too few own means": (with_agent("means = [0.5]"), ("number of means of shop is 1", "that of the arms, 2")),
    "own means are a number": (with_agent("means = 0.5"), (SHOP, "means are 0.5", "one entry per arm")),
    "own means of a table": (with_agent("means = { pens = 0.5 }"), (SHOP, '{"pens": 0.5}', "one entry per arm")),
    "offset and means": (
        with_agent("offset = 0.01\nmeans = [0.5, 0.5]"),
        (SHOP, "offset, means and rewards", "at most one"),
    ),
    "means and rewards": (
        with_agent('means = [0.5, 0.5]\nrewards = [{ kind = "constant", value = 1 }]'),
        (SHOP, "offset, means and rewards", "at most one"),
    ),
    "own rewards are numbers": (with_agent("rewards = [0.5, 0.5]"), (SHOP, "reward is 0.5", "a kind", *KINDS)),
    "too many own rewards": (
        with_agent("rewards = [" + '{ kind = "constant", value = 1 }, ' * 3 + "]"),
        ("number of rewards of shop is 3", "that of the arms, 2"),
    ),
    "change after the last pull": (
        "horizon = 100\n[[arms]]\nmean = 0.5\nchange = { step = 201, mean = 0.9 }\n[[agent]]\npace = 0.5\n",
        ("change of arm 1 is at step 201", "last pull is at step 200", "not be later"),
    ),
    "traits in a pattern": (
        "horizon = 100\n[[arms]]\nmean = 0.5\n[agents]\ncount = 3\npace = 0.5\n",
        ("[agents]", 'key "pace"', "[[agent]] tables", "count"),
    ),
    "own rewards and a change": (
        "horizon = 100\n[[arms]]\nmean = 0.5\nchange = { step = 9, mean = 0.9 }\n[[agent]]\nmeans = [0.1]\n",
        ("arms change", "agent 1 has rewards of its own", "an offset or nothing"),
    ),
    "leaves before it joins": (
        with_agent("joins = 50\nleaves = 20"),
        (SHOP, "joins at step 50", "leaves at step 20", "must leave later"),
    ),
    "joins at step 0": (with_agent("joins = 0"), (SHOP, "joins is 0", f"{WHOLE} 1")),
    "leaves at a text": (with_agent('leaves = "soon"'), (SHOP, "leaves is 'soon'", f"{WHOLE} 1")),
    "count of an agent is 0": (with_agent("count = 0"), (SHOP, "count is 0", f"{WHOLE} 1")),
    "count of an agent too large": (
        with_agent("count = 1e9"),
        (SHOP, "1,000,000,001 agents", "at most 1,000,000"),
    ),
    "change is a number": (with_reward("mean = 0.5\nchange = 7"), ('arm 1 ("pens")', "change is 7", "a step")),
    "change without a step": (
        with_reward("mean = 0.5\nchange = { mean = 0.5 }"),
        ('arm 1 ("pens")', "change", "step is missing", "needs step"),
    ),
    "change at step 1": (
        with_reward("mean = 0.5\nchange = { step = 1, mean = 0.5 }"),
        ('arm 1 ("pens")', "change", "step is 1", f"{WHOLE} 2"),
    ),
    "change to nothing": (
        with_reward("mean = 0.5\nchange = { step = 7 }"),
        ('arm 1 ("pens")', "change", "neither mean nor reward", "one of the two"),
    ),
    "second change above 1": (
        with_reward("mean = 0.5\nchange = [{ step = 7, mean = 0.1 }, { step = 9, mean = 1.5 }]"),
        ('arm 1 ("pens")', "change 2", "1.5", BETWEEN),
    ),
    "two changes at once": (
        with_reward("mean = 0.5\nchange = [{ step = 7, mean = 0.1 }, { step = 7, mean = 0.2 }]"),
        ("changes twice at the same step", "once"),
    ),
    "claim_steps of 0": ("horizon = 100\nclaim_steps = 0\n" + ENOUGH, ("claim_steps is 0", "above 0")),
    "claim_steps is a text": (
        'horizon = 100\nclaim_steps = "few"\n' + ENOUGH,
        ("claim_steps is 'few'", "finite number above 0"),
    ),
    "balance below 1": ("horizon = 100\nbalance = 0.5\n" + ENOUGH, ("balance", "0.5", "at least 1, or inf")),
    "balance is nan": ("horizon = 100\nbalance = nan\n" + ENOUGH, ("balance", "NaN", "at least 1, or inf")),
    "balance is a text": ('horizon = 100\nbalance = "2"\n' + ENOUGH, ("balance", '"2"', "at least 1, or inf")),
    "rule is a number": ("horizon = 100\nrule = 2\n" + ENOUGH, ("rule", "2", "a name")),
    "settlement is a number": ("horizon = 100\nsettlement = 2\n" + ENOUGH, ("settlement", "2", "a name")),
}

# What only the command line can tell, as reading a file does not need to know rules and settlements.
FILES_PLAYED: dict[str, tuple[str, tuple[str, ...]]] = {
    "unknown rule": ('horizon = 100\nrule = "three-ucb"\n' + ENOUGH, ("'three-ucb'", "two-ucb", "no-protocol")),
    "balance for 2-UCB": ('horizon = 100\nrule = "two-ucb"\nbalance = 2\n' + ENOUGH, ("two-ucb", "2", "no balance")),
    "sees too much": ('horizon = 100\nrule = "imed"\nsees = "all"\n' + ENOUGH, ('"all"', "own, shared or both")),
    "sees a number": ('horizon = 100\nrule = "imed"\nsees = 2\n' + ENOUGH, ("sees", "2", "own, shared or both")),
    "sees for 2-UCB": ('horizon = 100\nrule = "two-ucb"\nsees = "own"\n' + ENOUGH, ("two-ucb", "'own'", "no sees")),
    "paper for 2-UCB": (
        'horizon = 100\nrule = "two-ucb"\nsettlement = "paper"\n' + ENOUGH,
        ("two-ucb", "not defined", "equal-share, equal-share-expected, none"),
    ),
    "unknown settlement": ('horizon = 100\nsettlement = "fair"\n' + ENOUGH, ("'fair'", "paper, equal-share")),
    "fee below 0": (
        'horizon = 100\nsettlement = "equal-share"\nfee = -0.1\n' + ENOUGH,
        ("fee", "-0.1", "at least 0"),
    ),
    "unknown learner alone": ('horizon = 100\nalone = "chance"\n' + ENOUGH, ("alone", "'chance'", "two-ucb, kl-ucb")),
    "alone is a number": ("horizon = 100\nalone = 3\n" + ENOUGH, ("alone", "3", "two-ucb, kl-ucb")),
    "coverage of 2": (
        'horizon = 100\nsettlement = "equal-share"\ncoverage = 2\n' + ENOUGH,
        ("coverage", "2", "0.5 to below 1"),
    ),
    "coverage for the paper's": ("horizon = 100\ncoverage = 0.9\n" + ENOUGH, ("coverage", "0.9", "paper has none")),
    "fee for the paper's": ("horizon = 100\nfee = 0.1\n" + ENOUGH, ("fee", "0.1", "paper takes none")),
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("game.toml")


@pytest.mark.parametrize("name", FILES)
def test_by_file_in_python(name: str, file: Path) -> None:
    text, words = FILES[name]
    file.write_text(text)
    with pytest.raises(partage.InputError) as refused:
        read_game(file)
    assert_one_sentence(str(refused.value), ("game.toml: ", *words))


@pytest.mark.parametrize("name", FILES | FILES_PLAYED)
def test_by_file(name: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, words = (FILES | FILES_PLAYED)[name]
    file.write_text(text)
    assert_one_sentence(complaint(capsys, "simulate", "game.toml", "--json"), ("game.toml: ", *words))


def test_the_audit_of_a_file_whose_agents_differ(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(with_agent("pace = 2"))
    words = ("game.toml: ", "traits of agents", "an audit is of the paper's game")
    assert_one_sentence(complaint(capsys, "audit", "game.toml"), words)


def test_a_missing_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("game.toml: ", "No such file", "game file in TOML")
    with pytest.raises(partage.FileError) as refused:
        read_game(file)
    assert_one_sentence(str(refused.value), words)
    assert_one_sentence(complaint(capsys, "simulate", "game.toml", "--json"), words)


def test_a_folder_in_place_of_a_file(file: Path) -> None:
    file.mkdir()
    with pytest.raises(partage.FileError) as refused:
        read_game(file)
    assert_one_sentence(str(refused.value), ("game.toml: ", "directory", "game file in TOML"))


def test_a_file_that_is_not_text(file: Path) -> None:
    file.write_bytes(b"horizon = \xff\xfe")
    with pytest.raises(partage.FileError) as refused:
        read_game(file)
    assert_one_sentence(str(refused.value), ("game.toml: ", "not TOML", "game file in TOML"))


def test_a_name_of_several_lines_stays_on_one(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text('horizon = 100\n[[arms]]\nname = "a\\nb"\nmean = 2\n' + AGENTS)
    assert_one_sentence(complaint(capsys, "simulate", "game.toml"), (r'arm 1 ("a\nb")', "2", BETWEEN))


# --- as a process ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulate"], ("No game", *HOW)),
        (["simulate", "lost.toml", "--json"], ("lost.toml", "No such file")),
        (["simulate", "--means=0.9,2", "--agents=4", "--horizon=100", "--json"], ("--means: arm 2", "2", BETWEEN)),
        (["simulate", "--means=0.9,0.5", "--agents=4", "--horizon=100", "--runs=0"], ("runs", "0", f"{WHOLE} 1")),
    ],
)
def test_as_a_process(arguments: list[str], words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "partage.cli", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert_one_sentence(ended.stderr.removesuffix("\n"), words)

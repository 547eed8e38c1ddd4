"""The game file says what it says, and flags say the same."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from partage.arms import (
    Bernoulli,
    Beta,
    Constant,
    Discrete,
    Empirical,
    Mixture,
    RandomBernoulli,
    TruncatedNormal,
    Uniform,
)
from partage.errors import InputError
from partage.gamefile import KINDS, GameFile, game_by_flags, read_game
from partage.rules import parameters
from partage.sharing import Sharing
from partage.traits import Change, Delay, Traits
from partage.unit import Unit

ARMS = '[[arms]]\nname = "pens"\nmean = 0.9\n[[arms]]\nmean = 0.5\n[[arms]]\nmean = 0.7\n'


@pytest.fixture
def read(tmp_path: Path):
    def write_and_read(text: str) -> GameFile:
        path = tmp_path / "game.toml"
        path.write_text(text, encoding="utf-8")
        return read_game(path)

    return write_and_read


def test_the_example_of_the_format(read):
    file = read("horizon = 1_000_000\nbalance = 1.0\n" + ARMS + '[agents]\ncount = 100\nsharing = "round-robin"\n')
    assert file.game.arm_names == ("pens", "arm 2", "arm 3")
    assert file.game.means.tolist() == [0.9, 0.5, 0.7]
    assert file.game.sharing == Sharing.round_robin(agents=100, arms=3)
    assert file.game.horizon == 10**6
    assert (file.rule, file.balance, file.settlement) == (None, 1.0, None)


def test_agents_one_by_one(read):
    agents = '[[agent]]\nname = "shop 1"\nshares = ["arm 3", "pens"]\n[[agent]]\n[[agent]]\nshares = ["arm 2"]\n'
    game = read("horizon = 100\n" + ARMS + agents).game
    assert game.sharing == Sharing.lists([[0, 2], [], [1]], arms=3)
    assert [game.agent_name(agent) for agent in range(3)] == ["shop 1", "agent 2", "agent 3"]


def test_every_kind_of_reward(read):
    rewards = {
        'kind = "bernoulli", mean = 0.3': Bernoulli(0.3),
        'kind = "beta", a = 2, b = 5': Beta(2, 5),
        'kind = "uniform", low = 0.1, high = 0.4': Uniform(0.1, 0.4),
        'kind = "truncated-normal", location = 0.4, scale = 2': TruncatedNormal(0.4, 2),
        'kind = "constant", value = 1': Constant(1),
        'kind = "discrete", values = [0, 0.5], weights = [0.25, 0.75]': Discrete([0, 0.5], [0.25, 0.75]),
        'kind = "empirical", sample = [0.1, 0.1, 1]': Empirical([0.1, 0.1, 1]),
        'kind = "mixture", parts = [{ kind = "constant", value = 1 }, { kind = "beta", a = 2, b = 5 }], '
        "weights = [0.25, 0.75]": Mixture([Constant(1), Beta(2, 5)], [0.25, 0.75]),
    }
    assert len(rewards) == len(KINDS)
    arms = "".join(f"[[arms]]\nreward = {{ {reward} }}\n" for reward in rewards)
    assert read("horizon = 100\n" + arms + "[agents]\ncount = 7\n").game.arms == tuple(rewards.values())


def test_a_sample_with_counts(read):
    arms = '[[arms]]\nreward = { kind = "empirical", sample = [0, 0.5], counts = [30, 10] }\n'
    (arm,) = read("horizon = 100\n" + arms + "[agents]\ncount = 7\n").game.arms
    assert arm == Empirical([0, 0.5], counts=[30, 10])
    assert arm.mean == Empirical([0] * 30 + [0.5] * 10).mean


def test_means_drawn_for_each_run_and_many_arms_of_one_table(read):
    arms = """
        [[arms]]
        name = "pens"
        count = 2
        mean = { kind = "uniform", low = 0.2, high = 0.8 }
        [[arms]]
        mean = { kind = "beta", a = 2, b = 6, high = 0.5 }
        [[arms]]
        mean = 0.5
        count = 2
    """
    game = read("horizon = 100\n" + arms + '[agents]\ncount = 5\nsharing = "scarce-best"\n').game
    uniform, beta = RandomBernoulli(0.2, 0.8), RandomBernoulli(0, 0.5, a=2, b=6)
    named = (replace(uniform, name="pens 1"), replace(uniform, name="pens 2"))
    assert game.arms == (*named, beta, Bernoulli(0.5), Bernoulli(0.5))
    assert game.arm_names[1:] == ("pens 2", "arm 3", "arm 4", "arm 5")
    assert game.random


def test_the_unit(read):
    rest = ARMS + "[agents]\ncount = 5\n"
    assert read("horizon = 100\n" + rest).game.unit is None
    unit = '[unit]\nworst = 60\nbest = 0\nname = "minutes"\n'
    assert read("horizon = 100\n" + unit + rest).game.unit == Unit(60, 0, "minutes")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[[arms]]\nmean = { kind = "normal" }', 'The kind of the mean is "normal"'),
        ('[[arms]]\nmean = { kind = "uniform", low = 0 }', "The key high is missing"),
        ('[[arms]]\nmean = { kind = "uniform", low = 0.5, high = 0.1 }', "must be at most the high end"),
        (
            '[[arms]]\nmean = 0.5\nchange = { step = 5, mean = { kind = "uniform", low = 0, high = 1 } }',
            "The mean of",
        ),
        ('[[arms]]\nreward = { kind = "mixture", parts = [], weights = [1] }', "they must be a list of rewards"),
        ('[[arms]]\nreward = { kind = "mixture", parts = [{ kind = "flat" }], weights = [1] }', 'The kind is "flat"'),
        ('[[arms]]\nreward = { kind = "empirical", sample = [0], counts = [1, 2] }', "each value needs one count"),
        ("[[arms]]\nmean = 0.5\ncount = 1_000_000", "at most 100,000 arms"),
        ("[unit]\nworst = 1\nbest = 1\n[[arms]]\nmean = 0.5", "they must differ"),
        ("[unit]\nworst = 1\n[[arms]]\nmean = 0.5", "The key best is missing"),
    ],
)
def test_what_is_refused_of_means_mixtures_and_units(read, text, sentence):
    with pytest.raises(InputError, match=re.escape(sentence).replace("The", "[Tt]he")):
        read("horizon = 100\n" + text + "\n[agents]\ncount = 5\n")


def test_a_sample_from_a_file_beside_the_game(read, tmp_path):
    (tmp_path / "sample.csv").write_text("0.1, 0.2\n0.3\n")
    arms = '[[arms]]\nname = "pens"\nreward = { kind = "empirical", sample = "sample.csv" }\n'
    assert read("horizon = 100\n" + arms + "[agents]\ncount = 1\n").game.arms == (Empirical([0.1, 0.2, 0.3], "pens"),)


def test_round_robin_and_a_fixed_order_are_the_defaults(read):
    game = read("horizon = 100\n" + ARMS + "[agents]\ncount = 5\n").game
    assert game.sharing == Sharing.round_robin(agents=5, arms=3)
    assert not game.sharing.shuffled


@pytest.mark.parametrize(
    ("name", "sharing"),
    [
        ("scarce-best", Sharing.scarce_best(7, 3, best=(0, 2))),
        ("neighbours-2", Sharing.neighbours(7, 3, k=2)),
        ("random", Sharing.random(7, 3)),
        ("everyone-everything", Sharing.everything(7, 3)),
        ("nobody-nothing", Sharing.nothing(7, 3)),
    ],
)
def test_patterns(name, sharing, read):
    assert read("horizon = 100\n" + ARMS + f'[agents]\ncount = 7\nsharing = "{name}"\n').game.sharing == sharing


def test_a_shuffled_order_for_patterns_and_lists(read):
    pattern = read("horizon = 100\n" + ARMS + '[agents]\ncount = 5\norder = "shuffled"\n')
    listed = read('horizon = 100\norder = "shuffled"\n' + ARMS + '[[agent]]\nshares = ["pens"]\n')
    assert pattern.game.sharing.shuffled
    assert listed.game.sharing.shuffled
    assert pattern.sharing == "round-robin, in shuffled order"
    assert listed.sharing == "as listed, in shuffled order"


@pytest.mark.parametrize("balance", ["inf", '"inf"'])
def test_an_infinite_balance(balance, read):
    assert read(f"horizon = 100\nbalance = {balance}\n" + ARMS + "[agents]\ncount = 5\n").balance == math.inf


def test_rule_and_settlement(read):
    file = read('horizon = 100\nrule = "full-sharing"\nsettlement = "none"\n' + ARMS + "[agents]\ncount = 5\n")
    assert (file.rule, file.balance, file.settlement, file.parameters) == ("full-sharing", None, "none", {})


def test_what_agents_see(read):
    file = read('horizon = 100\nrule = "imed"\nsees = "both"\n' + ARMS + "[agents]\ncount = 5\n")
    assert (file.rule, file.parameters) == ("imed", {"sees": "both"})


def test_every_parameter_of_a_rule_is_a_key(read):
    keys = 'balance = 2\nlead = 4\nevidence = "betting"\nindifference = false\n'
    keys += 'clock = 0.5\ntolerate = 0\nlate = "worst"\nown = 3\nsees = "both"\n'
    file = read("horizon = 100\n" + keys + ARMS + "[agents]\ncount = 5\n")
    expected = {
        "balance": 2.0,
        "lead": 4.0,
        "evidence": "betting",
        "indifference": False,
        "clock": 0.5,
        "tolerate": 0,
        "late": "worst",
        "own": 3,
        "sees": "both",
    }
    assert file.parameters == expected
    assert set(file.parameters) == set(parameters())


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("balance = 0.5", "the balance is 0.5; it must be a number of at least 1, or inf"),
        ('lead = "far"', 'the lead is "far"; it must be a finite number of at least 1'),
        ('lead = "inf"', 'the lead is "inf"; it must be a finite number of at least 1'),
        ('evidence = "bets"', 'the evidence is "bets"; it must be likelihood or betting'),
        ("evidence = 1", "the evidence is 1; it must be likelihood or betting"),
    ],
)
def test_a_parameter_that_is_not_allowed(line, sentence, read):
    with pytest.raises(InputError, match=re.escape(sentence)):
        read(f"horizon = 100\n{line}\n" + ARMS + "[agents]\ncount = 5\n")


@pytest.mark.parametrize("horizon", ["1_000_000", "1e6", "1000000.0"])
def test_whole_horizons(horizon, read):
    game = read(f"horizon = {horizon}\n" + ARMS + "[agents]\ncount = 5\n").game
    assert game.horizon == 10**6
    assert isinstance(game.horizon, int)


def test_a_byte_order_mark_and_names_beyond_ascii(read):
    text = '\ufeffhorizon = 100\n[[arms]]\nname = "thé"\nmean = 0.5\n[agents]\ncount = 1\n'
    assert read(text).game.arm_names == ("thé",)


def test_flags_give_the_same_game_as_a_file(read):
    agents = '[agents]\ncount = 7\nsharing = "scarce-best"\norder = "shuffled"\n'
    file = read("horizon = 1e6\n" + ARMS.replace('name = "pens"\n', "") + agents)
    flags = game_by_flags("0.9, 0.5,0.7", agents="7", horizon="1e6", sharing="scarce-best", order="shuffled")
    assert flags == file


def test_constant_arms_by_flags():
    assert game_by_flags("0.9,0.5", "3", "10", reward="constant").game.arms == (Constant(0.9), Constant(0.5))


# --- real members ---------------------------------------------------------------------------------------------


def test_traits_of_agents(read):
    agents = """
    [[agent]]
    name = "fast"
    pace = 4
    horizon = 400
    [[agent]]
    delay = 2.5
    offset = -0.1
    joins = 3
    leaves = 50
    [[agent]]
    delay = { steps = 5, kind = "exponential", of = "successes" }
    means = [0.1, 0.2, 0.3]
    [[agent]]
    rewards = [{ kind = "beta", a = 2, b = 5 }, { kind = "constant", value = 0.5 }, { kind = "bernoulli", mean = 1 }]
    [[agent]]
    """
    game = read("horizon = 100\nclaim_steps = 7.5\n" + ARMS + agents).game
    assert game.traits == (
        Traits(pace=4, horizon=400),
        Traits(delay=2.5, offset=-0.1, joins=3, leaves=50),
        Traits(delay=Delay("exponential", 5, "successes"), means=[0.1, 0.2, 0.3]),
        Traits(rewards=[Beta(2, 5, "pens"), Constant(0.5, "arm 2"), Bernoulli(1, "arm 3")]),
        Traits(),
    )
    assert (game.claim_steps, game.longest) == (7.5, 400)


def test_traits_with_means_can_be_copied_and_changed():
    slow = replace(Traits(means=[0.1, 0.2]), pace=0.5)
    assert slow == Traits(means=[0.1, 0.2], pace=0.5)


def test_defaults_of_traits_are_the_papers_game(read):
    agents = '[[agent]]\nshares = ["pens"]\npace = 1\ndelay = 0\noffset = 0.0\njoins = 1\n'
    plain = read("horizon = 100\n" + ARMS + '[[agent]]\nshares = ["pens"]\n').game
    assert read("horizon = 100\n" + ARMS + agents).game == plain
    assert not plain.uneven


def test_changes_of_arms(read):
    arms = """
    [[arms]]
    mean = 0.9
    change = { step = 20, mean = 0.4 }
    [[arms]]
    mean = 0.5
    change = [{ step = 30, reward = { kind = "beta", a = 2, b = 5 } }, { step = 10, mean = 0.6 }]
    """
    game = read("horizon = 100\n" + arms + "[agents]\ncount = 2\n").game
    assert game.changes == (Change(10, 1, Bernoulli(0.6)), Change(20, 0, Bernoulli(0.4)), Change(30, 1, Beta(2, 5)))


def test_a_count_makes_many_agents_of_one_table(read):
    agents = """
    [[agent]]
    count = 2
    [[agent]]
    name = "shop"
    shares = ["pens"]
    pace = 0.5
    count = 3
    [[agent]]
    """
    game = read("horizon = 100\n" + ARMS + agents).game
    assert game.agent_names == ("agent 1", "agent 2", "shop 1", "shop 2", "shop 3", "agent 6")
    assert game.sharing == Sharing.lists([[], [], [0], [0], [0], []], arms=3)
    assert [game.traits_of(agent).pace for agent in range(6)] == [1, 1, 0.5, 0.5, 0.5, 1]


def test_every_trait_is_a_key(read):
    with pytest.raises(InputError) as refused:
        read("horizon = 100\n" + ARMS + "[[agent]]\nspeed = 3\n")
    assert "name, shares, count, pace, horizon, delay, offset, means, rewards, joins, leaves" in str(refused.value)

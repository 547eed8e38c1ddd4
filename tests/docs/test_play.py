"""What the page that plays runs: its loop equals the simulator, and its figures follow from the pulls."""

import importlib.util

import numpy as np
import pytest
from tests.docs.pages import ROOT

import partage
from partage.arms import reward_table
from partage.engine.rewards import Rewards, run_keys

MEANS = [0.9, 0.75, 0.6]
SHARES = {
    "round robin": [[0], [1], [2], [0]],
    "several each, one nothing": [[0, 1], [1, 2], [], [0, 2]],
    "nobody shares the second arm": [[0], [0, 2], [2]],
}
CHOICES = {"means": MEANS, "shares": [[0], [1], [2]], "horizon": 300, "alone": "thompson", "seed": 3}


@pytest.fixture(scope="module")
def play():
    spec = importlib.util.spec_from_file_location("play", ROOT / "docs" / "play" / "play.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("rule", ["shared-imed", "balanced-glr", "balanced-etc", "thompson", "imed", "two-ucb"])
@pytest.mark.parametrize("pattern", SHARES)
def test_the_page_plays_as_the_simulator_does(play, rule, pattern):
    shares, horizon = SHARES[pattern], 200
    sharing = partage.Sharing.lists(shares, arms=3)
    game = partage.Game(arms=partage.bernoulli(MEANS), sharing=sharing, horizon=horizon)
    (key,) = run_keys(0, 0, 1)
    rewards = Rewards(key, reward_table(list(game.arms)))

    def reward(arm, entry, stream):
        return rewards.private(stream - 1, arm, entry) if stream else rewards.broadcast(arm, entry)

    table = play.Table(play.make_rule(rule), shares, 3, horizon, (int(key[0]), int(key[1])), reward)
    for _ in range(horizon):
        table.play_step()
    tally = partage.play_run(game, play.make_rule(rule), seed=0, reference=True)
    assert np.array_equal(table.explore, tally.explore)
    assert np.array_equal(table.commit, tally.commit)


@pytest.mark.parametrize(
    ("rule", "settlement"),
    [("shared-imed", "pool"), ("balanced-glr", "equal-share-expected"), ("balanced-etc", "paper")],
)
def test_figures_follow_from_the_pulls(play, rule, settlement):
    show = play.Show({**CHOICES, "rule": rule, "settlement": settlement})
    in_two = show.advance(100), show.advance(10**6)
    at_once = play.Show({**CHOICES, "rule": rule, "settlement": settlement}).advance(300)
    assert in_two[1] == at_once
    assert at_once["step"] == 300
    assert at_once["curve"][-1] == (300, pytest.approx(at_once["regret"]), pytest.approx(at_once["alone"]))
    agents = at_once["settlement"]["agents"]
    assert sum(each["regret"] for each in agents) == pytest.approx(at_once["regret"])
    assert sum(each["paid"] - each["received"] for each in agents) == pytest.approx(at_once["settlement"]["profit"])
    assert sum(arm["count"] for arm in at_once["arms"]) == at_once["broadcasts"] > 0


def test_a_pool_charges_at_most_what_was_prepaid(play):
    shown = play.Show({**CHOICES, "rule": "shared-imed", "settlement": "pool"}).advance(300)
    assert 0 < max(each["paid"] for each in shown["settlement"]["agents"]) <= play.PREPAID
    assert shown["settlement"]["profit"] == pytest.approx(0, abs=1e-9)


def test_an_arm_that_nobody_shares_is_named(play):
    choices = {**CHOICES, "shares": [[0], [0]], "rule": "balanced-glr", "settlement": "pool"}
    shown = play.Show(choices).advance(50)
    assert [arm["state"] for arm in shown["arms"]][1:] == ["nobody shares it"] * 2

"""The game of a log: one mean for all or each agent's own, by a test."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from partage import BalancedGLR, play
from partage.errors import InputError
from partage.gamefile import read_game
from partage.logs import game_of_log, one_mean, read_log, uniform_logging
from partage.logs.fit import chi_squared_above
from partage.sharing import Sharing


def log_of(tmp_path: Path, means, rows=200, seed=0, draw=None, empty=()):
    """Return a log in which agents pull arms in turn; each pays 0 or 1, or what `draw` makes of its mean."""
    rng = np.random.default_rng(seed)
    draw = draw or (lambda mean: float(rng.random() < mean))
    lines = ["agent,arm,reward"]
    for agent, row in enumerate(means):
        for arm, mean in enumerate(row):
            if (agent, arm) not in empty:
                lines += [f"Shop {agent + 1},arm {arm + 1},{draw(mean)!r}" for _ in range(rows)]
    path = tmp_path / "events.csv"
    path.write_text("\n".join(lines))
    return read_log(path)


@pytest.mark.parametrize("freedom", [1, 2, 7, 44, 300, 5000])
@pytest.mark.parametrize("ratio", [0.01, 0.5, 0.9, 1.0, 1.1, 2.0, 10.0])
def test_the_tail_of_chi_squared(freedom, ratio):
    exact = stats.chi2.sf(ratio * freedom, freedom)
    assert chi_squared_above(ratio * freedom, freedom) == pytest.approx(exact, rel=1e-9, abs=1e-13)


def test_the_test_of_one_mean_is_pearsons(tmp_path):
    log = log_of(tmp_path, [[0.3, 0.6], [0.5, 0.6], [0.4, 0.5]])
    expected = 0.0
    for n, s in zip(log.counts.T, log.sums.T, strict=True):
        expected += stats.chi2_contingency(np.array([s, n - s]), correction=False).statistic
    assert one_mean(log).statistic == pytest.approx(expected)
    assert one_mean(log).freedom == 4


def test_false_alarms_are_as_rare_as_they_should_be(tmp_path):
    found = [one_mean(log_of(tmp_path, [[0.3, 0.6]] * 3, rows=40, seed=seed)).pvalue for seed in range(60)]
    assert stats.kstest(found, "uniform").pvalue > 1e-4


def test_one_mean_for_all_if_it_fits(tmp_path):
    log = log_of(tmp_path, [[0.3, 0.6]] * 3)
    game = game_of_log(log)
    assert not game.own
    assert game.fit.fits
    assert any("fits" in note for note in game.notes)
    made = game.file.game
    assert made.traits is None
    assert made.means.tolist() == (log.sums.sum(axis=0) / log.counts.sum(axis=0)).tolist()
    assert made.agent_names == ("Shop 1", "Shop 2", "Shop 3")
    assert made.horizon == 400
    assert made.sharing == Sharing.everything(3, 2)


def test_means_of_their_own_if_one_does_not_fit(tmp_path):
    log = log_of(tmp_path, [[0.3, 0.6], [0.7, 0.4]], empty={(1, 1)})
    game = game_of_log(log)
    assert game.own
    assert any("does not fit" in note for note in game.notes)
    assert any("1 of 4 pairs of agent and arm have no rows" in note for note in game.notes)
    assert any("see arm 1 differently" in note for note in game.notes)
    made = game.file.game
    assert made.sharing == Sharing.lists([[0, 1], [0]], arms=2)
    means = [[arm.mean for arm in made.arms_of(agent)] for agent in range(2)]
    exact = log.sums / np.maximum(log.counts, 1)
    assert means == [exact[0].tolist(), [exact[1, 0], exact[0, 1]]]  # nobody else has rows of arm 2
    assert not game_of_log(log, means="one").own
    with pytest.raises(InputError, match="means is 'mine'"):
        game_of_log(log, means="mine")


def test_horizons_and_shares(tmp_path):
    log = log_of(tmp_path, [[0.3, 0.6], [0.3, 0.6]], empty={(1, 1)})
    own = game_of_log(log, horizon="own").file.game
    assert [own.horizon_of(agent) for agent in range(2)] == [400, 200]
    given = game_of_log(log, horizon=50, shares=[[1], []]).file.game
    assert given.horizon == 50
    assert given.sharing == Sharing.lists([[1], []], arms=2)


@pytest.mark.parametrize("means", ["one", "own"])
def test_the_text_of_the_game_file_says_the_same(tmp_path, means):
    rng = np.random.default_rng(3)
    log = log_of(tmp_path, [[30, 60], [50, 40]], rows=30, draw=lambda mean: round(rng.normal(mean, 9), 3))
    game = game_of_log(log, means=means)
    text = game.toml('a "log"\n\x7f')
    assert tomllib.loads(text) == game.document
    (tmp_path / "game.toml").write_text(text, encoding="utf-8")
    read = read_game(tmp_path / "game.toml")
    assert (read.game, read.game.unit) == (game.file.game, log.unit)
    assert play(read.game, BalancedGLR(), runs=2, settlement="none").overall_regret.mean > 0


def test_uniform_logging(tmp_path):
    assert uniform_logging(log_of(tmp_path, [[0.3, 0.6]] * 2)).statistic == 0
    skewed = uniform_logging(log_of(tmp_path, [[0.3, 0.6]] * 2, empty={(0, 1)}))
    assert skewed.statistic == pytest.approx(stats.chisquare([200, 0]).statistic)
    assert not skewed.fits

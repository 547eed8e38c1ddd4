"""One learner: blocks lose what exact play loses, and the parts of Thompson's blocks are right."""

import math

import numpy as np
import pytest
from bench.centralised import NODES, RULES, _chances, log_beta_tail, mean_and_error, measure, tasks
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from partage import Beta, Constant, Game, Sharing, bernoulli, play
from partage.studies import centralised, frontier


@settings(deadline=None)
@given(st.floats(0.5, 2000), st.floats(0.5, 2000), st.floats(0.01, 0.99))
def test_the_tail_of_a_beta_variable(a, b, x):
    expected = stats.beta(a, b).logsf(x)
    if expected > -600:
        assert log_beta_tail(a, b, x) == pytest.approx(expected, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("counts", [(3000, 200, 40), (10**5, 350, 90), (10**7, 500, 0)])
def test_how_likely_another_arm_is_drawn_higher(counts):
    counts = np.array(counts)
    sums = np.round(counts * np.array([0.9, 0.8, 0.5]))
    found = np.zeros(3)
    total = _chances(0, counts, sums, np.zeros((3, NODES)), np.zeros(3), np.full(3, -1.0), found)
    leader, *others = (stats.beta(1 + won, 1 + n - won) for n, won in zip(counts, sums, strict=True))
    for arm, other in enumerate(others, 1):
        x = np.linspace(leader.mean() - 9 * leader.std(), leader.mean() + 9 * leader.std(), 4001)
        exact = integrate.simpson(leader.pdf(x) * other.sf(x), x=x)
        assert found[arm] == pytest.approx(exact, rel=2e-3)
    assert total == pytest.approx(found.sum())


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "arms", [bernoulli([0.9, 0.6, 0.3]), (Beta(3, 1), Beta(1, 1), Constant(0.2))], ids=["0 or 1", "other rewards"]
)
def test_blocks_lose_what_exact_play_loses(rule, arms):
    pulls, runs = 20_000, 100
    ours, error = mean_and_error(measure(rule, arms, [pulls], runs, seed=1)[:, 0])
    game = Game(arms, Sharing.nothing(1, 3), pulls)
    exact = play(game, RULES[rule], runs=runs, seed=1, settlement="none", baseline=False).overall_regret
    assert abs(ours - exact.mean) < 4 * math.hypot(error, exact.stderr)


@pytest.mark.parametrize("rule", RULES)
def test_every_pull_is_counted_and_a_run_goes_on_from_each_checkpoint(rule):
    """All arms but one pay nothing, so the regret counts the pulls of the others."""
    few, many = measure(rule, [*bernoulli([0.5]), *[Constant(0.0)] * 3], [10**4, 10**6], 5).T
    assert (few <= many).all()
    assert (few >= 1.5).all()  # each of the three was pulled
    again = measure(rule, [*bernoulli([0.5]), *[Constant(0.0)] * 3], [10**4], 5)[:, 0]
    assert (again == few).all()


def test_the_file_has_a_row_for_every_game_of_the_study():
    for place, setting in enumerate(frontier.GAMES, 1):
        found = centralised.on(setting.game)
        assert {each.rule for each in found} >= {"IMED", "KL-UCB"}
        for each in found:
            assert each.runs >= 1000
            assert each.regret.stderr < (0.02 if frontier.limit(place) else 0.05) * each.regret.mean
    assert {pulls for _, pulls in tasks().values() for pulls in pulls} == {
        setting.game.agents * setting.game.horizon for setting in frontier.GAMES
    }


def test_other_arms_or_pulls_have_no_rows():
    assert centralised.on(Game(bernoulli([0.9, 0.1]), Sharing.round_robin(10, 2), 10**6)) == []
    assert centralised.on(Game(frontier.ARMS, Sharing.round_robin(10, 10), 999)) == []


def test_the_file_can_be_measured_again():
    """A few runs of the file's own figures, within four standard errors."""
    for name, pulls in (("paper's arms", 10**7), ("five stars", 10**8)):
        setting = next(
            each
            for each in frontier.GAMES
            if each.game.arms == frontier.ARMS_OF[name] and each.game.agents * each.game.horizon == pulls
        )
        known = next(each for each in centralised.on(setting.game) if each.rule == "IMED")
        ours, error = mean_and_error(measure("IMED", setting.game.arms, [pulls], 100, seed=7)[:, 0])
        assert abs(ours - known.regret.mean) < 4 * math.hypot(error, known.regret.stderr)

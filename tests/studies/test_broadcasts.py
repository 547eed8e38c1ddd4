"""Regret against broadcasts: what costs least at a price."""

import math
from dataclasses import replace

import numpy as np
import pytest

import partage
from partage.report.csv_and_parquet import table
from partage.report.draw import draw
from partage.report.style import house_style
from partage.simulate.parallel import workers
from partage.studies import FAILS, HOLDS, broadcasts, play_studies
from partage.studies.study import Point


def _cut(game):
    return partage.Game(game.arms, game.sharing, 1000)


@pytest.fixture(scope="module")
def played():
    study = broadcasts.STUDY
    lines = [replace(line, game=lambda at, line=line: _cut(line.game(at))) for line in study.lines]
    with workers(jobs=2) as spread:
        return play_studies([replace(study, lines=lines)], spread, runs=6)[0]


def test_a_line_for_each_rule_and_value_and_the_learners_alone():
    rules = [line.rule for line in broadcasts.STUDY.lines]
    assert {partage.SharedIMED(), partage.BalancedGLR(), partage.BalancedGLR(evidence="betting")} <= set(rules)
    assert {partage.BalancedETC(), partage.BalancedETC(math.inf), partage.KLETC()} <= set(rules)
    assert {partage.Thompson(), partage.IMED(), partage.KLUCB()} <= set(rules)


def test_a_cost_is_regret_plus_price_times_broadcasts(played):
    for place in broadcasts.PLACES.values():
        line = broadcasts.SHARED.line(4)
        result = played.result(place, line)
        cost = broadcasts.cost(played, place, line, 0.25)
        assert cost.mean == pytest.approx(result.overall_regret.mean + 0.25 * result.broadcasts.mean)


def test_what_costs_least_costs_no_more_than_anything_else(played):
    for place in broadcasts.PLACES.values():
        for price in broadcasts.PRICES:
            least = broadcasts.best(played, place, price).cost.mean
            lines = [line.name for line in broadcasts.STUDY.lines if not line.name.endswith("alone")]
            assert least == min(
                broadcasts.alone(played, place).mean,
                *(broadcasts.cost(played, place, line, price).mean for line in lines),
            )


def test_above_the_highest_price_it_is_best_to_learn_alone(played):
    for place in broadcasts.PLACES.values():
        price = broadcasts.highest_price(played, place)
        assert broadcasts.best(played, place, 1.01 * price).line == broadcasts.ALONE
        if price > 0:
            assert broadcasts.best(played, place, 0.99 * price).line != broadcasts.ALONE


def test_all_agents_alone_lose_what_one_does_times_their_number(played):
    for place in broadcasts.PLACES.values():
        means = [np.mean(played.by_run("overall_regret", place, f"{name} alone")) for name in ("IMED", "Thompson")]
        assert broadcasts.alone(played, place).mean <= broadcasts.game(place).agents * min(means)


def test_it_says_and_draws_what_it_found(played):
    study = broadcasts.STUDY
    assert study.title(played)
    assert study.text(played).endswith(".")
    for shown in study.tables(played):
        assert all(len(row) in (1, len(shown.headings)) for row in shown.rows)
    assert len(table(played))
    for narrow in (False, True):
        with house_style("test"):
            figure = draw(played, narrow)
            figure.canvas.draw()
        assert len(figure.axes) == len(broadcasts.GAMES)
        assert len(figure.legends) == 1
        for axes in figure.axes:
            assert len(axes.containers) == len(broadcasts.FAMILIES)


def test_a_path_has_a_point_for_each_value_in_order(played):
    (first, *_) = broadcasts.STUDY.panels
    path = first.paths(played)[0]
    assert [point.label for point in path.points] == ["1", "1.5", "2", "3", "4", "6", "10", "20"]
    result = played.result(1, "Shared-IMED, lead 2")
    assert path.points[2] == Point(result.broadcasts, result.overall_regret, "2")


@pytest.mark.parametrize("claim", broadcasts.STUDY.claims, ids=lambda claim: claim.says)
def test_every_claim_can_hold_and_fail(claim):
    estimates = [partage.Estimate(-1e6, 1.0), partage.Estimate(1e6, 1.0)]
    assert {claim.verdict(each) for each in estimates} == {HOLDS, FAILS}

"""Beyond the paper: the limit, rules side by side, and how few agents are enough."""

import math
from dataclasses import replace

import numpy as np
import pytest

import partage
from partage.board import Board, Record
from partage.report.csv_and_parquet import table
from partage.report.draw import draw
from partage.settle.core import rates_of
from partage.simulate.parallel import workers
from partage.simulate.result import Estimate
from partage.studies import (
    FAILS,
    HOLDS,
    STUDIES,
    find,
    frontier,
    frontier_bars,
    frontier_games,
    frontier_viability,
    play_studies,
)
from partage.studies.catalogue import BEYOND

# --- the limit ------------------------------------------------------------------------------------------------


def test_the_limit_is_that_of_all_pulls_of_the_group():
    places = frontier.PLACES
    assert round(frontier.limit(places["balanced, M = 100"])) == 146  # 10^8 pulls
    assert round(frontier.limit(places["balanced, M = 10"])) == 127  # 10^7 pulls
    assert frontier.limit(places["balanced, M = 10"]) == frontier.limit(places["balanced, M = 100, T = 1e5"])
    assert round(frontier.limit(places["Beta arms, M = 100"])) == 53  # with K_inf
    assert frontier.limit(places["random, M = 100"]) is None


def test_both_bars_are_in_every_table_and_come_first(played):
    study = played[0]
    goals, rules = study.study.tables(study)
    assert list(goals.headings[1:3]) == ["best alone, all agents", "one learner (M·T pulls)"]
    names = [row[0] for row in rules.rows]
    for setting in frontier.GAMES:
        (start,) = (at for at, name in enumerate(names) if name.split(" (limit")[0] == setting.name)
        below = names[start + 1 :]
        assert below[0] == "centralised IMED (M·T pulls)"
        bars = below.index("Thompson alone")
        assert below[bars : bars + 5] == [*frontier_games.STRONG, "2-UCB alone", "Shared-IMED"]
    assert [each.label for each in frontier.dots(study)][:2] == ["best alone", "2-UCB alone"]


def test_the_best_alone_is_the_one_that_loses_least(played):
    study = played[0]
    for place in frontier.PLACES.values():
        means = {name: study.result(place, name).overall_regret.mean for name in frontier_games.STRONG}
        means["2-UCB alone"] = study.alone(place, frontier_games.ETC).overall_regret.mean
        best = frontier_bars.best_alone(study, place)
        assert (best.name, best.regret.mean) == min(means.items(), key=lambda item: item[1])
        assert best.times(7).regret.mean == pytest.approx(7 * min(means.values()))


def test_games_with_the_same_arms_and_horizon_share_what_is_played_alone():
    counting = []
    alone = [line for line in frontier.STUDY.lines if line.name == "IMED alone"]
    play = replace(frontier.STUDY, lines=[short(line) for line in alone])

    def spread(chunks):
        counting.extend(chunks)
        with workers(jobs=1) as inner:
            yield from inner(chunks)

    play_studies([play], spread, runs=1)
    games = [chunk.task.game for chunk in counting if chunk.task.rule == partage.IMED()]
    assert len(games) == len(frontier.ARMS_OF)  # all cut to the same horizon


# --- the data -------------------------------------------------------------------------------------------------


def test_the_study_is_played_only_when_named():
    assert "frontier" not in STUDIES
    assert not {study.name for study in find([])} & {study.name for study in BEYOND["frontier"]}
    assert [study.name for study in find(["frontier"])] == ["frontier", "frontier-viability"]
    assert [study.name for study in find(["broadcasts"])] == ["broadcasts"]


def test_every_game_has_a_sharer_for_each_arm_and_no_protocol_stays_small():
    for setting in frontier.GAMES:
        assert setting.game.sharing.sharers().all()
    for line in frontier.STUDY.lines:
        for at in frontier.STUDY.places(line):
            if isinstance(line.rule, partage.NoProtocol):
                assert line.game(at).agents <= 100
                assert line.game(at).horizon <= 10**5


def test_rules_settlements_and_games_are_those_asked_for():
    rules = [rule.rule for rule in frontier.RULES]
    everywhere = {rule.rule.name for rule in frontier.RULES if rule.everywhere}
    assert everywhere == {"shared-imed", "full-sharing", "balanced-etc", "kl-etc", "balanced-glr"}
    for rule in (
        partage.BalancedETC(math.inf),
        partage.SharedIMED(own=30),
        partage.BalancedGLR(evidence="betting"),
        *(learner("both") for learner in (partage.IMED, partage.Thompson, partage.KLUCB)),
    ):
        assert rule in rules
    settled = [line for line in frontier_viability.STUDY.lines if line.name not in frontier_games.STRONG]
    assert {line.settlement for line in settled} == {"paper", "equal-share", "equal-share-expected"}
    goals = {(case.settlement, case.rule.name, case.at) for case in frontier_viability.GOALS}
    assert goals == {("equal-share-expected", "shared-imed", 2), ("equal-share", "balanced-glr", 3)}
    assert (frontier_viability.STUDY.values[0], frontier_viability.STUDY.values[-1]) == (2, 10_000)


# --- at a tiny size -------------------------------------------------------------------------------------------


def short(line, **changes):
    """The line on the same games, cut to a thousand steps."""
    return replace(line, game=lambda at: _cut(line.game(at)), **changes)


def _cut(game):
    return partage.Game(game.arms, game.sharing, 1000)


@pytest.fixture(scope="module")
def played():
    rules = replace(frontier.STUDY, lines=[short(line) for line in frontier.STUDY.lines])
    viability = frontier_viability.STUDY
    few = replace(
        viability,
        values=(2, 3, 4, 5, 7, 10, 12),
        lines=[short(line, places=None, most_runs=lambda at: 3) for line in viability.lines],
    )
    with workers(jobs=2) as spread:
        return play_studies([rules, few], spread, runs=4)


def test_it_plays_and_says_what_it_found(played):
    for each in played:
        assert each.study.title(each)
        assert each.study.text(each).endswith(".")
        for shown in each.study.tables(each):
            assert all(len(row) in (1, len(shown.headings)) for row in shown.rows)
        draw(each).canvas.draw()
        assert len(table(each))


def test_a_line_is_played_where_and_as_often_as_it_says(played):
    rules, viability = played
    assert {at for name, at in rules.results if name == frontier.NO_PROTOCOL} == {7, 8, 9, 10, 12, 13}
    assert {at for name, at in rules.results if name == frontier_games.OWN} == {2, 3, 4, 8, 12, 13}
    assert {at for name, at in rules.results if name in frontier_games.BOTH} == {12, 13}
    assert rules.result(1, frontier.GLR).runs == 4
    assert viability.result(2).runs == 3
    assert math.isnan(rules.along("overall_regret", frontier.NO_PROTOCOL)[0].mean)
    assert set(table(viability)["runs"]) == {3}


def test_a_line_off_the_axis_is_refused():
    line = replace(frontier.STUDY.lines[-1], places=(99,))
    with pytest.raises(partage.InputError, match="plays the line 'KL-UCB alone' at \\(99,\\)"):
        replace(frontier.STUDY, lines=[line])


def test_everyone_pays_a_ceiling(played):
    """With the fee of the study the charge is the ceiling, and without one the profit is the shortfall."""
    game = _cut(frontier_viability.STUDY.lines[1].game(3))
    free, most = (
        partage.play(game, partage.BalancedETC(), runs=4, settlement="equal-share-expected", fee=fee)
        for fee in (0, frontier_viability.NO_LIMIT)
    )
    assert free.controller_profit is not None
    assert most.controller_profit is not None
    shortfall = np.minimum(0, most.folded.figures[:, 6])
    assert free.folded.figures[:, 6] == pytest.approx(shortfall, abs=1e-6)


def test_charges_are_limited_by_the_learner_that_a_line_names(played):
    viability = played[1]
    for case in frontier_viability.CASES:
        assert viability.result(case.at, case.name).settlement.alone == case.alone
    assert {case.alone for case in frontier_viability.CASES} == {"best", "two-ucb"}


@pytest.mark.parametrize("case", frontier_viability.GOALS, ids=lambda case: case.short)
def test_at_break_even_everyone_pays_the_same_share_of_the_bill(played, case):
    viability = played[1]
    result = viability.result(case.at, case.name)
    gaps, settlement = result.game.means.max() - result.game.means, result.settlement
    net = []
    for run in range(result.runs):
        tally = partage.play_run(result.game, case.rule, seed=viability.seed, run=run)
        board = Board(result.game.horizon, range(10), [True] * 10)
        board.record = Record(tally.broadcasts.tolist(), tally.sums.tolist())
        board.active = tally.active.tolist()
        pulls = tally.explore + tally.commit
        compensation = pulls @ np.array(rates_of(settlement, board))
        net.append(pulls @ gaps - compensation + compensation.sum() / case.at)
    found = frontier_viability.worst(viability, case.at, case.name)
    assert found.mean == pytest.approx(np.mean(net, axis=0).max())


def test_few_agents_are_compared_with_both_bars(played):
    viability = played[1]
    learners = {name: viability.result(2, name).overall_regret.mean for name in frontier_games.STRONG}
    learners["2-UCB alone"] = frontier_viability.two_ucb(viability).mean
    name, best = frontier_viability.best_alone(viability)
    assert (name, best.mean) == min(learners.items(), key=lambda item: item[1])
    (goals,) = viability.study.tables(viability)
    assert "nobody above the best alone" in goals.headings[3]
    assert "nobody above 2-UCB" in goals.headings[4]


# --- verdicts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "claim",
    [*frontier.STUDY.claims, *frontier_viability.STUDY.claims],
    ids=lambda claim: claim.says,
)
def test_every_claim_can_hold_and_fail(claim):
    low = Estimate(-1e6, 1.0)
    high = Estimate(1e6, 1.0)
    verdicts = {claim.verdict(low), claim.verdict(high)}
    assert verdicts == {HOLDS, FAILS}


def test_break_even_is_the_first_place_from_which_all_is_well():
    places = [2, 3, 4, 5]
    fine = [Estimate(0.5, 0.01)] * 4

    def found(*means, rational=fine):
        return frontier_viability.break_even(places, [Estimate(mean, 1.0) for mean in means], rational)

    assert found(-9, -1, 3, 9) == 4
    assert found(3, 3, 3, 3) == 2
    assert found(-9, 1, 3, 9) == 4  # 1 is within two standard errors of 0
    assert found(3, -3, 3, 9) == 4  # and not again below later on
    assert found(-9, -9, -9, -9) is None
    unfair = [Estimate(1.5, 0.01), Estimate(1.5, 0.01), Estimate(0.99, 0.01), Estimate(0.9, 0.01)]
    assert found(9, 9, 9, 9, rational=unfair) == 5


@pytest.mark.parametrize(
    ("mean", "stderr", "said"), [(0.5, 0.1, "yes"), (1.5, 0.1, "no"), (0.9, 0.1, "?"), (0.5, None, "?")]
)
def test_rationality_in_a_word(mean, stderr, said):
    assert frontier_bars.held(Estimate(mean, stderr)) == said

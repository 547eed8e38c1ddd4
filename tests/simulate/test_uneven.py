"""Figures of games whose agents differ: regret, settlements and bars are each agent's own."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.strategies import uneven_games

import partage
from partage.arms import Bernoulli, Beta, RandomBernoulli, bernoulli
from partage.board import Board, Record
from partage.engine.reference import PULLS_AT_ONCE
from partage.game import Game
from partage.rules import BalancedETC, BalancedGLR, SharedIMED, TwoUCB, make_rule
from partage.settle import settlement_for
from partage.settle.core import charge_of, settle
from partage.sharing import Sharing
from partage.simulate.bars import lone_games
from partage.simulate.fold import COLUMNS
from partage.simulate.parallel import _elsewhere, workers
from partage.simulate.play import long_reference_play, new_task, play
from partage.studies.cache import task_digest
from partage.studies.runner import play_studies
from partage.studies.study import Line, Study
from partage.traits import Change, Delay, Traits

PLAIN = Game(bernoulli([0.9, 0.5, 0.3]), Sharing.lists([[0, 1], [1, 2], [0, 2], []], arms=3), horizon=300)
DIFFERENT = replace(
    PLAIN,
    traits=[
        Traits(pace=2, horizon=400, delay=3),
        Traits(offset=-0.2, delay=Delay("exponential", 4, "successes")),
        Traits(means=[0.1, 0.8, 0.4], pace=0.5, horizon=150),
        Traits(rewards=[Beta(2, 2), Bernoulli(0.7), Bernoulli(0.9)], joins=20, leaves=200),
    ],
    claim_steps=5,
)
CHANGING = replace(
    PLAIN,
    traits=[Traits(delay=2), Traits(offset=0.05), Traits(), Traits(pace=3)],
    changes=[Change(100, 0, Bernoulli(0.2)), Change(200, 2, Bernoulli(0.6))],
)
SETTLEMENTS = {
    "none": {},
    "paper": {},
    "equal-share": {"fee": 0.1},
    "equal-share-expected": {"alone": "imed", "underwriting": 2.0},
    "pool": {"prepaid": 3.0, "fee": 0.05},
    "dues": {"prepaid": 2.0},
}


def rule_for(settlement: str) -> partage.Rule:
    return BalancedETC() if settlement == "paper" else BalancedGLR()


def columns(result: partage.Result) -> dict[str, np.ndarray]:
    return {name: result.folded.figures[:, place] for place, name in enumerate(COLUMNS)}


@pytest.mark.parametrize("price", [0.0, 0.01])
@pytest.mark.parametrize("settlement", SETTLEMENTS)
def test_a_game_in_which_nothing_lapses_has_the_figures_of_the_papers(settlement, price):
    terms = {"runs": 4, "settlement": settlement, "broadcast_price": price, "baseline": False}
    rule = rule_for(settlement)
    plain = partage.play(PLAIN, rule, **terms, **SETTLEMENTS[settlement])
    same = partage.play(replace(PLAIN, claim_steps=1000), rule, **terms, **SETTLEMENTS[settlement])
    expected, found = columns(plain), columns(same)
    assert np.array_equal(found.pop("out"), np.zeros(4))
    assert np.isfinite(found.pop("compared")).all()
    assert all(np.isnan(expected.pop(name)).all() for name in ("out", "compared"))
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=1e-9, err_msg=name)
    for name in ("broadcasts", "eliminated_step", "eliminated_agent"):
        assert np.array_equal(getattr(same.folded, name), getattr(plain.folded, name))
    for name in ("regret", "regret_squares", "incentive", "incentive_squares"):
        np.testing.assert_allclose(getattr(same.folded, name), getattr(plain.folded, name), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("game", [DIFFERENT, CHANGING], ids=["different", "changing"])
@pytest.mark.parametrize("settlement", SETTLEMENTS)
def test_figures_are_those_of_the_tally(game, settlement):
    """Add up one run by hand: every agent's pulls at its own gaps, and the settlement of what was told."""
    rule, terms = rule_for(settlement), SETTLEMENTS[settlement]
    found = partage.play(game, rule, runs=1, seed=3, settlement=settlement, baseline=False, **terms)
    tally = partage.play_run(game, rule, seed=3)
    explored = commits = 0.0
    regrets = []
    for agent in range(game.agents):
        lost = [0.0, 0.0]
        for phase in range(len(game.phases)):
            for place, pulls in enumerate((tally.explore_by_phase, tally.commit_by_phase)):
                lost[place] += float(pulls[phase, agent] @ game.gaps_of(agent, phase))
        explored, commits = explored + lost[0], commits + lost[1]
        regrets.append(sum(lost))
        assert found.individual_regret(agent).mean == pytest.approx(regrets[-1])
    assert found.overall_regret.mean == pytest.approx(sum(regrets))
    assert found.explore_regret.mean == pytest.approx(explored)
    assert found.commit_regret.mean == pytest.approx(commits)
    assert found.max_individual_regret.mean == pytest.approx(max(regrets))
    assert columns(found)["out"][0] == tally.explore.sum() - tally.told.sum()
    if settlement == "none":
        return

    board = Board(game.longest, range(3), [True] * 3)
    board.record = Record(tally.broadcasts.tolist(), tally.sums.tolist())
    board.active = tally.active.tolist()
    settled = settlement_for(settlement, rule, **terms)
    paid_for = tally.told + tally.commit if settled.pays_commits else tally.told
    amounts = settle(settled, board, paid_for.tolist())
    ceilings = amounts.ceilings or [None] * game.agents
    for agent in range(game.agents):
        compensation = float(paid_for[agent] @ np.array(amounts.rates))
        if settlement == "dues":
            compensation = min(compensation, 2.0)
        else:
            compensation *= amounts.scale
        incentive = regrets[agent] - compensation + charge_of(amounts.common_charge, ceilings[agent])
        assert found.incentive_regret(agent).mean == pytest.approx(incentive)
    if settlement != "paper":
        assert found.viable == amounts.viable
        assert found.finished == amounts.finished
    if settlement == "equal-share":
        assert found.uncovered.mean == pytest.approx(amounts.uncovered)


@pytest.mark.extra
@settings(max_examples=40)
@given(
    game=uneven_games().filter(lambda game: game.uneven),
    settlement=st.sampled_from([*SETTLEMENTS]),
    seed=st.integers(0, 2**32),
)
def test_what_agents_pay_and_receive_is_the_controllers_profit(game, settlement, seed):
    terms = {"settlement": settlement, "baseline": False, **SETTLEMENTS[settlement]}
    found = partage.play(game, rule_for(settlement), runs=2, seed=seed, **terms)
    regret, incentive = found.folded.regret, found.folded.incentive
    assert (regret >= 0).all()
    assert columns(found)["out"].min() >= 0
    assert regret.sum() == pytest.approx(columns(found)["overall_regret"].sum())
    if settlement == "none":
        assert np.array_equal(regret, incentive)
    else:
        profit = columns(found)["controller_profit"].sum()
        assert incentive.sum() == pytest.approx(regret.sum() + profit, abs=1e-9)
    if settlement in ("pool", "dues"):
        prepaid = SETTLEMENTS[settlement]["prepaid"]
        assert (incentive <= regret + 2 * prepaid + 1e-9).all()
        assert profit >= -1e-9
    json.dumps(found.as_dict(), allow_nan=False)


def test_an_agent_that_pulls_nothing_loses_nothing_and_pays_no_equal_share():
    traits = [Traits(), Traits(joins=5, leaves=6, pace=0.5), Traits(), Traits()]
    found = partage.play(
        replace(PLAIN, traits=traits), BalancedGLR(), runs=2, settlement="equal-share", baseline=False
    )
    assert found.individual_regret(1).mean == 0
    assert found.incentive_regret(1).mean == 0


def test_an_arm_whose_sharer_never_joins_is_not_settled():
    game = Game(
        bernoulli([0.9, 0.5]),
        Sharing.lists([[0], [1]], arms=2),
        horizon=40,
        traits=[Traits(), Traits(joins=1000, leaves=1001, pace=0.5)],
    )
    found = partage.play(game, BalancedETC(), runs=2, settlement="paper", baseline=False)
    assert found.controller_profit.mean == 0


def test_reports_that_were_never_told_are_counted():
    game = Game(bernoulli([0.6, 0.5]), Sharing.everything(3, 2), horizon=60, traits=[Traits(delay=59.5)] * 3)
    found = partage.play(game, BalancedGLR(), runs=3, baseline=False)
    assert columns(found)["out"].tolist() == [3, 3, 3]


def test_random_arms_with_an_offset():
    game = Game(
        [RandomBernoulli(0.1, 0.5), RandomBernoulli(0.1, 0.5)],
        Sharing.everything(2, 2),
        horizon=100,
        traits=[Traits(offset=0.4), Traits(means=[0.0, 1.0])],
    )
    found = partage.play(game, TwoUCB(), runs=6, baseline=False)
    assert 0 < found.individual_regret(0).mean <= 40  # no gap is above 0.4
    pulled = found.individual_regret(1).mean * 6  # its gap is 1, so its regret counts pulls
    assert pulled == pytest.approx(round(pulled))
    assert pulled >= 6


def test_a_chunk_in_another_process_keeps_the_traits():
    task = new_task(DIFFERENT, SharedIMED(), "none", 5)
    here = partage.play(DIFFERENT, SharedIMED(), runs=2, seed=5, settlement="none", baseline=False)
    there = _elsewhere(0, task, 0, 2).folded
    assert np.array_equal(there.regret, here.folded.regret)


def test_the_digest_of_a_task_depends_on_everything_that_is_uneven():
    games = [
        PLAIN,
        DIFFERENT,
        CHANGING,
        replace(PLAIN, claim_steps=5),
        replace(PLAIN, claim_steps=6),
        replace(PLAIN, changes=[Change(9, 0, Bernoulli(0.1))]),
        replace(PLAIN, changes=[Change(9, 1, Bernoulli(0.1))]),
        *(
            replace(PLAIN, traits=[one, *[Traits()] * 3])
            for one in (Traits(pace=2), Traits(delay=2), Traits(delay=Delay("uniform", 2)), Traits(offset=0.05))
        ),
    ]
    assert len({task_digest(new_task(game, BalancedETC(), "none", 0)) for game in games}) == len(games)


# --- bars -----------------------------------------------------------------------------------------------------

CLINICS = Game(
    bernoulli([0.7, 0.4]),
    Sharing.everything(5, 2),
    horizon=200,
    traits=[
        Traits(),
        Traits(pace=2, delay=3),
        Traits(horizon=100),
        Traits(offset=0.1, horizon=100),
        Traits(joins=51, leaves=151),
    ],
)


@pytest.fixture(scope="module")
def clinics() -> partage.Result:
    return partage.play(CLINICS, BalancedGLR(), runs=30, seed=2, settlement="dues", prepaid=1.0)


def test_a_bar_is_played_for_each_kind_of_agent(clinics):
    lone = lone_games(CLINICS)
    assert lone.class_of.tolist() == [0, 0, 1, 2, 1]  # neither pace nor delay matters alone; the last pulls 100 times
    assert [game.horizon for game in lone.games] == [200, 100, 100]
    assert [game.means.tolist() for game in lone.games] == [[0.7, 0.4], [0.7, 0.4], pytest.approx([0.8, 0.5])]
    for agent in range(5):
        for learner in ("two-ucb", "kl-ucb", "imed", "thompson"):
            alone = partage.play(CLINICS.alone(agent), make_rule(learner), runs=30, seed=2, baseline=False)
            assert clinics.bar_of(learner, agent) == alone.overall_regret
        assert clinics.bar_of("best", agent) == min(clinics.bar_of(name, agent) for name in clinics.alone_regret)


def test_the_bar_of_all_is_the_mean_over_agents(clinics):
    bars = [clinics.bar_of("imed", agent).mean for agent in range(5)]
    assert clinics.alone_regret["imed"].mean == pytest.approx(sum(bars) / 5)
    assert clinics.alone_regret["imed"].stderr > 0
    assert clinics.bar == clinics.alone_regret[clinics.best_alone]
    assert clinics.best_alone_at_least is None


def test_an_agent_is_compared_with_its_own_bar():
    """Dues of 3 are little for agents that would lose 40 alone, and much for one that pulls ten times."""
    game = replace(CLINICS, horizon=2000, traits=[Traits(), Traits(), Traits(), Traits(), Traits(horizon=10)])
    found = partage.play(game, BalancedGLR(), runs=10, settlement="dues", prepaid=3.0, alone="two-ucb")
    above = [found.incentive_regret(agent).mean - found.bar_of("two-ucb", agent).mean for agent in range(5)]
    assert max(above[:4]) < 0 < above[4]
    assert found.worst_agent == 4
    assert found.individually_rational is False
    assert found.incentive_regret(4).mean < found.bar.mean  # the mean bar would have said yes
    assert partage.play(replace(game, traits=None), BalancedGLR(), runs=10, settlement="none").individually_rational


def test_random_arms_are_shifted_for_an_agent_alone():
    game = Game(
        [RandomBernoulli(0.1, 0.5), Bernoulli(0.3)],
        Sharing.everything(2, 2),
        horizon=100,
        traits=[Traits(offset=0.4), Traits(offset=-0.1)],
    )
    assert game.alone(0).arms == (RandomBernoulli(0.5, 0.9), Bernoulli(0.7))
    assert game.alone(1).arms == (RandomBernoulli(0.0, 0.4), Bernoulli(0.3 - 0.1))


def test_no_learner_alone_is_played_where_arms_change():
    for baseline in (None, True):
        found = partage.play(CHANGING, BalancedGLR(), runs=2, baseline=baseline)
        assert found.alone_regret == {}
        assert found.individually_rational is None
        assert found.best_alone_at_least is None


def test_a_study_compares_agents_with_their_own_bars():
    line = Line("glr", BalancedGLR(), lambda at: CLINICS, "dues", prepaid=lambda at: 1.0, alone="two-ucb")
    study = Study("clinics", "Who gains?", [1], [line], "all", [], title=lambda played: "", text=lambda played: "")
    with workers("threads", 1) as spread:
        (played,) = play_studies([study], spread, runs=30, seed=2)
    found = played.result(1, "glr")
    alone = partage.play(CLINICS.alone(3), TwoUCB(), runs=30, seed=2, baseline=False)
    assert found.bar_of("two-ucb", 3) == alone.overall_regret
    assert found.individually_rational is not None


# --- tables and notices ---------------------------------------------------------------------------------------


def test_the_frame_by_agent_has_pace_horizon_and_bar(clinics):
    frame = clinics.frame("agent")
    assert frame["pace"].to_list() == [1, 2, 1, 1, 1]
    assert frame["horizon"].to_list() == [200, 200, 100, 100, 200]
    assert frame["bar"].to_list() == [clinics.bar_of("best", agent).mean for agent in range(5)]
    unplayed = partage.play(CLINICS, BalancedGLR(), runs=2, baseline=False).frame("agent")
    assert unplayed["bar"].to_list() == [None] * 5
    assert unplayed["bar"].dtype == frame["bar"].dtype
    assert "pace" not in partage.play(PLAIN, BalancedGLR(), runs=2, baseline=False).frame("agent").columns


def test_the_figure_draws_own_bars(clinics):
    labels = [text.get_text() for text in clinics.plot().axes[1].get_legend().get_texts()]
    assert labels == ["regret", "after settlement", "2-UCB alone", "best alone"]


def test_a_long_play_by_the_reference_is_announced():
    class Mine(BalancedGLR):
        """The same decisions under another class, so that the reference plays it."""

    assert long_reference_play(CLINICS, Mine(), 10) is None
    notice = long_reference_play(CLINICS, Mine(), 10_000)
    assert "The reference plays this game, pull by pull: 7,000,000 pulls" in notice
    assert long_reference_play(PLAIN, BalancedGLR(), 10**9) is None
    assert long_reference_play(CLINICS, Mine(), "many") is None
    assert long_reference_play(CLINICS, Mine(), float("nan")) is None


def test_a_play_by_the_reference_counts_pulls():
    class Mine(BalancedGLR):
        """The same decisions under another class, so that the reference plays it."""

    seen = []
    game = replace(PLAIN, horizon=2000)
    play(game, Mine(), runs=2, baseline=False, progress=lambda *at: seen.append(at))
    total = 2 * game.agents * game.horizon
    assert seen[-1] == (total, total)
    assert seen == sorted(seen)
    assert (PULLS_AT_ONCE, total) in seen, "before the first run is finished"

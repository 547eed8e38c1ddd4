"""Figures of merit: estimates, tables, JSON, and the known values of the paper's games."""

import json
import math

import numpy as np
import pytest

from partage import (
    IMED,
    BalancedETC,
    BalancedGLR,
    Estimate,
    Game,
    InputError,
    RandomBernoulli,
    SharedIMED,
    Sharing,
    TwoUCB,
    bernoulli,
    play,
    play_run,
)
from partage.settle import ALONE
from partage.simulate.fold import FIGURES

PAPER_ARMS = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]


def small(agents=6, **options):
    game = Game(bernoulli([0.9, 0.5, 0.4]), Sharing.round_robin(agents, arms=3), horizon=3000)
    return play(game, BalancedETC(), **{"runs": 20, "seed": 1} | options)


def test_estimates_are_mean_and_standard_error():
    values = np.array([1.0, 2.0, 4.0])
    by_values, by_sums = Estimate.of(values), Estimate.of_sums(values.sum(), (values**2).sum(), 3)
    assert by_values.mean == pytest.approx(7 / 3)
    assert by_values.stderr == pytest.approx(math.sqrt(((4 / 3) ** 2 + (1 / 3) ** 2 + (5 / 3) ** 2) / 2 / 3))
    assert by_sums == pytest.approx(by_values)
    assert Estimate.of(np.array([5.0])) == (5.0, None)


def test_individual_figures_are_means_over_the_tallies():
    result = small(runs=5)
    tallies = [play_run(result.game, result.rule, seed=1, run=run) for run in range(5)]
    regrets = np.array([(tally.explore + tally.commit) @ result.game.gaps for tally in tallies])
    for agent in range(result.game.agents):
        expected = Estimate.of(regrets[:, agent])
        assert result.individual_regret(agent) == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert result.overall_regret == pytest.approx(Estimate.of(regrets.sum(axis=1)))
    assert result.max_individual_regret == pytest.approx(Estimate.of(regrets.max(axis=1)))


def test_frames():
    result = small()
    runs = result.frame()
    assert runs.columns == ["run", *FIGURES]
    assert runs["overall_regret"].mean() == pytest.approx(result.overall_regret.mean)
    arms = result.frame("arm")
    assert arms.height == 20 * 3
    assert arms.filter(arm="arm 2")["eliminated_step"].null_count() == 20 - 20 * result.arms[1].eliminated
    tally = play_run(result.game, result.rule, seed=1, run=0)
    first = arms.filter(run=0)
    assert first["broadcasts"].to_list() == tally.broadcasts.tolist()
    by = [None if agent < 0 else result.game.agent_name(agent) for agent in tally.eliminated_agent.tolist()]
    assert first["eliminated_agent"].to_list() == by
    agents = result.frame("agent")
    assert agents["regret"].sum() == pytest.approx(result.overall_regret.mean)
    assert agents["incentive_regret"].max() == pytest.approx(result.incentive_regret(result.worst_agent).mean)
    with pytest.raises(InputError, match="run, arm, agent, step"):
        result.frame("day")


def test_json_without_settlement_baseline_or_second_run():
    game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=2, arms=2), horizon=50)
    told = play(game, BalancedETC(math.inf), runs=1, baseline=False).as_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["balance"] == "inf"
    assert told["settlement"] == "none"
    assert told["metrics"]["overall_regret"]["stderr"] is None
    assert told["metrics"]["max_incentive_regret"] is told["metrics"]["controller_profit"] is None
    assert told["two_ucb_regret"] is told["individually_rational"] is None


def test_baseline_is_left_out_of_very_long_plays_unless_asked_for():
    game = Game(bernoulli([0.9, 0.1]), Sharing.round_robin(agents=2, arms=2), horizon=10**9)
    assert play(game, BalancedETC(), runs=2).two_ucb_regret is None
    assert play(game, BalancedETC(), runs=1).two_ucb_regret is not None


def test_individual_rationality_compares_regret_where_nothing_is_settled():
    """Alone, 2-UCB is as rational as itself; a lone explorer with nobody to share with is worse off."""
    # Against the best learner, 2-UCB itself is not rational.
    alone = Game(bernoulli([0.9, 0.5]), Sharing.nothing(agents=1, arms=2), horizon=2000)
    assert play(alone, TwoUCB(), runs=30, alone="two-ucb").individually_rational is True
    assert play(alone, TwoUCB(), runs=30).individually_rational is False
    lone = Game(bernoulli([0.9, 0.5]), Sharing.everything(agents=1, arms=2), horizon=2000)
    result = play(lone, BalancedETC(), runs=30, settlement="none")
    assert result.individual_regret(0).mean > result.two_ucb_regret.mean
    assert result.individually_rational is False


def test_the_bar_is_the_learner_that_was_asked_for():
    game = Game(bernoulli([0.9, 0.5, 0.4]), Sharing.round_robin(agents=6, arms=3), horizon=300)
    results = {alone: play(game, BalancedETC(), runs=20, settlement="none", alone=alone) for alone in (None, *ALONE)}
    best = results["best"]
    assert results[None].as_dict() | {"seconds": 0} == best.as_dict() | {"seconds": 0}
    assert [*best.alone_regret] == ["two-ucb", "kl-ucb", "imed", "thompson"]
    assert best.bar == min(best.alone_regret.values()) == best.alone_regret[best.best_alone]
    assert 0 < best.best_alone_at_least < best.bar.mean < best.two_ucb_regret.mean
    for alone in ("kl-ucb", "imed", "thompson"):
        assert [*results[alone].alone_regret] == ["two-ucb", alone]
        assert results[alone].bar == best.alone_regret[alone]
        assert results[alone].best_alone is None
    rule = play(game.alone(), IMED(), runs=20, settlement="none", baseline=False)
    assert best.alone_regret["imed"] == rule.overall_regret
    paper = play(game, BalancedETC(), runs=20)
    assert (paper.settlement.alone, paper.bar, [*paper.alone_regret]) == (
        "two-ucb",
        paper.two_ucb_regret,
        ["two-ucb"],
    )
    assert paper.best_alone_at_least == best.best_alone_at_least


def test_strong_learners_are_left_out_of_long_plays():
    game = Game(bernoulli([0.9, 0.1]), Sharing.round_robin(agents=2, arms=2), horizon=2 * 10**7)
    result = play(game, BalancedETC(), runs=2, settlement="none")
    assert [*result.alone_regret] == ["two-ucb"]
    assert result.individually_rational is None
    assert result.best_alone_at_least > 0


def test_random_games_are_drawn_anew_in_each_run():
    game = Game([RandomBernoulli(), RandomBernoulli(name="second")], Sharing.random(agents=5, arms=2), horizon=500)
    result = play(game, BalancedETC(), runs=40)
    assert result.folded.figures[:, 0].std() > 0
    assert [arm.mean for arm in result.arms] == [None, None]
    assert result.arms[1].name == "second"
    json.dumps(result.as_dict(), allow_nan=False)
    drawn = game.drawn(np.random.default_rng(0))
    assert game.alone().drawn(np.random.default_rng(0)).means.tolist() == drawn.means.tolist()


def test_a_rule_of_ones_own_is_played_and_folded_like_ours():
    class Mine(BalancedETC):
        """The same decisions under another class, so that the reference plays it."""

    ours, mine = small(runs=3), play(small(runs=1).game, Mine(), runs=3, seed=1)
    assert mine.overall_regret == pytest.approx(ours.overall_regret)
    assert mine.controller_profit == pytest.approx(ours.controller_profit)
    assert (mine.folded.eliminated_step == ours.folded.eliminated_step).all()


def test_progress_counts_up_to_all_runs():
    seen = []
    small(runs=37, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (37, 37)


@pytest.mark.parametrize("option", [{"runs": 0}, {"runs": 2.5}, {"seed": -1}, {"jobs": 0}, {"checkpoints": [3001]}])
def test_bad_options_are_refused(option):
    with pytest.raises(InputError, match="must be"):
        small(**option)


def test_a_picture_is_drawn(tmp_path):
    small().plot().savefig(tmp_path / "result.png")
    assert (tmp_path / "result.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("sharing", "agents", "figure", "known", "stderr"),
    [
        ("round-robin", 10, "overall_regret", 3127, 9),
        ("round-robin", 10, "broadcasts", 28204, 121),
        ("round-robin", 10, "max_individual_regret", 1113, 6),
        ("round-robin", 10, "max_incentive_regret", 1.75, 0.005),
        ("round-robin", 1000, "overall_regret", 3127, 9),
        ("round-robin", 1000, "controller_profit", -4494, 7),
        ("round-robin", 10_000, "controller_profit", 11_270, 16),
        ("scarce-best", 100, "overall_regret", 3312, 15),
        ("scarce-best", 100, "max_individual_regret", 1113, 6),
        ("scarce-best", 1000, "overall_regret", 5142, 120),
    ],
)
def test_known_values_of_the_papers_games(sharing, agents, figure, known, stderr):
    """The paper's games at full size: within four standard errors of the difference."""
    game = Game(bernoulli(PAPER_ARMS), Sharing.pattern(sharing, agents, 10), horizon=10**6)
    measured = getattr(play(game, BalancedETC(), runs=400, seed=0, baseline=False), figure)
    assert abs(measured.mean - known) < 4 * math.hypot(measured.stderr, stderr)


def test_known_value_of_two_ucb_alone():
    game = Game(bernoulli(PAPER_ARMS), Sharing.nothing(1, 10), horizon=10**6)
    measured = play(game, TwoUCB(), runs=400, seed=0, baseline=False).overall_regret
    assert abs(measured.mean - 742.2) < 4 * math.hypot(measured.stderr, 2.5)


def test_a_broadcast_price_counts_as_regret_and_is_compensated():
    game = Game(bernoulli([0.9, 0.6]), Sharing.round_robin(4, 2), horizon=2000)
    settings = {"runs": 20, "seed": 3, "settlement": "equal-share-expected", "baseline": False}
    free = play(game, BalancedGLR(), **settings)
    priced = play(game, BalancedGLR(), broadcast_price=0.5, **settings)
    shared = free.frame()["broadcasts"].to_numpy()
    assert priced.frame()["broadcasts"].to_list() == shared.tolist(), "play is the same"
    regret, dear = (result.frame()["overall_regret"].to_numpy() for result in (free, priced))
    assert dear == pytest.approx(regret + 0.5 * shared)
    for result, price in ((free, 0.0), (priced, 0.5)):
        frame = result.frame()
        # What all agents lose after the settlement is what they lost before, plus the profit.
        incentive = result.folded.incentive.sum() / result.runs
        assert incentive == pytest.approx((regret + price * shared).mean() + frame["controller_profit"].mean())
    assert priced.as_dict()["broadcast_price"] == 0.5
    assert "broadcast_price" not in free.as_dict()


def test_commits_by_own_rewards_are_not_compensated():
    """Only explore pulls are: the controller does not know what such an agent committed to."""
    game = Game(bernoulli([0.9, 0.3]), Sharing.lists([[0], [1], []], 2), horizon=3000)
    result = play(game, SharedIMED(own=5), runs=30, seed=1, settlement="equal-share-expected", baseline=False)
    silent = 2
    charges = result.folded.incentive[silent] - result.folded.regret[silent]
    assert charges >= 0, "the one who never explores receives nothing"


# --- results for people ----------------------------------------------------------------------------------------

SHOPS = Game(
    bernoulli([0.9, 0.6]),
    Sharing.lists([[0], [1], []], 2),
    horizon=2000,
    agent_names=["Harbour", "Mill <North>", "Pier"],
)


def test_a_result_prints_as_a_table_with_names():
    result = play(SHOPS, BalancedETC(), runs=10, settlement="none")
    text, page = str(result), result._repr_html_()
    assert "overall regret" in text
    assert result.overall_regret.cells()[0] in text
    assert text.splitlines()[0] == "balanced-etc with balance 1: 3 agents, 2 arms, horizon 2,000"
    assert result.individually_rational is False
    assert list(result.worse_off) == ["Mill <North>"]
    assert "no, the mean regret of Mill <North> is above the best learner's" in " ".join(text.split())
    assert "Mill &lt;North&gt;" in page
    assert "<North>" not in page
    assert "overall regret" in repr(result)
    assert "\n" not in repr(result)


def test_who_is_worse_off_and_by_how_much():
    result = play(SHOPS, BalancedETC(), runs=10, settlement="none")
    (by,) = result.worse_off.values()
    ours, alone = result.individual_regret("Mill <North>"), result.bar
    assert by.mean == ours.mean - alone.mean
    assert by.stderr == pytest.approx(math.sqrt(ours.stderr**2 + alone.stderr**2))
    assert result.as_dict()["worse_off"] == [{"agent": "Mill <North>", "by": by._asdict()}]
    assert [agent["name"] for agent in result.as_dict()["by_agent"]] == list(SHOPS.agent_names)
    assert play(SHOPS, BalancedETC(), runs=2, baseline=False).worse_off is None
    with pytest.raises(InputError, match="'Quay'; it must be the name of an agent, such as 'Harbour'"):
        result.individual_regret("Quay")


def test_rounding_errors_are_not_shown():
    """Commit regret is overall regret less explore regret; where it is 0, some 1e-13 may be left."""
    assert Estimate(-2e-12, 1e-13).cells(scale=1e4) == ("0", "0")
    assert Estimate(-3e-7, 1e-7).cells(scale=1e4) == ("-0.00000030", "0.00000010")
    assert str(Estimate(-0.001, 0.3)) == "0.00 ± 0.30"
    assert "-0.0" not in str(small(agents=12))


def test_the_regret_over_time_is_recorded_by_default():
    result = small()
    steps = result.frame("step")
    assert steps.columns == ["step", "regret", "regret_stderr"]
    assert steps["step"][-1] == result.game.horizon
    assert steps["regret"][-1] == pytest.approx(result.overall_regret.mean)
    assert steps["regret"].is_sorted()
    assert len(result.plot().axes) == 3
    assert len(small(checkpoints=[]).plot().axes) == 2


def test_pandas_frames_have_the_same_values():
    pytest.importorskip("pandas")
    result = small()
    for by in ("run", "arm", "agent", "step"):
        theirs, ours = result.to_pandas(by), result.frame(by)
        assert list(theirs.columns) == ours.columns
        for name in ours.columns:
            found = zip(theirs[name], theirs[name].isna(), strict=True)
            assert [None if missing else value for value, missing in found] == ours[name].to_list()
    assert str(result.to_pandas("arm")["eliminated_step"].dtype) == "Int64"

"""The paper's settlement against Eq. 5 and 6 written out in plain Python, from the tally alone."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.strategies import games, rewards

from partage import (
    BalancedETC,
    Constant,
    FullSharing,
    Game,
    InputError,
    NoProtocol,
    SettlementError,
    Sharing,
    TwoUCB,
    bernoulli,
    play,
    play_run,
)
from partage.settle import settlement_for
from partage.settle.paper import break_even


def by_hand(game, balance, tally):
    """Com_m of each agent and the common Cost_m, straight from the paper."""
    c, k = (1 + math.sqrt(balance)) ** 2, (math.sqrt(2) - math.sqrt(3 / 2)) ** 2
    log_t = math.log(game.horizon)
    shared = set(game.sharing.shared.tolist())
    gone = [arm for arm in range(len(game.arms)) if arm in shared and not tally.active[arm]]
    compensation = [
        sum((tally.explore[m, i] + tally.commit[m, i]) * math.sqrt(8 * c * log_t / tally.broadcasts[i]) for i in gone)
        for m in range(game.agents)
    ]
    cost = sum(tally.broadcasts[i] * math.sqrt(k**2 * log_t / (128 * c * tally.broadcasts[i])) for i in gone)
    return compensation, cost


@settings(max_examples=200)
@given(
    game=games(arms=st.builds(Constant, rewards()), horizons=st.integers(2, 600)),
    balance=st.sampled_from([1.0, 1.5, 4.0]),
    seed=st.integers(0, 10**6),
)
def test_settlement_is_that_of_the_paper(game, balance, seed):
    rule = BalancedETC(balance)
    tally = play_run(game, rule, seed)
    compensation, cost = by_hand(game, balance, tally)
    result = play(game, rule, runs=1, seed=seed, settlement="paper", baseline=False)
    regret = [float((tally.explore[m] + tally.commit[m]) @ game.gaps) for m in range(game.agents)]
    incentive = [r - com + cost for r, com in zip(regret, compensation, strict=True)]

    def close(expected):
        return pytest.approx(expected, rel=1e-9, abs=1e-9)

    assert result.overall_regret.mean == close(sum(regret))
    assert result.average_regret.mean == close(sum(regret) / game.agents)
    assert result.max_individual_regret.mean == close(max(regret))
    assert result.max_incentive_regret.mean == close(max(incentive))
    assert result.controller_profit.mean == close(game.agents * cost - sum(compensation))
    assert result.explore_regret.mean == close(float(tally.explore.sum(axis=0) @ game.gaps))
    assert result.commit_regret.mean == close(float(tally.commit.sum(axis=0) @ game.gaps))
    assert result.broadcasts.mean == tally.broadcasts.sum()
    for agent in range(game.agents):
        assert result.individual_regret(agent).mean == close(regret[agent])
        assert result.incentive_regret(agent).mean == close(incentive[agent])


def test_nothing_eliminated_nothing_paid():
    game = Game(bernoulli([0.9, 0.1]), Sharing.round_robin(agents=4, arms=2), horizon=10)
    result = play(game, BalancedETC(), runs=20, settlement="paper")
    assert result.arms[1].eliminated == 0
    assert result.controller_profit.mean == 0
    assert result.max_incentive_regret == result.max_individual_regret


def test_break_even_is_where_explore_pulls_pay_for_themselves():
    """Round-robin play of many agents hardly commits to arms that go later, so the profit crosses near M*."""
    assert break_even(1.0) == pytest.approx(3565.62, abs=0.01)
    profit = {}
    for agents in (3500, 3640):
        game = Game([Constant(1.0), Constant(0.5)], Sharing.round_robin(agents, arms=2), horizon=10**6)
        tally = play_run(game, BalancedETC(), seed=1)
        assert tally.commit[:, 1].sum() == 0
        profit[agents] = play(game, BalancedETC(), runs=1, seed=1, baseline=False).controller_profit.mean
    assert profit[3500] < 0 < profit[3640]


@pytest.mark.parametrize("rule", [BalancedETC(math.inf), FullSharing(math.inf), TwoUCB(), NoProtocol()])
def test_where_the_paper_settles_nothing(rule):
    assert settlement_for("default", rule).name == "none"
    with pytest.raises(SettlementError, match="not defined"):
        settlement_for("paper", rule)


@pytest.mark.parametrize("rule", [BalancedETC(1), BalancedETC(7.5), FullSharing()])
def test_the_default_is_the_papers_where_it_is_defined(rule):
    assert settlement_for("default", rule) == settlement_for("paper", rule)
    assert settlement_for("default", rule).name == "paper"


def test_an_unknown_settlement_lists_the_known():
    with pytest.raises(InputError, match="paper, equal-share, equal-share-expected, none"):
        settlement_for("bank", BalancedETC())


def test_playing_again_gives_the_same_runs_under_another_settlement():
    game = Game(bernoulli([0.9, 0.1]), Sharing.round_robin(agents=4, arms=2), horizon=2000)
    paper, none = (play(game, BalancedETC(), runs=8, seed=2, settlement=name) for name in ("paper", "none"))
    assert none.overall_regret == paper.overall_regret
    assert none.controller_profit is None
    assert none.max_incentive_regret is None
    assert paper.controller_profit is not None

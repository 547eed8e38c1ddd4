"""What everyone should prepay: the quantile of the bills, within bounded work."""

import numpy as np
import pytest

from partage import BalancedGLR, Game, InputError, NetworkGLR, SharedIMED, Sharing, bernoulli, play, propose_prepaid
from partage.simulate import affordable
from partage.simulate import prepaid as helper
from partage.simulate.fold import COLUMNS
from partage.simulate.prepaid import covers_little

MEANS = [0.9, 0.8, 0.6]


def test_the_proposal_is_the_quantile_of_the_bills():
    found = propose_prepaid(3, 12, 2000, BalancedGLR(), means=MEANS, fee=0.25, quantile=0.9, seed=5)
    game = Game(bernoulli(MEANS), Sharing.round_robin(12, 3), 2000)
    result = play(game, BalancedGLR(), runs=found.runs, seed=5, settlement="equal-share-expected", baseline=False)
    # A bill of its own: claims of eliminated arms times the difference of the means, run by run.
    pool = play(game, BalancedGLR(), runs=found.runs, seed=5, settlement="pool", prepaid=1e9, baseline=False)
    paid = pool.folded.figures[:, COLUMNS.index("compensation")]
    bills = np.sort(1.25 * paid / 12)
    assert found.bills == pytest.approx(bills.tolist())
    assert np.mean(bills <= found.prepaid) >= 0.9 > np.mean(bills < found.prepaid)
    assert found.low < found.prepaid < found.high
    assert found.share.mean == pytest.approx(bills.mean())
    assert result.runs == found.runs == helper.MOST_RUNS


def test_with_the_proposal_a_pool_pays_in_full_in_that_fraction_of_other_runs():
    found = propose_prepaid(3, 12, 2000, BalancedGLR(), means=MEANS, quantile=0.9)
    game = Game(bernoulli(MEANS), Sharing.round_robin(12, 3), 2000)
    result = play(game, BalancedGLR(), runs=400, seed=99, settlement="pool", prepaid=found.prepaid, baseline=False)
    assert 0.83 < result.viable < 0.96  # 0.9 with a standard error of 0.021 from both samples
    assert result.scale.mean == pytest.approx(found.scale(found.prepaid), abs=0.02)


def test_the_quantile_lies_in_its_interval():
    truth = propose_prepaid(2, 4, 300, SharedIMED(), means=[0.9, 0.5], quantile=0.9)
    inside = [
        found.low <= truth.prepaid <= (found.high or np.inf)
        for found in (
            propose_prepaid(2, 4, 300, SharedIMED(), means=[0.9, 0.5], quantile=0.9, seed=seed)
            for seed in range(1, 13)
        )
    ]
    assert sum(inside) >= 8


@pytest.mark.parametrize(
    "size", [(3, 3, 10**4), (5, 2, 100), (10, 1000, 10**6), (20, 20, 10**9), (1, 1, 2), (2, 7, 3)]
)
def test_the_work_is_bounded(size):
    game = helper._smaller_game(*size, None, None)
    arms, members, horizon = size
    assert (len(game.arms), game.agents <= members, game.horizon <= horizon) == (arms, True, True)
    assert game.agents * game.horizon <= max(affordable.PULLS, 100 * arms)
    assert game.sharing.sharers().all()
    assert helper.FEWEST_RUNS <= helper._runs_for(game) <= helper.MOST_RUNS
    if members * horizon <= 10**5:
        assert (game.agents, game.horizon) == (members, horizon)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"arms": 0}, "The number of arms is 0"),
        ({"members": "many"}, "The number of members is 'many'"),
        ({"horizon": 1}, "The horizon is 1"),
        ({"means": [0.5]}, "There are 1 means for 3 arms"),
        ({"means": [0.5, 2.0, 0.1]}, "The mean of a Bernoulli arm is 2.0"),
        ({"quantile": 1.0}, "The quantile is 1.0; it must be a number above 0 and below 1."),
        ({"quantile": float("nan")}, "The quantile is nan"),
        ({"fee": -1}, "The fee is -1"),
        ({"sharing": "nonsense"}, "The sharing pattern is 'nonsense'"),
    ],
)
def test_bad_input(change, sentence):
    arguments = {"arms": 3, "members": 4, "horizon": 100, "rule": BalancedGLR(), **change}
    with pytest.raises(InputError) as refused:
        propose_prepaid(**arguments)
    assert sentence in str(refused.value)


def test_a_prepaid_amount_that_covers_little_is_warned_of_with_the_figure():
    game = Game(bernoulli(MEANS), Sharing.round_robin(12, 3), 2000)
    terms = {"runs": 10, "settlement": "pool", "baseline": False}
    warning = covers_little(play(game, BalancedGLR(), prepaid=0.001, **terms))
    assert warning.startswith("The prepaid amount of 0.001 pays 0.000")
    assert covers_little(play(game, BalancedGLR(), prepaid=5.0, **terms)) is None
    assert covers_little(play(game, BalancedGLR(), runs=2, settlement="none", baseline=False)) is None


def test_a_rule_that_compares_arms_within_members_has_a_proposal_too():
    assert propose_prepaid(arms=2, members=3, horizon=200, rule=NetworkGLR(), means=[0.9, 0.2]).prepaid > 0

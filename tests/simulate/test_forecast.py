"""The forecast is what plays of such games say, with what it assumes."""

import pytest

from partage import BalancedETC, Game, NetworkGLR, SharedIMED, Sharing, bernoulli, forecast, play
from partage.errors import InputError


def test_a_forecast_is_a_play_of_such_games():
    found = forecast(3, 6, 500, BalancedETC(), means=[0.9, 0.5, 0.4], runs=10, seed=3)
    game = Game(bernoulli([0.9, 0.5, 0.4]), Sharing.dealt(6, 3), 500)
    result = play(game, BalancedETC(), runs=10, seed=3)
    assert found.together == result.average_regret
    assert found.settled.mean == pytest.approx(result.folded.incentive.mean() / 10)
    assert found.alone == result.two_ucb_regret
    assert found.alone_by == "two-ucb"
    assert found.broadcasts.mean == pytest.approx(result.broadcasts.mean / 6)
    worst = result.folded.incentive.max() / 10
    assert (found.gaining == 1) is bool(worst <= found.alone.mean)
    assert found.sentence.startswith("A member can expect to lose about ")
    assert found.assumptions[0] == "The mean result of each option is the one given."


def test_without_a_settlement_and_with_unknown_means():
    found = forecast(2, 4, 300, SharedIMED(), runs=5, settlement="none")
    assert found.settled is None
    assert found.as_dict()["settled"] is None
    assert "drawn from 0 to 1" in found.assumptions[0]
    assert f"{found.together.mean:.3g}, and {found.alone.mean:.3g} alone" in found.sentence


def test_shares_are_those_given_or_fit_the_rule():
    assert "consented" in forecast(2, 2, 100, SharedIMED(), shares=[[0], [0, 1]], runs=2).assumptions[1]
    assert forecast(2, 2, 100, NetworkGLR(), runs=2).assumptions[1] == "Members share every option."
    silent = forecast(2, 2, 100, SharedIMED(), shares=[[], []], runs=2, settlement="none")
    assert silent.broadcasts.mean == 0


@pytest.mark.parametrize("wrong", [{"means": [0.5]}, {"shares": [[0]] * 3}])
def test_what_is_refused(wrong):
    with pytest.raises(InputError, match="there must be"):
        forecast(2, 2, 100, SharedIMED(), **wrong)


def test_members_to_come_share_one_option_each():
    given = {"means": [0.9, 0.5, 0.4], "runs": 5, "settlement": "none"}
    found = forecast(3, 5, 300, SharedIMED(), shares=[[0, 1], []], **given)
    assert found.together == forecast(3, 5, 300, SharedIMED(), shares=[[0, 1], [], [0], [1], [2]], **given).together
    assert found.assumptions[1].startswith("The 2 members so far share what they have consented to; all others ")
    one = forecast(3, 2, 300, SharedIMED(), shares=[[0]], **given)
    assert one.together == forecast(3, 2, 300, SharedIMED(), shares=[[0], [0, 1, 2]], **given).together
    assert one.assumptions[1].startswith("The 1 member so far shares ")


def test_a_quick_forecast_plays_a_smaller_game_and_says_so():
    small = forecast(3, 6, 300, SharedIMED(), quick=True, runs=2, settlement="none")
    assert (small.members, small.horizon) == (6, 300)
    assert len(small.assumptions) == 5
    large = forecast(3, 1000, 10**7, SharedIMED(), quick=True, runs=2, settlement="none")
    assert (large.members, large.horizon) == (30, 100_000)
    assert large.assumptions[0] == (
        "To save time, the simulation has fewer than 1,000 members with 10,000,000 tries each: 30 with 100,000."
    )

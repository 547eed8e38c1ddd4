"""What uneven games cost: every feature is played, and makes the game uneven."""

from bench.uneven import by_feature, features, game_with

from partage import BalancedETC


def test_every_feature_but_one_is_uneven():
    uneven = [name for name in features(1000) if game_with(name, 1000).uneven]
    assert uneven == list(features(1000))[1:]


def test_costs_are_ratios_to_the_even_game():
    rows = by_feature(BalancedETC(), 200, runs=1, repeats=3)
    assert list(rows) == list(features(200))
    assert rows["even"]["times_even"] == 1
    assert all(row["broadcasts"] > 0 and row["seconds"] > 0 for row in rows.values())

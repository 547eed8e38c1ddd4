"""What uneven games cost: every feature is played, and makes the game uneven."""

from bench import uneven
from bench.uneven import by_feature, features, game_with

from partage import BalancedETC


def test_every_feature_but_one_is_uneven():
    uneven = [name for name in features(1000) if game_with(name, 1000).uneven]
    assert uneven == list(features(1000))[1:]


def test_costs_are_ratios_to_the_even_game():
    rows = by_feature(BalancedETC(), 200, runs=1, repeats=3)
    assert list(rows) == list(features(200))
    assert all(row["broadcasts"] > 0 for row in rows.values())


def test_ratios_are_taken_within_a_repeat(monkeypatch):
    """The machine is twice as slow in each repeat as in the one before, which changes no ratio."""
    slow = {"now": 1.0}

    def bare(work):
        slow["now"] *= 2
        return uneven.BARE * slow["now"], None

    def played(game, rule, runs):
        return slow["now"] * (12.0 if game.uneven else 4.0), 2.0

    monkeypatch.setattr(uneven, "timed", bare)
    monkeypatch.setattr(uneven, "played", played)
    rows = by_feature(BalancedETC(), 200, runs=1, repeats=3, names=["even", "delay 2, 5 and 0 steps"])
    delayed = rows["delay 2, 5 and 0 steps"]
    assert (delayed["seconds"], delayed["times_even"], delayed["broadcast_times_bare"]) == (48, 3, 6)
    assert rows["even"]["broadcast_times_bare"] == 2

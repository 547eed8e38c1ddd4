"""The value of sharing: differences between the same runs of two games."""

import numpy as np
import pytest

from partage import BalancedETC, Game, SharedIMED, Sharing, bernoulli, play, value_of_sharing
from partage.errors import InputError

GAME = Game(
    bernoulli([0.9, 0.7, 0.8]),
    Sharing.lists([[0, 1], [2], [0]], arms=3).in_shuffled_order(),
    horizon=3000,
    agent_names=("Ada", "Bob", "Cy"),
)


def with_shares(rows):
    return GAME.with_sharing(Sharing.lists(rows, arms=3).in_shuffled_order())


@pytest.mark.parametrize("rule", [BalancedETC(), SharedIMED()], ids=["etc", "imed"])
def test_gains_are_differences_of_two_plays(rule):
    found = value_of_sharing(GAME, rule, "Ada", runs=12, seed=4)
    assert (found.agent, found.shares) == ("Ada", ("arm 1", "arm 2"))
    assert [(change.arm, change.kind) for change in found.changes] == [
        ("arm 1", "fewer"),
        ("arm 2", "fewer"),
        ("arm 3", "more"),
    ]
    now = play(GAME, rule, runs=12, seed=4, baseline=False)
    assert found.regret.mean == pytest.approx(now.individual_regret(0).mean)
    assert found.regret.stderr == pytest.approx(now.individual_regret(0).stderr)
    for change, rows in zip(found.changes, ([[1], [2], [0]], [[0], [2], [0]], [[0, 1, 2], [2], [0]]), strict=True):
        then = play(with_shares(rows), rule, runs=12, seed=4, baseline=False)
        gains = (now.folded.regret - then.folded.regret) / 12
        assert change.own.mean == pytest.approx(gains[0], abs=1e-9)
        assert change.others.mean == pytest.approx(gains[1:].sum(), abs=1e-9)
        if now.settled:
            after = (now.folded.incentive - then.folded.incentive) / 12
            assert change.own_settled.mean == pytest.approx(after[0], abs=1e-9)
            assert change.others_settled.mean == pytest.approx(after[1:].sum(), abs=1e-9)
        else:
            assert change.own_settled is None


def test_the_error_is_that_of_paired_differences():
    found = value_of_sharing(GAME, SharedIMED(), 0, runs=10, settlement="none")
    single = [
        value_of_sharing(GAME, SharedIMED(), 0, runs=runs, settlement="none").changes[2].own.mean * runs
        for runs in range(1, 11)
    ]
    by_run = np.diff([0.0, *single])
    assert found.changes[2].own.stderr == pytest.approx(by_run.std(ddof=1) / np.sqrt(10))


def test_a_withdrawn_arm_costs_everybody_if_nobody_else_shares_it():
    found = value_of_sharing(GAME, SharedIMED(), "Bob", runs=20, settlement="none")
    (change,) = [one for one in found.changes if one.arm == "arm 3"]
    assert change.kind == "fewer"
    assert change.others.mean < -3 * change.others.stderr


def test_what_is_refused():
    with pytest.raises(InputError, match="The agent is 'Eve'; it must be one of 'Ada', 'Bob', 'Cy'"):
        value_of_sharing(GAME, SharedIMED(), "Eve")
    with pytest.raises(InputError, match="drawn for each run"):
        value_of_sharing(GAME.with_sharing(Sharing.random(3, 3)), SharedIMED(), 0)

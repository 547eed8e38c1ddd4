"""Agents that use up their horizons: no other arm waits for the arms that only they share."""

import numpy as np
import pytest

from partage import Game, Sharing, bernoulli
from partage.engine.reference import play_reference
from partage.rules import make_rule
from partage.traits import Traits

KEY = np.array([3, 5], np.uint64)
STAYS = Traits()


def explored(*traits: Traits) -> list[int]:
    """Return the explore pulls of each arm: the first two agents share arms 0 and 1, the others arm 2."""
    shares = [[0, 1], [0, 1], *[[2]] * (len(traits) - 2)]
    game = Game(bernoulli([0.6, 0.5, 0.4]), Sharing.lists(shares, arms=3), horizon=400, traits=traits)
    tally = play_reference(game, make_rule("balanced-etc"), KEY)
    return [int(pulls) for pulls in tally.explore.sum(axis=0)]


@pytest.mark.parametrize(
    "others",
    [
        [Traits(horizon=20)],
        [Traits(horizon=20, delay=5)],  # its last reward comes after its last pull
        [Traits(horizon=20), Traits(leaves=30)],  # when the second leaves, the first has no pulls left
        [Traits(horizon=20), Traits(joins=380, horizon=20)],  # it has not joined yet
    ],
    ids=["used up", "late", "left", "to join"],
)
def test_no_other_arm_waits_for_what_nobody_can_pull(others: list[Traits]) -> None:
    pulls = explored(STAYS, STAYS, *others)
    assert pulls[2] <= 50
    assert min(pulls[:2]) > 100


def test_other_arms_wait_while_a_sharer_has_pulls_left() -> None:
    pulls = explored(STAYS, STAYS, Traits(horizon=20), Traits(pace=0.125))
    assert max(pulls[:2]) <= pulls[2] + 1


def test_other_arms_wait_again_once_somebody_can_pull_the_arm() -> None:
    """Agents 2 and 3 share arm 2 one after the other; meanwhile nobody can pull the other arms either."""
    brief = Traits(horizon=20)
    pulls = explored(brief, Traits(joins=100), brief)
    assert pulls[2] <= 20
    assert min(pulls[:2]) > 100, "the first agent's arms were stalled too, before the second joined"

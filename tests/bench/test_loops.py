"""The loop that the engine's speed is measured against plays the same game."""

import numpy as np
import pytest
from bench.loops import pull_by_pull

from partage import BalancedETC, Game, Sharing, bernoulli, play_run
from partage.engine import rewards as tape


@pytest.mark.parametrize("agents", [3, 10, 50])
def test_the_honest_loop_is_honest(agents):
    means = [0.9, 0.6, 0.3]
    game = Game(bernoulli(means), Sharing.round_robin(agents, 3), horizon=4000)
    key = tape.run_keys(0, 0, 1)[0]
    rank = np.argsort(tape.permutation(key[0], key[1], tape.TIE_ORDER, 3))
    explore, commit = pull_by_pull(np.array(means), np.arange(agents) % 3, 4000, 4000, key[0], key[1], rank)
    tally = play_run(game, BalancedETC())
    assert not tally.active.all()
    assert (explore == tally.explore.sum(axis=1)).all()
    assert (tally.commit == commit.T).all()

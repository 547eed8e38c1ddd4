"""A hundred thousand agents: the figures of every single one are exact."""

import numpy as np
import pytest

from partage import BalancedETC, BalancedGLR, Game, SharedIMED, Sharing, bernoulli, play, play_run

AGENTS, HORIZON = 100_003, 1000  # the agents do not divide into the arms
SHARING = Sharing.round_robin(AGENTS, 3)


@pytest.mark.parametrize("sharing", [SHARING, SHARING.in_shuffled_order()], ids=["in order", "shuffled"])
@pytest.mark.parametrize("rule", [BalancedETC(), BalancedGLR(), SharedIMED()], ids=lambda rule: rule.name)
def test_every_agent_has_its_own_figures(rule, sharing):
    game = Game(bernoulli([0.9, 0.6, 0.2]), sharing, HORIZON)
    tally, result = play_run(game, rule, seed=4), play(game, rule, runs=1, seed=4, baseline=False)
    pulls = tally.explore + tally.commit
    assert (pulls.sum(axis=1) == HORIZON).all()
    assert tally.explore.sum(axis=0).tolist() == tally.broadcasts.tolist()
    assert (tally.commit >= 0).all()
    assert not tally.explore[np.arange(AGENTS)[:, None] % 3 != np.arange(3)].any()  # who shares one arm explores it
    np.testing.assert_allclose(result.folded.regret, pulls @ game.gaps, rtol=1e-12, atol=1e-9)
    assert result.overall_regret.mean == pytest.approx((pulls @ game.gaps).sum())


def test_one_arm_each_is_who_shares_what():
    assert SHARING.shared.dtype == np.int32
    assert SHARING.starts.tolist() == list(range(AGENTS + 1))
    assert SHARING.shared.tolist() == [agent % 3 for agent in range(AGENTS)]
    assert Sharing.one_each(np.array([1, -1, 0]), 2).starts.tolist() == [0, 1, 1, 2]

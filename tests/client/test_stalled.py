"""A member who claims the only arm it shares and never tells: the others do not wait for it."""

import random
from contextlib import ExitStack

import pytest
from tests.support.live import App, New

from partage.client import HorizonReached

MEANS = {"good": 0.9, "fair": 0.5, "mute": 0.7}
HORIZON = 1500


def test_a_sole_sharer_who_never_tells_does_not_stall_balanced_etc(app: App, new: New) -> None:
    live = new(list(MEANS), HORIZON, rule="balanced-etc", claim_seconds=5)
    mute = live.join("mute")
    draw, pulled = random.Random(1), dict.fromkeys(MEANS, 0)
    with ExitStack() as stack:
        agents = [stack.enter_context(live.joined("good", "fair", invite=str(number))) for number in range(2)]
        for step in range(HORIZON):
            live.sleep(0.1)
            if step % 10 == 0 and live.open_to(mute):
                live.claim(mute)  # and never tells
            for agent in agents:
                pull = agent.ask()
                pulled[pull.arm] += 1
                if pull.share:
                    agent.tell(pull, float(draw.random() < MEANS[pull.arm]))
        with pytest.raises(HorizonReached):
            agents[0].ask()
    board = live.state.board
    assert board.counts[2] == 0
    assert not board.active[1], "good and fair were compared to the end"
    assert live.state.target() == 0
    assert pulled["good"] > pulled["fair"]
    shown = app.operator.board(live.id)
    assert [arm.stalled for arm in shown.arms] == [False, False, True]

"""What the bench of live play finds, on fixed seeds: the simulator predicts it, and limits and offers matter."""

import numpy as np
import pytest
from bench import live_play
from bench.live_play import Controller, FewestFirst, game, live, simulated

pytestmark = pytest.mark.extra  # it compiles a kernel

RUNS, SEED = 12, 1


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_play, "HORIZON", 1000)
    monkeypatch.setattr(live_play, "MEANS", (0.9, 0.5))


def regrets(pace: int, **options: object) -> np.ndarray:
    return np.array([live(run, "balanced-glr", pace, SEED, **options)[0] for run in range(RUNS)])


def test_the_simulator_predicts_live_play_once_it_knows_the_time_of_requests() -> None:
    pace = 100
    found = regrets(pace, max_pulls_per_board=1000)
    trips = 2 * live_play.LATENCY * pace
    paced, late = (simulated("balanced-glr", one, RUNS, SEED) for one in (game(8), game(8, trips)))
    beyond = found - late
    assert abs(beyond.mean()) < 3 * beyond.std(ddof=1) / np.sqrt(RUNS)
    assert abs(beyond.mean()) < abs((found - paced).mean()) / 2


def test_a_fast_follower_loses_less_the_fewer_pulls_it_makes_on_one_board() -> None:
    one, ten, any = (regrets(1000, max_pulls_per_board=most).mean() for most in (1, 10, 1000))
    assert one < ten < any


def test_whoever_asks_first_explores_sooner_than_whoever_explored_least() -> None:
    first, fewest = (regrets(10, played=game(8, eager=2), offer=offer).mean() for offer in (Controller, FewestFirst))
    assert first < fewest

"""The model of live play answers as the application does, and plays what is simulated if nothing takes time."""

from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest
from bench.live_model import Controller, World, alike, key_of
from tests.support.live import URL, App, Live

from partage import Game, Sharing, Traits, bernoulli
from partage.client.base import answer_of
from partage.client.effects import Answer, Send
from partage.engine.reference import play_reference
from partage.ledger.config import Config, live_rule
from partage.ledger.state import State, tie_order
from partage.ledger.ties import tie_seed_of
from partage.ledger.views import board_view

SEEDS = [f"{seed:032x}" for seed in range(8)]
ARMS = ["arm 0", "arm 1"]


def game(slower: int = 4, followers: int = 3, horizon: int = 200) -> Game:
    """Return a game in which two slow agents share both arms, and the others share one arm or nothing."""
    shares: list[list[int]] = [[0, 1], [0, 1], [1], *[[]] * followers]
    traits = [Traits(pace=1 / slower, horizon=horizon // slower)] * 2 + [Traits()] * (1 + followers)
    return Game(bernoulli([0.9, 0.2]), Sharing.lists(shares, 2), horizon, traits=traits)


def test_agents_that_share_nothing_and_are_alike_have_one_program() -> None:
    assert list(alike(game())) == [range(1), range(1, 2), range(2, 3), range(3, 6)]


@pytest.mark.parametrize("seed", SEEDS)
def test_it_plays_what_the_simulator_plays_if_nothing_takes_time(seed: str) -> None:
    for slower in (1, 4):
        found = World(game(slower), seed, pause=0.0, max_pulls_per_board=10**6, rule="balanced-glr").play()
        rule = live_rule("balanced-glr", None, {})
        simulated = play_reference(game(slower), rule, np.array(key_of(seed), np.uint64))
        assert (found.explore == simulated.explore).all()
        assert (found.commit == simulated.commit).all()
        assert found.waited == found.for_nothing == 0


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """The application, on the clock of the model."""
    running = App(tmp_path_factory.mktemp("app"))
    yield running
    running.close()


class RealController:
    """The application, in place of the model: with receipts, signatures, a disk, and its own tie order."""

    def __init__(self, live: Live) -> None:
        self.live, self.id, self.invite = live, live.id, live.invite
        self.start = live.now

    @property
    def state(self) -> State:
        return self.live.state

    def order(self) -> None:
        self.live._fix_order()  # after waiting for nonces
        self.start = self.live.now

    def board(self) -> bytes:
        return msgspec.json.encode(board_view(self.live.state))

    def answer(self, request: Send, agents: list[str], now: float) -> Answer:
        self.live.app.now = self.start + now
        sent = httpx.Request(request.method, URL + request.path, headers=dict(request.headers), content=request.body)
        response = self.live.answer(sent)
        if request.path.endswith("/agents"):
            agents.append(response.json()["agent"])
        return answer_of(response)


@pytest.mark.parametrize("rule", ["balanced-glr", "shared-imed"])
@pytest.mark.parametrize("latency", [0.0, 0.02])
def test_it_plays_what_the_application_plays(app: App, rule: str, latency: float) -> None:
    played = game(followers=1)
    given: dict[str, Any] = {"step": 0.02, "latency": latency, "max_pulls_per_board": 1}
    live = Live(app, ARMS, played.longest, rule=rule, settlement="none")
    real = World(played, SEEDS[0], controller=RealController(live), **given).play()
    # The rewards are those of the seed, and the tie order is the application's.
    orders = {seed: tie_order(tie_seed_of(bytes.fromhex(seed), []), 2) for seed in SEEDS}
    seed = next(one for one in SEEDS if orders[one] == live.state.board.tie_order)
    config = Config(name="Model", arms=ARMS, horizon=played.longest, rule=rule, settlement="none")
    model = World(played, SEEDS[0], controller=Controller(seed, config), **given).play()
    assert (model.explore == real.explore).all()
    assert (model.commit == real.commit).all()
    assert (model.broadcasts, model.for_nothing, model.waited) == (real.broadcasts, real.for_nothing, real.waited)
    assert real.broadcasts > 20
    assert real.waited > 0

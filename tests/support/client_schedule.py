"""Public clients on the schedule of a simulated game: they ask, defer rewards that are late, and tell them."""

import math

from tests.support.live import App, Live, Timed
from tests.support.schedule import Schedule

from partage.client import Pull
from partage.engine.tally import phase_at
from partage.game import Game
from partage.ledger import moves
from partage.ledger.fields import LONGEST_CLAIM
from partage.ledger.state import State
from partage.tape import run_key

STEP = 8000  # ms: even the fastest agent reads the board before each pull


class ClientSchedule(Schedule):
    """A game whose members are there from the beginning, played by clients of the real application.

    Attributes
    ----------
    live
        The collaboration.
    committed_while_out
        How many commit pulls were made while a reward was out.
    """

    def __init__(self, app: App, game: Game, rule: str) -> None:
        names = [f"arm {number}" for number in range(len(game.arms))]
        seconds = LONGEST_CLAIM if game.claim_steps is None else game.claim_steps * STEP / 1000
        given = {"rule": rule, "settlement": "none", "claim_seconds": seconds}
        self.live = Live(app, names, game.longest, **given)
        self.clients: list[Timed] = []
        for agent in range(game.agents):
            shares = [names[arm] for arm in game.sharing.of(agent)]
            options = {"horizon": game.horizon_of(agent), "max_pulls_per_board": 1_000_000}
            self.clients.append(self.live.joined(*shares, invite=str(agent), **options))
        app.now = float(math.ceil(app.now))  # so that times are exact
        self.out: dict[int, Pull] = {}  # by the claim's number
        self.committed_while_out = 0
        assert self.state.tie_seed is not None
        self._begin(game, run_key(self.state.tie_seed), round(app.now * 1000))
        self.step = STEP

    @property
    def state(self) -> State:
        return self.live.state

    def at(self, time: float) -> None:
        self.live.app.now = (self.start + round(time * self.step)) / 1000

    def lapse(self) -> None:
        """Let claims lapse, and the clock advance. In real use, both wait for the next request."""
        library = self.live.app.controller.library

        async def move() -> None:
            for due in (moves.lapse, moves.tick):
                await library.put(library.books[self.live.id], due)

        self.live.app.run(move())

    def tell(self, agent: int, pull: int, reward: float) -> int:
        claim = self.out.pop(pull)
        self.clients[agent].tell(claim, reward)
        return self.state.config.arms.index(claim.arm)

    def _arrive(self, joins: bool, agent: int) -> None:
        """All have joined already."""

    def _pull(self, now: float, agent: int) -> None:
        self.lapse()
        client, arms = self.clients[agent], self.state.config.arms
        pull = client.ask()
        self.pulls += 1
        if pull.share:
            assert pull.number is not None
            self.out[pull.number] = pull
            self._explore(now, agent, arms.index(pull.arm), pull.number)
            if pull.number in self.out:
                client.defer(pull)
        else:
            self.committed_while_out += bool(client.deferred)
            self.commit[phase_at(self.game, now), agent, arms.index(pull.arm)] += 1
            client.tell(pull, 0.5)
        client.flush()  # rules may read how many pulls were made

"""A model of live play: the client's protocol and the ledger's moves in simulated time, without HTTP, disk and keys.

Every member runs a program that asks, pulls and tells. Its decisions are those of `partage.client.protocol`, and the
answers those of `partage.ledger.moves`. Requests take time, boards arrive by the event stream, and a client that has
to wait waits. Rewards and the tie order come from the tape of a run, so the simulator can play the same run.

The answers carry no receipts: they change no decision.
"""

import heapq
import random
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import msgspec
import numpy as np

from partage.arms import reward_table
from partage.client.effects import Answer, Send, Wait
from partage.client.protocol import Protocol
from partage.client.statefile import AgentState
from partage.engine.rewards import Rewards
from partage.game import Game
from partage.ledger import messages, moves
from partage.ledger.config import Config, checked_config
from partage.ledger.events import FORMAT, Create, Run
from partage.ledger.refusals import Refused
from partage.ledger.state import State
from partage.ledger.ties import commitment_to, tie_seed_of
from partage.ledger.views import agent_view, board_view, collaboration_view
from partage.service.runtime.book import PAUSE
from partage.tape import run_key

START = 1_700_000_000_000  # ms
WITHOUT_RECEIPTS = 4  # the last format whose clients expect none


@dataclass(frozen=True)
class At:
    """Do the rest at this time."""

    time: float


@dataclass
class Played:
    """What happened.

    Attributes
    ----------
    explore, commit
        Pulls by agent and arm.
    broadcasts
        Of all members.
    for_nothing
        Requests for a claim that were answered with nothing to explore.
    waited
        Seconds for which members waited for a fresh board or a claim, all together.
    requests
        By method and path; those of members that one program plays for count once.
    seconds
        When the last member was done.
    """

    explore: np.ndarray
    commit: np.ndarray
    broadcasts: int = 0
    for_nothing: int = 0
    waited: float = 0.0
    requests: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def regret(self, game: Game) -> float:
        """Return the overall regret of a game whose members are equal."""
        return float((self.explore + self.commit).sum(axis=0) @ game.gaps)


class Controller:
    """The ledger's state, and what it answers. The seed fixes the tie order."""

    id = "c1"

    def __init__(self, seed: str, config: Config) -> None:
        self._seed = bytes.fromhex(seed)
        given = {"tie_commitment": commitment_to(self._seed), **checked_config(config)}
        self.state = State(Create(seq=1, time=START, format=FORMAT, collaboration=self.id, **given))
        self._arms = {name: arm for arm, name in enumerate(config.arms)}
        self._board: tuple[int, bytes] = (0, b"")

    def invite(self, label: str) -> str:
        """Return an invite, for a member with this label."""
        return label

    def order(self) -> None:
        """Fix the tie order, once all members have joined."""
        moves.order(moves.Turn(self.state, START, lambda: self._seed))

    def offers(self, agent: str) -> bool:
        """Whether the agent is offered a claim now, if there is one. By default, whoever asks first has it."""
        return True

    def board(self) -> bytes:
        """Return the board as it is sent."""
        if self._board[0] != self.state.seq:
            self._board = self.state.seq, msgspec.json.encode(board_view(self.state))
        return self._board[1]

    def answer(self, request: Send, agents: list[str], now: float) -> Answer:
        """Return the answer to a request, which all of these agents make at once."""
        turn = moves.Turn(self.state, START + round(1000 * now), lambda: self._seed)
        try:
            answer = self._answer(turn, request, agents)
        except Refused as refused:
            return Answer(refused.status, msgspec.json.encode({"error": refused.sentence, "code": refused.code}))
        if answer is None:
            return Answer(204, b"")
        return Answer(200, answer if isinstance(answer, bytes) else msgspec.json.encode(answer))

    def _answer(self, turn: moves.Turn, request: Send, agents: list[str]) -> Any:
        body, path = request.body or b"", request.path.removeprefix(f"/v1/collaborations/{self.id}")
        match request.method, path:
            case "GET", "":
                view = collaboration_view(self.state)
                return msgspec.structs.replace(view, format=WITHOUT_RECEIPTS, key="")
            case "GET", "/board":
                return self.board()
            case "GET", "/agents/me":
                return agent_view(self.state, turn.now, agents[0])
            case "POST", "/ask":
                ask = msgspec.json.decode(body, type=messages.Ask)
                if not self.offers(agents[0]):
                    return None
                answers = [moves.ask(turn, agent, ask.request, ask.explore_only) for agent in agents]
                assert len(agents) == 1 or not any(answers), "agents that share something need programs of their own"
                if answers[0] is None:
                    return None
                pull = answers[0]
                return messages.Pull(pull.seq, self.state.config.arms[pull.arm], pull.share, pull.version)
            case "POST", "/tell":
                tell = msgspec.json.decode(body, type=messages.Tell)
                told = moves.tell(turn, agents[0], tell.pull, tell.reward)
                assert told is not None
                return messages.Told(told.version, "")
            case "POST", "/commits":
                told = msgspec.json.decode(body, type=messages.Commits)
                runs = [Run(run.version, self._arms[run.arm], run.pulls) for run in told.runs]
                for agent in agents:
                    moves.commits(turn, agent, told.request, runs, told.unnamed)
                return messages.Told(self.state.version, "")
            case "POST", "/agents":
                new = msgspec.json.decode(body, type=messages.NewAgent)
                agents.append(self._join(turn, new))
                return messages.Joined(agents[0], "token")
        raise AssertionError(f"{request.method} {path}")

    def _join(self, turn: moves.Turn, new: messages.NewAgent) -> str:
        name = f"Agent {len(self.state.members) + 1}"
        shares = [self._arms[arm] for arm in new.shares]
        declared = {} if new.horizon is None else {"horizon": new.horizon}
        return moves.join(turn, name, shares, name, declared=moves.Declared(**declared)).agent


class Program:
    """The program of a member, or of several that share nothing and do the same at the same times."""

    def __init__(self, world: "World", number: int, agents: range, max_pulls_per_board: int) -> None:
        self.world, self.number, self.agents = world, number, agents
        game, arms = world.game, world.config.arms
        self.traits, self.horizon = game.traits_of(agents[0]), game.horizon_of(agents[0])
        shares = [arms[arm] for arm in game.sharing.of(agents[0])]
        saved = AgentState(
            url="http://model", collaboration=world.controller.id, name=f"Member {number}", shares=shares
        )
        saved.horizon = None if self.horizon == world.config.horizon else self.horizon
        self.protocol = Protocol(
            saved,
            saves=False,
            max_pulls_per_board=max_pulls_per_board,
            clock=lambda: world.now,
            wall_clock=lambda: world.now,
            random_bytes=random.Random(number).randbytes,
        )
        self.ids: list[str] = []
        self.ticket = 0  # of what it waits for; an earlier ticket is void
        self.for_news = False
        self._sent_at, self._sends = -np.inf, False
        self._life = self._live()

    def start(self) -> None:
        """Join, read the board, and open the event stream, before time begins."""
        protocol, controller = self.protocol, self.world.controller
        joins = [protocol.join(controller.invite(f"{agent}")) for agent in self.agents]
        for steps in (*joins, protocol.board(), protocol.witness.exchange()):
            _at_once(steps, lambda send: controller.answer(send, self.ids, 0.0))
        protocol.following.streaming = True

    def _live(self) -> Generator[At | Send | Wait | Any, Any, None]:
        """Ask, pull and tell, as often as the horizon allows. Time in the client comes on top of that of pulls."""
        world, protocol, lag = self.world, self.protocol, 0.0
        for pull in range(1, self.horizon + 1):
            yield At(self.traits.time_of(pull) * world.step + lag)
            found = protocol.at_once()
            if found is None:
                began = world.now
                found = yield from protocol.ask()
                lag += world.now - began
            arm = protocol.following.arms[found.arm]
            if not found.share:
                world.played.commit[self.agents.start : self.agents.stop, arm] += 1
                continue
            began = world.now
            yield from protocol.tell(found, world.explored(self.agents[0], arm))
            lag += world.now - began
        yield from protocol.flush()
        world.played.seconds = max(world.played.seconds, world.now)

    def go_on(self, reply: Answer | None = None) -> None:
        """Do what can be done before the next event of the world."""
        world = self.world
        self.ticket += 1
        self.for_news = False
        while True:
            try:
                step = self._life.send(reply)
            except StopIteration:
                return
            reply = None
            if isinstance(step, At):
                if not world.comes_first(step.time, self.number):
                    world.later(step.time, self.number, self._resume(None))
                    return
                world.now = step.time
            elif isinstance(step, Send):
                world.played.requests[f"{step.method} {step.path.split('/')[-1]}"] += 1
                if world.latency:
                    world.later(world.now + world.latency / 2, self.number, lambda step=step: self._arrive(step))
                    return
                reply = self._answered(step)
                if reply is None:
                    return
            elif isinstance(step, Wait):
                world.played.waited -= world.now * len(self.agents)
                self.for_news = step.news
                world.later(world.now + step.seconds, self.number, self._resume(self.ticket, waited=True))
                return

    def _resume(self, reply: Any, waited: bool = False) -> Any:
        ticket = self.ticket

        def resume() -> None:
            if ticket == self.ticket:
                if waited:
                    self.world.played.waited += self.world.now * len(self.agents)
                self.go_on(None if waited else reply)

        return resume

    def _arrive(self, request: Send) -> None:
        """Let the controller answer a request that has arrived."""
        answer = self._answered(request)
        if answer is not None:
            self._reply(answer)

    def _reply(self, answer: Answer) -> None:
        world = self.world
        world.later(world.now + world.latency / 2, self.number, self._resume(answer))

    def _answered(self, request: Send) -> Answer | None:
        """Return the answer; None if the controller keeps the request until it has a claim, or the time is over."""
        world = self.world
        path, _, wait = request.path.partition("?wait=")
        asked = replace(request, path=path)
        answer = world.changed_by(lambda: world.controller.answer(asked, self.ids, world.now))
        if answer.status == 204 and wait and world.keeps_asks:
            world.waiting[self] = asked
            world.played.waited -= world.now * len(self.agents)
            world.later(world.now + float(wait), self.number, self._give_up(asked))
            return None
        world.played.for_nothing += answer.status == 204
        return answer

    def try_again(self, asked: Send) -> bool:
        """Ask for a claim again, after something changed; returns whether there was one."""
        answer = self.world.controller.answer(asked, self.ids, self.world.now)
        if answer.status == 204:
            return False
        self._end_waiting(answer)
        return True

    def _give_up(self, asked: Send) -> Any:
        def give_up() -> None:
            if self.world.waiting.get(self) is asked:
                self.world.played.for_nothing += 1
                self._end_waiting(Answer(204, b""))

        return give_up

    def _end_waiting(self, answer: Answer) -> None:
        del self.world.waiting[self]
        self.world.played.waited += self.world.now * len(self.agents)
        self._reply(answer)

    # the event stream

    def watch(self) -> None:
        """Send the changed board to this member, but not too soon after the last."""
        world = self.world
        if self._sends:
            return
        self._sends = True
        at = max(world.now, self._sent_at + world.pause)
        if at > world.now:
            world.later(at, self.number, self._send_board)
        else:
            self._send_board()

    def _send_board(self) -> None:
        world, board = self.world, self.world.controller.board()
        self._sent_at, self._sends = world.now, False
        if world.latency:
            world.later(world.now + world.latency / 2, self.number, lambda: self._hear(board))
        else:
            self._hear(board)

    def _hear(self, board: bytes) -> None:
        self.protocol.following.hear(msgspec.json.decode(board))
        if self.for_news:
            self.for_news = False
            self.world.later(self.world.now, self.number, self._resume(None, waited=True))


class World:
    """A game that its members play live.

    Parameters
    ----------
    game
        What is played. Its agents may differ in horizon and pace. Agents that share nothing and are alike and
        neighbours are played by one program.
    seed
        32 hex digits, of which `key_of` makes the key of the run.
    step
        Seconds of a step.
    latency
        Seconds from a request to its answer; a board takes half as long to arrive.
    pause
        Seconds between two boards on one event stream.
    max_pulls_per_board
        Of every client.
    keeps_asks
        Whether an ask that finds nothing may wait for a claim, as long as the client allows.
    controller
        Who answers; by default the model, with the seed for the tie order.
    config
        The collaboration's rule and the like.
    """

    def __init__(
        self,
        game: Game,
        seed: str,
        *,
        step: float = 1.0,
        latency: float = 0.0,
        pause: float = PAUSE,
        max_pulls_per_board: int = 10,
        keeps_asks: bool = True,
        controller: Any = None,
        **config: Any,
    ) -> None:
        self.game, self.step, self.latency, self.pause = game, step, latency, pause
        self.keeps_asks = keeps_asks
        arms = [f"arm {arm}" for arm in range(len(game.arms))]
        self.config = Config(name="Model", arms=arms, horizon=game.longest, **{"settlement": "none", **config})
        self.controller = Controller(seed, self.config) if controller is None else controller
        self.now = 0.0
        self.played = Played(*(np.zeros((game.agents, len(arms)), np.int64) for _ in range(2)))
        self._rewards = Rewards(np.array(key_of(seed), np.uint64), reward_table(game.arms))
        self._explored = [0] * len(arms)
        self._heap: list[tuple[float, int, int, Any]] = []
        self._count = count()
        self.waiting: dict[Program, Send] = {}  # for a claim, in the order in which they asked
        self.programs = [
            Program(self, number, agents, max_pulls_per_board) for number, agents in enumerate(alike(game))
        ]

    def play(self) -> Played:
        """Play it to the end."""
        for program in self.programs:
            program.start()
        self.controller.order()
        for program in self.programs:
            program.watch()
        for program in self.programs:
            self.later(0.0, program.number, program.go_on)
        while self._heap:
            self.now, _, _, work = heapq.heappop(self._heap)
            work()
        self.played.broadcasts = self.controller.state.version
        return self.played

    def later(self, time: float, number: int, work: Any) -> None:
        """Do something at this time; of several things at one time, that of the first program first."""
        heapq.heappush(self._heap, (time, number, next(self._count), work))

    def changed_by(self, work: Callable[[], Answer]) -> Answer:
        """Do something that may change the board; then whoever waits asks again, and all members get the board."""
        before = self.controller.board()
        answer = work()
        if self.controller.board() != before:
            for program, asked in list(self.waiting.items()):
                program.try_again(asked)
            for program in self.programs:
                program.watch()
        return answer

    def comes_first(self, time: float, number: int) -> bool:
        """Whether nothing else happens before that."""
        return not self._heap or (time, number) < self._heap[0][:2]

    def explored(self, agent: int, arm: int) -> float:
        """Return the reward of an explore pull, which is counted."""
        self.played.explore[agent, arm] += 1
        self._explored[arm] += 1
        return self._rewards.broadcast(arm, self._explored[arm] - 1)


def alike(game: Game) -> Iterator[range]:
    """Yield the agents in order, those that do the same together."""
    first = 0
    for agent in range(1, game.agents + 1):
        silent = not game.sharing.of(first)
        if (
            agent == game.agents
            or not silent
            or game.sharing.of(agent)
            or game.traits_of(agent) != game.traits_of(first)
        ):
            yield range(first, agent)
            first = agent


def key_of(seed: str) -> tuple[int, int]:
    """Return the key of the run in which ties have the order of a collaboration with this seed."""
    return run_key(tie_seed_of(bytes.fromhex(seed), []))


def _at_once(steps: Any, answer: Any) -> None:
    """Carry out effects that take no time."""
    reply = None
    while True:
        try:
            step = steps.send(reply)
        except StopIteration:
            return
        reply = answer(step) if isinstance(step, Send) else None

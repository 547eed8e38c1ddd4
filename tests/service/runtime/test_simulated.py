"""Thirty agents at once, with delays, repetitions, people who go away, lapses and a database that fails now and then.

All from one seed. And one agent at a time over HTTP: exactly the decisions of the reference simulator.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.api import Host, serving
from tests.support.faulty_store import Faulty, Remote, all_of

from partage.arms import bernoulli, reward_table
from partage.board import Board, Pull, Record
from partage.engine import rewards as tape
from partage.engine.reference import play_reference
from partage.game import Game
from partage.ledger import moves
from partage.ledger.events import Commit, Tell, decode
from partage.ledger.messages import CommitRun, Commits, NewAgent, NewCollaboration, Told
from partage.ledger.refusals import Refused
from partage.ledger.state import run_key
from partage.ledger.verify import verify
from partage.rules import make_rule
from partage.service.runtime import book as books
from partage.service.runtime import controller as controllers
from partage.service.runtime.book import Book
from partage.service.runtime.controller import Controller
from partage.service.store import StoreError
from partage.sharing import Sharing

AGENTS, STEPS = 30, 25
ARMS = ["a", "b", "c", "d"]


class Clock:
    """A clock that goes when it is told to, and now and then back."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


class Simulation:
    """What agents did, and what they were told."""

    def __init__(self, controller: Controller, book: Book, clock: Clock, seed: int) -> None:
        self.controller, self.book, self.clock = controller, book, clock
        self.random = random.Random(seed)
        self.told: dict[int, tuple[str, float, Told]] = {}  # by pull: what was acknowledged
        self.reported: dict[str, tuple[str, Commits, Told]] = {}
        self.outcomes: Counter[str] = Counter()

    async def attempt(self, what: str, request: Any) -> Any:
        """Make a request; now and then go away before it is answered. None if it was refused, failed or left."""
        task = asyncio.ensure_future(request)
        if self.random.random() < 0.1:
            for _ in range(self.random.randrange(4)):
                await asyncio.sleep(0)
            task.cancel()
        try:
            answer = await task
            self.outcomes[what] += 1
            return answer
        except asyncio.CancelledError:
            self.outcomes["left"] += 1
        except Refused as refused:
            self.outcomes[f"{what} {refused.status}"] += 1
        except StoreError:
            self.outcomes["failed"] += 1
        return None

    async def live(self, agent: str, index: int) -> None:
        """One agent's life."""
        mine: dict[int, float] = {}
        for step in range(STEPS):
            for _ in range(self.random.choice([0, 0, 1, 5])):
                await asyncio.sleep(0)
            self.clock.now += self.random.choice([0, 1, 10, 100, 300, -50])
            store = self.controller.store
            assert isinstance(store, Faulty)
            if self.random.random() < 0.03:
                store.faults.append(self.random.choice(["lost", "lost", "full", "unknown"]))
            deed = self.random.random()
            if deed < 0.35:
                for _ in range(self.random.choice([1, 1, 2])):
                    pull = await self.attempt("ask", self.controller.ask(self.book, agent, f"{agent} {step}", False))
                    if pull is not None and pull.share:
                        mine.setdefault(pull.pull, round(self.random.random(), 3))
            elif deed < 0.75 and mine:
                pull = self.random.choice(list(mine))
                for _ in range(self.random.choice([1, 1, 2])):
                    told = await self.attempt("tell", self.controller.tell(self.book, agent, pull, mine[pull]))
                    if told is not None:
                        assert self.told.setdefault(pull, (agent, mine[pull], told)) == (agent, mine[pull], told)
            elif deed < 0.85:
                board = await self.attempt("board", self.controller.fresh(self.book.id))
                if board is not None and board.state.target() is not None:
                    run = CommitRun(version=board.state.version, arm=ARMS[board.state.target()], pulls=2)
                    report = Commits(request=f"{agent} report {step}", runs=[run])
                    told = await self.attempt("commits", self.controller.commits(self.book, agent, report))
                    if told is not None:
                        self.reported[report.request] = (agent, report, told)
            elif deed < 0.9:
                shares = self.random.sample(ARMS, self.random.randrange(len(ARMS) + 1))
                await self.attempt("consent", self.controller.consent(self.book, agent, shares))
            elif deed < 0.93:
                pull = self.random.randrange(self.book.state.seq + 2)  # anybody's, or none
                if pull not in mine:
                    await self.attempt("meddle", self.controller.tell(self.book, agent, pull, 0.123456))
            elif deed < 0.95:
                await self.attempt("settlement", self.controller.settlement(self.book.id))
            elif deed < 0.955 and index % 3 == 0:
                await self.attempt("leave", self.controller.leave(self.book, agent))


@pytest.mark.parametrize("kind", [Faulty, Remote])
@pytest.mark.parametrize(("seed", "rule"), [(1, "balanced-etc"), (2, "balanced-glr"), (3, "kl-etc")])
def test_faults(kind: type[Faulty], seed: int, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(books, "clock", clock)
    monkeypatch.setattr(controllers, "clock", clock)
    monkeypatch.setattr(books, "SNAPSHOT_EVERY", 100)

    async def all_of_it() -> None:
        controller = Controller(kind(tmp_path / "partage.db"))
        await controller.start()
        new = NewCollaboration(name="Trial", arms=ARMS, horizon=200, rule=rule, claim_seconds=2, invites=AGENTS)
        id, codes = await controller.create("secret", new)
        book = await controller.book(id)
        joined = await asyncio.gather(
            *(
                controller.join(id, code, NewAgent(name=f"Agent {place}", shares=ARMS[: place % 5], request="join"))
                for place, code in enumerate(codes)
            )
        )
        agents = [agent for agent, _ in joined]
        assert sorted(agents) == sorted(f"a{number + 1}" for number in range(AGENTS))
        simulation = Simulation(controller, book, clock, seed)
        lives = (simulation.live(agent, place) for place, agent in enumerate(agents))
        await asyncio.wait_for(asyncio.gather(*lives), 60)
        controller.store.faults = []  # type: ignore[attr-defined]
        await check(simulation)
        await controller.stop()

    asyncio.run(all_of_it())


async def check(simulation: Simulation) -> None:
    """The board is the fold of the ledger, and what was acknowledged is on it, once."""
    controller = simulation.controller
    book = await controller.fresh(simulation.book.id)  # after what those left behind who went away
    fresh = Book.load(controller.store, book.id)
    assert fresh is not None
    assert all_of(book.state) == all_of(fresh.state)
    assert (book.head, book.board()) == (fresh.head, fresh.board())
    rows = controller.store.rows(book.id)
    events = [decode(row.body) for row in rows]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    tells = [event for event in events if isinstance(event, Tell)]
    assert max(Counter(event.pull for event in tells).values()) == 1
    assert 0.123456 not in {event.reward for event in tells}
    assert [event.version for event in tells] == list(range(1, len(tells) + 1))
    counts = Counter(event.arm for event in tells)
    assert list(book.state.board.counts) == [counts[arm] for arm in range(len(ARMS))]
    by_pull = {event.pull: event for event in tells}
    heads = {row.seq: row.head for row in rows}
    for pull, (agent, reward, told) in simulation.told.items():
        event = by_pull[pull]
        assert (event.agent, event.reward, event.version, heads[event.seq]) == (
            agent,
            reward,
            told.version,
            told.head,
        )
    reports = Counter(event.request for event in events if isinstance(event, Commit) and event.request)
    assert not reports or max(reports.values()) == 1
    for request in simulation.reported:
        assert reports[request] == 1
    # Nobody is beyond her horizon, and no claim is older than it may be once time has passed.
    simulation.clock.now += 10_000
    assert all(member.used <= book.state.config.horizon for member in book.state.members.values())
    await controller._put(book, moves.lapse)
    assert book.state.claims == {}
    assert list(book.state.board.claims) == [0] * len(ARMS)
    # Asked again, the same answers.
    for pull, (agent, reward, told) in list(simulation.told.items())[::7]:
        assert await controller.tell(book, agent, pull, reward) == told
    await controller.close(book.id)
    lines = [part async for part in await controller.ledger(book.id, None)]
    found = verify(b"".join(lines).splitlines(keepends=True))
    assert found.ok, found.problem
    # And enough happened for all this to mean something.
    outcomes = simulation.outcomes
    assert min(outcomes["ask"], outcomes["tell"]) > 50, outcomes
    assert min(outcomes["left"], outcomes["failed"], outcomes["meddle 403"] + outcomes["meddle 404"]) > 0, outcomes


# the reference


class Noted:
    """A rule that notes what it decides."""

    private = False

    def __init__(self, name: str) -> None:
        self.rule: Any = make_rule(name)
        self.name = name
        self.decisions: list[tuple[int, bool]] = []

    def decide(self, board: Board, shares: Any, own: Record) -> Pull:
        decided: Pull = self.rule.decide(board, shares, own)
        self.decisions.append((int(decided[0]), bool(decided[1])))
        return decided

    def revise(self, board: Board) -> None:
        self.rule.revise(board)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on SQLite."""
    with serving(f"sqlite:///{tmp_path_factory.mktemp('reference')}/partage.db") as server:
        yield server.url


@pytest.mark.parametrize("rule", ["balanced-etc", "balanced-glr"])
def test_one_at_a_time_it_decides_as_the_reference(url: str, rule: str) -> None:
    sharing = [[0, 1], [1, 2], [0]]
    game = Game(bernoulli([0.95, 0.5, 0.05]), Sharing.lists(sharing, arms=3), horizon=60)
    names = ["x", "y", "z"]
    host = Host(url, arms=names, horizon=game.horizon, rule=rule)
    key = run_key(host.ok("GET")["tie_seed"])
    noted = Noted(rule)
    tally = play_reference(game, noted, key)

    rewards = tape.Rewards(key, reward_table(game.fixed_arms()))
    members = [host.join(*(names[arm] for arm in shares)) for shares in sharing]
    decisions, told = [], [0, 0, 0]
    for _ in range(game.horizon):
        for member in members:
            pull = member.ask()
            arm = names.index(pull["arm"])
            decisions.append((arm, pull["share"]))
            assert pull["version"] == sum(told)
            if pull["share"]:
                member.tell(pull["pull"], rewards.broadcast(arm, told[arm]))
                told[arm] += 1
    assert decisions == noted.decisions
    board = host.board()
    assert [arm["broadcasts"] for arm in board["arms"]] == tally.broadcasts.tolist()
    assert [arm["active"] for arm in board["arms"]] == tally.active.tolist()
    np.testing.assert_array_equal([arm["sum"] for arm in board["arms"]], tally.sums)
    pulls = [(row["explore"], row["commit"]) for row in host.ok("GET", "/agents")]
    assert pulls == list(zip(tally.explore.sum(1).tolist(), tally.commit.sum(1).tolist(), strict=True))
    assert {share for _, share in decisions} == {True, False}
    for member in members:
        member.refused(409, "POST", "/ask", {})

"""Thirty agents at once: delays, repetitions, cut connections, lapses, a jumping clock and a database that fails.

Everything follows from one seed; a failure prints it. And one agent at a time over HTTP makes exactly the decisions
of the reference simulator.
"""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from tests.support.api import NAMED, Host, serving
from tests.support.faulty_store import Faulty, Remote, all_of
from tests.support.simulation import CutOff, Machine

import partage
from partage.arms import bernoulli, reward_table
from partage.board import Board, Pull, Record
from partage.engine import rewards as tape
from partage.engine.reference import play_reference
from partage.game import Game
from partage.ledger.events import Commit, Tell, decode
from partage.ledger.messages import CommitRun, Commits, NewAgent, NewCollaboration, Told
from partage.ledger.refusals import Refused
from partage.ledger.verify import verify
from partage.rules import live_rules, make_rule
from partage.service.runtime.book import Book
from partage.service.runtime.controller import Controller
from partage.service.store import StoreError
from partage.sharing import Sharing
from partage.tape import run_key

AGENTS, STEPS = 30, 25
ARMS = ["a", "b", "c", "d"]
RULES = ["balanced-etc", "balanced-glr", "kl-etc", "shared-imed"]
LIE = 0.123456  # the reward that meddlers report, which must never be on the board


class Agents:
    """What the agents did, and what was acknowledged."""

    def __init__(self, machine: Machine, controllers: list[Controller], id: str) -> None:
        self.machine, self.controllers, self.id = machine, controllers, id
        self.random = machine.random
        self.told: dict[int, tuple[str, float, Told]] = {}  # by pull
        self.reported: dict[str, tuple[str, Commits, Told]] = {}
        self.outcomes: Counter[str] = Counter()

    async def attempt(self, what: str, request: Callable[[Controller, Book], Awaitable[Any]]) -> Any:
        """Make a request to any of the processes; None if it was refused, failed or cut off."""
        controller = self.random.choice(self.controllers)
        book = controller.library.books[self.id]
        try:
            answer = await self.machine.call(lambda: request(controller, book))
        except CutOff:
            self.outcomes["cut off"] += 1
        except Refused as refused:
            self.outcomes[f"{what} {refused.status}"] += 1
        except StoreError:
            self.outcomes["failed"] += 1
        else:
            self.outcomes[what] += 1
            return answer
        return None

    async def live(self, agent: str, index: int) -> None:
        """Live one agent's life."""
        claims: dict[int, float] = {}  # pulls that it knows of, with their rewards
        for step in range(STEPS):
            await asyncio.sleep(self.machine.delay(1.0))
            self.machine.skew += self.random.choice([0, 0, 0, 300, -50])
            store = self.controllers[0].store
            assert isinstance(store, Faulty)
            if self.random.random() < 0.03:
                store.faults.append(self.random.choice(["lost", "lost", "full", "unknown"]))
            deed = self.random.random()
            if deed < 0.35:
                await self.ask(agent, f"{agent} {step}", claims)
            elif deed < 0.75 and claims:
                await self.tell(agent, self.random.choice(list(claims)), claims)
            elif deed < 0.85:
                await self.report(agent, f"{agent} report {step}")
            elif deed < 0.9:
                shares = self.random.sample(ARMS, self.random.randrange(len(ARMS) + 1))
                await self.attempt("consent", lambda c, book, shares=shares: c.consent(book, agent, shares))
            elif deed < 0.93:
                await self.meddle(agent)
            elif deed < 0.95:
                await self.attempt("settlement", lambda c, book: c.settlements.view(book.id))
            elif deed < 0.955 and index % 3 == 0:
                await self.attempt("leave", lambda c, book: c.leave(book, agent))

    async def ask(self, agent: str, request: str, claims: dict[int, float]) -> None:
        """Ask once, or twice with the same request."""
        for _ in range(self.random.choice([1, 1, 2])):
            pull = await self.attempt("ask", lambda c, book: c.ask(book, agent, request, False))
            if pull is not None and pull.share:
                claims.setdefault(pull.pull, round(self.random.random(), 3))

    async def tell(self, agent: str, pull: int, claims: dict[int, float]) -> None:
        """Report a reward once or twice; the answer is always the same."""
        for _ in range(self.random.choice([1, 1, 2])):
            told = await self.attempt("tell", lambda c, book: c.tell(book, agent, pull, claims[pull]))
            if told is not None:
                told = structs.replace(told, receipt=None)
                assert self.told.setdefault(pull, (agent, claims[pull], told)) == (agent, claims[pull], told)

    async def report(self, agent: str, request: str) -> None:
        """Report commit pulls on the board as it is."""
        book = await self.attempt("board", lambda c, book: c.library.fresh(book.id))
        if book is not None and book.state.target() is not None:
            run = CommitRun(version=book.state.version, arm=ARMS[book.state.target()], pulls=2)
            report = Commits(request=request, runs=[run])
            told = await self.attempt("commits", lambda c, book: c.commits(book, agent, report))
            if told is not None:
                self.reported[request] = (agent, report, told)

    async def meddle(self, agent: str) -> None:
        """Report a reward for another agent's pull, or for one that does not exist."""
        events = [decode(row.body) for row in self.controllers[0].store.rows(self.id)]
        others = [event.seq for event in events if getattr(event, "agent", agent) != agent]
        pull = self.random.choice([*others, 10**9])
        await self.attempt("meddle", lambda c, book: c.tell(book, agent, pull, LIE))

    async def watch(self, controller: Controller) -> None:
        """Watch the board: it never goes back, and shows only what is on disk."""
        version = 0
        async for book in controller.watch(self.id):
            if book is not None:
                assert book.state.version >= version
                version = book.state.version
                row = controller.store.row(self.id, book.state.seq)
                assert row is not None
                assert row.head == book.head
                self.outcomes["watched"] += 1


async def scenario(machine: Machine, store: Faulty, rule: str) -> bytes:
    """Play a collaboration on one process, or on two that share a database; return its ledger."""
    controllers = [Controller(store, "token", machine.system(), snapshot_every=100) for _ in range(1 + store.several)]
    for controller in controllers:
        controller.start()
    first = controllers[0]
    config = {"rule": rule, "claim_seconds": 2, "invites": AGENTS, **NAMED}
    new = NewCollaboration(name="Trial", arms=ARMS, horizon=200, **config)
    id, codes = await first.create("secret", new)
    for controller in controllers:
        await controller.library.book(id)
    joined = await asyncio.gather(
        *(
            controllers[place % len(controllers)].join(
                id, code, NewAgent(name=f"Agent {place}", shares=ARMS[: place % 5], request="join")
            )
            for place, code in enumerate(codes)
        )
    )
    names = [agent for agent, _ in joined]
    assert sorted(names) == sorted(f"a{number + 1}" for number in range(AGENTS))
    agents = Agents(machine, controllers, id)
    watching = [asyncio.ensure_future(agents.watch(controller)) for controller in controllers]
    await asyncio.gather(*(agents.live(agent, place) for place, agent in enumerate(names)))
    store.faults.clear()
    await asyncio.sleep(10)  # requests that were cut off are over, and every claim has lapsed
    for controller in controllers:
        await check(agents, controller)
    await close(agents, first)
    lines = [part async for part in await first.ledger(id, None)]
    for controller in controllers:
        await controller.stop()
    await asyncio.gather(*watching)
    return b"".join(lines)


async def check(agents: Agents, controller: Controller) -> None:
    """The board is the fold of the ledger, and everything acknowledged is on it, once."""
    book = await controller.library.fresh(agents.id)  # after what cut-off requests left behind
    fresh = Book.load(controller.store, book.id)
    assert fresh is not None
    assert all_of(book.state) == all_of(fresh.state)
    assert (book.head, book.board()) == (fresh.head, fresh.board())
    rows = controller.store.rows(book.id)
    events = [decode(row.body) for row in rows]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    tells = [event for event in events if isinstance(event, Tell)]
    assert max(Counter(event.pull for event in tells).values()) == 1
    assert LIE not in {event.reward for event in tells}
    assert [event.version for event in tells] == list(range(1, len(tells) + 1))
    counts = Counter(event.arm for event in tells)
    assert list(book.state.board.counts) == [counts[arm] for arm in range(len(ARMS))]
    by_pull = {event.pull: event for event in tells}
    heads = {row.seq: row.head for row in rows}
    for pull, (agent, reward, told) in agents.told.items():
        event = by_pull[pull]
        found = (event.agent, event.reward, event.version, heads[event.seq])
        assert found == (agent, reward, told.version, told.head)
    reports = Counter(event.request for event in events if isinstance(event, Commit) and event.request)
    assert not reports or max(reports.values()) == 1
    for request in agents.reported:
        assert reports[request] == 1
    assert all(member.used <= book.state.config.horizon for member in book.state.members.values())


async def close(agents: Agents, controller: Controller) -> None:
    """By now no claim is open; repeated reports get the same answers; the closed ledger verifies."""
    book = await controller.library.fresh(agents.id)
    assert book.state.claims == {}
    assert list(book.state.board.claims) == [0] * len(ARMS)
    for pull, (agent, reward, told) in list(agents.told.items())[::7]:
        again = await controller.tell(book, agent, pull, reward)
        assert structs.replace(again, receipt=None) == told
    await controller.settlements.close(book.id)
    lines = [part async for part in await controller.ledger(book.id, None)]
    found = verify(b"".join(lines).splitlines(keepends=True))
    assert found.ok, found.problem
    # And enough happened for all this to mean something.
    outcomes = agents.outcomes
    assert min(outcomes["ask"], outcomes["tell"]) > 50, outcomes
    assert outcomes["meddle 403"] + outcomes["meddle 404"] > 0, outcomes
    assert min(outcomes["cut off"], outcomes["failed"], outcomes["watched"]) > 0, outcomes


def played(seed: int, kind: type[Faulty], path: Path) -> bytes:
    """Play the scenario of a seed; return its ledger."""
    machine = Machine(seed)
    return machine.run(scenario(machine, kind(path, durable=False), RULES[seed % len(RULES)]))


@pytest.mark.parametrize("kind", [Faulty, Remote])
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_faults(seed: int, kind: type[Faulty], tmp_path: Path) -> None:
    ledger = played(seed, kind, tmp_path / "partage.db")
    assert ledger == played(seed, kind, tmp_path / "again.db")  # bit for bit, with ids, salts and times


@pytest.mark.extra
@pytest.mark.parametrize("kind", [Faulty, Remote])
@pytest.mark.parametrize("seed", range(100, 200))
def test_faults_of_many_seeds(seed: int, kind: type[Faulty], tmp_path: Path) -> None:
    assert played(seed, kind, tmp_path / "partage.db")


@pytest.mark.extra
def test_a_seed_plays_the_same_in_every_process(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys; from tests.service.runtime.test_simulated import Remote, played; "
        "sys.stdout.buffer.write(played(5, Remote, pathlib.Path(sys.argv[1])))"
    )
    folders = [str(Path(partage.__file__).parents[1]), str(Path(__file__).parents[3])]
    ledgers = set()
    for order in ("1", "2"):  # of sets of texts, which differs between processes
        env = {**os.environ, "PYTHONHASHSEED": order, "PYTHONPATH": os.pathsep.join(folders)}
        command = [sys.executable, "-c", program, str(tmp_path / f"{order}.db")]
        ledgers.add(subprocess.run(command, env=env, capture_output=True, check=True).stdout)
    assert len(ledgers) == 1


def test_a_failure_names_its_seed() -> None:
    async def failing() -> None:
        await asyncio.sleep(10**6)

    with pytest.raises(TimeoutError) as failure:
        Machine(4711).run(failing(), at_most=10)
    assert "4711" in failure.value.__notes__[0]


def test_a_simulation_that_is_stuck_ends() -> None:
    async def stuck() -> None:
        await asyncio.get_running_loop().create_future()

    machine = Machine(1)
    with pytest.raises(TimeoutError):
        machine.run(stuck())
    assert machine.loop.time() >= 3600


# the reference


class Noted:
    """A rule that notes what it decides."""

    private = False

    def __init__(self, name: str, **parameters: Any) -> None:
        self.rule: Any = make_rule(name, **parameters)
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


VARIANTS: list[tuple[str, dict[str, Any]]] = [(rule, {}) for rule in live_rules()]
VARIANTS += [("balanced-glr", {"evidence": "betting"}), ("shared-imed", {"lead": 1.5, "clock": 0.3})]


@pytest.mark.parametrize(("rule", "parameters"), VARIANTS)
def test_one_at_a_time_it_decides_as_the_reference(url: str, rule: str, parameters: dict[str, Any]) -> None:
    sharing = [[0, 1], [1, 2], [0], []]  # the last one only commits
    game = Game(bernoulli([0.95, 0.5, 0.05]), Sharing.lists(sharing, arms=3), horizon=60)
    names = ["x", "y", "z"]
    host = Host(url, arms=names, horizon=game.horizon, rule=rule, parameters=parameters)
    key = np.array(run_key(host.ok("GET")["tie_seed"]), np.uint64)
    noted = Noted(rule, **parameters)
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

"""Agents that work while something crashes, what they were answered, and whether the ledger has it."""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from tests.support.api import Host, Speaker
from tests.support.patience import PATIENCE

from partage.client import Agent, Closed, Refused
from partage.ledger.verify import verify

ARMS = ("a", "b", "c")
CHANGES = ("POST", "PATCH", "DELETE")


class Answered(NamedTuple):
    """A request that was acknowledged or refused: what the ledger has of it, and what `Agents.mark` returned then."""

    key: tuple[Any, ...]
    status: int
    mark: int


class Crash(BaseException):
    """An agent's program ends in the middle of a request."""


class Wire(httpx.BaseTransport):
    """The network of one agent: it remembers what was answered, and may let the agent crash."""

    def __init__(self, player: "Player") -> None:
        self._player = player
        self._network = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        player, agents = self._player, self._player.agents
        request.url = request.url.copy_with(port=httpx.URL(agents.route()).port)
        if request.method not in CHANGES:
            return self._network.handle_request(request)
        if player.crash == "before":
            player.crash = ""
            raise Crash
        try:
            response = self._network.handle_request(request)
            response.read()
        except httpx.TransportError:
            agents.note(player.id, request, None)
            raise
        agents.note(player.id, request, response)
        if player.crash == "after":
            player.crash = ""
            raise Crash
        return response

    def close(self) -> None:
        self._network.close()


class Player:
    """One agent, on a thread: it works until told to stop, and resumes from its state file when it crashed."""

    def __init__(self, agents: "Agents", number: int, invite: str) -> None:
        self.agents, self.number, self.invite = agents, number, invite
        self.state = agents.folder / f"agent-{number}.json"
        self.random = random.Random(number)
        self.id = ""
        self.crash = ""  # "before" or "after" the next request reaches the server
        self.crashes = 0
        self.leaves = False  # whether it leaves instead of its next pull
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=f"agent {number}", daemon=True)

    def token(self) -> str:
        """Return the agent's token, from its state file."""
        return str(json.loads(self.state.read_bytes())["token"])

    def _run(self) -> None:
        try:
            while not self.agents.over.is_set() and not self._live():
                pass
        except Closed:
            pass
        except Refused as refused:  # of a change of consent, which says the same
            if refused.code != "closed":
                self.error = refused
        except BaseException as error:  # the check raises it
            self.error = error

    def _live(self) -> bool:
        """Join or resume, and work until the end or a crash; return whether the agent left."""
        agents, shares = self.agents, ARMS[: 1 + self.number % len(ARMS)]
        agent: Agent | None = None
        try:
            agent = Agent.join(
                agents.url,
                agents.collaboration,
                self.invite,
                f"Agent {self.number} of {agents.folder.name}",
                shares,
                state=self.state,
                transport=Wire(self),
                patience=PATIENCE,
            )
            self.id = agent.id
            turn = 0
            while not agents.over.is_set():
                turn += 1
                if self.leaves:
                    agent.flush()
                    agent.leave()
                    return True
                pull = agent.ask()
                agent.tell(pull, self.random.randrange(400, 600) / 1000)  # much the same, so exploration goes on
                if turn % 5 == self.number % 5:
                    agent.flush()
                if turn % 40 == 20:
                    agent.share(shares[:1])
                    agent.share(shares)
            agent.flush()
        except Crash:
            self.crashes += 1
        finally:
            if agent is not None:
                agent._disconnect()  # what a process that ends does, without the last reports of `close`
        return False


class Agents:
    """The agents of one collaboration, and all that they were answered.

    Parameters
    ----------
    host
        The operator, with the collaboration.
    folder
        For the state files.
    mark
        Called after each answer; what it returns is kept with the answer.
    route
        Returns the address of the server that gets the next request.
    """

    def __init__(
        self,
        host: Host,
        folder: Path,
        count: int = 8,
        mark: Callable[[], int] = lambda: 0,
        route: Callable[[], str] | None = None,
    ) -> None:
        self.host, self.folder, self.mark = host, folder, mark
        self.url, self.collaboration, self.route = host.url, host.collaboration, route or (lambda: self.url)
        self.answered: list[Answered] = []
        self.unsure: set[tuple[Any, ...]] = set()  # rows of requests that were not answered at least once
        self.over = threading.Event()
        self.players: list[Player] = []
        for _ in range(count):
            self.add()

    def add(self) -> None:
        """Let another agent join and work."""
        player = Player(self, len(self.players), self.host.invite())
        self.players.append(player)
        player.thread.start()

    def note(self, agent: str, request: httpx.Request, response: httpx.Response | None) -> None:
        """Remember an answer, or that there was none, unless it stands for no row."""
        key = _key(agent, request, response)
        if key is None:
            return
        if response is None or response.status_code >= 500 or response.status_code == 429:
            self.unsure.add(key)
        else:
            self.answered.append(Answered(key, response.status_code, self.mark()))

    def wait(self, more: int) -> None:
        """Wait until this many more requests are answered."""
        goal = len(self.answered) + more
        self.wait_for(lambda: len(self.answered) >= goal, f"{more} more answers")

    def wait_for(self, found: Callable[[], bool], what: str) -> None:
        """Wait until something is so, as long as all agents work."""
        until = time.monotonic() + PATIENCE
        while not found():
            for player in self.players:
                if player.error is not None:
                    raise AssertionError(f"agent {player.number} stopped") from player.error
            assert time.monotonic() < until, f"no {what} in {PATIENCE} seconds; {len(self.answered)} answers"
            time.sleep(0.002)

    def crash_some(self, source: random.Random) -> None:
        """Let some of the agents crash at their next request."""
        for player in self.players:
            player.crash = source.choice(("", "", "before", "after"))

    def stop(self) -> None:
        """Let all agents finish, and wait for them."""
        self.over.set()
        for player in self.players:
            player.thread.join(2 * PATIENCE)
            assert not player.thread.is_alive(), f"agent {player.number} hangs"
            if player.error is not None:
                raise AssertionError(f"agent {player.number} stopped") from player.error


class Found(NamedTuple):
    """What a check found: numbers of rows, of requests acknowledged and refused, and the keys of what is wrong."""

    rows: int = 0
    acknowledged: int = 0
    refused: int = 0
    lost: tuple[Any, ...] = ()
    doubled: tuple[Any, ...] = ()
    refused_but_there: tuple[Any, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing was lost or doubled, or is there although it was refused."""
        return not (self.lost or self.doubled or self.refused_but_there)


def check(operator: Speaker, agents: Agents) -> Found:
    """Read and verify the ledger, and compare it with all that was answered before."""
    answered = list(agents.answered)
    answer = insist(operator, "GET", "/ledger")
    assert answer.status_code == 200, answer.text
    return compare(answer.content.splitlines(keepends=True), answered, agents.unsure)


def insist(speaker: Speaker, method: str, path: str, body: Any = None) -> httpx.Response:
    """Make a call, again and again as long as the database does not answer."""
    until = time.monotonic() + PATIENCE
    while (answer := speaker.call(method, path, body)).status_code == 503:
        assert time.monotonic() < until, answer.text
        time.sleep(0.1)
    return answer


def compare(
    lines: list[bytes], answered: list[Answered], unsure: AbstractSet[tuple[Any, ...]] = frozenset()
) -> Found:
    """Verify a ledger's lines, and compare them with what was answered.

    A request whose first answer got lost may be refused when it is repeated, and be there: `unsure` has its key.
    """
    verified = verify(lines)
    assert verified.ok, verified.problem
    rows = [json.loads(line)["row"] for line in lines]
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    there = Counter(key for row in rows for key in keys_of(row))
    acknowledged = [one for one in answered if one.status < 300]
    refused = [one for one in answered if one.status >= 400]
    wanted = {one.key for one in acknowledged}
    return Found(
        rows=len(rows),
        acknowledged=len(acknowledged),
        refused=len(refused),
        lost=tuple(wanted - there.keys()),
        doubled=tuple(key for key, count in there.items() if count > 1),
        refused_but_there=tuple({one.key for one in refused} & there.keys() - wanted - unsure),
    )


def keys_of(row: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return what only this row may have."""
    kind, agent = row["kind"], row.get("agent")
    keys: list[tuple[Any, ...]] = []
    if kind == "tell":
        keys += [("tell", agent, row["pull"], row["reward"]), ("pull", row["pull"])]
    elif kind == "join":
        keys += [("join", agent), ("invite", row["invite"])]
    elif kind == "claim":
        keys += [("claim", agent, row["seq"])]
    elif kind in ("create", "leave", "close", "reveal", "draw", "order"):
        keys += [(kind, agent)]
    if row.get("request") is not None:
        keys += [("request", agent, row["request"])]
    return keys


def _key(agent: str, request: httpx.Request, response: httpx.Response | None) -> tuple[Any, ...] | None:
    """Return what the row of a request has, or None if there is none."""
    body = json.loads(request.content) if request.content else {}
    what = request.url.path.rpartition("/")[2]
    if request.method == "DELETE":
        return ("leave", agent)
    if what == "tell":
        return ("tell", agent, body["pull"], body["reward"])
    if (
        what == "ask"
    ):  # the open claim is returned again, whatever the request's id, so only what was handed out counts
        if response is None or response.status_code != 200:
            return None
        return ("claim", agent, response.json()["pull"])
    if what == "agents" and response is not None and response.is_success:
        return ("join", response.json()["agent"])
    if body.get("request") is not None:
        return ("request", agent, body["request"])
    return None

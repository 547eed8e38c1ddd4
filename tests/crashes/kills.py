"""kill -9 of the server and of PostgreSQL under load: what was acknowledged stays, and agents go on.

Moments are spread over random ones, those at which the write-ahead log has just been written to, and, with SQLite,
the middle of a write (see `tests.crashes.disk`).
"""

import random
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from tests.crashes import disk
from tests.crashes.load import Agents, Found, check, insist
from tests.support.api import NAMED, OPERATOR, Host, Speaker, hang_up
from tests.support.patience import PATIENCE
from tests.support.postgres import SUPERUSER, Cluster
from tests.support.server import Server

MORE = 12  # answers between two kills, at least
LOOK = 0.0005  # seconds between two looks at the write-ahead log
ROOT = Path(__file__).parents[2]


@dataclass
class Killed:
    """What several kills left behind."""

    kills: Counter[str] = field(default_factory=Counter)
    crashes: int = 0
    found: Found = field(default_factory=Found)
    seconds: float = 0.0


def kill_server(folder: Path, kills: int, seed: int = 1) -> Killed:
    """Kill a server on SQLite this many times."""
    source, killed, began = random.Random(seed), Killed(), time.monotonic()
    layered = disk.unavailable() is None
    faults = disk.Faults(folder / "fault")
    database = folder / "partage.db"
    port = free_port()

    def start() -> Server:
        given = {"DISK_FAULT": str(faults.path), "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"} if layered else {}
        module = "tests.crashes.disk" if layered else "partage.cli"
        return Server(f"sqlite:///{database}", env=OPERATOR | given, port=port, module=module)

    server = start()
    try:
        with working(server.url, folder, killed) as (operator, agents):
            for number in range(kills):
                agents.wait(source.randrange(MORE, 3 * MORE))
                agents.crash_some(source)
                moment = ("at random", "as the log is written", "in the middle of a write")[number % (2 + layered)]
                if moment == "in the middle of a write":
                    faults.set(disk.Fault(what="kill", after=source.randrange(40)))
                    agents.wait_for(server.ended, "end of the server")
                    faults.clear()
                elif moment == "as the log is written":
                    wait_for_change(Path(f"{database}-wal"), agents)
                else:
                    time.sleep(source.random() / 10)
                server.kill()
                hang_up(server.url)
                killed.kills[moment] += 1
                server = start()
                refuse(operator, agents, source)
                killed.found = check(operator, agents)
    finally:
        server.kill()
        hang_up(server.url)
    killed.seconds = time.monotonic() - began
    return killed


def kill_postgres(cluster: Cluster, url: str, folder: Path, kills: int, seed: int = 1) -> Killed:
    """Kill PostgreSQL under a server this many times: one process of it, its parent, or all."""
    source, killed, began = random.Random(seed), Killed(), time.monotonic()
    server = Server(url, env=OPERATOR)

    def backends() -> list[int]:
        return cluster.backends(url.partition("?")[0].rpartition("/")[2])

    try:
        with working(server.url, folder, killed) as (operator, agents):
            for number in range(kills):
                agents.wait(source.randrange(MORE, 3 * MORE))
                agents.crash_some(source)
                agents.wait_for(lambda: bool(backends()), "connection to the database")
                if number % 2:
                    wait_for_change(cluster.write_ahead_log, agents)
                else:
                    time.sleep(source.random() / 10)
                target = ("one backend", "the parent", "all processes")[number % 3]
                if target == "one backend":  # the parent then ends the others and recovers by itself
                    cluster.kill(*backends()[:1])
                else:
                    cluster.kill(*(cluster.processes() if target == "all processes" else [cluster.parent]))
                    cluster.start()
                killed.kills[target] += 1
                wait_for_database(cluster, agents)
                refuse(operator, agents, source)
                killed.found = check(operator, agents)
    finally:
        server.kill()
        hang_up(server.url)
    killed.seconds = time.monotonic() - began
    return killed


@contextmanager
def working(url: str, folder: Path, killed: Killed) -> Iterator[tuple[Speaker, Agents]]:
    """Let agents work; at the end let them finish, close the collaboration, and check everything once more."""
    host = Host(url, horizon=10**6, arms=["a", "b", "c"], claim_seconds=600, invites=20, **NAMED)
    agents = Agents(host, folder)
    try:
        yield host, agents
        agents.wait(MORE)
    finally:
        agents.over.set()
    agents.stop()
    assert insist(host, "POST", "/close").is_success
    killed.crashes = sum(player.crashes for player in agents.players)
    killed.found = check(host, agents)
    settlement = host.ok("GET", "/settlement")
    assert settlement["closed"], settlement


def refuse(operator: Speaker, agents: Agents, source: random.Random) -> None:
    """Make requests that must be refused, and remember them."""
    told = [one.key for one in list(agents.answered) if one.key[0] == "tell" and one.status < 300]
    tokens = {player.id: player.token() for player in agents.players if player.id}
    for _, agent, pull, reward in source.sample(told, min(3, len(told))):
        member = Speaker(operator.url, tokens[agent], operator.collaboration)
        response = insist(member, "POST", "/tell", {"pull": pull, "reward": (reward + 0.25) % 1})
        assert response.status_code == 409, response.text
        agents.note(agent, response.request, response)


def wait_for_change(path: Path, agents: Agents) -> None:
    """Wait until a file, or one in a folder, is written to."""

    def written() -> int:
        files = path.iterdir() if path.is_dir() else [path]
        try:
            return max((file.stat().st_mtime_ns for file in files), default=0)
        except FileNotFoundError:  # removed meanwhile
            return 0

    before, until = written(), time.monotonic() + PATIENCE
    while written() == before:
        assert time.monotonic() < until, "the write-ahead log does not change"
        time.sleep(LOOK)


def wait_for_database(cluster: Cluster, agents: Agents) -> None:
    """Wait until PostgreSQL has recovered."""

    def answers() -> bool:
        try:
            with psycopg.connect(host=str(cluster.folder), user=SUPERUSER, dbname="postgres", connect_timeout=10):
                return True
        except psycopg.OperationalError:
            time.sleep(0.1)
            return False

    agents.wait_for(answers, "answer of PostgreSQL")


def free_port() -> int:
    """Return a port that nobody uses, and that no outgoing connection gets while the server is down."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port found")

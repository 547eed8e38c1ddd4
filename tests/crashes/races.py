"""Four processes on one PostgreSQL race, and single ones are killed meanwhile: they agree on one ledger.

Agents send each request to any of the processes: they join, ask, tell, report commits, change consent and leave. In
the end all processes close the collaboration at the same moment.
"""

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
from tests.crashes.kills import free_port
from tests.crashes.load import Agents, Found, check, insist
from tests.support.api import NAMED, OPERATOR, TOKEN, Host, Speaker, hang_up
from tests.support.patience import PATIENCE
from tests.support.postgres import children, command_line, kill
from tests.support.server import Server

PROCESSES = 4
AGENTS = 12
BETWEEN = 2.0  # seconds between two kills


@dataclass
class Raced:
    """What a race left behind."""

    kills: int
    joined: int
    left: int
    closes: int
    found: Found
    seconds: float


def race_servers(url: str, folder: Path, seconds: float, seed: int = 1) -> Raced:
    """Let four servers race, and kill one after another."""
    source, ports = random.Random(seed), [free_port() for _ in range(PROCESSES)]
    servers = [Server(url, env=OPERATOR, port=port) for port in ports]

    def kill_one() -> None:
        place = source.randrange(PROCESSES)
        servers[place].kill()
        hang_up(servers[place].url)
        servers[place] = Server(url, env=OPERATOR, port=ports[place])

    try:
        return _race([server.url for server in servers], kill_one, folder, seconds, source)
    finally:
        for server in servers:
            server.kill()
            hang_up(server.url)


def race_workers(url: str, folder: Path, seconds: float, seed: int = 1) -> Raced:
    """Let the four workers of one server race, and kill one after another; the server replaces them."""
    source, server = random.Random(seed), Server(url, env=OPERATOR, workers=PROCESSES)
    killed = 0

    def started() -> int:
        return server.output.count('"message": "started"')

    def kill_one() -> None:
        nonlocal killed
        workers = [id for id in children(server.pid) if b"spawn_main" in command_line(id)]
        kill(source.choice(workers))
        killed += 1
        until = time.monotonic() + PATIENCE
        while started() < PROCESSES + killed:
            assert time.monotonic() < until, "the server does not replace a worker"
            time.sleep(0.02)

    try:
        return _race([server.url] * PROCESSES, kill_one, folder, seconds, source)
    finally:
        server.kill()
        hang_up(server.url)


def _race(
    urls: list[str], kill_one: Callable[[], None], folder: Path, seconds: float, source: random.Random
) -> Raced:
    began, kills = time.monotonic(), 0
    host = Host(urls[0], horizon=10**6, arms=["a", "b", "c"], claim_seconds=600, invites=50, **NAMED)
    agents = Agents(host, folder, AGENTS, route=lambda: random.choice(urls))
    try:
        until = began + seconds
        while time.monotonic() < until:
            agents.wait(20)
            kill_one()
            kills += 1
            source.choice(agents.players).leaves = True
            agents.add()
            agents.crash_some(source)
            time.sleep(max(0.0, min(BETWEEN, until - time.monotonic())))
        agents.wait(20)
        with ThreadPoolExecutor(PROCESSES) as pool:  # while the agents work
            closed = list(pool.map(lambda url: _close(url, host.collaboration), urls))
    finally:
        agents.over.set()
    agents.stop()
    assert all(settlement == closed[0] for settlement in closed)
    copies = []
    for url in urls:
        with httpx.Client(base_url=url, headers=host.headers, timeout=PATIENCE) as fresh:  # perhaps another worker
            copies.append([fresh.get(host.path(path)).content for path in ("/ledger", "/board", "/settlement")])
    assert all(copy == copies[0] for copy in copies), "the processes do not agree"
    found = check(host, agents)
    rows = [line["row"] for line in host.ledger()]
    kinds = [row["kind"] for row in rows]
    return Raced(
        kills, kinds.count("join"), kinds.count("leave"), kinds.count("close"), found, time.monotonic() - began
    )


def _close(url: str, collaboration: str) -> object:
    """Close a collaboration; a server that is busy with the others is asked again."""
    answer = insist(Speaker(url, TOKEN, collaboration), "POST", "/close")
    assert answer.is_success, answer.text
    return answer.json()

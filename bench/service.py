"""Speed of the live controller over loopback, as ratios within one run: part of `make bench`."""

import asyncio
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import httpx
from bench.rows import Row
from litestar import post
from tests.support.postgres import Cluster, binaries

from partage.client import Agent, AsyncAgent
from partage.service.serve import application

ABOUT = (
    "Asks and tells of 64 members over loopback, each stored durably before it is answered. Every figure is a "
    "waiting time or a rate of the whole machine, on which server and load share the cores. Rates that are "
    "compared are the better of two measurements, taken in turn; the others are measured once. Only comparisons, "
    "the start and local pulls have goals: the other figures depend on the machine and its disk."
)
AGENTS, ARMS = 64, 10
BUSY = 0.2  # seconds of processor time in a second, above which a server that nobody asks is not ready
TOKEN = "the token of a bench"


@post("/empty", status_code=200)
async def empty(data: dict[str, str]) -> dict[str, str]:
    """Do nothing: the rate of empty JSON POSTs is the baseline."""
    return {}


def with_empty():
    """Return the server's application with one more path."""
    app = application()
    app.register(empty)
    return app


@contextlib.contextmanager
def server(database, workers=1):
    """Run a server process on a free port; yield a client, the port and the seconds from start to first answer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = (
        "import uvicorn; uvicorn.run('bench.service:with_empty', factory=True, access_log=False, "
        f"log_level='warning', loop='uvloop', http='httptools', backlog=4096, port={port}, workers={workers})"
    )
    environment = {
        **os.environ,
        "PARTAGE_DATABASE": database,
        "PARTAGE_OPERATOR_TOKEN": TOKEN,
        "PARTAGE_LOG_LEVEL": "error",
    }
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {TOKEN}"}
        ) as client:
            for _ in range(600):
                with contextlib.suppress(httpx.TransportError):
                    client.get("/health")
                    break
                time.sleep(0.02)
            seconds = time.perf_counter() - began
            wait_until_idle(process)
            yield client, port, seconds
    finally:
        process.terminate()
        process.wait(20)


def processor_seconds(process):
    """Return the processor time of a process so far, threads that have ended included.

    Linux has a clock for each process, in nanoseconds; /proc counts in steps of 10 ms.
    """
    return time.clock_gettime((~process.pid << 3) | 2)


def idle_share(process, seconds=1.0, looks=4):
    """Return the processor time that a process takes in a second: the median of some looks in so many seconds."""
    found = []
    for _ in range(looks):
        began, clock = processor_seconds(process), time.perf_counter()
        time.sleep(seconds / looks)
        found.append((processor_seconds(process) - began) / (time.perf_counter() - clock))
    return statistics.median(found)


def wait_until_idle(process, seconds=120.0):
    """Wait until a server does nothing: its first start after a change compiles kernels in the background."""
    until = time.monotonic() + seconds
    while idle_share(process, 0.4, 2) > BUSY and time.monotonic() < until:
        pass


def prepare():
    """Start a server once, which compiles its kernels."""
    with tempfile.TemporaryDirectory() as folder, server(f"{folder}/partage.db"):
        yield True


def agents_of(client, collaborations, rule="balanced-etc"):
    """Create collaborations with 64 agents in total that share every arm, so that every ask is a claim."""
    found = []
    for place in range(collaborations):
        arms = [f"arm {arm}" for arm in range(ARMS)]
        body = {
            "name": f"bench {place}",
            "arms": arms,
            "horizon": 10**9,
            "rule": rule,
            "invites": AGENTS // collaborations,
        }
        made = client.post("/v1/collaborations", json=body, timeout=60).json()
        path = f"/v1/collaborations/{made['id']}"
        for number, invite in enumerate(made["invites"]):
            body = {"name": f"agent {number}", "shares": arms}
            joined = client.post(f"{path}/agents", json=body, headers={"Authorization": f"Bearer {invite}"}).json()
            found.append({"ask": f"{path}/ask", "tell": f"{path}/tell", "token": joined["token"]})
    return found


def load(port, agents, seconds):
    """Let 64 connections send requests for some seconds, from a separate process."""
    plan = {"host": "127.0.0.1", "port": port, "agents": agents, "warm": 0.5, "seconds": seconds}
    done = subprocess.run(
        [sys.executable, "-m", "bench.load"], input=json.dumps(plan), capture_output=True, text=True, check=True
    )
    measured = json.loads(done.stdout)
    assert not measured["errors"], f"{measured['errors']} requests failed"
    return measured


def best_of(port, agents, times=2, seconds=2):
    """Return the best of empty POSTs, and of asks and tells: measured in turn, so that both see the same noise."""
    nothing = [{"ask": "/empty", "tell": "", "token": TOKEN}] * AGENTS
    found = [(load(port, nothing, seconds), load(port, agents, seconds)) for _ in range(times)]
    return max((one for one, _ in found), key=_rate), max((other for _, other in found), key=_rate)


def _rate(measured):
    return measured["rate"]


def local_decisions(url, client):
    """Return the pulls per second of the two clients on a finished board."""
    arms = [f"arm {arm}" for arm in range(ARMS)]
    pulls = 200_000
    body = {"name": "finished", "arms": arms, "horizon": 10**7, "rule": "balanced-glr", "invites": 2}
    made = client.post("/v1/collaborations", json=body, timeout=60).json()
    with Agent.join(url, made["id"], made["invites"][0], "explorer", arms) as agent:
        agent.play(lambda arm: float(arm == arms[0]), 2000)
        assert sum(arm.active for arm in agent.board().arms) == 1
        began = time.perf_counter()
        agent.play(lambda arm: 1.0, pulls)
        blocking = pulls / (time.perf_counter() - began)

    async def twin():
        agent = await AsyncAgent.join(url, made["id"], made["invites"][1], "twin", arms)
        await agent.play(lambda arm: 1.0, 100)
        began = time.perf_counter()
        await agent.play(lambda arm: 1.0, pulls)
        rate = pulls / (time.perf_counter() - began)
        await agent.close()
        return rate

    return blocking, asyncio.run(twin())


@contextlib.contextmanager
def postgres():
    """Yield a private PostgreSQL cluster, or None if PostgreSQL's server is not installed."""
    programs = binaries()
    if programs is None:
        yield None
        return
    cluster = Cluster(programs)
    try:
        yield cluster
    finally:
        cluster.remove()


def measure():
    """Yield (what, measured, limit, whether more is better, unit)."""
    asks = "asks and tells"
    with tempfile.TemporaryDirectory() as folder, server(f"{folder}/partage.db") as (client, port, start):
        yield "start to first answer", start, 3, False, "s"
        empty, sqlite = best_of(port, agents_of(client, 1))
        yield "empty POSTs", empty["rate"], None, True, "/s"
        yield "empty POSTs: p99", empty["p99"], None, False, "ms"
        yield f"{asks}, SQLite", sqlite["rate"], None, True, "/s"
        yield f"{asks}, SQLite / empty POSTs", sqlite["rate"] / empty["rate"], 0.5, True, "x"
        yield f"{asks}, SQLite: p99", sqlite["p99"], None, False, "ms"
        _, glr = best_of(port, agents_of(client, 1, "balanced-glr"), times=1)
        yield f"{asks}, SQLite, Balanced-GLR", glr["rate"], None, True, "/s"
        _, sqlite_8 = best_of(port, agents_of(client, 8), times=1)
        yield f"{asks}, SQLite, 8 collaborations", sqlite_8["rate"], None, True, "/s"
        blocking, twin = local_decisions(f"http://127.0.0.1:{port}", client)
        yield "local pulls on a finished board, Agent", blocking, 100_000, True, "/s"
        yield "local pulls on a finished board, AsyncAgent", twin, 100_000, True, "/s"
    with postgres() as cluster:
        if cluster is None:
            yield Row(f"{asks}, PostgreSQL", note="not measured: PostgreSQL is not installed")
            return
        with cluster.database() as url, server(url) as (client, port, _):
            _, one = best_of(port, agents_of(client, 1))
            yield f"{asks}, PostgreSQL", one["rate"], None, True, "/s"
            yield f"{asks}, PostgreSQL / SQLite", one["rate"] / sqlite["rate"], 0.5, True, "x"
            yield f"{asks}, PostgreSQL: p99", one["p99"], None, False, "ms"
        rates = {1: [], 2: []}
        for _ in range(2):  # in turn, so that both see the same noise
            for workers, found in rates.items():
                with cluster.database() as url, server(url, workers) as (client, port, _):
                    found.append(load(port, agents_of(client, 8), 2)["rate"])
        yield f"{asks}, PostgreSQL, 8 collaborations, one worker", max(rates[1]), None, True, "/s"
        ratio = max(rates[2]) / max(rates[1])
        yield f"{asks}, PostgreSQL, 8 collaborations: two workers / one", ratio, 1, True, "x"

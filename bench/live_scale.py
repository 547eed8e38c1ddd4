"""The live controller at scale: members, their event streams, collaborations, processes and memory.

    python -m bench.live_scale            # what fits into a minute
    python -m bench.live_scale --long     # 10,000 members, 5,000 collaborations, 4 processes: about five minutes
    python -m bench.live_scale --curve    # latency by rate of arrival, beside the queue of `bench.queueing`

The server, the load and the readers of streams run in processes of their own. Costs are the server's processor time,
which other work on the machine changes little; latencies and rates are waiting times, and mean something on an idle
machine only.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
import uvloop
from bench.page import value_of
from bench.queueing import fitted, latencies, quantile
from bench.rows import Chart, Line, Point, Row, as_row_or_chart
from bench.service import TOKEN, idle_share, load, postgres, processor_seconds, wait_until_idle
from bench.streams import Streams, allow_files

from partage.compiled import collector_paused

ABOUT = (
    "Rates, p50 and p99 are waiting times, measured once, on a machine that server, load and readers of streams "
    "share. Members “with a stream each” follow the board with their own tokens, and all of them ask and tell in "
    "turn, 16 at a time. An event is a board that one stream gets. Processor times are those of the server; those of "
    "events and broadcasts are without what it needs while nothing happens, which has a row of its own. Only what a "
    "board costs to send has goals: 100 µs for one stream, and patches a hundredth of a board of 1,000 arms. Rates, "
    "latencies and memory depend on the machine and show the trend."
)
QUEUE = "mean latency, measured / queue"
STARTS = 2400  # looks at a server that starts, 0.05 s apart
WARM = 0.5  # seconds of a load before it is measured
AT_ONCE = 16  # requests of members that take turns, and joins
INVITES = 1000  # the most that one request makes
BATCHES = (1, 2, 4, 8, 16, 32, 64)  # connections without a pause, each of which makes a batch
LOADS = (0.05, 0.2, 0.4, 0.6, 0.8, 0.9)  # shares of the most requests per second


class Sizes(NamedTuple):
    """What is measured: how many of each, the seconds of each load, and the broadcasts of each fan-out."""

    members: tuple[int, ...] = (1, 10, 100)  # with a connection each, and no stream
    collaborations: tuple[int, ...] = (1, 64)
    streams: tuple[int, ...] = (10, 100)  # members with a stream each
    arms_streams: int = 50  # that follow a board of 1,000 arms
    processes: tuple[int, ...] = (1, 2)
    memory: tuple[tuple[int, int, int], ...] = ((2, 3, 50), (2, 1000, 5), (200, 10, 1))  # members, arms, times
    seconds: float = 0.6
    broadcasts: int = 6
    pause: float = 0.25  # seconds after a broadcast, in which its boards reach all streams


SHORT = Sizes()
LONG = Sizes(
    members=(1, 10, 100, 1000),
    collaborations=(1, 64, 1000, 5000),
    streams=(10, 100, 1000, 10_000),
    arms_streams=100,
    processes=(1, 2, 4),
    memory=((2, 3, 500), (2, 1000, 20), (1000, 10, 2)),
    seconds=3.0,
    broadcasts=20,
)


@contextlib.contextmanager
def server(database, workers=1):
    """Run `partage serve` with room for many streams and requests; yield a client, the port and the process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "PARTAGE_DATABASE": database,
        "PARTAGE_OPERATOR_TOKEN": TOKEN,
        "PARTAGE_STREAMS": "20000",
        "PARTAGE_REQUESTS_PER_SECOND": "1000000",
    }
    command = [sys.executable, "-m", "partage.cli", "serve", "--port", str(port), "--log-level", "error"]
    process = subprocess.Popen([*command, "--workers", str(workers)], env=environment, stdout=subprocess.DEVNULL)
    try:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=120) as client:
            for _ in range(STARTS):
                with contextlib.suppress(httpx.TransportError):
                    client.get("/health")
                    break
                time.sleep(0.05)
            else:
                raise RuntimeError("The server did not start.")
            wait_until_idle(process)
            yield client, port, process
    finally:
        process.terminate()
        process.wait(60)


def usage(process, work):
    """Return the processor time of a process while `work` is done."""
    began = processor_seconds(process)
    work()
    return processor_seconds(process) - began


def memory_bytes(process):
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def collaboration(client, members, arms=10, rule="balanced-etc"):
    """Create a collaboration whose members share every arm; return its path, and their tokens."""
    names = [f"arm {arm}" for arm in range(arms)]
    body = {"name": "scale", "arms": names, "horizon": 10**9, "rule": rule, "invites": min(members, INVITES)}
    made = client.post("/v1/collaborations", json=body).json()
    path, invites = f"/v1/collaborations/{made['id']}", made["invites"]
    while len(invites) < members:
        more = {"invites": min(members - len(invites), INVITES)}
        invites += client.post(f"{path}/invites", json=more).json()["invites"]
    return path, uvloop.run(joined(client.base_url.port, path, invites, names))


async def joined(port, path, invites, shares):
    """Let members join, some at a time; return their tokens, in the order of the invites."""
    left, tokens = list(enumerate(invites)), {}

    async def join():
        _, client = await asyncio.get_running_loop().create_connection(Client, "127.0.0.1", port)
        while left:
            number, invite = left.pop()
            body = json.dumps({"name": f"agent {number}", "shares": shares})
            tokens[number] = json.loads(await client.send(f"{path}/agents", invite, body))["token"]
        client.transport.close()

    await asyncio.gather(*(join() for _ in range(min(AT_ONCE, len(invites)))))
    return [tokens[number] for number in range(len(invites))]


def plan_of(path, tokens):
    return [{"ask": f"{path}/ask", "tell": f"{path}/tell", "token": token} for token in tokens]


def broadcast(client, path, token, times, pause):
    """Ask and tell some times, with a pause after each; return the latencies in seconds."""
    bearer, found = {"Authorization": f"Bearer {token}"}, []
    for _ in range(times):
        began = time.perf_counter()
        pull = client.post(f"{path}/ask", json={}, headers=bearer).json()
        found.append(time.perf_counter() - began)
        client.post(f"{path}/tell", json={"pull": pull["pull"], "reward": random.random()}, headers=bearer)
        time.sleep(pause)
    return sorted(found)


def broadcast_costs(client, path, tokens, process, opened, sizes):
    """Return what one broadcast costs the server while nothing else happens, and how long an ask takes meanwhile.

    `seconds` of processor time of a broadcast, and `microseconds` of one of its events; both are without `idle`, the
    seconds per second that it needs while nothing happens. Also events per stream and broadcast, bytes per event, and
    p50 and p99 of an ask.
    """
    pause, times = max(sizes.pause, len(tokens) / 4000), sizes.broadcasts
    broadcast(client, path, tokens[0], 2, pause)
    before = opened.counts(2 * pause)
    idle = idle_share(process)
    asked, began, after = [], time.perf_counter(), {}

    def play():
        asked.extend(broadcast(client, path, tokens[0], times, pause))
        after.update(opened.counts(2 * pause))

    used = usage(process, play) - idle * (time.perf_counter() - began)
    events = max(1, after["events"] - before["events"])
    return {
        "seconds": used / times,
        "idle": idle,
        "events": events / times / len(tokens),
        "microseconds": used / events * 1e6,
        "bytes": (after["bytes"] - before["bytes"]) / events,
        "p50": quantile(asked, 0.5) * 1e3,
        "p99": quantile(asked, 0.99) * 1e3,
    }


def busy_costs(client, port, path, tokens, process, opened, seconds, idle):
    """Let all members ask and tell in turn, without a pause; return the load's figures, and those of its broadcasts.

    `milliseconds` of processor time of a broadcast, its two requests included, and boards per stream: for each
    broadcast, and in a second.
    """
    plan = plan_of(path, tokens)
    turns = [plan[place::AT_ONCE] for place in range(min(AT_ONCE, len(plan)))]
    quiet = max(0.25, len(tokens) / 2000)
    before, version, began = opened.counts(quiet), version_of(client, path), time.perf_counter()
    found, after = {}, {}

    def play():
        found.update(load(port, turns, seconds))
        after.update(opened.counts(quiet))

    used = usage(process, play) - idle * (time.perf_counter() - began)
    broadcasts = version_of(client, path) - version
    boards = (after["events"] - before["events"]) / len(tokens)
    return {
        **found,
        "milliseconds": used / broadcasts * 1e3,
        "per broadcast": boards / broadcasts,
        "per second": boards / (WARM + seconds),
    }


def version_of(client, path):
    """Return the number of broadcasts so far."""
    return client.get(f"{path}/board").json()["version"]


def stream_rows(client, port, process, sizes):
    """Yield what members cost who follow the board with a stream each, first at a slow pace, then without a pause."""
    costs = []
    for members in sizes.streams:
        what, began = f"{members:,} members with a stream each", time.perf_counter()
        path, tokens = collaboration(client, members)
        yield f"{what}: joins", members / (time.perf_counter() - began), None, True, "/s"
        broadcast(client, path, tokens[0], 5, 0.0)
        with Streams(port, path, tokens, patches=True) as opened:
            slow = broadcast_costs(client, path, tokens, process, opened, sizes)
            seconds = max(sizes.seconds, members / 1000)
            busy = busy_costs(client, port, path, tokens, process, opened, seconds, slow["idle"])
        yield f"{what}: processor time of an event", slow["microseconds"], 100, False, "µs"
        yield f"{what}: processor time of a broadcast", slow["seconds"] * 1e3, None, False, "ms"
        yield f"{what}: processor time in a second without events", slow["idle"] * 1e3, None, False, "ms"
        yield f"{what}: boards per stream and broadcast", slow["events"], None, False, "boards"
        yield f"{what}: an ask between slow broadcasts, p50", slow["p50"], None, False, "ms"
        yield f"{what}: an ask between slow broadcasts, p99", slow["p99"], None, False, "ms"
        what += ", without a pause"
        yield from rate_rows(what, busy)
        yield f"{what}: the longest wait for an answer", busy["longest"], None, False, "ms"
        yield f"{what}: processor time of a broadcast", busy["milliseconds"], None, False, "ms"
        yield f"{what}: boards per stream and broadcast", busy["per broadcast"], None, False, "boards"
        yield f"{what}: boards per stream and second", busy["per second"], None, False, "boards"
        costs.append((members, slow["seconds"] * 1e3, busy["milliseconds"]))
    lines = tuple(
        Line(label, tuple(Point.of(cost[0], [cost[place]]) for cost in costs))
        for place, label in ((1, "one after the other"), (2, "without a pause"))
    )
    yield Chart("A broadcast by members with a stream each", "members", "processor time, ms", lines)


def arms_rows(client, port, process, sizes):
    """Yield what a board of 1,000 arms costs, whole and as a patch."""
    path, tokens = collaboration(client, sizes.arms_streams, 1000)
    broadcast(client, path, tokens[0], 5, 0.0)
    found = []
    for patches in (False, True):
        with Streams(port, path, tokens, patches) as opened:
            found.append(broadcast_costs(client, path, tokens, process, opened, sizes))
    what = f"1,000 arms, {sizes.arms_streams} streams"
    whole, patch = found
    for name, one in (("whole boards", whole), ("patches", patch)):
        yield f"{what}, {name}: bytes of an event", one["bytes"], None, False, "bytes"
        yield f"{what}, {name}: processor time of an event", one["microseconds"], None, False, "µs"
        yield f"{what}, {name}: processor time of a broadcast", one["seconds"] * 1e3, None, False, "ms"
        yield f"{what}, {name}: boards per stream and broadcast", one["events"], None, False, "boards"
    yield f"{what}: bytes of an event, whole board / patch", whole["bytes"] / patch["bytes"], 100, True, "x"
    ratio = whole["microseconds"] / patch["microseconds"]
    yield f"{what}: processor time of an event, whole board / patch", ratio, None, True, "x"


def counted(number, what):
    """Return a number of things in words.

    >>> counted(1, "member"), counted(1000, "server process")
    ('1 member', '1,000 server processes')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "es" if what.endswith("s") else "s")


def rate_rows(what, found):
    """Yield the rate and the latencies of a load."""
    yield f"{what}: asks and tells", found["rate"], None, True, "/s"
    yield f"{what}: p50", found["p50"], None, False, "ms"
    yield f"{what}: p99", found["p99"], None, False, "ms"


def memory_rows(client, process, sizes):
    """Yield the memory of a collaboration, by its size."""
    for _ in range(50):  # what the first ones load and allocate is not theirs
        collaboration(client, 2, 3)
    for members, arms, times in sizes:
        before = memory_bytes(process)
        for _ in range(times):
            collaboration(client, members, arms)
        each = (memory_bytes(process) - before) / times
        what = f"memory of a collaboration: {members:,} members, {arms:,} arms"
        yield what, each / 1024, None, False, "KiB"


def spread_rows(client, port, process, sizes):
    """Yield rate and latency of asks and tells by number of collaborations, 64 connections in all."""
    made = []
    for total in sizes.collaborations:
        while len(made) < total:
            path, (token,) = collaboration(client, 1)
            made += plan_of(path, [token])
        chosen = random.Random(1).sample(made, min(64, total)) if total > 1 else plan_of(*collaboration(client, 64))
        load(port, chosen, 0.2)  # those that left the memory are loaded again
        cpu = processor_seconds(process)
        found = load(port, chosen, sizes.seconds)
        used = (processor_seconds(process) - cpu) / (sizes.seconds + WARM)
        what = f"{counted(total, 'collaboration')}, {len(chosen)} connections"
        yield from rate_rows(what, found)
        yield f"{what}: processor time of a request", used / found["rate"] * 1e6, None, False, "µs"


def member_rows(client, port, sizes):
    """Yield rate and latency of asks and tells by number of members with a connection each, in one collaboration."""
    found = {}
    for members in sizes.members:
        found[members] = load(port, plan_of(*collaboration(client, members)), sizes.seconds)
        yield from rate_rows(f"{counted(members, 'member')} without a pause", found[members])
    lines = tuple(
        Line(what, tuple(Point.of(members, [one[what]]) for members, one in found.items())) for what in ("p50", "p99")
    )
    yield Chart("Latency by members without a pause", "members", "latency, ms", lines)


def process_rows(sizes):
    """Yield rate and latency by number of processes, on PostgreSQL."""
    with postgres() as cluster:
        if cluster is None:
            yield Row("PostgreSQL", note="not measured: PostgreSQL is not installed")
            return
        for workers in sizes.processes:
            with cluster.database() as url, server(url, workers) as (client, port, _):
                plan = [one for _ in range(8) for one in plan_of(*collaboration(client, 8))]
                found = load(port, plan, sizes.seconds)
                yield from rate_rows(f"PostgreSQL, 8 collaborations, {counted(workers, 'server process')}", found)


def measure(sizes=SHORT):
    """Yield (what, measured, limit, whether more is better, unit)."""
    allow_files()
    with tempfile.TemporaryDirectory() as folder, server(f"{folder}/partage.db") as (client, port, process):
        yield from memory_rows(client, process, sizes.memory)
        yield from member_rows(client, port, sizes)
        yield from stream_rows(client, port, process, sizes)
        yield from arms_rows(client, port, process, sizes)
        yield from spread_rows(client, port, process, sizes)
    yield from process_rows(sizes)


def measure_long():
    """Yield the rows of the largest sizes, and the curve."""
    yield from measure(LONG)
    yield from curve_rows()


# --- the queue --------------------------------------------------------------------------------------------------


class Client(asyncio.Protocol):
    """A connection that takes one request at a time."""

    def connection_made(self, transport):
        self.transport, self.answered, self.buffer = transport, None, b""

    def data_received(self, data):
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if found:
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n", 1)[0])
            if len(body) >= length:
                self.buffer = b""
                self.answered.set_result(body)

    async def send(self, path, token, body):
        self.answered = asyncio.get_running_loop().create_future()
        self.transport.write(
            f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        return await self.answered


async def arrivals(port, plan, rate, seconds):
    """Let requests arrive at random (Poisson) at this rate; return their latencies.

    A request that finds no free connection waits for one, which is part of its latency.
    """
    loop = asyncio.get_running_loop()
    free, found, running = asyncio.Queue(), [], set()
    clients = []
    for one in plan:
        _, client = await loop.create_connection(Client, "127.0.0.1", port)
        clients.append(client)
        free.put_nowait((client, one, [None]))
    seed = random.Random(1)

    async def one(began):
        client, agent, pull = await free.get()
        if pull[0] is None:
            answer = json.loads(await client.send(agent["ask"], agent["token"], "{}"))
            pull[0] = answer["pull"]
        else:
            await client.send(agent["tell"], agent["token"], json.dumps({"pull": pull[0], "reward": 0.5}))
            pull[0] = None
        found.append(time.perf_counter() - began)
        free.put_nowait((client, agent, pull))

    ends, due = loop.time() + seconds, loop.time()
    while due < ends:
        due += seed.expovariate(rate)
        await asyncio.sleep(max(0.0, due - loop.time()))
        task = loop.create_task(one(time.perf_counter()))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)
    for client in clients:
        client.transport.close()
    await asyncio.sleep(0)  # the transports close in the next turn of the loop
    return found


def cycles(port, process, plan, seconds, batches=BATCHES):
    """Return the time in which n connections without a pause get one answer each, by n: wall and processor time."""
    wall, used = {}, {}
    for number in batches:
        cpu = processor_seconds(process)
        rate = load(port, plan[:number], seconds)["rate"]
        wall[number] = number / rate
        used[number] = (processor_seconds(process) - cpu) / (seconds + WARM) * number / rate
    return wall, used


def curve_rows(loads=LOADS, seconds=4.0, batches=BATCHES, connections=256):
    """Yield latencies by rate of arrival, measured and as the queue in batches has them, and a chart of both.

    The time of a batch of k is a + b k, fitted to connections without a pause: all of them are one batch. The loads
    are shares of 1 / b, the most requests per second.
    """
    allow_files()
    with tempfile.TemporaryDirectory() as folder, server(f"{folder}/partage.db") as (client, port, process):
        plan = plan_of(*collaboration(client, connections))
        load(port, plan[:64], seconds / 4)
        wall, used = cycles(port, process, plan, seconds / 2, batches)
        a, b = fitted(wall)
        yield "a batch of k requests takes a + b k: a", a * 1e6, None, False, "µs"
        yield "a batch of k requests takes a + b k: b", b * 1e6, None, False, "µs"
        busy_a, busy_b = fitted(used)
        yield "processor time of a batch of k requests, a + b k: a", busy_a * 1e6, None, False, "µs"
        yield "processor time of a batch of k requests, a + b k: b", busy_b * 1e6, None, False, "µs"
        lines = {}
        for load_ in loads:
            rate = load_ / b
            with collector_paused():  # a full collection here takes 70 ms, in which answers wait to be read
                found = uvloop.run(arrivals(port, plan, rate, seconds))
            expected = latencies(rate, a, b)
            what, note = f"{load_:.0%} of the most requests", f"{rate:,.0f} requests per second"
            yield Row(f"{what}: {QUEUE}", float(np.mean(found) / np.mean(expected)), note=note)
            for name, of in (("mean", np.mean), ("p99", lambda values: quantile(values, 0.99))):
                for how, values in (("measured", found), ("by the queue", expected)):
                    milliseconds = float(of(values)) * 1e3
                    yield f"{what}: {name} latency, {how}", milliseconds, None, False, "ms"
                    lines.setdefault(f"{name}, {how}", []).append(Point.of(rate, [milliseconds]))
        drawn = tuple(Line(label, tuple(points)) for label, points in lines.items())
        yield Chart(
            "Latency by rate of arrival, beside a queue in batches", "requests per second", "latency, ms", drawn
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="10,000 members, 5,000 collaborations, 4 processes")
    parser.add_argument("--curve", action="store_true", help="latencies by rate of arrival")
    given = parser.parse_args()
    rows = curve_rows() if given.curve else measure(LONG if given.long else SHORT)
    for row in map(as_row_or_chart, rows):
        if isinstance(row, Row):
            print(f"{row.what}: {value_of(row)}", flush=True)


if __name__ == "__main__":
    main()

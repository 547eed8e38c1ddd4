"""The live controller at scale: streams, members, collaborations, processes and memory.

    python -m bench.live_scale            # what fits into a minute
    python -m bench.live_scale --long     # 10,000 streams, 5,000 collaborations, 4 processes: about five minutes
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
import resource
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

from partage.compiled import collector_paused

ABOUT = (
    "Rates, p50 and p99 are waiting times, measured once, on a machine that server, load and readers of streams "
    "share. Processor times are those of the server; that of an event is without what open streams cost while "
    "nothing happens, which has a row of its own. Only what a board costs to send has goals: 100 µs for one "
    "stream, and patches a hundredth of a board of 1,000 arms. Rates, latencies and memory depend on the machine "
    "and show the trend."
)
QUEUE = "mean latency, measured / queue"
STARTS = 2400  # looks at a server that starts, 0.05 s apart
WARM = 0.5  # seconds of a load before it is measured
BUSY = 16  # members that ask and tell while streams are open
BATCHES = (1, 2, 4, 8, 16, 32, 64)  # connections without a pause, each of which makes a batch
LOADS = (0.05, 0.2, 0.4, 0.6, 0.8, 0.9)  # shares of the most requests per second


class Sizes(NamedTuple):
    """What is measured: how many of each, the seconds of each load, and the broadcasts of each fan-out."""

    members: tuple[int, ...] = (1, 10, 100)
    collaborations: tuple[int, ...] = (1, 64)
    streams: tuple[int, ...] = (10, 100, 1000)
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
    """Run `partage serve`, with room for many streams; yield a client, the port and the process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "PARTAGE_DATABASE": database,
        "PARTAGE_OPERATOR_TOKEN": TOKEN,
        "PARTAGE_STREAMS": "20000",
        "PARTAGE_STREAMS_PER_TOKEN": "20000",
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


def collaboration(client, members, arms=10, sharers=None, rule="balanced-etc"):
    """Create a collaboration; return its path, and the tokens of its members. The first ones share every arm."""
    names = [f"arm {arm}" for arm in range(arms)]
    body = {"name": "scale", "arms": names, "horizon": 10**9, "rule": rule, "invites": members}
    made = client.post("/v1/collaborations", json=body).json()
    path = f"/v1/collaborations/{made['id']}"
    tokens = []
    for number, invite in enumerate(made["invites"]):
        shares = names if sharers is None or number < sharers else []
        body = {"name": f"agent {number}", "shares": shares}
        bearer = {"Authorization": f"Bearer {invite}"}
        tokens.append(client.post(f"{path}/agents", json=body, headers=bearer).json()["token"])
    return path, tokens


def plan_of(path, tokens):
    return [{"ask": f"{path}/ask", "tell": f"{path}/tell", "token": token} for token in tokens]


class Streams:
    """Open event streams in a process of their own, which reads and counts what arrives."""

    def __init__(self, port, path, times, patches):
        query = "?patches=true" if patches else ""
        plan = {"port": port, "path": f"{path}/events{query}", "token": TOKEN, "times": times}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.live_scale", "--streams"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._process.stdin.write(json.dumps(plan) + "\n")
        self._process.stdin.flush()
        self._process.stdout.readline()  # all of them have their first board

    def counts(self, quiet):
        """Return the events and the bytes of all streams, once nothing has come for this many seconds."""
        found = None
        for _ in range(100):
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            before, found = found, json.loads(self._process.stdout.readline())
            if found == before:
                break
            time.sleep(quiet)
        return found

    def close(self):
        with self._process as process:  # closes its pipes, and waits
            process.kill()


class _Stream(asyncio.Protocol):
    def __init__(self, request, counts):
        self.request, self.counts, self.first = request, counts, True

    def connection_made(self, transport):
        transport.write(self.request)

    def data_received(self, data):
        events = data.count(b"event: ")
        if events and self.first:
            self.first = False
            self.counts["open"] += 1
        self.counts["events"] += events
        self.counts["bytes"] += len(data)


async def read_streams():
    """Be the process of `Streams`."""
    plan = json.loads(sys.stdin.readline())
    request = (
        f"GET {plan['path']} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {plan['token']}\r\n\r\n"
    ).encode()
    counts, loop = {"open": 0, "events": 0, "bytes": 0}, asyncio.get_running_loop()
    for place in range(plan["times"]):
        await loop.create_connection(lambda: _Stream(request, counts), "127.0.0.1", plan["port"])
        if place - counts["open"] > 200:
            await asyncio.sleep(0.05)
    while counts["open"] < plan["times"]:
        await asyncio.sleep(0.02)
    print("open", flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(counts), flush=True)


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


def fan_out(client, port, process, streams, arms, patches, sizes, seconds=0.0):
    """Return what one broadcast costs the server, in seconds of processor time, with so many streams open.

    What they cost while nothing happens is `idle`, in seconds per second, and is not part of it. Also events per
    stream and broadcast, bytes per event, and the latency of an ask meanwhile: p50 and p99. With `seconds`, also
    `busy`: the rate and the latencies of members that ask and tell without a pause for so long.
    """
    pause, times = max(sizes.pause, streams / 4000), sizes.broadcasts
    path, tokens = collaboration(client, BUSY if seconds else 1, arms)
    broadcast(client, path, tokens[0], 5, 0.0)
    opened = Streams(port, path, streams, patches)
    try:
        broadcast(client, path, tokens[0], 2, pause)
        before = opened.counts(2 * pause)
        idle = idle_share(process)
        asked, began, after = [], time.perf_counter(), {}

        def play():
            asked.extend(broadcast(client, path, tokens[0], times, pause))
            after.update(opened.counts(2 * pause))

        used = usage(process, play) - idle * (time.perf_counter() - began)
        busy = load(port, plan_of(path, tokens), seconds) if seconds else None
    finally:
        opened.close()
    events = max(1, after["events"] - before["events"])
    sent = (after["bytes"] - before["bytes"]) / events
    return {
        "seconds": used / times,
        "idle": idle,
        "events": events / times / streams,
        "microseconds": used / events * 1e6,
        "bytes": sent,
        "p50": quantile(asked, 0.5) * 1e3,
        "p99": quantile(asked, 0.99) * 1e3,
        "busy": busy,
    }


def fan_out_rows(client, port, process, sizes):
    """Yield the cost of a broadcast and the latencies by number of streams, and of patches for 1,000 arms."""
    costs = []
    for streams in sizes.streams:
        found = fan_out(client, port, process, streams, 10, True, sizes, sizes.seconds)
        what = f"{streams:,} streams, 10 arms"
        yield f"{what}: processor time of an event, patches", found["microseconds"], 100, False, "µs"
        yield f"{what}: processor time of a broadcast", found["seconds"] * 1e3, None, False, "ms"
        yield f"{what}: processor time in a second without events", found["idle"] * 1e3, None, False, "ms"
        yield f"{what}: boards per stream and broadcast", found["events"], None, False, "boards"
        yield f"{what}: an ask meanwhile, p50", found["p50"], None, False, "ms"
        yield f"{what}: an ask meanwhile, p99", found["p99"], None, False, "ms"
        yield from rate_rows(f"{what}, {BUSY} members without a pause", found["busy"])
        costs.append(Point.of(streams, [found["seconds"] * 1e3]))
    yield Chart(
        "A broadcast by open streams, 10 arms",
        "open streams",
        "processor time, ms",
        (Line("patches", tuple(costs)),),
    )
    whole, patch = (
        fan_out(client, port, process, sizes.arms_streams, 1000, patches, sizes) for patches in (False, True)
    )
    what = f"1,000 arms, {sizes.arms_streams} streams"
    yield f"{what}: bytes of an event, whole boards", whole["bytes"], None, False, "bytes"
    yield f"{what}: bytes of an event, patches", patch["bytes"], None, False, "bytes"
    yield f"{what}: bytes of an event, whole board / patch", whole["bytes"] / patch["bytes"], 100, True, "x"
    ratio = whole["seconds"] / patch["seconds"]
    yield f"{what}: processor time of a broadcast, whole boards / patches", ratio, None, True, "x"


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
    _allow_files()
    with tempfile.TemporaryDirectory() as folder, server(f"{folder}/partage.db") as (client, port, process):
        yield from memory_rows(client, process, sizes.memory)
        yield from member_rows(client, port, sizes)
        yield from fan_out_rows(client, port, process, sizes)
        yield from spread_rows(client, port, process, sizes)
    yield from process_rows(sizes)


def measure_long():
    """Yield the rows of the largest sizes, and the curve."""
    yield from measure(LONG)
    yield from curve_rows()


# --- the queue --------------------------------------------------------------------------------------------------


class _Client(asyncio.Protocol):
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
        _, client = await loop.create_connection(_Client, "127.0.0.1", port)
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
    _allow_files()
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


def _allow_files():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="10,000 streams, 5,000 collaborations, 4 processes")
    parser.add_argument("--curve", action="store_true", help="latencies by rate of arrival")
    parser.add_argument("--streams", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.streams:
        _allow_files()
        uvloop.run(read_streams())
        return
    rows = curve_rows() if given.curve else measure(LONG if given.long else SHORT)
    for row in map(as_row_or_chart, rows):
        if isinstance(row, Row):
            print(f"{row.what}: {value_of(row)}", flush=True)


if __name__ == "__main__":
    main()

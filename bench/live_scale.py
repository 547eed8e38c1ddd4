"""The live controller at scale: streams, members, collaborations, processes and memory.

    python -m bench.live_scale            # a few minutes
    python -m bench.live_scale --long     # 10,000 streams, 5,000 collaborations

The server runs in a process of its own. Costs are its processor time, which other work on the machine hardly changes;
latencies and rates are wall time, and mean something on an idle machine only. `python -m bench.live_scale --curve`
prints the latency at several rates of arrival, beside the M/D/1 queue with the measured service time.
"""

import argparse
import asyncio
import contextlib
import json
import math
import os
import random
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
from bench.service import TOKEN, load, postgres

TICK = os.sysconf("SC_CLK_TCK")


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
            for _ in range(1000):
                with contextlib.suppress(httpx.TransportError):
                    client.get("/health")
                    break
                time.sleep(0.02)
            yield client, port, process
    finally:
        process.terminate()
        process.wait(60)


def processor_seconds(process):
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


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

    def counts(self):
        """Return the events and the bytes of all streams so far."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.kill()
        self._process.wait()


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


def fan_out(client, port, process, streams, arms, patches, times=20, pause=0.5):
    """Return what one broadcast costs the server, in seconds of processor time, with so many streams open.

    Also events per stream and broadcast, bytes per event, and the latency of an ask meanwhile: p50 and p99.
    """
    path, (token, *_) = collaboration(client, 1, arms)
    broadcast(client, path, token, 5, 0.0)
    opened = Streams(port, path, streams, patches)
    try:
        broadcast(client, path, token, 2, pause)
        time.sleep(pause)
        before, began = opened.counts(), processor_seconds(process)
        latencies = broadcast(client, path, token, times, pause)
        time.sleep(2 * pause)
        after, ended = opened.counts(), processor_seconds(process)
    finally:
        opened.close()
    events = max(1, after["events"] - before["events"])
    sent = (after["bytes"] - before["bytes"]) / events
    return {
        "seconds": (ended - began) / times,
        "events": events / times / streams,
        "microseconds": (ended - began) / events * 1e6,
        "bytes": sent,
        "p50": latencies[len(latencies) // 2] * 1e3,
        "p99": latencies[len(latencies) * 99 // 100] * 1e3,
    }


def fan_out_rows(client, port, process, many):
    for streams in many:
        found = fan_out(client, port, process, streams, 10, patches=True, pause=max(0.5, streams / 4000))
        what = f"{streams:,} streams, 10 arms"
        yield f"{what}: processor time of an event, patches", found["microseconds"], 100, False, "µs"
        yield f"{what}: processor time of a broadcast", found["seconds"] * 1e3, None, False, "ms"
        yield f"{what}: events per stream and broadcast", found["events"], None, False, "x"
        yield f"{what}: an ask meanwhile, p50", found["p50"], None, False, "ms"
        yield f"{what}: an ask meanwhile, p99", found["p99"], None, False, "ms"
    whole = fan_out(client, port, process, 100, 1000, patches=False)
    patch = fan_out(client, port, process, 100, 1000, patches=True)
    yield "1,000 arms, 100 streams: bytes of an event, whole boards", whole["bytes"], None, False, "bytes"
    yield "1,000 arms, 100 streams: bytes of an event, patches", patch["bytes"], None, False, "bytes"
    yield "… whole / patch, bytes", whole["bytes"] / patch["bytes"], 100, True, "x"
    yield "… whole / patch, processor time of a broadcast", whole["seconds"] / patch["seconds"], None, True, "x"


def memory_rows(client, process, collaborations):
    """Yield the memory of a collaboration, by its size."""
    for _ in range(50):  # what the first ones load and allocate is not theirs
        collaboration(client, 2, 3)
    for members, arms, times in ((2, 3, collaborations), (2, 1000, 20), (1000, 10, 2)):
        before = memory_bytes(process)
        for _ in range(times):
            collaboration(client, members, arms)
        each = (memory_bytes(process) - before) / times
        what = f"memory of a collaboration: {members:,} members, {arms:,} arms"
        yield what, each / 1024, None, False, "KiB"


def spread_rows(client, port, process, many):
    """Yield rate and latency of asks and tells by number of collaborations, 64 connections in all."""
    made = []
    for total in many:
        while len(made) < total:
            path, (token,) = collaboration(client, 1)
            made += plan_of(path, [token])
        chosen = random.Random(1).sample(made, min(64, total)) if total > 1 else None
        if chosen is None:
            chosen = plan_of(*collaboration(client, 64))
        began, cpu = time.perf_counter(), processor_seconds(process)
        found = load(port, chosen, 3)
        share = (processor_seconds(process) - cpu) / (time.perf_counter() - began)
        what = f"{total:,} collaborations in memory, {len(chosen)} connections"
        yield f"{what}: asks and tells", found["rate"], None, True, "/s"
        yield f"{what}: p50", found["p50"], None, False, "ms"
        yield f"{what}: p99", found["p99"], None, False, "ms"
        yield f"{what}: processor time of a request", share / found["rate"] * 1e6, None, False, "µs"


def member_rows(client, port, many):
    """Yield rate and latency of asks and tells by number of members with a connection each, in one collaboration."""
    for members in many:
        path, tokens = collaboration(client, members)
        found = load(port, plan_of(path, tokens), 3)
        what = f"{members:,} members that ask and tell without a pause"
        yield f"{what}: asks and tells", found["rate"], None, True, "/s"
        yield f"{what}: p50", found["p50"], None, False, "ms"
        yield f"{what}: p99", found["p99"], None, False, "ms"


def process_rows():
    """Yield rate and latency by number of processes, on PostgreSQL."""
    with postgres() as cluster:
        if cluster is None:
            return
        for workers in (1, 2):
            with cluster.database() as url, server(url, workers) as (client, port, _):
                plan = [one for _ in range(8) for one in plan_of(*collaboration(client, 8))]
                found = load(port, plan, 3)
                what = f"PostgreSQL, 8 collaborations, {workers} processes"
                yield f"{what}: asks and tells", found["rate"], None, True, "/s"
                yield f"{what}: p50", found["p50"], None, False, "ms"
                yield f"{what}: p99", found["p99"], None, False, "ms"


def measure(long=False):
    """Yield (what, measured, limit, whether more is better, unit)."""
    _allow_files()
    with tempfile.TemporaryDirectory() as folder, server(f"{folder}/partage.db") as (client, port, process):
        yield from memory_rows(client, process, 500 if long else 100)
        yield from member_rows(client, port, (1, 10, 100, 1000) if long else (1, 10, 100))
        yield from spread_rows(client, port, process, (1, 64, 1000, 5000) if long else (1, 64, 500))
        yield from fan_out_rows(client, port, process, (10, 100, 1000, 10_000) if long else (10, 100, 1000))
    yield from process_rows()


def measure_long():
    """Yield the rows of the largest sizes."""
    return measure(long=True)


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
    """Let requests arrive at random (Poisson) at this rate; return their latencies."""
    loop = asyncio.get_running_loop()
    free, latencies, running = [], [], set()
    for one in plan:
        _, client = await loop.create_connection(_Client, "127.0.0.1", port)
        free.append((client, one, [None]))
    seed = random.Random(1)

    async def one():
        began = time.perf_counter()
        client, agent, pull = free.pop()
        if pull[0] is None:
            answer = json.loads(await client.send(agent["ask"], agent["token"], "{}"))
            pull[0] = answer["pull"]
        else:
            await client.send(agent["tell"], agent["token"], json.dumps({"pull": pull[0], "reward": 0.5}))
            pull[0] = None
        latencies.append(time.perf_counter() - began)
        free.insert(0, (client, agent, pull))

    ends, due = loop.time() + seconds, loop.time()
    while due < ends:
        due += seed.expovariate(rate)
        await asyncio.sleep(max(0.0, due - loop.time()))
        if free:
            task = loop.create_task(one())
            running.add(task)
            task.add_done_callback(running.discard)
    await asyncio.gather(*running)
    return sorted(latencies)


def curve(rates=(50, 200, 500, 1000, 1500, 2000, 2500)):
    """Print latencies by rate of arrival, and what the queue says."""
    import uvloop

    _allow_files()
    with tempfile.TemporaryDirectory() as folder, server(f"{folder}/partage.db") as (client, port, process):
        plan = plan_of(*collaboration(client, 256))
        most = load(port, plan[:64], 3)
        service = 1 / most["rate"]
        print(f"64 connections without a pause: {most['rate']:,.0f} requests/s, so {service * 1e6:.0f} µs a request")
        alone = uvloop.run(arrivals(port, plan, 20, 3))
        base = sum(alone) / len(alone)
        print(f"a request alone: {base * 1e3:.2f} ms, of which {(base - service) * 1e3:.2f} ms are not service")
        for rate in rates:
            cpu = processor_seconds(process)
            found = uvloop.run(arrivals(port, plan, rate, 4))
            used = processor_seconds(process) - cpu
            load_ = rate * service
            waits = load_ * service / (2 * (1 - load_)) if load_ < 1 else math.inf
            mean, p99 = sum(found) / len(found), found[len(found) * 99 // 100]
            print(
                f"{rate:5,}/s, load {load_:.2f}: mean {mean * 1e3:.2f} ms, p50 {found[len(found) // 2] * 1e3:.2f}, "
                f"p99 {p99 * 1e3:.2f}; M/D/1 mean {(base + waits) * 1e3:.2f}; "
                f"{used / len(found) * 1e6:.0f} µs of processor time a request",
                flush=True,
            )


def _allow_files():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="10,000 streams and 5,000 collaborations")
    parser.add_argument("--curve", action="store_true", help="latencies by rate of arrival")
    parser.add_argument("--streams", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.streams:
        _allow_files()
        asyncio.run(read_streams())
    elif given.curve:
        curve()
    else:
        for what, value, *_, unit in measure(given.long):
            print(f"{what}: {value:,.3g} {unit}" if value < 1000 else f"{what}: {value:,.0f} {unit}", flush=True)


if __name__ == "__main__":
    main()

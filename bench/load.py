"""Load for the server from another process: connections that each wait for an answer before the next request.

`python -m bench.load` reads a plan (JSON) from standard input and writes its measurements to standard output. It
writes HTTP/1.1 by hand, because a client library would cost more than the server that is measured.
"""

import asyncio
import itertools
import json
import sys
import time

import uvloop


class Connection(asyncio.Protocol):
    """Let agents take turns: each asks and, if it gets a claim, tells. Or post empty objects again and again."""

    def __init__(self, host, agents, finished):
        self.turns = itertools.cycle(agents)
        self.host, self.latencies, self.pairs, self.errors = host, [], 0, 0
        self.buffer, self.finished, self.stopped = b"", finished, False

    def connection_made(self, transport):
        self.transport = transport
        self.ask()

    def ask(self):
        self.agent = next(self.turns)
        self.send(_request(self.host, self.agent["ask"], self.agent["token"], b"{}"))

    def send(self, data):
        self.began = time.perf_counter()
        self.transport.write(data)

    def data_received(self, data):
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        lower = head.lower()
        place = lower.find(b"content-length:")
        length = int(lower[place + 15 :].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        self.latencies.append(time.perf_counter() - self.began)
        self.buffer = body[length:]
        if not head.startswith(b"HTTP/1.1 20"):
            self.errors += 1
        if self.stopped:
            self.transport.close()
            return
        if b'"share":true' in body:
            pull = body[8 : body.index(b",")]  # {"pull":17,…
            self.pairs += 1
            told = b'{"pull":%b,"reward":0.5}' % pull
            self.send(_request(self.host, self.agent["tell"], self.agent["token"], told))
        else:
            self.ask()

    def connection_lost(self, error):
        if not self.finished.done():
            self.finished.set_result(None)


def _request(host, path, token, body):
    return (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def load(plan):
    """Carry out a plan. It has a connection for each of its `agents`, or for each list of agents that take turns."""
    loop = asyncio.get_running_loop()
    connections = []
    for one in plan["agents"]:
        finished, agents = loop.create_future(), one if isinstance(one, list) else [one]
        _, connection = await loop.create_connection(
            lambda a=agents, f=finished: Connection(plan["host"], a, f), plan["host"], plan["port"]
        )
        connections.append(connection)
    await asyncio.sleep(plan["warm"])
    for connection in connections:
        connection.latencies.clear()
        connection.pairs = 0
    began = time.perf_counter()
    await asyncio.sleep(plan["seconds"])
    seconds = time.perf_counter() - began
    latencies = sorted(seconds for connection in connections for seconds in connection.latencies)
    pairs = sum(connection.pairs for connection in connections)
    for connection in connections:
        connection.stopped = True
    await asyncio.wait([connection.finished for connection in connections], timeout=10)
    latencies = latencies or [seconds]  # nobody was answered
    return {
        "rate": len(latencies) / seconds,
        "pairs": pairs / seconds,
        "p50": latencies[len(latencies) // 2] * 1000,
        "p99": latencies[len(latencies) * 99 // 100] * 1000,
        "longest": latencies[-1] * 1000,
        "errors": sum(connection.errors for connection in connections),
    }


if __name__ == "__main__":
    print(json.dumps(uvloop.run(load(json.load(sys.stdin)))))

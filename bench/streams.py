"""Event streams that a process of its own keeps open: it counts what arrives.

`python -m bench.streams` is that process. It reads a plan (JSON) from standard input, and writes its counts for each
further line.
"""

import asyncio
import json
import resource
import subprocess
import sys
import time

import uvloop

EVENT = b"\nevent: "  # no board holds it: a line break in a name is escaped
LOOKS = 100  # at most, until nothing more arrives
AT_ONCE = 200  # streams that wait for their first board: the server admits 300 new tokens of an address at a time


class Streams:
    """One open event stream for each token, until it is closed."""

    def __init__(self, port, path, tokens, patches):
        self._times = len(tokens)
        plan = {"port": port, "path": f"{path}/events" + "?patches=true" * patches, "tokens": tokens}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.streams"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._counts(json.dumps(plan))  # once all of them have their first board

    def counts(self, quiet):
        """Return the events and the bytes of all streams, once nothing has come for this many seconds."""
        found = None
        for _ in range(LOOKS):
            before, found = found, self._counts()
            if found == before:
                break
            time.sleep(quiet)
        return found

    def _counts(self, line=""):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        found = json.loads(self._process.stdout.readline() or "{}")
        if found.get("open") != self._times:
            raise RuntimeError("The server refused or ended an event stream.")
        return found

    def close(self):
        with self._process as process:  # closes its pipes, and waits
            process.kill()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


class Stream(asyncio.Protocol):
    """An event stream, which adds what arrives to `counts`."""

    def __init__(self, request, counts):
        self._request, self._counts = request, counts
        self._end, self._open = b"", False  # the end of what arrived, in which an event may have begun

    def connection_made(self, transport):
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data):
        if data.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")):  # refused
            self._transport.close()
        both = self._end + data
        events = both.count(EVENT)
        self._end = both[1 - len(EVENT) :]
        if events and not self._open:
            self._open = True
            self._counts["open"] += 1
        self._counts["events"] += events
        self._counts["bytes"] += len(data)

    def connection_lost(self, error):
        self._counts["open"] -= self._open
        self._counts["lost"] += 1


async def read():
    """Open the streams of the plan, and print their counts whenever a line arrives."""
    plan, loop = json.loads(sys.stdin.readline()), asyncio.get_running_loop()
    counts = {"open": 0, "lost": 0, "events": 0, "bytes": 0}
    for place, token in enumerate(plan["tokens"]):
        request = f"GET {plan['path']} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        await loop.create_connection(lambda one=request: Stream(one, counts), "127.0.0.1", plan["port"])
        while place - counts["open"] > AT_ONCE and not counts["lost"]:
            await asyncio.sleep(0.01)
    while counts["open"] < len(plan["tokens"]) and not counts["lost"]:
        await asyncio.sleep(0.01)
    print(json.dumps(counts), flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(counts), flush=True)


def allow_files():
    """Allow this process as many open files as it may have."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    allow_files()
    uvloop.run(read())

"""One member, or none, against everybody else: `make bench PART=freezing`.

Each attack runs against a real server with SQLite on loopback, while another process asks `/health` every ten
milliseconds. The table has its latencies, the most memory that the server had, and what became of the attack. The
goal is a 99th percentile below 100 ms. Attacker and server share this machine with whatever else runs on it: compare
with the first line, the server at rest, and with how long the loop was busy at a time (`bench.watched`).
"""

import argparse
import asyncio
import contextlib
import importlib
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
from rich.console import Console
from rich.table import Table

from partage.ledger import moves
from partage.ledger.events import Run
from partage.ledger.messages import NewAgent, NewCollaboration
from partage.service.runtime.controller import Controller
from partage.service.store import open_store

TOKEN = "the operator's token of a bench"
GOAL = 100  # ms


class Server:
    """A server process of its own, as `partage serve` starts it."""

    def __init__(self, folder, **environment):
        self.file = Path(folder) / "partage.db"
        settings = {**os.environ, "PARTAGE_OPERATOR_TOKEN": TOKEN, **environment}
        self._busy = Path(folder) / "busy.json"
        command = [sys.executable, "-m", "bench.watched", str(self.file), str(self._busy)]
        self.process = subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=self.url, headers=bearer(TOKEN), timeout=120)
        for _ in range(600):
            with contextlib.suppress(httpx.TransportError):
                if self.client.get("/health").is_success:
                    return
            time.sleep(0.1)
        raise RuntimeError("The server did not start.")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.most = self.memory("VmHWM")
        self.client.close()
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.busy = json.loads(self._busy.read_text()) if self._busy.exists() else {}

    def memory(self, what="VmRSS"):
        """Return the server's memory in MB; with "VmHWM", the most that it had. None where /proc is missing."""
        with contextlib.suppress(OSError):
            found = re.search(rf"{what}:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
            return int(found[1]) / 1000
        return None

    def create(self, arms, agents, **config):
        """Create a collaboration with agents; return its path and their tokens."""
        names = [f"arm {arm}" for arm in range(arms)]
        body = {"name": "bench", "arms": names, "horizon": 10**6, "rule": "balanced-etc", "invites": 1} | config
        made = self.client.post("/v1/collaborations", json=body).raise_for_status().json()
        path, tokens = f"/v1/collaborations/{made['id']}", []
        while len(made["invites"]) < agents:
            more = self.client.post(f"{path}/invites", json={"invites": min(100, agents - len(made["invites"]))})
            made["invites"] += more.raise_for_status().json()["invites"]
        for number, invite in enumerate(made["invites"][:agents]):
            body = {"name": f"agent {number}", "shares": names}
            joined = self.client.post(f"{path}/agents", json=body, headers=bearer(invite)).raise_for_status()
            tokens.append(joined.json()["token"])
        return path, tokens

    def load(self, path, tokens, seconds):
        """Start agents that ask and tell as fast as they can; return the process."""
        agents = [{"ask": f"{path}/ask", "tell": f"{path}/tell", "token": token} for token in tokens]
        plan = {"host": "127.0.0.1", "port": self.port, "agents": agents, "warm": 0.2, "seconds": seconds}
        loading = subprocess.Popen(
            [sys.executable, "-m", "bench.load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        loading.stdin.write(json.dumps(plan))
        loading.stdin.close()
        return loading


def loaded(loading):
    """Return what the agents measured."""
    found = json.loads(loading.stdout.read())
    loading.stdout.close()
    loading.wait()
    return found


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@contextlib.contextmanager
def health(server):
    """Ask `/health` all the while; the dictionary has the figures afterwards."""
    asking = subprocess.Popen(
        [sys.executable, "-m", "bench.health", str(server.port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    time.sleep(0.5)
    figures = {}
    try:
        yield figures
    finally:
        figures |= json.loads(asking.communicate()[0])


# the attacks: each takes a folder and the seconds it may last, and returns the figures and what became of it


def at_rest(folder, seconds):
    """A server with nothing to do."""
    with Server(folder) as server:
        with health(server) as figures:
            time.sleep(seconds)
        return server, figures, ""


def large_reports(folder, seconds):
    """(a) A ledger full of reports of 250 KB, read by its operator and by a member from whom they are hidden."""
    rows = 200
    made = asyncio.run(_reported(Path(folder) / "partage.db", rows))
    with Server(folder) as server:
        sizes = []
        with health(server) as figures:
            for token in (TOKEN, made["reader"], TOKEN):
                size = 0
                with server.client.stream("GET", f"{made['path']}/ledger", headers=bearer(token)) as answer:
                    for part in answer.iter_raw():
                        size += len(part)
                sizes.append(f"{size / 1e6:,.1f} MB")
        return server, figures, f"read {', '.join(sizes)}"


async def _reported(file, rows):
    """Write large reports, as the releases did that took them."""
    controller = Controller(open_store(str(file)), TOKEN)
    new = NewCollaboration(
        name="bench", arms=["a", "b"], horizon=10**9, invites=2, settlement="equal-share", underwriting=0
    )
    id, codes = await controller.create("secret", new)
    agent, _ = (await controller.join(id, codes[0], NewAgent(name="reporter", shares=[])))[:2]
    _, reader = (await controller.join(id, codes[1], NewAgent(name="reader", shares=["a", "b"])))[:2]
    book = await controller.library.book(id)
    pull = await controller.ask(book, "a2", None, False)
    await controller.tell(book, "a2", pull.pull, 1.0)
    runs = [Run(book.state.version, book.state.target(), 1)] * 7000
    for row in range(rows):
        await controller.library.put(book, lambda turn, row=row: moves.commits(turn, agent, f"report {row}", runs))
    await controller.stop()
    return {"path": f"/v1/collaborations/{id}", "reader": reader}


def close_when_busy(folder, seconds):
    """(b) A board with 100 arms and 64 busy agents is closed."""
    with contextlib.suppress(ImportError, AttributeError):
        return importlib.import_module("bench.close").against(Server, health, folder, seconds)
    with Server(folder) as server:
        path, tokens = server.create(100, 64, settlement="equal-share", underwriting=0)
        with health(server) as figures:
            loading = server.load(path, tokens, seconds)
            time.sleep(seconds / 2)
            began = time.perf_counter()
            status = server.client.post(f"{path}/close").status_code
            took = time.perf_counter() - began
            loaded(loading)
        return server, figures, f"close: {status} after {took:.1f} s"


def toggling(folder, seconds):
    """(c) A member toggles its consent as fast as it can, and reports commits that are refused."""
    with Server(folder) as server:
        path, tokens = server.create(10, 2, settlement="equal-share", underwriting=0)
        answers, over = Counter(), time.monotonic() + seconds
        mine = bearer(tokens[0])
        with health(server) as figures:
            place = 0
            while time.monotonic() < over:
                place += 1
                shares = [f"arm {arm}" for arm in range(10 if place % 2 else 9)]
                changed = server.client.patch(f"{path}/agents/me", json={"shares": shares}, headers=mine)
                run = {"version": 0, "arm": f"arm {place % 10}", "pulls": 1}
                report = {"request": f"report {place}", "runs": [run]}
                refused = server.client.post(f"{path}/commits", json=report, headers=mine)
                answers[f"consent {changed.status_code}"] += 1
                answers[f"commits {refused.status_code}"] += 1
        return server, figures, _counted(answers)


def long_header(folder, seconds):
    """(d) 200 MB of header without a token."""
    with Server(folder) as server:
        answers, megabyte = Counter(), b"x" * 2**20
        with health(server) as figures:
            for _ in range(5):
                sent = 0
                with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
                    with contextlib.suppress(OSError):
                        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX-Long: ")
                        for _ in range(200):
                            connection.sendall(megabyte)
                            sent += 1
                    answer = b""
                    with contextlib.suppress(OSError):
                        answer = connection.recv(100)
                answers[answer[9:12].decode() or "cut off"] += 1
        return server, figures, f"{_counted(answers)}; the last one after {sent} MB"


def locked_file(folder, seconds):
    """(e) Another process has SQLite's file locked while eight agents ask."""
    with Server(folder) as server:
        path, tokens = server.create(10, 8)
        answers = Counter()

        def ask(token):
            with httpx.Client(base_url=server.url, headers=bearer(token), timeout=120) as client:
                for _ in range(3):
                    answers[f"ask {client.post(f'{path}/ask', json={}).status_code}"] += 1

        threads = [threading.Thread(target=ask, args=(token,)) for token in tokens]
        with contextlib.closing(sqlite3.connect(server.file, isolation_level=None)) as shell:
            shell.execute("BEGIN IMMEDIATE")
            with health(server) as figures:
                for thread in threads:
                    thread.start()
                over = time.monotonic() + seconds
                while time.monotonic() < over:
                    answers[f"board {server.client.get(f'{path}/board').status_code}"] += 1
                    time.sleep(0.05)
                shell.execute("ROLLBACK")
                for thread in threads:
                    thread.join()
        return server, figures, f"locked for {seconds:g} s: {_counted(answers)}"


def streams_on_one_token(folder, seconds):
    """(f) A thousand streams on one token."""
    with Server(folder) as server:
        path, tokens = server.create(10, 8)
        with health(server) as figures:
            answers = asyncio.run(_streams(server, path, [tokens[0]] * 1000, tokens, seconds))
        return server, figures, _counted(answers)


def streams_of_members(folder, seconds):
    """(f) A thousand members with a stream each."""
    with Server(folder) as server:
        path, tokens = server.create(10, 1000)
        with health(server) as figures:
            answers = asyncio.run(_streams(server, path, tokens, tokens[:8], seconds))
        return server, figures, _counted(answers)


async def _streams(server, path, tokens, agents, seconds):
    """Open a stream for each token, and read all of them while some agents ask and tell."""
    answers = Counter()
    opened = []

    async def stream(token):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        except OSError:
            answers["no connection"] += 1
            return
        opened.append(writer)
        request = f"GET {path}/events HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\r\n"
        writer.write(request.encode())
        head = await reader.readuntil(b"\r\n\r\n")
        answers[f"streams {head[9:12].decode()}"] += 1
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while part := await reader.read(2**16):
                answers["boards"] += part.count(b"event: board")

    tasks = [asyncio.create_task(stream(token)) for token in tokens]
    await asyncio.sleep(1)
    loading = server.load(path, agents, seconds)
    found = await asyncio.to_thread(loaded, loading)
    answers["requests a second"] = round(found["rate"])
    for writer in opened:
        writer.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return answers


def many_arms(folder, seconds):
    """(g) A collaboration with 1,000 arms and 32 busy agents beside a neighbour with one agent."""
    with Server(folder) as server:
        path, tokens = server.create(1000, 32, settlement="none")
        quiet, (neighbour,) = server.create(3, 1)
        with health(server) as figures:
            loading = server.load(path, tokens, seconds)
            time.sleep(0.3)
            found = loaded(server.load(quiet, [neighbour], max(1, seconds - 1)))
            busy = loaded(loading)
        return (
            server,
            figures,
            f"neighbour p50 {found['p50']:.0f}, p99 {found['p99']:.0f} ms; busy one {busy['rate']:.0f} requests/s",
        )


def _counted(answers):
    return ", ".join(f"{what}: {count:,}" for what, count in answers.items())


ATTACKS = (
    at_rest,
    large_reports,
    close_when_busy,
    toggling,
    long_header,
    locked_file,
    streams_on_one_token,
    streams_of_members,
    many_arms,
)


def measured(attack, seconds):
    """Return a line of the table."""
    with tempfile.TemporaryDirectory(prefix="partage-bench-") as folder:
        server, figures, outcome = attack(folder, seconds)
        return figures, server, outcome


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="that each attack lasts, about")
    parser.add_argument("--only", default="", help="a part of an attack's name")
    given = parser.parse_args(arguments)
    table = Table(title="/health under attack, in ms, and how long the event loop was busy at a time")
    for column in ("attack", "p50", "p99", "max", "busy p99", "max", "memory, MB", "what became of it"):
        table.add_column(column, justify="left" if column in ("attack", "what became of it") else "right")
    for attack in ATTACKS:
        if given.only in attack.__name__:
            print(attack.__name__, end=" ", file=sys.stderr, flush=True)
            figures, server, outcome = measured(attack, given.seconds)
            late = "" if figures["p99"] < GOAL else " MISSED"
            found = [f"{figures['p50']:.1f}", f"{figures['p99']:.1f}{late}", f"{figures['max']:.0f}"]
            found += [f"{server.busy[name]:.1f}" if server.busy else "" for name in ("p99", "max")]
            found += ["" if server.most is None else f"{server.most:,.0f}"]
            table.add_row(attack.__doc__.strip(), *found, outcome)
    print(file=sys.stderr)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()

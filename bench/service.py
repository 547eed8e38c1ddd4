"""Speed of the live controller over loopback, as ratios measured in one run: part of `make bench`."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time

import httpx
from litestar import post

from partage.service.serve import application

AGENTS, ARMS = 64, 10
TOKEN = "the token of a bench"


@post("/empty", status_code=200)
async def empty(data: dict[str, str]) -> dict[str, str]:
    """Do nothing: what the same server does for an empty JSON POST."""
    return {}


def with_empty():
    """Return the server's application with one more path."""
    app = application()
    app.register(empty)
    return app


@contextlib.contextmanager
def server(database, workers=1):
    """Run a server process on a free port; give its address and the seconds from start to its first answer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = (
        "import uvicorn; uvicorn.run('bench.service:with_empty', factory=True, port={}, workers={}, access_log=False, "
        "log_level='warning', loop='uvloop', http='httptools', backlog=4096)"
    ).format(port, workers)
    environment = {**os.environ, "PARTAGE_DATABASE": database, "PARTAGE_OPERATOR_TOKEN": TOKEN, "PARTAGE_LOG_LEVEL": "error"}
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {TOKEN}"}) as client:
            for _ in range(600):
                with contextlib.suppress(httpx.TransportError):
                    client.get("/health")
                    break
                time.sleep(0.02)
            yield client, port, time.perf_counter() - began
    finally:
        process.terminate()
        process.wait(20)


def agents_of(client, collaborations, rule="balanced-etc"):
    """Create collaborations with 64 agents in all who share every arm, so that every ask is a claim."""
    found = []
    for place in range(collaborations):
        arms = [f"arm {arm}" for arm in range(ARMS)]
        body = {"name": f"bench {place}", "arms": arms, "horizon": 10**9, "rule": rule, "invites": AGENTS // collaborations}
        made = client.post("/v1/collaborations", json=body, timeout=60).json()
        path = f"/v1/collaborations/{made['id']}"
        for number, invite in enumerate(made["invites"]):
            body = {"name": f"agent {number}", "shares": arms}
            joined = client.post(f"{path}/agents", json=body, headers={"Authorization": f"Bearer {invite}"}).json()
            found.append({"ask": f"{path}/ask", "tell": f"{path}/tell", "token": joined["token"]})
    return found


def load(port, agents, seconds):
    """Let 64 connections send requests for some seconds, from a process of their own."""
    plan = {"host": "127.0.0.1", "port": port, "agents": agents, "warm": 1.0, "seconds": seconds}
    done = subprocess.run(
        [sys.executable, "-m", "bench.load"], input=json.dumps(plan), capture_output=True, text=True, check=True
    )
    measured = json.loads(done.stdout)
    assert not measured["errors"], f"{measured['errors']} requests failed"
    return measured


if __name__ == "__main__":
    import tempfile
    database, collaborations = sys.argv[1], int(sys.argv[2])
    workers = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rule = sys.argv[4] if len(sys.argv) > 4 else "balanced-etc"
    with tempfile.TemporaryDirectory() as folder, server(database if "://" in database else f"{folder}/p.db", workers) as (client, port, start):
        print("start", start)
        agents = agents_of(client, collaborations, rule)
        print("empty", load(port, [{"ask": "/empty", "tell": "", "token": TOKEN}] * AGENTS, 3))
        print("pairs", load(port, agents, 4))
        print("empty", load(port, [{"ask": "/empty", "tell": "", "token": TOKEN}] * AGENTS, 3))

"""Sweeps on clusters of several processes on this machine: what a worker is worth, and whether a lost one matters.

    python -m bench.clusters              # Dask, and Ray if it is installed
    python -m bench.clusters --games 1000

A sweep is played on a cluster of one worker, and of two. The efficiency of k workers is the time of the sweep on one,
divided by k times the time on k. With more workers than cores it shows the overhead only. The last row of each
cluster says whether a sweep in which a worker process is killed gives the bits of threads.
"""

import argparse
import importlib.util
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from partage import BalancedETC, Game, Sharing, bernoulli, sweep

RUNS = 10
GAMES = 10_000
FIRST = 256  # games that a new cluster plays before the clock starts, so that its workers have loaded the kernels


def games(many):
    """Return games of 2 to 10 arms, 10 to 100 agents and T from 10^3 to 10^4."""
    chance = np.random.default_rng(0)
    found = []
    for _ in range(many):
        arms, agents = int(chance.integers(2, 11)), int(chance.integers(10, 101))
        horizon = round(10 ** chance.uniform(3, 4))
        found.append(Game(bernoulli(chance.random(arms)), Sharing.round_robin(agents, arms), horizon))
    return found


def played(many, on, jobs=None, progress=False):
    """Play a sweep of so many games."""
    return sweep(games(many), BalancedETC(), runs=RUNS, on=on, jobs=jobs, progress=progress)


def bits(found):
    return [(one.means.tobytes(), one.squares.tobytes()) for one in found.sums]


@contextmanager
def dask(workers):
    """Start a Dask cluster; yield its address for `on`, and a function that returns the pid of one of its workers."""
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
        yield f"dask={cluster.scheduler_address}", lambda: min(client.run(os.getpid).values())


@contextmanager
def ray(workers):
    """Start a Ray cluster in processes of its own; yield as `dask` does.

    Ray listens on all interfaces, so the cluster takes only those who know a token that is made for it.
    """
    ray_command = Path(sys.executable).with_name("ray")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="ray") as folder:
        start = ["start", "--head", "--block", "--disable-usage-stats", "--node-ip-address=127.0.0.1"]
        size = [f"--num-cpus={workers}", "--object-store-memory=100000000", "--include-dashboard=false"]
        where = [f"--port={port}", f"--temp-dir={folder}", "--min-worker-port=0", "--max-worker-port=0"]
        with _environment(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32)):
            head = subprocess.Popen(
                [ray_command, *start, *size, *where], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                _wait_for(port, head)
                yield f"ray=127.0.0.1:{port}", lambda: _ray_worker(folder)
            finally:
                head.terminate()
                head.wait(30)


@contextmanager
def _environment(**more):
    """Set environment variables for a while."""
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _wait_for(port, head, seconds=60):
    until = time.monotonic() + seconds
    while time.monotonic() < until and head.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                time.sleep(5)  # until its node is registered
                return
        time.sleep(0.2)
    raise RuntimeError("The Ray cluster did not start.")


def _ray_worker(folder):
    """Return the pid of a worker of the cluster in this folder that plays now."""
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes()
            environment = (entry / "environ").read_bytes() if command.startswith(b"ray::_elsewhere") else b""
        except (OSError, ValueError):
            continue
        if folder.encode() in environment:
            return int(entry.name)
    return None


def measure_on(name, cluster, many=GAMES):
    """Yield (what, measured, goal, whether more is better, unit) for one kind of cluster."""
    seconds = {}
    for workers in (1, 2):
        with cluster(workers) as (on, _):
            played(FIRST, on)
            seconds[workers] = played(many, on).seconds
    plain = played(many, "threads", 1)
    what = f"sweep of {many:,} games, {name}"
    yield f"{what}, one worker / one thread", seconds[1] / plain.seconds, 1.3, False, "x"
    yield f"{what}, efficiency of two workers", seconds[1] / seconds[2] / 2, 0.8, True, "x"
    yield f"{what}, a game of {RUNS} runs on one worker", seconds[1] / many * 1e3, None, False, "ms"
    yield f"{what}, games whose bits differ after a worker is killed", _differing(cluster, many), 0, False, ""


def _differing(cluster, many):
    """Return how many games differ from those on threads after a worker is killed in the middle."""
    many = min(many, 1000)
    with cluster(2) as (on, worker):
        killed = []

        def kill(progress):
            if not killed and progress.done and progress.left:
                pid = worker()
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

        found = played(many, on, progress=kill)
    if not killed:
        raise RuntimeError("No worker was killed in the middle.")
    return sum(one != other for one, other in zip(bits(found), bits(played(many, "threads")), strict=True))


def measure(many=GAMES):
    """Yield the rows of Dask."""
    yield from measure_on("Dask", dask, many)


def measure_ray(many=GAMES):
    """Yield the rows of Ray."""
    yield from measure_on("Ray", ray, many)


def measure_all():
    """Yield the rows of every cluster whose package is installed."""
    for package, part in (("distributed", measure), ("ray", measure_ray)):
        if importlib.util.find_spec(package):
            yield from part()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=GAMES)
    parser.add_argument("--only", choices=("dask", "ray"))
    given = parser.parse_args()
    parts = {"dask": measure, "ray": measure_ray}
    for name, part in parts.items():
        if given.only in (None, name) and importlib.util.find_spec("distributed" if name == "dask" else name):
            for what, value, goal, _, unit in part(given.games):
                print(f"{what}: {value:.3g} {unit}" + ("" if goal is None else f" (goal {goal:g})"), flush=True)


if __name__ == "__main__":
    main()

"""Sweeps on clusters of several processes on this machine: what a worker is worth, and whether a lost one matters.

    python -m bench.clusters              # Dask, and Ray in an environment of its own
    python -m bench.clusters --games 1000 --only ray

A sweep is played on a cluster of one worker, and of two. The efficiency of k workers is the time of the sweep on one,
divided by k times the time on k. With more workers than cores it shows the overhead only. The last row of each
cluster says whether a sweep in which a worker process is killed gives the bits of threads.
"""

import argparse
import logging
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
from bench.elsewhere import Failed, TooLong, elsewhere
from bench.environments import with_ray
from bench.rows import Row

from partage import BalancedETC, Game, Sharing, bernoulli, sweep

ABOUT = (
    "A sweep of 10,000 games of 5 runs, folded on the workers, so that only sums travel. The efficiency of two "
    "workers is the waiting time on one, divided by twice that on two. On two cores, four workers would show "
    "overhead only. In the last row of each cluster, one of two workers is killed in the middle of a sweep."
)
RUNS = 5
GAMES = 10_000
TOKEN = secrets.token_hex(32)  # for all clusters of this process, in which Ray reads it once
KILLED = 1000  # games of the sweep in which a worker is killed
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

    options = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
        yield f"dask={cluster.scheduler_address}", lambda: min(client.run(os.getpid).values())


@contextmanager
def ray(workers):
    """Start a Ray cluster in processes of its own; yield as `dask` does.

    Ray listens on all interfaces, so the cluster takes only those who know a token.
    """
    ray_command = Path(sys.executable).with_name("ray")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="ray") as folder:
        start = ["start", "--head", "--block", "--disable-usage-stats", "--node-ip-address=127.0.0.1"]
        size = [f"--num-cpus={workers}", "--object-store-memory=100000000", "--include-dashboard=false"]
        where = [f"--port={port}", f"--temp-dir={folder}", "--min-worker-port=0", "--max-worker-port=0"]
        with _environment(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=TOKEN):
            head = subprocess.Popen(
                [ray_command, *start, *size, *where], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                _wait_for(port, head)
                yield f"ray=127.0.0.1:{port}", lambda: _ray_worker(head.pid)
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


def _wait_for(port, head, seconds=120):
    """Wait until the cluster takes work: its port is open before its node is registered."""
    import ray

    until = time.monotonic() + seconds
    while time.monotonic() < until and head.poll() is None:
        time.sleep(0.5)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                continue
        try:
            ray.init(f"127.0.0.1:{port}", logging_level=logging.CRITICAL, log_to_driver=False)
        except (OSError, RuntimeError, ValueError):
            continue
        finally:
            ray.shutdown()
        return
    raise RuntimeError("The Ray cluster did not start.")


def _ray_worker(head):
    """Return the pid of a process of this Ray cluster that plays now; None if all of them wait."""
    parents, playing = {}, []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if (entry / "cmdline").read_bytes().startswith(b"ray::_elsewhere"):
                playing.append(int(entry.name))
        except OSError:  # it has ended
            continue
    for pid in playing:
        above = pid
        while above in parents and above != head:
            above = parents[above]
        if above == head:
            return pid
    return None


def measure_on(name, cluster, many, alone):
    """Yield the rows of one kind of cluster; one thread takes `alone` seconds for the sweep."""
    seconds = {}
    for workers in (1, 2):
        with cluster(workers) as (on, _):
            played(FIRST, on)
            seconds[workers] = played(many, on).seconds
    what = f"{name}, {many:,} games"
    yield Row(f"{what}: one worker / one thread, waiting time", seconds[1] / alone, 1.3)
    yield Row(f"{what}: efficiency of two workers", seconds[1] / seconds[2] / 2, 0.8, more_is_better=True)
    yield Row(f"{what}: a game of {RUNS} runs on one worker, waiting time", seconds[1] / many * 1e3, unit="ms")
    several = min(many, KILLED)
    what = f"{name}, {several:,} games: those whose bits differ after a worker is killed"
    yield Row(what, _differing(cluster, several), 0, unit="games")


def _differing(cluster, many):
    """Return how many games differ from those on threads after a worker is killed in the middle."""
    killed = []
    with cluster(2) as (on, worker):

        def kill(progress):
            if not killed and progress.done and progress.left:
                pid = worker()
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

        found = played(many, on, progress=kill)
    if not killed:
        raise RuntimeError("No worker was killed in the middle.")
    plain = played(many, "threads")
    return sum(one != other for one, other in zip(bits(found), bits(plain), strict=True))


CLUSTERS = {"Dask": dask, "Ray": ray}


def measure(name, many, alone):
    """Yield the rows of the cluster of this name."""
    yield from measure_on(name, CLUSTERS[name], many, alone)


def measure_all(many=GAMES, only=None):
    """Yield the rows of Dask, and of Ray from an environment of its own unless Ray is installed."""
    played(FIRST, "threads", 1)
    alone = played(many, "threads", 1).seconds
    yield Row(f"one thread, {many:,} games: a game of {RUNS} runs, waiting time", alone / many * 1e3, unit="ms")
    if only != "ray":
        yield from _or_why_not("Dask", lambda: measure("Dask", many, alone))
    if only != "dask":
        yield from _or_why_not("Ray", lambda: _with_ray(many, alone))


def _with_ray(many, alone):
    """Yield the rows of Ray, from an environment of its own unless Ray is installed."""
    yield from elsewhere("bench.clusters:measure", "Ray", many, alone, seconds=600, python=with_ray())


def _or_why_not(name, rows):
    """Yield the rows of a cluster, or why there are no more of them, so that the next one is still measured."""
    try:
        yield from rows()
    except ModuleNotFoundError as error:
        yield Row(f"{name}: the rest", note=f"not measured: {error.name} is not installed")
    except subprocess.CalledProcessError as error:
        yield Row(f"{name}: the rest", note=f"not measured: pip failed with code {error.returncode}")
    except (Failed, TooLong, OSError, RuntimeError) as error:
        yield Row(f"{name}: the rest", note=f"not measured: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=GAMES)
    parser.add_argument("--only", choices=("dask", "ray"))
    given = parser.parse_args()
    for row in measure_all(given.games, given.only):
        value = row.note if row.measured is None else f"{row.measured:.3g} {row.unit}"
        print(f"{row.what}: {value}" + ("" if row.goal is None else f" (goal {row.goal:g})"))


if __name__ == "__main__":
    main()

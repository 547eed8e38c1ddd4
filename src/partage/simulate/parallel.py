"""Spreading chunks of runs over threads, processes, a Dask cluster or a Ray cluster.

A chunk is a pure function of its task and its range of runs, so the figures are the same wherever it is played.
"""

import importlib.util
import logging
import math
import os
import signal
import socket
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from partage.arms import Bernoulli
from partage.checks import count
from partage.compiled import collector_paused
from partage.engine import by_reference
from partage.engine.tally import always_shared
from partage.errors import InputError, MissingExtra, PartageError
from partage.game import Game
from partage.rules.rule import BuiltIn, Rule
from partage.settle import Settlement
from partage.sharing import Sharing
from partage.simulate.batch import Batch
from partage.simulate.chunk import Task, play_chunk
from partage.simulate.trial import Trial

PLACES = ("threads", "processes", "dask", "ray")
PATIENCE = 10  # seconds to wait for a scheduler
_LOOK = 0.02  # seconds between two looks at what a Dask cluster has finished

Work = Task | Trial | Batch


class Chunk(NamedTuple):
    """Runs `first` to `last - 1` of a task, a trial or a batch of tasks: the unit of work."""

    task: Work
    first: int
    last: int

    @property
    def expected(self) -> float:
        """Roughly how long the chunk takes, in broadcasts: for comparing chunks only.

        - A rule that reads private records takes a step for every pull, and the reference a slow one.
        - If arms are drawn, two of them may be so close that exploration lasts to the horizon.
        - If broadcasts are not kept balanced, every agent explores.
        """
        if isinstance(self.task, Trial):
            return (self.last - self.first) * self.task.work
        if isinstance(self.task, Batch):
            return sum(Chunk(task, self.first, self.last).expected for task in self.task.tasks)
        game, rule = self.task.game, self.task.rule
        if by_reference(game, rule):
            each = 1000.0 * game.agents * game.horizon
        elif rule.private:
            each = game.agents * game.horizon / 25
        else:
            each = 30_000 + 5.0 * game.agents
            if game.random:
                each += 100_000 + 150 * game.agents
            if getattr(rule, "balance", 1.0) == math.inf:
                each += 300 * game.agents
        return (self.last - self.first) * each


class Finished(NamedTuple):
    """A finished chunk: its place in the sequence of chunks, its figures, and the seconds it took.

    `folded` is what the work gives: a `Folded` of a task or a trial, and sums of a batch.
    """

    place: int
    folded: Any
    seconds: float


Play = Callable[[Sequence[Chunk]], Iterator[Finished]]
_PROCESSES = {"backend": "loky", "max_nbytes": None}  # memory maps are read-only: see `_elsewhere`


def cut(task: Task | Trial, runs: int) -> list[Chunk]:
    """Cut the runs of a task or a trial into chunks."""
    return [Chunk(task, first, last) for first, last in ranges(runs)]


def ranges(runs: int) -> list[tuple[int, int]]:
    """Return the first run of each chunk, and the run after its last.

    They depend on the number of runs alone, so that sums over runs do not depend on the number of workers.

    >>> ranges(70)[:3]
    [(0, 3), (3, 6), (6, 9)]
    """
    size = min(64, math.ceil(runs / 32))
    return [(first, min(first + size, runs)) for first in range(0, runs, size)]


def compile_rule(task: Task) -> None:
    """Compile the kernels of a task on a tiny game, before the clock and any worker start."""
    if by_reference(task.game, task.rule):
        return
    hidden = isinstance(task.game.sharing, Sharing) and not always_shared(task.game)
    # Rules of others may have no hash.
    compiling: Callable[..., None] = _compile if isinstance(task.rule, BuiltIn) else _compile.__wrapped__
    compiling(task.rule, task.settlement, task.game.uneven, hidden)


@lru_cache
def _compile(rule: Rule, settlement: Settlement, uneven: bool, hidden: bool) -> None:
    """Play a tiny game; uneven games, and games with arms that nobody shares, have kernels of their own."""
    agents = 1 + getattr(rule, "tolerate", 0)  # fewer are refused
    shares: list[list[int]] = [[] if hidden else [0]] * agents
    claim_steps = 1.0 if uneven else None
    tiny = Game([Bernoulli(0.5)], Sharing.lists(shares, arms=1), horizon=2, claim_steps=claim_steps)
    with collector_paused():
        play_chunk(Task(tiny, rule, settlement, 0, np.zeros(0, np.int64)), 0, 1)


@contextmanager
def workers(on: str = "threads", jobs: int | None = None) -> Iterator[Play]:
    """Return a context with the function that plays chunks and yields each as it finishes, in any order.

    Parameters
    ----------
    on
        "threads" (kernels release the interpreter's lock), "processes", "dask" or "ray" for a cluster on this
        machine, or "dask=ADDRESS" or "ray=ADDRESS" for another cluster.
    jobs
        The number of threads or processes; all cores by default. A cluster with an address uses all its cores.
    """
    place, address = parse(on)
    jobs = (os.cpu_count() or 1) if jobs is None else count("The number of jobs", jobs)
    with ExitStack() as stack:
        options: dict[str, Any] = {"n_jobs": jobs}
        if place == "threads":
            options["backend"] = "threading"
        elif place == "processes":
            options |= _PROCESSES
        elif place == "dask":
            yield partial(_play_on_dask, stack.enter_context(_dask(address, jobs)))
            return
        else:
            stack.enter_context(_ray(address, jobs))
            yield _play_on_ray
            return
        yield lambda chunks: _play_all(chunks, place, options)


def parse(on: str) -> tuple[str, str | None]:
    """Return where to play, and the address of the scheduler if there is one.

    >>> parse("dask=tcp://head:8786")
    ('dask', 'tcp://head:8786')
    """
    place, separator, address = str(on).partition("=")
    if place not in PLACES or (separator and (place not in ("dask", "ray") or not address)):
        allowed = "threads, processes, dask, dask=ADDRESS, ray or ray=ADDRESS"
        raise InputError(f"The place to play is {on!r}; it must be {allowed}.")
    for extra, module in (("dask", "distributed"), ("ray", "ray")):
        if place == extra and importlib.util.find_spec(module) is None:
            raise MissingExtra(f"Playing on {extra}", extra)
    return place, address or None


def _play_all(chunks: Sequence[Chunk], place: str, options: dict[str, Any]) -> Iterator[Finished]:
    """Play chunks with joblib. Trials are plain Python, which threads would play one at a time."""
    numbered = list(enumerate(chunks))
    if place == "threads":
        trials = [(at, chunk) for at, chunk in numbered if isinstance(chunk.task, Trial)]
        numbered = [(at, chunk) for at, chunk in numbered if not isinstance(chunk.task, Trial)]
        if trials:
            yield from _play(trials, "processes", {**_PROCESSES, "n_jobs": options["n_jobs"]})
    yield from _play(numbered, place, options)


def _play(chunks: Sequence[tuple[int, Chunk]], place: str, options: dict[str, Any]) -> Iterator[Finished]:
    """Play chunks, each with its place: with joblib, or one after another, as a server may not have it."""
    if place == "threads" and options["n_jobs"] == 1:
        yield from (_timed(at, *chunk) for at, chunk in chunks)
        return
    import joblib

    work = _timed if place == "threads" else _elsewhere
    jobs = [joblib.delayed(work)(at, *chunk) for at, chunk in chunks]
    with joblib.parallel_config(**options):
        finished = joblib.Parallel(batch_size=1, return_as="generator_unordered")(jobs)
    try:
        for each in finished:  # noqa: UP028  # `yield from` would close it before the warnings are off
            yield each
    finally:
        with warnings.catch_warnings():  # joblib warns about abandoned work, which after Ctrl-C is intended
            warnings.simplefilter("ignore")
            finished.close()


def _play_on_dask(client: Any, chunks: Sequence[Chunk]) -> Iterator[Finished]:
    """Play chunks as tasks of Dask. The scheduler plays those of a lost worker again, on another one."""
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    sent = _send_once(chunks, lambda work: client.submit(_itself, work, pure=False))
    futures = [
        client.submit(_elsewhere, at, sent.get(id(task), task), first, last, pure=False)
        for at, (task, first, last) in enumerate(chunks)
    ]
    waiting, heard = as_completed(futures), time.monotonic()
    try:
        while not waiting.is_empty():
            done = waiting.next_batch(block=False)
            for future in done:
                yield future.result()
                future.release()
            if done:
                heard = time.monotonic()
                continue
            time.sleep(_LOOK)
            if time.monotonic() - heard > PATIENCE:
                heard = time.monotonic()
                if not client.scheduler_info()["workers"]:
                    raise InputError(
                        f"The Dask cluster has no workers left, and {waiting.count():,} parts are not played; start "
                        "workers, and play again."
                    )
    except KilledWorker as error:
        raise InputError(
            f"Dask lost every worker that played one of the parts ({error}); perhaps they lack memory."
        ) from error
    finally:
        client.cancel(futures)


def _play_on_ray(chunks: Sequence[Chunk]) -> Iterator[Finished]:
    """Play chunks as tasks of Ray, which plays those of a lost worker again.

    joblib's backend for Ray returns nothing before all is done, and it kills its workers at the end, which Ray
    sometimes reports on standard output.
    """
    import ray

    sent = _send_once(chunks, ray.put)
    work = ray.remote(_elsewhere)
    waiting = [
        work.remote(at, sent.get(id(task), task), first, last) for at, (task, first, last) in enumerate(chunks)
    ]
    while waiting:
        done, waiting = ray.wait(waiting)
        yield from ray.get(done)


def _send_once(chunks: Sequence[Chunk], send: Callable[[Work], Any]) -> dict[int, Any]:
    """Send what several chunks have in common to a cluster once; return where it is, by identity."""
    uses = Counter(id(chunk.task) for chunk in chunks)
    shared = {id(chunk.task): chunk.task for chunk in chunks if uses[id(chunk.task)] > 1}
    return {name: send(work) for name, work in shared.items()}


def _itself(work: Work) -> Work:
    """Return the work. Dask loses data with the worker that has it, but a result is computed again."""
    return work


def _timed(place: int, task: Work, first: int, last: int) -> Finished:
    """Play one chunk and measure the time."""
    started = time.perf_counter()
    folded = play_chunk(task, first, last) if isinstance(task, Task) else task.played(first, last)
    return Finished(place, folded, time.perf_counter() - started)


def _elsewhere(place: int, task: Work, first: int, last: int) -> Finished:
    """Play one chunk in another process.

    Arrays may arrive there read-only or misaligned. Kernels would compile again for those, so they are copied.
    """
    if isinstance(task, Batch):
        task = Batch(tuple(_copied(each) for each in task.tasks))
    return _timed(place, _copied(task) if isinstance(task, Task) else task, first, last)


def _copied(task: Task) -> Task:
    """Return a task with arrays of its own."""
    game, sharing = task.game, task.game.sharing
    if isinstance(sharing, Sharing):
        sharing = replace(sharing, starts=np.array(sharing.starts), shared=np.array(sharing.shared))
    return replace(task, game=replace(game, sharing=sharing), checkpoints=np.array(task.checkpoints))


@contextmanager
def _dask(address: str | None, jobs: int) -> Iterator[Any]:
    """Return a client of a Dask scheduler, or of a cluster that is started on this machine."""
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        if address is None:
            with _deaf_children():
                cluster = LocalCluster(
                    n_workers=jobs, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
                )
            client = stack.enter_context(Client(stack.enter_context(cluster)))
        else:
            try:
                client = stack.enter_context(Client(address, timeout=PATIENCE))
                client.wait_for_workers(1, timeout=PATIENCE)
            except (OSError, ValueError, TimeoutError) as error:
                raise _unreachable("Dask scheduler", address) from error
        yield client


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Let processes that start now ignore Ctrl-C: this process handles it and ends them in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _ray(address: str | None, jobs: int) -> Iterator[None]:
    """Connect to a Ray cluster, or start one on this machine."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        host, _, port = (address or "").removeprefix("ray://").rpartition(":")
        if host:  # Ray itself would wait for minutes
            socket.create_connection((host, int(port)), timeout=PATIENCE).close()
        # "local" starts a cluster. Without an address, Ray would look for one that runs, perhaps in vain.
        own = {"num_cpus": jobs, "include_dashboard": False} if address is None else {}
        ray.init(address or "local", logging_level=logging.ERROR, log_to_driver=False, **own)
    except (OSError, RuntimeError, ValueError) as error:
        raise _no_ray(address) from error
    try:
        yield
    finally:
        ray.shutdown()


def _no_ray(address: str | None) -> PartageError:
    """Return what to say if Ray cannot be reached. It may look for a cluster that runs no longer."""
    kept = Path(os.environ.get("RAY_TMPDIR", "/tmp"), "ray", "ray_current_cluster")  # Ray's own
    if address == "auto" and kept.exists():
        return InputError(
            f"The Ray cluster at {kept.read_text().strip()} cannot be reached. The file {kept} names it; if it no "
            "longer runs, remove that file, or give the address of another cluster."
        )
    return _unreachable("Ray cluster", address or "this machine")


def _unreachable(what: str, address: str) -> PartageError:
    return InputError(f"The {what} at {address} cannot be reached within {PATIENCE} seconds, or it has no workers.")

"""The close of a large collaboration while others are served, and collaborations that leave the memory."""

import asyncio
import gc
import tempfile
import tracemalloc
from pathlib import Path
from time import perf_counter
from unittest.mock import patch

from bench.close import CASES
from bench.close import measure as close
from bench.rows import Row

from partage.ledger.messages import NewCollaboration
from partage.service.runtime import library
from partage.service.runtime.controller import Controller
from partage.service.store import open_store

ABOUT = (
    "A collaboration of 1,000 members is settled beside the event loop. The longest pause is how long every other "
    "request waits meanwhile; its goal, 100 ms, is that of /health under attack. A collaboration that nobody uses "
    "leaves the memory, and its next use loads it again. All times are waiting times, measured once. How long a "
    "close takes has no goal: only the operator waits for it. Memory and the time to load show the trend."
)
CLOSED = (CASES[0], CASES[2])
MOST_PAUSE = 100  # ms
LOADED = 200
ARMS = 100


def measure(cases=CLOSED, many=LOADED):
    """Yield the rows of closes, and of collaborations that are loaded and leave the memory."""
    for case in cases:
        close(case._replace(members=3))  # compiled code is loaded before
        found = close(case)
        left = "half of the arms" if case.left else "one arm"
        alone = f", at most {case.alone} alone" if case.alone else ""
        what = f"close with {case.members:,} members, {case.arms} arms, {case.settlement}{alone}, {left} left"
        yield Row(f"{what}: longest pause of other requests", found.pause, MOST_PAUSE, unit="ms")
        yield Row(f"{what}: until it is answered", found.seconds, unit="s")
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_loaded(str(Path(folder) / "partage.db"), many))


async def _loaded(database, many):
    """Return the rows of so many collaborations that are created, loaded and unloaded."""
    controller = Controller(open_store(database))
    names = [f"arm {arm}" for arm in range(ARMS)]
    made = []
    for number in range(many):
        new = NewCollaboration(name=f"Number {number}", arms=names, horizon=10**6, rule="balanced-etc", invites=2)
        made.append((await controller.create(f"secret {number}", new))[0])
    await controller.stop()

    with patch.multiple(library, IDLE_SECONDS=0.0, CROWDED_SECONDS=0.0, IDLE_PAUSE=0.01):
        controller = Controller(open_store(database))
        began = perf_counter()
        for id in made:
            await controller.library.book(id)
        seconds = perf_counter() - began
        controller.library.books.clear()
        gc.collect()
        tracemalloc.start()
        for id in made:
            await controller.library.book(id)
        loaded = _memory()
        controller.library.start()
        while controller.library.books:
            await asyncio.sleep(0.01)
        unloaded = controller.library.unloaded
        after = _memory()
        tracemalloc.stop()
        await controller.stop()
    what = f"a collaboration of {ARMS} arms"
    return [
        Row(f"{what}: until it is loaded again", 1e3 * seconds / many, unit="ms"),
        Row(f"{what}: memory while it is loaded", loaded / many / 1024, unit="KiB"),
        Row(f"{what}: memory after it has left", after / many / 1024, unit="KiB", note=f"{unloaded} of {many} left"),
    ]


def _memory():
    """Return the memory that Python has given out, in bytes."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]

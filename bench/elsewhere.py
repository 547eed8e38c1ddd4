"""Run a generator in a process of its own, with limits on its time and memory.

A compiled kernel cannot be interrupted, so what may take too long is measured in another process, which can be ended.
`python -m bench.elsewhere FD MEMORY WORK ARGUMENTS` is that process.
"""

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from bench.rows import Chart, Row

ROOT = Path(__file__).parent.parent
GRACE = 2.0  # seconds to clean up in, for work that is stopped
ENDING = 30.0  # seconds to end in, for work that is done
WARMING = 120.0  # seconds to start and to compile in
_DECODER = msgspec.json.Decoder(Row | Chart | list | int | float | str | bool | None)


class TooLong(Exception):
    """The work was stopped at a time limit."""

    def __init__(self, seconds: float):
        super().__init__(f"stopped after {seconds:g} s")
        self.seconds = seconds


class Failed(Exception):
    """The work raised an error, or its process ended before the work did."""


class NotStarted(Exception):
    """The work never began, so nothing is known of it. The message says why."""


def elsewhere(
    work: str,
    *arguments: Any,
    seconds: float,
    each: float | None = None,
    warming: float | None = None,
    memory: int | None = None,
    python: str | Path = sys.executable,
) -> Iterator[Any]:
    """Yield what a generator function yields in a process of its own.

    Parameters
    ----------
    work
        The function, as "package.module:function". It may yield rows, charts and what JSON can express.
    arguments
        Its arguments, which must fit into JSON.
    seconds
        The time limit for all of it.
    each
        The time limit for each result after the first. Work that is measured yields something once it is warm, so
        that starting and compiling do not count.
    warming
        The time limit for the first result. With it, `seconds` counts from the first result on.
    memory
        The limit of its address space, in bytes.
    python
        The Python that runs it. It finds `partage` beside this folder.

    Raises
    ------
    TooLong
        If a time limit is reached.
    Failed
        If the work fails. The message says how.
    """
    reading, writing = os.pipe()
    asked = [str(writing), json.dumps(memory), work, json.dumps(arguments)]
    command = [str(python), "-m", "bench.elsewhere", *asked]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryFile() as said, open(reading, "rb", buffering=0) as pipe:
        process = subprocess.Popen(
            command,
            pass_fds=[writing],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": paths},
        )
        os.close(writing)
        try:
            for line in _lines(pipe, seconds, each, warming):
                yield _DECODER.decode(line)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(ENDING)  # all results are there, and what is left then is ended
            if process.returncode:
                raise Failed(_reason(process.returncode, said))
        finally:
            _end(process)


def one_by_one(
    work: str,
    first: Sequence[Any],
    cases: Sequence[Any],
    seconds: float,
    each: float,
    memory: int | None = None,
    hopeless: Callable[[Any, Any], bool] = lambda case, failed: False,
    warming: float = WARMING,
) -> Iterator[tuple[Any, Any]]:
    """Yield each case and its result, or the `TooLong` or `Failed` that ended it, or why it was `NotStarted`.

    `work(*first, cases)` yields something once it is warm, and then one result for each case. After a case that was
    ended, another process continues with the rest, without those that are `hopeless(case, failed)`. Neither `seconds`
    nor `each` counts the time until a process is warm. The seconds of a `TooLong` are those of its case alone.
    """
    left, spent = list(cases), 0.0
    while left:
        if spent >= seconds:
            yield from _not_started(left, f"{seconds:g} s for all cases were over")
            return
        limits = {"seconds": seconds - spent, "each": each, "warming": warming}
        results = elsewhere(work, *first, [*left], **limits, memory=memory)
        try:
            next(results, None)
        except (TooLong, Failed) as error:
            yield from _not_started(left, f"its process did not become ready: {error}")
            return
        warm = began = time.monotonic()
        try:
            for result in results:
                yield left.pop(0), result
                began = time.monotonic()
            if left:
                raise Failed("ended without a result")
        except (TooLong, Failed) as error:
            if isinstance(error, TooLong) and error.seconds != each:  # the time of all cases ended
                error = TooLong(time.monotonic() - began)
            failed = left.pop(0)
            yield failed, error
            left = [case for case in left if not hopeless(case, failed)]
        spent += time.monotonic() - warm


def _not_started(cases: Sequence[Any], why: str) -> Iterator[tuple[Any, NotStarted]]:
    """Yield all cases as not started."""
    for case in cases:
        yield case, NotStarted(why)


def _lines(pipe: Any, seconds: float, each: float | None, warming: float | None) -> Iterator[bytes]:
    """Yield the lines of the pipe until it ends."""
    limit = seconds if warming is None else warming
    end = stop = time.monotonic() + limit
    buffer = b""
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, stop - time.monotonic()))
        if not ready:
            raise TooLong(limit)
        data = pipe.read(65536)
        if not data:
            return
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            if warming is not None:
                end, warming = time.monotonic() + seconds, None
            yield line
            stop, limit = end, seconds
            if each is not None and time.monotonic() + each < end:
                stop, limit = time.monotonic() + each, each


def _reason(code: int, said: Any) -> str:
    """Return why a process failed: the last line that it printed, or its signal."""
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    said.seek(0)
    printed = [line for line in said.read().decode(errors="replace").splitlines() if line.strip()]
    return printed[-1].strip()[:300] if printed else f"ended with code {code}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started: first by a signal that lets it clean up."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def find(work: str) -> Any:
    """Return the function "package.module:function"."""
    module, _, name = work.partition(":")
    return getattr(importlib.import_module(module), name)


def _follow(parent: int) -> None:
    """End this process and all that it started once its parent is gone.

    A limit of processor time would do the same, but with one Linux measures processor time in steps of 4 ms.
    """
    while os.getppid() == parent:
        time.sleep(0.5)
    os.killpg(0, signal.SIGKILL)


def main(pipe: str, memory: str, work: str, arguments: str) -> None:
    """Do the work, and write each result to the pipe as a line of JSON."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    threading.Thread(target=_follow, args=[os.getppid()], daemon=True).start()
    if memory := json.loads(memory):
        resource.setrlimit(resource.RLIMIT_AS, (memory, resource.getrlimit(resource.RLIMIT_AS)[1]))
    with open(int(pipe), "wb", buffering=0) as out:
        for result in find(work)(*json.loads(arguments)):
            out.write(msgspec.json.encode(result) + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

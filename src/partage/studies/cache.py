"""A cache of finished chunks on disk, so that an interrupted command can be continued.

The name of a chunk is a digest of everything that determines its figures: the game, rule, settlement, seed,
checkpoints and range of runs, the versions of numpy and numba, and the source of everything that plays. If any of
these changes, the chunk is played again.
"""

import hashlib
import json
import math
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from partage.engine import has_kernel
from partage.errors import FileError
from partage.files import write_atomically
from partage.rules.rule import Rule
from partage.simulate.chunk import Task
from partage.simulate.fold import Folded
from partage.simulate.parallel import Chunk, Finished
from partage.simulate.trial import Trial

# Rooms that do not affect the figures.
ABOVE = (
    "cli",
    "client",
    "demo",
    "environment",
    "gamefile",
    "ledger",
    "report",
    "service",
    "studies",
    "testing",
    "theory",
)


class Store:
    """A folder of finished chunks."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder, self._say = folder, say
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            reason = (error.strerror or "it cannot be used").lower()
            raise FileError(f"The folder {folder.parent} cannot be written to: {reason}.") from error

    def load(self, name: str) -> tuple[Folded, float] | None:
        """Return the figures and seconds of a chunk; None if it is not in the cache.

        A file that cannot be read is moved aside, with a message, and counts as missing.
        """
        path = self._folder / f"{name}.chunk"
        try:
            return _unpacked(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, zlib.error, ValueError, KeyError, TypeError):
            aside = path.with_suffix(".corrupt")
            os.replace(path, aside)
            self._say(f"The file {path} is corrupt: it is now {aside.name}, and its runs are played again.")
            return None

    def save(self, name: str, finished: Finished) -> None:
        """Store a chunk atomically, so that stopping the program leaves no partial file."""
        write_atomically(self._folder / f"{name}.chunk", _packed(finished), mode=0o644)


def _packed(finished: Finished) -> bytes:
    """Return a chunk as bytes, compressed with a checksum: one line of JSON about the arrays, then the arrays."""
    arrays = finished.folded._asdict()
    described = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
    head = json.dumps({"seconds": finished.seconds, "arrays": described}).encode()
    return zlib.compress(b"\n".join([head, b"".join(array.tobytes() for array in arrays.values())]), level=1)


def _unpacked(packed: bytes) -> tuple[Folded, float]:
    """Return the chunk that these bytes hold."""
    head, _, body = zlib.decompress(packed).partition(b"\n")
    described = json.loads(head)
    arrays, start = {}, 0
    for name, (dtype, shape) in described["arrays"].items():
        size = math.prod(shape)
        arrays[name] = np.frombuffer(body, dtype, size, start).reshape(shape).copy()
        start += arrays[name].nbytes
    return Folded(**arrays), float(described["seconds"])


def task_digest(task: Task | Trial) -> str:
    """Return a digest of everything that determines the figures of a task or a trial, except the range of runs."""
    if isinstance(task, Trial):  # a trial may call anything
        spelled = "\n".join([*_spelled(task), np.__version__, version("numba"), sources_digest(())])
        return hashlib.sha256(spelled.encode() + _code_of(task.play)).hexdigest()
    spelled = "\n".join([*_spelled(task), np.__version__, version("numba"), sources_digest()])
    own = b"" if has_kernel(task.rule) else _source_of(task.rule)
    return hashlib.sha256(spelled.encode() + own).hexdigest()


def chunk_name(digest: str, chunk: Chunk) -> str:
    """Return the name of a chunk of a task with this digest."""
    return f"{digest[:32]}-{chunk.first}-{chunk.last}"


@cache
def sources_digest(without: Sequence[str] = ABOVE) -> str:
    """Return a digest of the source of everything that plays: all rooms but these."""
    package = Path(__file__).parent.parent
    found = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        if inside.parts[0].removesuffix(".py") not in without:
            found.update(inside.as_posix().encode() + path.read_bytes())
    return found.hexdigest()


def _source_of(rule: Rule) -> bytes:
    """Return the source file of a user's rule, or its bytecode if there is no file."""
    return _code_of(type(rule).decide)


def _code_of(function: Any) -> bytes:
    """Return the source file of a function or of an object that can be called, or its bytecode."""
    code = (function if hasattr(function, "__code__") else type(function).__call__).__code__
    path = Path(code.co_filename)
    return path.read_bytes() if path.is_file() else code.co_code + repr(code.co_consts).encode()


def _spelled(thing: Any) -> Iterator[str]:
    """Spell out a value part by part: the same text for equal values, in every process."""
    yield f"{type(thing).__module__}.{type(thing).__qualname__}"
    if isinstance(thing, np.ndarray):
        yield f"{thing.dtype}{thing.shape}{hashlib.sha256(np.ascontiguousarray(thing).tobytes()).hexdigest()}"
    elif is_dataclass(thing):
        for field in fields(thing):
            yield field.name
            yield from _spelled(getattr(thing, field.name))
    elif isinstance(thing, Mapping):
        for key, value in thing.items():
            yield from _spelled(key)
            yield from _spelled(value)
    elif isinstance(thing, Sequence) and not isinstance(thing, str | bytes):
        for part in thing:
            yield from _spelled(part)
    elif thing is None or isinstance(thing, bool | int | float | str | bytes | Enum | np.generic):
        yield repr(thing)
    else:
        for name, value in sorted(vars(thing).items()):
            yield name
            yield from _spelled(value)

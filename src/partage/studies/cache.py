"""Finished chunks on disk, so that a second call goes on where the first was stopped.

A chunk is kept under a digest of all that decides its figures: the game, the rule, the settlement, the seed, the
checkpoints, its range of runs, and the source of everything that plays, version included. Change any of
these, and it is played again.
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
from partage.rules.rule import Rule
from partage.simulate.chunk import Task
from partage.simulate.fold import Folded
from partage.simulate.parallel import Chunk, Finished

# Rooms that do not play.
ABOVE = ("cli", "client", "demo", "gamefile", "ledger", "report", "service", "studies", "testing", "theory")


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
        """Return the figures and seconds of a chunk; None if it is not there.

        A file that cannot be read is set aside, with a word about it, and counts as not there.
        """
        path = self._folder / f"{name}.chunk"
        try:
            return _unpacked(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, zlib.error, ValueError, KeyError, TypeError):
            aside = path.with_suffix(".corrupt")
            os.replace(path, aside)
            self._say(f"The file {path} is corrupt: it is set aside as {aside.name} and its runs are played again.")
            return None

    def save(self, name: str, finished: Finished) -> None:
        """Keep a chunk: whole or not at all, whenever the program is stopped."""
        handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=".", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_packed(finished))
            os.replace(temporary, self._folder / f"{name}.chunk")
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def _packed(finished: Finished) -> bytes:
    """Write a chunk as bytes: a line of JSON that describes its arrays, then these, compressed, with a checksum."""
    arrays = finished.folded._asdict()
    described = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
    head = json.dumps({"seconds": finished.seconds, "arrays": described}).encode()
    return zlib.compress(b"\n".join([head, b"".join(array.tobytes() for array in arrays.values())]), level=1)


def _unpacked(packed: bytes) -> tuple[Folded, float]:
    """Read a chunk from bytes."""
    head, _, body = zlib.decompress(packed).partition(b"\n")
    described = json.loads(head)
    arrays, start = {}, 0
    for name, (dtype, shape) in described["arrays"].items():
        size = math.prod(shape)
        arrays[name] = np.frombuffer(body, dtype, size, start).reshape(shape).copy()
        start += arrays[name].nbytes
    return Folded(**arrays), float(described["seconds"])


def task_digest(task: Task) -> str:
    """Digest what decides the figures of a task, its range of runs apart."""
    spelled = "\n".join([*_spelled(task), np.__version__, version("numba"), sources_digest()])
    own = b"" if has_kernel(task.rule) else _source_of(task.rule)
    return hashlib.sha256(spelled.encode() + own).hexdigest()


def chunk_name(digest: str, chunk: Chunk) -> str:
    """Return the name under which a chunk of a task with this digest is kept."""
    return f"{digest[:32]}-{chunk.first}-{chunk.last}"


@cache
def sources_digest() -> str:
    """Digest the source of everything that plays."""
    package = Path(__file__).parent.parent
    found = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        if inside.parts[0].removesuffix(".py") not in ABOVE:
            found.update(inside.as_posix().encode() + path.read_bytes())
    return found.hexdigest()


def _source_of(rule: Rule) -> bytes:
    """Return the file in which a user's own rule stands; its compiled form where there is none."""
    code = type(rule).decide.__code__
    path = Path(code.co_filename)
    return path.read_bytes() if path.is_file() else code.co_code + repr(code.co_consts).encode()


def _spelled(thing: Any) -> Iterator[str]:
    """Spell out a value, part by part: the same for equal values, in every process."""
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

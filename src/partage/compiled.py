"""How Partage compiles: numba without the interpreter's lock, kept on disk under a digest of the sources.

numba keeps compiled code as long as the file of the function itself is unchanged, whatever happened to functions and
constants that it takes from other files. So each state of the rooms with compiled code has a folder of its own.
"""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config, njit

_PACKAGE = Path(__file__).parent
_ROOMS = ("engine", "settle", "simulate", "theory")
_KEPT = 7 * 24 * 3600  # seconds


def _digest() -> str:
    """Return a digest of every source file that compiled code may come from."""
    digest = hashlib.sha256()
    rooms = [source for room in _ROOMS for source in (_PACKAGE / room).glob("*.py")]
    for source in sorted([_PACKAGE / "arms.py", _PACKAGE / "evidence.py", *rooms]):
        digest.update(str(source.relative_to(_PACKAGE)).encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _folder() -> Path:
    """Return where compiled code is kept: beside the sources, or in the user's cache where that cannot be written."""
    for home in (
        _PACKAGE / "__pycache__",
        Path.home() / ".cache" / "partage",
        Path(tempfile.gettempdir()) / "partage",
    ):
        folder = home / f"compiled-{SOURCES}"
        try:
            if not folder.exists():
                for old in home.glob("compiled-*"):
                    if time.time() - old.stat().st_mtime > _KEPT:  # others may be in use, by another state
                        shutil.rmtree(old, ignore_errors=True)
                folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix="partage-"))


SOURCES = _digest()
FOLDER = _folder()


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function with numba; it releases the interpreter's lock, so threads run side by side."""
    before = config.CACHE_DIR
    config.CACHE_DIR = str(FOLDER)
    try:
        return njit(cache=True, nogil=True)(function)  # type: ignore[no-any-return]
    finally:
        config.CACHE_DIR = before

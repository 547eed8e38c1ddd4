"""A folder in memory, for files whose syncs are recorded or do not matter."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH = 48 * 2**20  # bytes; containers often have 64 MiB


@contextmanager
def in_memory(otherwise: Path) -> Iterator[Path]:
    """Make a folder in memory where there is enough of it; otherwise use the given one."""
    if not (MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH):
        yield otherwise
        return
    folder = Path(tempfile.mkdtemp(prefix="partage-", dir=MEMORY))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)

"""Writing files atomically."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from partage.errors import FileError


def write_atomically(path: Path, content: bytes | Iterable[bytes], mode: int = 0o600) -> None:
    """Replace a file in one step. The new content is on disk when this returns.

    After a crash the file holds the old content or the new, never a part.

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    parts = [content] if isinstance(content, bytes) else content
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(handle, mode)
                for part in parts:
                    file.write(part)
                file.flush()
                os.fsync(handle)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise FileError(f"The file {path} cannot be written: {error.strerror}.") from error

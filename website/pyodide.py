"""Pyodide, which runs Python in the browser: fetched from npm by name, checked, and kept for later builds.

`python -m website.pyodide` fetches it. It is neither committed nor in the wheel.
"""

import base64
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION = "314.0.7"
SHA512 = "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
ARCHIVE = ROOT / ".venv" / f"pyodide-{VERSION}.tgz"


class Missing(Exception):
    """Pyodide cannot be fetched. The message says why and what to do."""


def fetched() -> Path:
    """Return the archive of Pyodide, which is fetched the first time."""
    if not ARCHIVE.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise Missing(
                "The page that plays needs npm, to fetch Pyodide once; install it (Debian: apt-get install npm), or "
                "build the site without that page's Python: make docs PLAY=no."
            )
        with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as folder:
            command = [npm, "pack", "--silent", "--pack-destination", folder, f"pyodide@{VERSION}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
            if done.returncode:
                raise Missing(f"npm could not fetch pyodide {VERSION}: {done.stderr.strip() or 'no reason given'}")
            (found,) = Path(folder).glob("*.tgz")
            found.replace(ARCHIVE)
    _check(ARCHIVE)
    return ARCHIVE


def _check(archive: Path) -> None:
    """Refuse an archive that is not the one that was chosen."""
    found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != SHA512:
        archive.unlink()
        raise Missing(f"The archive of pyodide {VERSION} has the SHA-512 {found}; expected {SHA512}. It was removed.")


def unpack(folder: Path) -> None:
    """Write the files that a page loads into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fetched()) as archive:
        for name in FILES:
            packed = archive.extractfile(f"package/{name}")
            assert packed is not None, name
            with packed, open(folder / name, "wb") as written:
                shutil.copyfileobj(packed, written)


if __name__ == "__main__":
    try:
        fetched()
    except Missing as missing:
        sys.exit(str(missing))

"""The Python versions that this machine has."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path


def find_python(version: str) -> str | None:
    """Return the path of a Python that can create environments, as in `find_python("3.12")`, or None."""
    return next(filter(_creates_environments, _candidates(version)), None)


def _candidates(version: str) -> Iterator[str]:
    if on_path := shutil.which(f"python{version}"):
        yield on_path
    # pyenv puts a command on the path for every version that it has, but most of these commands refuse to run.
    if pyenv := shutil.which("pyenv"):
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=True).stdout.strip()
        yield from map(str, Path(root).glob(f"versions/{version}.*/bin/python{version}"))


def _creates_environments(python: str) -> bool:
    return subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode == 0

"""The archives that a release publishes: the source archive, and the wheel that it builds."""

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Archives(NamedTuple):
    """A source archive, and the wheel built from it."""

    sdist: Path
    wheel: Path

    @property
    def version(self) -> str:
        """The version that the name of the wheel says."""
        return self.wheel.name.split("-")[1]


def build(folder: Path) -> Archives:
    """Build the source archive of this checkout, unpack it in the folder, and build a wheel from what it holds."""
    sdist = _build("sdist", ROOT, folder / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.glob("partage-*")
    return Archives(sdist, _build("wheel", source, folder / "wheel"))


def _build(target: str, source: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.iterdir()
    return built

"""Virtual environments for peers, clusters and fresh installs."""

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
CACHE = ROOT / "results" / ".peers"
PINS = Path(__file__).parent / "peers"


def make(folder, *installs):
    """Make an environment, install one thing after the other, each as flags of pip, and return its Python."""
    venv.create(folder, with_pip=True)
    python = Path(folder) / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    for flags in installs:
        subprocess.run([*pip, *flags], check=True, capture_output=True)
    return python


def kept(name, *files):
    """Return the Python of an environment with these requirements, which is made unless it is in the cache."""
    contents = b"".join(file.read_bytes() for file in files)
    known = hashlib.sha256(contents + sys.version.encode()).hexdigest()[:12]
    folder = CACHE / f"{name}-{known}"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        make(folder, *([f"--requirement={file}"] for file in files))
        (folder / "ready").touch()
    return folder / "bin" / "python"


def with_ray():
    """Return a Python that has Ray: this one, or one of an environment of its own."""
    if importlib.util.find_spec("ray"):
        return Path(sys.executable)
    levels = [ROOT / "requirements" / f"{level}.txt" for level in ("base", "research")]
    return kept("ray", *levels, PINS / "ray.txt")

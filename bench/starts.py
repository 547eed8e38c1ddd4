"""Cold and warm starts: every command and import, and fresh installs by extra.

A cold start is the first one of a fresh copy of the package: neither its bytecode nor its kernels are compiled. Other
packages are as they are installed. Every figure is the processor time of a process and its children.
"""

import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench import environments
from bench.environments import ROOT
from bench.rows import Row

import partage
from partage.cli import app

ABOUT = (
    "Processor time of a process and its children, and the most memory of one of them. A cold start is the first "
    "one of a fresh copy of the package, without bytecode and compiled kernels, and is measured once. Each import "
    "names the install extra that it needs. Goals are those of what people wait for most often or first: help, the "
    "import of a member's program, and the first simulation after an install. The other rows show the trend."
)
SIMULATE = ("-m", "partage.cli", "simulate", "--means", "0.9,0.8,0.7", "--agents", "30", "--horizon", "1e6")
IMPORTS = {  # by the extra that they need
    "base": ("partage", "partage.client", "partage.ledger.verify", "partage.cli"),
    "research": ("partage.simulate.play", "partage.report.reproduce"),
    "server": ("partage.service.serve", "partage.service.http.app"),
    "postgres": ("partage.service.store.postgres",),
    "envs": ("partage.envs",),
    "dask": ("partage, distributed",),
    "ray": ("partage, ray",),
}
NEEDS = {  # a package that only this extra installs
    "research": "numba",
    "server": "litestar",
    "postgres": "psycopg",
    "envs": "pettingzoo",
    "dask": "distributed",
    "ray": "ray",
}
LEDGER = ROOT / "tests" / "golden" / "release-0.1" / "glr-expected.ndjson"
REQUIREMENTS = {"base": ("base",), "research": ("base", "research"), "server": ("base", "server")}
NOTHING = ("-c", "pass")


class Start(NamedTuple):
    """The processor time of a process and its children, and the most memory that one of them had, in MiB."""

    seconds: float
    memory: float


def start(python, home, *arguments):
    """Start Python with the package from `home`, and wait until it ends."""
    environment = {**os.environ, "PYTHONPATH": str(home), "HOME": str(home)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [str(python), *arguments]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=environment, cwd=home, **quiet)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Start(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def processor_seconds(python, home, *arguments):
    """Return the processor time of a Python process and its children, with the package from `home`."""
    return start(python, home, *arguments).seconds


def copy_package(home):
    """Copy the package without anything compiled."""
    shutil.copytree(Path(partage.__file__).parent, home / "partage", ignore=shutil.ignore_patterns("__pycache__"))


def commands():
    """Return the arguments that print the help of each command."""
    from typer.main import get_command

    return [("-m", "partage.cli", name, "--help") for name in sorted(get_command(app).commands)]


def starts():
    """Return what is started: its name, its arguments, and the goals of cold and warm starts in seconds."""
    found = [("partage --help", ("-m", "partage.cli", "--help"), None, 0.3)]
    found += [(f"partage {arguments[2]} --help", arguments, None, 0.3) for arguments in commands()]
    for extra, modules in IMPORTS.items():
        if not _installed(extra):
            continue
        for module in modules:
            goal = 0.3 if module == "partage.client" else None
            found.append((f"import {module} ({extra})", ("-c", f"import {module}"), None, goal))
    verify = ("-m", "partage.cli", "verify", str(LEDGER))
    return [*found, ("partage verify, 656 rows", verify, None, None), ("partage simulate", SIMULATE, 12, None)]


def _installed(extra):
    """Whether an extra is installed here."""
    return extra not in NEEDS or importlib.util.find_spec(NEEDS[extra]) is not None


def measure(chosen=None, times=3):
    """Yield cold and warm starts in the present environment, and their ratio to starting Python."""
    with tempfile.TemporaryDirectory() as folder:
        nothing = [processor_seconds(sys.executable, folder, *NOTHING) for _ in range(5)]
    yield Row.of("start of Python", nothing, unit="s")
    bare = statistics.median(nothing)
    for what, arguments, cold_goal, goal in chosen or starts():
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            copy_package(home)
            cold = start(sys.executable, home, *arguments)
            again = [start(sys.executable, home, *arguments) for _ in range(times)]
        warm, memory = [each.seconds for each in again], max(each.memory for each in again)
        note = f"{cold.memory:.0f} MiB" + ("; with the compilation of its kernels" if cold_goal is not None else "")
        yield Row(f"{what}, cold", cold.seconds, cold_goal, unit="s", note=note)
        yield Row.of(f"{what}, warm", warm, goal, unit="s", note=f"{memory:.0f} MiB")
        yield Row.of(f"{what}, warm / start of Python", [value / bare for value in warm])
    for extra in IMPORTS if chosen is None else ():
        if not _installed(extra):
            yield Row(f"imports of {extra}", note=f"not measured: {NEEDS[extra]} is not installed")


def measure_installs(extras=tuple(REQUIREMENTS)):
    """Yield the size and the starts of fresh installs of each extra, in environments of their own."""
    for extra in extras:
        with tempfile.TemporaryDirectory(prefix="partage-install-") as folder:
            home = Path(folder) / "home"
            home.mkdir()
            python = fresh_environment(Path(folder) / "venv", extra)
            size = sum(file.stat().st_size for file in (Path(folder) / "venv").rglob("*") if file.is_file())
            yield Row(f"a fresh install of {extra}", size / 2**20, unit="MiB")
            for module in IMPORTS["base"] if extra == "base" else IMPORTS[extra]:
                cold = processor_seconds(python, home, "-c", f"import {module}")
                warm = [processor_seconds(python, home, "-c", f"import {module}") for _ in range(3)]
                yield Row.of(
                    f"import {module} in a fresh install of {extra}, warm", warm, unit="s", note=f"cold: {cold:.2g} s"
                )


def fresh_environment(folder, extra):
    """Install the package with one extra; return its Python."""
    levels = [f"--requirement={ROOT}/requirements/{level}.txt" for level in ("build", *REQUIREMENTS[extra])]
    package = ["--no-deps", "--no-build-isolation", str(ROOT)]
    return environments.make(folder, ["--require-hashes", *levels], package)

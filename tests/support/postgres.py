"""A private PostgreSQL cluster in a temporary folder, on a Unix socket only, with default durability."""

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
from psycopg import sql
from tests.support.patience import PATIENCE

SUPERUSER = "partage"


def binaries() -> Path | None:
    """Return the folder with initdb and pg_ctl, or None where PostgreSQL's server is not installed."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda folder: [int(part) for part in folder.parent.name.split(".") if part.isdigit()],
        reverse=True,
    )
    if asked := shutil.which("pg_config"):
        answer = subprocess.run([asked, "--bindir"], capture_output=True, text=True, check=False)
        folders.insert(0, Path(answer.stdout.strip()))
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


class Cluster:
    """A cluster that belongs to one test session; the databases in it belong to one test each."""

    def __init__(self, programs: Path):
        self._programs = programs
        self._owner = _owner()
        # The path of a Unix socket must be shorter than about a hundred bytes, so pytest's own folders will not do.
        self.folder = Path(tempfile.mkdtemp(prefix="partage-pg-"))
        self._data, self._log = self.folder / "data", self.folder / "log"
        self._numbers = itertools.count(1)
        try:
            if self._owner:
                os.chown(self.folder, self._owner.pw_uid, self._owner.pw_gid)
            # --no-sync is about these first files alone; whatever is written later is synced as usual.
            self._run(
                "initdb", "--auth=trust", f"--username={SUPERUSER}", "--encoding=UTF8", "--locale=C", "--no-sync"
            )
            with (self._data / "postgresql.conf").open("a") as settings:
                settings.write(f"listen_addresses = ''\nunix_socket_directories = '{self.folder}'\n")
            self.start()
        except BaseException:
            shutil.rmtree(self.folder)
            raise

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._run("pg_ctl", "--wait", f"--log={self._log}", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: `fast` in good order, `immediate` as in a crash."""
        self._run("pg_ctl", "--wait", f"--mode={mode}", "stop")

    @property
    def parent(self) -> int:
        """The id of the running server's first process, which starts all others."""
        return int((self._data / "postmaster.pid").read_text().split()[0])

    def processes(self) -> list[int]:
        """Return the ids of all running processes of the server: those that work in its folder."""
        return sorted(id for id in _ids() if _folder(id) == self._data.resolve())

    def backends(self, database: str) -> list[int]:
        """Return the ids of the processes that serve a database."""
        title = f"postgres: {SUPERUSER} {database} ".encode()
        return [id for id in self.processes() if command_line(id).startswith(title)]

    @property
    def write_ahead_log(self) -> Path:
        """The folder of the write-ahead log."""
        return self._data / "pg_wal"

    def kill(self, *ids: int) -> None:
        """Kill some processes of the server at once; without the parent, all others have to end as well."""
        parent = self.parent
        kill(*ids)
        if parent not in ids:
            return
        until = time.monotonic() + PATIENCE
        while left := self.processes():  # those started meanwhile, which would keep the next server from starting
            assert time.monotonic() < until
            kill(*left)
        # Where nobody collects the parent's exit code, PostgreSQL takes it for a running one.
        for lock in (self._data / "postmaster.pid", *self.folder.glob(".s.PGSQL.*.lock")):
            lock.unlink(missing_ok=True)

    def remove(self) -> None:
        """Stop the server and delete all that it has written."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder)

    def url(self, database: str) -> str:
        """Return the address of a database, as SQLAlchemy wants it."""
        return f"postgresql+psycopg://{SUPERUSER}@/{database}?host={self.folder}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """Make an empty database, hand out its address, and drop it, whoever is still connected."""
        name = f"test_{next(self._numbers)}"
        self._execute("CREATE DATABASE {}", name)
        try:
            yield self.url(name)
        finally:
            self._execute("DROP DATABASE {} WITH (FORCE)", name)

    @contextmanager
    def set(self, **settings: str) -> Iterator[None]:
        """Set these settings for the whole cluster while the block runs; it is restarted before and after."""
        for name, value in settings.items():
            self._execute(f"ALTER SYSTEM SET {{}} = {value}", name)
        self.stop()
        self.start()
        try:
            yield
        finally:
            for name in settings:
                self._execute("ALTER SYSTEM RESET {}", name)
            self.stop()
            self.start()

    def _execute(self, statement: str, name: str) -> None:
        with psycopg.connect(host=str(self.folder), user=SUPERUSER, dbname="postgres", autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(sql.Identifier(name)))

    def _run(self, program: str, *arguments: str) -> None:
        owner = self._owner
        done = subprocess.run(
            [self._programs / program, f"--pgdata={self._data}", *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
            **({"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if owner else {}),
        )
        if done.returncode:
            log = self._log.read_text() if self._log.exists() else ""
            raise RuntimeError(f"{program} failed with exit code {done.returncode}:\n{done.stdout}{log}")


def kill(*ids: int) -> None:
    """Kill these processes at once, and wait until they are gone."""
    for id in ids:
        with suppress(ProcessLookupError):
            os.kill(id, signal.SIGKILL)
    until = time.monotonic() + PATIENCE
    while not set(ids).isdisjoint(_ids()):
        assert time.monotonic() < until
        time.sleep(0.005)


def children(parent: int) -> list[int]:
    """Return the ids of the running processes that a process started (Linux)."""
    return sorted(id for id in _ids() if (status := _status(id)) and status[1] == str(parent))


def command_line(id: int) -> bytes:
    """Return a process's command line; empty if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{id}/cmdline").read_bytes()
    return b""


def _ids() -> list[int]:
    """Return the ids of all running processes."""
    ids = (int(folder.name) for folder in Path("/proc").glob("[0-9]*"))
    return [id for id in ids if (status := _status(id)) and status[0] not in "ZX"]


def _status(id: int) -> list[str]:
    """Return a process's state and its parent's id; nothing if it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{id}/stat").read_text().rpartition(") ")[2].split()[:2]
    return []


def _folder(id: int) -> Path | None:
    """Return the folder that a process works in."""
    with suppress(OSError):
        return Path(f"/proc/{id}/cwd").readlink()
    return None


def _owner() -> pwd.struct_passwd | None:
    """Return who runs the server where root runs the tests: PostgreSQL refuses root."""
    if os.geteuid():
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]

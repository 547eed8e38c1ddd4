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

    def processes(self) -> list[int]:
        """Return the ids of the running server's processes; the first is the parent of the others."""
        parent = int((self._data / "postmaster.pid").read_text().split()[0])
        return [parent, *children(parent)]

    def backends(self, database: str) -> list[int]:
        """Return the ids of the processes that serve a database."""
        title = f"postgres: {SUPERUSER} {database} ".encode()
        return [id for id in self.processes()[1:] if Path(f"/proc/{id}/cmdline").read_bytes().startswith(title)]

    @property
    def write_ahead_log(self) -> Path:
        """The folder of the write-ahead log."""
        return self._data / "pg_wal"

    def kill(self, *ids: int) -> None:
        """Kill these processes of the server at once, and wait until they are gone."""
        kill(*ids)
        # Where nobody collects the parent's exit code, PostgreSQL takes it for a running one.
        for lock in (self._data / "postmaster.pid", *self.folder.glob(".s.PGSQL.*.lock")):
            if lock.exists() and int(lock.read_text().split()[0]) in ids:
                lock.unlink()

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
    while any(Path(f"/proc/{id}").exists() and not _ended(id) for id in ids):
        assert time.monotonic() < until
        time.sleep(0.005)


def children(parent: int) -> list[int]:
    """Return the ids of the processes that a process started (Linux)."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            if _status(int(folder.name))[1] == str(parent):
                found.append(int(folder.name))
    return sorted(found)


def _status(id: int) -> list[str]:
    """Return a process's state and its parent's id."""
    return Path(f"/proc/{id}/stat").read_text().rpartition(") ")[2].split()


def _ended(id: int) -> bool:
    """Whether a process has ended, but for its parent, which may be slow to notice."""
    try:
        return _status(id)[0] in "ZX"
    except OSError:
        return True


def _owner() -> pwd.struct_passwd | None:
    """Return who runs the server where root runs the tests: PostgreSQL refuses root."""
    if os.geteuid():
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]

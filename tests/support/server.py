"""A real server: `partage serve` as a process of its own, on a free port."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import httpx
from tests.support.patience import PATIENCE


class Server:
    """A running server; as a context manager it is stopped at the end. Its join pages have no forecast unless asked.

    Attributes
    ----------
    url
        Where it is, as in http://127.0.0.1:41234.
    operator_token
        The token that it printed, or that `env` gave; empty at a second start on the same database.
    """

    def __init__(
        self,
        database_url: str,
        workers: int = 1,
        env: Mapping[str, str] | None = None,
        port: int = 0,
        python: str = sys.executable,
        options: Sequence[str] = (),
        module: str = "partage.cli",
    ) -> None:
        given = {name: value for name, value in os.environ.items() if not name.startswith("PARTAGE_")}
        given |= {"PARTAGE_DATABASE": database_url, "PYTHONUNBUFFERED": "1", "PARTAGE_FORECAST_SECONDS": "0"}
        given |= dict(env or {})
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115  # stop and kill close it
        command = [python, "-m", module, "serve", f"--port={port}", f"--workers={workers}", *options]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._printed,
            stderr=subprocess.STDOUT,
            env=given,
            start_new_session=True,  # a group of its own, so that kill takes the workers too
        )
        try:
            self.url = self._wait_for(r"Partage is at (http://\S+)")
            self.operator_token = given.get("PARTAGE_OPERATOR_TOKEN") or self._found(r"token, .*: (\S+)") or ""
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """The id of the process that was started: with several workers, their parent."""
        return self.process.pid

    def ended(self) -> bool:
        """Whether the process has ended."""
        return self.process.poll() is not None

    @property
    def output(self) -> str:
        """Everything that it printed so far, including its log; available after the end as well."""
        if self._printed.closed:
            return self._kept
        size = os.fstat(self._printed.fileno()).st_size
        return os.pread(self._printed.fileno(), size, 0).decode()  # it writes where a seek would put us

    def stop(self, how: int = signal.SIGTERM) -> int:
        """Tell it to stop, wait until it has, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        self._keep_output()
        return self.process.returncode

    def kill(self) -> None:
        """Kill it and its workers at once."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        self._keep_output()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self.kill()

    def _keep_output(self) -> None:
        if not self._printed.closed:
            self._kept = self.output
            self._printed.close()

    def _found(self, pattern: str) -> str | None:
        found = re.search(pattern, self.output)
        return found and found[1].rstrip(",")

    def _wait_for(self, pattern: str) -> str:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            if found := self._found(pattern):
                return found
            time.sleep(0.02)
        raise RuntimeError(f"The server did not start (exit code {self.process.poll()}):\n{self.output}")

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            try:
                if httpx.get(f"{self.url}/ready", timeout=PATIENCE).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.02)
        raise RuntimeError(f"The server is not ready (exit code {self.process.poll()}):\n{self.output}")

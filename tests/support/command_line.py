"""The command line, called in this process."""

import os
from typing import Any, NamedTuple

from tests.support.server import Server
from typer.testing import CliRunner

from partage.cli import app
from partage.cli.terminal import COMPILING

# Calls the command line in a process of its own that Ctrl-C reaches; in the background it would be ignored.
INTERRUPTIBLE = """
import signal, sys
from partage.cli import app
signal.signal(signal.SIGINT, signal.default_int_handler)
app(sys.argv[1:])
"""


class Ended(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


def partage(*arguments: str, input: str | None = None, **env: str) -> Ended:
    """Call the command line in this process, with no variables of Partage but these."""
    given: dict[str, str | None] = {name: None for name in os.environ if name.startswith("PARTAGE_")}
    given |= {"COLUMNS": "118"} | env
    ended = CliRunner().invoke(app, arguments, prog_name="partage", input=input, env=given)
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return Ended(ended.exit_code, ended.stdout, ended.stderr)


def sentence(ended: Ended, code: int = 2) -> str:
    """Return the one sentence of an error."""
    assert ended.code == code, ended
    assert ended.out == ""
    assert ended.err.count("\n") == 1, ended.err
    return ended.err


def without_compiling(err: str) -> str:
    """Return what a command said on standard error, except that it compiles: with a cold cache it does."""
    return err.removeprefix(f"{COMPILING}\n")


class Operated:
    """The command line as the operator of a server."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def __call__(self, *arguments: str, code: int = 0, **options: Any) -> str:
        """Call `partage collaboration`, and return what it printed."""
        token = self.server.operator_token
        env = {"PARTAGE_URL": self.server.url, "PARTAGE_OPERATOR_TOKEN": token}
        ended = partage("collaboration", *arguments, **env, **options)
        assert ended.code == code, ended
        assert token not in ended.out + ended.err
        return ended.out if code == 0 else ended.err

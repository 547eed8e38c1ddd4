"""The command that says what works on this machine."""

import os
import platform
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from partage import environment
from partage.cli.terminal import as_json
from partage.errors import EXTRAS, MissingExtra, PartageError, require

WRONG = 1  # the exit code if something that is installed does not work
OLDEST = (3, 11)
NAMES = {"prometheus_client": "prometheus-client"}  # packages whose name differs from what is imported


class Check(NamedTuple):
    """One thing that was tried: whether it works (None if it is not there), what was found, and how to mend it."""

    name: str
    works: bool | None
    found: str
    mend: str = ""


def doctor(
    database: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar=environment.DATABASE,
            help="Also try this database, as for partage serve. Nothing is written to it.",
        ),
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Say what is installed, what works, and how to mend what does not.

    The exit code is 0 unless something that is installed does not work.

    [bold]partage doctor --database partage.db[/bold]
    """
    checks = [_python(), *(_extra(name) for name in EXTRAS), _cache(), *_engine(), *_database(database)]
    if json:
        typer.echo(as_json({"ok": all(one.works is not False for one in checks), "checks": [*map(_told, checks)]}))
    else:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        from partage import __version__

        console = Console(highlight=False)
        console.print(Text(f"partage {__version__}", style="bold"))
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for heading in ("", "works", "found"):
            table.add_column(heading)
        for one in checks:
            works = {True: Text("yes", "green"), False: Text("no", "bold red"), None: Text("–", "dim")}[one.works]
            table.add_row(Text(one.name), works, Text(one.found))
        console.print(table)
        for one in checks:
            if one.mend:
                console.print(Text(f"{one.name}: {one.mend}"))
    raise typer.Exit(WRONG if any(one.works is False for one in checks) else 0)


def _told(check: Check) -> dict[str, object]:
    return {**check._asdict(), "mend": check.mend or None}


def _python() -> Check:
    found = f"{platform.python_version()} in {sys.prefix}"
    works = sys.version_info >= OLDEST
    return Check("Python", works, found, "" if works else "install Python 3.11 or newer")


def _extra(name: str) -> Check:
    """Look whether the packages of an extra are installed."""
    packages = ", ".join(filter(None, map(_version, EXTRAS[name])))
    try:
        require(name, name)
    except MissingExtra:
        return Check(f"extra {name}", None, "not installed", f"to install it: pip install 'partage[{name}]'")
    return Check(f"extra {name}", True, packages)


def _version(package: str) -> str:
    try:
        return f"{package} {version(NAMES.get(package, package))}"
    except PackageNotFoundError:
        return ""


def _cache() -> Check:
    """Try to write where compiled code is kept."""
    from partage.compiled import can_compile, folder

    if not can_compile():
        return Check("compiled code", None, "numba is not installed")
    found = folder()
    try:
        found.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=found):
            pass
    except OSError as error:
        mend = "make it writable, or the engine is compiled at every start"
        return Check("compiled code", False, f"{found} cannot be written: {error.strerror}", mend)
    return Check("compiled code", True, str(found))


def _engine() -> list[Check]:
    """Play a tiny game with the reference and, if it is compiled already, with the engine."""
    try:
        require("The engine", "research")
    except MissingExtra:
        return []
    from partage import BalancedETC, Game, Sharing, bernoulli, play_run
    from partage.compiled import is_cold

    game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(2, 2), horizon=50)
    if is_cold():
        return [
            Check("engine", None, "not compiled yet", "the first simulation compiles it, which takes some seconds")
        ]
    same = play_run(game, BalancedETC()) == play_run(game, BalancedETC(), reference=True)
    mend = "" if same else "clear the folder of compiled code; if that does not help, report it"
    return [
        Check("engine", same, "equals the reference on a small game" if same else "differs from the reference", mend)
    ]


def _database(url: str) -> list[Check]:
    """Open a database."""
    if not url:
        return []
    if not url.startswith("postgres") and "://" not in url:
        path = Path(url)
        if not path.exists():
            able = path.parent.is_dir() and os.access(path.parent, os.W_OK)
            mend = "" if able else f"create the folder {path.parent}, or choose another"
            return [Check("database", able, f"{url} does not exist yet", mend)]
    try:
        require("The database", "postgres" if url.startswith("postgres") else "server")
        from sqlalchemy import create_engine, text
        from sqlalchemy.exc import SQLAlchemyError
    except (PartageError, ImportError) as error:
        return [Check("database", None, "cannot be tried", str(error))]
    kind = "postgresql+psycopg" + url[url.index(":") :] if url.startswith("postgres") else f"sqlite:///{url}"
    try:
        opened = create_engine(kind)
        with opened.connect() as connection:
            query = "SELECT version()" if url.startswith("postgres") else "SELECT sqlite_version()"
            found = str(connection.execute(text(query)).scalar_one())
            if not url.startswith("postgres"):
                connection.execute(text("SELECT count(*) FROM sqlite_master"))
        opened.dispose()
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).splitlines()[0]
        return [Check("database", False, reason, "check the address, the password and that the server runs")]
    return [Check("database", True, found if found.startswith("Postgre") else f"SQLite {found}")]

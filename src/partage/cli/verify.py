"""The command that verifies a ledger file."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from partage import environment
from partage.cli.terminal import as_json, interruptible, load, progress_bar
from partage.errors import FileError, InputError

if TYPE_CHECKING:
    from partage.ledger.verify import Verified

WRONG = 1  # the exit code for a ledger that does not verify


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The ledger, as downloaded from the controller.")],
    head: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="Fail if this saved head is missing, because history was rewritten."),
    ] = None,
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Fail if this signed checkpoint is not of this ledger; repeat it for each file."
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="The public key of the checkpoints, if the first line does not state it."),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="ID", help="The agent whose copy this is, if the copy does not show it.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The client's state file: fail if the copy hides what its agent has receipts for.",
        ),
    ] = None,
    rules: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE",
            help="The module of the collaboration's rule, if it is not one of Partage's; the variable "
            f"{environment.RULES} lists several, separated by commas.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Check that no line of a ledger was changed, and that the board and the settlement follow from it.

    The exit code is 0 if the ledger is valid. Otherwise it is 1, and the message says which line is wrong.

    [bold]partage verify bakers.ndjson --checkpoint morel.txt --checkpoint haddad.txt[/bold]
    [bold]partage verify bakers.ndjson --state morel.json[/bold]
    """
    if head is not None and not re.fullmatch("[0-9a-fA-F]{64}", head.strip()):
        raise InputError("A head has 64 hexadecimal digits, as in the controller's answer to each report.")
    _load_rules(rules or environment.rules())
    found = _verified(file, head, agent, [read_note(path) for path in checkpoint or []], key, state)
    if json:
        from msgspec import to_builtins

        typer.echo(as_json({"ok": found.ok, **to_builtins(found)}))
    else:
        from rich.console import Console

        from partage.report.collaboration_tables import show_verdict

        show_verdict(Console(highlight=False), file, found)
    raise typer.Exit(0 if found.ok else WRONG)


def _load_rules(modules: list[str]) -> None:
    """Load rules of one's own."""
    if modules:
        from partage.ledger.own_rules import load_rules

        load_rules(*modules)


def read_note(file: Path) -> str:
    """Return the checkpoint in a file."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise FileError(f"The file {file} cannot be read as a checkpoint.") from None


def _verified(
    file: Path, head: str | None, agent: str | None, checkpoints: list[str], key: str | None, state: Path | None
) -> "Verified":
    """Verify a file, with a progress bar if it takes a while."""
    load("ledger.verify")
    from partage.ledger.verify import verify as check

    total = _lines(file) if sys.stderr.isatty() else 0
    with progress_bar("verifying", "settling") as progress:
        found = interruptible(
            lambda: check(
                file,
                head,
                agent=agent,
                checkpoints=checkpoints,
                key=key,
                state=state,
                progress=lambda done: progress(done, total),
            )
        )
    problem = found.problem
    if (
        agent is not None
        and problem is not None
        and problem.line is None
        and interruptible(lambda: check(file, head, checkpoints=checkpoints, key=key, state=state)).ok
    ):
        raise InputError(problem.sentence)  # the ledger is right; it only lacks this agent
    return found


def _lines(file: Path) -> int:
    """Count the lines of a file, for the progress bar."""
    try:
        with open(file, "rb") as opened:
            return sum(part.count(b"\n") for part in iter(lambda: opened.read(1 << 20), b""))
    except (OSError, ValueError):
        raise FileError(f"The file {file} cannot be read.") from None

"""The command that verifies a ledger's file."""

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from partage.cli.terminal import interruptible, load, progress_bar
from partage.errors import FileError, InputError

if TYPE_CHECKING:
    from rich.console import Console

    from partage.ledger.verify import Verified

WRONG = 1  # the exit code for a ledger that is not right


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The ledger, as the controller gave it out.")],
    head: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="A head that was kept earlier, by a client: was history rewritten since?"),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="ID", help="Whose copy it is, where that cannot be told from the copy.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object in place of sentences.")] = False,
) -> None:
    """Check that no line of a ledger was changed, and that everything follows from it: the board, the settlement.

    The exit code is 0 if all is right, and 1 if not: then it says in which line.

    [bold]partage verify bakers.ndjson --head 9f86d081884c7d65…[/bold]
    """
    if head is not None and not re.fullmatch("[0-9a-fA-F]{64}", head.strip()):
        raise InputError("A head is 64 hexadecimal digits, as the controller answers to each report.")
    found = verified(file, head, agent)
    if as_json:
        import msgspec

        plain = {"ok": found.ok, **msgspec.to_builtins(found)}
        typer.echo(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        from rich.console import Console

        say(Console(highlight=False), file, found)
    raise typer.Exit(0 if found.ok else WRONG)


def verified(file: Path, head: str | None, agent: str | None) -> "Verified":
    """Verify a file, with a bar if it takes a while."""
    load("ledger.verify")
    from partage.ledger.verify import verify as check

    total = _lines(file) if sys.stderr.isatty() else 0
    with progress_bar("verifying", "settling") as progress:
        found = interruptible(lambda: check(file, head, agent=agent, progress=lambda done: progress(done, total)))
    problem = found.problem
    if (
        agent is not None
        and problem is not None
        and problem.line is None
        and interruptible(lambda: check(file, head)).ok
    ):
        raise InputError(problem.sentence)  # only the agent is not in it: not a word against the ledger
    return found


def _lines(file: Path) -> int:
    """Count the lines of a file, for the bar."""
    try:
        with open(file, "rb") as opened:
            return sum(part.count(b"\n") for part in iter(lambda: opened.read(1 << 20), b""))
    except (OSError, ValueError):
        raise FileError(f"The file {file} cannot be read.") from None


def say(console: "Console", file: Path, found: "Verified", settlement: bool = True) -> None:
    """Print what came out, with the settlement or without."""
    import msgspec
    from rich.padding import Padding
    from rich.text import Text

    from partage.report.collaboration_tables import settlement_table, show_settlement

    def sentences(title: str, given: list[str]) -> None:
        console.print(title)
        for sentence in given:
            console.print(Padding(Text(f"- {sentence}"), (0, 0, 0, 2)))

    if found.problem is not None:
        console.print(Text(f"{file} is wrong. {found.problem}", style="bold"), soft_wrap=True)
        if found.problem.line is not None:
            console.print(f"The {found.lines:,} lines before it are right.")
        return
    whole = "the whole ledger" if found.whole else "an agent's copy"
    console.print(Text(f"{file} is right: {whole}, {found.lines:,} lines.", style="bold"), soft_wrap=True)
    sentences("Checked:", found.checked)
    sentences("Taken on trust:", found.trusted)
    if not settlement:
        return
    if found.settlement is not None:
        console.print()
        show_settlement(console, msgspec.to_builtins(found.settlement))
    elif found.row is not None:
        console.print()
        console.print(settlement_table({"rows": [msgspec.to_builtins(found.row)]}))

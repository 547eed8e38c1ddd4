"""Commands of the operator, against a running controller."""

import csv
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from partage.errors import FileError, InputError

commands = typer.Typer(
    help="Create and settle collaborations, as the operator of a controller.",
    rich_markup_mode="rich",
)

Url = Annotated[str, typer.Option(metavar="URL", envvar="PARTAGE_URL", help="Where the controller is.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A file with the operator's token, - for standard input; without it, the variable "
        "PARTAGE_OPERATOR_TOKEN.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON in place of the table.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The collaboration's id, as list shows it.")]
HERE = "http://127.0.0.1:8000"


def _operator(url: str, token_file: Path | None) -> Any:
    from partage.client.operator import Operator, token_of

    return Operator(url, token_of(token_file))


def _path(id: str, rest: str = "") -> str:
    if not id.isascii() or not id.isalnum():
        raise InputError("The id of a collaboration is one word, as partage collaboration list shows it.")
    return f"/collaborations/{id}{rest}"


@commands.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What people call it.")],
    arm: Annotated[list[str], typer.Option(metavar="ARM", help="An option to learn about; give it again for each.")],
    horizon: Annotated[str, typer.Option(metavar="T", help="Pulls per agent.")],
    rule: Annotated[
        str, typer.Option(metavar="RULE", help="balanced-etc, unbalanced-etc, balanced-glr or kl-etc.")
    ] = "balanced-etc",
    balance: Annotated[
        str | None, typer.Option(metavar="B", help="The rule's balance: at least 1, the default, or inf.")
    ] = None,
    settlement: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="paper (default where it is defined), equal-share, equal-share-expected or none.",
        ),
    ] = None,
    fee: Annotated[str, typer.Option(metavar="F", help="The controller's part of all compensations.")] = "0",
    value: Annotated[str, typer.Option(metavar="V", help="Money per unit of reward.")] = "1",
    claim_seconds: Annotated[str, typer.Option(metavar="S", help="How long an explore pull may take.")] = "60",
    invites: Annotated[int, typer.Option(metavar="N", help="How many may join, a link for each.")] = 1,
    url: Url = HERE,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Create a collaboration and print its invites, this once.

    [bold]partage collaboration create "Bakers" --arm "Moulin A" --arm "Moulin B" --horizon 2000 --invites 12[/bold]
    """
    new: dict[str, Any] = {
        "name": name,
        "arms": arm,
        "horizon": _number("horizon", horizon),
        "rule": rule,
        "balance": balance if balance in (None, "inf") else _number("balance", balance),
        "settlement": settlement,
        "fee": _number("fee", fee),
        "value": _number("value", value),
        "claim_seconds": _number("claim-seconds", claim_seconds),
        "invites": invites,
    }
    with _operator(url, token_file) as operator:
        made = operator.post("/collaborations", new)
        links = [operator.link(made["id"], code) for code in made["invites"]]
    if as_json:
        typer.echo(_json({**made, "links": links}))
        return
    typer.echo(f"Created {made['id']}.")
    _say_links(links)


def _number(flag: str, text: str | None) -> int | float:
    """Return a number as people write it: 2000, 1e6, 0.05. What is allowed the controller says."""
    try:
        number = float(text or "")
        if number - number != 0:
            raise ValueError
    except ValueError:
        raise InputError(f"--{flag} must be a number, as in 2000, 1e6 or 0.05.") from None
    return int(number) if number.is_integer() else number


def _say_links(links: list[str]) -> None:
    if links:
        typer.echo("Each of these links lets one agent join; they are shown this once.")
        for link in links:
            typer.echo(f"  {link}")


@commands.command("list")
def list_all(url: Url = HERE, token_file: TokenFile = None, as_json: AsJson = False) -> None:
    """List the collaborations.

    [bold]partage collaboration list --token-file operator.token[/bold]
    """
    with _operator(url, token_file) as operator:
        found = operator.get("/collaborations")
    if as_json:
        typer.echo(_json(found))
        return
    if not found:
        typer.echo("There is no collaboration yet; partage collaboration create makes one.")
        return
    from rich.console import Console
    from rich.text import Text

    from partage.report.collaboration_tables import new_table

    table = new_table("id", "name", "arms", "agents", "broadcasts", "rule", "", left=2)
    for one in found:
        state = "closed" if one["closed"] else "open"
        counts = (f"{number:,}" for number in (len(one["arms"]), one["agents"], one["version"]))
        table.add_row(one["id"], Text(one["name"]), *counts, one["rule"], state)
    Console(highlight=False).print(table)


@commands.command()
def show(id: Id, url: Url = HERE, token_file: TokenFile = None, as_json: AsJson = False) -> None:
    """Show a collaboration's board: each arm's mean and how sure it is.

    [bold]partage collaboration show c0123456789ab[/bold]
    """
    with _operator(url, token_file) as operator:
        about, board = operator.get(_path(id)), operator.get(_path(id, "/board"))
    if as_json:
        typer.echo(_json({**about, "board": board}))
        return
    from rich.console import Console
    from rich.text import Text

    from partage.report.collaboration_tables import board_table

    console = Console(highlight=False)
    balance = "" if about["balance"] is None else f" with balance {about['balance']:g}"
    if about["balance"] == "inf":
        balance = " with balance inf"
    console.print(Text(about["name"] + (", closed" if about["closed"] else ""), style="bold"))
    told = f"{about['rule']}{balance}; settlement {about['settlement']}; horizon {about['horizon']:,}"
    console.print(Text(f"{told}; {about['agents']:,} agents; {board['version']:,} broadcasts", style="dim"))
    console.print("", board_table(board, console), sep="\n")


@commands.command()
def invite(
    id: Id,
    count: Annotated[int, typer.Option(metavar="N", help="How many.")] = 1,
    hours: Annotated[float, typer.Option(metavar="H", help="How long each may be used.")] = 168,
    url: Url = HERE,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Make more invites.

    [bold]partage collaboration invite c0123456789ab --count 3 --hours 48[/bold]
    """
    with _operator(url, token_file) as operator:
        made = operator.post(_path(id, "/invites"), {"invites": count, "hours": hours})
        links = [operator.link(id, code) for code in made["invites"]]
    if as_json:
        typer.echo(_json({**made, "links": links}))
    else:
        _say_links(links)


@commands.command()
def close(
    id: Id,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    url: Url = HERE,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Close a collaboration for good, and print its settlement.

    [bold]partage collaboration close c0123456789ab --yes[/bold]
    """
    with _operator(url, token_file) as operator:
        about = operator.get(_path(id))
        if not yes and not about["closed"]:
            if not sys.stdin.isatty():
                raise InputError(
                    "Closing is for good and would ask first, and nobody is there to answer; give --yes."
                )
            asked = f"Close {about['name']}? It is for good: reports that are on their way are lost."
            typer.confirm(asked, abort=True, err=True)
        found = operator.post(_path(id, "/close"))
    _say_settlement(found, as_json)


@commands.command()
def settlement(
    id: Id,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a line an agent, then the controller's.")] = False,
    url: Url = HERE,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Print who gets and pays what: as it closed, or as if it closed now.

    In CSV and JSON, amounts are micro-units: 1,000,000 are 1.

    [bold]partage collaboration settlement c0123456789ab --csv[/bold]
    """
    if as_csv and as_json:
        raise InputError("--csv and --json exclude each other.")
    with _operator(url, token_file) as operator:
        found = operator.get(_path(id, "/settlement"))
    if as_csv:
        _write_csv(found)
    else:
        _say_settlement(found, as_json)


def _say_settlement(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(_json(found))
        return
    from rich.console import Console

    from partage.report.collaboration_tables import show_settlement

    show_settlement(Console(highlight=False), found)


def _write_csv(found: dict[str, Any]) -> None:
    """Write the same lines as the operator's page does: net sums to zero."""
    columns = ("agent", "name", "explore", "commit", "compensation", "charge", "net")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in found["rows"]:
        name = row["name"]
        if name.lstrip()[:1] in tuple("=+-@|"):
            name = f"'{name}"  # she chose it herself, and a spreadsheet would take it for a formula
        writer.writerow([(row | {"name": name})[column] for column in columns])
    writer.writerow(["controller", "", "", "", found["charge"], found["compensation"], found["profit"]])


@commands.command()
def ledger(
    id: Id,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where it goes; - for standard output.")],
    url: Url = HERE,
    token_file: TokenFile = None,
) -> None:
    """Download the ledger, a line an event, for partage verify.

    [bold]partage collaboration ledger c0123456789ab -o bakers.ndjson[/bold]
    """
    with _operator(url, token_file) as operator:
        parts = operator.lines(_path(id, "/ledger"))
        if str(out) == "-":
            for part in parts:
                sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
            return
        lines = save(parts, out)
    typer.echo(f"{lines:,} lines in {out}; check them with: partage verify {out}")


def save(parts: Any, out: Path) -> int:
    """Write a download to its place once it is whole; returns its number of lines."""
    unfinished = out.with_name(f".{out.name}.part")
    lines = 0
    try:
        try:
            # For its owner alone: it tells everybody's commit pulls.
            with open(unfinished, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                for part in parts:
                    file.write(part)
                    lines += part.count(b"\n")
            unfinished.replace(out)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"The file {out} cannot be written: {error.strerror}.") from None
    return lines


def _json(found: Any) -> str:
    from partage.client.operator import as_json

    return as_json(found)

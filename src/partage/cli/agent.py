"""The agent's commands, against a running controller."""

import csv
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from partage import environment
from partage.cli.terminal import as_json
from partage.errors import FileError, InputError

if TYPE_CHECKING:
    from partage.client import Agent

commands = typer.Typer(
    help="Join a collaboration as one of its agents, and compare its ledger with other members.\n\n"
    '[bold]partage agent join - "Boulangerie Morel" --share "Moulin A" < link.txt[/bold]',
    rich_markup_mode="rich",
)

PATIENCE = 10.0  # seconds to keep trying to reach the controller
JOINED = """\
{name} has joined as agent {agent}. Its token is in {state}, which only you can read. Play in Python with:

    from partage.client import Agent

    with Agent.resume({path!r}) as agent:
        pull = agent.ask()
        agent.tell(pull, reward)  # what pulling pull.arm paid, from 0 to 1
"""


@commands.callback()
def agent() -> None:
    """Join a collaboration as one of its agents, and compare its ledger with other members.

    [bold]partage agent join - "Boulangerie Morel" --share "Moulin A" < link.txt[/bold]
    """


@commands.command()
def join(
    link: Annotated[
        str,
        typer.Argument(
            metavar="LINK",
            help="The invite's link, or - to read it from standard input. Or the controller's address, with "
            f"--collaboration, and the invite in the variable {environment.INVITE} or on standard input.",
        ),
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Display name.")],
    share: Annotated[
        list[str] | None,
        typer.Option(metavar="ARM", help="An arm whose rewards the agent shares; repeat the option for each arm."),
    ] = None,
    state: Annotated[Path, typer.Option(metavar="FILE", help="File for the token and pending reports.")] = Path(
        "partage-agent.json"
    ),
    horizon: Annotated[
        int | None,
        typer.Option(metavar="T", help="Pulls that the agent will make, if fewer than the collaboration's horizon."),
    ] = None,
    pace: Annotated[
        float | None, typer.Option(metavar="N", help="Pulls that it will make in an hour; this limits nothing.")
    ] = None,
    collaboration: Annotated[
        str | None, typer.Option(metavar="ID", help="The collaboration's id, if LINK is only an address.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Join a collaboration with an invite, and save the agent's token in a state file.

    [bold]partage agent join - "Boulangerie Morel" --share "Moulin A" --state morel.json < link.txt[/bold]
    """
    url, id, invite = _invitation(link, collaboration)
    from partage.client import Agent

    declared: dict[str, Any] = {"horizon": horizon, "pace": pace}
    with Agent.join(url, id, invite, name, share or [], **declared, state=state, patience=PATIENCE) as joined:
        found = {"agent": joined.id, "collaboration": id, "url": url, "shares": joined.shares, "state": str(state)}
        terms, source = joined.terms, joined.rule_source
        if source:
            found["rule_source"] = source
    if json:
        typer.echo(as_json(found | {"terms": terms}))
    else:
        typer.echo(JOINED.format(name=name, agent=found["agent"], state=state, path=str(state)), nl=False)
        if source:
            typer.echo(
                f"\nIts rule is not one of Partage's. Pass rules=FILE too: the module with the SHA-256 {source}."
            )
        if terms:
            typer.echo(f"\n{terms} Whoever joins agrees to this; agent.leave() ends the membership.")


@commands.command()
def checkpoint(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="The agent's state file.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it to this file.")
    ] = None,
) -> None:
    """Print the newest checkpoint of the ledger that the agent was shown, cosigned, for another member.

    [bold]partage agent checkpoint morel.json -o morel.txt[/bold]
    """
    import time

    from partage.client.statefile import read
    from partage.client.witness import cosigned_note
    from partage.files import write_atomically

    note = cosigned_note(read(state), time.time())
    if not note:
        raise InputError("This agent has no checkpoint yet: the controller gave it no receipt.")
    if output is None:
        typer.echo(note, nl=False)
    else:
        write_atomically(output, note.encode(), 0o644)


@commands.command()
def compare(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="The agent's state file.")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Checkpoints of other members.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Check that the agent and other members were shown the same ledger.

    The controller is asked for the proofs. The exit code is 0 if all checkpoints are of one ledger, and 1 if they are
    not: then the two checkpoints prove that the operator forked it, and the agent stops.

    [bold]partage agent compare morel.json haddad.txt[/bold]
    """
    from partage.cli.verify import WRONG, read_note
    from partage.client import Agent, Forked

    notes = {file: read_note(file) for file in files}
    compared: list[dict[str, object]] = []
    problem = None
    try:
        with Agent.resume(state, patience=PATIENCE, listen=False) as agent:
            for file, note in notes.items():
                compared.append({"file": str(file), "rows": agent.compare(note)})
    except Forked as forked:
        problem = forked
    if json:
        found = {
            "ok": problem is None,
            "compared": compared,
            "problem": None if problem is None else problem.sentence,
        }
        typer.echo(as_json(found))
    else:
        for one in compared:
            typer.echo(f"{one['file']} is a checkpoint of the same ledger, after {one['rows']:,} rows.")
        if problem is not None:
            typer.echo(str(problem))
    raise typer.Exit(0 if problem is None else WRONG)


State = Annotated[Path, typer.Argument(metavar="STATE", help="The agent's state file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def _resumed(state: Path) -> "Agent":
    from partage.client import Agent

    return Agent.resume(state, patience=PATIENCE, listen=False)


@commands.command()
def show(state: State, json: AsJson = False) -> None:
    """Show the board, and what the agent would receive or pay if the collaboration closed now.

    [bold]partage agent show morel.json[/bold]
    """
    with _resumed(state) as agent:
        board, settlement, shares = agent.board(), agent.settlement(), agent.shares
        id = agent.id
    if json:
        from msgspec import to_builtins

        found = {"agent": id, "shares": shares, "board": to_builtins(board), "settlement": to_builtins(settlement)}
        typer.echo(as_json(found))
        return
    from rich.console import Console

    from partage.report.collaboration_tables import board_table, show_settlement

    console = Console(highlight=False)
    console.print(f"Agent {id} shares {', '.join(shares) or 'nothing'}.", markup=False)
    console.print("", board_table(board, console), sep="\n")
    show_settlement(console, settlement)


@commands.command()
def share(
    state: State,
    arm: Annotated[list[str] | None, typer.Argument(metavar="ARM...", help="The arms; none: share nothing.")] = None,
) -> None:
    """Share exactly these arms from now on. Earlier broadcasts stay.

    [bold]partage agent share morel.json "Moulin A" "Moulin B"[/bold]
    """
    with _resumed(state) as agent:
        agent.share(arm or [])
        typer.echo(f"Agent {agent.id} shares {', '.join(agent.shares) or 'nothing'} from now on.")


@commands.command()
def attach(
    state: State,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE.csv", help="The past rewards, one row each, in the order in which they came."),
    ],
    arm: Annotated[str, typer.Option(metavar="COLUMN", help="The column of arms.")] = "arm",
    reward: Annotated[str, typer.Option(metavar="COLUMN", help="The column of rewards, from 0 to 1.")] = "reward",
) -> None:
    """Attach the agent's past rewards of arms that it shares, before its first pull.

    They count as evidence for all members and are not paid. Attach all that there are: a selection misleads everyone.
    Attaching the same file again changes nothing.

    [bold]partage agent attach morel.json past.csv[/bold]
    """
    past = _past(file, arm, reward)
    with _resumed(state) as agent:
        for name, rewards in past.items():
            agent.attach(name, rewards)
            typer.echo(f"Agent {agent.id} attached {len(rewards):,} past rewards of {name}.")


def _past(file: Path, arm: str, reward: str) -> dict[str, list[float]]:
    """Return the rewards of each arm in a CSV file."""
    found: dict[str, list[float]] = {}
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            rows = csv.DictReader(lines)
            for column in (arm, reward):
                if column not in (rows.fieldnames or ()):
                    raise InputError(f"The file {file} has no column {column}; name it with --arm or --reward.")
            for row in rows:
                try:
                    value = float(row[reward])
                except (TypeError, ValueError):
                    value = math.nan
                if not 0 <= value <= 1:
                    raise InputError(f"Line {rows.line_num} of {file}: the reward must be a number from 0 to 1.")
                found.setdefault((row[arm] or "").strip(), []).append(value)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or "it is not a CSV file"
        raise FileError(f"The file {file} cannot be read: {reason}.") from None
    if not found:
        raise InputError(f"The file {file} has no rewards; it must have one row for each.")
    return found


@commands.command()
def leave(
    state: State,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Leave the collaboration for good. Broadcasts and the agent's part of the settlement stay.

    [bold]partage agent leave morel.json[/bold]
    """
    if not yes:
        if not sys.stdin.isatty():
            raise InputError("Leaving is final, and this is not interactive; pass --yes.")
        typer.confirm("Leave for good?", abort=True, err=True)
    with _resumed(state) as agent:
        agent.leave()
        typer.echo(f"Agent {agent.id} has left.")


@commands.command()
def ledger(
    state: State,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Write it to this file.")] = Path(
        "ledger.ndjson"
    ),
) -> None:
    """Download the ledger as the agent may see it, for partage verify.

    [bold]partage agent ledger morel.json -o morel.ndjson && partage verify morel.ndjson --state morel.json[/bold]
    """
    with _resumed(state) as agent:
        agent.ledger(output)
    typer.echo(f"Wrote {output}; check it with: partage verify {output} --state {state}")


def _invitation(link: str, collaboration: str | None) -> tuple[str, str, str]:
    """Return the controller's address, the collaboration and the invite."""
    from partage.client.address import checked_url

    if link == "-":
        link = sys.stdin.readline().strip()
    id, _, invite = urlsplit(link).fragment.partition(".")
    if id and invite:
        address = link.split("#")[0].rstrip("/")
        return checked_url(address.removesuffix("/join")), id, invite
    url = checked_url(link)
    if not collaboration:
        raise InputError(
            "This is not an invite's link, such as http://127.0.0.1:8000/join#c0123456789ab.INVITE; "
            "with the controller's address alone, pass --collaboration too."
        )
    invite = environment.invite()
    if not invite:
        interactive = sys.stdin.isatty()
        invite = str(typer.prompt("Invite", hide_input=True, err=True)) if interactive else sys.stdin.readline()
    if not invite.strip():
        raise InputError(
            f"Joining needs an invite: put it in the variable {environment.INVITE}, or on standard input."
        )
    return url, collaboration, invite.strip()

"""Commands of an agent, against a running controller."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from partage.cli.terminal import load
from partage.errors import InputError

commands = typer.Typer(
    help="Join a collaboration, as one of its agents.",
    rich_markup_mode="rich",
)

INVITE = "PARTAGE_INVITE"
NEXT = """\
{name} has joined as agent {agent}; her token is in {state}, which is hers alone. Play in Python with:

    from partage.client import Agent

    with Agent.resume({path!r}) as agent:
        pull = agent.ask()
        agent.tell(pull, reward)  # what pulling pull.arm gave, from 0 to 1
"""


@commands.callback()
def agent() -> None:
    """Join a collaboration, as one of its agents."""


@commands.command()
def join(
    link: Annotated[
        str,
        typer.Argument(
            metavar="LINK",
            help="The invite's link, or - to read it from standard input; or the controller's address, with "
            f"--collaboration, and the invite in the variable {INVITE} or on standard input.",
        ),
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="What others call her.")],
    share: Annotated[
        list[str] | None,
        typer.Option(metavar="ARM", help="An arm whose rewards she shares; give it again for each."),
    ] = None,
    state: Annotated[
        Path, typer.Option(metavar="FILE", help="Where her token and what is on its way are kept.")
    ] = Path("partage-agent.json"),
    collaboration: Annotated[
        str | None, typer.Option(metavar="ID", help="The collaboration's id, where no link is given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object in place of sentences.")] = False,
) -> None:
    """Join a collaboration with an invite, and keep her token in a state file.

    [bold]partage agent join - "Boulangerie Morel" --share "Moulin A" --state morel.json < link.txt[/bold]
    """
    url, id, invite = _invited(link, collaboration)
    load("client")
    from partage.client import Agent

    with Agent.join(url, id, invite, name, share or [], state=state, patience=10.0) as joined:
        found = {"agent": joined.id, "collaboration": id, "url": url, "shares": joined.shares, "state": str(state)}
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        typer.echo(NEXT.format(name=name, agent=found["agent"], state=state, path=str(state)), nl=False)


def _invited(link: str, collaboration: str | None) -> tuple[str, str, str]:
    """Return the controller's address, the collaboration and the invite."""
    from partage.client.operator import checked_url

    if link == "-":
        link = sys.stdin.readline().strip()
    id, _, invite = urlsplit(link).fragment.partition(".")
    if id and invite:
        address = link.split("#")[0].rstrip("/")
        return checked_url(address.removesuffix("/join")), id, invite
    url = checked_url(link)
    if not collaboration:
        raise InputError(
            "This is no invite's link, such as http://127.0.0.1:8000/join#c0123456789ab.INVITE; "
            "with the controller's address alone, give --collaboration too."
        )
    invite = os.environ.get(INVITE, "").strip()
    if not invite:
        asked = sys.stdin.isatty()
        invite = str(typer.prompt("Invite", hide_input=True, err=True)) if asked else sys.stdin.readline().strip()
    if not invite:
        raise InputError(f"Joining needs an invite: put it into the variable {INVITE}, or on standard input.")
    return url, collaboration, invite

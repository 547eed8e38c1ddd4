"""The command that runs the demo."""

from pathlib import Path
from typing import Annotated

import typer

from partage.cli.facts import names
from partage.errors import InputError, require
from partage.ledger.config import allowed
from partage.rules import live_rules

RULE = "balanced-glr"  # it eliminates arms, which is what one wants to watch


def demo(
    fast: Annotated[bool, typer.Option("--fast", help="Run at full speed and exit.")] = False,
    trouble: Annotated[
        bool, typer.Option("--trouble", help="One baker is late, one differs and one lies; the board says so.")
    ] = False,
    pace: Annotated[
        float, typer.Option(metavar="P", help="Pulls of each baker per second, while they explore.")
    ] = 1.5,
    minutes: Annotated[
        float, typer.Option(metavar="M", help="Maximum minutes of play, even if exploration is not over.")
    ] = 4.0,
    rule: Annotated[str, typer.Option(metavar="RULE", help=f"{names(live_rules(), RULE)}.")] = RULE,
    port: Annotated[int, typer.Option(metavar="PORT", help="0 picks a free port.")] = 0,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for the database, log and ledgers; by default they are deleted."),
    ] = None,
) -> None:
    """Watch a dozen bakers find the best flour supplier together, also live in the browser: about three minutes.

    The demo starts a controller, plays over HTTP with the real client, closes, settles, and verifies the ledger.
    Then it keeps serving until Ctrl-C.

    [bold]partage demo --pace 3[/bold]
    """
    if not 0 < pace <= 1000 or not 0 < minutes <= 600:
        raise InputError("The pace must be above 0 and at most 1,000, and the minutes above 0 and at most 600.")
    if rule not in live_rules():
        raise InputError(f"The rule must be {allowed('rule')}.")
    require("The demo", "server")
    from rich.console import Console

    from partage.demo.runner import run_demo

    console = Console(highlight=False)
    run_demo(
        console,
        rule=rule,
        pace=None if fast else pace,
        seconds=60 * minutes,
        port=port,
        folder=folder,
        trouble=trouble,
    )

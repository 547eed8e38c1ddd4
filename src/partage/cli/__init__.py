"""The command line: one function per command, each thin.

Every error that Partage raises on purpose, and every mistake in the command line itself, becomes one sentence on
standard error and exit code 2. Slow imports are inside the commands that need them.
"""

import io
import sys
from typing import Annotated

import typer

from partage.cli import (
    agent,
    audit,
    collaboration,
    compare,
    demo,
    doctor,
    log,
    prepaid,
    reproduce,
    serve,
    simulate,
    value,
    verify,
)
from partage.cli.facts import with_rules
from partage.cli.terminal import OneSentence
from partage.rules import RULES

app = typer.Typer(cls=OneSentence, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # instead of failing on characters that it cannot show
    app(prog_name="partage")


def _version(wanted: bool) -> None:
    if wanted:
        from partage import __version__

        typer.echo(f"partage {__version__}")
        raise typer.Exit


@app.callback()
def partage(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Learn together which option is best, while each party shares only what it chooses to share.

    [bold]partage simulate --means 0.9,0.8,0.7 --agents 30 --horizon 1e6[/bold]
    """


GAMES, CONTROLLER = "Simulate on this machine", "Collaborate over a network"

app.command(rich_help_panel=GAMES, help=with_rules(simulate.simulate, RULES))(simulate.simulate)
app.command(rich_help_panel=GAMES)(compare.compare)
app.command(rich_help_panel=GAMES)(value.value)
app.command(rich_help_panel=GAMES)(audit.audit)
app.command(rich_help_panel=GAMES)(prepaid.prepaid)
app.add_typer(log.commands, name="log", rich_help_panel=GAMES)
app.command(rich_help_panel=GAMES)(reproduce.reproduce)
app.command(rich_help_panel=GAMES)(reproduce.studies)
app.command(rich_help_panel=CONTROLLER)(demo.demo)
app.command(rich_help_panel=CONTROLLER)(serve.serve)
app.command(rich_help_panel=CONTROLLER)(verify.verify)
app.command()(doctor.doctor)
app.add_typer(collaboration.commands, name="collaboration", rich_help_panel=CONTROLLER)
app.add_typer(agent.commands, name="agent", rich_help_panel=CONTROLLER)

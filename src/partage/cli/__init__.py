"""The command line: one function a command, each thin.

Every error that Partage raises on purpose, and every slip in the command line itself, becomes one sentence on
standard error and exit code 2. What is slow to import is imported inside the command that needs it.
"""

import io
import sys
from typing import Annotated

import typer

from partage.cli import agent, collaboration, demo, serve, verify
from partage.cli import simulate as simulation
from partage.cli.terminal import OneSentence

app = typer.Typer(cls=OneSentence, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a sign that the terminal cannot show is no reason to stop
    app(prog_name="partage")


def _version(wanted: bool) -> None:
    if wanted:
        from partage import __version__

        typer.echo(f"partage {__version__}")
        raise typer.Exit


@app.callback()
def partage(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Learn together which option is best, while each shares only what she is willing to share."""


GAMES, CONTROLLER = "Play games on this machine", "Work together, over a network"

app.command(rich_help_panel=GAMES)(simulation.simulate)
app.command(rich_help_panel=GAMES)(simulation.audit)
app.command(rich_help_panel=GAMES)(simulation.reproduce)
app.command(rich_help_panel=GAMES)(simulation.studies)
app.command(rich_help_panel=CONTROLLER)(demo.demo)
app.command(rich_help_panel=CONTROLLER)(serve.serve)
app.command(rich_help_panel=CONTROLLER)(verify.verify)
app.add_typer(collaboration.commands, name="collaboration", rich_help_panel=CONTROLLER)
app.add_typer(agent.commands, name="agent", rich_help_panel=CONTROLLER)

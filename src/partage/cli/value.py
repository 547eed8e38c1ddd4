"""The command that says what sharing one arm more, or one fewer, is worth."""

from pathlib import Path
from typing import Annotated, Any

import typer

from partage.cli.facts import names
from partage.cli.simulate import DEFAULT_RULE, choose
from partage.cli.terminal import announce_compilation, as_json, interruptible, load, progress_bar
from partage.errors import FileError, require
from partage.rules import RULES


def value(
    file: Annotated[Path, typer.Argument(metavar="GAME.toml", help="A game file.")],
    agent: Annotated[str, typer.Option(metavar="NAME", help="The agent whose shares are changed.")],
    rule: Annotated[
        str | None,
        typer.Option(metavar="RULE", help=f"{names(RULES, DEFAULT_RULE)}. Overrides the rule in the file."),
    ] = None,
    settlement: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who gets and pays what. Overrides the file's.")
    ] = None,
    runs: Annotated[str, typer.Option(metavar="R", help="Number of paired runs.")] = "100",
    seed: Annotated[str, typer.Option(metavar="S", help="The same seed gives the same result.")] = "0",
    jobs: Annotated[str | None, typer.Option(metavar="J", help="Number of threads (default: all cores).")] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw the gains: a .svg, .png or .pdf file.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Say what sharing one arm more, or one fewer, changes for an agent and for the others.

    The game is played as it is and with each change, on the same random numbers.

    [bold]partage value game.toml --agent "shop 1" --rule shared-imed --settlement equal-share-expected[/bold]
    """
    require("Simulation", "research")
    load("simulate.value")
    from partage.gamefile import at, number, read_game
    from partage.simulate.value import value_of_sharing

    played = read_game(file)
    name, chosen, settled, terms = choose(file, played, rule, settlement=settlement)
    numbers: dict[str, Any] = {"runs": number(runs), "seed": number(seed)}
    numbers["jobs"] = None if jobs is None else number(jobs)
    announce_compilation()
    with progress_bar(then="playing") as progress, at(str(file)):
        found = interruptible(
            lambda: value_of_sharing(
                played.game, chosen, agent, settlement=settled, **terms, **numbers, progress=progress
            )
        )
    if plot is not None:
        from partage.report.value_table import value_figure

        try:
            value_figure(found, played.game.unit).savefig(plot)
        except (OSError, ValueError) as error:
            raise FileError(f"The figure {plot} cannot be written ({error}); try a file that ends in .svg.") from None
    if json:
        unit = played.game.unit
        typer.echo(as_json(found.as_dict() | {"rule": name, "unit": unit and vars(unit)}))
        return
    from rich.console import Console

    from partage.report.value_table import show_value

    show_value(Console(highlight=False), found, played.game.unit)

"""The options that describe a log, and the log that they name."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from partage.logs import Columns, Log, LogGame

LOG = "The log"

AgentColumn = Annotated[
    str, typer.Option("--agent", metavar="COLUMN", help="The column of agents.", rich_help_panel=LOG)
]
ArmColumn = Annotated[str, typer.Option("--arm", metavar="COLUMN", help="The column of arms.", rich_help_panel=LOG)]
RewardColumn = Annotated[
    str, typer.Option("--reward", metavar="COLUMN", help="The column of rewards.", rich_help_panel=LOG)
]
CountColumn = Annotated[
    str | None,
    typer.Option(
        "--count",
        metavar="COLUMN",
        help="The column that says how often a row happened. By default every row is one event.",
        rich_help_panel=LOG,
    ),
]
Consent = Annotated[
    Path | None,
    typer.Option(
        metavar="CONSENT.csv",
        help="A table of agents and the arms that they share, with the same names of columns. By default agents "
        "share the arms that they have rows of.",
        rich_help_panel=LOG,
    ),
]
Worst = Annotated[
    float | None,
    typer.Option(metavar="X", help="The value that is a reward of 0 (default: the smallest).", rich_help_panel=LOG),
]
Best = Annotated[
    float | None,
    typer.Option(metavar="X", help="The value that is a reward of 1 (default: the largest).", rich_help_panel=LOG),
]
LessIsBetter = Annotated[
    bool, typer.Option("--less-is-better", help="The smallest value is the best, as with costs.", rich_help_panel=LOG)
]
UnitName = Annotated[
    str, typer.Option("--unit", metavar="NAME", help='The unit of the values, e.g. "minutes".', rich_help_panel=LOG)
]
Means = Annotated[
    str,
    typer.Option(
        metavar="fit|one|own",
        help="One distribution of each arm for all agents, each agent's own, or one if a test says that it fits.",
        rich_help_panel=LOG,
    ),
]


def read(path: Path, columns: "Columns", **scale: Any) -> "Log":
    """Read a log in a thread, so that Ctrl-C works."""
    from partage.cli.terminal import interruptible
    from partage.logs import read_log

    return interruptible(lambda: read_log(path, columns, **scale))


def game_of(
    path: Path, columns: "Columns", consent: Path | None, horizon: str | None, means: str = "fit", **scale: Any
) -> "LogGame":
    """Return the game of a log, and say on standard error what was found."""
    from partage.gamefile import number
    from partage.logs import game_of_log, read_consent

    log = read(path, columns, **scale)
    shares = None if consent is None else read_consent(consent, log, columns)
    game = game_of_log(log, horizon=None if horizon is None else number(horizon), means=means, shares=shares)  # type: ignore[arg-type]
    for note in game.notes:
        typer.echo(note, err=True)
    return game

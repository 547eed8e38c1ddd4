"""The commands that read a log: make a game of it, and replay a rule on it."""

from pathlib import Path
from typing import Annotated

import typer

from partage.cli.facts import names
from partage.cli.logfile import (
    AgentColumn,
    ArmColumn,
    Best,
    Consent,
    CountColumn,
    LessIsBetter,
    Means,
    RewardColumn,
    UnitName,
    Worst,
    game_of,
    read,
)
from partage.cli.terminal import as_json, interruptible, load, progress_bar
from partage.errors import require
from partage.rules import RULES

commands = typer.Typer(help="Make games of logs of past events, and replay rules on them.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="EVENTS.csv", help="A CSV or Parquet file with a header.")]
DEFAULT_RULE = "shared-imed"


@commands.command("to-game")
def to_game(
    file: File,
    agent: AgentColumn = "agent",
    arm: ArmColumn = "arm",
    reward: RewardColumn = "reward",
    count: CountColumn = None,
    consent: Consent = None,
    worst: Worst = None,
    best: Best = None,
    less_is_better: LessIsBetter = False,
    unit: UnitName = "",
    means: Means = "fit",
    horizon: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            help='Pulls per agent; "own" for as many as the agent has rows. The default is the mean number of rows.',
        ),
    ] = None,
) -> None:
    """Print the game of a log as a game file: empirical arms, agents by name, and the arms that they share.

    [bold]partage log to-game events.csv --agent shop --arm product --reward sales > game.toml[/bold]
    """
    require("Reading logs", "research")
    load("logs")
    from partage.logs import Columns

    scale = {"worst": worst, "best": best, "less_is_better": less_is_better, "unit": unit}
    game = game_of(file, Columns(agent, arm, reward, count), consent, horizon, means, **scale)
    typer.echo(game.toml(file.name), nl=False)


@commands.command()
def replay(
    file: File,
    agent: AgentColumn = "agent",
    arm: ArmColumn = "arm",
    reward: RewardColumn = "reward",
    consent: Consent = None,
    worst: Worst = None,
    best: Best = None,
    less_is_better: LessIsBetter = False,
    unit: UnitName = "",
    rule: Annotated[str, typer.Option(metavar="RULE", help=f"{names(RULES, DEFAULT_RULE)}.")] = DEFAULT_RULE,
    seed: Annotated[str, typer.Option(metavar="S", help="The same seed gives the same result.")] = "0",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Replay a rule on a log whose arms were drawn uniformly at random, without a model of rewards.

    An event counts if the rule would have pulled its arm; the others are skipped.

    [bold]partage log replay events.csv --rule shared-imed[/bold]
    """
    require("Replays", "research")
    load("logs")
    from partage.checks import count as whole
    from partage.gamefile import number
    from partage.logs import Columns, read_consent
    from partage.logs import replay as replayed
    from partage.logs.reading import read_events
    from partage.rules import make_rule

    columns = Columns(agent, arm, reward)
    log = read(file, columns, worst=worst, best=best, less_is_better=less_is_better, unit=unit)
    shares = None if consent is None else read_consent(consent, log, columns)
    chosen, from_seed = make_rule(rule), whole("The seed", number(seed), at_least=0)
    for note in log.notes:
        typer.echo(note, err=True)
    with progress_bar("replaying", "replaying") as progress:
        found = interruptible(
            lambda: replayed(
                log, read_events(file, log, columns), chosen, shares=shares, seed=from_seed, progress=progress
            )
        )
    if json:
        typer.echo(as_json(found.as_dict() | {"unit": log.unit and vars(log.unit)}))
        return
    if found.warning:
        typer.echo(found.warning, err=True)
    from rich.console import Console

    from partage.report.replay_table import show_replay

    show_replay(Console(highlight=False), found, log.unit)

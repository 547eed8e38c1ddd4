"""The command that simulates a game."""

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partage.cli.facts import COVERAGE_HELP, names, parameter_help, settlements, taking
from partage.cli.options import (
    GAME,
    PLAY,
    Agents,
    Alone,
    Baseline,
    BroadcastPrice,
    Csv,
    CsvBy,
    GameFileArgument,
    Horizon,
    Jobs,
    Json,
    Means,
    Order,
    Plot,
    RewardKind,
    Runs,
    Seed,
    SettlementName,
    SharingPattern,
    given,
    play_settings,
)
from partage.cli.outputs import checked_outputs, write_outputs
from partage.cli.terminal import announce_compilation, as_json, interruptible, load, progress_bar
from partage.errors import InputError, require
from partage.rules import RULES

if TYPE_CHECKING:
    from partage.gamefile import GameFile

TERMS = ("fee", "coverage", "prepaid", "underwriting")
DEFAULT_RULE = "balanced-etc"  # the paper's rule; live collaborations have other defaults
HOW_TO_GIVE_A_GAME = (
    "give a game file, as in: partage simulate game.toml, "
    "or options, as in: partage simulate --means 0.9,0.8,0.7 --agents 30 --horizon 1e6"
)


def simulate(
    file: GameFileArgument = None,
    means: Means = None,
    agents: Agents = None,
    horizon: Horizon = None,
    sharing: SharingPattern = None,
    order: Order = None,
    reward: RewardKind = None,
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="EVENTS.csv",
            help="A log of past events, CSV or Parquet, of which to make the game. --reward is then its column of "
            "rewards (default reward), and --horizon is optional. partage log to-game has more options.",
            rich_help_panel=GAME,
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The log's column of agents (default agent).", rich_help_panel=GAME),
    ] = None,
    arm: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The log's column of arms (default arm).", rich_help_panel=GAME),
    ] = None,
    consent: Annotated[
        Path | None,
        typer.Option(
            metavar="CONSENT.csv",
            help="Which arms agents share: columns of agents and arms. By default those that they have rows of.",
            rich_help_panel=GAME,
        ),
    ] = None,
    less_is_better: Annotated[
        bool,
        typer.Option(
            "--less-is-better",
            help="The smallest value of the log is the best, as with costs and delays.",
            rich_help_panel=GAME,
        ),
    ] = False,
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The unit of the log's values (default: the name of their column).",
            rich_help_panel=GAME,
        ),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help=f"{names(RULES, DEFAULT_RULE)}. Overrides the rule in the file; the file's settlement and the "
            "rule's parameters in it still apply if they fit the rule. Repeat it to compare rules on the same runs.",
            rich_help_panel=PLAY,
        ),
    ] = None,
    balance: Annotated[
        str | None,
        typer.Option(
            metavar="B",
            help=f"{parameter_help('balance')} Overrides the file's.",
            rich_help_panel=PLAY,
        ),
    ] = None,
    lead: Annotated[
        str | None,
        typer.Option(metavar="L", help=f"{parameter_help('lead')} Overrides the file's.", rich_help_panel=PLAY),
    ] = None,
    clock: Annotated[
        str | None,
        typer.Option(metavar="X", help=f"{parameter_help('clock')} Overrides the file's.", rich_help_panel=PLAY),
    ] = None,
    own: Annotated[
        str | None,
        typer.Option(metavar="N", help=f"{parameter_help('own')} Overrides the file's.", rich_help_panel=PLAY),
    ] = None,
    indifference: Annotated[
        str | None,
        typer.Option(
            metavar="true|false",
            help=f"{parameter_help('indifference')} Overrides the file's.",
            rich_help_panel=PLAY,
        ),
    ] = None,
    sees: Annotated[
        str | None,
        typer.Option(
            metavar="own|shared|both",
            help=f"{parameter_help('sees')} Overrides the file's.",
            rich_help_panel=PLAY,
        ),
    ] = None,
    evidence: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help=f"{parameter_help('evidence')} Overrides the file's.", rich_help_panel=PLAY
        ),
    ] = None,
    tolerate: Annotated[
        str | None,
        typer.Option(metavar="F", help=f"{parameter_help('tolerate')} Overrides the file's.", rich_help_panel=PLAY),
    ] = None,
    late: Annotated[
        str | None,
        typer.Option(
            metavar="ignored|worst",
            help=f"{parameter_help('late')} Overrides the file's.",
            rich_help_panel=PLAY,
        ),
    ] = None,
    settlement: SettlementName = None,
    fee: Annotated[
        str | None,
        typer.Option(
            metavar="F",
            help="The controller's fee in an equal share or a pool, as a fraction of all compensations "
            "(default 0). Overrides the file's.",
            rich_help_panel=PLAY,
        ),
    ] = None,
    alone: Alone = None,
    coverage: Annotated[
        str | None,
        typer.Option(metavar="C", help=f"{COVERAGE_HELP} Overrides the file's.", rich_help_panel=PLAY),
    ] = None,
    prepaid: Annotated[
        str | None,
        typer.Option(
            metavar="D",
            help="What every agent prepays in the settlements pool and dues, in units of reward: the most that it "
            "can be charged. partage prepaid proposes an amount. Overrides the file's.",
            rich_help_panel=PLAY,
        ),
    ] = None,
    underwriting: Annotated[
        str | None,
        typer.Option(
            metavar="U",
            help="The most that the controller may lose, in units of reward; compensations are scaled down "
            "accordingly. The default is 0 for pool, and no limit for paper and the equal shares. Overrides the "
            "file's.",
            rich_help_panel=PLAY,
        ),
    ] = None,
    broadcast_price: BroadcastPrice = "0",
    runs: Runs = "100",
    seed: Seed = "0",
    baseline: Baseline = None,
    jobs: Jobs = None,
    plot: Plot = None,
    csv: Csv = None,
    csv_by: CsvBy = "run",
    json: Json = False,
) -> None:
    """Play a game and print its figures of merit.

    Describe the game in a file or with options:

    [bold]partage simulate game.toml[/bold]

    [bold]partage simulate --means 0.9,0.8,0.7 --agents 30 --horizon 1e6 --balance 1[/bold]

    [bold]partage simulate --log events.csv --agent shop --arm product --reward sales[/bold]
    """
    require("Simulation", "research")
    load("simulate.play")
    from partage.simulate.in_unit import in_unit
    from partage.simulate.play import long_reference_play, play
    from partage.simulate.prepaid import covers_little

    options = given(means=means, agents=agents, horizon=horizon, sharing=sharing, order=order, reward=reward)
    logged = given(agent=agent, arm=arm, consent=consent, less_is_better=less_is_better or None, unit=unit)
    played = game_of(file, options, log, logged)
    parameters = {
        "balance": balance,
        "lead": lead,
        "clock": clock,
        "own": own,
        "indifference": indifference,
        "sees": sees,
        "evidence": evidence,
        "tolerate": tolerate,
        "late": late,
    }
    typed = {"fee": fee, "coverage": coverage, "prepaid": prepaid, "underwriting": underwriting}
    settings = play_settings(runs, seed, broadcast_price, baseline, jobs)
    if rule is not None and len(rule) > 1:
        from partage.cli.compare import compared, show_comparison

        wanted = compared(file, played, rule, parameters, settlement, typed)
        show_comparison(played, wanted, alone, settings, plot, csv, csv_by, json)
        return
    name, chosen, settled, terms = choose(
        file, played, rule[0] if rule else None, parameters, settlement, alone, typed
    )
    checked_outputs(plot, csv, csv_by)
    if notice := long_reference_play(played.game, chosen, settings["runs"]):
        typer.echo(notice, err=True)
    announce_compilation()
    with progress_bar() as progress:
        result = interruptible(
            lambda: play(played.game, chosen, settlement=settled, **terms, **settings, progress=progress)
        )
    if warning := covers_little(result):
        typer.echo(warning, err=True)
    write_outputs(result, plot, csv, csv_by)
    figures = in_unit(result.as_dict(rule=name), played.game.unit)
    if json:
        typer.echo(as_json(figures))
    else:
        from rich.console import Console

        from partage.simulate.summary import summary

        summary(figures, played.sharing).show(Console(highlight=False))


def game_of(
    file: Path | None,
    options: dict[str, str],
    log: Path | None = None,
    logged: Mapping[str, Any] = MappingProxyType({}),
) -> "GameFile":
    """Return the game of a file, of a log or of options; `logged` are the options that describe the log."""
    from partage.gamefile import game_by_flags, read_game

    if log is not None:
        return _logged(file, options, log, logged)
    if logged:
        does = "describes" if len(logged) == 1 else "describe"
        raise InputError(f"{_flags(logged)} {does} a log, and there is none; give it as in: --log events.csv.")
    if file is not None:
        if options:
            raise InputError(
                f"The game is given twice, by {file} and by {_flags(options)}; use a file or options, not both."
            )
        return read_game(file)
    missing = [name for name in ("means", "agents", "horizon") if name not in options]
    if len(missing) == 3:
        raise InputError(f"No game is given; {HOW_TO_GIVE_A_GAME}.")
    if missing:
        raise InputError(f"The game lacks {_flags(missing)}; {HOW_TO_GIVE_A_GAME}.")
    return game_by_flags(**options)


def _logged(file: Path | None, options: dict[str, str], log: Path, logged: Mapping[str, Any]) -> "GameFile":
    """Return the game of a log."""
    from partage.cli import logfile
    from partage.logs import Columns

    twice = [f"--{name}" for name in options if name not in ("reward", "horizon")]
    if file is not None or twice:
        other = str(file) if file is not None else ", ".join(twice)
        raise InputError(f"The game is given twice, by --log and by {other}; use one of them.")
    columns = {name: value for name, value in logged.items() if name in ("agent", "arm")}
    if "reward" in options:
        columns["reward"] = options["reward"]
    scale = {name: value for name, value in logged.items() if name in ("less_is_better", "unit")}
    return logfile.game_of(log, Columns(**columns), logged.get("consent"), options.get("horizon"), **scale).file


def _flags(options: Iterable[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in options)


def choose(
    file: Path | None,
    played: "GameFile",
    rule: str | None = None,
    parameters: Mapping[str, str | None] = MappingProxyType({}),
    settlement: str | None = None,
    alone: str | None = None,
    terms: Mapping[str, str | None] = MappingProxyType({}),
) -> tuple[str, Any, str, dict[str, Any]]:
    """Return the rule's name, the rule, the settlement and its terms: from options, the file, or the defaults.

    `parameters` are the rule's and `terms` the settlement's, by name, as they were typed; None if they were not. A
    settlement or rule chosen by an option takes only those of the file's terms that fit it.
    """
    from partage.gamefile import at, number
    from partage.rules import make_rule
    from partage.settle import settlement_for, terms_taken

    given = {key: number(text) for key, text in parameters.items() if text is not None}
    by_options = rule is not None or bool(given)
    with nullcontext() if by_options or file is None else at(str(file)):
        name = rule or played.rule or DEFAULT_RULE
        # If the options chose the rule, those of the file's parameters apply that it takes.
        kept = {key: value for key, value in played.parameters.items() if rule is None or name in taking(key)}
        chosen = make_rule(name, **{**kept, **given})
        typed = {key: number(text) for key, text in terms.items() if text is not None}
        found = {key: getattr(played, key) for key in TERMS} | typed
        if settlement is not None:
            settled = settlement
        elif by_options and played.settlement in settlements() and played.settlement not in chosen.settlements:
            settled = "default"  # the file's settlement does not fit the rule that the options chose
        else:
            settled = played.settlement or "default"
        if settlement is not None or by_options:  # the file's terms may not fit what the options chose
            takes = terms_taken(settled)
            found = {key: value for key, value in found.items() if key in takes or key in typed}
        checked: dict[str, Any] = {**found, "fee": found.get("fee") or 0, "alone": alone or played.alone}
        settlement_for(settled, chosen, **checked)  # so that an error names the file
    return name, chosen, settled, checked

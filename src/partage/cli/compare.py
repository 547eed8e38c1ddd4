"""The command that compares rules on the same runs of a game."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from partage.cli.facts import taking
from partage.cli.options import (
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
from partage.cli.simulate import choose, game_of
from partage.cli.terminal import announce_compilation, as_json, interruptible, load, progress_bar
from partage.errors import InputError, require

if TYPE_CHECKING:
    from partage.gamefile import GameFile

USUAL = ("balanced-etc", "balanced-glr", "shared-imed")  # compared by default, after the rule of the file


class Wanted(NamedTuple):
    """A rule to compare: how it was asked for, the rule, and its settlement with the terms."""

    label: str
    rule: Any
    settlement: dict[str, Any]


def compare(
    file: GameFileArgument = None,
    means: Means = None,
    agents: Agents = None,
    horizon: Horizon = None,
    sharing: SharingPattern = None,
    order: Order = None,
    reward: RewardKind = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE[:NAME=VALUE,...]",
            help="A rule, with parameters after a colon; repeat it for each. The others are compared with the first. "
            f"The default is the rule of the file and {', '.join(USUAL)}.",
            rich_help_panel=PLAY,
        ),
    ] = None,
    settlement: SettlementName = None,
    alone: Alone = None,
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
    """Play several rules on the same runs of a game, and print how much they differ.

    Rules see the same rewards, so differences between them are far more precise than the figures themselves.

    [bold]partage compare game.toml --rule balanced-etc --rule balanced-glr:lead=2 --plot rules.png[/bold]
    """
    require("Simulation", "research")
    load("simulate.compare")

    options = given(means=means, agents=agents, horizon=horizon, sharing=sharing, order=order, reward=reward)
    played = game_of(file, options)
    rules = rule or list(dict.fromkeys((played.rule or USUAL[0], *USUAL)))
    settings = play_settings(runs, seed, broadcast_price, baseline, jobs)
    wanted = compared(file, played, rules, settlement=settlement)
    show_comparison(played, wanted, alone, settings, plot, csv, csv_by, json)


def compared(
    file: Path | None,
    played: "GameFile",
    rules: Sequence[str],
    parameters: Mapping[str, str | None] = MappingProxyType({}),
    settlement: str | None = None,
    terms: Mapping[str, str | None] = MappingProxyType({}),
) -> list[Wanted]:
    """Return the rules to compare. `parameters` go to those rules that take them; one of them must."""
    typed = given(**parameters)
    asked = [rule.partition(":")[0] for rule in rules]
    for key in typed:
        if not set(taking(key)).intersection(asked):
            raise InputError(f"No rule that is compared takes {key}; leave it out.")
    found: dict[str, Wanted] = {}
    for label, name in zip(rules, asked, strict=True):
        own = {key: value for key, value in typed.items() if name in taking(key)} | _own(label)
        _, rule, settled, chosen = choose(file, played, name, own, settlement, None, terms)
        if label in found:
            raise InputError(f"The rule {label} is given twice; give each rule once.")
        chosen = {key: value for key, value in chosen.items() if key != "alone"}
        found[label] = Wanted(label, rule, {"settlement": settled, **chosen})
    return list(found.values())


def _own(label: str) -> dict[str, str]:
    """Return the parameters that are written after the name of a rule.

    >>> _own("balanced-glr:lead=2,evidence=betting"), _own("two-ucb")
    ({'lead': '2', 'evidence': 'betting'}, {})
    """
    _, _, after = label.partition(":")
    pairs = [pair.partition("=") for pair in after.split(",") if pair]
    if any(not equals or not value for _, equals, value in pairs):
        raise InputError(f"The rule is {label!r}; parameters must be written as in balanced-glr:lead=2.")
    return {name.strip(): value.strip() for name, _, value in pairs}


def show_comparison(
    played: "GameFile",
    wanted: Sequence[Wanted],
    alone: str | None,
    settings: Mapping[str, Any],
    plot: Path | None,
    csv: Path | None,
    csv_by: str,
    json: bool,
) -> None:
    """Play the rules, write the files that are asked for, and print the comparison."""
    from partage.simulate.compare import compare as compare_rules
    from partage.simulate.in_unit import comparison_in_unit
    from partage.simulate.play import long_reference_play

    checked_outputs(plot, csv, csv_by)
    for one in wanted:
        if notice := long_reference_play(played.game, one.rule, settings["runs"]):
            typer.echo(f"{one.label}: {notice}", err=True)
    announce_compilation()
    rules = {one.label: one.rule for one in wanted}
    each = {one.label: one.settlement for one in wanted}
    with progress_bar() as progress:
        found = interruptible(
            lambda: compare_rules(played.game, rules, alone=alone or "best", each=each, progress=progress, **settings)
        )
    write_outputs(found, plot, csv, csv_by)
    if json:
        typer.echo(as_json(comparison_in_unit(found.as_dict(), played.game.unit)))
    else:
        from rich.console import Console

        found.page(played.sharing).show(Console(highlight=False))

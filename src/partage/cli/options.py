"""Options that commands which simulate have in common."""

from pathlib import Path
from typing import Annotated, Any

import typer

from partage.cli.facts import ALONE_HELP, settlements

GAME, PLAY, OUTPUT = "The game, without a file", "How it is played", "Output"

GameFileArgument = Annotated[
    Path | None,
    typer.Argument(metavar="GAME.toml", help="A game file; it replaces the options that describe a game."),
]
Means = Annotated[
    str | None, typer.Option(metavar="0.9,0.8,...", help="Mean reward of each arm.", rich_help_panel=GAME)
]
Agents = Annotated[str | None, typer.Option(metavar="M", help="Number of agents.", rich_help_panel=GAME)]
Horizon = Annotated[str | None, typer.Option(metavar="T", help="Pulls per agent.", rich_help_panel=GAME)]
SharingPattern = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERN",
        help="Who shares what: round-robin (default), dealt, scarce-best, neighbours-K, random, "
        "everyone-everything, nobody-nothing.",
        rich_help_panel=GAME,
    ),
]
Order = Annotated[
    str | None,
    typer.Option(
        metavar="fixed|shuffled",
        help="Whether agents act in a fixed order (default) or in a new order in each run.",
        rich_help_panel=GAME,
    ),
]
RewardKind = Annotated[
    str | None,
    typer.Option(
        metavar="bernoulli|constant",
        help="Distribution of rewards, given the mean (default bernoulli). A game file can use others.",
        rich_help_panel=GAME,
    ),
]
Alone = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"{ALONE_HELP} An equal share charges nobody more than it costs. The default is two-ucb with the "
        "paper's settlement, otherwise best. Overrides the file's.",
        rich_help_panel=PLAY,
    ),
]
SettlementName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Who gets and pays what: {', '.join(settlements())}. The default is paper if it fits the rule, "
        "otherwise none. Overrides the file's.",
        rich_help_panel=PLAY,
    ),
]
BroadcastPrice = Annotated[
    str,
    typer.Option(
        metavar="P",
        help="What a broadcast costs the agent that makes it, in units of reward. It counts as regret, and an "
        "equal share compensates it.",
        rich_help_panel=PLAY,
    ),
]
Runs = Annotated[str, typer.Option(metavar="R", help="Number of independent runs.", rich_help_panel=PLAY)]
Seed = Annotated[str, typer.Option(metavar="S", help="The same seed gives the same result.", rich_help_panel=PLAY)]
Baseline = Annotated[
    bool | None,
    typer.Option(
        "--baseline/--no-baseline",
        help="Also play learners alone: 2-UCB, and those that --alone needs if T times the number of arms is at "
        "most 2e7. The default is to do so if R times T is at most 1e9.",
        rich_help_panel=PLAY,
    ),
]
Jobs = Annotated[
    str | None, typer.Option(metavar="J", help="Number of threads (default: all cores).", rich_help_panel=PLAY)
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of tables.", rich_help_panel=OUTPUT)
]
Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Draw the regret over time, the agents and the arms, or the rules side by side: .png, .svg or .pdf.",
        rich_help_panel=OUTPUT,
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write the figures as CSV, by default one row per run.", rich_help_panel=OUTPUT
    ),
]
CsvBy = Annotated[
    str,
    typer.Option(
        metavar="run|arm|agent|step",
        help="Write one row of --csv per run, per run and arm, per agent, or per step of the regret over time.",
        rich_help_panel=OUTPUT,
    ),
]


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given.

    >>> given(means="0.9,0.8", agents=None)
    {'means': '0.9,0.8'}
    """
    return {name: value for name, value in options.items() if value is not None}


def play_settings(
    runs: str, seed: str, broadcast_price: str, baseline: bool | None, jobs: str | None
) -> dict[str, Any]:
    """Return how to play, from options as they were typed; `partage.play` says what is allowed."""
    from partage.gamefile import number

    return {
        "runs": number(runs),
        "seed": number(seed),
        "broadcast_price": number(broadcast_price),
        "baseline": baseline,
        "jobs": None if jobs is None else number(jobs),
    }

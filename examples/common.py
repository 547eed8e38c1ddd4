"""What the examples share: play the game of a log, print the settlement, and draw it."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from matplotlib.figure import Figure

import partage
from partage.logs import Columns, Log, LogGame, game_of_log, read_log
from partage.report.format import estimate
from partage.report.style import LIGHT, house_style, new_figure

DATA = Path(__file__).parent / "data"
RUNS, MOST_NAMED = 50, 30  # runs of an example; agents with their names in the figure
COLOURS = ("blue", "orange", "green", "purple")


class Example(NamedTuple):
    """What an example found."""

    log: Log
    game: LogGame
    result: partage.Result
    settlement: pl.DataFrame
    figure: Figure
    limit: str


def worked(
    name: str, table: pl.DataFrame, columns: Columns, limit: str, runs: int, folder: Path, **terms: Any
) -> Example:
    """Make a game of a table, play it by network-glr with a pool, and draw what the agents saw and lost."""
    path = folder / f"{name}.csv"
    table.write_csv(path)
    log = read_log(path, columns)
    made = game_of_log(log, horizon=terms.pop("horizon", None))
    prepaid = terms["prepaid"]
    result = partage.play(
        made.file.game, partage.NetworkGLR(), runs=runs, settlement="pool", prepaid=prepaid, baseline=False
    )
    settlement = result.frame(by="agent").select(
        "agent",
        pl.col("regret").round(2),
        (pl.col("regret") - pl.col("incentive_regret")).round(2).alias("received less paid"),
        pl.col("incentive_regret").round(2).alias("after settlement"),
    )
    return Example(log, made, result, settlement, drawn(log, result), limit)


def drawn(log: Log, result: partage.Result) -> Figure:
    """Draw the means of each agent and arm, and the regret of each agent before and after the settlement."""
    counts, means = log.counts, log.sums / log.counts.clip(1)
    order = means.max(axis=1).argsort()
    places = range(len(order))
    with house_style("example"):
        figure = new_figure(9, max(3.0, 1.2 + 0.22 * len(order)) if len(order) <= MOST_NAMED else 5.0)
        left, right = figure.subplots(1, 2, sharey=True)
        for arm, name in enumerate(log.arms):
            seen = [place for place in places if counts[order[place], arm]]
            left.plot([means[order[place], arm] for place in seen], seen, "o", color=LIGHT[COLOURS[arm]], label=name)
        if len(order) <= MOST_NAMED:
            left.set_yticks(places, [log.agents[agent] for agent in order])
        else:
            left.set_ylabel("agents, by their best mean")
        left.set_title("Mean reward in the data")
        left.legend(frameon=False, fontsize=8)
        folded, runs = result.folded, result.runs
        right.plot(folded.regret[order] / runs, places, "o", color=LIGHT["blue"], label="regret")
        right.plot(folded.incentive[order] / runs, places, "o", color=LIGHT["orange"], label="after settlement")
        right.set_title("Loss in the simulated collaboration")
        right.legend(frameon=False, fontsize=8)
    return figure


def show(example: Callable[[int, Path], Example], name: str) -> None:
    """Run an example at full size, print it, and write its figure into docs/figures."""
    with tempfile.TemporaryDirectory() as folder:
        found = example(RUNS, Path(folder))
    print(*found.game.notes, sep="\n")
    with pl.Config(tbl_rows=100, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
        print(found.settlement)
    regret, profit = found.result.overall_regret, found.result.controller_profit
    assert profit is not None
    print(f"Overall regret {estimate(regret)}; the controller's profit {estimate(profit)}.")
    if found.result.disagreement:
        for one in found.result.disagreement.named:
            print(f"In {one.runs} of {found.result.runs} runs the reports show that {one.text}.")
    print(found.limit)
    found.figure.savefig(Path(__file__).parents[1] / "docs" / "figures" / f"example-{name}.svg")

"""The figures of merit of a study as a table, written as CSV and Parquet."""

from pathlib import Path

import polars as pl

from partage.simulate.fold import FIGURES
from partage.simulate.result import Estimate
from partage.studies import Played
from partage.studies.study import TWO_UCB


def table(played: Played) -> pl.DataFrame:
    """Return one row per line, place on the axis and figure of merit, and one per checkpoint of the regret over time.

    `step` is the horizon, except for the regret over time, where it is the checkpoint. The rows of a trial have
    neither a place nor a step.
    """
    study = played.study
    rows: list[tuple[str | int | float | None, ...]] = []

    def row(line: str, at: int, step: int, figure: str, value: Estimate | None) -> None:
        mean, stderr = value or (None, None)
        runs = played.result(at, line).runs
        rows.append((study.name, line, at, step, figure, mean, stderr, runs, played.seed))

    for line in study.lines:
        for at in study.places(line):
            result, alone = played.result(at, line.name), played.alone(at, line.name)
            for figure in FIGURES:
                row(line.name, at, result.game.horizon, figure, getattr(result, figure))
            row(line.name, at, result.game.horizon, TWO_UCB, alone.overall_regret)
            for step, together, single in zip(study.checkpoints, result.curve, alone.curve, strict=True):
                row(line.name, at, step, "overall_regret_up_to", together)
                row(line.name, at, step, f"{TWO_UCB}_up_to", single)
    for trial in study.trials:
        values = played.trials[trial.name]
        for figure, column in zip(trial.figures, values.T, strict=True):
            mean, stderr = Estimate.of(column)
            rows.append((study.name, trial.name, None, None, figure, mean, stderr, len(values), played.seed))
    columns = {
        "study": pl.String,
        "line": pl.String,
        study.axis: pl.Int64,
        "step": pl.Int64,
        "figure": pl.String,
        "mean": pl.Float64,
        "stderr": pl.Float64,
        "runs": pl.Int64,
        "seed": pl.UInt64,
    }
    return pl.DataFrame(rows, schema=columns, orient="row")


def write_tables(played: Played, folder: Path) -> list[Path]:
    """Write the table of a study beside the report, as CSV and as Parquet."""
    frame = table(played)
    csv, parquet = (folder / f"{played.study.name}.{kind}" for kind in ("csv", "parquet"))
    frame.write_csv(csv)
    frame.write_parquet(parquet)
    return [csv, parquet]

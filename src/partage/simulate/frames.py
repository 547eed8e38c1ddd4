"""Results as data frames."""

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from partage.errors import InputError
from partage.simulate.fold import FIGURES

if TYPE_CHECKING:
    import pandas as pd

    from partage.simulate.result import Result


def frame(result: "Result", by: str) -> pl.DataFrame:
    """Return a data frame with one row per run, per run and arm, per agent, or per checkpoint.

    Where a game is not the paper's, agents have their pace, their horizon and their bar.
    """
    if by == "run":
        return _by_run(result)
    if by == "arm":
        return _by_arm(result)
    if by == "agent":
        return _by_agent(result)
    if by == "step":
        return _by_step(result)
    raise InputError(f"The frame is by {by!r}; it must be one of run, arm, agent, step.")


def to_pandas(frame: pl.DataFrame) -> "pd.DataFrame":
    """Return a Polars data frame as one of pandas, column by column: Polars itself would need pyarrow."""
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise InputError("to_pandas needs pandas; install it with: pip install pandas.") from None
    columns = {}
    for series in frame:
        dtype = "Int64" if series.dtype.is_integer() and series.null_count() else None  # NaN would make them floats
        columns[series.name] = pd.Series(
            series.to_list(), dtype=dtype or ("object" if series.dtype == pl.String else None)
        )
    return pd.DataFrame(columns)


def _by_run(result: "Result") -> pl.DataFrame:
    figures = result.folded.figures
    columns = {name: figures[:, place] for place, name in enumerate(FIGURES)}
    return pl.DataFrame({"run": np.arange(len(figures))} | columns).with_columns(pl.col(FIGURES).fill_nan(None))


def _by_arm(result: "Result") -> pl.DataFrame:
    folded = result.folded
    runs, arms = folded.broadcasts.shape
    names = [result.game.agent_name(agent) for agent in range(result.game.agents)]
    return pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), arms),
            "arm": list(result.game.arm_names) * runs,
            "broadcasts": folded.broadcasts.ravel(),
            "eliminated_step": folded.eliminated_step.ravel(),
            "eliminated_agent": [None if agent < 0 else names[agent] for agent in folded.eliminated_agent.ravel()],
        },
        schema_overrides={"eliminated_agent": pl.String},
    ).with_columns(pl.when(pl.col("eliminated_step") >= 0).then(pl.col("eliminated_step")))


def _by_step(result: "Result") -> pl.DataFrame:
    curve = result.curve
    return pl.DataFrame(
        {
            "step": result.checkpoints,
            "regret": [estimate.mean for estimate in curve],
            "regret_stderr": [estimate.stderr for estimate in curve],
        },
        schema_overrides={"regret": pl.Float64, "regret_stderr": pl.Float64},
    )


def _by_agent(result: "Result") -> pl.DataFrame:
    game, agents = result.game, range(result.game.agents)
    regret = [result.individual_regret(agent) for agent in agents]
    incentive = [result.incentive_regret(agent) for agent in agents]
    own: dict[str, list[float | None]] = {}
    if game.uneven:
        bars = [result.bar_of(result.settlement.alone, agent) for agent in agents]
        own = {
            "pace": [game.traits_of(agent).pace for agent in agents],
            "horizon": [game.horizon_of(agent) for agent in agents],
            "bar": [None if bar is None else bar.mean for bar in bars],
            "bar_stderr": [None if bar is None else bar.stderr for bar in bars],
        }
    return pl.DataFrame(
        {
            "agent": [result.game.agent_name(agent) for agent in agents],
            "regret": [estimate.mean for estimate in regret],
            "regret_stderr": [estimate.stderr for estimate in regret],
            "incentive_regret": [estimate.mean if result.settled else None for estimate in incentive],
            "incentive_regret_stderr": [estimate.stderr if result.settled else None for estimate in incentive],
            **own,
        },
        schema_overrides={
            name: pl.Float64
            for name in ("incentive_regret", "incentive_regret_stderr", "bar", "bar_stderr")
            if own or not name.startswith("bar")
        },
    )

"""Reading logs: a CSV or Parquet file with one row per event, or with one row per distinct reward and a count."""

import math
import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from partage.board import Record
from partage.errors import FileError, InputError
from partage.unit import Unit

MOST_AGENTS, MOST_ARMS = 10_000, 1_000  # more are rather a column that names something else
MISSING = ("", "na", "n/a", "nan", "null", "none", "-")  # texts that stand for no value, in any case
_PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class Columns:
    """The names of the columns of a log; without `count`, every row is one event."""

    agent: str = "agent"
    arm: str = "arm"
    reward: str = "reward"
    count: str | None = None


@dataclass(frozen=True)
class Log:
    """A log, by agent, arm and reward. Rewards are in [0, 1].

    Attributes
    ----------
    agents, arms
        Their names, in order.
    unit
        How rewards relate to the values of the file; None if these were in [0, 1].
    cells
        One row per agent, arm and distinct reward, with numbers for agents and arms, and how often it occurs.
    rows
        How many events there are, without those that are left out.
    notes
        One sentence each on what was left out.
    """

    agents: tuple[str, ...]
    arms: tuple[str, ...]
    unit: Unit | None
    cells: pl.DataFrame = field(repr=False)
    rows: int
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each agent (row) pulled each arm (column)."""
        return self._summed(pl.col("count")).astype(np.int64)

    @property
    def sums(self) -> NDArray[np.float64]:
        """The sums of rewards of each agent and arm."""
        return self._summed(pl.col("count") * pl.col("reward"))

    @property
    def squares(self) -> NDArray[np.float64]:
        """The sums of squared rewards of each agent and arm."""
        return self._summed(pl.col("count") * pl.col("reward") ** 2)

    @property
    def binary(self) -> bool:
        """Whether every reward is 0 or 1."""
        return bool(self.cells["reward"].is_in([0.0, 1.0]).all())

    def records(self) -> dict[int, Record]:
        """Return what each agent saw, as the tests of `partage.agreement` take it."""
        both = zip(self.counts.tolist(), self.sums.tolist(), strict=True)
        return {agent: Record(counts, sums) for agent, (counts, sums) in enumerate(both)}

    def _summed(self, what: pl.Expr) -> NDArray[np.float64]:
        table = np.zeros((len(self.agents), len(self.arms)))
        found = self.cells.group_by("agent", "arm").agg(what.sum().alias("sum"))
        table[found["agent"].to_numpy(), found["arm"].to_numpy()] = found["sum"].to_numpy()
        return table


def read_log(
    path: str | Path,
    columns: Columns | None = None,
    *,
    worst: float | None = None,
    best: float | None = None,
    less_is_better: bool = False,
    unit: str = "",
) -> Log:
    """Read a log.

    Parameters
    ----------
    path
        A CSV file, or a Parquet file (.parquet or .pq).
    columns
        The names of its columns.
    worst, best
        The values that are rewards of 0 and of 1. By default the smallest and the largest of the file, or 0 and 1 if
        all values are between these.
    less_is_better
        Whether the smallest value is the best, as with costs.
    unit
        The name of the unit of the values. Where they are rescaled, the default is the name of their column, unless
        that is "reward".

    Raises
    ------
    FileError
        If the file is missing or is not a table.
    InputError
        If a column is missing, values are not numbers, or nothing can be learnt from the log.
    """
    path = Path(path)
    columns = columns or Columns()
    wanted = [columns.agent, columns.arm, columns.reward, *([columns.count] if columns.count else [])]
    table = _named(_read(path, wanted), columns)
    grouped = _collected(path, table.group_by("agent", "arm", "reward").agg(_often(columns).alias("count")))
    _check_numbers(path, columns, table, grouped["reward"])
    if (grouped["count"] < 0).any():
        raise InputError(f"{path}: a count is negative; counts must be at least 0.")
    grouped = grouped.filter(pl.col("count") > 0)
    kept = grouped.drop_nulls()
    notes = _left_out(columns, grouped)
    if not kept.height:
        raise InputError(f"{path}: no row has an agent, an arm and a reward; there must be some.")
    agents = _names(path, kept["agent"], columns.agent, "agent", MOST_AGENTS)
    arms = _names(path, kept["arm"], columns.arm, "arm", MOST_ARMS)
    measured = _unit(path, kept["reward"], worst, best, less_is_better, unit, columns)
    cells = (
        kept.with_columns(
            agent=pl.col("agent").replace_strict(agents, list(range(len(agents))), return_dtype=pl.Int64),
            arm=pl.col("arm").replace_strict(arms, list(range(len(arms))), return_dtype=pl.Int64),
            reward=_rescaled(pl.col("reward"), measured),
        )
        .group_by("agent", "arm", "reward")
        .agg(pl.col("count").sum())
        .sort("agent", "arm", "reward")
    )
    return Log(agents, arms, measured, cells, int(cells["count"].sum()), tuple(notes))


def read_consent(path: str | Path, log: Log, columns: Columns | None = None) -> list[list[int]]:
    """Read which arms each agent consents to share: a table with one row per agent and arm.

    Agents that are not in it share nothing.
    """
    path, columns = Path(path), columns or Columns()
    table = _read(path, [columns.agent, columns.arm])
    found = _collected(path, table).drop_nulls().unique()
    shares: list[list[int]] = [[] for _ in log.agents]
    for agent, arm in found.select(columns.agent, columns.arm).iter_rows():
        for what, name, known in (("agent", agent, log.agents), ("arm", arm, log.arms)):
            if name not in known:
                raise InputError(f"{path}: the {what} {name!r} is not in the log{_meant(name, known)}.")
        shares[log.agents.index(agent)].append(log.arms.index(arm))
    return [sorted(row) for row in shares]


class Events(NamedTuple):
    """The events of a log in their order: the numbers of agent and arm, and the reward."""

    agent: NDArray[np.int64]
    arm: NDArray[np.int64]
    reward: NDArray[np.float64]


def read_events(path: str | Path, log: Log, columns: Columns | None = None) -> Events:
    """Read the events of a log in the order of the file."""
    path, columns = Path(path), columns or Columns()
    if columns.count is not None:
        raise InputError(f"{path}: the column {columns.count!r} counts events, so their order is not known.")
    table = _named(_read(path, [columns.agent, columns.arm, columns.reward]), columns)
    kept = _collected(path, table.select("agent", "arm", "reward")).drop_nulls()
    return Events(
        _numbered(kept["agent"], log.agents),
        _numbered(kept["arm"], log.arms),
        kept.select(_rescaled(pl.col("reward"), log.unit)).to_series().to_numpy(),
    )


def _numbered(names: pl.Series, known: tuple[str, ...]) -> NDArray[np.int64]:
    return names.replace_strict(known, list(range(len(known))), return_dtype=pl.Int64).to_numpy()


def _read(path: Path, wanted: list[str]) -> pl.LazyFrame:
    """Return these columns of a file as texts, without surrounding space; null where there is none."""
    try:
        # A CSV is read as texts: "007" stays "007".
        parquet = path.suffix.lower() in _PARQUET
        table = pl.scan_parquet(path) if parquet else pl.scan_csv(path, infer_schema=False)
        schema = table.collect_schema()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreadable(path, error) from None
    for name in wanted:
        if name not in schema:
            listed = ", ".join(map(repr, schema.names()[:20]))
            raise InputError(f"{path}: there is no column {name!r}{_meant(name, schema.names())}; it has {listed}.")
    return table.select(_as_text(name, schema[name]) for name in dict.fromkeys(wanted))


def _as_text(name: str, kind: pl.DataType) -> pl.Expr:
    text = pl.col(name)
    if kind == pl.Boolean:
        text = text.cast(pl.Int8)
    text = text.cast(pl.String).str.strip_chars()
    return pl.when(text.str.to_lowercase().is_in(list(MISSING))).then(None).otherwise(text).alias(name)


def _often(columns: Columns) -> pl.Expr:
    return pl.len().cast(pl.Int64) if columns.count is None else pl.col("times").cast(pl.Int64).sum()


def _collected(path: Path, table: pl.LazyFrame) -> pl.DataFrame:
    try:
        return table.collect()
    except pl.exceptions.InvalidOperationError:
        raise InputError(f"{path}: a count is not a whole number; all counts must be.") from None
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> FileError:
    if isinstance(error, FileNotFoundError):
        return FileError(f"{path}: there is no such file.")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).splitlines()[0]
    return FileError(f"{path}: the log cannot be read ({reason}); it must be a CSV or Parquet file with a header.")


def _named(table: pl.LazyFrame, columns: Columns) -> pl.LazyFrame:
    """Return the columns under the names agent, arm and reward, which is a number; `text` is what the file has."""
    text = pl.col(columns.reward)
    lower = text.str.to_lowercase().replace({"true": "1", "false": "0"})
    often = [pl.col(columns.count).alias("times")] if columns.count else []
    return table.select(
        pl.col(columns.agent).alias("agent"),
        pl.col(columns.arm).alias("arm"),
        lower.cast(pl.Float64, strict=False).alias("reward"),
        text.alias("text"),
        *often,
    )


def _check_numbers(path: Path, columns: Columns, table: pl.LazyFrame, rewards: pl.Series) -> None:
    """Refuse rewards that are not numbers. Reads the file again only if there may be some."""
    if not rewards.null_count() and rewards.is_finite().all():
        return
    wrong = pl.col("text").is_not_null() & (pl.col("reward").is_null() | ~pl.col("reward").is_finite())
    found = _collected(path, table.filter(wrong).select("text").head(1))
    if found.height:
        raise InputError(
            f"{path}: a value of the column {columns.reward!r} is {found['text'][0]!r}; rewards must be finite "
            "numbers, true or false."
        )


def _left_out(columns: Columns, grouped: pl.DataFrame) -> list[str]:
    """Say how many rows lack a value."""
    every, notes = int(grouped["count"].sum()), []
    for what in ("agent", "arm", "reward"):
        lacking = int(grouped.filter(pl.col(what).is_null())["count"].sum())
        if lacking:
            column = getattr(columns, what)
            notes.append(
                f"{lacking:,} of {every:,} rows have no {column!r} and are left out; this is fair only if what is "
                "missing does not depend on the reward."
            )
    return notes


def _names(path: Path, column: pl.Series, name: str, what: str, most: int) -> tuple[str, ...]:
    """Return the distinct names of a column, "shop 2" before "shop 10"."""
    found = column.unique().to_list()
    if len(found) < 2:
        why = "a collaboration needs at least two" if what == "agent" else "there is nothing to choose"
        raise InputError(f"{path}: the only {what} in the column {name!r} is {found[0]!r}; {why}.")
    if len(found) > most:
        raise InputError(
            f"{path}: the column {name!r} has {len(found):,} different values; a game has at most {most:,} {what}s."
        )
    return tuple(sorted(found, key=_natural))


def _natural(text: str) -> tuple[tuple[bool, int, str], ...]:
    return tuple(
        (not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"([0-9]+)", text)
    )


def _unit(
    path: Path,
    rewards: pl.Series,
    worst: float | None,
    best: float | None,
    less_is_better: bool,
    name: str,
    columns: Columns,
) -> Unit | None:
    """Return what rewards of 0 and 1 are; None if the values are rewards."""
    low, high = float(rewards.min()), float(rewards.max())  # type: ignore[arg-type]
    if low == high:
        raise InputError(f"{path}: every reward is {low:g}; there is nothing to learn if all rewards are equal.")
    if worst is None and best is None and low >= 0 and high <= 1 and not less_is_better:
        return Unit(0, 1, name) if name else None
    if worst is None:
        worst = high if less_is_better or (best is not None and best <= low) else low
    if best is None:
        best = low if less_is_better or worst >= high else high
    found = Unit(worst, best, name or ("" if columns.reward == Columns().reward else columns.reward))
    least, most = sorted((found.worst, found.best))
    if low < least or high > most:
        outside = low if low < least else high
        raise InputError(
            f"{path}: a reward is {outside:g}; all must be between the worst value, {found.worst:g}, and the best, "
            f"{found.best:g}."
        )
    return found


def _rescaled(reward: pl.Expr, unit: Unit | None) -> pl.Expr:
    if unit is None or (unit.worst, unit.best) == (0.0, 1.0):
        return reward
    return ((reward - unit.worst) / (unit.best - unit.worst)).clip(
        0.0, 1.0
    ) + 0.0  # rounding may leave [0, 1]; -0.0 becomes 0.0


def _meant(word: str, known: list[str] | tuple[str, ...]) -> str:
    close = get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def mean_and_error(count: int, total: float, squares: float) -> tuple[float, float | None]:
    """Return a mean of rewards and its standard error; None for fewer than two.

    >>> mean_and_error(4, 2.0, 2.0)
    (0.5, 0.28...)
    """
    mean = total / count
    if count < 2:
        return mean, None
    return mean, math.sqrt(max(0.0, squares / count - mean * mean) / (count - 1))

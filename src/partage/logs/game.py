"""From a log to a game: empirical arms, agents by name, and the arms that they share."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from partage.agreement import Disagreement, disagreements
from partage.agreement.words import in_words
from partage.checks import count, one_of
from partage.gamefile import GameFile, read_document
from partage.logs.fit import Fit, one_mean
from partage.logs.reading import Log
from partage.unit import Unit

MEANS = ("fit", "one", "own")
MOST_POINTS, ALL_POINTS = 1_000, 50_000  # values of one cell, and of all cells together
MOST_SAID = 3  # disagreements that are named


@dataclass(frozen=True)
class LogGame:
    """The game of a log.

    Attributes
    ----------
    document
        The game file, as `tomllib` would read it.
    fit
        The test whether one mean of each arm fits all agents.
    own
        Whether agents have arms of their own.
    notes
        One sentence each on what was assumed, left out and found.
    """

    document: Mapping[str, Any]
    fit: Fit
    own: bool
    notes: tuple[str, ...]

    @property
    def file(self) -> GameFile:
        """The game, as if it had been read from a file."""
        return read_document(self.document)

    def toml(self, source: str = "a log") -> str:
        """Return the text of the game file."""
        head = [f"# Made by partage log to-game from {_text(source)}.", *(f"# {note}" for note in self.notes)]
        return "\n".join([*head, "", *_top(self.document), ""])


def game_of_log(
    log: Log,
    *,
    horizon: int | str | None = None,
    means: str = "fit",
    shares: Sequence[Sequence[int]] | None = None,
) -> LogGame:
    """Return the game that a log describes.

    Parameters
    ----------
    log
        The log.
    horizon
        Pulls per agent; "own" for as many as the agent has rows. By default the mean number of rows, so that the game
        has as many pulls as the log has rows.
    means
        "one" for one distribution of each arm, "own" for every agent's own, or "fit" for one if it fits.
    shares
        The arms that each agent shares; by default those that it has rows of.
    """
    one_of("means", means, MEANS)
    counts, fit = log.counts, one_mean(log)
    own = means == "own" or (means == "fit" and not fit.fits)
    rows = counts.sum(axis=1)
    steps = (
        max(2, round(log.rows / len(log.agents))) if horizon in (None, "own") else count("The horizon", horizon, 2)
    )
    pays = _Pays(log, own)
    arms = [{"name": name} | pays.of(None, arm) for arm, name in enumerate(log.arms)]
    agents = []
    for agent, name in enumerate(log.agents):
        shared = np.flatnonzero(counts[agent]).tolist() if shares is None else shares[agent]
        table: dict[str, Any] = {"name": name, "shares": [log.arms[arm] for arm in shared]}
        if horizon == "own":
            table["horizon"] = int(rows[agent])
        if own:
            table |= pays.row(agent, counts[agent] > 0)
        agents.append(table)
    unit = {} if log.unit is None else {"unit": _unit(log.unit)}
    document = {"horizon": steps, **unit, "arms": arms, "agent": agents}
    said = (*log.notes, *_fit_said(log, fit, means, own), *_cells_said(log, own), *disagreements_said(log))
    return LogGame(document, fit, own, said)


def disagreements_said(log: Log) -> list[str]:
    """Say which agents see arms differently, by the tests of `partage.agreement`: a few, the clearest first."""
    found = sorted(disagreements(log.records(), len(log.arms)), key=lambda one: -one.evidence)
    names = dict(enumerate(log.agents))
    said = [
        in_words(_in_unit(one, log.unit), lambda agent: names[agent], log.arms)  # type: ignore[index]
        for one in found[:MOST_SAID]
    ]
    more = len(found) - MOST_SAID
    word = "difference" if more == 1 else "differences"
    return [*said, *([f"And {more} more such {word}."] if more > 0 else [])]


def _in_unit(one: Disagreement, unit: Unit | None) -> Disagreement:
    factor = 1.0 if unit is None else unit.best - unit.worst
    low, high = sorted((one.low * factor, one.high * factor))
    return one._replace(difference=one.difference * factor, low=low, high=high)


def _fit_said(log: Log, fit: Fit, means: str, own: bool) -> list[str]:
    if not fit.freedom:
        return ["No arm has rows of two agents, so nothing shows whether one mean fits all."]
    found = f"One mean of each arm for all agents {'fits' if fit.fits else 'does not fit'} ({fit})"
    if own == fit.fits and means != "fit":
        chosen = "agents have means of their own" if own else "the game has one mean for all"
        return [f"{found}; {chosen}, as asked."]
    return [f"{found}; {'agents have means of their own' if own else 'the game has one for all'}."]


def _cells_said(log: Log, own: bool) -> list[str]:
    empty = int(np.count_nonzero(log.counts == 0))
    if not empty or not own:
        return []
    return [
        f"{empty:,} of {log.counts.size:,} pairs of agent and arm have no rows; there the arm pays as it does for "
        "the other agents together, which is an assumption."
    ]


class _Cell(NamedTuple):
    values: list[float]
    counts: list[int]


class _Pays:
    """What arms pay, for all agents together and for each: as game files have it."""

    def __init__(self, log: Log, own: bool) -> None:
        self.binary, self.arms = log.binary, len(log.arms)
        together = log.cells.group_by("arm", "reward").agg(pl.col("count").sum())
        cells = together.with_columns(agent=pl.lit(-1, pl.Int64)).select(log.cells.columns)
        if own:
            cells = pl.concat([cells, log.cells])
        many = cells.select("agent", "arm").n_unique()
        points = max(20, min(MOST_POINTS, ALL_POINTS // many))
        self.cells: dict[tuple[int, int], _Cell] = {}
        for key, cell in compact(cells, points).partition_by("agent", "arm", as_dict=True).items():
            self.cells[key] = _Cell(cell["reward"].to_list(), cell["count"].to_list())

    def of(self, agent: int | None, arm: int) -> dict[str, Any]:
        """Return the mean or the reward of an arm, for one agent or for all."""
        cell = self.cells[-1 if agent is None else agent, arm]
        if self.binary:
            return {"mean": _mean(cell)}
        if len(cell.values) == 1:
            return {"reward": {"kind": "constant", "value": cell.values[0]}}
        return {"reward": {"kind": "empirical", "sample": cell.values, "counts": cell.counts}}

    def row(self, agent: int, seen: Any) -> dict[str, Any]:
        """Return what the arms pay one agent; those that it never pulled pay as for all."""
        cells = [self.of(agent if seen[arm] else None, arm) for arm in range(self.arms)]
        key = "mean" if self.binary else "reward"
        return {f"{key}s": [cell[key] for cell in cells]}


def _mean(cell: _Cell) -> float:
    paid = dict(zip(cell.values, cell.counts, strict=True))
    return paid.get(1.0, 0) / sum(cell.counts)


def compact(cells: pl.DataFrame, points: int) -> pl.DataFrame:
    """Return the cells with at most so many values each; the mean of each cell stays what it is.

    Values of a cell that has more are grouped by rank, about as many rewards in each group, and each group becomes
    its mean. What varies within a group is lost.
    """
    by = ["agent", "arm"]
    rank = (pl.col("count").cum_sum() - 1).over(by) * points // pl.col("count").sum().over(by)
    crowded = pl.len().over(by) > points
    group = pl.when(crowded).then(rank).otherwise(pl.int_range(pl.len()).over(by))
    paid = (pl.col("reward") * pl.col("count")).sum() / pl.col("count").sum()
    alone = pl.when(pl.len() == 1).then(pl.col("reward").first()).otherwise(paid)
    return (
        cells.sort(*by, "reward")
        .with_columns(group=group)
        .group_by(*by, "group")
        .agg(alone.clip(0.0, 1.0).alias("reward"), pl.col("count").sum())
        .sort(*by, "group")
        .select("agent", "arm", "reward", "count")
    )


# --- TOML -----------------------------------------------------------------------------------------------------


def _unit(unit: Unit) -> dict[str, Any]:
    return {"worst": unit.worst, "best": unit.best} | ({"name": unit.name} if unit.name else {})


def _top(document: Mapping[str, Any]) -> list[str]:
    """Return the lines of a game file: plain keys first, then tables."""
    lines = [f"{key} = {_value(value)}" for key, value in document.items() if not isinstance(value, list | dict)]
    for key, value in document.items():
        for table in value if isinstance(value, list) else [value]:
            if isinstance(table, dict):
                lines += ["", f"[[{key}]]" if isinstance(value, list) else f"[{key}]"]
                lines += [f"{name} = {_value(inner)}" for name, inner in table.items()]
    return lines


def _value(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_value(inner)}' for key, inner in value.items())} }}"
    return repr(value)


def _text(text: str) -> str:
    """Return a TOML string: one of JSON, apart from a character that JSON need not escape."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

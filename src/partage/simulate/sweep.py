"""`sweep`: play many games, on threads or machines, and keep the mean and standard error of every figure."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from partage.checks import count
from partage.errors import InputError
from partage.game import Game
from partage.rules.rule import Rule
from partage.settle import Settlement
from partage.simulate.batch import Batch, Sums
from partage.simulate.chunk import Task
from partage.simulate.estimate import Estimate
from partage.simulate.fold import COLUMNS
from partage.simulate.parallel import Chunk, compile_rule, workers
from partage.simulate.play import new_task

if TYPE_CHECKING:
    import polars as pl

RUNS = 1000  # at most, of one game in one chunk
WORK = 2e7  # expected of a chunk, in broadcasts: a few tenths of a second
CHUNKS = 64  # at least, if there are so many games, so that no worker waits for long at the end


class SweepProgress(NamedTuple):
    """How many games are finished, left to play, and failed."""

    done: int
    left: int
    failed: int


@dataclass(frozen=True)
class Sweep:
    """The figures of many games.

    Attributes
    ----------
    games, rule, settlement, runs, seed
        What was played.
    seconds
        How long it took.
    sums
        Sums over the runs of each game.
    """

    games: Sequence[Game]
    rule: Rule
    settlement: Settlement
    runs: int
    seed: int
    seconds: float
    sums: Sequence[Sums] = field(repr=False)

    def __len__(self) -> int:
        return len(self.games)

    def __getitem__(self, place: int) -> dict[str, Estimate]:
        """Return the figures of a game that apply to it; none if it failed."""
        one = self.sums[place]
        return {
            name: _estimate(one, column)
            for column, name in enumerate(COLUMNS)
            if one.error is None and not math.isnan(one.means[column])
        }

    @property
    def errors(self) -> dict[int, str]:
        """Why games could not be played, by their place."""
        return {place: one.error for place, one in enumerate(self.sums) if one.error is not None}

    def frame(self) -> "pl.DataFrame":
        """Return a Polars data frame: one row per game, with the mean and the standard error of each figure."""
        import polars as pl

        rows: list[dict[str, Any]] = []
        for place, game in enumerate(self.games):
            row: dict[str, Any] = {"game": place, "agents": game.agents, "arms": len(game.arms)}
            row |= {"horizon": game.horizon, "error": self.sums[place].error}
            found = self[place]
            for name in COLUMNS:
                estimate = found.get(name, Estimate(math.nan, None))
                row[name] = None if math.isnan(estimate.mean) else estimate.mean
                row[f"{name}_stderr"] = estimate.stderr
            rows.append(row)
        figures = {each: pl.Float64 for name in COLUMNS for each in (name, f"{name}_stderr")}
        return pl.DataFrame(rows, schema_overrides={"error": pl.String, **figures}, infer_schema_length=None)


def sweep(
    games: Iterable[Game],
    rule: Rule,
    *,
    runs: int = 100,
    seed: int = 0,
    settlement: str = "default",
    fee: float = 0.0,
    alone: str | None = None,
    coverage: float | None = None,
    prepaid: float | None = None,
    underwriting: float | None = None,
    broadcast_price: float = 0.0,
    jobs: int | None = None,
    on: str = "threads",
    progress: Callable[[SweepProgress], None] | bool = False,
) -> Sweep:
    """Play many games by one rule, and return the mean and standard error of every figure of each.

    The figures of runs are summed up where they are played, so only sums travel. A game that fails does not stop the
    others: `Sweep.errors` says why. Learners alone are not played; sweep over them with their own rule.

    Parameters
    ----------
    games
        The games. Run number r of every game has the same seed.
    rule, runs, seed, settlement, fee, alone, coverage, prepaid, underwriting, broadcast_price, jobs, on
        As for `partage.play`. If a worker of a cluster is lost, what it played is played again, and the figures are
        the same, bit for bit.
    progress
        True shows a progress bar on standard error, with the games that are done, left and failed. A function is
        called with a `SweepProgress` whenever some games are finished.

    Raises
    ------
    InputError
        If an argument is not allowed.
    SettlementError
        If the settlement is not defined for the rule.

    >>> from partage import BalancedETC, Game, Sharing, bernoulli, sweep
    >>> games = [Game(bernoulli([0.9, 0.9 - gap]), Sharing.round_robin(4, 2), 1000) for gap in (0.2, 0.4)]
    >>> found = sweep(games, BalancedETC(), runs=10)
    >>> found[0]["broadcasts"].mean > found[1]["broadcasts"].mean
    True
    """
    if not isinstance(games, Iterable):
        raise InputError(f"The games are {games!r}; they must be a list of partage.Game.")
    games, runs = tuple(games), count("The number of runs", runs)
    if not games:
        raise InputError("There are no games; a sweep needs at least one.")
    if not (callable(progress) or isinstance(progress, bool)):
        raise InputError(f"The progress is {progress!r}; it must be True, False or a function.")
    terms = (fee, alone, coverage, broadcast_price, prepaid, underwriting)
    tasks = [new_task(game, rule, settlement, seed, (), *terms) for game in games]
    if progress is True:
        from partage.simulate.progress import sweep_bar

        with sweep_bar() as shown:
            return _swept(tasks, runs, on, jobs, shown)
    return _swept(tasks, runs, on, jobs, progress or (lambda _: None))


def _swept(
    tasks: Sequence[Task], runs: int, on: str, jobs: int | None, progress: Callable[[SweepProgress], None]
) -> Sweep:
    """Play all tasks, and put the sums of each together in the order of its runs."""
    batches = _batches(tasks, runs)
    parts: list[dict[int, Sums]] = [{} for _ in tasks]
    pieces, done, failed = math.ceil(runs / RUNS), 0, 0
    with workers(on, jobs) as spread:
        for task in {(task.game.random, task.game.uneven): task for task in tasks}.values():
            compile_rule(task)
        progress(SweepProgress(0, len(tasks), 0))
        started = time.perf_counter()
        for part in spread([chunk for _, chunk in batches]):
            first, chunk = batches[part.place]
            for place, sums in enumerate(part.folded, first):
                parts[place][chunk.first] = sums
                if len(parts[place]) == pieces:
                    done += 1
                    failed += any(one.error is not None for one in parts[place].values())
            progress(SweepProgress(done - failed, len(tasks) - done, failed))
        seconds = time.perf_counter() - started
    joined = [_joined([each[first] for first in sorted(each)]) for each in parts]
    one = tasks[0]
    return Sweep([task.game for task in tasks], one.rule, one.settlement, runs, one.seed, seconds, joined)


def _batches(tasks: Sequence[Task], runs: int) -> list[tuple[int, Chunk]]:
    """Return chunks of neighbouring games, each with the place of its first game.

    The runs of a game are cut by their number alone, so sums do not depend on the games beside it.
    """
    found, most = [], math.ceil(len(tasks) / CHUNKS)
    for first in range(0, runs, RUNS):
        last, start, work = min(first + RUNS, runs), 0, 0.0
        for place, task in enumerate(tasks):
            work += Chunk(task, first, last).expected
            if work >= WORK or place + 1 - start >= most or place + 1 == len(tasks):
                found.append((start, Chunk(Batch(tuple(tasks[start : place + 1])), first, last)))
                start, work = place + 1, 0.0
    return found


def _joined(parts: Sequence[Sums]) -> Sums:
    found = parts[0]
    for part in parts[1:]:
        found = found.with_more(part)
    return found


def _estimate(sums: Sums, column: int) -> Estimate:
    mean, squares = float(sums.means[column]), float(sums.squares[column])
    return Estimate(mean, math.sqrt(squares / (sums.runs - 1) / sums.runs) if sums.runs > 1 else None)

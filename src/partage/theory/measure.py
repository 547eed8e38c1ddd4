"""Play a game, and measure everything that the paper's promises are about."""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.arms import RandomBernoulli
from partage.checks import count
from partage.engine import game_of_run, has_kernel, play_runs
from partage.engine.rewards import run_keys
from partage.engine.tally import GameTable, game_table
from partage.game import Game
from partage.rules import TwoUCB
from partage.rules.rule import Rule
from partage.simulate.chunk import play_chunk
from partage.simulate.fold import FIGURES, Folded
from partage.simulate.play import BASELINE_UP_TO, checked_game, checked_rule, new_task, play
from partage.simulate.result import Estimate, Result
from partage.tape import TAPE
from partage.theory.event_checks import check_exploration, event_held

CHECKED_BROADCASTS = 3 * 10**8  # exploration is checked in as many runs as this allows, and in at least one
RUNS_AT_OTHER_HORIZONS = 100

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Progress = Callable[[int, int], None]


class AtHorizon(NamedTuple):
    """Mean broadcasts and mean overall regret at one horizon."""

    horizon: int
    broadcasts: float
    regret: float


@dataclass(frozen=True, eq=False)
class Alone:
    """Runs of one agent that plays 2-UCB alone: pulls by run and arm, and whether E' held."""

    gaps: Floats
    pulls: Ints
    event_held: Bools

    @property
    def regret(self) -> Estimate:
        """The paper's R_UCB."""
        return Estimate.of(np.sum(self.pulls * self.gaps, axis=1))


@dataclass(frozen=True, eq=False)
class Measurements:
    """What was measured in some runs of a game. Arrays have one row per run.

    Attributes
    ----------
    game, rule, runs
        What was played.
    balance
        The balance of Balanced-ETC; None for any other rule, for which only `alone` and `horizons` are measured.
    gaps, broadcasts, eliminated
        By run and arm.
    event_held
        Whether the good event E held.
    overall, commit
        Overall regret, and the part of commit pulls.
    incentive
        Mean and standard error of each agent's incentive regret over the runs in which E held; None without the
        paper's settlement.
    highest_incentive
        Incentive regret of the worst agent.
    explore_ratio
        The least of (N_i(t) + 1) N / t, for the runs in which exploration was checked: see `check_exploration`.
    alone
        2-UCB alone; None if it was not played because the runs are too long.
    horizons
        Broadcasts and regret at this horizon and at shorter ones.
    """

    game: Game
    rule: str
    balance: float | None
    runs: int
    gaps: Floats
    broadcasts: Ints
    eliminated: Bools
    event_held: Bools
    overall: Floats
    commit: Floats
    incentive: tuple[Floats, Floats] | None = None
    highest_incentive: Floats | None = None
    explore_ratio: Floats | None = None
    alone: Alone | None = None
    horizons: tuple[AtHorizon, ...] = ()

    @property
    def all_shared(self) -> bool:
        """Whether every arm has a sharer."""
        return bool(self.game.sharing.sharers().all())

    @property
    def same_gaps(self) -> bool:
        """Whether the gaps are the same in every run."""
        return not any(isinstance(arm, RandomBernoulli) for arm in self.game.arms)


def measure(
    game: Game,
    rule: Rule,
    *,
    runs: int,
    seed: int,
    jobs: int | None = None,
    progress: Progress | None = None,
    only_event: bool = False,
) -> Measurements:
    """Play a game and measure everything that the promises are about; with `only_event`, only what E needs."""
    game, rule = checked_game(game), checked_rule(rule)
    runs = count("The number of runs", runs)
    seed = count("The seed", seed, at_least=0)
    jobs = (os.cpu_count() or 1) if jobs is None else count("The number of jobs", jobs)
    report = progress or (lambda done, total: None)
    drawn = _Drawn.of(game, rule, runs, seed, jobs)
    balance = _balance(rule)
    measured = Measurements(
        game=game if game.random else drawn.games[0],
        rule=rule.name,
        balance=balance,
        runs=runs,
        gaps=drawn.gaps,
        broadcasts=np.zeros((runs, len(game.arms)), np.int64),
        eliminated=np.zeros((runs, len(game.arms)), np.bool_),
        event_held=np.ones(runs, np.bool_),
        overall=np.zeros(runs),
        commit=np.zeros(runs),
    )
    if balance is not None:
        result = play(
            game,
            rule,
            runs=runs,
            seed=seed,
            baseline=False,
            jobs=jobs,
            progress=lambda done, total: report(300 * done // total, 1000),
        )
        measured = _with_balanced_etc(measured, drawn, result, balance, only_event)
        if only_event:
            return measured
    report(500, 1000)
    measured = replace(measured, alone=_alone(game, drawn))
    report(900, 1000)
    measured = replace(measured, horizons=_horizons(measured, game, rule, seed, jobs))
    report(999, 1000)
    return measured


def _balance(rule: Rule) -> float | None:
    """Return the balance of a rule that follows the paper's Algorithm 1; None for any other rule."""
    facts: Any = rule
    return float(facts.balance) if has_kernel(rule) and facts.kernel == "balanced_etc" else None


# --- the games of all runs ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Drawn:
    """The games of all runs: one for all, or one each if something in the game is random."""

    games: list[Game]
    tables: list[GameTable]
    keys: NDArray[np.uint64]
    gaps: Floats
    jobs: int

    @classmethod
    def of(cls, game: Game, rule: Rule, runs: int, seed: int, jobs: int) -> "_Drawn":
        keys = _keys(seed, runs)
        games = [game_of_run(game, rule, key) for key in (keys if game.random else keys[:1])]
        gaps = np.broadcast_to(np.array([each.gaps for each in games]), (runs, len(game.arms)))
        return cls(games, [game_table(each) for each in games], keys, gaps, jobs)

    def spread(self, runs: int, work: Callable[[int, slice], None]) -> None:
        """Call `work` with a game and its runs, for the first `runs` runs, on several threads."""
        import joblib

        joblib.Parallel(n_jobs=self.jobs, backend="threading")(
            joblib.delayed(work)(game, rows) for game, rows in self._groups(runs)
        )

    def _groups(self, runs: int) -> Iterator[tuple[int, slice]]:
        one_each = len(self.games) > 1
        size = 1 if one_each else max(1, min(256, math.ceil(runs / 8)))
        for first in range(0, runs, size):
            yield first if one_each else 0, slice(first, min(first + size, runs))

    def event_held(self, counts: Ints, stream: int) -> Bools:
        """Return in which runs the mean of every arm stayed as close to the truth as E requires."""
        held = np.zeros(len(counts), np.bool_)
        log_horizon = math.log(self.games[0].horizon)

        def check(game: int, rows: slice) -> None:
            rewards, means = self.tables[game].rewards, self.games[game].means
            event_held(rewards, means, self.keys[rows], counts[rows], stream, log_horizon, held[rows])

        self.spread(len(counts), check)
        return held


@lru_cache(maxsize=2)
def _keys(seed: int, runs: int) -> NDArray[np.uint64]:
    """Return the keys of all runs. The small games of one audit have them in common."""
    return run_keys(seed, 0, runs)


# --- Balanced-ETC ---------------------------------------------------------------------------------------------


def _with_balanced_etc(
    measured: Measurements, drawn: _Drawn, result: Result, balance: float, only_event: bool
) -> Measurements:
    """Add what is measured in the runs of Balanced-ETC."""
    folded = result.folded
    figures = {name: folded.figures[:, place] for place, name in enumerate(FIGURES)}
    measured = replace(
        measured,
        broadcasts=folded.broadcasts,
        eliminated=folded.eliminated_step >= 0,
        event_held=drawn.event_held(folded.broadcasts, TAPE),
        overall=figures["overall_regret"],
        commit=figures["commit_regret"],
    )
    if only_event:
        return measured
    if result.settled:
        measured = replace(
            measured,
            incentive=_incentive(result, measured.event_held),
            highest_incentive=figures["max_incentive_regret"],
        )
    if all(table.public.all() for table in drawn.tables):
        checked = max(1, min(result.runs, int(CHECKED_BROADCASTS / max(1.0, result.broadcasts.mean))))
        measured = replace(measured, explore_ratio=_explore_ratio(drawn, balance, folded, checked))
    return measured


def _incentive(result: Result, held: Bools) -> tuple[Floats, Floats]:
    """Return mean and standard error of each agent's incentive regret over the runs in which E held.

    Sums over all runs are known. The few runs in which E failed are played again and subtracted.
    """
    total, squares = result.folded.incentive.copy(), result.folded.incentive_squares.copy()
    task = new_task(result.game, result.rule, result.settlement.name, result.seed)
    for run in np.flatnonzero(~held):
        one = play_chunk(task, int(run), int(run) + 1)
        total -= one.incentive
        squares -= one.incentive_squares
    runs = int(held.sum())
    if runs == 0:
        return np.full(len(total), np.nan), np.full(len(total), np.nan)
    mean = total / runs
    variance = np.maximum(0.0, squares - runs * mean**2) / max(1, runs - 1)
    return mean, np.sqrt(variance / runs) if runs > 1 else np.full(len(mean), np.nan)


def _explore_ratio(drawn: _Drawn, balance: float, folded: Folded, runs: int) -> Floats:
    """Return how close each of the first runs came to the bound of `lemma_number_explore`."""
    counts, ratio = np.zeros((runs, folded.broadcasts.shape[1]), np.int64), np.zeros(runs)
    step, agent = folded.eliminated_step, folded.eliminated_agent

    def check(game: int, rows: slice) -> None:
        table, keys = drawn.tables[game], drawn.keys[rows]
        check_exploration(table, balance, keys, step[rows], agent[rows], counts[rows], ratio[rows])

    drawn.spread(runs, check)
    if not np.array_equal(counts, folded.broadcasts[:runs]):
        raise AssertionError("The check of exploration counted different broadcasts from the play.")
    return ratio


# --- 2-UCB alone, and other horizons ---------------------------------------------------------------------------


def _alone(game: Game, drawn: _Drawn) -> Alone | None:
    """Play 2-UCB alone, unless the runs are too long."""
    runs = min(len(drawn.keys), BASELINE_UP_TO // game.horizon)
    if runs < min(len(drawn.keys), 2):
        return None
    pulls = np.zeros((runs, len(game.arms)), np.int64)

    def pull(_: int, rows: slice) -> None:
        played = play_runs(game.alone(), TwoUCB(), drawn.keys[rows])
        pulls[rows] = [run.tally().commit[0] for run in played]

    drawn.spread(runs, pull)
    return Alone(drawn.gaps[:runs], pulls, drawn.event_held(pulls, 1))


def _horizons(measured: Measurements, game: Game, rule: Rule, seed: int, jobs: int) -> tuple[AtHorizon, ...]:
    """Return broadcasts and regret at the game's horizon, a tenth and a hundredth of it."""
    found = []
    for horizon in sorted({max(2, game.horizon // scale) for scale in (100, 10, 1)}):
        if horizon == game.horizon and measured.balance is not None:
            broadcasts, regret = measured.broadcasts.sum(axis=1).mean(), measured.overall.mean()
        else:
            runs = min(measured.runs, RUNS_AT_OTHER_HORIZONS)
            at = replace(game, horizon=horizon)
            result = play(at, rule, runs=runs, seed=seed, settlement="none", baseline=False, jobs=jobs)
            broadcasts, regret = result.broadcasts.mean, result.overall_regret.mean
        found.append(AtHorizon(horizon, float(broadcasts), float(regret)))
    return tuple(found)

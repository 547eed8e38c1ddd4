"""Playing a game, and noting all that the paper's promises speak of."""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray

from partage.arms import RandomBernoulli
from partage.checks import count
from partage.engine import game_of_run, play_runs
from partage.engine import rewards as tape
from partage.engine.tally import GameTable, game_table
from partage.game import Game
from partage.rules import BalancedETC, FullSharing, TwoUCB
from partage.rules.rule import Rule
from partage.settle.paper import balance_factor, paper_charge, paper_rates
from partage.simulate.chunk import play_run
from partage.simulate.play import BASELINE_UP_TO, play
from partage.simulate.result import Estimate
from partage.theory.event_checks import explore_watch, good_runs

WATCHED_BROADCASTS = 3 * 10**8  # the explore watch looks at as many runs as this allows, and at least at one
INFORMATION_RUNS = 100  # at horizons other than the game's

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Progress = Callable[[int, int], None]


class Shown(NamedTuple):
    """How much was shared, and lost, at one horizon."""

    horizon: int
    broadcasts: float
    regret: float


@dataclass(frozen=True, eq=False)
class Alone:
    """What was seen of one agent who plays 2-UCB alone: pulls by run and arm, and whether E' held."""

    gaps: Floats
    pulls: Ints
    good: Bools

    @property
    def regret(self) -> Estimate:
        """The paper's R_UCB."""
        return Estimate.of(np.sum(self.pulls * self.gaps, axis=1))


@dataclass(frozen=True, eq=False)
class Seen:
    """What was seen of some runs of a game, a row a run.

    `balance` is None for a rule that is not Balanced-ETC, of which only `information` and `alone` are looked at.
    `good` says whether E held. `incentive` holds the mean and standard error of each agent's incentive regret over
    the runs in which E held; `highest_incentive` that of the worst agent of each run. `tightest` is what
    `explore_watch` saw of the runs it looked at.
    """

    game: Game
    rule: str
    balance: float | None
    runs: int
    gaps: Floats
    broadcasts: Ints
    eliminated: Bools
    good: Bools
    overall: Floats
    commit: Floats
    incentive: tuple[Floats, Floats] | None
    highest_incentive: Floats
    tightest: Floats | None
    alone: Alone | None
    information: tuple[Shown, ...]

    @property
    def all_shared(self) -> bool:
        """Whether every arm has a sharer."""
        return bool(self.game.sharing.sharers().all())

    @property
    def fixed(self) -> bool:
        """Whether the gaps are the same in every run."""
        return not any(isinstance(arm, RandomBernoulli) for arm in self.game.arms)


def observe(
    game: Game,
    rule: Rule,
    runs: int,
    seed: int,
    jobs: int | None = None,
    progress: Progress | None = None,
    only_event: bool = False,
) -> Seen:
    """Play a game and note all that the promises speak of; `only_event` notes no more than E needs."""
    runs = count("The number of runs", runs)
    seed = count("The seed", seed, at_least=0)
    jobs = (os.cpu_count() or 1) if jobs is None else count("The number of jobs", jobs)
    tell = progress or (lambda done, of: None)
    balance = rule.balance if isinstance(rule, BalancedETC) and type(rule) in (BalancedETC, FullSharing) else None
    keys = _keys(seed, runs)
    played = [game_of_run(game, rule, key) for key in keys] if game.random else [game_of_run(game, rule, keys[0])]
    arms, shape = len(game.arms), (runs, len(game.arms))
    gaps = np.broadcast_to(np.array([drawn.gaps for drawn in played]), shape)
    tables = [game_table(drawn) for drawn in played]
    means = [drawn.means for drawn in played]
    seen = Seen(
        game=played[0] if not game.random else game,
        rule=rule.name,
        balance=balance,
        runs=runs,
        gaps=gaps,
        broadcasts=np.zeros(shape, np.int64),
        eliminated=np.zeros(shape, np.bool_),
        good=np.ones(runs, np.bool_),
        overall=np.zeros(runs),
        commit=np.zeros(runs),
        incentive=None,
        highest_incentive=np.full(runs, np.nan),
        tightest=None,
        alone=None,
        information=(),
    )
    if balance is not None:
        result = play(
            game, rule, runs, seed, baseline=False, jobs=jobs, progress=lambda d, of: tell(300 * d // of, 1000)
        )
        folded, figures = result.folded, result.frame()
        good = _good(tables, means, keys, folded.broadcasts, int(tape.TAPE), game.horizon, jobs)
        seen = replace(
            seen,
            broadcasts=folded.broadcasts,
            eliminated=folded.eliminated_step >= 0,
            good=good,
            overall=figures["overall_regret"].to_numpy(),
            commit=figures["commit_regret"].to_numpy(),
        )
        if only_event:
            return seen
        if result.settled:
            sums = folded.incentive.copy(), folded.incentive_squares.copy()
            seen = replace(
                seen,
                incentive=_incentive(game, rule, balance, seed, good, gaps, sums),
                highest_incentive=figures["max_incentive_regret"].to_numpy().astype(np.float64),
            )
        if all(table.public.all() for table in tables):
            watched = max(1, min(runs, int(WATCHED_BROADCASTS / max(1.0, result.broadcasts.mean))))
            moments = folded.eliminated_step, folded.eliminated_agent
            tightest = _tightest(tables, balance, keys[:watched], moments, folded.broadcasts, jobs)
            seen = replace(seen, tightest=tightest)
    tell(500, 1000)

    pulled = min(runs, BASELINE_UP_TO // game.horizon)
    if pulled >= min(runs, 2):
        pulls = np.zeros((pulled, arms), np.int64)

        def pull_alone(_: GameTable, rows: slice) -> None:
            runs = play_runs(game.alone(), TwoUCB(), keys[rows])
            pulls[rows] = [run.outcome.commit[:, 0].copy() for run in runs]

        _spread(_groups(tables, pulled), pull_alone, jobs)
        tell(700, 1000)
        good = _good(tables, means, keys[:pulled], pulls, 1, game.horizon, jobs)
        seen = replace(seen, alone=Alone(gaps[:pulled], pulls, good))
    tell(900, 1000)

    horizons = sorted({max(2, game.horizon // scale) for scale in (100, 10, 1)})
    shown = []
    for horizon in horizons:
        if horizon == game.horizon and balance is not None:
            broadcasts, regret = seen.broadcasts.sum(axis=1).mean(), seen.overall.mean()
        else:
            at = replace(game, horizon=horizon)
            shorter = play(at, rule, min(runs, INFORMATION_RUNS), seed, "none", baseline=False, jobs=jobs)
            broadcasts, regret = shorter.broadcasts.mean, shorter.overall_regret.mean
        shown.append(Shown(horizon, float(broadcasts), float(regret)))
    tell(999, 1000)
    return replace(seen, information=tuple(shown))


@lru_cache(maxsize=2)
def _keys(seed: int, runs: int) -> NDArray[np.uint64]:
    """The keys of all runs: the small games of one audit share theirs."""
    return tape.run_keys(seed, 0, runs)


def _groups(tables: list[GameTable], runs: int) -> Iterator[tuple[GameTable, slice]]:
    """Pair runs with their game: one game for many runs, or one each."""
    size = max(1, min(256, math.ceil(runs / 8))) if len(tables) == 1 else 1
    for first in range(0, runs, size):
        yield tables[first if len(tables) > 1 else 0], slice(first, min(first + size, runs))


def _spread(groups: Iterator[tuple[GameTable, slice]], work: Callable[[GameTable, slice], None], jobs: int) -> None:
    joblib.Parallel(n_jobs=jobs, backend="threading")(joblib.delayed(work)(table, rows) for table, rows in groups)


def _good(
    tables: list[GameTable],
    means: list[Floats],
    keys: NDArray[np.uint64],
    counts: Ints,
    stream: int,
    horizon: int,
    jobs: int,
) -> Bools:
    """In which runs every arm's mean stayed as close to the truth as E asks, at every count up to the last."""
    good = np.zeros(len(keys), np.bool_)
    log_horizon = math.log(horizon)

    def work(table: GameTable, rows: slice) -> None:
        mean = means[rows.start if len(means) > 1 else 0]
        good_runs(table.rewards, mean, keys[rows], counts[rows], stream, log_horizon, good[rows])

    _spread(_groups(tables, len(keys)), work, jobs)
    return good


def _tightest(
    tables: list[GameTable],
    balance: float,
    keys: NDArray[np.uint64],
    moments: tuple[Ints, Ints],
    broadcasts: Ints,
    jobs: int,
) -> Floats:
    """How close each run came to the bound of `lemma_number_explore`."""
    counts, tightest = np.zeros((len(keys), broadcasts.shape[1]), np.int64), np.zeros(len(keys))

    def work(table: GameTable, rows: slice) -> None:
        step, agent = moments
        explore_watch(table, balance, keys[rows], step[rows], agent[rows], counts[rows], tightest[rows])

    _spread(_groups(tables, len(keys)), work, jobs)
    if not np.array_equal(counts, broadcasts[: len(keys)]):
        raise AssertionError("The explore watch counted other broadcasts than the play did.")
    return tightest


def _incentive(
    game: Game, rule: Rule, balance: float, seed: int, good: Bools, gaps: Floats, sums: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Mean and standard error of each agent's incentive regret over the runs in which E held.

    Sums over all runs are at hand; the few runs in which E failed are played again and taken out of them.
    """
    total, squares = sums
    log_horizon, factor = math.log(game.horizon), balance_factor(balance)
    for run in np.flatnonzero(~good):
        tally = play_run(game, rule, seed, int(run))
        public = tally.active | (tally.eliminated_step >= 0)
        rates = np.zeros(len(gaps[run]))
        paper_rates(tally.broadcasts, tally.active, public, log_horizon, factor, rates)
        charge = paper_charge(tally.broadcasts, tally.active, public, log_horizon, factor)
        incentive = (tally.explore + tally.commit) @ (gaps[run] - rates) + charge
        total -= incentive
        squares -= incentive**2
    runs = int(good.sum())
    if runs == 0:
        return np.full(len(total), np.nan), np.full(len(total), np.nan)
    mean = total / runs
    variance = np.maximum(0.0, squares - runs * mean**2) / max(1, runs - 1)
    return mean, np.sqrt(variance / runs) if runs > 1 else np.full(len(mean), np.nan)

"""`play`: many runs of a game, spread over threads, folded as they finish."""

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence

import joblib
import numpy as np

from partage.arms import Bernoulli
from partage.engine.reference import Rule
from partage.figures.chunk import Task, is_compiled, play_chunk
from partage.figures.fold import Folded, join
from partage.figures.result import Estimate, Result
from partage.game import Game
from partage.rules import TwoUCB
from partage.settle import settlement_for
from partage.sharing import Sharing, count

BASELINE_UP_TO = 10**9  # runs times horizon: what the 2-UCB baseline plays without being asked


def play(
    game: Game,
    rule: Rule,
    runs: int = 100,
    seed: int = 0,
    settlement: str = "default",
    baseline: bool | None = None,
    checkpoints: Sequence[int] = (),
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Play a game many times and return its figures of merit.

    Parameters
    ----------
    game
        What is played. Random parts of it are drawn anew in each run.
    rule
        How agents decide, e.g. `BalancedETC()`. A rule of your own is played by the reference, pull by pull.
    runs
        How many independent runs.
    seed
        The same seed gives the same result, however many threads play.
    settlement
        "paper", "none", or "default": the paper's where it is defined.
    baseline
        Whether to play 2-UCB alone too, against which individual rationality is judged. By default it is played
        if runs times horizon is at most 10^9.
    checkpoints
        Steps up to which the overall regret is kept in `Result.curve`.
    jobs
        Threads; all cores by default.
    progress
        Called with (runs finished, runs in all).

    >>> from partage import BalancedETC, Game, Sharing, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.8, 0.7]), Sharing.round_robin(agents=30, arms=3), horizon=10**5)
    >>> result = play(game, BalancedETC(balance=1), runs=20, seed=0)
    >>> result.overall_regret.mean < 30 * result.two_ucb_regret.mean
    True
    """
    runs = count("The number of runs", runs)
    seed = count("The seed", seed, at_least=0)
    jobs = (os.cpu_count() or 1) if jobs is None else count("The number of jobs", jobs)
    steps = np.array(sorted(count("A checkpoint", step) for step in checkpoints), dtype=np.int64)
    settled = settlement_for(settlement, rule)
    task = Task(game, rule, settled, seed, steps)
    if is_compiled(rule):
        compile_rule(task)
    started = time.perf_counter()
    folded = _spread(task, runs, jobs, progress)
    seconds = time.perf_counter() - started
    if baseline or (baseline is None and runs * game.horizon <= BASELINE_UP_TO):
        two_ucb = two_ucb_regret(game, runs, seed, jobs)
    else:
        two_ucb = None
    return Result(game, rule, settled, runs, seed, seconds, folded, steps, two_ucb)


def two_ucb_regret(game: Game, runs: int, seed: int, jobs: int) -> Estimate:
    """Return the regret of one agent who plays 2-UCB alone on the arms of this game."""
    alone = game.alone()
    task = Task(alone, TwoUCB(), settlement_for("none", TwoUCB()), seed, np.zeros(0, np.int64))
    compile_rule(task)
    return Estimate.of(_spread(task, runs, jobs, None).figures[:, 0])


def compile_rule(task: Task) -> None:
    """Compile what a task needs, on a game of one pull or so, to keep that out of the time taken."""
    hidden = isinstance(task.game.sharing, Sharing) and not task.game.sharing.sharers().all()
    shares: list[list[int]] = [[]] if hidden else [[0]]
    tiny = Game([Bernoulli(0.5)], Sharing.lists(shares, arms=1), horizon=2)
    play_chunk(Task(tiny, task.rule, task.settlement, 0, np.zeros(0, np.int64)), 0, 1)


def chunks(runs: int) -> Iterator[tuple[int, int]]:
    """Cut runs into chunks, by their number alone: sums over runs do not depend on how many threads there are."""
    size = min(64, math.ceil(runs / 32))
    for first in range(0, runs, size):
        yield first, min(first + size, runs)


def _spread(task: Task, runs: int, jobs: int, progress: Callable[[int, int], None] | None) -> Folded:
    """Play all chunks on threads; the engine holds no lock while it plays."""
    parallel = joblib.Parallel(n_jobs=jobs, backend="threading", return_as="generator")
    parts, done = [], 0
    for part in parallel(joblib.delayed(play_chunk)(task, first, last) for first, last in chunks(runs)):
        parts.append(part)
        done += len(part.figures)
        if progress:
            progress(done, runs)
    return join(parts)

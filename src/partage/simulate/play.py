"""`play`: many runs of a game, spread over threads or machines, folded as they finish."""

import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from partage.checks import count
from partage.errors import InputError
from partage.game import Game
from partage.rules import TwoUCB
from partage.rules.rule import Rule
from partage.settle import settlement_for
from partage.simulate.chunk import Task
from partage.simulate.fold import Folded, join
from partage.simulate.parallel import Play, compile_rule, cut, workers
from partage.simulate.result import Estimate, Result

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
    on: str = "threads",
    fee: float = 0.0,
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
        The same seed gives the same result, wherever and by however many it is played.
    settlement
        "paper", "equal-share", "equal-share-expected", "none", or "default": the paper's where it is defined.
    baseline
        Whether to play 2-UCB alone too, against which individual rationality is judged. By default it is played
        if runs times horizon is at most 10^9.
    checkpoints
        Steps up to which the overall regret is kept in `Result.curve`.
    jobs
        Threads or processes; all cores by default.
    progress
        Called with (runs finished, runs in all).
    on
        "threads", "processes", "dask", "dask=ADDRESS", "ray" or "ray=ADDRESS": the same figures, bit for bit.
    fee
        What the controller of an equal-share settlement takes on top, as a part of all compensations.

    >>> from partage import BalancedETC, Game, Sharing, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.8, 0.7]), Sharing.round_robin(agents=30, arms=3), horizon=10**5)
    >>> result = play(game, BalancedETC(balance=1), runs=20, seed=0)
    >>> result.overall_regret.mean < 30 * result.two_ucb_regret.mean
    True
    """
    runs = count("The number of runs", runs)
    task = new_task(game, rule, settlement, seed, checkpoints, fee)
    compile_rule(task)
    with workers(on, jobs) as spread:
        started = time.perf_counter()
        folded = _folded(task, runs, spread, progress)
        seconds = time.perf_counter() - started
        two_ucb = None
        if baseline or (baseline is None and runs * game.horizon <= BASELINE_UP_TO):
            alone = alone_task(task)
            compile_rule(alone)
            two_ucb = Estimate.of(_folded(alone, runs, spread, None).figures[:, 0])
    return Result(game, rule, task.settlement, runs, task.seed, seconds, folded, task.checkpoints, two_ucb)


def new_task(
    game: Game, rule: Rule, settlement: str, seed: int, checkpoints: Sequence[int] = (), fee: float = 0.0
) -> Task:
    """Return what every chunk of one play has in common, once it is checked."""
    seed = count("The seed", seed, at_least=0)
    steps = np.array(sorted(count("A checkpoint", step) for step in checkpoints), dtype=np.int64)
    if len(steps) and steps[-1] > game.horizon:
        raise InputError(f"A checkpoint is {steps[-1]:,}; it must be at most the horizon of {game.horizon:,}.")
    return Task(game, rule, settlement_for(settlement, rule, fee), seed, steps)


def alone_task(task: Task, checkpoints: NDArray[np.int64] | None = None) -> Task:
    """Return the task of one agent who plays 2-UCB alone on the same arms."""
    steps = np.zeros(0, np.int64) if checkpoints is None else checkpoints
    return Task(task.game.alone(), TwoUCB(), settlement_for("none", TwoUCB()), task.seed, steps)


def _folded(task: Task, runs: int, spread: Play, progress: Callable[[int, int], None] | None) -> Folded:
    """Play all chunks of a task and put them together in their order."""
    chunks = cut(task, runs)
    parts: dict[int, Folded] = {}
    done = 0
    for part in spread(chunks):
        parts[part.place] = part.folded
        done += len(part.folded.figures)
        if progress:
            progress(done, runs)
    return join([parts[place] for place in range(len(chunks))])

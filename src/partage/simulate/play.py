"""`play`: play many runs of a game, on threads or machines, and fold each as it finishes."""

import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from partage.checks import count
from partage.errors import InputError
from partage.game import Game
from partage.rules import TwoUCB
from partage.rules.rule import Rule
from partage.settle import settlement_for
from partage.simulate.chunk import Task, checked_game, checked_rule
from partage.simulate.fold import Folded, join
from partage.simulate.parallel import Play, compile_rule, cut, workers
from partage.simulate.result import Estimate, Result

__all__ = ["BASELINE_UP_TO", "alone_task", "checked_game", "checked_rule", "new_task", "play"]

BASELINE_UP_TO = 10**9  # runs times horizon: up to here the 2-UCB baseline is played by default


def play(
    game: Game,
    rule: Rule,
    *,
    runs: int = 100,
    seed: int = 0,
    settlement: str = "default",
    fee: float = 0.0,
    baseline: bool | None = None,
    checkpoints: Sequence[int] = (),
    jobs: int | None = None,
    on: str = "threads",
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Play a game many times and return its figures of merit.

    Parameters
    ----------
    game
        The game. Its random parts are drawn for each run.
    rule
        How agents decide, e.g. `BalancedETC()`. The reference plays a rule of your own, pull by pull.
    runs
        The number of independent runs.
    seed
        The same seed gives the same result, on any number of threads or machines.
    settlement
        "paper", "equal-share", "equal-share-expected", "none", or "default": the paper's if it is defined for the
        rule, otherwise none.
    fee
        What the controller of an equal-share settlement adds to the bill, as a fraction of all compensations.
    baseline
        Whether to play 2-UCB alone too, as the baseline for individual rationality. By default it is played if runs
        times horizon is at most 10^9.
    checkpoints
        Steps up to which the overall regret is recorded, in `Result.curve`.
    jobs
        The number of threads or processes; all cores by default.
    on
        "threads", "processes", "dask", "dask=ADDRESS", "ray" or "ray=ADDRESS". The figures are the same everywhere,
        bit for bit.
    progress
        Called with (runs finished, all runs).

    Raises
    ------
    InputError
        If an argument is not allowed.
    SettlementError
        If the settlement is not defined for the rule.

    Examples
    --------
    >>> from partage import BalancedETC, Game, Sharing, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.8, 0.7]), Sharing.round_robin(agents=30, arms=3), horizon=10**5)
    >>> result = play(game, BalancedETC(balance=1), runs=20, seed=0)
    >>> result.overall_regret.mean < 30 * result.two_ucb_regret.mean
    True
    """
    runs = count("The number of runs", runs)
    if baseline not in (None, True, False):
        raise InputError(f"The baseline is {baseline!r}; it must be True, False or None.")
    if progress is not None and not callable(progress):
        raise InputError(f"The progress is {progress!r}; it must be a function of two numbers.")
    task = new_task(game, rule, settlement, seed, checkpoints, fee)
    with workers(on, jobs) as spread:
        compile_rule(task)
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
    game: Game, rule: Rule, settlement: str, seed: int, checkpoints: Iterable[int] = (), fee: float = 0.0
) -> Task:
    """Check the arguments of a play, and return what all of its chunks have in common."""
    game, rule = checked_game(game), checked_rule(rule)
    seed = count("The seed", seed, at_least=0)
    if not isinstance(checkpoints, Iterable):
        raise InputError(f"The checkpoints are {checkpoints!r}; they must be a list of steps.")
    steps = np.array(sorted(count("A checkpoint", step) for step in checkpoints), dtype=np.int64)
    if len(steps) and steps[-1] > game.horizon:
        raise InputError(f"A checkpoint is {steps[-1]:,}; it must be at most the horizon of {game.horizon:,}.")
    return Task(game, rule, settlement_for(settlement, rule, fee), seed, steps)


def alone_task(task: Task, checkpoints: NDArray[np.int64] | None = None) -> Task:
    """Return the task of one agent that plays 2-UCB alone on the same arms."""
    steps = np.zeros(0, np.int64) if checkpoints is None else checkpoints
    return Task(task.game.alone(), TwoUCB(), settlement_for("none", TwoUCB()), task.seed, steps)


def _folded(task: Task, runs: int, spread: Play, progress: Callable[[int, int], None] | None) -> Folded:
    """Play all chunks of a task, and join them in order."""
    chunks = cut(task, runs)
    parts: dict[int, Folded] = {}
    done = 0
    for part in spread(chunks):
        parts[part.place] = part.folded
        done += len(part.folded.figures)
        if progress:
            progress(done, runs)
    return join([parts[place] for place in range(len(chunks))])

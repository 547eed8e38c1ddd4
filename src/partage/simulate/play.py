"""`play`: play many runs of a game, on threads or machines, and fold each as it finishes."""

import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from partage.checks import count, number_from
from partage.engine import by_reference
from partage.engine.reference import watched
from partage.errors import InputError
from partage.game import Game
from partage.rules import make_rule
from partage.rules.rule import BuiltIn, Rule, is_compiled
from partage.settle import settlement_for
from partage.simulate.bars import LEARNERS, Lone, bars_of, lone_games
from partage.simulate.chunk import Task, checked_game, checked_rule
from partage.simulate.fold import Folded, join
from partage.simulate.parallel import Play, compile_rule, cut, workers
from partage.simulate.result import Estimate, Result

__all__ = [
    "BASELINE_UP_TO",
    "alone_task",
    "checked_game",
    "checked_rule",
    "long_reference_play",
    "new_task",
    "play",
]

BASELINE_UP_TO = 10**9  # runs times horizon: up to here the 2-UCB baseline is played by default
STRONG_UP_TO = 2 * 10**7  # horizon times arms: up to here KL-UCB, IMED and Thompson sampling are played alone
STRONG_RUNS, STRONG_WORK = 100, 10**8  # at most so many runs, and so many runs times horizon times arms

CHECKPOINTS = 30  # at most, and one more: the steps of `usual_checkpoints`

REFERENCE_PULLS, NOTICED = 100_000, 10  # pulls per second of the reference, roughly; seconds that are worth a notice


def play(
    game: Game,
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
    baseline: bool | None = None,
    checkpoints: Sequence[int] | None = None,
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
        "paper", "equal-share", "equal-share-expected", "none", "pool", "dues", or "default": the paper's if it is
        defined for the rule, otherwise none.
    fee
        What the controller of an equal share or a pool adds to the bill, as a fraction of all compensations.
    alone
        The learner alone that agents are compared with: "two-ucb", "kl-ucb", "imed", "thompson", or "best" for the
        one that costs least. An equal share charges nobody more than it costs. The default is "two-ucb" with the
        paper's settlement, otherwise "best".
    coverage
        The probability with which the gaps that an equal share reads from the record hold: from 0.5 to below 1, by
        default 0.99.
    prepaid
        The most that an agent of a pool can be charged, and what everyone pays as dues, in units of reward. These two
        settlements need it; `partage.propose_prepaid` proposes one.
    underwriting
        The most that the controller may lose, in units of reward; compensations are scaled down accordingly. By
        default 0 for a pool, otherwise without a limit.
    broadcast_price
        What a broadcast costs the agent that makes it. It counts as regret, but not in `Result.curve`, and an equal
        share compensates it.
    baseline
        Whether to play learners alone too, as the baseline for individual rationality: 2-UCB, and those that `alone`
        needs. By default 2-UCB is played if runs times horizon is at most 10^9. The others take longer: they are
        played at most 100 times, and only if horizon times arms is at most 2 x 10^7. Where agents differ, there is a
        play for each kind of agent, and their horizons are added up. Where arms change, no learner is played.
    checkpoints
        Steps up to which the overall regret is recorded, in `Result.curve`: that of all pulls up to this time. By
        default about thirty steps up to the last.
    jobs
        The number of threads or processes; all cores by default.
    on
        "threads", "processes", "dask", "dask=ADDRESS", "ray" or "ray=ADDRESS". The figures are the same everywhere,
        bit for bit.
    progress
        Called with (runs finished, all runs), or with (pulls made, all pulls) if the reference plays. Without it, a
        long play by the reference shows an estimate and a progress bar if standard error is a terminal.

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
    terms = (fee, alone, coverage, broadcast_price, prepaid, underwriting)
    steps = usual_checkpoints(checked_game(game)) if checkpoints is None else checkpoints
    task = new_task(game, rule, settlement, seed, steps, *terms)
    with workers(on, jobs) as spread:
        compile_rule(task)
        started = time.perf_counter()
        with _shown(task, runs, progress) as advance:
            folded = _folded(task, runs, spread, advance)
        seconds = time.perf_counter() - started
        lone, bars = None if baseline is False else lone_games(game), None
        alone_regret: dict[str, Estimate] = {}
        if lone and (baseline or (baseline is None and runs * lone.pulls <= BASELINE_UP_TO)):
            bars, alone_regret = bars_of(lone, _played_alone(task, lone, runs, spread))
    return Result(
        game,
        rule,
        task.settlement,
        runs,
        task.seed,
        seconds,
        folded,
        task.checkpoints,
        alone_regret,
        task.broadcast_price,
        bars if game.traits else None,
    )


def usual_checkpoints(game: Game) -> list[int]:
    """Return the steps up to which the regret is recorded by default: about equal ratios apart.

    >>> from partage import Game, Sharing, bernoulli
    >>> usual_checkpoints(Game(bernoulli([0.9]), Sharing.round_robin(1, 1), horizon=10))
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    """
    last = game.last_step
    steps = {round(last ** (place / CHECKPOINTS)) for place in range(CHECKPOINTS + 1)} if last else set()
    return sorted(steps)


def new_task(
    game: Game,
    rule: Rule,
    settlement: str,
    seed: int,
    checkpoints: Iterable[int] = (),
    fee: float = 0.0,
    alone: str | None = None,
    coverage: float | None = None,
    broadcast_price: float = 0.0,
    prepaid: float | None = None,
    underwriting: float | None = None,
) -> Task:
    """Check the arguments of a play, and return what all of its chunks have in common."""
    game, rule = checked_game(game), checked_rule(rule)
    seed = count("The seed", seed, at_least=0)
    if not isinstance(checkpoints, Iterable):
        raise InputError(f"The checkpoints are {checkpoints!r}; they must be a list of steps.")
    steps = np.array(sorted(count("A checkpoint", step) for step in checkpoints), dtype=np.int64)
    last = game.last_step
    if len(steps) and steps[-1] > last:
        what = f"{last:,}, the step of the last pull" if game.traits else f"the horizon of {last:,}"
        raise InputError(f"A checkpoint is {steps[-1]:,}; it must be at most {what}.")
    price = number_from("The broadcast price", broadcast_price, low=0)
    settled = settlement_for(settlement, rule, fee, alone, coverage, prepaid, underwriting)
    return Task(game, rule, settled, seed, steps, price)


def long_reference_play(game: Game, rule: Rule, runs: object) -> str | None:
    """Return a notice if the reference plays this game, pull by pull, and it takes a while; otherwise None.

    It is for people, before `play` checks the number of runs.
    """
    if not by_reference(game, rule) or not isinstance(runs, int | float) or not 1 <= runs < math.inf:
        return None
    pulls = int(runs) * _pulls_of(game)
    seconds = pulls / REFERENCE_PULLS
    if seconds < NOTICED:
        return None
    took = f"{seconds:,.0f} seconds" if seconds < 120 else f"{seconds / 60:,.0f} minutes"
    notice = f"The reference plays this game, pull by pull: {pulls:,} pulls take about {took}."
    if isinstance(rule, BuiltIn) or is_compiled(rule):
        return notice
    return f"{notice} A rule with compiled = True plays at the engine's speed (docs/own-rules.md)."


def _pulls_of(game: Game) -> int:
    """Return the pulls of all agents in one run."""
    return sum(game.traits_of(agent).pulls(game.horizon) for agent in range(game.agents))


Progress = Callable[[int, int], None]


@contextmanager
def _shown(task: Task, runs: int, progress: Progress | None) -> Iterator[Progress | None]:
    """Return what is called as runs finish. If the reference plays, pulls are counted instead, as runs take long."""
    if not by_reference(task.game, task.rule):
        yield progress
        return
    with ExitStack() as stack:
        notice = long_reference_play(task.game, task.rule, runs)
        if progress is None and notice and sys.stderr.isatty():
            sys.stderr.write(notice + "\n")
            progress = stack.enter_context(_bar())
        if progress is None:
            yield None
            return
        told, pulls, each = progress, 0, _pulls_of(task.game)
        total = runs * each
        lock = threading.Lock()

        def advance(more: int) -> None:
            nonlocal pulls
            with lock:
                pulls += more
                told(min(pulls, total), total)

        def finished(done: int, _: int) -> None:  # runs in other processes are not watched
            advance(max(0, done * each - pulls))

        stack.enter_context(watched(advance))
        yield finished


@contextmanager
def _bar() -> Iterator[Progress]:
    """Show a progress bar on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

    with Progress(BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("playing", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def alone_task(
    task: Task,
    checkpoints: NDArray[np.int64] | None = None,
    learner: str = "two-ucb",
    game: Game | None = None,
) -> Task:
    """Return the task of one agent that plays a learner alone on the same arms, or in a game of its own.

    Arms that change are those of the beginning. After its last pull, its regret stays what it is.
    """
    game, rule = game or replace(task.game.alone(), changes=()), make_rule(learner)
    steps = np.zeros(0, np.int64) if checkpoints is None else np.minimum(checkpoints, game.horizon)
    return Task(game, rule, settlement_for("none", rule), task.seed, steps)


def _played_alone(task: Task, lone: Lone, runs: int, spread: Play) -> dict[str, list[NDArray[np.float64]]]:
    """Play learners alone, and return the regret of each in every run, by class of agents."""
    played = {}
    for learner, times in _learners(task, lone, runs).items():
        tasks = [alone_task(task, learner=learner, game=game) for game in lone.games]
        compile_rule(tasks[0])
        played[learner] = [_folded(one, times, spread, None).figures[:, 0] for one in tasks]
    return played


def _learners(task: Task, lone: Lone, runs: int) -> dict[str, int]:
    """Return the learners to play alone, and how often: 2-UCB, and those that the bar needs if not too long."""
    alone, size = task.settlement.alone, lone.pulls * len(task.game.arms)
    strong = [name for name in LEARNERS[1:] if alone in (name, "best")] if size <= STRONG_UP_TO else []
    return {"two-ucb": runs} | {name: min(runs, STRONG_RUNS, STRONG_WORK // size) for name in strong}


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

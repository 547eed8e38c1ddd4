"""A chunk of runs, played and folded: the unit of work that is spread over threads, processes or machines."""

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partage import engine
from partage.checks import count
from partage.engine.rewards import run_keys
from partage.engine.tally import Tally
from partage.errors import InputError
from partage.game import Game
from partage.rules.rule import Rule
from partage.settle import Settlement
from partage.simulate.disagreement import found_in
from partage.simulate.fold import Folded, fold, new_folded
from partage.simulate.fold_uneven import fold_uneven


@dataclass(frozen=True)
class Task:
    """What all chunks of one `play` have in common."""

    game: Game
    rule: Rule
    settlement: Settlement
    seed: int
    checkpoints: NDArray[np.int64]
    broadcast_price: float = 0.0


def checked_game(game: Any) -> Game:
    """Return the game, if it is one."""
    if not isinstance(game, Game):
        raise InputError(f"The game is {game!r}; it must be a partage.Game.")
    return game


def checked_rule(rule: Any) -> Rule:
    """Return the rule, if it has what every rule needs."""
    if isinstance(rule, type):
        raise InputError(f"The rule is the class {rule.__name__}; it must be an object, such as {rule.__name__}().")
    if (
        not isinstance(getattr(rule, "name", None), str)
        or not hasattr(rule, "private")
        or not all(callable(getattr(rule, method, None)) for method in ("decide", "revise"))
    ):
        raise InputError(
            f"The rule is {rule!r}; it must be a rule, such as partage.BalancedETC(), or an object with a name, "
            "private, decide and revise."
        )
    return rule  # type: ignore[no-any-return]


class _Last(threading.local):
    """The last run that a thread has played, and its task: the next chunk of that task uses the same arrays."""

    task: Task | None = None
    run: "engine.Run | None" = None


_LAST = _Last()
_KEPT = 2**16  # pairs of agents and arms up to which a run is kept


def play_chunk(task: Task, first: int, last: int) -> Folded:
    """Play and fold runs `first` to `last - 1`."""
    game, run = task.game, _LAST.run if _LAST.task is task else None
    _LAST.task = _LAST.run = None
    folded = new_folded(last - first, game.agents, len(game.arms), len(task.checkpoints))
    runs = engine.play_runs(game, task.rule, run_keys(task.seed, first, last), task.checkpoints, again=run)
    commits_paid = not getattr(task.rule, "keeps", None)
    shown: list[list[float]] = []
    for row, run in enumerate(runs):
        folded.curves[row] = run.curve
        if run.uneven is None:
            fold(
                run.table, run.outcome, task.settlement, row, folded, task.broadcast_price, commits_paid, run.effects
            )
        else:
            fold_uneven(run, task.settlement, row, folded, task.broadcast_price, commits_paid)
            shown += found_in(run.tally(), first + row)
    if game.agents * len(game.arms) <= _KEPT:
        _LAST.task, _LAST.run = task, run
    return folded._replace(disagreements=np.array(shown)) if shown else folded


def play_run(game: Game, rule: Rule, seed: int = 0, run: int = 0, reference: bool = False) -> Tally:
    """Play one run and return its whole tally: every agent's pulls of every arm, and the board at the end.

    Parameters
    ----------
    game, rule, seed
        As for `play`; run number `run` is the same run as there.
    reference
        Play pull by pull in plain Python, as the tests of the engine do. Slow: M times T decisions.

    Raises
    ------
    InputError
        If an argument is not allowed.

    >>> from partage import BalancedETC, Game, Sharing, bernoulli, play_run
    >>> game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=4, arms=2), horizon=500)
    >>> play_run(game, BalancedETC()) == play_run(game, BalancedETC(), reference=True)
    True
    """
    game, rule = checked_game(game), checked_rule(rule)
    seed, run = count("The seed", seed, at_least=0), count("The run", run, at_least=0)
    (played,) = engine.play_runs(game, rule, run_keys(seed, run, run + 1), reference=reference)
    return played.tally()

"""The entry point of the engine: plays runs of any game by any rule, with the kernel of that rule."""

from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partage.engine import pull_by_pull
from partage.engine import rewards as tape
from partage.engine.reference import play_reference
from partage.engine.run import Run
from partage.engine.tally import game_table, outcome_of
from partage.errors import InputError
from partage.game import Game
from partage.rules import RULES
from partage.rules.rule import Rule


def play_runs(
    game: Game,
    rule: Rule,
    keys: NDArray[np.uint64],
    checkpoints: Sequence[int] | NDArray[np.int64] = (),
    reference: bool = False,
) -> Iterator[Run]:
    """Play one run for each key and yield it.

    Parameters
    ----------
    game
        What is played. Random parts of it are drawn for each run.
    rule
        How agents decide. A built-in rule is played by its kernel, any other by the reference.
    keys
        The keys of the runs (`partage.engine.rewards.run_keys`).
    checkpoints
        Steps up to which the overall regret is recorded in `Run.curve`, in increasing order.
    reference
        Play pull by pull in plain Python, whatever the rule.

    Yields
    ------
    Run
        The run that was just played. The next one may overwrite it.

    Raises
    ------
    InputError
        If there are checkpoints, and the regret over time is not recorded for this rule and game.
    """
    steps = np.array(checkpoints, dtype=np.int64)
    kernel = None if reference else _kernel(rule)
    run: Run | None = None
    for key in keys:
        if run is None or game.random:
            played = game_of_run(game, rule, key)
            run = Run(game_table(played), steps)
        run.start(key)
        if kernel is not None and not _is_unplayable(run, rule):
            _play(run, rule, kernel)
        elif len(steps):
            raise InputError(
                f"The regret over time is not recorded for the rule {rule.name}, which is played pull by pull."
            )
        else:
            run.outcome = outcome_of(run.table, play_reference(played, rule, key))
        yield run


def has_kernel(rule: Rule) -> bool:
    """Whether the rule is played by a kernel; any other is played by the reference, which is slow."""
    return type(rule) in RULES.values()


def _is_unplayable(run: Run, rule: Rule) -> bool:
    """Whether no kernel plays this rule on this game: where members may lie and nobody shares some arm."""
    return bool(getattr(rule, "tolerate", 0)) and not run.table.public.all()


def game_of_run(game: Game, rule: Rule, key: NDArray[np.uint64]) -> Game:
    """Return the game of one run: with its random parts drawn, and as the rule plays it."""
    drawn = game.drawn(tape.generator(key, tape.GAME))
    prepare = getattr(rule, "prepare", None)
    return prepare(drawn) if prepare else drawn


def _kernel(rule: Any) -> ModuleType | None:
    """Return the module with the kernel of a rule; None for a rule that is not built in."""
    return import_module(f"partage.engine.{rule.kernel}") if has_kernel(rule) else None


def _play(run: Run, rule: Any, kernel: ModuleType) -> None:
    """Play one run with the kernel of its rule; pull by pull if some arm has no sharer and the kernel needs one."""
    hidden_arms = not (kernel.PLAYS_HIDDEN_ARMS or run.table.public.all())
    keeps_curve = pull_by_pull.KEEPS_CURVE if hidden_arms else kernel.KEEPS_CURVE
    if len(run.checkpoints) and not keeps_curve:
        raise InputError(f"The regret over time is not recorded for the rule {rule.name} on this game.")
    if hidden_arms:
        pull_by_pull.play(run, kernel.rule_table(rule, run.table))
    else:
        kernel.play(run, rule)

"""The entry point of the engine: plays runs of any game by any rule, with the kernel of that rule."""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partage.engine import pull_by_pull, uneven, uneven_pulls
from partage.engine import rewards as tape
from partage.engine.reference import play_reference
from partage.engine.run import Run
from partage.engine.tally import Tally, outcome_of, uneven_of
from partage.engine.uneven_table import can_jump
from partage.game import Game
from partage.rules import RULES
from partage.rules.rule import Rule, is_compiled
from partage.sharing import Sharing

_module = cache(import_module)


def play_runs(
    game: Game,
    rule: Rule,
    keys: NDArray[np.uint64],
    checkpoints: Sequence[int] | NDArray[np.int64] = (),
    reference: bool = False,
    again: Run | None = None,
) -> Iterator[Run]:
    """Play one run for each key and yield it.

    Parameters
    ----------
    game
        What is played. Random parts of it are drawn for each run.
    rule
        How agents decide. A built-in rule is played by its kernel, one with `compiled = True` by `engine.own`, and
        any other by the reference.
    keys
        The keys of the runs (`partage.engine.rewards.run_keys`).
    checkpoints
        Steps up to which the overall regret is recorded in `Run.curve`, in increasing order.
    reference
        Play pull by pull in plain Python, whatever the rule.
    again
        A run of an earlier call with the same game, rule and checkpoints. It is written over.

    Yields
    ------
    Run
        The run that was just played. The next one may overwrite it.
    """
    steps = np.array(checkpoints, dtype=np.int64)
    kernel = None if reference or by_reference(game, rule) else _kernel(rule)
    run, random = again, game.random
    for key in keys:
        if run is None or random:
            run = Run(game_of_run(game, rule, key), steps)
        run.start(key)
        if kernel is None or _is_unplayable(run.game, rule):
            _take(run, play_reference(run.game, rule, key, run.checkpoints, run.curve))
        elif game.uneven and not _is_complete(kernel):
            _play_uneven(run, rule, kernel)
        else:
            _play(run, rule, kernel)
        yield run


def _take(run: Run, tally: Tally) -> None:
    """Let the run have what happened."""
    run.outcome, run.uneven = outcome_of(run.table, tally), uneven_of(run.table, tally)
    run.effects = tally.effects


def has_kernel(rule: Rule) -> bool:
    """Whether the rule is played by a kernel; any other is played by the reference, which is slow."""
    return type(rule) in RULES.values() or is_compiled(rule)


def by_reference(game: Game, rule: Rule) -> bool:
    """Whether the reference plays this game, pull by pull in plain Python."""
    return not has_kernel(rule) or (game.uneven and not _plays_uneven(rule)) or _is_unplayable(game, rule)


def _plays_uneven(rule: Any) -> bool:
    """Whether kernels play uneven games by this rule: if it decides from what was told alone, and nobody may lie."""
    kernel = _kernel(rule)
    plays = hasattr(kernel, "rule_table") or _is_complete(kernel)
    return plays and not rule.private and not rule.tolerate


def _is_complete(kernel: ModuleType | None) -> bool:
    """Whether a kernel plays uneven games itself."""
    return getattr(kernel, "PLAYS_UNEVEN", False)


def _is_unplayable(game: Game, rule: Rule) -> bool:
    """Whether no kernel plays this rule on this game: where members may lie and nobody shares some arm."""
    sharing = game.sharing
    return bool(getattr(rule, "tolerate", 0)) and isinstance(sharing, Sharing) and not all(sharing.sharers())


def game_of_run(game: Game, rule: Rule, key: NDArray[np.uint64]) -> Game:
    """Return the game of one run: with its random parts drawn, and as the rule plays it."""
    drawn = game.drawn(tape.generator(key, tape.GAME))
    prepare = getattr(rule, "prepare", None)
    return prepare(drawn) if prepare else drawn


def _kernel(rule: Any) -> ModuleType | None:
    """Return the module with the kernel of a rule; None for a rule that only the reference plays."""
    if not has_kernel(rule):
        return None
    return _module(f"partage.engine.{'own' if is_compiled(rule) else rule.kernel}")


def _play(run: Run, rule: Any, kernel: ModuleType) -> None:
    """Play one run with the kernel of its rule; pull by pull if some arm has no sharer and the kernel needs one."""
    hidden_arms = not (kernel.PLAYS_HIDDEN_ARMS or run.every_arm_shared)
    if hidden_arms:
        pull_by_pull.play(run, kernel.rule_table(rule, run.table))
    else:
        kernel.play(run, rule)


def _play_uneven(run: Run, rule: Any, kernel: ModuleType) -> None:
    """Play one run of an uneven game."""
    run.uneven = run.uneven_room
    game, world = run.uneven_tables
    (uneven if can_jump(world) else uneven_pulls).play(run, kernel.rule_table(rule, game))

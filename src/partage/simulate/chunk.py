"""Playing and folding a chunk of runs: the unit of work that is spread over threads, processes or machines."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partage.compiled import compiled
from partage.engine import rewards as tape
from partage.engine.balanced_etc import play_balanced_etc, sharers_in_order
from partage.engine.balanced_glr import play_contenders
from partage.engine.decisions import ETC, GLR, KL_ETC, RuleTable
from partage.engine.pull_by_pull import play_no_protocol, play_with_hidden_arms
from partage.engine.reference import play_reference
from partage.engine.rewards import AGENT_ORDER, TIE_ORDER, permutation
from partage.engine.tally import GameTable, Outcome, Tally, game_table, new_outcome, tally_of
from partage.engine.two_ucb import play_two_ucb
from partage.errors import InputError
from partage.game import Game
from partage.rules import KLETC, BalancedETC, BalancedGLR, FullSharing, NoProtocol, TwoUCB, UnbalancedETC
from partage.rules.balanced_glr import elimination_threshold
from partage.rules.rule import Rule
from partage.settle import NONE, Settlement
from partage.simulate.fold import Folded, fold, new_folded

_TIE_ORDER, _AGENT_ORDER = TIE_ORDER, AGENT_ORDER


@dataclass(frozen=True)
class Task:
    """What every chunk of one play has in common."""

    game: Game
    rule: Rule
    settlement: Settlement
    seed: int
    checkpoints: NDArray[np.int64]


@compiled
def _orders(game, k0, k1, order):
    """Return the tie order of a run, and the order of its agents."""
    tie_order = permutation(k0, k1, _TIE_ORDER, game.arms)
    if game.shuffled:
        order = permutation(k0, k1, _AGENT_ORDER, game.agents)
    return tie_order, order


@compiled
def _balanced_etc_runs(game, balance, keys, settlement, checkpoints, row, folded, outcome):
    order = np.arange(game.agents)
    sharers = sharers_in_order(game, order)
    for run in range(len(keys)):
        k0, k1 = keys[run, 0], keys[run, 1]
        tie_order, order = _orders(game, k0, k1, order)
        if game.shuffled:
            sharers = sharers_in_order(game, order)
        curve = folded.curves[row + run]
        play_balanced_etc(game, balance, k0, k1, tie_order, order, sharers, checkpoints, curve, outcome)
        fold(game, outcome, settlement, row + run, folded)


@compiled
def _contenders_runs(game, rule, keys, settlement, checkpoints, row, folded, outcome):
    order = np.arange(game.agents)
    sharers = sharers_in_order(game, order)
    for run in range(len(keys)):
        k0, k1 = keys[run, 0], keys[run, 1]
        tie_order, order = _orders(game, k0, k1, order)
        if game.shuffled:
            sharers = sharers_in_order(game, order)
        curve = folded.curves[row + run]
        play_contenders(game, rule, k0, k1, tie_order, order, sharers, checkpoints, curve, outcome)
        fold(game, outcome, settlement, row + run, folded)


@compiled
def _hidden_arms_runs(game, rule, keys, settlement, row, folded, outcome):
    order = np.arange(game.agents)
    for run in range(len(keys)):
        k0, k1 = keys[run, 0], keys[run, 1]
        tie_order, order = _orders(game, k0, k1, order)
        play_with_hidden_arms(game, rule, k0, k1, tie_order, order, outcome)
        fold(game, outcome, settlement, row + run, folded)


@compiled
def _no_protocol_runs(game, keys, settlement, row, folded, outcome):
    order = np.arange(game.agents)
    for run in range(len(keys)):
        k0, k1 = keys[run, 0], keys[run, 1]
        tie_order, order = _orders(game, k0, k1, order)
        play_no_protocol(game, k0, k1, tie_order, order, outcome)
        fold(game, outcome, settlement, row + run, folded)


@compiled
def _two_ucb_runs(game, keys, settlement, checkpoints, row, folded, outcome):
    order = np.arange(game.agents)
    for run in range(len(keys)):
        k0, k1 = keys[run, 0], keys[run, 1]
        tie_order, order = _orders(game, k0, k1, order)
        play_two_ucb(game, k0, k1, tie_order, checkpoints, folded.curves[row + run], outcome)
        fold(game, outcome, settlement, row + run, folded)


def _play_runs(
    table: GameTable,
    rule: Rule,
    keys: NDArray[np.uint64],
    settlement: Settlement,
    checkpoints: NDArray[np.int64],
    row: int,
    folded: Folded,
    outcome: Outcome,
) -> None:
    """Play runs of one laid-out game with the compiled play of a rule."""
    if isinstance(rule, TwoUCB):
        _two_ucb_runs(table, keys, settlement, checkpoints, row, folded, outcome)
    elif isinstance(rule, BalancedETC) and table.public.all():
        _balanced_etc_runs(table, rule.balance, keys, settlement, checkpoints, row, folded, outcome)
    elif isinstance(rule, (BalancedGLR, KLETC)) and table.public.all():
        _contenders_runs(table, rule_table(rule, table), keys, settlement, checkpoints, row, folded, outcome)
    elif len(checkpoints):
        raise InputError(f"The regret over time is not kept for the rule {rule.name} on this game.")
    elif isinstance(rule, NoProtocol):
        _no_protocol_runs(table, keys, settlement, row, folded, outcome)
    else:
        _hidden_arms_runs(table, rule_table(rule, table), keys, settlement, row, folded, outcome)


def rule_table(rule: Rule, table: GameTable) -> RuleTable:
    """Lay out a rule that reads the board alone."""
    bar = elimination_threshold(table.arms, table.horizon)
    if isinstance(rule, BalancedGLR):
        return RuleTable(GLR, 0.0, rule.lead, bar)
    if isinstance(rule, KLETC):
        return RuleTable(KL_ETC, rule.balance, 0.0, bar)
    assert isinstance(rule, BalancedETC)
    return RuleTable(ETC, rule.balance, 0.0, bar)


def is_compiled(rule: Rule) -> bool:
    """Whether the engine plays this rule; every other is played by the reference."""
    return type(rule) in (BalancedETC, UnbalancedETC, FullSharing, KLETC, BalancedGLR, TwoUCB, NoProtocol)


def game_of_run(game: Game, rule: Rule, key: NDArray[np.uint64]) -> Game:
    """Return the game of one run: what is random in it drawn, and changed as the rule needs it."""
    game = game.drawn(tape.generator(key, tape.GAME))
    prepare = getattr(rule, "prepare", None)
    return prepare(game) if prepare else game


def play_chunk(task: Task, first: int, last: int) -> Folded:
    """Play and fold runs `first` to `last - 1`."""
    keys = tape.run_keys(task.seed, first, last)
    game = task.game
    folded = new_folded(last - first, game.agents, len(game.arms), len(task.checkpoints))
    if is_compiled(task.rule) and not game.random:
        table = game_table(game_of_run(game, task.rule, keys[0]))
        outcome = new_outcome(table)
        _play_runs(table, task.rule, keys, task.settlement, task.checkpoints, 0, folded, outcome)
        return folded
    for row, key in enumerate(keys):
        drawn = game_of_run(game, task.rule, key)
        table = game_table(drawn)
        if is_compiled(task.rule):
            keys_of_run = keys[row : row + 1]
            outcome = new_outcome(table)
            _play_runs(table, task.rule, keys_of_run, task.settlement, task.checkpoints, row, folded, outcome)
        elif len(task.checkpoints):
            raise InputError(
                f"The regret over time is not kept for the rule {task.rule.name}, which is not compiled."
            )
        else:
            outcome = _outcome_of(table, play_reference(drawn, task.rule, key))
            fold(table, outcome, task.settlement, row, folded)
    return folded


def _outcome_of(table: GameTable, tally: Tally) -> Outcome:
    """Fold a reference tally as a compiled one."""
    owner = np.repeat(np.arange(table.agents), np.diff(table.starts))
    commit = np.zeros((table.arms, table.agents + 1), np.int64)
    commit[:, :-1] = tally.commit.T
    return Outcome(
        tally.broadcasts,
        tally.sums,
        tally.active,
        tally.eliminated_step,
        tally.eliminated_agent,
        tally.explore[owner, table.shared],
        np.arange(table.arms),
        np.array([table.arms]),
        commit,
    )


def play_run(game: Game, rule: Rule, seed: int = 0, run: int = 0, reference: bool = False) -> Tally:
    """Play one run and return its whole tally: every agent's pulls of every arm, and the board at the end.

    Parameters
    ----------
    game, rule, seed
        As for `play`; run number `run` is the same run as there.
    reference
        Play pull by pull in plain Python, as the engine is checked against. Slow: M times T decisions.

    >>> from partage import BalancedETC, Game, Sharing, bernoulli, play_run
    >>> game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=4, arms=2), horizon=500)
    >>> play_run(game, BalancedETC()) == play_run(game, BalancedETC(), reference=True)
    True
    """
    keys = tape.run_keys(seed, run, run + 1)
    drawn = game_of_run(game, rule, keys[0])
    if reference or not is_compiled(rule):
        return play_reference(drawn, rule, keys[0])
    table = game_table(drawn)
    outcome = new_outcome(table)
    folded = new_folded(1, table.agents, table.arms, 0)
    _play_runs(table, rule, keys, Settlement(NONE), np.zeros(0, np.int64), 0, folded, outcome)
    return tally_of(table, outcome)

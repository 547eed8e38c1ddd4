"""A rule of the user's own whose `decide` and `revise` numba compiles (`compiled = True`).

`self` becomes a tuple of the rule's numbers, and the board, the record and the draws are those of `own_arrays`.

A rule that reads neither its own record nor draws decides by the board alone, and the board changes only by
broadcasts and with the clock. Once a whole step has passed without a broadcast, every agent repeats its commit until
the clock ticks, so these steps are counted at once.
"""

import dis
import inspect
import re
from collections import namedtuple
from collections.abc import Callable, Collection, Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit
from numba.core.errors import NumbaError

from partage.board import Board, Record
from partage.clock import TICKS
from partage.compiled import inner
from partage.engine.alone import add_to_curve
from partage.engine.decisions import note_eliminations
from partage.engine.own_arrays import ArrayDraws, ArrayRecord, board_from, board_of, draws_of
from partage.engine.rewards import TAPE, next_reward
from partage.engine.tally import all_rows, clear
from partage.errors import RuleError
from partage.tape import Draws

if TYPE_CHECKING:
    from partage.engine.run import Run

PLAYS_HIDDEN_ARMS = True

_TICKS = np.array(TICKS)
_FINE, _NO_ARM, _NOT_SHARED = range(3)


class Code(NamedTuple):
    """A rule's compiled functions, and what `decide` reads besides the board."""

    decide: Callable[..., Any]
    revise: Callable[..., Any]
    reads_own: bool
    reads_draws: bool


class Way(NamedTuple):
    """How a run is played: whether own records are kept, how many rewards of each arm (-1: all), whether to jump."""

    keeps_own: bool
    keeps: int
    jumps: bool


def play(run: "Run", rule: Any) -> None:
    """Play one run.

    Raises
    ------
    RuleError
        numba cannot compile the rule, or the rule breaks the rules of the game.
    """
    code, table = _code(rule), run.table
    whole = bool(table.public.all())
    keeps = getattr(rule, "keeps", None) if whole else None
    keeps_own = code.reads_own and (rule.private or not whole)
    way = Way(keeps_own, -1 if keeps is None else int(keeps), not keeps_own and not code.reads_draws)
    board, draws = board_of(table, run.tie_order, run.outcome), draws_of(run.key)
    given = numbers_of(rule), way, table, table.shared.astype(np.int64), board, draws
    with _said(rule.name):
        fault, agent, arm = play_own(
            code.decide, code.revise, *given, run.order, run.checkpoints, run.curve, run.outcome
        )
    if fault == _NO_ARM:
        raise RuleError(f"The rule {rule.name} pulled arm {arm}; it must be one of 0 to {table.arms - 1}.")
    if fault == _NOT_SHARED:
        shares = sorted(int(one) for one in table.shared[table.starts[agent] : table.starts[agent + 1]])
        raise RuleError(f"The rule {rule.name} broadcast arm {arm}, but the agent shares {shares}.")


def _code(rule: Any) -> Code:
    return code_of(type(rule))  # type: ignore[arg-type]


@cache
def code_of(rule: Hashable) -> Code:
    """Return the compiled functions of a class of rules: once a process, since numba cannot store them on disk.

    They check indices: a wrong one must be an error, not somebody else's memory.
    """
    decide, revise = (_plain(getattr(rule, name)) for name in ("decide", "revise"))
    taken = list(inspect.signature(decide).parameters)
    made = _njit(decide)
    if len(taken) == 4:  # it leaves the draws out
        with_draws = _njit(lambda self, board, shares, own, draws: made(self, board, shares, own))
    else:
        with_draws = made
    reads = {name for instruction in dis.get_instructions(decide) for name in _names(instruction)}
    return Code(with_draws, _njit(revise), taken[3] in reads, len(taken) > 4 and taken[4] in reads)


def _njit(function: Callable[..., Any]) -> Callable[..., Any]:
    made: Callable[..., Any] = njit(nogil=True, boundscheck=True)(function)
    return made


def decided(rule: Any, board: Board, shares: Collection[int], own: Record, draws: Draws) -> tuple[int, bool]:
    """Return what the compiled `decide` answers on a plain board."""
    k0, k1 = np.array(draws.key, np.uint64)
    run = ArrayDraws(k0, k1, np.array([draws.agent, draws.pull, 0]))
    record = ArrayRecord(np.array(own.counts), np.array(own.sums, np.float64))
    mine = np.array(sorted(shares), np.int64)
    with _said(rule.name):
        arm, share = _code(rule).decide(numbers_of(rule), board_from(board), mine, record, run)
    return int(arm), bool(share)


def revised(rule: Any, board: Board) -> list[bool]:
    """Return which arms are active after the compiled `revise` of a plain board."""
    arrays = board_from(board)
    with _said(rule.name):
        _code(rule).revise(numbers_of(rule), arrays)
    return [bool(active) for active in arrays.active]


@contextmanager
def _said(name: str) -> Iterator[None]:
    """Turn errors of compiled code into one sentence."""
    try:
        yield
    except NumbaError as error:
        raise not_compiled(name, error) from None
    except (ArithmeticError, ValueError, LookupError) as error:
        raise RuleError(f"The compiled rule {name} failed: {error}.") from None


def numbers_of(rule: Any) -> Any:
    """Return the numbers that compiled code reads from `self`: the rule's public attributes that are numbers."""
    found = {}
    for name in dir(rule):
        value = None if name.startswith("_") else inspect.getattr_static(rule, name)
        if isinstance(value, property):
            value = getattr(rule, name)
        if isinstance(value, bool | int | float | np.number | np.ndarray) or _is_numbers(value):
            found[name] = value
    return _tuple_of(type(rule).__name__, tuple(found))(*found.values())


def not_compiled(name: str, error: Exception) -> RuleError:
    """Return numba's complaint as one sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("Failed in", "During:", "File ", "<source", "- "))]
    what = re.sub(r" of type (ArrayBoard|ArrayRecord|ArrayDraws)\(.*", r" of \1", " ".join(told[:1]))[:300].rstrip(
        "."
    )
    place = next((f" ({line.rstrip(':')})" for line in lines if line.startswith("File ")), "")
    return RuleError(
        f"numba cannot compile the rule {name}: {what}{place}; leave `compiled` out to play it in plain Python."
    )


def _plain(function: Any) -> Callable[..., Any]:
    """Return the plain function of one that may be compiled already."""
    found: Callable[..., Any] = getattr(function, "py_func", function)
    return found


def _names(instruction: dis.Instruction) -> tuple[Any, ...]:
    """Return the names of an instruction: some read two variables."""
    value = instruction.argval
    return value if isinstance(value, tuple) else (value,) if isinstance(value, str) else ()


def _is_numbers(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(one, bool | int | float) for one in value)


@cache
def _tuple_of(name: str, names: tuple[str, ...]) -> Any:
    """Return the class of tuples with these names: numba compiles once for each class."""
    return namedtuple(name, names)


@njit(nogil=True)
def play_own(decide, revise, self, way, game, shared, board, draws, order, checkpoints, curve, outcome):
    """Play one run; return what is wrong with a decision, its agent and its arm, or zeros."""
    clear(game.public, outcome)
    all_rows(outcome)
    agents, arms, starts = game.agents, game.arms, game.starts
    counts, sums, k0, k1 = outcome.counts, outcome.sums, draws.k0, draws.k1
    keeps_own, jumps, end = way.keeps_own, way.jumps, agents * game.horizon
    rows = agents if keeps_own else 1
    own_counts, own_sums = np.zeros((rows, arms), np.int64), np.zeros((rows, arms))
    word, group_of = np.zeros((1 + rows, arms), np.uint64), np.full((1 + rows, arms), np.int64(-1))
    chosen = np.zeros(agents if jumps else 0, np.int64)  # what the agent at each place commits to
    pulled, tick = np.zeros(arms, np.int64), 0
    pull, quiet, checkpoint = np.int64(0), np.int64(0), np.int64(0)
    curve[:] = 0.0

    while pull < end:
        if _TICKS[tick] == pull:
            board.now[0], tick, quiet = pull, tick + 1, np.int64(0)
        place, step = pull % agents, pull // agents
        if jumps and quiet >= agents and place == 0:
            # 1. Nothing changes before the next tick: count whole steps at once.
            steps = (min(end, _TICKS[tick]) - pull) // agents
            if steps > 0:
                checkpoint = _repeat(
                    steps, step, chosen, order, game.gaps, checkpoint, checkpoints, curve, pulled, outcome
                )
                pull += steps * agents
                continue

        # 2. The agent decides, unless it would repeat itself.
        agent, share = order[place], False
        if jumps and quiet >= agents:
            arm = chosen[place]
        else:
            row = agent if keeps_own else 0
            draws.at[0], draws.at[1], draws.at[2] = agent, step, 0
            mine = shared[starts[agent] : starts[agent + 1]]
            arm, share = decide(self, board, mine, ArrayRecord(own_counts[row], own_sums[row]), draws)
        if arm < 0 or arm >= arms:
            return _NO_ARM, agent, np.int64(arm)
        pulled[arm] += 1
        if share:
            entry = _entry_of(arm, starts[agent], starts[agent + 1], shared)
            if entry < 0:
                return _NOT_SHARED, agent, np.int64(arm)
            outcome.explore[entry] += 1
            sums[arm] += next_reward(k0, k1, game.rewards, arm, counts[arm], TAPE, word[0], group_of[0])
            counts[arm] += 1
            revise(self, board)
            note_eliminations(
                step + 1, agent, game.public, outcome.active, outcome.eliminated_step, outcome.eliminated_agent
            )
            quiet = np.int64(0)
        else:
            outcome.commit[arm, agent] += 1
            if jumps:
                chosen[place] = arm
            quiet += 1
            if keeps_own and (way.keeps < 0 or own_counts[agent, arm] < way.keeps):
                seen, row = own_counts[agent, arm], 1 + agent
                own_sums[agent, arm] += next_reward(k0, k1, game.rewards, arm, seen, row, word[row], group_of[row])
                own_counts[agent, arm] += 1
        pull += 1
        if place == agents - 1:
            checkpoint = add_to_curve(checkpoint, step + 1, checkpoints, game.gaps, pulled, curve)
    return _FINE, np.int64(0), np.int64(0)


@inner
def _entry_of(arm, first, end, shared):
    """Return the entry of the sharing for one of an agent's arms; -1 if it does not share the arm."""
    for entry in range(first, end):
        if shared[entry] == arm:
            return entry
    return -1


@inner
def _repeat(steps, step, chosen, order, gaps, checkpoint, checkpoints, curve, pulled, outcome):
    """Let every agent repeat its commit for some steps; return the next checkpoint."""
    one_step = np.zeros(len(pulled), np.int64)
    for place in range(len(order)):
        outcome.commit[chosen[place], order[place]] += steps
        one_step[chosen[place]] += 1
    while checkpoint < len(checkpoints) and checkpoints[checkpoint] <= step + steps:
        for arm in range(len(pulled)):
            curve[checkpoint] += gaps[arm] * (pulled[arm] + one_step[arm] * (checkpoints[checkpoint] - step))
        checkpoint += 1
    for arm in range(len(pulled)):
        pulled[arm] += one_step[arm] * steps
    return checkpoint

"""The board, an agent's record and its draws, as a compiled `decide` of a user's own rule sees them.

They have the fields and methods of `partage.board.Board`, `partage.board.Record` and `partage.tape.Draws`, so that
numba compiles a `decide` as it is written for plain Python. Fields are arrays, and reports are instant.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import models, overload_attribute, overload_method, register_model, typeof_impl
from numpy.typing import NDArray

from partage import tape
from partage.board import Board
from partage.compiled import inner
from partage.engine.rewards import _multiply_wide, normal, philox
from partage.engine.rewards import unit as unit_of
from partage.engine.tally import GameTable, Ints, Outcome

_OTHER = np.uint64(tape.OTHER)
_gamma_from = inner(tape.gamma_from)
_DECISIONS, _DRAWS_PER_PULL = np.int64(tape.DECISIONS), np.int64(tape.DRAWS_PER_PULL)


class ArrayRecord(NamedTuple):
    """How often each arm was seen, and the sum of its rewards."""

    counts: NDArray[np.int64]
    sums: NDArray[np.float64]


class ArrayBoard(NamedTuple):
    """The public state. `claims` and `lapses` are zero; there is no `state`, `by_member` or `shares`.

    `now[0]` is the clock.
    """

    horizon: int
    all_pulls: int
    arms: int
    now: NDArray[np.int64]
    tie_order: NDArray[np.int64]
    rank: NDArray[np.int64]
    public: NDArray[np.bool_]
    shared: NDArray[np.bool_]
    sharers: NDArray[np.int64]
    active: NDArray[np.bool_]
    claims: NDArray[np.int64]
    lapses: NDArray[np.int64]
    counts: NDArray[np.int64]
    record: ArrayRecord


class ArrayDraws(NamedTuple):
    """The randomness of one decision: pull `at[1]` of agent `at[0]`, after `at[2]` draws."""

    k0: np.uint64
    k1: np.uint64
    at: NDArray[np.int64]


# Types of their own: methods that numba knew of all named tuples would hide the fields of others.


class BoardType(types.NamedTuple):  # type: ignore[misc]
    """The type of an `ArrayBoard`."""


class DrawsType(types.NamedTuple):  # type: ignore[misc]
    """The type of `ArrayDraws`."""


for _made, _type in ((ArrayBoard, BoardType), (ArrayDraws, DrawsType)):
    register_model(_type)(models.TupleModel)
    typeof_impl.register(_made)(
        lambda value, context, made=_made, type=_type: type([typeof_impl(one, context) for one in value], made)
    )


def board_of(game: GameTable, tie_order: Ints, outcome: Outcome) -> ArrayBoard:
    """Return the board at the start of a run. It shares arrays with the outcome."""
    rank = np.empty_like(tie_order)
    rank[tie_order] = np.arange(game.arms)
    sharers = np.bincount(game.shared, minlength=game.arms).astype(np.int64)
    zeros = np.zeros(game.arms, np.int64)
    return ArrayBoard(
        game.horizon,
        game.agents * game.horizon,
        game.arms,
        np.zeros(1, np.int64),
        tie_order,
        rank,
        game.public,
        game.public,
        sharers,
        outcome.active,
        zeros,
        zeros,
        outcome.counts,
        ArrayRecord(outcome.counts, outcome.sums),
    )


def board_from(board: Board) -> ArrayBoard:
    """Return a plain board as arrays, which are copies."""
    counts, sums = np.array(board.counts, np.int64), np.array(board.record.sums, np.float64)
    return ArrayBoard(
        board.horizon,
        board.all_pulls,
        board.arms,
        np.array([board.clock], np.int64),
        np.array(board.tie_order, np.int64),
        np.array(board.rank, np.int64),
        np.array(board.public, np.bool_),
        np.array(board.shared, np.bool_),
        np.array(board.sharers, np.int64),
        np.array(board.active, np.bool_),
        np.array(board.claims, np.int64),
        np.array(board.lapses, np.int64),
        counts,
        ArrayRecord(counts, sums),
    )


def draws_of(key: tuple[np.uint64, np.uint64]) -> ArrayDraws:
    """Return the draws of a run."""
    return ArrayDraws(*key, np.zeros(3, np.int64))


def _method(of: type[types.NamedTuple], name: str | None = None) -> Callable[[Callable[..., Any]], None]:
    """Let compiled code call a function as a method."""

    def register(function: Callable[..., Any]) -> None:
        taken = ", ".join(inspect.signature(function).parameters)  # numba compares the names of the arguments
        choose = eval(f"lambda {taken}: function", {"function": function})
        overload_method(of, name or function.__name__, jit_options={"nogil": True})(choose)

    return register


def _attribute(of: type[types.NamedTuple]) -> Callable[[Callable[..., Any]], None]:
    """Let compiled code read what a function returns as an attribute."""

    def register(function: Callable[..., Any]) -> None:
        overload_attribute(of, function.__name__)(lambda it: function)

    return register


@_attribute(BoardType)
def clock(it):
    """The group's pulls so far, rounded down."""
    return it.now[0]


@_attribute(BoardType)
def pulls_left(it):
    """The pulls that the group still has, by the clock."""
    return max(0, it.all_pulls - it.now[0])


@_method(BoardType)
def handed(it, arm):
    """Return how often the arm was broadcast."""
    return it.counts[arm] + it.claims[arm]


@_method(BoardType)
def stalled(it, arm):
    """Reports are instant, so no arm stalls."""
    return False


@_method(BoardType)
def mean(it, arm):
    """Return the mean of the broadcast rewards; minus infinity if there are none."""
    return it.record.sums[arm] / it.counts[arm] if it.counts[arm] > 0 else -math.inf


@_method(BoardType)
def upper(it, arm):
    """Return the upper end of the arm's interval."""
    count = it.counts[arm]
    return it.mean(arm) + math.sqrt(2 * math.log(it.horizon) / count) if count > 0 else math.inf


@_method(BoardType)
def lower(it, arm):
    """Return the lower end of the arm's interval."""
    count = it.counts[arm]
    return it.mean(arm) - math.sqrt(2 * math.log(it.horizon) / count) if count > 0 else -math.inf


@_method(BoardType)
def actives(it):
    """Return the active arms."""
    return np.flatnonzero(it.active)


@_method(BoardType)
def standing(it):
    """Return the active arms that somebody shares."""
    return np.flatnonzero(it.active & it.shared)


@_method(BoardType)
def least(it, arms):
    """Return the least-broadcast of these arms, ties by the tie order."""
    chosen = np.int64(-1)
    for arm in arms:
        if chosen < 0 or (it.counts[arm], it.rank[arm]) < (it.counts[chosen], it.rank[chosen]):
            chosen = np.int64(arm)
    if chosen < 0:
        raise ValueError("least() of no arms")
    return chosen


@_method(BoardType)
def best(it, arms):
    """Return the arm with the highest mean among these, ties by the tie order."""
    chosen, highest = np.int64(-1), -math.inf
    for arm in arms:
        its = it.mean(arm)
        if chosen < 0 or its > highest or (its == highest and it.rank[arm] < it.rank[chosen]):
            chosen, highest = np.int64(arm), its
    if chosen < 0:
        raise ValueError("best() of no arms")
    return chosen


@_method(BoardType)
def leader(it):
    """Return the active arm with the highest mean, ties by the tie order."""
    chosen, highest = np.int64(-1), -math.inf
    for arm in range(len(it.active)):
        if it.active[arm]:
            its = it.mean(arm)
            if chosen < 0 or its > highest or (its == highest and it.rank[arm] < it.rank[chosen]):
                chosen, highest = np.int64(arm), its
    if chosen < 0:
        raise ValueError("there is no leader: no arm is active")
    return chosen


@inner
def _next_words(it, block):
    """Return a block of words of the current draw."""
    agent, pull, drawn = it.at[0], it.at[1], it.at[2]
    if drawn >= _DRAWS_PER_PULL:
        raise ValueError("a decision drew too often")
    entry = pull * _DRAWS_PER_PULL + drawn
    return philox(it.k0, it.k1, np.uint64(block), np.uint64(entry), np.uint64(_DECISIONS + agent), _OTHER)


@_method(DrawsType)
def uniform(it):
    """Draw a number from [0, 1)."""
    first, _, _, _ = _next_words(it, 0)
    it.at[2] += 1
    return unit_of(first)


@_method(DrawsType)
def integer(it, size):
    """Draw a whole number from 0 to size - 1."""
    first, _, _, _ = _next_words(it, 0)
    it.at[2] += 1
    high, _ = _multiply_wide(first, np.uint64(size))
    return np.int64(high)


@_method(DrawsType, "normal")
def normal_draw(it):
    """Draw a standard normal number."""
    first, second, _, _ = _next_words(it, 0)
    it.at[2] += 1
    return normal(first, second)


@_method(DrawsType)
def beta(it, a, b):
    """Draw a Beta(a, b) number; both parameters are at least 1."""
    block = 0
    while True:
        w0, w1, w2, w3 = _next_words(it, block)
        block += 1
        radius, angle = math.sqrt(-2.0 * math.log(1.0 - unit_of(w0))), 2.0 * math.pi * unit_of(w1)
        x = _gamma_from(a, radius * math.cos(angle), 1.0 - unit_of(w2))
        y = _gamma_from(b, radius * math.sin(angle), 1.0 - unit_of(w3))
        if x >= 0.0 and y >= 0.0:
            it.at[2] += 1
            return x / (x + y)

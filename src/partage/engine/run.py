"""One run, laid out for a kernel: the game, its key and orders, and room for what happens."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partage.compiled import code_for
from partage.engine.rewards import AGENT_ORDER, TIE_ORDER, permutation
from partage.engine.sharers import Sharers, sharers_in_order
from partage.engine.tally import (
    Floats,
    GameTable,
    Ints,
    Outcome,
    Tally,
    Uneven,
    game_table,
    gaps_by_phase,
    new_outcome,
    tally_of,
)
from partage.engine.uneven_layout import Layout, lay_out
from partage.engine.uneven_table import UnevenTable, new_uneven, uneven_game_table, uneven_table
from partage.game import Game


@dataclass
class Run:
    """One run of a game. Kernels read it and fill `outcome` and `curve`.

    The runs of one game use the same object one after the other (`start`), so callers must copy what they want to
    keep.

    Attributes
    ----------
    game
        The game, with nothing left to draw, as its rule plays it.
    table
        The game as arrays.
    checkpoints
        The steps up to which the overall regret is recorded.
    curve
        The overall regret up to each checkpoint.
    outcome
        Pulls, broadcasts and eliminations.
    uneven
        What else happened in a game that is not the paper's; None for the paper's.
    effects
        Each arm's estimated effect less the leader's, if the rule compares arms within members; otherwise None.
    key
        Two words that determine all randomness of the run.
    tie_order
        The arms in the order in which ties are broken.
    order
        Which agent acts at each place of a step.
    """

    game: Game
    checkpoints: Ints
    table: GameTable = field(init=False)
    curve: Floats = field(init=False)
    outcome: Outcome = field(init=False)
    uneven: Uneven | None = field(init=False, default=None)
    effects: Floats | None = field(init=False, default=None)
    key: tuple[np.uint64, np.uint64] = field(init=False)
    tie_order: Ints = field(init=False)
    order: Ints = field(init=False)
    _sharers: Sharers | None = field(init=False, default=None)
    _layout: Layout | None = field(init=False, default=None)
    _codes: dict[tuple[Any, ...], Callable[..., None]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.table = game_table(self.game)
        self.curve = np.zeros(len(self.checkpoints))
        self.outcome = new_outcome(self.table)
        self.order = np.arange(self.table.agents)

    def start(self, key: NDArray[np.uint64]) -> None:
        """Start the run with this key."""
        self.key = key[0], key[1]
        self.tie_order = permutation(*self.key, TIE_ORDER, self.table.arms)
        if self.table.shuffled:
            self.order = permutation(*self.key, AGENT_ORDER, self.table.agents)
            self._sharers = self._layout = None

    @cached_property
    def every_arm_shared(self) -> bool:
        """Whether each arm has a sharer."""
        return bool(self.table.public.all())

    @property
    def sharers(self) -> Sharers:
        """Who shares each arm, in the order in which agents act."""
        if self._sharers is None:
            table = self.table
            self._sharers = sharers_in_order(table.agents, table.arms, table.starts, table.shared, self.order)
        assert self._sharers is not None
        return self._sharers

    def call(self, kernel: Any, rule: float | tuple[Any, ...], *more: Any) -> None:
        """Play with a kernel for games in which every arm is shared; `more` are its last arguments."""
        arguments = (
            self.table, rule, *self.key, self.tie_order, self.order, self.sharers, self.checkpoints, self.curve,
            self.outcome, *more,
        )  # fmt: skip
        # The types of all else are those of this run.
        kinds = kernel, *map(type, rule if isinstance(rule, tuple) else (rule,)), *map(type, more)
        code = self._codes.get(kinds)
        if code is None:
            kernel(*arguments)
            self._codes[kinds] = code_for(kernel, arguments)
        else:
            code(*arguments)

    @cached_property
    def uneven_tables(self) -> tuple[GameTable, UnevenTable]:
        """An uneven game as arrays."""
        return uneven_game_table(self.game), uneven_table(self.game)

    @property
    def layout(self) -> Layout:
        """Who pulls where in an uneven game, in the order in which agents act."""
        if self._layout is None:
            self._layout = lay_out(*self.uneven_tables, self.order)
        assert self._layout is not None
        return self._layout

    @cached_property
    def uneven_room(self) -> Uneven:
        """Room for what else happens in an uneven game."""
        return new_uneven(*self.uneven_tables)

    @cached_property
    def own_gaps(self) -> Floats:
        """The gaps of every agent's own arms, by phase, agent and arm."""
        return gaps_by_phase(self.game)

    def tally(self) -> Tally:
        """Return what happened, by agent and arm, as a copy."""
        return replace(tally_of(self.table, self.outcome, self.uneven), effects=self.effects)

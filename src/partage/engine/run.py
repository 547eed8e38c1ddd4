"""One run, laid out for a kernel: the game, its key and orders, and room for what happens."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from partage.engine.rewards import AGENT_ORDER, TIE_ORDER, permutation
from partage.engine.sharers import Sharers, sharers_in_order
from partage.engine.tally import Floats, GameTable, Ints, Outcome, Tally, new_outcome, tally_of


@dataclass
class Run:
    """One run of a game. Kernels read it and fill `outcome` and `curve`.

    The runs of one game use the same object one after the other (`start`), so callers must copy what they want to
    keep.

    Attributes
    ----------
    table
        The game as arrays.
    checkpoints
        The steps up to which the overall regret is recorded.
    curve
        The overall regret up to each checkpoint.
    outcome
        Pulls, broadcasts and eliminations.
    key
        Two words that determine all randomness of the run.
    tie_order
        The arms in the order in which ties are broken.
    order
        Which agent acts at each place of a step.
    """

    table: GameTable
    checkpoints: Ints
    curve: Floats = field(init=False)
    outcome: Outcome = field(init=False)
    key: tuple[np.uint64, np.uint64] = field(init=False)
    tie_order: Ints = field(init=False)
    order: Ints = field(init=False)
    _sharers: Sharers | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.curve = np.zeros(len(self.checkpoints))
        self.outcome = new_outcome(self.table)
        self.order = np.arange(self.table.agents)

    def start(self, key: NDArray[np.uint64]) -> None:
        """Start the run with this key."""
        self.key = key[0], key[1]
        self.tie_order = permutation(*self.key, TIE_ORDER, self.table.arms)
        if self.table.shuffled:
            self.order = permutation(*self.key, AGENT_ORDER, self.table.agents)
            self._sharers = None

    @property
    def sharers(self) -> Sharers:
        """Who shares each arm, in the order in which agents act."""
        if self._sharers is None:
            table = self.table
            self._sharers = sharers_in_order(table.agents, table.arms, table.starts, table.shared, self.order)
        assert self._sharers is not None
        return self._sharers

    def tally(self) -> Tally:
        """Return what happened, by agent and arm, as a copy."""
        return tally_of(self.table, self.outcome)

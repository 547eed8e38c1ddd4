"""Trials: runs that are not of one rule on one game, such as those with liars. A function plays them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from partage.simulate.fold import Folded, new_folded


@dataclass(frozen=True)
class Trial:
    """Runs that a function of yours plays, and the names of the figures that it returns.

    Parameters
    ----------
    name
        Its name in tables.
    figures
        The names of the figures.
    play
        Plays one run, given the seed and the number of the run, and returns one value per figure. It must give the
        same values whenever it is called, in any process.
    most_runs
        The largest number of runs, if runs take long; None for no limit.
    work
        Roughly how long a run takes, in broadcasts.
    seed
        The seed. Whoever plays a study sets it.

    >>> coin = Trial("coin", ("heads",), lambda seed, run: [float((seed + run) % 2)])
    >>> coin.played(0, 3).figures.tolist()
    [[0.0], [1.0], [0.0]]
    """

    name: str
    figures: tuple[str, ...]
    play: Callable[[int, int], Sequence[float]]
    most_runs: int | None = None
    work: float = 10**6
    seed: int = 0

    def played(self, first: int, last: int) -> Folded:
        """Play runs `first` to `last - 1`."""
        rows = [[float(value) for value in self.play(self.seed, run)] for run in range(first, last)]
        return new_folded(last - first, 0, 0, 0)._replace(figures=np.array(rows).reshape(-1, len(self.figures)))

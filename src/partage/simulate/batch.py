"""A batch of games, played one after the other: only sums over the runs of each game are returned."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.simulate.chunk import Task, play_chunk


class Sums(NamedTuple):
    """Figures of one game, summed up over runs.

    Attributes
    ----------
    runs
        How many runs there were.
    means
        The mean of each figure; nan if it does not apply.
    squares
        The sum of squared differences from the mean.
    error
        Why the game could not be played; None if it was.
    """

    runs: int
    means: NDArray[np.float64]
    squares: NDArray[np.float64]
    error: str | None = None

    @classmethod
    def of(cls, figures: NDArray[np.float64]) -> "Sums":
        """Sum up figures, one row per run.

        >>> Sums.of(np.array([[1.0], [3.0]])).squares.tolist()
        [2.0]
        """
        means = figures.mean(axis=0)
        return cls(len(figures), means, ((figures - means) ** 2).sum(axis=0))

    def with_more(self, other: "Sums") -> "Sums":
        """Return the sums of these runs and of others (Chan, Golub and LeVeque 1979)."""
        if self.error or other.error:
            return self if self.error else other
        runs, apart = self.runs + other.runs, other.means - self.means
        means = self.means + apart * (other.runs / runs)
        return Sums(runs, means, self.squares + other.squares + apart**2 * (self.runs * other.runs / runs))


@dataclass(frozen=True)
class Batch:
    """Tasks that are played together, because each of them alone is too short to be sent somewhere."""

    tasks: tuple[Task, ...]

    def played(self, first: int, last: int) -> list[Sums]:
        """Play runs `first` to `last - 1` of every task. A task that fails does not keep others from being played."""
        return [_played(task, first, last) for task in self.tasks]


def _played(task: Task, first: int, last: int) -> Sums:
    try:
        return Sums.of(play_chunk(task, first, last).figures)
    except Exception as error:  # a rule of one's own may raise anything
        return Sums(0, np.zeros(0), np.zeros(0), f"{type(error).__name__}: {error}")

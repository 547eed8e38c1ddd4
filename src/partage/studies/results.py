"""The results of a study, and what claims measure on them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from partage.simulate.fold import FIGURES
from partage.simulate.result import Estimate, Result
from partage.studies.study import TWO_UCB, Study

Runs = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Played:
    """The results of a study: one `Result` for each line and place on the axis.

    The methods take the last place and the first line by default.
    """

    study: Study
    runs: int
    seed: int
    seconds: float  # of play, over all workers; work that several studies need counts for each
    results: Mapping[tuple[str, int], Result] = field(repr=False)
    alones: Mapping[tuple[str, int], Result] = field(repr=False)
    trials: Mapping[str, Runs] = field(repr=False, default_factory=dict)  # a row per run, a column per figure

    @property
    def first(self) -> int:
        """The first place on the axis."""
        return self.study.values[0]

    @property
    def last(self) -> int:
        """The last place on the axis."""
        return self.study.values[-1]

    def result(self, at: int | None = None, line: str | None = None) -> Result:
        """Return the result of one line at one place."""
        return self.results[self._line(line), self.last if at is None else at]

    def alone(self, at: int | None = None, line: str | None = None) -> Result:
        """Return the result of 2-UCB alone on the arms of one line at one place."""
        return self.alones[self._line(line), self.last if at is None else at]

    def by_run(self, figure: str, at: int | None = None, line: str | None = None) -> Runs:
        """Return a figure of merit of each run ("two_ucb_regret" for 2-UCB alone)."""
        if figure == TWO_UCB:
            return self.alone(at, line).folded.figures[:, 0]
        return self.result(at, line).folded.figures[:, FIGURES.index(figure)]

    def of_trial(self, name: str, figure: str) -> Runs:
        """Return a figure of each run of a trial."""
        (trial,) = (each for each in self.study.trials if each.name == name)
        return self.trials[name][:, trial.figures.index(figure)]

    def along(self, figure: str, line: str | None = None) -> list[Estimate]:
        """Return a figure of merit at each place of the axis; nan if the line is not played there."""
        name = self._line(line)
        return [
            Estimate.of(self.by_run(figure, at, line)) if (name, at) in self.results else Estimate(float("nan"), None)
            for at in self.study.values
        ]

    def over_time(self, figure: str, line: str | None = None) -> list[Estimate]:
        """Return the overall or average regret, or that of 2-UCB alone, up to each checkpoint, at the last place."""
        if figure == TWO_UCB:
            return self.alone(None, line).curve
        share = self.result(None, line).game.agents if figure == "average_regret" else 1
        return [Estimate.of(column / share) for column in self.result(None, line).folded.curves.T]

    # --- what claims measure ----------------------------------------------------------------------------------

    def growth(self, figure: str, line: str | None = None) -> Estimate:
        """Return how many times as large a figure is at the last place as at the first."""
        return ratio(self.by_run(figure, self.last, line), self.by_run(figure, self.first, line))

    def largest_step(self, figure: str, line: str | None = None) -> Estimate:
        """Return the largest ratio of a figure to its value at the place before: below 1 if it always falls."""
        return largest(
            ratio(self.by_run(figure, after, line), self.by_run(figure, before, line))
            for before, after in pairwise(self.study.values)
        )

    def against_two_ucb(self, figure: str, at: int | None = None, line: str | None = None) -> Estimate:
        """Return how many times the regret of 2-UCB alone a figure is."""
        return ratio(self.by_run(figure, at, line), self.by_run(TWO_UCB, at, line))

    def rationality(self, at: int, line: str | None = None) -> Estimate:
        """Return the highest mean incentive regret of an agent, as a multiple of the regret of 2-UCB alone.

        Individual rationality holds in expectation if this is at most 1.
        """
        result, alone = self.result(at, line), self.alone(at, line).overall_regret
        worst = result.incentive_regret(result.worst_agent)
        return quotient(worst, alone)

    def _line(self, line: str | None) -> str:
        return self.study.lines[0].name if line is None else line


def ratio(above: Runs, below: Runs) -> Estimate:
    """Estimate mean(above) / mean(below) from values of the same runs (delta method).

    >>> import numpy as np
    >>> ratio(np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0]))
    Estimate(mean=2.0, stderr=0.0)
    """
    mean = float(np.mean(above) / np.mean(below))
    stderr = Estimate.of(above - mean * below).stderr
    return Estimate(mean, None if stderr is None else abs(stderr / float(np.mean(below))))


def quotient(above: Estimate, below: Estimate) -> Estimate:
    """Estimate the ratio of two means of independent runs (delta method)."""
    mean = above.mean / below.mean
    if above.stderr is None or below.stderr is None:
        return Estimate(mean, None)
    return Estimate(mean, float(np.hypot(above.stderr, mean * below.stderr)) / abs(below.mean))


def largest(estimates: Iterable[Estimate]) -> Estimate:
    """Return the estimate with the highest mean."""
    return max(estimates, key=lambda estimate: estimate.mean)


def smallest(estimates: Iterable[Estimate]) -> Estimate:
    """Return the estimate with the lowest mean."""
    return min(estimates, key=lambda estimate: estimate.mean)


def crossing(played: Played, figure: str, line: str | None = None) -> Estimate:
    """Estimate where a figure crosses 0 between two places of the axis, by linear interpolation.

    Nan if it does not cross.
    """
    for low, high in pairwise(played.study.values):
        before, after = played.by_run(figure, low, line), played.by_run(figure, high, line)
        if np.mean(before) <= 0 < np.mean(after):
            way = ratio(-before, after - before)
            return Estimate(low + way.mean * (high - low), None if way.stderr is None else way.stderr * (high - low))
    return Estimate(float("nan"), None)

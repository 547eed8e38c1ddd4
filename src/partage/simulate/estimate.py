"""`Estimate`: a mean over runs and its standard error."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

NOISE = 1e-12  # a mean or an error that is smaller than this, relative to what it is computed from, is rounding


class Estimate(NamedTuple):
    """A mean over runs and its standard error (None for a single run).

    As text, the error has two digits and the mean as many decimals as the error.

    >>> print(Estimate(1234.5, 6.78))
    1,234.5 ± 6.8
    """

    mean: float
    stderr: float | None

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> "Estimate":
        """Return the estimate from one value per run."""
        stderr = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
        return cls(float(values.mean()), stderr)

    @classmethod
    def of_sums(cls, total: float, squares: float, runs: int) -> "Estimate":
        """Return the estimate from the sum over runs and the sum of squares."""
        mean = total / runs
        if runs == 1:
            return cls(float(mean), None)
        variance = max(0.0, (squares - runs * mean * mean) / (runs - 1))
        return cls(float(mean), math.sqrt(variance / runs))

    def __sub__(self, other: "Estimate") -> "Estimate":
        """Return the difference of two independent estimates."""
        if self.stderr is None or other.stderr is None:
            return Estimate(self.mean - other.mean, None)
        return Estimate(self.mean - other.mean, math.hypot(self.stderr, other.stderr))

    def times(self, factor: float) -> "Estimate":
        """Return the estimate of so many times as much.

        >>> Estimate(2.0, 0.5).times(3)
        Estimate(mean=6.0, stderr=1.5)
        """
        return Estimate(factor * self.mean, None if self.stderr is None else abs(factor) * self.stderr)

    def __str__(self) -> str:
        mean, error = self.cells()
        return mean if error in ("–", "0") else f"{mean} ± {error}"

    def cells(self, scale: float = 0.0) -> tuple[str, str]:
        """Return the mean and its standard error as text: the error with two digits, the mean with as many decimals.

        What is computed from numbers as large as `scale` and is as small as their rounding error is 0.

        >>> Estimate(-3e-11, 2e-11).cells(scale=1e4), Estimate(0.5, 0.0).cells(), Estimate(7.0, None).cells()
        (('0', '0'), ('0.5', '0'), ('7', '–'))
        """
        mean, error = self
        if abs(mean) + (error or 0.0) < max(1e-9, NOISE * scale):
            return "0", "–" if error is None else "0"
        if not error or not math.isfinite(error) or error < max(NOISE * abs(mean), NOISE * scale):
            return plain(mean), "–" if error is None else "0"
        digits = min(max(0, 1 - math.floor(math.log10(error))), 12)
        shown = f"{mean:,.{digits}f}"
        return shown.removeprefix("-") if float(shown.replace(",", "")) == 0 else shown, f"{error:,.{digits}f}"


def percent(share: float) -> str:
    """Return a share of runs in percent, to three digits, or more where it would otherwise read 100 without being it.

    >>> percent(0.5), percent(0.9875), percent(0.99999), percent(1), percent(0.0002)
    ('50%', '98.8%', '99.999%', '100%', '0.02%')
    """
    digits = 3
    while share < 1 and float(f"{100 * share:.{digits}g}") == 100:
        digits += 1
    return f"{100 * share:.{digits}g}%"


def plain(value: float | str) -> str:
    """Return a number without an error: whole numbers whole, others to six digits.

    >>> plain(30), plain(0.123456789), plain(float("inf"))
    ('30', '0.123457', 'inf')
    """
    if isinstance(value, str):
        return value
    if math.isinf(value):
        return "inf"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1e6 else f"{value:,.6g}"


def counted(number: int, word: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "run"), counted(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"

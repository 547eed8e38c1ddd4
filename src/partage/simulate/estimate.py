"""`Estimate`: a mean over runs and its standard error."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Estimate(NamedTuple):
    """A mean over runs and its standard error (None for a single run).

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

    def __str__(self) -> str:
        return f"{self.mean:,.6g}" if self.stderr is None else f"{self.mean:,.6g} ± {self.stderr:.2g}"

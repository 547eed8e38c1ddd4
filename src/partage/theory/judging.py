"""How promises are judged.

- A bound on an expectation: by the mean over runs and 3 standard errors to either side.
- A bound given the good event E (or E', for 2-UCB): in each run in which the event held.
- A probability: by its frequency, with the exact binomial interval of 99 %.

A promise whose premise is not met is not applicable; what was measured is still shown.
"""

import math
from dataclasses import replace

import numpy as np

from partage.simulate.result import Estimate
from partage.theory.audit_row import HOLDS, NO_VERDICT, NOT_APPLICABLE, VIOLATED, AuditRow, number
from partage.theory.measure import Bools, Floats

STANDARD_ERRORS = 3.0
CONFIDENCE = 0.99


def judge_mean(row: AuditRow, values: Floats, limits: Floats) -> AuditRow:
    """Judge a bound on an expectation: compare the mean of value / bound with 1."""
    if len(values) == 0:
        return replace(row, note="E held in no run.")
    ratio, value = Estimate.of(values / limits), Estimate.of(values)
    limit = float(limits.mean())
    row = replace(
        row,
        bound=f"≤ {number(limit)}",
        measured=estimate(value),
        slack=1 / ratio.mean if ratio.mean > 0 else None,
        violations=int(np.sum(values > limits)),
        runs=len(values),
        bound_value=limit,
        measured_value=value.mean,
    )
    if ratio.stderr is None or value.stderr is None:
        return replace(row, note="A single run has no standard error.")
    low, high = (ratio.mean + sign * STANDARD_ERRORS * ratio.stderr for sign in (-1, 1))
    spread = STANDARD_ERRORS * value.stderr
    row = replace(row, low=value.mean - spread, high=value.mean + spread)
    if low > 1:
        return replace(row, verdict=VIOLATED)
    if high > 1:
        return replace(row, note="The mean is within 3 standard errors of the bound.")
    return replace(row, verdict=HOLDS)


def judge_each(
    row: AuditRow, slack: Floats, held: Bools, event: str = "E"
) -> tuple[AuditRow, tuple[int, int] | None]:
    """Judge a bound in every run in which an event held.

    Parameters
    ----------
    slack
        By run and arm: the factor by which the bound holds, so below 1 it is violated; nan if the arm has no bound.
    held
        In which runs the event held.

    Returns
    -------
    The row, and the run and arm with the least slack.
    """
    runs = np.flatnonzero(held)
    if len(runs) == 0:
        return replace(row, note=f"{event} held in no run."), None
    given = slack[runs]
    violated = np.any(given < 1, axis=1)
    at, arm = np.unravel_index(np.nanargmin(given), given.shape)
    row = replace(
        row,
        slack=float(given[at, arm]) if math.isfinite(given[at, arm]) else None,
        violations=int(violated.sum()),
        runs=len(runs),
        verdict=VIOLATED if violated.any() else HOLDS,
    )
    return row, (int(runs[at]), int(arm))


def judge_probability(row: AuditRow, failed: int, runs: int, limit: float) -> AuditRow:
    """Judge a bound on a probability: compare the interval of the frequency with it."""
    low, high = binomial_interval(failed, runs)
    row = replace(
        row,
        bound=f"≤ {number(limit)}",
        measured=f"{number(failed / runs)} ({number(low)} to {number(high)})",
        slack=limit * runs / failed if failed else None,
        violations=failed,
        runs=runs,
        bound_value=limit,
        measured_value=failed / runs,
        low=low,
        high=high,
    )
    if low > limit:
        return replace(row, verdict=VIOLATED)
    if limit >= 1:
        return replace(row, note="A bound of 1 or more says nothing about a probability.")
    if high > limit:
        enough = math.ceil(math.log((1 - CONFIDENCE) / 2) / math.log1p(-limit))
        too_few = f"No failure was seen, but it takes {enough:,} runs without one to confirm so small a bound."
        return replace(row, note="The bound is within the interval." if failed else too_few)
    return replace(row, verdict=HOLDS)


def under(row: AuditRow, premise: str, met: bool) -> AuditRow:
    """Put a judged row under its premise. If it is not met, the promise is not applicable, whatever was measured."""
    row = replace(row, premise=premise, premise_met=met)
    if met:
        return row
    measured = {
        HOLDS: "it holds nevertheless",
        VIOLATED: "it does not hold",
        NO_VERDICT: "there are too few runs to tell",
    }
    return replace(row, verdict=NOT_APPLICABLE, note=f"Not promised here, and {measured[row.verdict]}.")


def not_applicable(row: AuditRow, premise: str, why: str) -> AuditRow:
    """Return a row for a promise that is not about these runs."""
    return replace(row, premise=premise, premise_met=False, verdict=NOT_APPLICABLE, note=why)


def estimate(value: Estimate) -> str:
    """Write an estimate with two digits of its standard error.

    >>> estimate(Estimate(742.163, 2.5))
    '742.2 ± 2.5'
    """
    if value.stderr is None or value.stderr == 0:
        return number(value.mean)
    digits = min(max(0, 1 - math.floor(math.log10(value.stderr))), 8)
    return f"{value.mean:,.{digits}f} ± {value.stderr:,.{digits}f}"


# --- the interval of a frequency --------------------------------------------------------------------------------


def binomial_interval(failed: int, runs: int) -> tuple[float, float]:
    """Return the exact interval (Clopper and Pearson) of a probability, at a confidence of 99 %.

    >>> binomial_interval(0, 100)
    (0.0, 0.0516)
    """
    return _lowest(failed, runs), 1.0 - _lowest(runs - failed, runs)


def _lowest(failed: int, runs: int) -> float:
    """Return the probability p with which at least `failed` of the runs fail in 0.5 % of cases."""
    if failed == 0:
        return 0.0
    low, high = 0.0, failed / (runs + 1)
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _incomplete_beta(failed, runs - failed + 1, middle) < (1 - CONFIDENCE) / 2:
            low = middle
        else:
            high = middle
    return high


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) for 0 < x < (a + 1) / (a + b + 2).

    Lentz's evaluation of its continued fraction (Press et al., Numerical Recipes, section 6.4).
    """
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c = 1.0
    d = 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    fraction = d
    for m in range(1, 100_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / (1.0 + term * d)
            c = 1.0 + term / c
            fraction *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return math.exp(log_front) * fraction / a

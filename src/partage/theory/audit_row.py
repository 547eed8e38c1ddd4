"""A row of the audit: the verdict on one promise of the paper, in words and numbers."""

import math
from dataclasses import dataclass

HOLDS, VIOLATED, NOT_APPLICABLE, NO_VERDICT = "holds", "violated", "not applicable", "no verdict"


@dataclass(frozen=True)
class AuditRow:
    """The verdict on one promise of the paper.

    Attributes
    ----------
    label, number, says
        The paper's LaTeX label, its number, and what it promises, in a few words.
    premise, premise_met
        What the promise needs, with numbers, and whether that is met; None if it needs nothing.
    bound, measured
        As text: a mean with its standard error, a frequency with its interval, anything else as the worst case over
        runs.
    slack
        The factor by which the bound holds; below 1 it is violated. None if there is no ratio.
    violations, runs
        In how many of these runs the bound was exceeded. A bound on an expectation is not judged by this.
    verdict
        "holds", "violated", "not applicable" or "no verdict".
    note
        An explanation, if one is needed.
    bound_value, measured_value, low, high
        The same as numbers, and the interval of the measured value, if it has one.
    """

    label: str
    number: str
    says: str
    premise: str
    premise_met: bool | None
    bound: str
    measured: str
    slack: float | None
    violations: int | None
    runs: int
    verdict: str
    note: str = ""
    bound_value: float | None = None
    measured_value: float | None = None
    low: float | None = None
    high: float | None = None


def number(value: float) -> str:
    """Write a number briefly: whole from 1,000 on, else to three digits.

    >>> number(139_123.4), number(0.05), number(2e-9), number(0)
    ('139,123', '0.05', '2e-09', '0')
    """
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"

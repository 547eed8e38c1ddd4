"""A row of the audit: one promise of the paper, judged, in words and numbers."""

import math
from dataclasses import dataclass

HOLDS, VIOLATED, NOT_APPLICABLE, NO_VERDICT = "holds", "violated", "not applicable", "no verdict"


@dataclass(frozen=True)
class AuditRow:
    """One promise of the paper, judged.

    Attributes
    ----------
    label, number, says
        The paper's LaTeX label, its number, and what it promises, in a few words.
    premise, premise_met
        What it needs, with numbers, and whether that is so; None where it needs nothing.
    bound, measured
        As text. A mean stands with its standard error, a frequency with its interval, everything else as the
        worst case over runs.
    slack
        How many times over the bound is kept: below 1 it is not. None where there is no ratio.
    violations, runs
        In how many of the runs looked at the bound was passed. A bound on an expectation is not judged by this.
    verdict
        "holds", "violated", "not applicable" or "no verdict".
    note
        Why, where that needs saying.
    bound_value, measured_value, low, high
        The same as numbers, and the interval of what was measured, where it has one.
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

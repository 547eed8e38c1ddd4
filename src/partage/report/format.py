"""Format numbers and estimates, the same in the terminal and in the report."""

import math

from partage.simulate.result import Estimate


def number(value: float) -> str:
    """Format a number with three significant digits; from 100 on, as a whole number.

    >>> number(3565.6), number(0.0042583), number(-4499.2)
    ('3,566', '0.00426', '-4,499')
    """
    if not math.isfinite(value):
        return str(value)
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def estimate(value: Estimate) -> str:
    """Format a mean and its standard error: the error with two digits, the mean with as many decimals as the error.

    >>> estimate(Estimate(3135.08, 20.4)), estimate(Estimate(1.0, 1e-16)), estimate(Estimate(0.0042583, 3.7e-05))
    ('3,135 ± 20', '1.00 ± 0', '0.004258 ± 0.000037')
    """
    mean, error = value
    if error is None or not math.isfinite(mean):
        return number(mean)
    if error <= 1e-9 * abs(mean) or abs(mean) + error < 1e-12:  # rounding error, not randomness
        return f"{number(mean if abs(mean) > 1e-12 else 0.0)} ± 0"
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{mean:,.{digits}f} ± {error:,.{digits}f}"


def measured(value: Estimate, percent: bool = False) -> str:
    """Format the measured value of a claim.

    >>> measured(Estimate(0.0042583, 3.7e-05), percent=True)
    '0.4258% ± 0.0037%'
    """
    if not percent:
        return estimate(value)
    stderr = None if value.stderr is None else 100 * value.stderr
    return estimate(Estimate(100 * value.mean, stderr)).replace(" ±", "% ±") + "%"


def seconds(value: float) -> str:
    """Format a duration.

    >>> seconds(0.42), seconds(41.7)
    ('0.4 s', '42 s')
    """
    return f"{value:.1f} s" if value < 9.95 else f"{value:,.0f} s"

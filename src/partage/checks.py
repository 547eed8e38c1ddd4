"""Checks of arguments: each returns the value in its proper type, or says in one sentence what is allowed."""

import math
import operator
from collections.abc import Sequence

from partage.errors import InputError


def count(what: str, value: object, at_least: int = 1) -> int:
    """Return `value` as a whole number of at least `at_least`.

    >>> count("The number of runs", 1e3)
    1000
    """
    allowed = f"a whole number of at least {at_least:,}"
    if isinstance(value, bool):
        raise InputError(f"{what} is {value!r}; it must be {allowed}.")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{what} is {value!r}; it must be {allowed}.") from None
    if number < at_least:
        raise InputError(f"{what} is {number}; it must be {allowed}.")
    return number


def number_from(what: str, value: object, low: float, *, finite: bool = True) -> float:
    """Return `value` as a number of at least `low`.

    >>> number_from("The lead", 3, low=1)
    3.0
    """
    allowed = f"a finite number of at least {low:g}" if finite else f"a number of at least {low:g}, or inf"
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= low:
        raise InputError(f"{what} is {value!r}; it must be {allowed}.")
    if finite and math.isinf(value):
        raise InputError(f"{what} is {value!r}; it must be {allowed}.")
    return float(value)


def number_between(what: str, value: object, low: float, high: float) -> float:
    """Return `value` as a number from `low` to `high`.

    >>> number_between("The offset", 0, low=-1, high=1)
    0.0
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise InputError(f"{what} is {value!r}; it must be a number between {low:g} and {high:g}.")
    return float(value)


def positive(what: str, value: object) -> float:
    """Return `value` as a finite number above 0.

    >>> positive("The pace", 3)
    3.0
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise InputError(f"{what} is {value!r}; it must be a finite number above 0.")
    return float(value)


def one_of(what: str, value: object, names: Sequence[str]) -> str:
    """Return `value` if it is one of these names.

    >>> one_of("The evidence", "betting", ("likelihood", "betting"))
    'betting'
    """
    if not isinstance(value, str) or value not in names:
        raise InputError(f"{what} is {value!r}; it must be {', '.join(names[:-1])} or {names[-1]}.")
    return value

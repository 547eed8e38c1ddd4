"""The unit of rewards: how rewards in [0, 1] relate to what the user measures."""

import math
from dataclasses import dataclass

from partage.errors import InputError


@dataclass(frozen=True)
class Unit:
    """What a reward of 0 and a reward of 1 are in the user's unit.

    Parameters
    ----------
    worst, best
        The measured value that is a reward of 0, and the one that is a reward of 1. If less is better, such as
        minutes of delay, `worst` is the larger one.
    name
        The name of the unit, e.g. "minutes"; it may be empty.

    >>> delay = Unit(worst=60, best=0, name="minutes")
    >>> delay.reward(15), delay.value(0.75), delay.amount(0.5)
    (0.75, 15.0, 30.0)
    """

    worst: float
    best: float
    name: str = ""

    def __post_init__(self) -> None:
        for what in ("worst", "best"):
            value = getattr(self, what)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InputError(f"The {what} value of the unit is {value!r}; it must be a finite number.")
            object.__setattr__(self, what, float(value))
        if self.worst == self.best or not math.isfinite(self.best - self.worst):
            raise InputError(
                f"The worst value of the unit is {self.worst!r} and the best is {self.best!r}; they must differ, and "
                "not by more than a float holds."
            )
        if not isinstance(self.name, str):
            raise InputError(f"The name of the unit is {self.name!r}; it must be a text.")

    def reward(self, value: float) -> float:
        """Return the reward of a measured value; it is in [0, 1] if the value is between worst and best."""
        return (value - self.worst) / (self.best - self.worst)

    def value(self, reward: float) -> float:
        """Return the measured value of a reward, such as a mean."""
        return self.worst + reward * (self.best - self.worst)

    def amount(self, difference: float) -> float:
        """Return a difference of rewards, such as regret or a payment, in this unit."""
        return difference * abs(self.best - self.worst)

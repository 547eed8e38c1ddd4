"""What an agent gets and gives: a pull, what came of many, and the checks of rewards and names."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from partage.errors import InputError


class Pull(NamedTuple):
    """One pull: the arm, and whether its reward is shared.

    Attributes
    ----------
    arm
        The name of the arm to pull.
    share
        Whether this is a claim, whose reward `tell` sends. Any other reward stays here.
    hidden
        Whether nobody shares the arm: the pull is her own affair, and not even counted by the controller.
    version
        The version of the board that it was decided on.
    number
        The claim's number at the controller; None for other pulls.
    """

    arm: str
    share: bool
    hidden: bool
    version: int
    number: int | None


@dataclass(slots=True)
class Played:
    """What `play` did: pulls of each arm, those it explored with, those it committed with, and those nobody shares.

    `ended` says why it ended before its steps were done, and is None otherwise.
    """

    pulls: dict[str, int] = field(default_factory=dict)
    explore: int = 0
    commit: int = 0
    hidden: int = 0
    ended: str | None = None

    def add(self, pull: Pull) -> None:
        """Count a pull."""
        self.pulls[pull.arm] = self.pulls.get(pull.arm, 0) + 1
        if pull.share:
            self.explore += 1
        elif pull.hidden:
            self.hidden += 1
        else:
            self.commit += 1


def listed(shares: Collection[str]) -> list[str]:
    """Return the names of arms as a list; a text alone is a collection of letters, and a mistake."""
    if isinstance(shares, str):
        raise InputError("shares must be a list of names of arms, and a single text was given; put it in a list.")
    return list(shares)


def checked_reward(reward: float) -> float:
    """Return a reward in [0, 1]."""
    if not 0 <= reward <= 1:  # NaN is not
        raise InputError("The reward must be a number from 0 to 1.")
    return float(reward)

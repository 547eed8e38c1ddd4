"""What an agent receives and returns: a pull, the summary of many, and checks of rewards and names."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from partage.errors import InputError


class Pull(NamedTuple):
    """One pull: which arm, and whether its reward is shared.

    Attributes
    ----------
    arm
        The name of the arm to pull.
    share
        Whether the pull is a claim, whose reward `tell` sends. Every other reward stays in this process.
    hidden
        Whether nobody shares the arm. The controller neither learns of such a pull nor counts it.
    version
        The version of the board that the pull was decided on.
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
    """What `play` did.

    Attributes
    ----------
    pulls
        Pulls of each arm.
    explore, commit, hidden
        How many pulls explored, how many committed to the leader, and how many went to arms that nobody shares.
    ended
        Why play ended before its steps were done; None otherwise.
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


def checked_names(what: str, names: Collection[str]) -> list[str]:
    """Return names of arms as a list; a single string is refused, since it would be a list of letters."""
    if isinstance(names, str):
        raise InputError(f"{what} must be a list of arm names, not a single string; put it in a list.")
    if not isinstance(names, Iterable):
        raise InputError(f"{what} must be a list of arm names, not {names!r}.")
    return list(names)


def checked_history(rewards: Collection[float]) -> list[float]:
    """Return past rewards as a list of numbers in [0, 1]."""
    if isinstance(rewards, str) or not isinstance(rewards, Iterable):
        raise InputError("The past rewards must be a list of numbers from 0 to 1.")
    found = [checked_reward(reward) for reward in rewards]
    if not found:
        raise InputError("There are no past rewards to attach; the list must have at least one.")
    return found


def checked_reward(reward: float) -> float:
    """Return a reward in [0, 1]."""
    try:
        good = bool(0 <= reward <= 1)  # False for NaN too
    except (TypeError, ValueError):
        good = False
    if not good:
        raise InputError("The reward must be a number from 0 to 1.")
    return float(reward)

"""What makes an agent differ from the paper's: its pace, its horizon, how late it reports, what arms pay it.

Time is measured in steps. Pull number k of an agent, counted from 1, happens at time `joins - 1 + k / pace`; agents
that pull at the same time act in their order. The reward of an explore pull is told `delay` steps later, before any
pull at that time. An agent has at most one report out: until that is told, it commits.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, get_args

from partage.arms import Arm, Bernoulli
from partage.checks import count, number_between, number_from, one_of, positive
from partage.compiled import shared
from partage.errors import InputError

KINDS = ("constant", "uniform", "exponential")
OF = ("all", "successes", "failures")


@dataclass(frozen=True)
class Delay:
    """How many steps after the pull a reward is told.

    Parameters
    ----------
    kind
        "constant", "uniform" or "exponential".
    steps
        The delay, or its mean. A uniform one is between 0 and twice as much.
    of
        Which rewards are late: "all", "successes" (those above 1/2) or "failures" (the others).

    >>> Delay("exponential", 5).longest
    inf
    """

    kind: str = "constant"
    steps: float = 0.0
    of: str = "all"

    def __post_init__(self) -> None:
        one_of("The kind of delay", self.kind, KINDS)
        one_of("What a delay is of", self.of, OF)
        object.__setattr__(self, "steps", number_from("The delay", self.steps, low=0))

    @property
    def longest(self) -> float:
        """The longest delay that can happen, in steps."""
        if self.kind == "exponential" and self.steps:
            return math.inf
        return 2 * self.steps if self.kind == "uniform" else self.steps

    @property
    def depends_on_rewards(self) -> bool:
        """Whether some rewards are late and others are not: the guarantees of rules assume that this is not so."""
        return self.of != "all" and self.steps > 0

    def drawn(self, reward: float, uniform: float) -> float:
        """Return the delay of a reward, given a uniform number from [0, 1)."""
        return drawn_delay(KINDS.index(self.kind), OF.index(self.of), self.steps, reward, uniform)


@shared
def drawn_delay(kind: int, of: int, steps: float, reward: float, uniform: float) -> float:
    """Return the delay of a reward; kind and `of` are numbers of `KINDS` and `OF`."""
    if (of == 1 and reward <= 0.5) or (of == 2 and reward > 0.5):
        return 0.0
    if kind == 1:
        return 2.0 * steps * uniform
    return -steps * math.log(1.0 - uniform) if kind == 2 else steps


@dataclass(frozen=True)
class Traits:
    """What makes one agent differ. The defaults are the paper's agent.

    Parameters
    ----------
    pace
        Pulls per step, above 0.
    horizon
        Pulls of this agent; by default the game's horizon.
    delay
        Steps from an explore pull to its report: a number, or a `Delay`.
    offset
        Added to the mean of every Bernoulli arm.
    means
        The means of Bernoulli arms of its own, one per arm.
    rewards
        Arms of its own, one per arm of the game.
    joins
        The step at which the agent joins.
    leaves
        The step at which it has left: its last pull is in the step before. None if it stays.

    >>> Traits(pace=0.5).time_of(3)
    6.0
    """

    pace: float = 1.0
    horizon: int | None = None
    delay: float | Delay = 0.0
    offset: float = 0.0
    means: Sequence[float] | None = None
    rewards: Sequence[Arm] | None = None
    joins: int = 1
    leaves: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "pace", positive("The pace", self.pace))
        if self.horizon is not None:
            object.__setattr__(self, "horizon", count("The horizon of an agent", self.horizon))
        if not isinstance(self.delay, Delay):
            object.__setattr__(self, "delay", Delay("constant", self.delay))
        object.__setattr__(self, "offset", number_between("The offset", self.offset, -1, 1))
        if self.means is not None:
            object.__setattr__(self, "means", tuple(_listed("The means of an agent", self.means)))
        of_means = None if self.means is None else tuple(Bernoulli(mean) for mean in self.means)
        given = self.rewards is not None and self.rewards != of_means  # a copy has both means and rewards
        if sum((bool(self.offset), of_means is not None, given)) > 1:
            raise InputError("An agent has several of offset, means and rewards; it must be at most one of them.")
        if of_means is not None:
            object.__setattr__(self, "rewards", of_means)
        elif self.rewards is not None:
            object.__setattr__(self, "rewards", tuple(_listed("The rewards of an agent", self.rewards)))
            for arm in self.rewards:
                if not isinstance(arm, get_args(Arm)):
                    raise InputError(f"A reward of an agent is {arm!r}; it must be an arm, e.g. partage.Beta(2, 6).")
        object.__setattr__(self, "joins", count("The step at which an agent joins", self.joins))
        if self.leaves is not None:
            leaves = count("The step at which an agent leaves", self.leaves)
            if leaves <= self.joins:
                raise InputError(
                    f"An agent joins at step {self.joins:,} and leaves at step {leaves:,}; it must leave later."
                )
            object.__setattr__(self, "leaves", leaves)

    @property
    def late(self) -> Delay:
        """The delay of its reports."""
        assert isinstance(self.delay, Delay)
        return self.delay

    def time_of(self, pull: int) -> float:
        """Return when the agent makes this pull, counted from 1."""
        return self.joins - 1 + pull / self.pace

    def pulls(self, horizon: int) -> int:
        """Return how many pulls the agent makes in a game with this horizon, unless all end before."""
        most = self.horizon or horizon
        if self.leaves is None:
            return most
        made = min(most, math.floor((self.leaves - self.joins) * self.pace))
        while made < most and self.time_of(made + 1) <= self.leaves - 1:
            made += 1
        while made > 0 and self.time_of(made) > self.leaves - 1:
            made -= 1
        return made


class Change(NamedTuple):
    """A change of an arm: from the step `step` on, arm number `arm` pays as `to` does."""

    step: int
    arm: int
    to: Arm


PAPERS = Traits()
"""The traits of the paper's agents."""


def _listed(what: str, values: object) -> list[object]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"{what} are {values!r}; they must be a list with one entry per arm.")
    return list(values)

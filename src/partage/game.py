"""The game (LSI-MAMAB): the arms, who shares which of them, and the horizon."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from partage.arms import Arm, RandomBernoulli
from partage.checks import count
from partage.errors import InputError
from partage.sharing import RandomSharing, Sharing


@dataclass(frozen=True)
class Game:
    """M agents pull the same N arms, T times each, and share only what they are willing to share.

    Parameters
    ----------
    arms
        The arms, e.g. `partage.bernoulli([0.9, 0.8])`. Rewards are in [0, 1].
    sharing
        Who shares which arms, e.g. `partage.Sharing.round_robin(agents=30, arms=2)`.
    horizon
        Pulls per agent (the paper's T), at least 2.
    agent_names
        Names of the agents, in the order in which they act; by default "agent 1" and so on.

    >>> from partage import Game, Sharing, bernoulli
    >>> game = Game(bernoulli([0.9, 0.8, 0.8]), Sharing.round_robin(agents=6, arms=3), horizon=1000)
    >>> game.gaps.round(3).tolist()
    [0.0, 0.1, 0.1]
    """

    arms: Sequence[Arm | RandomBernoulli]
    sharing: Sharing | RandomSharing
    horizon: int
    agent_names: Sequence[str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        arms = tuple(self.arms) if isinstance(self.arms, Iterable) else (self.arms,)
        if not arms:
            raise InputError("A game has no arms; it needs at least one.")
        for place, arm in enumerate(arms):
            if not isinstance(arm, (*get_args(Arm), RandomBernoulli)):
                raise InputError(f"Arm {place} is {arm!r}; it must be an arm such as partage.Bernoulli(0.5).")
        object.__setattr__(self, "arms", arms)
        if not isinstance(self.sharing, Sharing | RandomSharing):
            raise InputError(f"The sharing is {self.sharing!r}; it must be a partage.Sharing.")
        if self.sharing.arms != len(arms):
            raise InputError(f"The sharing is for {self.sharing.arms} arms; the game has {len(arms)}.")
        object.__setattr__(self, "horizon", check_size(self.agents, self.horizon))
        _unique("arm", self.arm_names)
        if self.agent_names is not None:
            listed = isinstance(self.agent_names, Iterable) and not isinstance(self.agent_names, str)
            names = tuple(self.agent_names) if listed else (self.agent_names,)
            if len(names) != self.agents:
                raise InputError(f"There are {len(names)} agent names for {self.agents} agents.")
            _unique("agent", names)
            object.__setattr__(self, "agent_names", names)

    @property
    def agents(self) -> int:
        """How many agents play (the paper's M)."""
        return self.sharing.agents

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """The expected reward of each arm (the paper's mu); nan if it is drawn for each run."""
        return np.array([arm.mean for arm in self.arms])

    @cached_property
    def gaps(self) -> NDArray[np.float64]:
        """The gap of each arm to the best (the paper's Delta)."""
        return np.max(self.means) - self.means

    @cached_property
    def arm_names(self) -> tuple[str, ...]:
        """Names of the arms; by default "arm 1" and so on."""
        return tuple(arm.name or f"arm {place}" for place, arm in enumerate(self.arms, start=1))

    def agent_name(self, agent: int) -> str:
        """Return the name of an agent, counted from 0."""
        at = self.checked_agent(agent)
        return self.agent_names[at] if self.agent_names else f"agent {at + 1}"

    def checked_agent(self, agent: object) -> int:
        """Return the number of an agent, if there is one: 0 to M - 1."""
        at = count("The agent", agent, at_least=0)
        if at >= self.agents:
            raise InputError(f"The agent is {at}; it must be at most {self.agents - 1}, as agents count from 0.")
        return at

    def fixed_arms(self) -> list[Arm]:
        """Return the arms of a game that has no random arms."""
        return [arm for arm in self.arms if not isinstance(arm, RandomBernoulli)]

    @property
    def random(self) -> bool:
        """Whether arms or sharing are drawn for each run. The order of agents does not count."""
        return isinstance(self.sharing, RandomSharing) or any(isinstance(arm, RandomBernoulli) for arm in self.arms)

    def with_sharing(self, sharing: Sharing | RandomSharing) -> "Game":
        """Return the same game with another sharing."""
        return replace(self, sharing=sharing)

    def drawn(self, generator: np.random.Generator) -> "Game":
        """Return the game of one run: itself, unless something in it is random."""
        if not self.random:
            return self
        arms = tuple(arm.drawn(generator) if isinstance(arm, RandomBernoulli) else arm for arm in self.arms)
        return replace(self, arms=arms, sharing=self.sharing.drawn(generator))

    def alone(self) -> "Game":
        """Return the game of a single agent on the same arms, which shares nothing."""
        return replace(self, sharing=Sharing.nothing(1, len(self.arms)), agent_names=None)


def check_size(agents: object, horizon: object) -> int:
    """Return the horizon, if the pulls of all agents together fit into 64 bits."""
    agents, horizon = count("The number of agents", agents), count("The horizon", horizon, at_least=2)
    longest = (2**63 - 1) // agents - 2  # two steps to spare, as the engine looks one ahead
    if horizon > longest:
        raise InputError(
            f"{agents:,} agents times a horizon of {horizon:,} exceeds 64 bits; "
            f"the product must be at most {2**63 - 1:,}."
        )
    return horizon


def _unique(what: str, names: Sequence[object]) -> None:
    seen = set()
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"The name of an {what} is {name!r}; it must be a string.")
        if name in seen:
            raise InputError(f"Two {what}s have the name {name!r}; names must differ.")
        seen.add(name)

"""The game (LSI-MAMAB): the arms, who shares which of them, and the horizon."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from partage.arms import Arm, Bernoulli, RandomBernoulli
from partage.checks import count, positive
from partage.errors import InputError
from partage.sharing import RandomSharing, Sharing
from partage.traits import PAPERS, Change, Traits
from partage.unit import Unit


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
    traits
        What makes each agent differ, one `partage.Traits` per agent; by default nothing does. Rules take the largest
        horizon of any agent for T.
    changes
        Changes of arms over time.
    claim_steps
        Steps after which an explore pull that was not told lapses: its agent may explore again, and other agents no
        longer wait for it. None: never. A late report still counts.
    unit
        What rewards of 0 and 1 are in your unit, e.g. `partage.Unit(worst=60, best=0, name="minutes")`. Tables and
        pictures of results are in it; numbers, such as `result.overall_regret`, are in units of reward.

    >>> from partage import Game, Sharing, bernoulli
    >>> game = Game(bernoulli([0.9, 0.8, 0.8]), Sharing.round_robin(agents=6, arms=3), horizon=1000)
    >>> game.gaps.round(3).tolist()
    [0.0, 0.1, 0.1]
    """

    arms: Sequence[Arm | RandomBernoulli]
    sharing: Sharing | RandomSharing
    horizon: int
    agent_names: Sequence[str] | None = field(default=None, repr=False)
    traits: Sequence[Traits] | None = field(default=None, repr=False)
    changes: Sequence[Change] = ()
    claim_steps: float | None = None
    unit: Unit | None = field(default=None, repr=False)

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
        if self.claim_steps is not None:
            object.__setattr__(self, "claim_steps", positive("claim_steps", self.claim_steps))
        if self.unit is not None and not isinstance(self.unit, Unit):
            raise InputError(f"The unit is {self.unit!r}; it must be a partage.Unit.")
        self._check_changes()
        self._check_traits()
        self._check_steps()

    def _check_changes(self) -> None:
        listed = isinstance(self.changes, Iterable) and all(isinstance(one, Change) for one in self.changes)
        if not listed:
            raise InputError(f"The changes are {self.changes!r}; they must be a list of partage.Change.")
        for step, arm, to in self.changes:
            count("The step of a change", step, at_least=2)
            if not isinstance(to, get_args(Arm)) or not 0 <= count("The arm of a change", arm, 0) < len(self.arms):
                raise InputError(
                    f"A change is {(step, arm, to)!r}; it must be a step, a number of an arm, and an arm."
                )
        ordered = sorted(self.changes, key=lambda change: change.step)
        if len({(step, arm) for step, arm, _ in ordered}) < len(ordered):
            raise InputError("An arm changes twice at the same step; it must change once.")
        object.__setattr__(self, "changes", tuple(ordered))

    def _check_traits(self) -> None:
        if self.traits is None:
            return
        traits = tuple(self.traits) if isinstance(self.traits, Iterable) else (self.traits,)
        if not all(isinstance(one, Traits) for one in traits):
            raise InputError(f"The traits are {self.traits!r}; they must be a list of partage.Traits.")
        if len(traits) != self.agents:
            raise InputError(f"There are traits of {len(traits)} agents; the game has {self.agents}.")
        object.__setattr__(self, "traits", None if all(one == PAPERS for one in traits) else traits)
        check_size(self.agents, self.longest)
        for agent, one in enumerate(traits):
            name = self.agent_name(agent)
            own = one.horizon or self.horizon
            if one.late.steps and one.late.steps >= own / one.pace:
                raise InputError(
                    f"The delay of {name} is {one.late.steps:g} steps and its {own:,} pulls take "
                    f"{own / one.pace:g}; the delay must be shorter."
                )
            if one.rewards is not None and len(one.rewards) != len(self.arms):
                what = "rewards" if one.means is None else "means"
                raise InputError(
                    f"The number of {what} of {name} is {len(one.rewards)}; it must be that of the arms, "
                    f"{len(self.arms)}."
                )
            if one.rewards is not None and self.changes:
                raise InputError(
                    f"Arms change, and {name} has rewards of its own; it must have an offset or nothing."
                )
            if one.offset:
                for arm, ends in self._means_over_time():
                    self._check_offset(name, one.offset, arm, ends)

    def _check_steps(self) -> None:
        """Refuse a change that no agent would see."""
        for step, arm, _ in self.changes[-1:]:
            if step > self.last_step:
                raise InputError(
                    f"The change of {self.arm_names[arm]} is at step {step:,}, and the last pull is at step "
                    f"{self.last_step:,}; it must not be later."
                )

    def _means_over_time(self) -> list[tuple[str, tuple[object, ...]]]:
        """Return the name of each arm, and every distribution that it has over time."""
        over_time: list[list[object]] = [[arm] for arm in self.arms]
        for _, arm, to in self.changes:
            over_time[arm].append(to)
        return [(name, tuple(all_of)) for name, all_of in zip(self.arm_names, over_time, strict=True)]

    def _check_offset(self, agent: str, offset: float, arm: str, over_time: Sequence[object]) -> None:
        for one in over_time:
            if isinstance(one, RandomBernoulli):
                low, high = one.low + offset, one.high + offset
            elif isinstance(one, Bernoulli):
                low = high = one.mean + offset
            else:
                raise InputError(
                    f"The offset of {agent} is {offset:g}, and {arm} is not a Bernoulli arm; give the agent rewards "
                    "of its own."
                )
            if low < 0 or high > 1:
                raise InputError(
                    f"With the offset {offset:g} of {agent}, the mean of {arm} is "
                    f"{low if low < 0 else high:.6g}; it must be between 0 and 1."
                )

    @property
    def uneven(self) -> bool:
        """Whether something differs from the paper's game: traits of agents, changes of arms, or lapses."""
        return self.traits is not None or bool(self.changes) or self.claim_steps is not None

    def traits_of(self, agent: int) -> Traits:
        """Return what makes an agent differ, counted from 0."""
        return PAPERS if self.traits is None else self.traits[agent]

    def horizon_of(self, agent: int) -> int:
        """Return the horizon of an agent, counted from 0."""
        return self.traits_of(agent).horizon or self.horizon

    @property
    def longest(self) -> int:
        """The largest horizon of any agent, which rules take for T."""
        return max(one.horizon or self.horizon for one in self.traits) if self.traits else self.horizon

    @property
    def last_step(self) -> int:
        """The step of the last pull of all."""
        return math.ceil(self.end)

    @cached_property
    def end(self) -> float:
        """The time of the last pull of all, in steps; 0 if nobody makes any."""
        made = ((one, one.pulls(self.horizon)) for one in dict.fromkeys(self.traits or (PAPERS,)))
        return max((one.time_of(pulls) for one, pulls in made if pulls), default=0.0)

    @cached_property
    def phases(self) -> tuple[int, ...]:
        """The steps from which arms pay the same until the next of these steps; the first is 1."""
        return (1, *sorted({change.step for change in self.changes}))

    def arms_of(self, agent: int, phase: int = 0) -> list[Arm]:
        """Return the arms as they pay an agent in a phase, both counted from 0; nothing may be left to draw."""
        return self.arms_for(self.traits_of(agent), phase)

    def arms_for(self, own: Traits, phase: int = 0) -> list[Arm]:
        """Return the arms as they pay an agent with these traits in a phase, counted from 0."""
        if own.rewards is not None:
            return list(own.rewards)
        arms = self.fixed_arms()
        for step, arm, to in self.changes:
            if step <= self.phases[phase]:
                arms[arm] = to
        return [_shifted(arm, own.offset) for arm in arms]

    def gaps_of(self, agent: int, phase: int = 0) -> NDArray[np.float64]:
        """Return the gap of each arm to the one that is best for an agent in a phase, both counted from 0."""
        means = np.array([arm.mean for arm in self.arms_of(agent, phase)])
        gaps: NDArray[np.float64] = np.max(means) - means
        return gaps

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
        """Return the number of an agent, if there is one: 0 to M - 1. It may be given by its name."""
        if isinstance(agent, str):
            for number in range(self.agents):
                if self.agent_name(number) == agent:
                    return number
            raise InputError(
                f"The agent is {agent!r}; it must be the name of an agent, such as {self.agent_name(0)!r}."
            )
        at = count("The agent", agent, at_least=0)
        if at >= self.agents:
            raise InputError(f"The agent is {at}; it must be at most {self.agents - 1}, as agents count from 0.")
        return at

    def fixed_arms(self) -> list[Arm]:
        """Return the arms of a game that has no random arms."""
        return [arm for arm in self.arms if not isinstance(arm, RandomBernoulli)]

    @cached_property
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

    def alone(self, agent: int | None = None) -> "Game":
        """Return the game of a single agent that shares nothing: on the arms of the game, or as they pay this agent.

        Such an agent makes as many pulls as in the game, whatever its pace. Arms that change do so in the agent's own
        pulls.
        """
        return self.alone_with(PAPERS if agent is None else self.traits_of(agent))

    def alone_with(self, own: Traits) -> "Game":
        """Return the game of a single agent with these traits that shares nothing: see `alone`."""
        arms: Sequence[Arm | RandomBernoulli] = self.arms
        if own.rewards is not None:
            arms = own.rewards
        elif own.offset:
            arms = [
                _shifted_range(arm, own.offset) if isinstance(arm, RandomBernoulli) else _shifted(arm, own.offset)
                for arm in self.arms
            ]
        changes = [Change(step, arm, _shifted(to, own.offset)) for step, arm, to in self.changes]
        horizon = max(2, own.pulls(self.horizon))
        return Game(arms, Sharing.nothing(1, len(arms)), horizon, changes=changes)


def _shifted(arm: Arm, offset: float) -> Arm:
    """Return a Bernoulli arm with its mean shifted."""
    return Bernoulli(_within(arm.mean + offset), arm.name) if offset else arm


def _shifted_range(arm: RandomBernoulli, offset: float) -> RandomBernoulli:
    return replace(arm, low=_within(arm.low + offset), high=_within(arm.high + offset))


def _within(mean: float) -> float:
    """Return a mean that rounding may have taken out of [0, 1]."""
    return min(max(mean, 0.0), 1.0)


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

"""Sharing: which arms each agent shares, and the order in which agents act.

A `Sharing` is fixed; a `RandomSharing` is drawn for each run. In code, agents and arms count from 0.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from partage.checks import count
from partage.errors import InputError

PATTERNS = (
    "round-robin",
    "dealt",
    "scarce-best",
    "neighbours-K",
    "random",
    "everyone-everything",
    "nobody-nothing",
)

MOST = 2**31 - 1  # agents; a list of more would not fit into memory


@dataclass(frozen=True, eq=False)
class Sharing:
    """The arms that each agent shares (the paper's A_m).

    Agent m shares the arms `shared[starts[m]:starts[m + 1]]`, in increasing order. Use the class methods to make one;
    `Sharing.lists` takes any pattern of your own.

    >>> Sharing.round_robin(agents=4, arms=3).of(3)
    [0]
    """

    agents: int
    arms: int
    starts: NDArray[np.int64]
    shared: NDArray[np.int32]
    shuffled: bool = False

    # --- patterns -------------------------------------------------------------------------------------------

    @classmethod
    def lists(cls, shares: Iterable[Iterable[int]], arms: int) -> Self:
        """Agent m shares the arms `shares[m]`; agents act in this order."""
        arms = count("The number of arms", arms)
        if not isinstance(shares, Iterable):
            raise InputError(f"The shares are {shares!r}; they must be one list of arms per agent.")
        rows = []
        for agent, row in enumerate(shares):
            if not isinstance(row, Iterable):
                raise InputError(f"Agent {agent} shares {row!r}; it must be a list of arms.")
            wanted = sorted({count(f"An arm that agent {agent} shares", arm, at_least=0) for arm in row})
            if wanted and wanted[-1] >= arms:
                raise InputError(
                    f"Agent {agent} shares arm {wanted[-1]}, which does not exist; arms are 0 to {arms - 1}."
                )
            rows.append(wanted)
        count("The number of agents", len(rows))
        starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return cls(len(rows), arms, starts, np.array([arm for row in rows for arm in row], dtype=np.int32))

    @classmethod
    def one_each(cls, shared: NDArray[np.integer], arms: int) -> Self:
        """Agent m shares the single arm `shared[m]`, or nothing if that is negative."""
        sharing = shared >= 0
        starts = np.zeros(len(shared) + 1, np.int64)
        np.cumsum(sharing, out=starts[1:])
        return cls(len(shared), arms, starts, shared[sharing].astype(np.int32, copy=False))

    @classmethod
    def round_robin(cls, agents: int, arms: int) -> Self:
        """Agent m shares arm m mod N: the paper's balanced setting."""
        agents, arms = _sizes(agents, arms)
        each = np.arange(agents, dtype=np.int32)  # `MOST` agents fit
        return cls.one_each(np.remainder(each, arms, out=each), arms)

    @classmethod
    def dealt(cls, agents: int, arms: int) -> Self:
        """Deal out the arms: arm i to agent i mod M if there are fewer agents than arms, otherwise round-robin.

        Every arm has a sharer, even with few agents.
        """
        agents, arms = _sizes(agents, arms)
        if agents >= arms:
            return cls.round_robin(agents, arms)
        return cls.lists([range(agent, arms, agents) for agent in range(agents)], arms)

    @classmethod
    def scarce_best(cls, agents: int, arms: int, best: Sequence[int] = (0, 1)) -> Self:
        """One agent each shares the two best arms, and acts first; the others share the other arms in turn.

        This is the paper's imbalanced setting. `best` holds the two arms, the better first.
        """
        agents, arms = _sizes(agents, arms)
        if not isinstance(best, Iterable):
            raise InputError(f"The best arms are {best!r}; they must be a list of two arms.")
        named = dict.fromkeys(count("A best arm", arm, at_least=0) for arm in best)
        scarce = [arm for arm in named if arm < arms][:2]
        rest = np.array([arm for arm in range(arms) if arm not in scarce] or [-1])
        crowd = rest[np.arange(max(0, agents - len(scarce))) % len(rest)]
        return cls.one_each(np.concatenate([scarce, crowd])[:agents].astype(np.int64), arms)

    @classmethod
    def neighbours(cls, agents: int, arms: int, k: int) -> Self:
        """Agent m shares the k arms m, m + 1, ..., m + k - 1 mod N."""
        agents, arms = _sizes(agents, arms)
        k = count("The number of neighbouring arms", k)
        if k > arms:
            raise InputError(
                f"The number of neighbouring arms is {k}; it must be at most the {arms} arms of the game."
            )
        shared = np.sort((np.arange(agents)[:, None] + np.arange(k)) % arms, axis=1)
        return cls(agents, arms, np.arange(agents + 1, dtype=np.int64) * k, shared.ravel().astype(np.int32))

    @classmethod
    def everything(cls, agents: int, arms: int) -> Self:
        """Every agent shares every arm."""
        return cls.neighbours(agents, arms, arms)

    @classmethod
    def nothing(cls, agents: int, arms: int) -> Self:
        """Nobody shares anything."""
        agents, arms = _sizes(agents, arms)
        return cls.one_each(np.full(agents, -1), arms)

    @staticmethod
    def random(agents: int, arms: int) -> "RandomSharing":
        """Each agent shares one random arm, and every arm has a sharer. It is drawn for each run."""
        return RandomSharing(agents, arms)

    @staticmethod
    def pattern(name: str, agents: int, arms: int, best: Sequence[int] = (0, 1)) -> "Sharing | RandomSharing":
        """Return the pattern of this name (`PATTERNS`). `best` holds the two best arms, for scarce-best."""
        neighbours = re.fullmatch(r"neighbours-(\d+)", str(name))
        if neighbours:
            return Sharing.neighbours(agents, arms, int(neighbours[1]))
        if name == "round-robin":
            return Sharing.round_robin(agents, arms)
        if name == "dealt":
            return Sharing.dealt(agents, arms)
        if name == "scarce-best":
            return Sharing.scarce_best(agents, arms, best)
        if name == "random":
            return Sharing.random(agents, arms)
        if name == "everyone-everything":
            return Sharing.everything(agents, arms)
        if name == "nobody-nothing":
            return Sharing.nothing(agents, arms)
        raise InputError(f"The sharing pattern is {name!r}; it must be one of {', '.join(PATTERNS)} (K a number).")

    # --- questions ------------------------------------------------------------------------------------------

    def of(self, agent: int) -> list[int]:
        """Return the arms that an agent shares."""
        at = count("The agent", agent, at_least=0)
        if at >= self.agents:
            raise InputError(f"The agent is {at}; it must be at most {self.agents - 1}, as agents count from 0.")
        return [int(arm) for arm in self.shared[self.starts[at] : self.starts[at + 1]]]

    def sharers(self) -> NDArray[np.int64]:
        """Return how many agents share each arm (the paper's |S_i|)."""
        return np.bincount(self.shared, minlength=self.arms).astype(np.int64)

    def in_shuffled_order(self, shuffled: bool = True) -> Self:
        """Return the same sharing, with the order of agents shuffled for each run."""
        return replace(self, shuffled=shuffled)

    def drawn(self, generator: np.random.Generator) -> "Sharing":
        """Return the sharing of one run: this one, as nothing in it is random."""
        return self

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sharing)
            and (self.agents, self.arms, self.shuffled) == (other.agents, other.arms, other.shuffled)
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.shared, other.shared)
        )

    def __hash__(self) -> int:
        return hash((self.agents, self.arms, self.shuffled, self.shared.tobytes()))


@dataclass(frozen=True)
class RandomSharing:
    """Each agent shares one arm, drawn uniformly, conditioned on every arm having a sharer.

    >>> sharing = Sharing.random(agents=3, arms=3).drawn(np.random.default_rng(0))
    >>> sorted(sharing.shared.tolist())
    [0, 1, 2]
    """

    agents: int
    arms: int
    shuffled: bool = False

    def __post_init__(self) -> None:
        agents, arms = _sizes(self.agents, self.arms)
        object.__setattr__(self, "agents", agents)
        object.__setattr__(self, "arms", arms)
        if agents < arms:
            raise InputError(
                f"Random sharing needs a sharer for every arm, and {agents} agents are fewer than {arms} arms; "
                f"there must be at least {arms} agents."
            )

    def in_shuffled_order(self, shuffled: bool = True) -> Self:
        """Return the same sharing, with the order of agents shuffled for each run."""
        return replace(self, shuffled=shuffled)

    def sharers(self) -> NDArray[np.int64]:
        """Return a lower bound on the number of sharers of each arm: one."""
        return np.ones(self.arms, dtype=np.int64)

    def drawn(self, generator: np.random.Generator) -> Sharing:
        """Return the sharing of one run."""
        cover = _cover_log_probability(self.agents, self.arms)
        if cover is None:
            while True:
                shared = generator.integers(self.arms, size=self.agents)
                if len(np.unique(shared)) == self.arms:
                    break
        else:
            shared = _draw_covering(self.agents, self.arms, cover, generator)
        return replace(Sharing.one_each(shared, self.arms), shuffled=self.shuffled)


def _sizes(agents: int, arms: int) -> tuple[int, int]:
    agents, arms = count("The number of agents", agents), count("The number of arms", arms)
    if agents > MOST:
        raise InputError(f"The number of agents is {agents:,}; it must be at most {MOST:,}.")
    return agents, arms


@lru_cache(maxsize=4)
def _cover_log_probability(agents: int, arms: int) -> NDArray[np.float64] | None:
    """Return a table of log probabilities: row r, column u is that of r uniform draws covering u given arms.

    P(r, u) = u/N P(r-1, u-1) + (N-u)/N P(r-1, u), in logarithms because P(N, N) = N!/N^N underflows. None if uniform
    draws cover all arms so often (each arm is missed with probability e^(-M/N) at most) that it is cheap to draw
    until they do, which is exact too.
    """
    if arms * np.exp(-agents / arms) < 0.5:
        return None
    table = np.full((agents + 1, arms + 1), -np.inf)
    table[:, 0] = 0.0
    with np.errstate(divide="ignore"):
        hit = np.log(np.arange(arms + 1) / arms)
        miss = np.log(1 - np.arange(arms + 1) / arms)
    for r in range(1, agents + 1):
        table[r, 1:] = np.logaddexp(hit[1:] + table[r - 1, :-1], miss[1:] + table[r - 1, 1:])
    return table


def _draw_covering(
    agents: int, arms: int, cover: NDArray[np.float64], generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw one arm per agent, one agent after the other, each conditioned on the rest covering all arms."""
    uncovered = list(generator.permutation(arms))
    covered: list[int] = []
    shared = np.empty(agents, dtype=np.int64)
    for agent in range(agents):
        left, missing = agents - agent, len(uncovered)
        fresh = missing / arms * np.exp(cover[left - 1, missing - 1] - cover[left, missing]) if missing else 0.0
        if generator.random() < fresh or not covered or left == missing:
            covered.append(uncovered.pop())
            shared[agent] = covered[-1]
        else:
            shared[agent] = covered[generator.integers(len(covered))]
    return shared

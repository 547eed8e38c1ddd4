"""One run of a game, moved by actions: what happened, and what each agent may know of it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.arms import reward_table
from partage.board import Pull, Record
from partage.engine import rewards as tape
from partage.errors import InputError
from partage.game import Game
from partage.sharing import Sharing


class Broadcast(NamedTuple):
    """A reward that everybody sees: who pulled which arm, what it paid, and the pulls of all agents before it."""

    agent: int
    arm: int
    reward: float
    before: int


class World:
    """One run: the rewards, every agent's private record, and the broadcasts."""

    def __init__(self, game: Game, seed: int, run: int) -> None:
        key = tape.run_keys(seed, run, run + 1)[0]
        self.game = game.drawn(tape.generator(key, tape.GAME))
        sharing = self.game.sharing
        assert isinstance(sharing, Sharing)
        agents, self.arms = game.agents, len(game.arms)
        self.key = (int(key[0]), int(key[1]))
        order = tape.permutation(key[0], key[1], tape.AGENT_ORDER, agents) if sharing.shuffled else range(agents)
        self.order = [int(agent) for agent in order]
        self.tie_order = [int(arm) for arm in tape.permutation(key[0], key[1], tape.TIE_ORDER, self.arms)]
        self.shares = [frozenset(sharing.of(agent)) for agent in range(agents)]
        self.rewards = tape.Rewards(key, reward_table(self.game.fixed_arms()))
        self.record = Record.empty(self.arms)
        self.own = [Record.empty(self.arms) for _ in range(agents)]
        self.broadcasts: list[Broadcast] = []
        self.pulls = 0
        self.explore = np.zeros((agents, self.arms), np.int64)
        self.commit = np.zeros((agents, self.arms), np.int64)

    def act(self, agent: int, action: Any) -> float:
        """Let an agent pull, and return what it gets."""
        arm, share = self.pull_of(agent, action)
        self.pulls += 1
        if not share:
            self.commit[agent, arm] += 1
            reward = self.rewards.private(agent, arm, self.own[agent].counts[arm])
            self.own[agent].add(arm, reward)
            return float(reward)
        self.explore[agent, arm] += 1
        reward = float(self.rewards.broadcast(arm, self.record.counts[arm]))
        self.record.add(arm, reward)
        self.broadcasts.append(Broadcast(agent, arm, reward, self.pulls - 1))
        return reward

    def pull_of(self, agent: int, action: Any) -> Pull:
        """Return the pull that an action means. An arm that the agent does not share is pulled privately."""
        number = int(action)
        if not 0 <= number < 2 * self.arms:
            raise InputError(f"The action is {action!r}; it must be one of 0 to {2 * self.arms - 1}.")
        arm = number % self.arms
        return Pull(arm, number >= self.arms and arm in self.shares[agent])

    def observation(self, agent: int) -> dict[str, NDArray[Any]]:
        """Return what an agent may know: the public record, its own private record, and its allowed actions."""
        return observation(self.record, self.own[agent], self.shares[agent])

    def board_in_words(self) -> str:
        """Return the public record as text, one line per arm."""
        lines = [f"pull {self.pulls:,} of {self.game.agents * self.game.horizon:,}"]
        for name, count, total in zip(self.game.arm_names, self.record.counts, self.record.sums, strict=True):
            mean = f", mean {total / count:.3f}" if count else ""
            lines.append(f"{name}: {count:,} broadcast{'' if count == 1 else 's'}{mean}")
        return "\n".join(lines)


def observation(public: Record, own: Record, shares: Any) -> dict[str, NDArray[Any]]:
    """Return the observation of an agent with this private record that shares these arms."""
    arms = len(public.counts)
    seen = np.array([public.counts, public.sums, own.counts, own.sums], dtype=np.float64).ravel()
    mask = np.ones(2 * arms, dtype=np.int8)
    mask[arms:] = [arm in shares for arm in range(arms)]
    return {"observation": seen, "action_mask": mask}

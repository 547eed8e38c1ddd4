"""The environments: one run of a game per episode."""

import sys
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv

from partage.envs.world import World
from partage.errors import InputError
from partage.game import Game
from partage.simulate.chunk import checked_game

MODES = ("ansi", "human")


def env(game: Game, render_mode: str | None = None) -> "BanditEnv":
    """Return the game as an AEC environment.

    An episode is a run: `reset(seed=7)` starts run 0 of seed 7, the same as that of `partage.play_run(game, rule,
    seed=7)`, and each `reset()` after it the next run.

    >>> from partage import Game, Sharing, bernoulli
    >>> game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=2, arms=2), horizon=100)
    >>> playing = env(game)
    >>> playing.reset(seed=7)
    >>> playing.agent_selection
    'agent 1'
    >>> playing.last()[0]["action_mask"].tolist()
    [1, 1, 1, 0]
    """
    return BanditEnv(game, render_mode)


def parallel_env(game: Game, render_mode: str | None = None) -> "ParallelBanditEnv":
    """Return the game as a parallel environment: the agents of a step decide before they see each other's broadcasts.

    >>> from partage import Game, Sharing, bernoulli
    >>> game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=2, arms=2), horizon=100)
    >>> playing = parallel_env(game)
    >>> observations, _ = playing.reset(seed=7)
    >>> _, rewards, *_ = playing.step({"agent 1": 2, "agent 2": 0})
    >>> sorted(rewards)
    ['agent 1', 'agent 2']
    """
    return ParallelBanditEnv(game, render_mode)


class _Bandit:
    """What both environments have in common."""

    def __init__(self, game: Game, render_mode: str | None) -> None:
        if checked_game(game).uneven:
            raise InputError(
                "The game has traits of agents, changes of arms or claim_steps; an environment is of a game without."
            )
        if render_mode not in (None, *MODES):
            raise InputError(f"The render mode is {render_mode!r}; it must be None or one of {', '.join(MODES)}.")
        self.game, self.render_mode = game, render_mode
        self.possible_agents = [game.agent_name(agent) for agent in range(game.agents)]
        self.agents: list[str] = []
        self.number_of = {name: agent for agent, name in enumerate(self.possible_agents)}
        arms = len(game.arms)
        self._observations = {
            name: spaces.Dict(
                {
                    "observation": spaces.Box(0.0, np.inf, (4 * arms,), np.float64),
                    "action_mask": spaces.Box(0, 1, (2 * arms,), np.int8),
                }
            )
            for name in self.possible_agents
        }
        self._actions = {name: spaces.Discrete(2 * arms) for name in self.possible_agents}
        self._seed, self._run = 0, -1
        self.world = World(game, 0, 0)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of an agent's observations."""
        return self._observations[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of an agent's actions."""
        return self._actions[agent]

    def render(self) -> str | None:
        """Return the public board as text, or print it (`render_mode="human"`)."""
        text = self.world.board_in_words()
        if self.render_mode == "human":
            sys.stdout.write(text + "\n")
            return None
        return text

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _start(self, seed: int | None) -> None:
        if seed is None:
            self._run += 1
        else:
            self._seed, self._run = int(seed), 0
        self.world = World(self.game, self._seed, self._run)
        self.agents = [self.possible_agents[agent] for agent in self.world.order]


class BanditEnv(_Bandit, AECEnv):  # type: ignore[misc]
    """A game as an AEC environment: see `env`."""

    metadata: ClassVar[dict[str, Any]] = {
        "name": "partage_v0",
        "render_modes": list(MODES),
        "is_parallelizable": False,
    }

    def __init__(self, game: Game, render_mode: str | None = None) -> None:
        AECEnv.__init__(self)
        _Bandit.__init__(self, game, render_mode)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a run."""
        self._start(seed)
        self._turn = 0
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[0]

    def observe(self, agent: str) -> dict[str, Any]:
        """Return what an agent sees: nothing of it depends on another agent's private rewards."""
        return self.world.observation(self.number_of[agent])

    def step(self, action: Any) -> None:
        """Let the agent whose turn it is act."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        reward = self.world.act(self.number_of[agent], action)
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self.rewards[agent] = reward
        self._accumulate_rewards()
        self._turn += 1
        if self._turn == len(self.agents) * self.game.horizon:
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = self.agents[self._turn % len(self.agents)]
        if self.render_mode == "human":
            self.render()


class ParallelBanditEnv(_Bandit, ParallelEnv):  # type: ignore[misc]
    """A game as a parallel environment: see `parallel_env`."""

    metadata: ClassVar[dict[str, Any]] = {"name": "partage_parallel_v0", "render_modes": list(MODES)}

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Start a run."""
        self._start(seed)
        self._step = 0
        return self._seen(), {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Let every agent act, in the order of the run. Nobody acts unless all actions are allowed."""
        for agent in self.agents:
            if agent not in actions:
                raise InputError(f"The actions lack one of {agent}; every agent must act.")
            self.world.pull_of(self.number_of[agent], actions[agent])
        rewards = {agent: self.world.act(self.number_of[agent], actions[agent]) for agent in self.agents}
        self._step += 1
        ended = self._step == self.game.horizon
        seen, agents = self._seen(), self.agents
        if ended:
            self.agents = []
        if self.render_mode == "human":
            self.render()
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in agents}
        return seen, rewards, dict.fromkeys(agents, ended), dict.fromkeys(agents, False), infos

    def _seen(self) -> dict[str, Any]:
        return {agent: self.world.observation(self.number_of[agent]) for agent in self.agents}

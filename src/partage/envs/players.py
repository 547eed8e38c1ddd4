"""Rules as players of an environment, and policies of an environment as rules."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from partage.board import Board, Pull, Record
from partage.clock import next_tick, rounded
from partage.engine.reference import decision
from partage.engine.tally import Tally
from partage.envs.environments import BanditEnv, env
from partage.envs.world import observation
from partage.errors import InputError
from partage.game import Game
from partage.rules.rule import Rule, checked_pull, decider
from partage.sharing import Sharing
from partage.simulate.chunk import checked_rule
from partage.tape import Draws

Policy = Callable[[dict[str, Any]], Any]


class RulePlayer:
    """Plays one episode of an AEC environment by a rule, for some or all of its agents.

    It knows what an agent may know: the broadcasts, whose turn it is, and what the agents that it plays for got.
    Create it after `reset`.

    >>> from partage import BalancedETC, Game, Sharing, bernoulli
    >>> game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=2, arms=2), horizon=100)
    >>> playing = env(game)
    >>> playing.reset(seed=7)
    >>> player = RulePlayer(BalancedETC(), playing)
    >>> for agent in playing.agent_iter():
    ...     _, reward, terminated, *_ = playing.last()
    ...     playing.step(None if terminated else player.act(agent, reward))
    """

    def __init__(self, rule: Rule, playing: BanditEnv) -> None:
        world = playing.world
        self.rule, self.env, self.world = checked_rule(rule), playing, world
        game, prepare = world.game, getattr(rule, "prepare", None)
        if prepare is not None and _shares(prepare(game)) != _shares(game):
            raise InputError(f"The rule {rule.name} changes who shares what; use env(rule.prepare(game)).")
        public = [any(arm in shares for shares in world.shares) for arm in range(world.arms)]
        self.board = Board(game.horizon, world.tie_order, public)
        self.board.sharers = [sum(arm in shares for shares in world.shares) for arm in range(world.arms)]
        self.board.shares = dict(enumerate(world.shares))
        self.board.all_pulls = game.agents * game.horizon
        self.keeps = getattr(rule, "keeps", None) if all(public) else None
        self.own = [Record.empty(world.arms) for _ in range(game.agents)]
        self.decide = decider(rule)
        self.made = [0] * game.agents
        self.last: list[Pull | None] = [None] * game.agents
        self.heard, self.tick = 0, next_tick(0)
        self.eliminated_step, self.eliminated_agent = np.full(world.arms, -1), np.full(world.arms, -1)

    def act(self, agent: str, reward: float) -> int:
        """Return the action of the agent whose turn it is, which got `reward` for the last one."""
        at, world, board = self.env.number_of[agent], self.world, self.board
        self.hear()
        if world.pulls >= self.tick:
            board.clock, self.tick = rounded(world.pulls), next_tick(world.pulls)
        last, own = self.last[at], self.own[at]
        if last is not None and not last.share and (self.keeps is None or own.counts[last.arm] < self.keeps):
            own.add(last.arm, reward)
        draws = Draws(world.key, at, self.made[at])
        self.made[at] += 1
        pull, mine = decision(self.rule, self.decide, board, at, world.shares[at], own, draws)
        arm, share = self.last[at] = checked_pull(self.rule.name, pull, world.arms, mine)
        return arm + world.arms * share

    def hear(self) -> None:
        """Put the broadcasts since the last time on the board."""
        board, agents = self.board, self.world.game.agents
        for agent, arm, reward, before in self.world.broadcasts[self.heard :]:
            board.broadcast(agent, arm, reward)
            active = list(board.active)
            self.rule.revise(board)
            for moved in range(board.arms):
                if active[moved] and not board.active[moved]:
                    self.eliminated_step[moved], self.eliminated_agent[moved] = before // agents + 1, agent
                elif board.active[moved]:
                    self.eliminated_step[moved], self.eliminated_agent[moved] = -1, -1
        self.heard = len(self.world.broadcasts)


def play_rule(game: Game, rule: Rule, seed: int = 0) -> Tally:
    """Play run 0 of a seed by a rule in the AEC environment, and return its tally.

    It equals `partage.play_run(game, rule, seed)`, except that effects are not estimated.
    """
    playing = env(game)
    playing.reset(seed=seed)
    player = RulePlayer(rule, playing)
    for agent in playing.agent_iter():
        _, reward, terminated, _, _ = playing.last(observe=False)
        playing.step(None if terminated else player.act(agent, reward))
    player.hear()
    world, board = playing.world, player.board
    return Tally(
        world.explore,
        world.commit,
        np.array(world.record.counts, np.int64),
        np.array(world.record.sums),
        np.array(board.active),
        player.eliminated_step,
        player.eliminated_agent,
    )


def _shares(game: Game) -> list[list[int]]:
    sharing = game.sharing
    assert isinstance(sharing, Sharing)
    return [sorted(sharing.of(agent)) for agent in range(game.agents)]


@dataclass(frozen=True)
class PolicyRule:
    """A policy of the environment as a rule: see `as_rule`."""

    policy: Policy
    name: str
    private: bool = True

    def decide(self, board: Board, shares: Collection[int], own: Record, draws: Draws) -> Pull:
        """Return what the policy does where it sees this."""
        action = int(self.policy(observation(board.record, own, shares)))
        return Pull(action % board.arms, action >= board.arms)

    def revise(self, board: Board) -> None:
        """Leave all arms active."""


def as_rule(policy: Policy, name: str = "policy") -> PolicyRule:
    """Return a scripted or trained policy as a rule, to simulate and to compare with other rules.

    `policy` takes an observation and returns an action, and must always answer alike.

    >>> from partage import BalancedETC, Game, Sharing, bernoulli, compare
    >>> def greedy(seen):
    ...     counts, sums, own_counts, own_sums = seen["observation"].reshape(4, -1)
    ...     return int(((sums + own_sums + 1) / (counts + own_counts + 1)).argmax())
    >>> game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=2, arms=2), horizon=100)
    >>> list(compare(game, [BalancedETC(), as_rule(greedy, "greedy")], runs=2).results)
    ['balanced-etc', 'greedy']
    """
    return PolicyRule(policy, name)

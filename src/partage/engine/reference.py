"""Reference play: any rule, one pull at a time, in plain Python. The engine is checked against it."""

import operator
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partage.arms import reward_table
from partage.board import Board, Pull, Record
from partage.clock import next_tick, rounded
from partage.engine import rewards as tape
from partage.engine.tally import Tally
from partage.errors import RuleError
from partage.game import Game
from partage.rules.rule import BuiltIn, Rule, decider
from partage.sharing import Sharing
from partage.tape import Draws


def checked_pull(name: str, pull: Any, arms: int, shares: Collection[int]) -> Pull:
    """Return what the rule of this name decided for an agent that shares these arms, if the game allows it."""
    try:
        arm, share = pull
    except (TypeError, ValueError):
        raise RuleError(
            f"`decide` of the rule {name} returned {pull!r}; it must return a partage.board.Pull: the arm, and "
            "whether to broadcast the reward."
        ) from None
    allowed = f"it must be one of 0 to {arms - 1}"
    try:
        arm = operator.index(arm)
    except TypeError:
        raise RuleError(f"The rule {name} pulled {arm!r}; {allowed}.") from None
    if not 0 <= arm < arms:  # a negative one would count from the last arm
        raise RuleError(f"The rule {name} pulled arm {arm}; {allowed}.")
    if share and arm not in shares:
        raise RuleError(f"The rule {name} broadcast arm {arm}, but the agent shares {sorted(shares)}.")
    return Pull(arm, bool(share))


def play_reference(game: Game, rule: Rule, key: NDArray[np.uint64]) -> Tally:
    """Play one run of a game whose sharing is fixed."""
    sharing = game.sharing
    assert isinstance(sharing, Sharing)
    agents, arms = game.agents, len(game.arms)
    rewards = tape.Rewards(key, reward_table(game.fixed_arms()))
    public = [sharers > 0 for sharers in sharing.sharers()]
    board = Board(game.horizon, [int(arm) for arm in tape.permutation(key[0], key[1], tape.TIE_ORDER, arms)], public)
    board.all_pulls = agents * game.horizon
    board.sharers = [int(sharers) for sharers in sharing.sharers()]
    order = tape.permutation(key[0], key[1], tape.AGENT_ORDER, agents) if sharing.shuffled else range(agents)
    shares = [frozenset(sharing.of(agent)) for agent in range(agents)]
    own = [Record.empty(arms) for _ in range(agents)]
    keeps_own = rule.private or not all(public)
    keeps = getattr(rule, "keeps", None) if all(public) else None
    decide, run = decider(rule), (int(key[0]), int(key[1]))
    tolerant = rule if isinstance(rule, BuiltIn) and rule.tolerate else None

    explore = np.zeros((agents, arms), np.int64)
    commit = np.zeros((agents, arms), np.int64)
    eliminated_step, eliminated_agent = np.full(arms, -1), np.full(arms, -1)
    pulls, tick = 0, next_tick(0)
    for step in range(1, game.horizon + 1):
        for agent in order:
            if pulls == tick:
                board.clock, tick = rounded(pulls), next_tick(pulls)
            pulls += 1
            draws = Draws(run, int(agent), step - 1)
            mine: Collection[int] = shares[agent]
            if tolerant is not None:
                mine = tolerant.offered(board, int(agent), mine, tolerant.open_arms(board))
            arm, share = checked_pull(rule.name, decide(board, mine, own[agent], draws), arms, mine)
            if not share:
                commit[agent, arm] += 1
                if keeps_own and (keeps is None or own[agent].counts[arm] < keeps):
                    own[agent].add(arm, rewards.private(agent, arm, own[agent].counts[arm]))
                continue
            explore[agent, arm] += 1
            board.broadcast(int(agent), arm, rewards.broadcast(arm, board.counts[arm]))
            before = list(board.active)
            rule.revise(board)
            for moved in range(arms):
                if before[moved] and not board.active[moved]:
                    eliminated_step[moved], eliminated_agent[moved] = step, agent
                elif board.active[moved]:  # it was not eliminated, or is active again
                    eliminated_step[moved], eliminated_agent[moved] = -1, -1
    return Tally(
        explore,
        commit,
        np.array(board.record.counts, np.int64),
        np.array(board.record.sums),
        np.array(board.active),
        eliminated_step,
        eliminated_agent,
    )

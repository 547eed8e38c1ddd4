"""Replay: play a rule on the events of a log, in their order (Li, Chu, Langford and Wang, WSDM 2011).

For each event, the rule decides what the agent would pull now. If that is the logged arm, the pull counts and has the
logged reward; otherwise the event is skipped. If arms were logged uniformly at random, the pulls that count are
distributed as if the rule had played. Their number is the effective sample size, about one in N for N arms.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partage.board import Board, Pull, Record
from partage.clock import next_tick, rounded
from partage.engine import rewards as tape
from partage.logs.fit import Fit, uniform_logging
from partage.logs.reading import Events, Log, mean_and_error
from partage.rules.rule import Rule, checked_pull, decider
from partage.simulate.estimate import Estimate
from partage.tape import Draws

STEPS = 10_000  # events between two calls of `progress`


@dataclass(frozen=True)
class Replayed:
    """A replay of a rule on a log.

    Attributes
    ----------
    rule
        The rule's name.
    events, pulls
        The events of the log, and those that count: the effective sample size.
    reward, logged
        The mean reward of the pulls that count, and of all events, in [0, 1].
    broadcasts
        How many of the pulls were shared.
    by_arm
        The pulls that count, by arm.
    by_agent
        The same by agent.
    uniform
        The test whether all arms were logged equally often.
    """

    rule: str
    events: int
    pulls: int
    reward: Estimate
    logged: Estimate
    broadcasts: int
    by_arm: dict[str, int]
    by_agent: dict[str, int]
    uniform: Fit

    @property
    def warning(self) -> str | None:
        """What is wrong with the log for a replay; None if nothing shows it."""
        if self.uniform.fits:
            return None
        return (
            f"Arms were not logged uniformly ({self.uniform}), so the replay is biased wherever the choice of an arm "
            "had to do with what it would pay."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the public JSON object."""
        return {
            "rule": self.rule,
            "events": self.events,
            "effective_sample_size": self.pulls,
            "reward": self.reward._asdict(),
            "logged_reward": self.logged._asdict(),
            "broadcasts": self.broadcasts,
            "by_arm": self.by_arm,
            "by_agent": self.by_agent,
            "uniform": self.uniform._asdict() | {"fits": self.uniform.fits},
        }


def replay(
    log: Log,
    events: Events,
    rule: Rule,
    *,
    shares: Sequence[Sequence[int]] | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Replayed:
    """Replay a rule on the events of a log.

    Parameters
    ----------
    log, events
        The log, and its events in their order.
    rule
        How agents decide. It takes the pulls that the agent with most events can expect, its events divided by the
        number of arms, for the horizon.
    shares
        The arms that each agent shares; by default those that it has rows of.
    seed
        Of the tie order, and of rules that draw.
    progress
        Called with (events done, all events).
    """
    counts = log.counts
    shared = [np.flatnonzero(row).tolist() for row in counts] if shares is None else shares
    play = _Play(counts.sum(axis=1), len(log.arms), rule, [frozenset(row) for row in shared], seed)
    every = zip(events.agent.tolist(), events.arm.tolist(), events.reward.tolist(), strict=True)
    for done, (agent, arm, reward) in enumerate(every):
        if progress and done % STEPS == 0:
            progress(done, log.rows)
        play.event(agent, arm, reward)
    if progress:
        progress(log.rows, log.rows)
    pulls = int(play.pulls.sum())
    squares = float(log.squares.sum())
    return Replayed(
        rule.name,
        log.rows,
        pulls,
        Estimate(*mean_and_error(pulls, play.paid, play.squares)) if pulls else Estimate(math.nan, None),
        Estimate(*mean_and_error(log.rows, float(log.sums.sum()), squares)),
        sum(play.board.record.counts),
        dict(zip(log.arms, play.pulls.sum(axis=0).tolist(), strict=True)),
        dict(zip(log.agents, play.pulls.sum(axis=1).tolist(), strict=True)),
        uniform_logging(log),
    )


class _Play:
    """The state of a replay: the board, what each agent saw, and what it would pull next."""

    def __init__(self, rows: Any, arms: int, rule: Rule, shares: list[frozenset[int]], seed: int) -> None:
        key = tape.run_keys(seed, 0, 1)[0]
        makes = [max(2, math.ceil(int(own) / arms)) for own in rows]
        order = [int(arm) for arm in tape.permutation(key[0], key[1], tape.TIE_ORDER, arms)]
        sharers = [sum(arm in row for row in shares) for arm in range(arms)]
        self.board = Board(max(makes), order, [many > 0 for many in sharers])
        self.board.sharers, self.board.all_pulls = sharers, sum(makes)
        self.board.shares = dict(enumerate(shares))
        self.rule, self.shares, self.run = rule, shares, (int(key[0]), int(key[1]))
        self.decide = decider(rule)
        self.offering: Any = rule if getattr(rule, "offers", False) else None
        self.own = [Record.empty(arms) for _ in shares]
        self.pulls = np.zeros((len(shares), arms), np.int64)
        self.made, self.tick = 0, next_tick(0)
        self.paid = self.squares = 0.0
        self.next: dict[int, Pull] = {}  # decided, as long as nothing that decisions read has changed

    def event(self, agent: int, arm: int, reward: float) -> None:
        """Count an event if the rule would pull this arm."""
        pull = self.next.get(agent)
        if pull is None:
            pull = self.next[agent] = self._decided(agent)
        if pull.arm != arm:
            return
        self.pulls[agent, arm] += 1
        self.paid += reward
        self.squares += reward * reward
        self.made += 1
        if pull.share:
            self.board.broadcast(agent, arm, reward)
            self.rule.revise(self.board)
            self.next.clear()
        else:
            self.own[agent].add(arm, reward)
            del self.next[agent]
        if self.made == self.tick:
            self.board.clock, self.tick = rounded(self.made), next_tick(self.made)
            self.next.clear()

    def _decided(self, agent: int) -> Pull:
        mine, board = self.shares[agent], self.board
        if self.offering is not None:
            leader = self.offering.own_leaders(board).get(str(agent))
            if leader is not None:
                return Pull(leader, share=False)
            mine = self.offering.offered(board, agent, mine, self.offering.open_arms(board))
        draws = Draws(self.run, agent, int(self.pulls[agent].sum()))
        return checked_pull(self.rule.name, self.decide(board, mine, self.own[agent], draws), board.arms, mine)

"""One game, played step by step with Partage's own rules and settlements: what the page that plays runs.

It is plain Python, as rules, board and settlements are, so Pyodide runs it in the browser. The tests run it too, and
compare it with the simulator pull for pull.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from partage import tape
from partage.board import Board, Record
from partage.clock import next_tick, rounded
from partage.rules import make_rule
from partage.rules.rule import decider
from partage.settle import COVERAGE, settlement_for
from partage.settle.core import charge_of, settle, worth
from partage.settle.equal_share import find_means

Reward = Callable[[int, int, int], float]  # of an arm, by its number and its stream
MOST_POINTS = 200  # of a curve
PREPAID = 20.0  # what each agent of a pool prepays, in units of reward


def bernoulli_rewards(key: tape.Key, means: Sequence[float]) -> Reward:
    """Return the rewards of one run: 1 with the arm's mean as probability, otherwise 0."""

    def reward(arm: int, entry: int, stream: int) -> float:
        word = tape.words(key, 0, entry, arm, stream)[0]
        return float((word >> 11) * 2.0**-53 < means[arm])

    return reward


class Table:
    """Agents at one board: they play a rule and share the arms that they consent to share."""

    def __init__(
        self, rule: Any, shares: Sequence[Sequence[int]], arms: int, horizon: int, key: tape.Key, reward: Reward
    ) -> None:
        self.rule, self.key, self.reward = rule, key, reward
        self.decide = decider(rule)
        self.shares = [frozenset(each) for each in shares]
        self.board = Board(horizon, tape.permutation(key, tape.TIE_ORDER, arms), [False] * arms)
        self.board.sharers = [0] * arms
        for agent, mine in enumerate(self.shares):
            self.board.shares[agent] = mine
            for arm in mine:
                self.board.sharers[arm] += 1
                self.board.shared[arm] = self.board.public[arm] = self.board.active[arm] = True
        self.board.all_pulls = horizon * len(self.shares)
        self.own = [Record.empty(arms) for _ in self.shares]
        self.keeps_own = rule.private or not all(self.board.public)
        self.explore = [[0] * arms for _ in self.shares]
        self.commit = [[0] * arms for _ in self.shares]
        self.step, self.pulled, self.tick = 0, 0, next_tick(0)

    def play_step(self) -> None:
        """Let every agent pull once, in order."""
        for agent in range(len(self.shares)):
            self._pull(agent)
        self.step += 1

    def _pull(self, agent: int) -> None:
        board = self.board
        if self.pulled == self.tick:
            board.clock, self.tick = rounded(self.pulled), next_tick(self.pulled)
        self.pulled += 1
        draws = tape.Draws(self.key, agent, self.step)
        arm, share = self.decide(board, self.shares[agent], self.own[agent], draws)
        if share:
            self.explore[agent][arm] += 1
            board.broadcast(agent, arm, self.reward(arm, board.counts[arm], tape.TAPE))
            self.rule.revise(board)
            return
        self.commit[agent][arm] += 1
        if self.keeps_own:
            own = self.own[agent]
            own.add(arm, self.reward(arm, own.counts[arm], 1 + agent))

    def pulls(self) -> list[list[int]]:
        """Return the pulls of each arm, one row per agent."""
        return [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(self.explore, self.commit, strict=True)]


class Show:
    """The game that the page shows: the same agents at one board, and each of them alone.

    `choices` comes from the page: the arms' `means`, the arms that each agent `shares`, the `horizon`, the `rule`,
    the `settlement`, the rule of agents `alone`, and a `seed`.
    """

    def __init__(self, choices: dict[str, Any]) -> None:
        self.means = [float(mean) for mean in choices["means"]]
        self.gaps = [max(self.means) - mean for mean in self.means]
        self.horizon = int(choices["horizon"])
        rule, alone = make_rule(choices["rule"]), make_rule(choices["alone"])
        prepaid = PREPAID if choices["settlement"] == "pool" else None
        self.settlement = settlement_for(choices["settlement"], rule, prepaid=prepaid)
        shares, arms = choices["shares"], len(self.means)
        key = (int(choices["seed"]), len(shares))
        reward = bernoulli_rewards(key, self.means)
        self.together = Table(rule, shares, arms, self.horizon, key, reward)
        self.alone = Table(alone, [[]] * len(shares), arms, self.horizon, key, reward)
        self.curve = [(0, 0.0, 0.0)]

    def advance(self, steps: int) -> dict[str, Any]:
        """Play some steps, and return what the page shows then."""
        for _ in range(min(steps, self.horizon - self.together.step)):
            self.together.play_step()
            self.alone.play_step()
            if self.together.step % max(1, self.horizon // MOST_POINTS) == 0:
                self._mark()
        if self.together.step == self.horizon and self.curve[-1][0] < self.horizon:
            self._mark()
        return self.shown()

    def advance_json(self, steps: int) -> str:
        """Return what `advance` returns, as text: one string crosses to JavaScript faster than many objects."""
        return json.dumps(self.advance(steps))

    def _mark(self) -> None:
        losses = (sum(self._losses(table)) for table in (self.together, self.alone))
        self.curve.append((self.together.step, *losses))

    def _losses(self, table: Table) -> list[float]:
        """Return every agent's regret."""
        return [worth(self.gaps, row) for row in table.pulls()]

    def shown(self) -> dict[str, Any]:
        """Return the state of the game, as plain data."""
        lost, alone = self._losses(self.together), self._losses(self.alone)
        return {
            "step": self.together.step,
            "horizon": self.horizon,
            "regret": sum(lost),
            "alone": sum(alone),
            "broadcasts": sum(self.together.board.counts),
            "curve": self.curve,
            "arms": self._arms(),
            "settlement": self._settled(lost, alone),
        }

    def _arms(self) -> list[dict[str, Any]]:
        board = self.together.board
        low, high = [0.0] * board.arms, [1.0] * board.arms
        find_means(board.counts, board.record.sums, COVERAGE, low, high)
        leader = board.leader() if any(board.counts) else None
        opened = set(self.together.rule.open_arms(board))
        return [
            {
                "mean": board.mean(arm) if board.counts[arm] else None,
                "low": low[arm],
                "high": high[arm],
                "true": self.means[arm],
                "count": board.counts[arm],
                "state": _state(board, arm, leader, opened),
            }
            for arm in range(board.arms)
        ]

    def _settled(self, lost: list[float], alone: list[float]) -> dict[str, Any]:
        """Return the settlement if the game ended now, in units of reward."""
        rows = self.together.pulls() if self.settlement.pays_commits else self.together.explore
        found = settle(self.settlement, self.together.board, rows)
        ceilings = found.ceilings or [None] * len(rows)
        agents = []
        for row, ceiling, own, other in zip(rows, ceilings, lost, alone, strict=True):
            received, paid = found.scale * worth(found.rates, row), charge_of(found.common_charge, ceiling)
            agents.append({"regret": own, "received": received, "paid": paid, "alone": other})
        profit = sum(each["paid"] - each["received"] for each in agents)
        return {"agents": agents, "profit": profit, "finished": found.finished, "viable": found.viable}


def _state(board: Board, arm: int, leader: int | None, opened: set[int]) -> str:
    """Return what the board says about an arm, in a word or two."""
    if not board.public[arm]:
        return "nobody shares it"
    if not board.active[arm]:
        return "eliminated"
    if arm == leader:
        return "leader"
    return "needs results" if arm in opened else "enough for now"

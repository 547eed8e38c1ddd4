"""Reference play: any rule, one pull at a time, in plain Python. The engine is checked against it."""

import heapq
import math
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partage.arms import reward_table
from partage.board import MOST_LAPSES, Board, Pull, Record
from partage.clock import next_tick, rounded
from partage.engine import rewards as tape
from partage.engine.tally import Floats, Ints, Tally, always_shared, gaps_by_phase, phase_at, reward_rows, row_numbers
from partage.game import Game
from partage.rules.rule import Rule, checked_pull, decider
from partage.sharing import Sharing
from partage.tape import DELAYS, Draws, uniform_at

PULLS_AT_ONCE = 4096  # pulls between two calls of those who watch
_watching: list[Callable[[int], None]] = []


@contextmanager
def watched(callback: Callable[[int], None]) -> Iterator[None]:
    """Call back whenever the reference has made some more pulls, with their number, in any thread of this process."""
    _watching.append(callback)
    try:
        yield
    finally:
        _watching.remove(callback)


def decision(
    rule: Any,
    decide: Callable[[Board, Collection[int], Record, Draws], Pull],
    board: Board,
    agent: int,
    mine: Collection[int],
    own: Record,
    draws: Draws,
) -> tuple[Pull, Collection[int]]:
    """Return what a rule decides for an agent that shares these arms, and which of them it may broadcast now."""
    if getattr(rule, "offers", False):
        own_leader = rule.own_leaders(board).get(str(agent))
        mine = rule.offered(board, agent, mine, rule.open_arms(board))
        if own_leader is not None:
            return Pull(own_leader, share=False), mine
    return decide(board, mine, own, draws), mine


def play_reference(
    game: Game,
    rule: Rule,
    key: NDArray[np.uint64],
    checkpoints: Sequence[int] | Ints = (),
    curve: Floats | None = None,
) -> Tally:
    """Play one run of a game whose sharing is fixed. `curve[c]` becomes the overall regret up to `checkpoints[c]`."""
    return _Play(game, rule, key, checkpoints, np.zeros(len(checkpoints)) if curve is None else curve).played()


class _Play:
    """One run, pull by pull: the board, what each agent has made of its horizon, and the reports that are out."""

    def __init__(
        self, game: Game, rule: Rule, key: NDArray[np.uint64], checkpoints: Sequence[int] | Ints, curve: Floats
    ) -> None:
        sharing = game.sharing
        assert isinstance(sharing, Sharing)
        self.game, self.rule = game, rule
        agents, arms, phases = game.agents, len(game.arms), len(game.phases)
        self.rewards = tape.Rewards(key, reward_table([arm for row in reward_rows(game) for arm in row]))
        self.row_of = row_numbers(game)
        order = tape.permutation(key[0], key[1], tape.AGENT_ORDER, agents) if sharing.shuffled else range(agents)
        self.order = [int(agent) for agent in order]
        self.shares = [frozenset(sharing.of(agent)) for agent in range(agents)]
        self.traits = [game.traits_of(agent) for agent in range(agents)]
        self.makes = [one.pulls(game.horizon) for one in self.traits]
        self.run = (int(key[0]), int(key[1]))

        tie_order = [int(arm) for arm in tape.permutation(key[0], key[1], tape.TIE_ORDER, arms)]
        self.board = Board(game.longest, tie_order, [False] * arms)
        self.board.sharers = [0] * arms
        self.own = [Record.empty(arms) for _ in range(agents)]
        self.keeps_own = rule.private or game.uneven or not all(sharing.sharers())
        self.keeps = getattr(rule, "keeps", None) if always_shared(game) else None
        self.decide = decider(rule)

        self.pulls, self.tick = 0, next_tick(0)
        self.made = [0] * agents
        self.explored = [0] * arms  # explore pulls of each arm, whether they were told or not
        self.arrivals = self._arrivals()
        self.waiting: list[_Report] = []  # a heap: the next to be told is the first
        self.report_of: dict[int, _Report] = {}  # the open claim of each agent
        self.here: set[int] = set()  # agents that have joined and not left
        self.used_up: list[int] = []  # agents that used their horizons, since the last instant

        self.explore = np.zeros((phases, agents, arms), np.int64)
        self.commit = np.zeros((phases, agents, arms), np.int64)
        self.told = np.zeros((agents, arms), np.int64)
        self.told_sums = np.zeros((agents, arms))
        self.checkpoints, self.curve, self.written = checkpoints, curve, 0
        self.eliminated_step, self.eliminated_agent = np.full(arms, -1), np.full(arms, -1)

    def played(self) -> Tally:
        """Play the run."""
        board, before = self.board, 0.0
        for now, agent in self._schedule():
            if now > before:
                self._write_curve(now)
                self._pass_time(now)
                before = now
            self._pull(now, agent)
            if self.pulls % PULLS_AT_ONCE == 0:
                for callback in _watching:
                    callback(PULLS_AT_ONCE)
        self._write_curve(math.inf)
        tally = Tally(
            self.explore.sum(axis=0),
            self.commit.sum(axis=0),
            np.array(board.record.counts, np.int64),
            np.array(board.record.sums),
            np.array(board.active),
            self.eliminated_step,
            self.eliminated_agent,
            *((self.explore, self.commit, self.told, self.told_sums) if self.game.uneven else ()),
        )
        return tally if board.effects is None else replace(tally, effects=np.array(board.effects, float))

    def _write_curve(self, before: float) -> None:
        """Write the overall regret at all checkpoints before this time."""
        while self.written < len(self.checkpoints) and self.checkpoints[self.written] < before:
            self.curve[self.written] = ((self.explore + self.commit) * gaps_by_phase(self.game)).sum()
            self.written += 1

    # time

    def _schedule(self) -> Iterator[tuple[float, int]]:
        """Yield the time and the agent of every pull."""
        if self.game.traits is None:
            for step in range(1, self.game.horizon + 1):
                for agent in self.order:
                    yield float(step), agent
            return
        nexts = [
            (self.traits[agent].time_of(1), place) for place, agent in enumerate(self.order) if self.makes[agent]
        ]
        heapq.heapify(nexts)
        while nexts:
            now, place = nexts[0]
            agent = self.order[place]
            yield now, agent
            if self.made[agent] < self.makes[agent]:
                heapq.heapreplace(nexts, (self.traits[agent].time_of(self.made[agent] + 1), place))
            else:
                heapq.heappop(nexts)

    def _arrivals(self) -> deque[tuple[float, bool, int]]:
        """Return at the end of which instant each agent leaves or joins: the time, whether it joins, the agent."""
        times = [(one.joins - 1.0, True, agent) for agent, one in enumerate(self.traits)]
        times += [(one.leaves - 1.0, False, agent) for agent, one in enumerate(self.traits) if one.leaves is not None]
        return deque(sorted(times))

    def _pass_time(self, now: float) -> None:
        """Let happen what happens between two instants of pulls: reports, lapses, joining and leaving."""
        self._notice_used_up()
        while True:
            report = self.waiting[0].due if self.waiting else math.inf
            lapse = self._next_lapse()
            arrival = self.arrivals[0][0] if self.arrivals else math.inf
            if arrival < min(now, report, lapse):
                self._arrive()
            elif report <= min(now, lapse):
                self._tell(heapq.heappop(self.waiting))
            elif lapse <= now:
                self._lapse()
            else:
                return

    def _arrive(self) -> None:
        """Let the next agent join or leave."""
        _, joins, agent = self.arrivals.popleft()
        if joins:
            self._join(agent)
        else:
            self._leave(agent)

    def _join(self, agent: int) -> None:
        board = self.board
        able = [other for other in self.here if self.made[other] < self.game.horizon_of(other)]
        for arm in self.shares[agent]:
            if not any(arm in self.shares[other] for other in able):
                board.lapses[arm] = 0  # somebody can pull it again
        self.here.add(agent)
        board.all_pulls += self.game.horizon_of(agent)
        board.shares[agent] = self.shares[agent]
        for arm in self.shares[agent]:
            board.sharers[arm] += 1
            board.shared[arm] = True
            if not board.public[arm]:
                board.public[arm] = board.active[arm] = True

    def _leave(self, agent: int) -> None:
        """Let an agent leave: what it did not tell yet is never told."""
        board = self.board
        for report in [one for one in self.waiting if one.agent == agent]:
            self.waiting.remove(report)
            if not report.lapsed:
                board.claims[report.arm] -= 1
                board.lapses[report.arm] += 1
            board.claimed[agent][report.arm] -= 1
        heapq.heapify(self.waiting)
        self.report_of.pop(agent, None)
        for arm in self.shares[agent]:
            board.sharers[arm] -= 1
            board.shared[arm] = board.sharers[arm] > 0
        self.here.remove(agent)
        self._stall_used_up(self.shares[agent])
        self.shares[agent] = board.shares[agent] = frozenset()

    def _notice_used_up(self) -> None:
        """Stall the arms of the agents that used their horizons in the last instant."""
        for agent in self.used_up:
            self._stall_used_up(self.shares[agent])
        self.used_up = []

    def _stall_used_up(self, arms: Collection[int]) -> None:
        """Let no other arm wait for those of these arms whose sharers have all used their horizons."""
        for arm in arms:
            sharers = [agent for agent in self.here if arm in self.shares[agent]]
            if sharers and all(self.made[agent] == self.game.horizon_of(agent) for agent in sharers):
                self.board.lapses[arm] = max(self.board.lapses[arm], MOST_LAPSES)

    # pulls and reports

    def _pull(self, now: float, agent: int) -> None:
        game, board, rule = self.game, self.board, self.rule
        if self.pulls == self.tick:
            board.clock, self.tick = rounded(self.pulls), next_tick(self.pulls)
        self.pulls += 1
        self.made[agent] += 1
        if self.made[agent] == game.horizon_of(agent):
            self.used_up.append(agent)
        phase = phase_at(game, now)
        draws = Draws(self.run, agent, self.made[agent] - 1)
        mine: Collection[int] = frozenset() if agent in self.report_of else self.shares[agent]
        pull, mine = decision(rule, self.decide, board, agent, mine, self.own[agent], draws)
        arm, share = checked_pull(rule.name, pull, board.arms, mine)
        row = self.row_of[phase, agent] * board.arms + arm
        if not share:
            self.commit[phase, agent, arm] += 1
            own = self.own[agent]
            if self.keeps_own and (self.keeps is None or own.counts[arm] < self.keeps):
                own.add(arm, self.rewards.private(agent, row, own.counts[arm]))
            return
        self.explore[phase, agent, arm] += 1
        reward = self.rewards.broadcast(row, self.explored[arm])
        self.explored[arm] += 1
        delay = self._delay(agent, reward)
        report = _Report(now + delay, self.pulls, agent, arm, reward, now)
        if delay == 0:
            self._broadcast(report, now)
            return
        board.claims[arm] += 1
        claims = board.claimed.setdefault(agent, {})
        claims[arm] = claims.get(arm, 0) + 1
        self.report_of[agent] = report
        heapq.heappush(self.waiting, report)

    def _delay(self, agent: int, reward: float) -> float:
        late = self.traits[agent].late
        if late.steps == 0:
            return 0.0
        entry = int(self.explore[:, agent].sum()) - 1
        return late.drawn(reward, uniform_at(self.run, entry, DELAYS + agent))

    def _tell(self, report: "_Report") -> None:
        """Tell a reward that is late."""
        board, arm, agent = self.board, report.arm, report.agent
        board.claimed[agent][arm] -= 1
        if not report.lapsed:
            board.claims[arm] -= 1
            del self.report_of[agent]
        self._broadcast(report, report.due, late=True)

    def _broadcast(self, report: "_Report", now: float, late: bool = False) -> None:
        board, agent, arm = self.board, report.agent, report.arm
        board.broadcast(agent, arm, report.reward)
        if late:
            self._stall_used_up([arm])  # a broadcast ends a stall, but nobody can pull such an arm again
        self.told[agent, arm] += 1
        self.told_sums[agent, arm] += report.reward
        before = list(board.active)
        self.rule.revise(board)
        for moved in range(board.arms):
            if before[moved] and not board.active[moved]:
                self.eliminated_step[moved], self.eliminated_agent[moved] = math.ceil(now), agent
            elif board.active[moved]:  # it was not eliminated, or is active again
                self.eliminated_step[moved], self.eliminated_agent[moved] = -1, -1

    def _next_lapse(self) -> float:
        """Return when the next claim lapses."""
        if self.game.claim_steps is None or not self.report_of:
            return math.inf
        return min(report.pulled for report in self.report_of.values()) + self.game.claim_steps

    def _lapse(self) -> None:
        """Let the oldest claim lapse: it no longer counts, and its agent may explore again."""
        report = min(self.report_of.values(), key=lambda one: (one.pulled, one.number))
        report.lapsed = True
        del self.report_of[report.agent]
        self.board.claims[report.arm] -= 1
        self.board.lapses[report.arm] += 1


@dataclass(order=True)
class _Report:
    """A reward that is told at time `due`; of several, that of the earlier pull first."""

    due: float
    number: int
    agent: int = field(compare=False)
    arm: int = field(compare=False)
    reward: float = field(compare=False)
    pulled: float = field(compare=False)
    lapsed: bool = field(compare=False, default=False)

"""The live controller on the schedule of a simulated game: who pulls when, what is told when, who joins and leaves.

A step of simulated time is a second of the ledger's. Rewards, delays and the tie order come from the tape of a run,
so the reference plays the same game.
"""

import heapq
import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.support.sequences import Table, created

from partage.arms import reward_table
from partage.engine.rewards import Rewards
from partage.engine.tally import Tally, phase_at, reward_rows, row_numbers
from partage.game import Game
from partage.ledger import moves
from partage.ledger.fields import LONGEST_CLAIM
from partage.ledger.state import State
from partage.ledger.ties import tie_seed_of
from partage.tape import DELAYS, run_key, uniform_at

STEP = 1000  # ms


def key_of(seed: str) -> tuple[int, int]:
    """Return the key of the run in which ties have the order of a collaboration with this seed."""
    return run_key(tie_seed_of(bytes.fromhex(seed), []))


class Schedule:
    """A game whose members all share something at all times, played by the moves of the ledger.

    Attributes
    ----------
    table
        The collaboration.
    """

    def __init__(self, game: Game, seed: str, **config: Any) -> None:
        arms = [f"arm {number}" for number in range(len(game.arms))]
        claim_seconds = float(LONGEST_CLAIM if game.claim_steps is None else game.claim_steps)
        given = {"settlement": "none", **config, "horizon": game.longest, "claim_seconds": claim_seconds}
        self.table = Table(created(seed, arms=arms, **given))
        self._begin(game, key_of(seed), self.table.now)

    def _begin(self, game: Game, key: tuple[int, int], start: int) -> None:
        """Prepare the rewards and the tallies of a game that starts at this time."""
        self.game, self.key, self.start, self.step = game, key, start, STEP
        arms = range(len(game.arms))
        self.rewards = Rewards(
            np.array(self.key, np.uint64), reward_table([a for row in reward_rows(game) for a in row])
        )
        self.rows = row_numbers(game)
        self.ids: dict[int, str] = {}
        self.waiting: list[tuple[float, int, int, int, float]] = []  # when, number, agent, claim, reward
        self.explored = [0] * len(arms)
        phases = len(game.phases)
        self.explore = np.zeros((phases, game.agents, len(arms)), np.int64)
        self.commit = np.zeros((phases, game.agents, len(arms)), np.int64)
        self.told, self.told_sums = np.zeros((game.agents, len(arms)), np.int64), np.zeros((game.agents, len(arms)))
        self.eliminated_step, self.eliminated_agent = np.full(len(arms), -1), np.full(len(arms), -1)
        self.pulls = 0

    @property
    def state(self) -> State:
        """The state of the collaboration."""
        return self.table.state

    def at(self, time: float) -> None:
        """Let it be this time, in steps."""
        self.table.now = self.start + round(time * self.step)

    def lapse(self) -> None:
        """Let claims lapse that have waited too long."""
        self.table.move(moves.lapse)

    def tell(self, agent: int, pull: int, reward: float) -> int:
        """Tell the reward of a claim, and return its arm."""
        return self.table.tell(self.ids[agent], pull, reward).arm

    def played(self) -> Tally:
        """Play the whole schedule, and return what happened as the reference would."""
        game, before = self.game, 0.0
        traits = [game.traits_of(agent) for agent in range(game.agents)]
        arrivals = [(one.joins - 1.0, True, agent) for agent, one in enumerate(traits)]
        arrivals += [(one.leaves - 1.0, False, agent) for agent, one in enumerate(traits) if one.leaves is not None]
        arrivals.sort()
        made = [0] * game.agents
        nexts = [(one.time_of(1), agent) for agent, one in enumerate(traits) if one.pulls(game.horizon)]
        heapq.heapify(nexts)
        while nexts:
            now, agent = heapq.heappop(nexts)
            if now > before:
                self.at(before + 1 / self.step)
                self.lapse()  # names the arms whose sharers used their horizons in the last instant
                self._pass_time(now, arrivals)
                before = now
            self.at(now)
            self._pull(now, agent)
            made[agent] += 1
            if made[agent] < traits[agent].pulls(game.horizon):
                heapq.heappush(nexts, (traits[agent].time_of(made[agent] + 1), agent))
        board = self.state.board
        tally = Tally(
            self.explore.sum(axis=0),
            self.commit.sum(axis=0),
            np.array(board.record.counts, np.int64),
            np.array(board.record.sums),
            np.array(board.active),
            self.eliminated_step,
            self.eliminated_agent,
            *((self.explore, self.commit, self.told, self.told_sums) if game.uneven else ()),
        )
        return tally if board.effects is None else replace(tally, effects=np.array(board.effects, float))

    def _pass_time(self, now: float, arrivals: list[tuple[float, bool, int]]) -> None:
        """Tell what is due, and let claims lapse and members come and go, each at its time."""
        state = self.state
        while True:
            due = self.waiting[0][0] if self.waiting else math.inf
            open_since = [(one.time - self.start) / self.step for one in state.claims.values()]
            lapse = min(open_since, default=math.inf) + (self.game.claim_steps or math.inf)
            arrival = arrivals[0][0] if arrivals else math.inf
            if arrival < min(now, due, lapse):
                self.at(arrival)
                _, joins, agent = arrivals.pop(0)
                self._arrive(joins, agent)
            elif due <= min(now, lapse):
                self.at(due)
                _, _, agent, pull, reward = heapq.heappop(self.waiting)
                self._tell(due, agent, pull, reward)
            elif lapse <= now:
                self.at(lapse)
                self.lapse()
            else:
                return

    def _arrive(self, joins: bool, agent: int) -> None:
        if joins:
            horizon = self.game.horizon_of(agent)
            declared = {} if horizon == self.game.longest else {"horizon": horizon}
            self.ids[agent] = self.table.join(*self.game.sharing.of(agent), **declared)
        else:
            self.table.leave(self.ids[agent])
            self.waiting = [one for one in self.waiting if one[2] != agent]
            heapq.heapify(self.waiting)

    def _pull(self, now: float, agent: int) -> None:
        """Ask for a pull, or commit if a report is out."""
        table, id, phase = self.table, self.ids[agent], phase_at(self.game, now)
        self.lapse()
        self.pulls += 1
        if table.state.members[id].claim is not None:
            table.follow(id, f"pull {self.pulls}", 1)
            self.commit[phase, agent, table.state.target()] += 1
            return
        answer = table.ask(id)
        if not answer.share:
            self.commit[phase, agent, answer.arm] += 1
            return
        self._explore(now, agent, answer.arm, answer.seq)

    def _explore(self, now: float, agent: int, arm: int, pull: int) -> None:
        """Make an explore pull, and tell its reward or let it wait."""
        phase = phase_at(self.game, now)
        self.explore[phase, agent, arm] += 1
        reward = self.rewards.broadcast(self.rows[phase, agent] * len(self.explored) + arm, self.explored[arm])
        self.explored[arm] += 1
        late, entry = self.game.traits_of(agent).late, int(self.explore[:, agent].sum()) - 1
        delay = late.drawn(reward, uniform_at(self.key, entry, DELAYS + agent)) if late.steps else 0.0
        if delay:
            heapq.heappush(self.waiting, (now + delay, self.pulls, agent, pull, reward))
        else:
            self._tell(now, agent, pull, reward)

    def _tell(self, now: float, agent: int, pull: int, reward: float) -> None:
        board = self.state.board
        before = list(board.active)
        arm = self.tell(agent, pull, reward)
        self.told[agent, arm] += 1
        self.told_sums[agent, arm] += reward
        for moved in range(board.arms):
            if before[moved] and not board.active[moved]:
                self.eliminated_step[moved], self.eliminated_agent[moved] = math.ceil(now), agent
            elif board.active[moved]:
                self.eliminated_step[moved], self.eliminated_agent[moved] = -1, -1


def words_of(seed: str) -> NDArray[np.uint64]:
    """Return the key of that run as the engine takes it."""
    return np.array(key_of(seed), np.uint64)

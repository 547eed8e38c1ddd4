"""Network-GLR: a kernel walks pulls, and the rule itself closes blocks, in plain Python.

Within a block nothing that decisions depend on changes but counts, so a kernel can walk it. It stops where a block
may close, and where the open arms may change: when agents have joined or left, and when an arm stalls or no longer
does. A game has a few hundred blocks, however long it is. Once nothing is left to explore or to tell, the rest is
counted by arithmetic.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.board import MOST_LAPSES, Board, Record
from partage.compiled import compiled, uncounted
from partage.engine.decisions import best_of
from partage.engine.reports import Reports, is_full, new_reports, next_due, oldest_claim, with_room
from partage.engine.rewards import ranks, reward
from partage.engine.tally import Floats, Ints, all_rows, clear
from partage.engine.uneven_board import (
    LEADER,
    UnevenBoard,
    arrive,
    clear_uneven,
    finish,
    lapse,
    new_board,
    pull_shared,
    record_told,
    regret_so_far,
    report_later,
    stall_used_up,
    taken_report,
    use_up,
)
from partage.engine.uneven_layout import first_pull_from, pull_time
from partage.engine.uneven_pulls import committed, new_schedule, sink
from partage.engine.uneven_table import can_jump
from partage.rules.network_glr import GROWTH

if TYPE_CHECKING:
    from partage.engine.run import Run
    from partage.rules import NetworkGLR

PLAYS_HIDDEN_ARMS = PLAYS_UNEVEN = True
_GROWN = 1.0 + GROWTH
_OVER, _LOOK, _CLOSE = range(
    3
)  # why the kernel stops: the game is over, open arms may have changed, a block may close
_SIZE, _PHASE, _ARRIVED, _USED, _CHECKPOINT, _STALE, _AGENT, _STEP, _TOLD = range(9)


class Walk(NamedTuple):
    """Where a run is.

    Attributes
    ----------
    at
        Agents that still pull, the phase, how many have arrived, used up their horizons, how many checkpoints are
        written, whether open arms may have changed, the agent and the step of the last broadcast, and the broadcasts
        so far.
    now
        The time up to which everything has happened.
    made, times, heap
        Pulls of each agent; when the agent at each place pulls next; the places by that.
    handed, first
        Explore pulls by entry of the sharing; the number of the first broadcast of each agent, -1 if it made none.
    own_counts, own_sums
        What each agent knows alone, if some arm has no sharer at times.
    """

    at: Ints
    now: Floats
    made: Ints
    times: Floats
    heap: Ints
    handed: Ints
    first: Ints
    own_counts: Ints
    own_sums: Floats


class Decisions(NamedTuple):
    """What decisions depend on, besides counts, until a block closes.

    Attributes
    ----------
    told, counted
        Broadcasts when the last block closed, and those that blocks counted, by entry of the sharing.
    own_leaders
        The arm of each agent that has a leader of its own; otherwise -1.
    opened, awaited, stalled
        Which arms are open, which of them must be connected to close the block, and which are stalled.
    weights
        How often each arm is explored, relative to the others.
    leader
        The leader; -1 if that is the active arm with the highest mean.
    """

    told: int
    counted: Ints
    own_leaders: Ints
    opened: NDArray[np.bool_]
    awaited: NDArray[np.bool_]
    stalled: NDArray[np.bool_]
    weights: Floats
    leader: int


def play(run: "Run", rule: "NetworkGLR") -> None:
    """Play one run."""
    _Play(run, rule).play()


class _Play:
    """One run: the board, which is brought up to date when the kernel stops, and the arrays of the kernel."""

    def __init__(self, run: "Run", rule: "NetworkGLR") -> None:
        self.run, self.rule = run, rule
        self.game, self.world = run.uneven_tables
        self.owners = np.repeat(np.arange(self.game.agents), np.diff(self.game.starts))
        self.shares = {
            agent: frozenset(self.game.shared[self.game.starts[agent] : self.game.starts[agent + 1]].tolist())
            for agent in range(self.game.agents)
        }
        self.board = Board(self.game.horizon, run.tie_order.tolist(), [False] * self.game.arms)
        started = start_walk(self.game, self.world, run.tie_order, run.order, run.outcome, run.uneven_room)
        self.table: UnevenBoard = started[0]
        self.reports: Reports = started[1]
        self.walk: Walk = started[2]
        self.arrived = -1

    def play(self) -> None:
        """Play the run."""
        run, jumps = self.run, can_jump(self.world)
        while True:
            why, self.reports = walk_on(
                *run.key, self.game, self.world, run.order, jumps, self._decisions(), self.walk, self.table,
                self.reports, (run.checkpoints, run.curve), run.outcome, run.uneven_room,
            )  # fmt: skip
            self._update()
            if why == _OVER:
                break
            if why == _CLOSE:
                self._close()
        run.uneven = run.uneven_room if run.game.uneven else None
        effects = self.board.effects
        run.effects = None if effects is None else np.array(effects, float)

    def _update(self) -> None:
        """Bring the board up to date, but for its record."""
        board = self.board
        board.public, board.active = self.table.public.tolist(), self.run.outcome.active.tolist()
        board.lapses = self.table.lapses.tolist()
        if self.arrived != self.walk.at[_ARRIVED]:
            self.arrived = self.walk.at[_ARRIVED]
            board.shares = {int(agent): self.shares[int(agent)] for agent in np.flatnonzero(self.table.here)}

    def _decisions(self) -> Decisions:
        """Return everything that decisions depend on until the kernel stops, but counts."""
        board, game = self.board, self.game
        state = board.state or {"told": 0, "counted": {}, "leader": None, "apart": {}}
        counted, own_leaders = np.zeros((game.agents, game.arms), np.int64), np.full(game.agents, -1)
        for member, (counts, _) in state["counted"].items():
            counted[int(member)] = counts
        for member, arm in state["apart"].items():
            own_leaders[int(member)] = arm
        found = self.rule.open_arms(board)
        opened, awaited = np.zeros(game.arms, np.bool_), np.zeros(game.arms, np.bool_)
        opened[found] = True
        awaited[board.awaited(found, at_least=2)] = True
        weights = np.ones(game.arms)
        if state["leader"] is not None:
            weights[state["leader"]] = self.rule.lead
        return Decisions(
            state["told"],
            counted[self.owners, game.shared],
            own_leaders,
            opened,
            awaited,
            np.array([board.stalled(arm) for arm in range(game.arms)]),
            weights,
            -1 if board.leading is None else board.leading,
        )

    def _close(self) -> None:
        """Let the rule close the block, if it may be closed."""
        board, outcome, walk = self.board, self.run.outcome, self.walk
        told, sums = (np.zeros((self.game.agents, self.game.arms), kind) for kind in (np.int64, np.float64))
        told[self.owners, self.game.shared] = self.run.uneven_room.told
        sums[self.owners, self.game.shared] = self.run.uneven_room.told_sums
        board.record = Record(outcome.counts.tolist(), outcome.sums.tolist())
        members = np.flatnonzero(walk.first >= 0)
        board.by_member = {
            int(one): Record(told[one].tolist(), sums[one].tolist())
            for one in members[np.argsort(walk.first[members])]
        }
        before = list(board.active)
        self.rule.revise(board)
        outcome.active[:] = board.active
        for arm in range(board.arms):
            if before[arm] and not board.active[arm]:
                outcome.eliminated_step[arm], outcome.eliminated_agent[arm] = walk.at[_STEP], walk.at[_AGENT]
            elif board.active[arm]:
                outcome.eliminated_step[arm], outcome.eliminated_agent[arm] = -1, -1


@compiled
def start_walk(game, world, tie_order, order, outcome, uneven):
    """Return the board before anybody has joined, the reports that are out, and where the run is."""
    board = new_board(game, world, ranks(tie_order))
    clear(board.public, outcome)
    all_rows(outcome)
    clear_uneven(uneven)
    kept = game.agents if world.hides else 0
    made, times, heap = np.zeros(game.agents, np.int64), np.zeros(game.agents), np.zeros(game.agents, np.int64)
    at = np.zeros(9, np.int64)
    at[_SIZE] = new_schedule(world, order, times, heap)
    walk = Walk(
        at, np.zeros(1), made, times, heap, np.zeros(len(game.shared), np.int64), np.full(game.agents, np.int64(-1)),
        np.zeros((kept, game.arms), np.int64), np.zeros((kept, game.arms)),
    )  # fmt: skip
    return board, new_reports(game.agents), walk


@compiled
def walk_on(k0, k1, game, world, order, jumps, decisions, walk, board, reports, regret, outcome, uneven):
    """Walk pulls until the rule must look at the board; return why, and the reports."""
    at, times, heap, made, state = walk.at, walk.times, walk.heap, walk.made, board.state
    checkpoints, curve = regret
    piece, n_open = np.zeros(game.arms, np.int64), decisions.opened.sum()
    at[_STALE] = _is_stale(board, decisions)
    _find_leader(decisions, board, outcome)
    grown = _is_grown(at, decisions)
    if grown:
        _label(game, decisions, uneven, piece)

    while at[_SIZE] > 0:
        place = heap[0]
        now, agent = times[place], order[place]

        # 1. What happens since the last instant.
        if now > walk.now[0]:
            while at[_CHECKPOINT] < len(checkpoints) and checkpoints[at[_CHECKPOINT]] < now:
                curve[at[_CHECKPOINT]] = regret_so_far(game, world, uneven)
                at[_CHECKPOINT] += 1
            while world.used_up[at[_USED]] < now:
                use_up(game, world.users[at[_USED]], board)
                at[_USED] += 1
                at[_STALE] |= _is_stale(board, decisions)
            while True:
                due, first = next_due(reports), oldest_claim(reports)
                lapses = reports.pulled[first] + world.claim_steps if first >= 0 else np.inf
                if world.arrivals[at[_ARRIVED]] < min(now, due, lapses):
                    arrived = at[_ARRIVED]
                    arrive(game, world, world.arrives[arrived], world.joins[arrived], board, reports, outcome)
                    at[_ARRIVED], at[_STALE] = arrived + 1, 1
                    _find_leader(decisions, board, outcome)
                elif due <= min(now, lapses):
                    if at[_STALE]:
                        return _LOOK, reports
                    slot = taken_report(game, board, reports)
                    if slot < 0:
                        continue
                    teller, told, paid = reports.agent[slot], reports.entry[slot], reports.reward[slot]
                    closes = _tell(
                        game, decisions, teller, told, paid, due, True, walk, board, outcome, uneven, piece
                    )
                    if closes:
                        return _CLOSE, reports
                    grown = _is_grown(at, decisions)
                elif lapses <= now:
                    lapse(game, board, reports)
                    at[_STALE] |= _is_stale(board, decisions)
                else:
                    break
            while world.phase_starts[at[_PHASE] + 1] < now:
                at[_PHASE] += 1
            walk.now[0] = now
        if at[_STALE]:
            return _LOOK, reports
        if n_open == 0 and jumps and next_due(reports) == np.inf and world.arrivals[at[_ARRIVED]] == np.inf:
            _commit_to_the_end(game, world, decisions, walk, board, checkpoints, curve, uneven)
            break

        # 2. The agent explores, or commits.
        made[agent] += 1
        phase, entry, closes = at[_PHASE], np.int64(-1), False
        if n_open > 1 and decisions.own_leaders[agent] < 0 and reports.claim[agent] < 0:
            entry = _offered(game, agent, decisions, walk.handed, board.rank, grown, piece)
        if entry >= 0:
            walk.handed[entry] += 1
            paid, delay = pull_shared(k0, k1, game, world, phase, agent, entry, board, uneven)
            if delay > 0.0:
                if is_full(reports):
                    reports = with_room(reports)
                report_later(game, agent, entry, paid, now, delay, board, reports)
            else:
                closes = _tell(game, decisions, agent, entry, paid, now, False, walk, board, outcome, uneven, piece)
                grown = _is_grown(at, decisions)
        else:
            own_leader = decisions.own_leaders[agent]
            arm = own_leader if own_leader >= 0 else state[LEADER]
            if world.hides:
                if own_leader < 0:
                    arm = committed(game, agent, board, outcome, walk.own_counts, walk.own_sums)
                row = world.rows[phase, agent] * game.arms + arm
                count = walk.own_counts[agent, arm]
                walk.own_sums[agent, arm] += reward(k0, k1, game.rewards, row, count, 1 + agent)
                walk.own_counts[agent, arm] += 1
            uneven.commit[phase, arm, agent] += 1

        # 3. When it pulls again.
        if made[agent] < world.makes[agent]:
            times[place] = world.start[agent] + (made[agent] + 1) / world.pace[agent]
        else:
            at[_SIZE] -= 1
            heap[0] = heap[at[_SIZE]]
        sink(heap, at[_SIZE], times)
        if closes:
            return _CLOSE, reports
    curve[at[_CHECKPOINT] :] = regret_so_far(game, world, uneven)
    finish(outcome, uneven)
    return _OVER, reports


@uncounted
def _is_stale(board, decisions):
    """Whether an arm has stalled, or has ceased to, since decisions were made."""
    for arm in range(len(board.lapses)):
        if (board.lapses[arm] >= MOST_LAPSES) != decisions.stalled[arm]:
            return 1
    return 0


@uncounted
def _is_grown(at, decisions):
    """Whether the record has grown by a twentieth since the last block closed."""
    return at[_TOLD] > decisions.told and at[_TOLD] >= _GROWN * decisions.told


@uncounted
def _find_leader(decisions, board, outcome):
    """Note which arm a commit pulls."""
    leader = decisions.leader
    board.state[LEADER] = leader if leader >= 0 else best_of(outcome.active, outcome.counts, outcome.sums, board.rank)


@uncounted
def _tell(game, decisions, agent, entry, paid, now, late, walk, board, outcome, uneven, piece):
    """Broadcast a reward; return whether the block may close."""
    at = walk.at
    record_told(game, entry, paid, board, outcome, uneven)
    if late:
        stall_used_up(game.shared[entry], board)  # nobody can pull it again
    if walk.first[agent] < 0:
        walk.first[agent] = at[_TOLD]
    at[_TOLD] += 1
    at[_AGENT], at[_STEP] = agent, np.int64(np.ceil(now))
    _find_leader(decisions, board, outcome)
    closes = _is_grown(at, decisions) and _label(game, decisions, uneven, piece)
    return closes or _is_stale(board, decisions) == 1  # the open arms may have changed


@uncounted
def _offered(game, agent, decisions, handed, rank, grown, piece):
    """Return the entry of the arm that an agent explores next; -1 if it commits. As `NetworkGLR.offered`."""
    best, found, apart, one = np.int64(-1), 0, False, np.int64(-1)
    best_waiting, best_handed = 0.0, 0.0
    for entry in range(game.starts[agent], game.starts[agent + 1]):
        arm = game.shared[entry]
        if not decisions.opened[arm]:
            continue
        found += 1
        apart = apart or (one >= 0 and piece[arm] != piece[one])
        one = np.int64(arm)
        weight = decisions.weights[arm]
        waiting, its = (handed[entry] - decisions.counted[entry] + 1) / weight, handed[entry] / weight
        better = best < 0 or waiting < best_waiting
        if not better and waiting == best_waiting:
            better = its < best_handed or (its == best_handed and rank[arm] < rank[game.shared[best]])
        if better:
            best, best_waiting, best_handed = np.int64(entry), waiting, its
    return best if found > 1 and (apart or not grown) else np.int64(-1)


@uncounted
def _label(game, decisions, uneven, piece):
    """Write which open arms are connected by what is not counted yet; return whether all that are awaited are."""
    opened, told, counted = decisions.opened, uneven.told, decisions.counted
    for arm in range(game.arms):
        piece[arm] = arm
    for agent in range(game.agents):
        one = np.int64(-1)
        if decisions.own_leaders[agent] >= 0:
            continue
        for entry in range(game.starts[agent], game.starts[agent + 1]):
            arm = np.int64(game.shared[entry])
            if opened[arm] and told[entry] > counted[entry]:
                if one >= 0 and piece[arm] != piece[one]:
                    old = piece[arm]
                    for other in range(game.arms):
                        if piece[other] == old:
                            piece[other] = piece[one]
                one = arm
    label = np.int64(-1)
    for arm in range(game.arms):
        if decisions.awaited[arm]:
            if label >= 0 and piece[arm] != label:
                return False
            label = piece[arm]
    return label >= 0


@uncounted
def _commit_to_the_end(game, world, decisions, walk, board, checkpoints, curve, uneven):
    """Count all pulls that are left, phase by phase and checkpoint by checkpoint: they are commits."""
    at = walk.at
    at[_SIZE] = 0
    while True:
        until = min(world.end, world.phase_starts[at[_PHASE] + 1])
        if at[_CHECKPOINT] < len(checkpoints):
            until = min(until, np.float64(checkpoints[at[_CHECKPOINT]]))
        for agent in range(game.agents):
            of, own_leader = world.class_of[agent], decisions.own_leaders[agent]
            pull = first_pull_from(world, of, until)
            if pull > world.class_makes[of] or pull_time(world, of, pull) > until:
                pull -= 1
            uneven.commit[at[_PHASE], own_leader if own_leader >= 0 else board.state[LEADER], agent] += (
                pull - walk.made[agent]
            )
            walk.made[agent] = pull
        if until == world.end:
            return
        if at[_CHECKPOINT] < len(checkpoints) and until == checkpoints[at[_CHECKPOINT]]:
            curve[at[_CHECKPOINT]] = regret_so_far(game, world, uneven)
            at[_CHECKPOINT] += 1
        if until == world.phase_starts[at[_PHASE] + 1]:
            at[_PHASE] += 1

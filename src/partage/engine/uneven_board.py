"""The board of an uneven game, compiled: what happens when agents join, leave, explore and report."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage import tape
from partage.board import MOST_LAPSES
from partage.compiled import inner, uncounted
from partage.engine.claims import open_arms_with_claims
from partage.engine.decisions import best_of, note_eliminations, revise
from partage.engine.reports import end_claim, oldest_claim, received, send
from partage.engine.rewards import TAPE, next_reward, philox, unit
from partage.rules.balanced_glr import evidence_at_worst
from partage.traits import drawn_delay

LEADER, CLOCK, ALL_PULLS, EXPLORED = range(4)
_DELAYS, _OTHER = np.uint64(tape.DELAYS), np.uint64(tape.OTHER)


class UnevenBoard(NamedTuple):
    """What is public besides the record, and where the tape is.

    Attributes
    ----------
    claims, lapses, sharers, public
        Of each arm, as in `partage.board.Board`.
    able
        How many of the sharers of each arm have not used up their horizons.
    explored
        Explore pulls of each arm, whether they were told or not.
    out, untold
        Rewards that may still be told, of open claims and of lapsed ones: by arm, and by entry of the sharing.
    explores
        Explore pulls of each agent.
    here, gone, done
        Whether an agent has joined and not left, has left, and has used up its horizon.
    rank
        The place of each arm in the tie order.
    word, group_of
        The last rewards that were read of each arm of each row.
    state
        The leader, the clock, the pulls of all agents by the end, and the explore pulls so far.
    """

    claims: NDArray[np.int64]
    lapses: NDArray[np.int64]
    sharers: NDArray[np.int64]
    public: NDArray[np.bool_]
    able: NDArray[np.int64]
    explored: NDArray[np.int64]
    out: NDArray[np.int64]
    untold: NDArray[np.int64]
    explores: NDArray[np.int64]
    here: NDArray[np.bool_]
    gone: NDArray[np.bool_]
    done: NDArray[np.bool_]
    rank: NDArray[np.int64]
    word: NDArray[np.uint64]
    group_of: NDArray[np.int64]
    state: NDArray[np.int64]


@inner
def new_board(game, world, rank):
    """Return the board before anybody has joined."""
    arms, agents = game.arms, game.agents
    return UnevenBoard(
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.bool_),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(len(game.shared), np.int64),
        np.zeros(agents, np.int64),
        np.zeros(agents, np.bool_),
        np.zeros(agents, np.bool_),
        np.zeros(agents, np.bool_),
        rank,
        np.zeros(len(world.gaps), np.uint64),
        np.full(len(world.gaps), np.int64(-1)),
        np.array([-1, 0, 0, 0]),
    )


@inner
def clear_uneven(uneven):
    """Make room for the next run."""
    uneven.explore[:] = 0
    uneven.commit[:] = 0
    uneven.told[:] = 0
    uneven.told_sums[:] = 0.0


@uncounted
def find_open(rule, board, case, outcome):
    """Find the open arms; return how many there are."""
    state = board.state
    return open_arms_with_claims(
        rule, state[CLOCK], state[ALL_PULLS], outcome.counts, outcome.sums, board.claims, board.lapses, board.sharers,
        outcome.active, state[LEADER], case,
    )  # fmt: skip


@uncounted
def arrive(game, world, agent, joins, board, reports, outcome):
    """Let an agent join or leave."""
    entries = range(game.starts[agent], game.starts[agent + 1])
    if not joins:
        board.here[agent], board.gone[agent] = False, True
        if reports.claim[agent] >= 0:
            _end_untold(game, agent, board, reports)
        for entry in entries:
            arm = game.shared[entry]
            board.out[arm] -= board.untold[entry]
            board.sharers[arm] -= 1
            board.able[arm] -= not board.done[agent]
            stall_used_up(arm, board)
        return
    board.here[agent] = True
    board.state[ALL_PULLS] += world.horizons[agent]
    for entry in entries:
        arm = game.shared[entry]
        board.sharers[arm] += 1
        if board.able[arm] == 0:
            board.lapses[arm] = 0  # somebody can pull it again
        board.able[arm] += not board.done[agent]
        if not board.public[arm]:
            board.public[arm] = outcome.active[arm] = True
    board.state[LEADER] = best_of(outcome.active, outcome.counts, outcome.sums, board.rank)


@uncounted
def _end_untold(game, agent, board, reports):
    arm = game.shared[reports.claimed[agent]]
    board.claims[arm] -= 1
    board.lapses[arm] += 1
    end_claim(reports, agent)


@uncounted
def lapse(game, board, reports):
    """Let the oldest claim lapse."""
    _end_untold(game, oldest_claim(reports), board, reports)


@uncounted
def use_up(game, agent, board):
    """Note that an agent has used up its horizon."""
    board.done[agent] = True
    if board.here[agent]:
        for entry in range(game.starts[agent], game.starts[agent + 1]):
            board.able[game.shared[entry]] -= 1
            stall_used_up(game.shared[entry], board)


@uncounted
def stall_used_up(arm, board):
    """Let no other arm wait for one whose sharers have all used up their horizons."""
    if board.sharers[arm] > 0 and board.able[arm] == 0:
        board.lapses[arm] = max(board.lapses[arm], MOST_LAPSES)


@uncounted
def taken_report(game, board, reports):
    """Take the next report, and end its claim; return its slot, or -1 if its agent has left."""
    slot = received(reports)
    agent = reports.agent[slot]
    if board.gone[agent]:
        return np.int64(-1)
    board.out[game.shared[reports.entry[slot]]] -= 1
    board.untold[reports.entry[slot]] -= 1
    if reports.claim[agent] == reports.number[slot]:
        board.claims[game.shared[reports.entry[slot]]] -= 1
        end_claim(reports, agent)
    return slot


@uncounted
def tell_next(game, rule, board, case, reports, outcome, uneven):
    """Tell the next report, unless its agent has left."""
    slot = taken_report(game, board, reports)
    if slot >= 0:
        agent, entry = reports.agent[slot], reports.entry[slot]
        tell(game, rule, agent, entry, reports.reward[slot], reports.due[slot], board, case, outcome, uneven)
        stall_used_up(game.shared[entry], board)  # a broadcast ends a stall, but nobody can pull such an arm again


@uncounted
def record_told(game, entry, reward, board, outcome, uneven):
    """Add a reward to the record."""
    arm = game.shared[entry]
    outcome.counts[arm] += 1
    outcome.sums[arm] += reward
    uneven.told[entry] += 1
    uneven.told_sums[entry] += reward
    board.lapses[arm] = 0


@uncounted
def tell(game, rule, agent, entry, reward, now, board, case, outcome, uneven):
    """Broadcast a reward, and revise the active arms."""
    arm, counts, sums, active, state = (
        np.int64(game.shared[entry]),
        outcome.counts,
        outcome.sums,
        outcome.active,
        board.state,
    )
    record_told(game, entry, reward, board, outcome, uneven)
    state[LEADER] = revise(
        rule, game.two_log, arm, reward, counts, sums, active, board.public, board.rank, state[LEADER], case
    )
    if rule.worst:
        _revise_at_worst(rule.threshold, board, case, outcome)
    step = np.int64(math.ceil(now))
    note_eliminations(step, agent, board.public, active, outcome.eliminated_step, outcome.eliminated_agent)


@uncounted
def _revise_at_worst(threshold, board, case, outcome):
    """Eliminate arms only if no reward that is out could save them, as `BalancedGLR` does with late="worst"."""
    counts, sums, out, leader = outcome.counts, outcome.sums, board.out, board.state[LEADER]
    for arm in range(len(counts)):
        if board.public[arm] and arm != leader and counts[arm] > 0:
            evidence = case.evidence[arm] - case.loss[arm] - case.loss[leader]
            if out[arm] > 0 or out[leader] > 0:
                evidence = evidence_at_worst(
                    counts[arm] + out[arm], sums[arm] + out[arm], counts[leader] + out[leader], sums[leader]
                )
            outcome.active[arm] = evidence < threshold


@uncounted
def pull_shared(k0, k1, game, world, phase, agent, entry, board, uneven):
    """Let an agent pull an arm that it will tell of; return the reward, and how late it is told."""
    arm = np.int64(game.shared[entry])
    uneven.explore[phase, entry] += 1
    row = world.rows[phase, agent] * game.arms + arm
    reward = next_reward(k0, k1, game.rewards, row, board.explored[arm], TAPE, board.word, board.group_of)
    board.explored[arm] += 1
    board.state[EXPLORED] += 1
    board.explores[agent] += 1
    return reward, _drawn(k0, k1, world, agent, board.explores[agent] - 1, reward)


@uncounted
def explore(k0, k1, game, world, rule, phase, agent, entry, now, board, case, reports, outcome, uneven):
    """Let an agent explore: it reports at once, or later."""
    reward, delay = pull_shared(k0, k1, game, world, phase, agent, entry, board, uneven)
    if delay == 0.0:
        tell(game, rule, agent, entry, reward, now, board, case, outcome, uneven)
    else:
        report_later(game, agent, entry, reward, now, delay, board, reports)


@uncounted
def report_later(game, agent, entry, reward, now, delay, board, reports):
    """Open a claim on what an agent tells later."""
    board.claims[game.shared[entry]] += 1
    board.out[game.shared[entry]] += 1
    board.untold[entry] += 1
    send(reports, agent, entry, reward, board.state[EXPLORED], now, now + delay)


@uncounted
def _drawn(k0, k1, world, agent, entry, reward):
    """Return how late an agent reports this reward, the one of its explore pull `entry`."""
    steps = world.delay_steps[agent]
    if steps == 0.0:
        return 0.0
    word, _, _, _ = philox(k0, k1, np.uint64(0), np.uint64(entry), _DELAYS + np.uint64(agent), _OTHER)
    return drawn_delay(world.delay_kind[agent], world.delay_of[agent], steps, reward, unit(word))


@uncounted
def regret_so_far(game, world, uneven):
    """Return the overall regret of all pulls that are counted, by the gaps of each agent's own arms."""
    regret = 0.0
    for phase in range(len(uneven.explore)):
        for agent in range(game.agents):
            first = world.rows[phase, agent] * game.arms
            for entry in range(game.starts[agent], game.starts[agent + 1]):
                regret += world.gaps[first + game.shared[entry]] * uneven.explore[phase, entry]
            for arm in range(game.arms):
                regret += world.gaps[first + arm] * uneven.commit[phase, arm, agent]
    return regret


@inner
def finish(outcome, uneven):
    """Add up over phases."""
    outcome.explore[:] = 0
    for phase in range(len(uneven.explore)):
        outcome.explore[:] += uneven.explore[phase]
        outcome.commit[:, :-1] += uneven.commit[phase]

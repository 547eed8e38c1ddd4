"""What kernels for agents that see the broadcasts have in common: all records, what one agent sees, and one pull."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.compiled import inlined, inner, uncounted
from partage.engine.rewards import next_reward


class Records(NamedTuple):
    """Every record of a run: row 0 is the public one, row 1 + m the private one of agent m. Rows number streams too.

    Attributes
    ----------
    counts, sums
        Pulls of each arm, and the sum of their rewards.
    word, group_of
        The last word of rewards that was read (see `bernoulli_sum`).
    entry_of
        The agent's entry of the sharing for each arm; -1 if it does not share the arm.
    pulled
        All pulls of each arm.
    """

    counts: NDArray[np.int64]
    sums: NDArray[np.float64]
    word: NDArray[np.uint64]
    group_of: NDArray[np.int64]
    entry_of: NDArray[np.int64]
    pulled: NDArray[np.int64]


@inner
def new_records(game):
    """Return empty records."""
    agents, arms = game.agents, game.arms
    shape = (agents + 1, arms)
    entry_of = np.full((agents, arms), np.int64(-1))
    for agent in range(agents):
        for entry in range(game.starts[agent], game.starts[agent + 1]):
            entry_of[agent, game.shared[entry]] = entry
    return Records(
        np.zeros(shape, np.int64),
        np.zeros(shape),
        np.zeros(shape, np.uint64),
        np.full(shape, np.int64(-1)),
        entry_of,
        np.zeros(arms, np.int64),
    )


@inlined
def look(both, agent, records, counts, sums):
    """Write into `counts` and `sums` what an agent sees: the public record, and with `both` its own as well."""
    for arm in range(len(counts)):
        counts[arm], sums[arm] = records.counts[0, arm], records.sums[0, arm]
        if both:
            counts[arm] += records.counts[1 + agent, arm]
            sums[arm] += records.sums[1 + agent, arm]


@inlined
def first_unseen(agent, records, counts, tie_order):
    """Return the unseen arm that an agent pulls first; -1 if there is none (see `partage.rules.seeing`)."""
    for arm in tie_order:
        if counts[arm] == 0 and (records.entry_of[agent, arm] >= 0 or records.counts[1 + agent, arm] == 0):
            return arm
    return -1


@inlined
def pull_and_share(k0, k1, table, agent, arm, records, explore):
    """Pull an arm and record its reward; return whether it was broadcast, which it is if the agent shares the arm."""
    entry = records.entry_of[agent, arm]
    row = 0
    if entry >= 0:
        explore[entry] += 1
    else:
        row = 1 + agent
    counts, sums = records.counts, records.sums
    sums[row, arm] += next_reward(k0, k1, table, arm, counts[row, arm], row, records.word[row], records.group_of[row])
    counts[row, arm] += 1
    records.pulled[arm] += 1
    return entry >= 0


@uncounted
def write(records, outcome):
    """Write the records into the outcome of the run."""
    agents, arms = records.entry_of.shape
    for arm in range(arms):
        outcome.counts[arm], outcome.sums[arm] = records.counts[0, arm], records.sums[0, arm]
        for agent in range(agents):
            outcome.commit[arm, agent] = records.counts[1 + agent, arm]

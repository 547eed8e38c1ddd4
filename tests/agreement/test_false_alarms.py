"""False alarms on simulated play without differences that tries to provoke them. Seeds are fixed."""

import numpy as np
import pytest

from partage.agreement import ENOUGH, disagreements
from partage.agreement.arms import arm_evidence
from partage.agreement.cells import cells_of
from partage.agreement.differences import difference_evidence
from partage.board import Record


def strongest(generator, means, offsets, joins, kind):
    """Return the strongest evidence at any of many times, where the next pull depends on the record so far."""
    arms, members = len(means), len(offsets)
    told = {}
    highest = [-np.inf, -np.inf]
    for step in range(1500):
        present = [member for member in range(members) if joins[member] <= step]
        member = present[int(generator.integers(len(present)))]
        record = told.setdefault(member, Record.empty(arms))
        arm = int(generator.integers(arms))
        if kind == "greedy" and min(record.counts):
            arm = int(np.argmax(np.divide(record.sums, record.counts)))
        elif kind == "extreme" and record.counts[arm] and generator.random() < 0.5:
            arm = int(np.argmax(np.abs(np.divide(record.sums, np.maximum(record.counts, 1)) - means)))
        record.add(arm, float(generator.random() < means[arm] + offsets[member]))
        if step % 50 == 49:
            cells = cells_of(told, arms)
            highest[0] = max(highest[0], *(arm_evidence(of_arm, arms) for of_arm in cells))
            highest[1] = max(highest[1], difference_evidence(cells))
    return highest, told


@pytest.mark.extra
@pytest.mark.parametrize("kind", ["uniform", "greedy", "extreme"])
def test_nothing_is_said_where_members_agree(kind):
    """Forty games and thirty times each. At most 1 % may warn; of these none does."""
    for seed in range(40):
        generator = np.random.default_rng((seed, len(kind)))
        joins = np.concatenate([[0], generator.integers(0, 1000, size=4)])
        (arms, differences), _ = strongest(generator, np.array([0.3, 0.5, 0.55]), np.zeros(5), joins, kind)
        assert arms < ENOUGH
        assert differences < ENOUGH


@pytest.mark.extra
def test_offsets_alone_never_make_differences_disagree():
    for seed in range(20):
        generator = np.random.default_rng(seed)
        (_, differences), told = strongest(
            generator, np.array([0.3, 0.5, 0.55]), np.array([0.0, 0.2, -0.2]), np.zeros(3), "greedy"
        )
        assert differences < ENOUGH
        assert all(one.against is None for one in disagreements(told, arms=3))

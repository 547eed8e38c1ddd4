"""Bets on an array: the numbers are those of `partage.betting`, bit for bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from partage.betting import GRID, largest_bet, lost, pooled_mean, won
from partage.engine.bets import evidence_against, new_bets, settle_bets


@njit
def settled(rewards, leads, arms):
    """Settle rewards, each with its arm; return the evidence against arm 0 with arm 1 in the lead, and the bets."""
    bets, counts, sums = new_bets(arms), np.zeros(arms, np.int64), np.zeros(arms)
    for at in range(len(rewards)):
        arm = leads[at]
        settle_bets(arm, rewards[at], False, bets)
        counts[arm] += 1
        sums[arm] += rewards[at]
    return evidence_against(0, 1, counts, sums, bets), bets


def by_the_rule(one, other):
    """The same evidence from the functions of the rule."""
    against, on = [0.0] * GRID, [0.0] * GRID
    for row, bet, rewards in ((against, lost, one), (on, won, other)):
        for reward in rewards:
            for g in range(GRID):
                row[g] += bet(g, reward)
    q = pooled_mean(len(one), sum(one), len(other), sum(other))
    return max(0.0, largest_bet(q, len(one), against, len(other), on, [0.0] * GRID)), against, on


ANY = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
RECORDS = st.one_of(
    st.lists(ANY, min_size=1, max_size=40),
    st.builds(lambda won, lost: [1.0] * won + [0.0] * lost, st.integers(0, 300), st.integers(1, 300)),
)


@given(one=RECORDS, other=RECORDS)
def test_evidence_is_that_of_the_rule(one, other):
    expected, against, on = by_the_rule(one, other)
    arms = np.array([0] * len(one) + [1] * len(other))
    found, bets = settled(np.array([*one, *other]), arms, 2)
    assert found == expected
    assert bets[0, :GRID].tolist() == against
    assert bets[1, GRID : 2 * GRID].tolist() == on


def test_two_parts_that_tie_are_computed_as_the_rule_does():
    """Records without evidence: all parts are near 0, and chords leave several of them open."""
    for won_of_two in (1, 5, 50):
        record = [1.0] * won_of_two + [0.0] * won_of_two
        arms = np.array([0] * len(record) + [1] * len(record))
        assert settled(np.array([*record, *record]), arms, 2)[0] == by_the_rule(record, record)[0]

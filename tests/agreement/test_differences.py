"""The second test against independent least squares and Beta functions, and who is named."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.likelihood import log_likelihood, log_mixture

from partage.agreement import ENOUGH, disagreements
from partage.agreement.cells import cells_of
from partage.agreement.differences import (
    _contrasts,
    _fit_evidence,
    _most_apart,
    _pair_evidence,
    _pair_share,
    difference_evidence,
)
from partage.agreement.fit import Fit
from partage.board import Record

COUNTS = st.one_of(st.just(0), st.integers(1, 5), st.integers(1, 10**6))


@st.composite
def tables(draw, counts=COUNTS):
    """Counts and means by member and arm: graphs in pieces, empty cells, few rewards beside many."""
    members, arms = draw(st.integers(2, 5)), draw(st.integers(2, 4))
    told = [[draw(counts) for _ in range(arms)] for _ in range(members)]
    return [Record(row, [float(draw(st.integers(0, n))) for n in row]) for row in told]


def cells(records):
    return cells_of(dict(enumerate(records)), len(records[0].counts))


def design(records):
    """Weighted rows of the least squares: one per cell."""
    members, arms = len(records), len(records[0].counts)
    rows, means, counts = [], [], []
    for (m, record), arm in product(enumerate(records), range(arms)):
        if record.counts[arm]:
            row = np.zeros(members + arms)
            row[m] = row[members + arm] = 1
            rows.append(row)
            means.append(record.sums[arm] / record.counts[arm])
            counts.append(record.counts[arm])
    return np.array(rows), np.array(means), np.array(counts)


@given(records=tables())
def test_least_squares(records):
    rows, means, counts = design(records)
    assume(len(rows))
    root = np.sqrt(counts)
    best, *_ = np.linalg.lstsq(rows * root[:, None], means * root, rcond=1e-12)
    squares = float(np.sum(counts * (means - rows @ best) ** 2))
    assert Fit(cells(records)).squares == pytest.approx(squares, rel=1e-6, abs=1e-6)
    assert Fit(cells(records)).squares <= squares + 1e-6


@given(records=tables(st.integers(0, 1000)))
def test_the_width_of_a_difference_is_the_resistance_of_the_graph(records):
    rows, _, counts = design(records)
    assume(len(rows))
    inverse = np.linalg.pinv(rows.T @ (rows * counts[:, None]), rcond=1e-10)
    members, fit = len(records), Fit(cells(records))
    for i, j in combinations(range(len(records[0].counts)), 2):
        if fit.connected(i, j):
            contrast = np.zeros(len(inverse))
            contrast[members + i], contrast[members + j] = 1, -1
            assert fit.factor(i, j) == pytest.approx(contrast @ inverse @ contrast, rel=1e-5)


@pytest.mark.extra
@given(
    records=tables(st.integers(0, 300)),
    offsets=st.lists(st.floats(-0.2, 0.2), min_size=5, max_size=5),
    values=st.lists(st.floats(0.25, 0.75), min_size=4, max_size=4),
)
def test_evidence_is_never_above_the_martingale_of_any_offsets(records, offsets, values):
    arms = range(len(records[0].counts))
    log_martingale = {
        (m, arm): log_mixture(n, s) - log_likelihood(n, s, offsets[m] + values[arm])
        for m, record in enumerate(records)
        for arm, n, s in zip(arms, record.counts, record.sums, strict=True)
        if n
    }
    found = cells(records)
    assert _fit_evidence(found, _most_apart(found)) <= sum(log_martingale.values()) - math.log(4) + 1e-7
    best = -math.inf
    for (m, other), (i, j) in product(combinations(range(len(records)), 2), combinations(arms, 2)):
        of = [log_martingale.get(cell) for cell in product((m, other), (i, j))]
        if None not in of:
            best = max(best, sum(of) - _pair_share(found, i, j))
    assert _pair_evidence(found, _most_apart(found)) <= best + 1e-7


@pytest.mark.extra
@given(records=tables(st.integers(0, 3000)))
def test_pairs_that_are_skipped_have_too_little_evidence(records):
    found = cells(records)
    strongest = -math.inf
    for i, j in combinations(range(len(found)), 2):
        for one, other in combinations(_contrasts(found[i], found[j]), 2):
            squares = 2 * (one.value - other.value) ** 2 / (one.width + other.width)
            strongest = max(strongest, squares - one.loss - other.loss - _pair_share(found, i, j))
    quick = _pair_evidence(found, _most_apart(found))
    assert quick == pytest.approx(strongest) if strongest >= ENOUGH else quick < ENOUGH


@pytest.mark.parametrize("members", [2, 3, 5, 40])
def test_shares_of_pairs(members):
    """By the later of two members: 1 in all. By the number of members, no pair has more."""

    def share(later):
        return 2 / ((later - 1) * later * (later + 1))

    assert sum((later - 1) * share(later) for later in range(2, 10_000)) <= 1
    assert all(share(members) <= share(later) for later in range(2, members + 1))
    found = cells([Record([1, 1, 1], [0.0, 0.0, 0.0])] * members)
    assert math.exp(-_pair_share(found, 0, 1)) == pytest.approx(share(members) / 4 / 3)


@pytest.mark.extra
@given(records=tables(st.integers(0, 2000)), data=st.data())
def test_the_order_of_members_does_not_matter(records, data):
    order = data.draw(st.permutations(range(len(records))))
    shuffled = cells_of({at: records[at] for at in order}, len(records[0].counts))
    assert difference_evidence(shuffled) == pytest.approx(difference_evidence(cells(records)), abs=1e-6)


def offset_by(offset, values, n=2000):
    return Record([n] * len(values), [round(n * (value + offset)) for value in values])


def test_members_who_differ_by_a_constant_agree_on_differences():
    told = {name: offset_by(offset, (0.3, 0.5, 0.6)) for name, offset in (("A", 0), ("B", 0.1), ("C", -0.2))}
    found = disagreements(told, arms=3)
    assert {one.arm for one in found} == {0, 1, 2}
    assert all(one.against is None for one in found)


def test_a_member_for_whom_another_arm_is_best_is_named_with_both_arms():
    told = {name: offset_by(0.02 * at, (0.3, 0.5, 0.4)) for at, name in enumerate("ABCD")}
    told["E"] = offset_by(0, (0.3, 0.5, 0.6))
    (one,) = [one for one in disagreements(told, arms=3) if one.against is not None]
    assert one.members == ("E",)
    assert 2 in (one.arm, one.against)
    assert abs(one.difference) == pytest.approx(0.2)
    assert (one.low < 0 < one.high) is False


def test_of_two_members_both_are_named():
    told = {"A": offset_by(0, (0.3, 0.5)), "B": offset_by(0, (0.5, 0.3)), "C": Record([500, 0], [200.0, 0.0])}
    (one,) = [one for one in disagreements(told, arms=2) if one.against is not None]
    assert one.members == ("A", "B")
    assert one.difference == pytest.approx(-0.4)
    assert one.high < 0


def test_members_whose_arms_form_a_ring_are_named_together():
    """Nobody shares two arms with another member, but the three differences do not sum to 0."""
    told = {
        "A": Record([4000, 4000, 0], [2000.0, 2000.0, 0.0]),
        "B": Record([0, 4000, 4000], [0.0, 2000.0, 2000.0]),
        "C": Record([4000, 0, 4000], [2000.0, 0.0, 3000.0]),
    }
    (one,) = [one for one in disagreements(told, arms=3) if one.against is not None]
    assert set(one.members) == {"A", "B", "C"}
    assert abs(one.difference) == pytest.approx(0.25)


def test_pieces_of_the_graph_are_compared_on_their_own():
    told = {
        "A": Record([2000, 2000, 0, 0], [1000.0, 1000.0, 0, 0]),
        "B": Record([2000, 2000, 0, 0], [900.0, 900.0, 0, 0]),
    }
    told |= {"C": Record([0, 0, 900, 900], [0, 0, 400.0, 500.0]), "D": Record([0, 0, 900, 900], [0, 0, 600.0, 300.0])}
    assert [one.members for one in disagreements(told, arms=4) if one.against is not None] == [("C", "D")]


def test_many_arms_and_many_members_take_only_those_that_differ_most():
    """More arms than are compared and more members than are left out in turn."""
    told = {at: offset_by(0.001 * at, [0.2 + 0.01 * (arm % 7) for arm in range(35)]) for at in range(50)}
    told[50] = offset_by(0, [0.2 + 0.01 * (arm % 7) + (0.3 if arm == 33 else 0.0) for arm in range(35)])
    (one,) = [one for one in disagreements(told, arms=35) if one.against is not None]
    assert one.members == (50,)
    assert 33 in (one.arm, one.against)


def test_no_difference_of_contrasts_exceeds_two():
    """In this ring the estimate is 3: each member sees the next arm worse by 1."""
    n = 2000
    ring = {
        "A": Record([n, n, 0], [float(n), 0.0, 0.0]),
        "B": Record([0, n, n], [0.0, float(n), 0.0]),
        "C": Record([n, 0, n], [0.0, 0.0, float(n)]),
    }
    (found,) = (one for one in disagreements(ring, 3) if one.against is not None)
    assert found.low <= found.difference <= found.high <= 2

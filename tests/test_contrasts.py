"""Contrasts: against least squares of the whole model, on random records and on the trials of stop-smoking."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from partage import InputError
from partage.contrasts import Contrasts, check_connected, pieces
from partage.studies.smoking import TREATMENTS, trials


@st.composite
def records(draw):
    """What some members told of some arms: counts and sums."""
    arms, members = draw(st.integers(2, 6)), draw(st.integers(1, 6))
    told = []
    for _ in range(members):
        counts = draw(st.lists(st.sampled_from([0, 0, 1, 2, 7, 40]), min_size=arms, max_size=arms))
        told.append((counts, [count * draw(st.floats(0, 1)) for count in counts]))
    return arms, told


def whole_model(told, arms):
    """Return estimates of the arms' effects and their covariance, by least squares of all members' means at once."""
    rows, means, weights = [], [], []
    for member, (counts, sums) in enumerate(told):
        for arm in range(arms):
            if counts[arm]:
                row = np.zeros(len(told) + arms)
                row[member] = row[len(told) + arm] = 1
                rows.append(row)
                means.append(sums[arm] / counts[arm])
                weights.append(np.sqrt(counts[arm]))
    design = np.array(rows) * np.array(weights)[:, None]
    fit = np.linalg.lstsq(design, np.array(means) * weights, rcond=None)[0]
    return fit[len(told) :], np.linalg.pinv(design.T @ design)[len(told) :, len(told) :]


def reached(told, arms):
    """Return which arms are connected, by powers of the adjacency matrix."""
    edges = np.eye(arms)
    for counts, _ in told:
        edges += np.outer(np.array(counts) > 0, np.array(counts) > 0)
    return np.linalg.matrix_power(edges, arms) > 0


@given(records())
def test_contrasts_are_those_of_the_whole_model(record):
    arms, told = record
    assume(any(any(counts) for counts, _ in told))
    found, connected = Contrasts(told, arms), reached(told, arms)
    effects, covariance = whole_model(told, arms)
    for i in range(arms):
        for j in range(arms):
            several = found.piece[i] >= 0 and found.piece[j] >= 0
            assert found.connected(i, j) == (several and connected[i, j])
            if found.connected(i, j) and i != j:
                contrast = np.zeros(arms)
                contrast[i], contrast[j] = 1, -1
                assert found.between(i, j) == pytest.approx(effects[i] - effects[j], abs=1e-9)
                assert found.factor(i, j) == pytest.approx(contrast @ covariance @ contrast, rel=1e-6)


@given(records(), st.floats(-5, 5))
def test_a_constant_of_one_member_changes_no_contrast(record, constant):
    arms, told = record
    counts, sums = told[0]
    shifted = [(counts, [total + constant * count for count, total in zip(counts, sums, strict=True)]), *told[1:]]
    assert Contrasts(shifted, arms).effects == pytest.approx(Contrasts(told, arms).effects, abs=1e-9)


def test_a_contrast_that_nobody_connects_is_refused_by_name():
    told = [([3, 3, 0, 0], [1.0, 2.0, 0.0, 0.0]), ([0, 0, 3, 1], [0.0, 0.0, 2.0, 1.0])]
    with pytest.raises(InputError, match="Nobody told rewards that connect SMS with Visit"):
        Contrasts(told, 4, ["SMS", "Mail", "Letter", "Visit"]).between(0, 3)


def test_pieces_of_a_sharing():
    names = ["SMS", "Mail", "Letter", "Visit"]
    assert pieces([{0, 1}, {2, 3}, {1, 2}], range(4)) == [[0, 1, 2, 3]]
    assert pieces([{0, 1}, {2, 3}], range(4)) == [[0, 1], [2, 3]]
    check_connected([{0, 1}, {1, 3}, {1}], names)  # nobody shares Letter at all
    check_connected([], names)
    with pytest.raises(InputError, match="Nobody shares both Letter and any other arm"):
        check_connected([{0, 1}, {2}, {1, 3}], names)
    with pytest.raises(InputError, match="Nobody shares both one of SMS, Mail and any other arm"):
        check_connected([{0, 1}, {2, 3}], names)


def test_the_trials_are_those_that_were_published():
    told = trials()
    assert len(told) == 24
    assert sum(count > 0 for counts, _ in told.values() for count in counts) == 50
    assert sum(sum(counts) for counts, _ in told.values()) == 16_740
    assert sum(sum(successes) for _, successes in told.values()) == 2_082
    assert told["2"] == ([140, 0, 140, 138], [9.0, 0.0, 23.0, 10.0])


def test_contrasts_of_the_trials_agree_with_least_squares_and_with_the_published_order():
    told = list(trials().values())
    found = Contrasts(told, 4, TREATMENTS)
    effects, _ = whole_model(told, 4)
    assert found.effects == pytest.approx(effects - effects[0])
    no_contact, self_help, individual, group = found.effects
    assert group > individual > self_help > no_contact

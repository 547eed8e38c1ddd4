import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.strategies import board, boards, rewards

from partage.board import Board, Record, radius


@pytest.mark.parametrize(("horizon", "count"), [(2, 1), (100, 8), (10**6, 3), (10**12, 10**9)])
def test_radius(horizon, count):
    assert radius(horizon, count) ** 2 * count == pytest.approx(2 * math.log(horizon))


def test_radius_of_an_arm_never_broadcast_is_infinite():
    assert radius(100, 0) == math.inf


@given(st.lists(st.tuples(st.integers(0, 2), rewards())))
def test_a_record_counts_and_sums_what_was_seen(seen):
    record = Record.empty(3)
    for arm, reward in seen:
        record.add(arm, reward)
    for arm in range(3):
        of_arm = [reward for which, reward in seen if which == arm]
        assert (record.counts[arm], record.sums[arm]) == (len(of_arm), sum(of_arm))


def test_a_record_and_its_copy_say_what_was_seen_last():
    record = Record.empty(2)
    assert (record.latest, record.latest_reward) == (None, None)
    record.add(0, 0.5)
    record.add(1, 0.25)
    copied = record.copy()
    assert (copied.latest, copied.latest_reward) == (1, 0.25)
    copied.add(0, 1.0)
    assert (record.latest, record.latest_reward) == (1, 0.25)
    assert record == Record([1, 1], [0.5, 0.25])  # which was last does not count


def test_a_new_board_has_seen_nothing_and_every_public_arm_is_active():
    fresh = Board(100, [2, 0, 1], [True, False, True])
    assert (fresh.arms, fresh.counts, fresh.actives()) == (3, [0, 0, 0], [0, 2])
    assert fresh.intervals() == [(-math.inf, math.inf)] * 3
    assert fresh.leader() == 2


def test_bounds_by_hand():
    """T = 100: sqrt(2 log 100 / 4) = 1.517427, and half of that for four times the broadcasts."""
    made = board([4, 16], [0.5, 1.0])
    assert (made.mean(0), made.mean(1)) == (0.5, 1.0)
    intervals = made.intervals()
    assert intervals[0] == pytest.approx((0.5 - 1.517427, 0.5 + 1.517427), abs=1e-6)
    assert intervals[1][0] == pytest.approx(1.0 - 1.517427 / 2, abs=1e-6)


@given(boards())
def test_a_mean_lies_in_the_middle_of_its_interval(made):
    for arm, (lower, upper) in enumerate(made.intervals()):
        if made.counts[arm]:
            assert lower < made.mean(arm) < upper
            assert (lower + upper) / 2 == pytest.approx(made.mean(arm))
        else:
            assert (lower, made.mean(arm), upper) == (-math.inf, -math.inf, math.inf)


@given(boards(), st.data())
def test_least_and_best_by_brute_force(made, data):
    among = data.draw(st.sets(st.integers(0, made.arms - 1), min_size=1))
    by_priority = [arm for arm in made.tie_order if arm in among]
    fewest = min(made.counts[arm] for arm in among)
    assert made.least(among) == next(arm for arm in by_priority if made.counts[arm] == fewest)
    highest = max(made.mean(arm) for arm in among)
    assert made.best(among) == next(arm for arm in by_priority if made.mean(arm) == highest)


def test_an_arm_never_broadcast_ranks_below_one_that_never_paid():
    assert board([0, 5, 0], [0, 0, 0], tie_order=[0, 2, 1]).leader() == 1


def test_the_leader_is_active():
    assert board([9, 9, 9], [1.0, 0.2, 0.4], gone=[0]).leader() == 2


@pytest.mark.parametrize("tie_order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_the_tie_order_settles_ties(tie_order):
    assert board([4, 4, 4], [0.5, 0.5, 0.5], tie_order=tie_order).leader() == tie_order[0]
    assert board([0, 0, 0], [0, 0, 0], tie_order=tie_order).leader() == tie_order[0]
    assert board([7, 7, 7], [0.1, 0.9, 0.5], tie_order=tie_order).least([0, 1, 2]) == tie_order[0]


def test_a_copy_shares_nothing_with_its_board():
    one = Board(10, [0, 1], [True, True])
    one.broadcast("a1", 0, 1.0)
    one.state = {"seen": [1]}
    whole, bare = one.copy(), one.copy(by_member=False)
    assert whole == one
    assert (bare.record, bare.state, bare.by_member) == (one.record, one.state, {})
    one.broadcast("a1", 0, 1.0)
    one.active[1] = False
    one.state["seen"].append(2)
    for copied in (whole, bare):
        assert (copied.counts, copied.actives(), copied.state) == ([1, 0], [0, 1], {"seen": [1]})
    assert whole.by_member == {"a1": Record([1, 0], [1.0, 0.0])}


def test_boards_share_nothing_with_each_other():
    one, other = (Board(10, [0, 1], [True, True]) for _ in range(2))
    one.record.add(0, 1.0)
    one.active[1] = False
    assert (other.counts, other.actives()) == ([0, 0], [0, 1])

"""Bounded influence: what holds whichever f members are left out, by going through all of them."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.strategies import rewards

from partage import BalancedGLR, Board, Game, InputError, Sharing, bernoulli, play, play_run
from partage.evidence import apart, mixture_loss
from partage.rules import RULES, make_rule
from partage.rules.influence import (
    beaten_without_any,
    fair_entries,
    fair_share,
    is_beaten,
    less,
    net_below,
    surely_beaten,
    trimmed_mean,
    within_fair_share,
    worst_record,
)
from partage.rules.kl_etc import KLETC

COUNTS = st.sampled_from([0, 0, 1, 2, 5, 40, 45, 300])
MEMBER = st.tuples(COUNTS, rewards(), COUNTS, rewards())
MEMBERS = st.lists(MEMBER, min_size=1, max_size=6)
THRESHOLDS = st.sampled_from([0.5, 3.0, 10.0])
SHARED = (less, net_below, trimmed_mean, worst_record, surely_beaten, beaten_without_any, fair_share)


def columns(members):
    """Counts and sums of the arm, and of the other, by member; and of all together."""
    n, s = [one[0] for one in members], [one[0] * one[1] for one in members]
    k, w = [one[2] for one in members], [one[2] * one[3] for one in members]
    return (n, s, k, w), (sum(n), float(sum(s)), sum(k), float(sum(w)))


def beaten(members, threshold):
    """Whether these members' record alone passes the test of Balanced-GLR, with the right sign."""
    _, (n, s, k, w) = columns(members)
    if not n or not k or s / n >= w / k:
        return False
    return apart(n, s, k, w) - mixture_loss(n, s) - mixture_loss(k, w) >= threshold


def beaten_without_all(members, tolerate, threshold):
    sets = (left for f in range(tolerate + 1) for left in combinations(range(len(members)), f))
    return all(beaten([m for i, m in enumerate(members) if i not in left], threshold) for left in sets)


@given(MEMBERS, st.integers(0, 3), THRESHOLDS)
def test_an_arm_is_beaten_if_it_is_whichever_members_are_left_out(members, tolerate, threshold):
    parts, whole = columns(members)
    found = beaten_without_any(*parts, len(members), whole, tolerate, threshold)
    assert found == beaten_without_all(members, tolerate, threshold)


@given(st.lists(st.tuples(st.integers(20, 60), st.just(0.25), st.integers(20, 60), st.just(0.75)), min_size=4))
def test_many_agreeing_members_beat_an_arm(members):
    parts, whole = columns(members)
    assert beaten_without_any(*parts, len(members), whole, 1, 3.0)


@given(MEMBERS, st.integers(0, 3), THRESHOLDS)
def test_the_crude_bound_never_says_too_much(members, tolerate, threshold):
    (n, s, k, w), whole = columns(members)
    most = max(n), max(a - b for a, b in zip(n, s, strict=True)), max(k), max(w)
    if surely_beaten(*whole, most, tolerate, threshold):
        assert beaten_without_all(members, tolerate, threshold)


@given(MEMBERS, st.integers(0, 3), THRESHOLDS)
def test_plain_and_compiled_agree(members, tolerate, threshold):
    parts, whole = columns(members)
    arrays = [np.array(parts[0]), np.array(parts[1], float), np.array(parts[2]), np.array(parts[3], float)]
    size = len(members)
    for plain, kernel in (
        ((parts[0], parts[1], size, tolerate), (*arrays[:2], size, tolerate)),
        ((parts[2], parts[3], size, tolerate), (*arrays[2:], size, tolerate)),
    ):
        assert trimmed_mean(*plain) == trimmed_mean.compiled(*kernel)
    assert fair_share(parts[0], size, tolerate) == fair_share.compiled(arrays[0], size, tolerate)
    assert worst_record(*parts, size, whole, tolerate) == worst_record.compiled(*arrays, size, whole, tolerate)
    found = beaten_without_any(*parts, size, whole, tolerate, threshold)
    assert found == beaten_without_any.compiled(*arrays, size, whole, tolerate, threshold)


@given(st.lists(st.tuples(COUNTS, rewards()), min_size=1, max_size=8), st.integers(0, 3))
def test_the_trimmed_mean_leaves_out_whoever_moves_it_most(members, tolerate):
    counts, sums = [n for n, _ in members], [n * mean for n, mean in members]
    seen = [i for i in range(len(members)) if counts[i]]
    found = trimmed_mean(counts, sums, len(members), tolerate)
    if len(seen) <= tolerate:
        assert found == -math.inf
        return
    centre = sum(sums) / sum(counts)
    order = sorted(seen, key=lambda i: -(sums[i] - counts[i] * centre))
    kept = order[tolerate:]
    kept = kept[: max(1, len(kept) - tolerate)]
    excesses = {sums[i] - counts[i] * centre for i in seen}
    if len(excesses) == len(seen):  # otherwise ties decide
        assert found == pytest.approx(sum(sums[i] for i in kept) / sum(counts[i] for i in kept))


@given(st.integers(1, 3), st.lists(rewards(), min_size=3, max_size=3), st.data())
def test_liars_move_the_trimmed_mean_no_further_than_honest_members_differ(f, lies, data):
    """With 2 f + 1 members of equal counts it lies between the lowest and the highest honest mean."""
    honest = data.draw(st.lists(rewards(), min_size=f + 1, max_size=f + 1))
    means = data.draw(st.permutations([*honest, *lies[:f]]))
    found = trimmed_mean([10] * len(means), [10 * mean for mean in means], len(means), f)
    assert min(honest) - 1e-12 <= found <= max(honest) + 1e-12


@given(st.lists(st.integers(0, 9), min_size=1), st.integers(0, 3))
def test_at_most_f_members_wait_and_the_others_may_go_on(counts, tolerate):
    fair = fair_share(counts, len(counts), tolerate)
    assert sum(count > fair for count in counts) <= tolerate
    assert fair == sorted([*counts, *[0] * 4], reverse=True)[tolerate]


@given(
    st.dictionaries(st.integers(0, 5), st.integers(0, 9)),
    st.dictionaries(st.integers(0, 5), st.integers(1, 9), min_size=1),
    st.dictionaries(st.integers(0, 7), st.integers(1, 9), min_size=1),
    st.integers(0, 4),
)
def test_past_rewards_enter_as_if_one_by_one(told, claimed, waiting, tolerate):
    """The reference: in any order, whoever had at most its fair share adds one, until nobody can."""
    board = Board(1000, [0], [True])
    for member, rewards_told in told.items():
        for _ in range(rewards_told):
            board.broadcast(member, 0, 0.5)
    board.claimed = {member: {0: claims} for member, claims in claimed.items()}
    found = fair_entries(board, 0, waiting, tolerate)
    entered = dict.fromkeys(waiting, 0)
    goes_on = True
    while goes_on:
        goes_on = False
        for member in waiting:
            if entered[member] < waiting[member] and within_fair_share(board, member, 0, tolerate):
                board.attach(member, 0, 0.5)
                entered[member] += 1
                goes_on = True
    assert found == entered
    assert tolerate or found == waiting


def test_nothing_holds_if_f_members_are_all_there_are():
    board = Board(1000, [0, 1], [True, True])
    for _ in range(500):
        board.broadcast("a", 0, 1.0)
        board.broadcast("a", 1, 0.0)
    assert is_beaten(board, 1, 0, 0, 10.0)
    assert not is_beaten(board, 1, 0, 1, 10.0)


@pytest.mark.parametrize("rule", [BalancedGLR(tolerate=1), KLETC(tolerate=1), BalancedGLR(tolerate=2)])
def test_honest_members_still_find_the_best_arm(rule):
    game = Game(bernoulli([0.9, 0.5, 0.3]), Sharing.everything(7, 3), horizon=1000)
    tally = play_run(game, rule, 3)
    assert tally.active.tolist() == [True, False, False]
    assert (tally.explore.max(axis=0) - np.sort(tally.explore, axis=0)[-1 - rule.tolerate] <= 1).all()


@pytest.mark.parametrize("rule", [BalancedGLR(tolerate=2), KLETC(tolerate=2)])
def test_arms_with_too_few_sharers_do_not_hold_up_the_others(rule):
    shares = [[0, 1, 2], [0, 1, 2], [0, 1], [0, 1], [0, 1]]
    game = Game(bernoulli([0.9, 0.3, 0.5]), Sharing.lists(shares, 3), horizon=500)
    tally = play_run(game, rule, 3)
    assert tally.active.tolist() == [True, False, True]
    assert tally.broadcasts[2] == 0, "nothing can come of it"
    result = play(game, rule, runs=3, settlement="none", baseline=False)
    assert result.as_dict()["too_few_sharers"] == [result.arms[2].name]


def test_what_is_refused():
    game = Game(bernoulli([0.9, 0.3]), Sharing.everything(3, 2), horizon=50)
    with pytest.raises(InputError, match="tolerate is 3; it must be below the number of agents, which is 3"):
        play(game, BalancedGLR(tolerate=3), runs=2)
    with pytest.raises(InputError, match="with evidence by betting it must be 0"):
        BalancedGLR(evidence="betting", tolerate=1)
    with pytest.raises(InputError, match="whole number of at least 0"):
        KLETC(tolerate=-1)
    for name in set(RULES) - {"balanced-glr", "kl-etc"}:
        with pytest.raises(InputError, match="takes no tolerate"):
            make_rule(name, tolerate=1)

"""Balanced-GLR by betting on Bernoulli arms: closed forms, boxes, the queue and circles change no pull."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import njit
from tests.support.strategies import games

from partage import Bernoulli, Game, Sharing, bernoulli, play_run
from partage.betting import GRID, LOG_MIXED, largest_bet, log_wealth, lost, pooled_mean, won
from partage.engine import Run, balanced_glr, broadcast_by_broadcast, by_betting
from partage.engine import rewards as tape
from partage.engine.bet_rows import new_rows
from partage.engine.bet_tables import (
    DOWN,
    ROOM,
    UP,
    evidence_in_box,
    evidence_in_boxes,
    prices,
    slip_of,
    wealth_below,
)
from partage.engine.by_betting import _LATEST, _LED, _MEAN, _PER_ZERO, _SHIFT, _SLACK, _is_beaten
from partage.rules import BalancedGLR

MEANS = st.one_of(st.sampled_from([0.0, 1.0, 0.5, 0.9, 0.1, 0.51]), st.floats(0, 1))
RULES = st.builds(
    BalancedGLR, st.sampled_from([3.0, 1.0, 2.5, 10.0]), indifference=st.booleans(), evidence=st.just("betting")
)
SEEDS = st.integers(0, 2**63)


def played(game, rule, seed, kernel, checkpoints=()):
    """Return the tally and the curve of one run with this kernel."""
    run = Run(game, np.array(checkpoints, np.int64))
    run.start(tape.run_keys(seed, 0, 1)[0])
    kernel.play(run, balanced_glr.rule_table(rule, run.table))
    return run.tally(), run.curve.copy()


def assert_as_plain(game, rule, seed, checkpoints=()):
    """Check that both kernels make the same pulls; return the tally."""
    tally, curve = played(game, rule, seed, by_betting, checkpoints)
    plain, its_curve = played(game, rule, seed, broadcast_by_broadcast, checkpoints)
    assert tally == plain
    assert curve == pytest.approx(its_curve)
    return tally


@settings(max_examples=80)
@given(game=games(every_arm_shared=True, arms=st.builds(Bernoulli, MEANS)), rule=RULES, seed=SEEDS)
def test_the_kernel_equals_the_reference(game, rule, seed):
    tally, _ = played(game, rule, seed, by_betting)
    assert tally == play_run(game, rule, seed, reference=True)


@settings(max_examples=30)
@given(
    game=games(
        every_arm_shared=True, arms=st.builds(Bernoulli, MEANS), horizons=st.sampled_from([3_000, 10_000, 40_000])
    ),
    rule=RULES,
    steps=st.lists(st.integers(1, 3_000), max_size=3, unique=True).map(sorted),
    seed=SEEDS,
)
def test_long_games_equal_the_plain_kernel(game, rule, steps, seed):
    assert_as_plain(game, rule, seed, steps)


@pytest.mark.parametrize("lead", [3.0, 1.0, 10.0])
@pytest.mark.parametrize("indifference", [True, False])
def test_many_arms_equal_the_plain_kernel(lead, indifference):
    """The leader changes often, many arms are eliminated, and with indifference many are stopped."""
    means = np.linspace(0.9, 0.0, 100)
    game = Game(bernoulli(means), Sharing.round_robin(150, 100).in_shuffled_order(), horizon=1_000)
    rule = BalancedGLR(lead, indifference=indifference, evidence="betting")
    for seed in range(2):
        assert (assert_as_plain(game, rule, seed).eliminated_step >= 0).sum() > 30


@pytest.mark.parametrize("lead", [3.0, 1.0, 2.5])
@pytest.mark.parametrize("shares", [[[0], [1], [0], [1], [1]], [[0, 1], [1], [0, 1, 2]], [[1], [2], [0, 2], [0]]])
def test_near_ties_equal_the_plain_kernel(lead, shares):
    """Many changes of leader, and agents that share several of the arms."""
    game = Game(bernoulli([0.6, 0.599, 0.3]), Sharing.lists([*shares, [2]], 3), horizon=60_000)
    assert_as_plain(game, BalancedGLR(lead, evidence="betting"), 3, [7_000, 31_111])


def test_circles_that_start_with_a_tie_equal_the_plain_kernel():
    """An agent that shares both arms explores the leader once, by the tie order, and then the other arm."""
    sharing = Sharing.lists([[1, 2], [2], [0, 1], [0], [2]], 3).in_shuffled_order()
    game = Game(bernoulli([0.1, 0.1, 0.05]), sharing, horizon=60_000)
    assert_as_plain(game, BalancedGLR(evidence="betting", indifference=False), 696624289633)


@pytest.mark.parametrize("means", [[0.6, 0.57], [0.5, 0.48, 0.1], [0.1, 0.085]])
def test_eliminations_after_long_stretches_equal_the_plain_kernel(means):
    """Stretches end before an arm is beaten."""
    game = Game(bernoulli(means), Sharing.round_robin(6, len(means)), horizon=50_000)
    rule = BalancedGLR(evidence="betting", indifference=False)
    tallies = [assert_as_plain(game, rule, seed) for seed in range(4)]
    assert any(tally.eliminated_step[1] >= 0 and tally.broadcasts[1] > 1_000 for tally in tallies)


@pytest.mark.parametrize("means", [[0.5, 0.5, 0.1], [0.02, 0.02], [0.97, 0.97, 0.96]])
def test_long_records_equal_the_plain_kernel(means):
    """Sums of so many rewards are rounded noticeably."""
    game = Game(bernoulli(means), Sharing.round_robin(7, len(means)), 100_000)
    rule = BalancedGLR(evidence="betting", indifference=False)
    assert assert_as_plain(game, rule, 1).broadcasts.sum() > 2**16


# --- bounds -------------------------------------------------------------------------------------------------------


def test_what_threads_share_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        prices()[0, 0] = 1.0


@njit
def bounded(count, total, more, box, price):
    """Bounds on the evidence against an arm, which may have `more` rewards of its mean, with the leader in a box."""
    fewest, most, lowest, highest = box
    if more == 0:
        return evidence_in_box(float(count), total / count, fewest, most, lowest, highest, price, np.zeros(ROOM))
    return evidence_in_boxes(
        float(count), float(count + more), total / (count + more), (total + more) / (count + more), fewest, most,
        lowest, highest, price, np.zeros(ROOM),
    )  # fmt: skip


@njit
def wealth_bound(bound, q, own, box, every, price):
    """A bound on the wealth, where bets on leaders were made on `every` reward of theirs and of the arm."""
    few, many, mean = own
    fewest, most, highest = box
    return wealth_below(bound, q, few, many, mean, fewest, most, highest, slip_of(every), price, np.zeros(ROOM))


@njit
def add_up(rewards, for_one, for_zero):
    """Return a row of bets, reward by reward."""
    sums = np.zeros(GRID)
    for k in range(len(rewards)):
        for g in range(GRID):
            sums[g] += for_one[g] if rewards[k] else for_zero[g]
    return sums


def row(bet, count, total, order):
    """Return a row of bets, reward by reward: first all rewards of 1, all of 0, or in turns."""
    rewards = np.arange(count) < total
    if order == "zeros first":
        rewards = rewards[::-1]
    elif order == "mixed":
        rewards = rewards[(7 * np.arange(count)) % count] if count % 7 else np.append(rewards[::2], rewards[1::2])
    for_one, for_zero = (np.array([bet(g, reward) for g in range(GRID)]) for reward in (1.0, 0.0))
    return add_up(np.ascontiguousarray(rewards), for_one, for_zero)


ORDERS = st.sampled_from(["ones first", "zeros first", "mixed"])
SMALL, LARGE = st.integers(1, 60), st.integers(1, 3_000)
ROUNDED = [100_000, 300_000, 1_000_000]  # counts at which rounding is far more than what bounds allow for beside it


def evidence_of(count, total, led, paid, order):
    """Return the evidence, computed as the rule does."""
    against, on = row(lost, count, total, order), row(won, led, paid, order)
    q = pooled_mean(count, float(total), led, float(paid))
    return max(0.0, largest_bet(q, count, against, led, on, [0.0] * GRID))


@settings(max_examples=400)
@given(
    count=st.one_of(SMALL, LARGE),
    own_more=st.sampled_from([0, 0, 1, 20]),
    led=st.one_of(SMALL, LARGE),
    sizes=st.tuples(st.sampled_from([0, 1, 5, 200]), st.sampled_from([0, 1, 5, 200])),
    shares=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    widths=st.tuples(*[st.one_of(st.just(0.0), st.floats(0, 0.1), st.floats(0, 1))] * 2),
    is_point=st.sampled_from([True, False, False, False]),
    order=ORDERS,
    data=st.data(),
)
def test_evidence_stays_within_its_bounds(count, own_more, led, sizes, shares, widths, is_point, order, data):
    """Boxes around records, some with the record on an edge or in a corner."""
    total, paid = round(shares[0] * count), round(shares[1] * led)
    box = float(led), float(led), paid / led, paid / led
    if not is_point:
        fewest, most = max(1, led - sizes[0]), led + sizes[1]
        box = float(fewest), float(most), max(0.0, paid / led - widths[0]), min(1.0, paid / led + widths[1])
    least, largest = bounded(count, total, own_more, box, prices())
    own = data.draw(st.integers(0, own_more))
    evidence = evidence_of(count + own, total + data.draw(st.integers(0, own)), led, paid, order)
    assert least <= evidence <= largest
    if is_point and own_more == 0:
        assert largest - least < 0.05 + 0.02 * evidence


@pytest.mark.parametrize("order", ["ones first", "zeros first", "mixed"])
@pytest.mark.parametrize("shares", [(0.0, 1.0), (0.25, 0.75), (1.0, 1.0), (0.0, 0.0)])
@pytest.mark.parametrize("count", ROUNDED)
def test_evidence_of_long_records_stays_within_its_bounds(count, shares, order):
    """With as many rewards of both, q is at the middle, where the chords of prices meet the curve."""
    total, paid = round(shares[0] * count), round(shares[1] * count)
    least, largest = bounded(count, total, 0, (float(count), float(count), paid / count, paid / count), prices())
    assert least <= evidence_of(count, total, count, paid, order) <= largest


@settings(max_examples=200)
@given(
    few=st.one_of(SMALL, LARGE),
    fewest=st.one_of(SMALL, LARGE),
    more=st.tuples(st.sampled_from([0, 1, 5, 200]), st.sampled_from([0, 1, 5, 200])),
    means=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    q=st.floats(0, 1),
    order=ORDERS,
    data=st.data(),
)
def test_wealth_stays_below_its_bound(few, fewest, more, means, q, order, data):
    """Arms down to some mean and bets on leaders up to some mean, computed as the rule does."""
    count, led = data.draw(st.integers(few, few + more[0])), data.draw(st.integers(fewest, fewest + more[1]))
    least, largest = math.ceil(means[0] * count), math.floor(means[1] * led)
    total = data.draw(st.one_of(st.just(least), st.integers(least, count)))
    paid = data.draw(st.one_of(st.just(largest), st.integers(0, largest)))
    against, on = row(lost, count, total, order), row(won, led, paid, order)
    wealth, _, _ = log_wealth(q, count, against, led, on, [0.0] * GRID)
    own, box = (float(few), float(few + more[0]), means[0]), (float(fewest), float(fewest + more[1]), means[1])
    for bound in (-math.inf, wealth, math.inf):
        assert wealth <= wealth_bound(bound, q, own, box, float(fewest + more[1]), prices())


@pytest.mark.parametrize("own", [0, 50_000, 1_000_000])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("count", ROUNDED)
def test_wealth_of_long_records_stays_below_its_bound(count, share, own):
    """Some bets on leaders were on the arm itself, and the rule subtracts them."""
    total = round(share * count)
    against, on_itself = row(lost, count, total, "mixed"), row(won, own, own, "mixed")
    every = row(won, own + count, own + count, "mixed")
    record, box = (float(count), float(count), total / count), (float(count), float(count), 1.0)
    for q in (0.0, 0.5, 0.75, 1.0):
        wealth, _, _ = log_wealth(q, count, against, float(count), every, on_itself)
        assert wealth <= wealth_bound(-math.inf, q, record, box, float(own + count), prices())


@njit
def slip(count):
    """How far a row may be off."""
    return slip_of(float(count))


@njit
def written_proof(counts, totals, led, led_paid, threshold, table, price):
    """Return whether the second arm is beaten, and what is written down about that."""
    rows, proofs = new_rows(2), np.full((2, 6), -1.0)
    proofs[:, _SHIFT] = 0.0
    rows.led[:], rows.led_paid[:] = led, led_paid
    beaten = _is_beaten(
        np.uint64(0), np.uint64(0), table, 1, threshold, counts, totals.astype(np.float64), totals, proofs,
        np.zeros(2, np.int64), price, np.zeros(ROOM), rows,
    )  # fmt: skip
    return beaten, proofs[1]


TABLE = Run(Game(bernoulli([0.9, 0.5]), Sharing.round_robin(2, 2), 10), np.array([], np.int64)).table.rewards
COUNTS = st.one_of(st.integers(1, 1_000), st.integers(1, 10**7))


@settings(max_examples=100)
@given(
    counts=st.tuples(COUNTS, COUNTS),
    own=st.one_of(st.just(0), COUNTS),
    shares=st.tuples(*[st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))] * 3),
    above=st.one_of(st.floats(1, 40), st.floats(1, 1e6)),
)
@example(counts=(800_000, 900_004), own=0, shares=(1.0, 0.0, 0.0), above=1e6)  # the arm's row grows; q is 1/2
@example(counts=(10**6, 10), own=0, shares=(1.0, 1.0, 1.0), above=1e3)  # the leaders' row
@example(counts=(10**7, 10**5), own=10**5, shares=(1.0, 1.0, 1.0), above=1e3)  # and the arm's own part of it
def test_a_proof_pays_for_rounding_until_it_ends(counts, own, shares, above):
    """The bound still holds for the last records that a proof is for."""
    led, count = counts
    own = min(own, count)
    paid, total, own_paid = round(shares[0] * led), round(shares[1] * count), round(shares[2] * own)
    q = min(1.0, (paid + total + 0.5) / (led + count + 1.0))
    record, box = (float(count), float(count), total / count), (float(led), float(led), paid / led)
    threshold = wealth_bound(-math.inf, q, record, box, float(led + own), prices()) + above
    beaten, proof = written_proof(
        np.array([led, count]), np.array([paid, total]), np.array([led, own, led + own]),
        np.array([paid, own_paid, paid + own_paid]), threshold, TABLE, prices(),
    )  # fmt: skip
    assert not beaten
    most = proof[_LED] - own
    highest = min(1.0, (proof[_MEAN] * proof[_LED] - own_paid) / most)
    assert led <= most
    assert count < proof[_LATEST]
    q = min(1.0, (total + highest * most + 0.5) / (count + most + 1.0))
    least = threshold - proof[_SLACK]
    # None, or only rewards of 1. If more than LOG_MIXED is left, the largest part was enough, and it still is.
    bound = math.inf if proof[_SLACK] > LOG_MIXED + 0.1 else -math.inf
    for last in (float(count), proof[_LATEST]):
        record, box = (last, last, 1.0 - (count - total) / last), (most, most, highest)
        assert wealth_bound(bound, q, record, box, proof[_LED], prices()) < least
    # Only rewards of 0, as many as there may be.
    zeros = math.floor(min(proof[_SLACK] / proof[_PER_ZERO], proof[_LATEST] - count))
    against = total * DOWN + (count + zeros - total) * UP - slip(count + zeros) * DOWN
    on = highest * most * UP + (1.0 - highest) * most * DOWN - slip(proof[_LED]) * DOWN
    wealth, _, _ = log_wealth(q, count + zeros, against, most, on, [0.0] * GRID)
    part = largest_bet(q, count + zeros, against, most, on, [0.0] * GRID)
    assert (part if bound > 0.0 else wealth) < least + zeros * proof[_PER_ZERO]

"""The equal-share settlement: ends of gaps by brute force, ceilings against play, identities from the tally alone."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats
from tests.support.strategies import board, games, rewards, rules

from partage import (
    KLETC,
    BalancedETC,
    BalancedGLR,
    Bernoulli,
    Beta,
    Constant,
    FullSharing,
    Game,
    InputError,
    NoProtocol,
    Sharing,
    TwoUCB,
    bernoulli,
    play,
    play_run,
)
from partage.board import Board, Record
from partage.evidence import mixture_loss
from partage.settle import first_terms, settlement_for
from partage.settle.ceiling import LONGEST, ceilings, first_ceilings
from partage.settle.core import arms_left, box_of, ceilings_of, finished, rates_of, risks_of
from partage.settle.ends import gap_end, mean_end
from partage.settle.noiseless import lower_bound

COUNTS = st.one_of(st.integers(1, 30), st.integers(1, 10**5))
MEANS = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(0, 1).map(lambda mean: round(mean, 9)))
LEVELS = st.floats(0.5, 60)


def divergence(p, q):
    with np.errstate(divide="ignore", invalid="ignore"):
        return special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q)


def end_by_search(count, mean, level, side):
    """The end of {x : n kl(mean, x) <= level}, by a root finder; `level` may be an array."""
    edge = (1 + side) / 2
    if np.ndim(level):
        inside, outside = np.full(np.shape(level), mean), np.full(np.shape(level), edge)
        outside[count * divergence(mean, edge) <= level] = edge
        for _ in range(52):
            middle = (inside + outside) / 2
            within = count * divergence(mean, middle) <= level
            inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
        return np.where(count * divergence(mean, edge) <= level, edge, inside)
    if count * divergence(mean, edge) <= level:
        return edge
    almost = edge - side * 1e-16 if edge else 1e-300
    return optimize.brentq(lambda x: count * divergence(mean, x) - level, mean, almost, xtol=1e-15)


def gap_by_search(n, mean, m, other, level, side):
    """The largest or smallest x - y, over a grid of x with the best y for each."""
    low, high = (float(end_by_search(n, mean, np.array([level]), s)[0]) for s in (-1, 1))
    best = -math.inf
    for _ in range(3):  # a grid, and finer ones where it was best
        x = np.linspace(low, high, 301)
        left = np.maximum(0.0, level - n * divergence(mean, x))
        values = side * (x - end_by_search(m, other, left, -side))
        place = int(np.argmax(values))
        best = max(best, float(values[place]))
        low, high = x[max(0, place - 2)], x[min(300, place + 2)]
    return side * best


# --- ends -----------------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(n=COUNTS, m=COUNTS, mean=MEANS, other=MEANS, level=LEVELS, side=st.sampled_from([1.0, -1.0]))
def test_the_ends_of_a_gap(n, m, mean, other, level, side):
    """On the dense grid nothing is beyond the end, and the grid comes close to it."""
    end = gap_end(n, mean, m, other, level, side)
    assert end == pytest.approx(gap_by_search(n, mean, m, other, level, side), abs=2e-6)
    assert -1 <= end <= 1


@given(n=COUNTS, m=COUNTS, mean=MEANS, other=MEANS, level=LEVELS)
def test_the_ends_of_a_gap_are_about_the_plain_gap_and_mirror_one_another(n, m, mean, other, level):
    low, high = (gap_end(n, mean, m, other, level, side) for side in (-1.0, 1.0))
    assert low - 1e-9 <= mean - other <= high + 1e-9
    assert high == pytest.approx(-gap_end(m, other, n, mean, level, -1.0), abs=1e-9)
    assert gap_end(n, mean, m, other, level + 1, 1.0) >= high - 1e-9
    assert gap_end(2 * n, mean, 2 * m, other, level, 1.0) <= high + 1e-9


@given(n=COUNTS, mean=MEANS, level=LEVELS, side=st.sampled_from([1.0, -1.0]))
def test_the_ends_of_a_mean(n, mean, level, side):
    end = mean_end(n, mean, level, side)
    assert end == pytest.approx(float(end_by_search(n, mean, np.array([level]), side)[0]), abs=1e-9)
    assert side * (end - mean) >= 0
    if 0 < end < 1 and end != mean:  # rounded outwards
        assert n * divergence(mean, end) >= level - 1e-6


def test_a_mean_next_to_nothing_is_as_good_as_nothing():
    for least in (5e-324, 1e-308, 1e-300):
        assert gap_end(1, 0.0, 1, least, 1.0, 1.0) == pytest.approx(gap_end(1, 0.0, 1, 0.0, 1.0, 1.0))


def test_a_record_of_ones_and_zeros_by_hand():
    """n kl(1, x) = -n log x and m kl(0, y) = -m log(1 - y): for n = m the level is spent evenly."""
    assert gap_end(10, 1.0, 10, 0.0, 4.0, -1.0) == pytest.approx(2 * math.exp(-0.2) - 1)
    assert gap_end(10, 1.0, 10, 0.0, 4.0, 1.0) == pytest.approx(1)
    assert mean_end(10, 1.0, 4.0, -1.0) == pytest.approx(math.exp(-0.4))
    assert mean_end(10, 0.0, 4.0, 1.0) == pytest.approx(1 - math.exp(-0.4))


# --- gaps -----------------------------------------------------------------------------------------------------


def gaps_by_hand(game, tally, coverage=0.99):
    """Lower and upper end of each arm's gap, plug-in gap, and the arms left, from the docstring's words."""
    arms, counts, sums = len(game.arms), tally.broadcasts, tally.sums
    public = [i for i in range(arms) if game.sharing.sharers()[i] > 0]
    lower, upper, plain = np.zeros(arms), np.zeros(arms), np.zeros(arms)
    seen = [i for i in public if counts[i]]
    if not seen:
        return lower, upper, plain, public
    level, mean = math.log((arms - 1) / (1 - coverage)) if arms > 1 else 0.0, {i: sums[i] / counts[i] for i in seen}
    leader = max(seen, key=lambda i: mean[i])

    def end(best, i, side):
        losses = mixture_loss(counts[best], sums[best]) + mixture_loss(counts[i], sums[i])
        return gap_by_search(counts[best], mean[best], counts[i], mean[i], level + losses, side)

    least = {i: end(leader, i, -1) for i in seen if i != leader}
    assume(all(abs(gap) > 1e-5 for gap in least.values()))  # neither side of 0 is certain
    separated = [i for i in least if least[i] > 0]
    left = [i for i in public if i not in separated]
    for i in separated:
        plain[i] = mean[leader] - mean[i]
        lower[i] = max(0.0, min(end(j, i, -1) for j in left if counts[j]))
        upper[i] = max(end(j, i, 1) for j in left if counts[j])
        if any(counts[j] == 0 for j in left):
            own = level + mixture_loss(counts[i], sums[i])
            upper[i] = max(upper[i], 1 - float(end_by_search(counts[i], mean[i], np.array([own]), -1)[0]))
    return lower, upper, plain, left


def board_of(game, tally):
    """The board at the end of a run."""
    at_close = Board(game.horizon, range(len(game.arms)), (game.sharing.sharers() > 0).tolist())
    at_close.record = Record(tally.broadcasts.tolist(), tally.sums.tolist())
    at_close.active = tally.active.tolist()
    return at_close


def ends_of(game, tally, expected, coverage=0.99):
    name = "equal-share-expected" if expected else "equal-share"
    box = box_of(settlement_for(name, BalancedGLR(), coverage=coverage), board_of(game, tally))
    return box, np.array(box.lower), np.array(box.upper)


FEW = st.one_of(
    st.builds(Constant, rewards()),
    st.builds(Bernoulli, st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])),
    st.just(Beta(0.5, 2.0)),
)
HORIZONS = st.one_of(st.sampled_from([2, 3]), st.integers(4, 300))
SEEDS = st.integers(0, 10**6)


def as_played(game, rule):
    """The game as the rule plays it: with full sharing everyone shares everything."""
    return rule.prepare(game) if isinstance(rule, FullSharing) else game


@settings(max_examples=60)
@given(game=games(arms=FEW, horizons=HORIZONS), rule=rules(), seed=SEEDS)
def test_gaps_of_a_played_record(game, rule, seed):
    tally, game = play_run(game, rule, seed), as_played(game, rule)
    by_hand = gaps_by_hand(game, tally)
    _, lower, upper = ends_of(game, tally, False)
    assert lower == pytest.approx(by_hand[0], abs=1e-5)
    assert upper == pytest.approx(by_hand[1], abs=1e-5)
    _, plain, also = ends_of(game, tally, True)
    assert plain.tolist() == also.tolist() == by_hand[2].tolist()
    if len(by_hand[3]) == 1:
        assert (lower - 1e-9 <= plain).all()
        assert (plain <= upper + 1e-9).all()


def ceiling(best, lower, upper, two_log, steps):
    return ceilings(best, lower, upper, two_log, [steps])[0]


# --- the ceiling ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("means", "horizon"),
    [([0.9, 0.5], 1000), ([0.6, 0.5], 10_000), ([0.5, 0.45, 0.1], 30_000), ([0.95, 0.94], 5000), ([0.3, 0.0], 300)],
)
def test_the_ceiling_is_below_what_2_ucb_costs(means, horizon):
    """With the true gaps not by much; with gaps known only in part still below."""
    alone = play(Game(bernoulli(means), Sharing.nothing(1, len(means)), horizon), TwoUCB(), runs=400, baseline=False)
    cost = alone.overall_regret
    gaps, two_log = means[0] - np.array(means), 2 * math.log(horizon)
    exact = ceiling(means[0], gaps, gaps, two_log, horizon)
    assert exact <= cost.mean + 3 * cost.stderr
    assert exact >= 0.8 * (cost.mean - 3 * cost.stderr)
    assert exact == ceiling(means[0], gaps, gaps, two_log, horizon)  # its plays have a seed of their own
    vague = ceiling(means[0], gaps / 2, np.minimum(means[0], 1.5 * gaps), two_log, horizon)
    assert vague <= cost.mean + 3 * cost.stderr


def test_the_ceiling_charges_no_more_than_the_arm_can_lose():
    """Arms 0.5 and 0.05: the record allows gaps above 0.5, and 2-UCB must see them as it is charged for them."""
    game = Game(bernoulli([0.5, 0.05]), Sharing.round_robin(4, 2), 10**5)
    cost = play(game.alone(), TwoUCB(), runs=200, seed=1, settlement="none", baseline=False).overall_regret.mean
    alone = settlement_for("equal-share", BalancedGLR(), alone="two-ucb")
    too_high = {"first": 0, "now": 0}
    for run in range(20):
        at_close = board_of(game, play_run(game, BalancedGLR(), seed=1, run=run))
        for terms, settlement in (("first", first_terms(alone)), ("now", alone)):
            too_high[terms] += ceilings_of(settlement, at_close, [game.horizon])[0] > cost
    assert too_high["now"] == 0
    assert too_high["first"] > 5, "as formats 1 and 2 compute it"


def test_the_ceiling_is_that_of_the_cheapest_corner():
    """Which end of a gap is cheaper depends on the other gaps."""
    lower, upper, two_log, horizon = [0.044, 0.015], [0.464, 0.234], 2 * math.log(13_275), 13_275
    corners = [[0, a, b] for a in (0.044, 0.464) for b in (0.015, 0.234)]
    costs = [ceiling(0.464, corner, corner, two_log, horizon) for corner in corners]
    assert (
        ceiling(0.46, [0, *lower], [0, *upper], two_log, horizon) == min(costs) == pytest.approx(0.95 * 93.5, abs=2)
    )
    assert first_ceilings(0.46, [0, *lower], [0, *upper], two_log, [horizon])[0] == pytest.approx(103.5, abs=1)


@pytest.mark.parametrize(("means", "horizon"), [([0.999, 0.999, 0.999, 0.9], 80), ([0.9] * 4 + [0.1] * 8, 8)])
def test_the_ceiling_knows_that_other_arms_may_be_as_good(means, horizon):
    """Arms without a gap share the pulls of the best, and with few pulls not every arm is tried."""
    game = Game(bernoulli(means), Sharing.nothing(1, len(means)), horizon)
    cost = play(game, TwoUCB(), runs=400, seed=1, settlement="none", baseline=False).overall_regret
    gaps = max(means) - np.array(means)
    assert 0 < ceiling(max(means), gaps, gaps, 2 * math.log(horizon), horizon) <= cost.mean + 3 * cost.stderr


def test_the_corners_of_many_arms_are_searched_by_flips():
    lower, upper = [0.02, 0.05, 0.01, 0.1, 0.03], [0.3, 0.2, 0.3, 0.4, 0.1]
    found = ceiling(0.5, lower, upper, 2 * math.log(3000), 3000)
    for corner in itertools.product(*zip(lower, upper, strict=True)):
        assert found <= 1.1 * ceiling(0.5, corner, corner, 2 * math.log(3000), 3000)


def test_the_ceiling_never_falls_with_pulls():
    gaps = np.array([0.0, 0.1, 0.4])
    two_log = 2 * math.log(10**6)
    found = [ceiling(0.8, gaps, gaps, two_log, steps) for steps in (1, 10, 100, 1000, 10**4, 10**5, 10**6)]
    assert found[0] == 0
    assert found == sorted(found)
    assert ceiling(0.8, gaps, gaps, two_log, 10**12) == ceiling(0.8, gaps, gaps, two_log, LONGEST) == found[-1]


def test_no_gap_no_ceiling():
    nothing = np.zeros(3)
    assert ceiling(0.8, nothing, nothing, 27.0, 10**6) == 0
    assert ceiling(0.0, nothing, nothing, 27.0, 2) == 0


# --- the settlement -------------------------------------------------------------------------------------------


def spend_by_hand(game, tally, loss):
    """What the inequality for pairs lets each arm spend if the other loses `loss` and spends nothing itself."""
    level = math.log(max(1, len(game.arms) - 1) / 0.01)
    return [level + mixture_loss(n, total) + loss for n, total in zip(tally.broadcasts, tally.sums, strict=True)]


def ceiling_by_hand(game, tally, lower, upper, expected):
    counts, sums = tally.broadcasts, tally.sums
    seen = [i for i in game.sharing.shared if counts[i]]
    if not seen:
        return 0.0
    leader = max(seen, key=lambda i: sums[i] / counts[i])
    mean = sums[leader] / counts[leader]
    low = high = (sums[leader] + 0.5) / (counts[leader] + 1)
    if not expected:
        losses = [mixture_loss(counts[i], sums[i]) for i in range(len(counts)) if counts[i] and i != leader]
        spend = np.array([spend_by_hand(game, tally, min(losses, default=0.0))[leader]])
        low, high = (float(end_by_search(counts[leader], mean, spend, side)[0]) for side in (-1, 1))
    return lower_bound("best", low, high, *(np.delete(e, leader).tolist() for e in (lower, upper)), game.horizon)


def risks_by_hand(game, tally, left):
    counts, sums = tally.broadcasts, tally.sums
    most = max(mixture_loss(n, total) for n, total in zip(counts, sums, strict=True))
    ends = dict.fromkeys(left, (0.0, 1.0))
    for i in left:
        if counts[i]:
            spend = np.array([spend_by_hand(game, tally, most)[i]])
            ends[i] = tuple(float(end_by_search(counts[i], sums[i] / counts[i], spend, side)[0]) for side in (-1, 1))
    return {i: max((max(0.0, ends[j][1] - ends[i][0]) for j in left if j != i), default=0.0) for i in left}


@settings(max_examples=60)
@given(
    game=games(arms=FEW, horizons=HORIZONS),
    rule=rules().filter(lambda rule: not rule.by_contrasts),
    seed=SEEDS,
    name=st.sampled_from(["equal-share", "equal-share-expected"]),
    fee=st.sampled_from([0.0, 0.1, 2.0]),
)
def test_the_settlement_by_hand(game, rule, seed, name, fee):
    result = play(game, rule, runs=1, seed=seed, settlement=name, baseline=False, fee=fee)
    tally, game = play_run(game, rule, seed), as_played(game, rule)
    lower, upper, plain, left = gaps_by_hand(game, tally)
    expected = name == "equal-share-expected"
    rates = plain if expected else upper
    pulls = tally.explore + tally.commit
    gone = [i for i in range(len(game.arms)) if i in game.sharing.shared and i not in left]
    compensation = [sum(pulls[m, i] * rates[i] for i in gone) for m in range(game.agents)]
    bill = (1 + fee) * sum(compensation)
    most = ceiling_by_hand(game, tally, plain if expected else lower, rates, expected)
    charge = min(bill / game.agents, most)
    regret = pulls @ game.gaps

    def close(value):
        return pytest.approx(value, rel=1e-4, abs=1e-4 * game.horizon)

    assert result.overall_regret.mean == pytest.approx(regret.sum())
    for m in range(game.agents):
        assert result.incentive_regret(m).mean == close(regret[m] - compensation[m] + charge)
    profit = result.controller_profit.mean
    assert profit == close(game.agents * charge - sum(compensation))
    if result.viable:
        assert profit == close(fee * sum(compensation))
        assert profit >= -1e-9 * (1 + sum(compensation))
    else:
        assert profit == close(game.agents * most - sum(compensation))
        assert profit < fee * sum(compensation)
    assert result.finished == (len(left) <= 1)
    if name == "equal-share":
        risks = risks_by_hand(game, tally, left)
        uncovered = max(sum(pulls[m, i] * risks[i] for i in left) for m in range(game.agents))
        assert result.uncovered.mean == (close(uncovered) if len(left) > 1 else 0)
    else:
        assert result.uncovered is None


@pytest.mark.parametrize("rule", [TwoUCB(), NoProtocol()])
@pytest.mark.parametrize("name", ["equal-share", "equal-share-expected"])
def test_where_nothing_is_separated_nothing_is_paid(rule, name):
    game = Game(bernoulli([0.5, 0.5]), Sharing.round_robin(agents=4, arms=2), horizon=20)
    result = play(game, rule, runs=5, settlement=name, baseline=False)
    assert result.controller_profit == (0, 0)
    assert result.max_incentive_regret == result.max_individual_regret
    assert (result.finished, result.viable) == (0, 1)


def test_arms_that_nobody_shares_are_not_settled():
    """Arm 2 is nobody's: its private pulls are neither paid nor part of what is left."""
    game = Game([Constant(1.0), Constant(0.0), Constant(0.5)], Sharing.lists([[0], [1], []], 3), horizon=400)
    tally = play_run(game, BalancedGLR())
    assert tally.commit[:, 2].any()
    assert tally.active.tolist() == [True, False, False]
    result = play(game, BalancedGLR(), runs=1, settlement="equal-share-expected", baseline=False)
    assert result.finished == 1
    compensated = float(tally.explore[:, 1].sum() + tally.commit[:, 1].sum())  # gap 1 a pull
    total = sum(result.incentive_regret(m).mean for m in range(3))
    assert total == pytest.approx(result.overall_regret.mean + result.controller_profit.mean)
    assert result.overall_regret.mean == pytest.approx(compensated + 0.5 * tally.commit[:, 2].sum())


def test_a_finished_run_with_many_agents_is_viable_and_takes_its_fee():
    game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=50, arms=2), horizon=10_000)
    free, dear = (
        play(game, BalancedETC(), runs=10, seed=1, settlement="equal-share", alone="two-ucb", baseline=False, fee=fee)
        for fee in (0, 0.25)
    )
    assert (free.finished, free.viable, dear.viable) == (1, 1, 1)
    assert free.controller_profit.mean == pytest.approx(0, abs=1e-9)
    assert dear.controller_profit.mean > 0
    assert free.uncovered.mean == 0


@pytest.mark.parametrize("rule", [BalancedGLR(), KLETC()])
def test_two_arms_just_told_apart_are_told_apart_by_the_settlement_too(rule):
    """These rules share no more once an arm is out; the lower end of its gap is above 0 by the same threshold."""
    game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=50, arms=2), horizon=10_000)
    for run in range(20):
        tally = play_run(game, rule, seed=1, run=run)
        assert tally.active.tolist() == [True, False]
        _, lower, upper = ends_of(game, tally, False)
        assert 0 < lower[1] < 0.4 < upper[1]
    assert play(game, rule, runs=10, seed=1, settlement="equal-share", alone="two-ucb", baseline=False).viable > 0.5


def test_two_agents_with_balanced_etc_make_a_loss_and_it_is_reported():
    game = Game(bernoulli([0.9, 0.8]), Sharing.round_robin(agents=2, arms=2), horizon=10**5)
    result = play(game, BalancedETC(), runs=10, settlement="equal-share", alone="two-ucb", baseline=True)
    assert (result.finished, result.viable) == (1, 0)
    assert result.controller_profit.mean < 0
    assert result.individually_rational  # every agent pays its ceiling


def test_an_unfinished_run_says_so():
    game = Game(bernoulli([0.5, 0.45]), Sharing.round_robin(agents=4, arms=2), horizon=100)
    result = play(game, BalancedETC(), runs=10, settlement="equal-share", baseline=False)
    assert result.finished == 0
    assert result.uncovered.mean > result.max_individual_regret.mean
    assert result.controller_profit.mean == 0


@pytest.mark.parametrize("rule", [BalancedGLR(), KLETC(), BalancedETC()])
@pytest.mark.parametrize("name", ["equal-share", "equal-share-expected"])
def test_a_horizon_of_a_trillion(rule, name):
    game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=100, arms=2), horizon=10**12)
    result = play(game, rule, runs=2, settlement=name, baseline=False)
    assert result.finished == 1
    if name == "equal-share-expected" and rule != BalancedETC():
        assert result.viable == 1
        assert result.controller_profit.mean == pytest.approx(0, abs=1e-6)
    assert result.max_incentive_regret.mean < result.max_individual_regret.mean


@pytest.mark.parametrize("fee", [-0.1, math.inf, math.nan, True, "1", None])
def test_a_fee_is_a_number_from_0_on(fee):
    with pytest.raises(InputError, match="The fee is"):
        settlement_for("equal-share", BalancedGLR(), fee)


@pytest.mark.parametrize("name", ["paper", "none", "default"])
def test_other_settlements_take_no_fee(name):
    with pytest.raises(InputError, match="takes none"):
        settlement_for(name, BalancedETC(), 0.1)


@pytest.mark.parametrize(
    "rule", [BalancedETC(math.inf), BalancedGLR(), KLETC(), TwoUCB(), NoProtocol(), FullSharing()]
)
def test_every_rule_can_be_settled(rule):
    for name in ("equal-share", "equal-share-expected"):
        assert settlement_for(name, rule, 0.5) == settlement_for(name, BalancedETC(), 0.5)
        assert settlement_for(name, rule).name == name


@pytest.mark.parametrize("rule", [BalancedGLR(), KLETC()])
@pytest.mark.parametrize("means", [[0.9, 0.3], [0.6, 0.5, 0.1], [0.5, 0.5]])
@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_the_record_covers_as_surely_as_it_says(rule, means, coverage):
    """Com_m >= R_m for every agent, and no gap is below its lower end; measured where T is short."""
    horizon, runs = 20, 400
    game = Game(bernoulli(means), Sharing.round_robin(40, len(means)), horizon)
    wrong, done = 0, 0
    for run in range(runs):
        tally = play_run(game, rule, seed=5, run=run)
        settlement = settlement_for("equal-share", rule, coverage=coverage)
        at_close = board_of(game, tally)
        if finished(settlement, at_close):
            done += 1
            box, pulls = box_of(settlement, at_close), tally.explore + tally.commit
            short = (pulls @ np.array(box.upper) < pulls @ game.gaps - 1e-9).any()
            wrong += bool(short or (np.array(box.lower) > game.gaps + 1e-9).any())
    assert stats.binomtest(wrong, runs, 1 - coverage, alternative="greater").pvalue > 1e-6
    assert done > 0 or means == [0.5, 0.5]


def test_a_rule_that_eliminates_nothing_is_settled_too():
    """The arms left are those that the record does not separate, whatever the rule eliminated."""
    at_close = board([900, 200, 150], [0.9, 0.5, 0.1], horizon=10_000)
    gone = board([900, 200, 150], [0.9, 0.5, 0.1], horizon=10_000, gone=[1, 2])
    for name in ("equal-share", "equal-share-expected"):
        settlement = settlement_for(name, BalancedGLR())
        assert finished(settlement, at_close)
        assert min(rates_of(settlement, at_close)[1:]) > 0
        assert rates_of(settlement, at_close) == rates_of(settlement, gone)
        assert ceilings_of(settlement, at_close, [10_000]) == ceilings_of(settlement, gone, [10_000])
        assert not finished(first_terms(settlement), at_close)
    tied = board([900, 200, 800], [0.9, 0.5, 0.89], horizon=10_000, gone=[2])
    assert not finished(settlement, tied), "the rule eliminated an arm that may be the best"
    assert rates_of(settlement, tied)[2] == 0
    assert rates_of(settlement, tied)[1] == pytest.approx(0.4)


def test_more_coverage_separates_less_and_allows_more():
    at_close = board([300, 60, 60], [0.9, 0.5, 0.6], horizon=1000)
    boxes = [box_of(settlement_for("equal-share", BalancedGLR(), coverage=c), at_close) for c in (0.5, 0.9, 0.99)]
    for vague, sure in itertools.pairwise(boxes):
        assert sure.lower[1] < vague.lower[1] <= 0.4 <= vague.upper[1] < sure.upper[1]
        assert sure.low < vague.low <= 0.9 <= vague.high < sure.high
    settlement = settlement_for("equal-share", BalancedGLR(), coverage=1 - 1e-15)
    assert not finished(settlement, at_close)


def test_an_arm_that_nobody_broadcast_may_be_the_best():
    at_close = board([300, 60, 0], [0.9, 0.2, 0.0], horizon=1000)
    settlement = settlement_for("equal-share", BalancedGLR())
    assert arms_left(settlement, at_close) == [0, 2]
    assert 0.7 < rates_of(settlement, at_close)[1] <= 1
    assert risks_of(settlement, at_close)[0] > 0.1
    assert risks_of(settlement, at_close)[2] == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("coverage", [0.49, 1, 1.0, math.nan, True, "0.9"])
def test_a_coverage_is_a_number_from_a_half_to_below_1(coverage):
    with pytest.raises(InputError, match="The coverage is"):
        settlement_for("equal-share", BalancedGLR(), coverage=coverage)


def test_other_settlements_have_no_coverage():
    with pytest.raises(InputError, match=r"The coverage is 0\.9, but the settlement paper has none"):
        settlement_for("paper", BalancedETC(), coverage=0.9)


@pytest.mark.parametrize("alone", ["chance", "", 1])
def test_a_learner_that_does_not_exist(alone):
    with pytest.raises(InputError, match=r"The learner alone is .*; it must be one of two-ucb, kl-ucb"):
        settlement_for("equal-share", BalancedGLR(), alone=alone)


def test_what_the_record_allows_holds_at_the_close():
    """The true gap is within both ends in nearly every finished run; the plain gap is often too small."""
    game = Game(bernoulli([0.8, 0.6]), Sharing.round_robin(4, 2), 2000)
    inside, below, finished = 0, 0, 0
    for run in range(150):
        tally = play_run(game, BalancedGLR(), seed=1, run=run)
        if tally.active.tolist() == [True, False]:
            _, lower, upper = ends_of(game, tally, False)
            _, plain, _ = ends_of(game, tally, True)
            finished += 1
            inside += bool(lower[1] <= 0.2 <= upper[1])
            below += bool(plain[1] < 0.2)
    assert finished > 100
    assert inside == finished
    assert 0 < below < finished

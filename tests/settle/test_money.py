"""Settlements in money: integers that sum to zero, against the simulator, by hand, and as a member checks them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher
from tests.settle.test_equal_share import FEW, HORIZONS, as_played, ceiling, end_by_search, gap_by_search
from tests.support.strategies import MOST_ARMS, board, boards, games, rewards

from partage import BalancedETC, BalancedGLR, FullSharing, NoProtocol, TwoUCB, play, play_run
from partage.board import Board, Record
from partage.engine.rewards import bernoulli_sum
from partage.evidence import mixture_loss
from partage.settle import CEILING_SEED, first_terms, settlement_for
from partage.settle import plays as ceiling_kernels
from partage.settle.ceiling import ceilings
from partage.settle.core import arms_left, ceilings_of, common_charge, rates_of, water_level
from partage.settle.money import MICRO, Account, account, micro_units, settle
from partage.settle.plays import PLAYS, TRIALS, levels_of, measured, new_state, play_alone, taken_to, tried

NAMES = ("paper", "equal-share", "equal-share-expected", "none")
EQUAL = ("equal-share", "equal-share-expected")


def settlement_named(name, fee=0.0, alone=None, first=False):
    found = settlement_for(name, BalancedETC(), fee if name in EQUAL else 0.0, alone)
    return first_terms(found) if first else found


def settlements(names=NAMES):
    terms = st.sampled_from([("best", False), ("imed", False), ("two-ucb", False), ("two-ucb", True)])
    named = st.builds(settlement_named, st.sampled_from(names), st.sampled_from([0.0, 0.1, 2.0]))
    return st.builds(lambda found, term: settlement_named(found.name, found.fee, *term), named, terms)


@st.composite
def won(draw):
    """A board with a clear leader, arm 0, and mostly without the others."""
    others = draw(st.lists(st.tuples(st.sampled_from([4, 30, 100]), rewards()), max_size=3))
    counts, means = zip((draw(st.sampled_from([50, 400])), 1.0), *others, strict=True)
    gone = [arm for arm in range(1, len(counts)) if draw(st.integers(0, 5))]
    return board(counts, means, horizon=1000, gone=gone)


@st.composite
def closed(draw, some_agents=False):
    """A board at the close, and what everyone pulled: anything, or mostly the leader as agents do."""
    least = 1 if some_agents else 0
    if draw(st.booleans()):
        at_close, columns = draw(boards(hidden=True)), [st.sampled_from([0, 0, 1, 7, 60, 300])] * MOST_ARMS
    else:
        at_close, columns = (
            draw(won()),
            [st.sampled_from([900, 890, 200, 30, 0]), *[st.sampled_from([0, 0, 1, 5])] * 3],
        )
    pulls = draw(st.lists(st.tuples(*columns[: at_close.arms]), min_size=least, max_size=8))
    return at_close, np.array(pulls, np.int64).reshape(-1, at_close.arms)


VALUES = st.sampled_from([1.0, 0.01, 1e-6, 250.0, 1e9])


# --- ceilings -------------------------------------------------------------------------------------------------


def play_cut(play, best, copies, gaps, two_log, steps):
    """One play of 2-UCB alone that ends after `steps`, its last block cut; the pulls that 2-UCB surely made."""
    arms = len(gaps)
    index = [math.inf if gap > 0 else -math.inf for gap in gaps]
    sums, pulls, unsure = [0.0] * arms, [0] * arms, [0] * arms
    word, group_of = np.zeros(arms, np.uint64), np.full(arms, -1)
    of_best, step = 1, copies
    while step < steps:
        arm = index.index(max(index))
        if index[arm] <= best:
            break
        if index[arm] < best + math.sqrt(two_log / of_best):
            above = index[arm] - best
            until = int(min(math.floor(two_log / (above * above)) + 1, 2**62 / copies))
            step, of_best = step + copies * (until - of_best), until
            continue
        bar = max([best + math.sqrt(two_log / of_best), *index[:arm], *index[arm + 1 :]])
        while step < steps:
            block = min(max(1, pulls[arm] // 1024), steps - step)
            mean = max(0.0, best - gaps[arm])
            k0, k1 = np.uint64(CEILING_SEED), np.uint64(play)
            sums[arm] += bernoulli_sum(k0, k1, mean, arm, pulls[arm], block, 0, word, group_of)
            pulls[arm] += block
            step += block
            unsure[arm] = block - 1
            index[arm] = sums[arm] / pulls[arm] + math.sqrt(two_log / pulls[arm])
            if index[arm] < bar:
                break
    return [made - not_sure for made, not_sure in zip(pulls, unsure, strict=True)]


GAPS = st.lists(st.sampled_from([0.0, 0.003, 0.01, 0.1, 0.5, 1.0]), min_size=1, max_size=4)
ANY_GAP = st.one_of(st.sampled_from([0.0, 0.01, 0.1, 0.5]), st.floats(0.001, 1))
BESTS = st.sampled_from([0.0, 0.3, 0.9, 1.0])
TWO_LOGS = st.sampled_from([0.0, 1.4, 13.8, 27.6])
STEPS = st.one_of(st.integers(0, 12), st.integers(0, 20_000))


@settings(max_examples=40)
@given(
    play=st.integers(0, 600),
    best=BESTS,
    copies=st.integers(1, 3),
    gaps=GAPS,
    two_log=TWO_LOGS,
    marks=st.sets(STEPS, min_size=1, max_size=5).map(sorted),
)
def test_a_play_noted_on_its_way_is_the_play_that_ends_there(play, best, copies, gaps, two_log, marks):
    made, gone, steps = np.full((len(marks), len(gaps)), -1), np.array(gaps), np.array(marks)
    levels = levels_of(best, copies, gone, two_log, steps)
    play_alone(play, best, copies, gone, two_log, steps, levels, new_state(gone), made)
    assert made.tolist() == [play_cut(play, best, copies, gaps, two_log, steps) for steps in marks]


@settings(max_examples=300, deadline=None)
@given(
    best=st.one_of(BESTS, st.floats(0, 1)),
    copies=st.integers(1, 3),
    ends=st.lists(st.tuples(ANY_GAP, ANY_GAP).map(sorted), min_size=1, max_size=6),
    horizon=st.sampled_from([2, 30, 1000, 20_000]),
    marks=st.sets(STEPS, min_size=1, max_size=3).map(sorted),
    corner=st.integers(0, 63),
)
def test_plays_that_jump_make_the_pulls_of_plays_in_order(best, copies, ends, horizon, marks, corner):
    """Arms that are taken to a level once for all corners, too. Equal gaps have equal indices now and then."""
    low, high = np.array(ends).T.copy()
    at_upper = np.array([corner >> arm & 1 for arm in range(len(low))], np.bool_)
    gaps, two_log, steps = np.where(at_upper, high, low), 2 * math.log(horizon), np.array(marks)
    made = np.zeros((len(marks), len(gaps)), np.int64)
    in_order = np.zeros((len(marks), len(gaps)))
    for number in range(PLAYS, PLAYS + TRIALS):
        never = np.full(len(marks), math.inf)
        play_alone(number, best, copies, gaps, two_log, steps, never, new_state(gaps), made)
        in_order += gaps * made
    level = levels_of(best, copies, low, two_log, steps)[0]
    starts = tuple(taken_to(level, best, copies, each, two_log, steps[0]) for each in (low, high))
    found = tried(best, copies, gaps, two_log, steps, level, at_upper, starts)
    assert found.tolist() == (in_order / TRIALS).tolist()


@settings(max_examples=40)
@given(best=BESTS, ends=st.tuples(GAPS, GAPS), two_log=TWO_LOGS, steps=st.lists(STEPS, max_size=8))
def test_ceilings_together_are_those_one_by_one(best, ends, two_log, steps):
    """Bit for bit, in any order and with repetitions."""
    arms = min(map(len, ends))
    lower, upper = np.sort([ends[0][:arms], ends[1][:arms]], axis=0)
    together = ceilings(best, lower, upper, two_log, np.array(steps, np.int64))
    assert together == [ceiling(best, lower, upper, two_log, count) for count in steps]
    assert all(together[place] == 0 for place, count in enumerate(steps) if count <= 1)


def test_ceilings_let_other_threads_run():
    """A page previews the settlement while the server answers."""
    kernels = [one for one in vars(ceiling_kernels).values() if isinstance(one, Dispatcher)]
    assert {measured, tried, play_alone} <= {*kernels}
    assert [kernel.__name__ for kernel in kernels if not kernel.targetoptions.get("nogil")] == []


# --- the common charge ----------------------------------------------------------------------------------------


LIMITS = st.lists(st.one_of(st.sampled_from([0.0, 1.0, 2.5]), st.floats(0, 1e6)), max_size=8)


@given(limits=LIMITS, part=st.floats(0, 1.2))
def test_the_water_level_by_bisection(limits, part):
    bill = part * math.fsum(limits)
    level = water_level(limits, bill)
    if sum(map(Fraction, limits)) < Fraction(bill):
        assert level is None
        return
    low, high = 0.0, max(limits, default=0.0)
    for _ in range(200):
        middle = (low + high) / 2
        if math.fsum(min(middle, limit) for limit in limits) < bill:
            low = middle
        else:
            high = middle
    assert level == pytest.approx(high, rel=1e-9, abs=1e-50)
    assert math.fsum(min(level, limit) for limit in limits) == pytest.approx(bill, rel=1e-12, abs=1e-50)


def test_the_water_level_by_hand():
    assert water_level([4.0, 4.0], 8.0) == 4
    assert water_level([4.0, 4.0], np.nextafter(8.0, 9.0)) is None
    assert water_level([9.0, 1.0, 5.0], 7.0) == 3
    assert water_level([9.0, 1.0, 5.0], 2.0) == 2 / 3
    assert water_level([9.0, 1.0, 5.0], 12.0) == 6
    assert water_level([0.0, 0.0], 0.0) == water_level([], 0.0) == 0
    assert water_level([0.0, 0.0], 1e-9) is None
    assert water_level([], 1.0) is None


# --- invariants -----------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(closed=closed(), settlement=settlements(), value=VALUES)
def test_a_settlement_adds_up(closed, settlement, value):
    at_close, pulls = closed
    settled = settle(settlement, at_close, pulls, value)
    accounts = settled.accounts
    assert len(accounts) == len(pulls)
    assert settled.settlement == settlement.name
    amounts = [amount for row in accounts for amount in (row.compensation, row.charge)]
    assert all(type(amount) is int and amount >= 0 for amount in [*amounts, abs(settled.profit)])
    assert sum(row.net for row in accounts) + settled.profit == 0

    rates, unit = settled.rates, value * MICRO
    for arm in range(at_close.arms):
        assert 0 <= rates[arm] < math.inf
        if arm in arms_left(settlement, at_close) or not at_close.public[arm] or not at_close.counts[arm]:
            assert rates[arm] == 0
    for row, mine in zip(pulls, accounts, strict=True):
        assert mine.compensation == pytest.approx(float(row @ np.array(rates)) * unit, rel=1e-12, abs=0.5 + 1e-6)

    assert settled.finished == (len(arms_left(settlement, at_close)) <= 1)
    assert settled.uncovered == 0 if settled.finished else settled.uncovered >= 0
    charges, bill = sum(row.charge for row in accounts), math.fsum(pulls.sum(axis=0) * np.array(rates))
    slack = 0.5 * len(accounts) + 1e-9 * bill * unit + 1e-6
    if settlement.name in EQUAL:
        assert all(row.charge <= row.ceiling for row in accounts)
        due = (1 + settlement.fee) * bill * unit
        if settled.viable:
            assert charges == pytest.approx(due, abs=slack)
            free = {row.charge for row in accounts if row.charge < row.ceiling}
            assert len(free) <= 1  # all agents below their ceiling pay the same
            assert all(row.charge <= max(free) for row in accounts if free)
        else:
            assert charges <= due + slack
            assert all(row.charge == row.ceiling for row in accounts)
            assert settled.common_charge is None
    else:
        assert settled.ceilings is None
        assert all(row.ceiling is None for row in accounts)
        assert len({row.charge for row in accounts}) <= 1
    if settlement.name == "none":
        assert amounts == [0] * len(amounts)
        assert settled.common_charge is None
        assert settled.viable


@settings(max_examples=60)
@given(closed=closed(some_agents=True), settlement=settlements(), value=VALUES, data=st.data())
def test_the_order_of_agents_does_not_matter(closed, settlement, value, data):
    at_close, pulls = closed
    order = data.draw(st.permutations(range(len(pulls))))
    one, other = (settle(settlement, at_close, rows, value) for rows in (pulls, pulls[order]))
    assert other.accounts == tuple(one.accounts[agent] for agent in order)
    assert (other.profit, other.common_charge, other.uncovered) == (one.profit, one.common_charge, one.uncovered)


@settings(max_examples=60)
@given(closed=closed(), settlement=settlements(), value=st.sampled_from([0.5, 3.0, 1000.0]))
def test_value_scales_money_and_nothing_else(closed, settlement, value):
    one, scaled = (settle(settlement, *closed, by) for by in (1.0, value))
    for mine, mine_scaled in zip(one.accounts, scaled.accounts, strict=True):
        for amount, amount_scaled in zip(mine, mine_scaled, strict=True):
            if amount is not None:
                assert amount_scaled == pytest.approx(value * amount, abs=value / 2 + 0.5 + 1e-12 * value * amount)
    assert (one.rates, one.common_charge, one.ceilings) == (scaled.rates, scaled.common_charge, scaled.ceilings)
    assert (one.viable, one.uncovered) == (scaled.viable, scaled.uncovered)


@settings(max_examples=60)
@given(closed=closed(some_agents=True), settlement=settlements(), value=VALUES, data=st.data())
def test_a_member_checks_its_account_without_the_pulls_of_others(closed, settlement, value, data):
    at_close, pulls = closed
    settled = settle(settlement, at_close, pulls, value)
    me = data.draw(st.integers(0, len(pulls) - 1))
    totals, everyones, mine = (
        pulls.sum(axis=0).tolist(),
        settled.ceilings,
        pulls[me].tolist(),
    )  # what a member is given
    limits = ceilings_of(settlement, at_close, [sum(mine)])
    assert (limits is None) == (everyones is None)
    limit = None if limits is None else limits[0]
    assert everyones is None or limit == everyones[me]
    common = common_charge(settlement, at_close, totals, everyones)
    assert common == settled.common_charge
    assert account(rates_of(settlement, at_close), mine, common, limit, value) == settled.accounts[me]


# --- against the simulator ------------------------------------------------------------------------------------


def board_of(game, tally):
    """The board at the end of a simulated run."""
    made = Board(game.horizon, list(range(len(game.arms))), (game.sharing.sharers() > 0).tolist())
    made.record = Record(tally.broadcasts.tolist(), tally.sums.tolist())
    made.active = tally.active.tolist()
    return made


RULES = st.sampled_from([BalancedETC(), BalancedETC(2.0), FullSharing(), BalancedGLR(), NoProtocol(), TwoUCB()])


@settings(max_examples=80)
@given(
    game=games(arms=FEW, horizons=HORIZONS),
    rule=RULES,
    name=st.sampled_from(["paper", "equal-share", "equal-share-expected"]),
    fee=st.sampled_from([0.0, 0.1, 2.0]),
    seed=st.integers(0, 10**6),
)
def test_a_simulated_run_settles_as_the_simulator_says(game, rule, name, fee, seed):
    if name == "paper":
        fee, rule = 0.0, rule if isinstance(rule, BalancedETC) else BalancedETC()
    result = play(game, rule, runs=1, seed=seed, settlement=name, baseline=False, fee=fee)
    tally, game = play_run(game, rule, seed), as_played(game, rule)
    pulls = tally.explore + tally.commit
    settled = settle(settlement_for(name, rule, fee), board_of(game, tally), pulls)
    regret = pulls @ game.gaps

    def micro(amount):
        return pytest.approx(amount * MICRO, rel=1e-9, abs=1 + 1e-3)

    for agent, mine in enumerate(settled.accounts):
        assert regret[agent] * MICRO - mine.net == micro(result.incentive_regret(agent).mean)
    assert settled.profit == pytest.approx(result.controller_profit.mean * MICRO, rel=1e-9, abs=game.agents + 1e-3)
    if name in EQUAL:
        assert settled.viable == result.viable
        assert settled.finished == result.finished
    if name == "equal-share":
        assert settled.uncovered == pytest.approx(result.uncovered.mean)


# --- by hand --------------------------------------------------------------------------------------------------


def test_the_papers_settlement_by_hand():
    at_close = board([40, 160, 90], [0.9, 0.2, 0.1], horizon=1000, gone=[1, 2])
    pulls = np.array([[10, 100, 3], [0, 0, 0]])
    settled = settle(settlement_for("paper", BalancedETC(4)), at_close, pulls, 2.0)
    c, k, log = 9.0, (math.sqrt(2) - math.sqrt(1.5)) ** 2, math.log(1000)
    compensation = 100 * math.sqrt(8 * c * log / 160) + 3 * math.sqrt(8 * c * log / 90)
    charge = sum(n * math.sqrt(k**2 * log / (128 * c * n)) for n in (160, 90))
    assert settled.accounts[0] == Account(round(compensation * 2e6), round(charge * 2e6))
    assert settled.accounts[1] == Account(0, round(charge * 2e6))  # every agent that joined pays
    assert settled.common_charge == pytest.approx(charge)
    assert settled.profit == 2 * round(charge * 2e6) - round(compensation * 2e6)
    assert not settled.viable
    enough = math.ceil(compensation / charge)
    for agents in (enough - 1, enough):
        many = np.concatenate([pulls[:1], np.zeros((agents - 1, 3), np.int64)])
        assert settle(settlement_for("paper", BalancedETC(4)), at_close, many).viable == (agents == enough)


def test_half_a_micro_unit_goes_to_the_even_neighbour():
    at_close = board([200, 100], [1.0, 0.5], horizon=1000, gone=[1])
    pulls = np.array([[900, count] for count in (1, 3, 5, 7)])
    settlement = settlement_for("equal-share-expected", BalancedETC(), alone="two-ucb")
    settled = settle(settlement, at_close, pulls, 1e-6)
    assert settled.rates == (0.0, 0.5)
    assert [row.compensation for row in settled.accounts] == [0, 2, 2, 4]
    assert settled.common_charge == 2
    assert [row.charge for row in settled.accounts] == [2] * 4
    assert settled.profit == 0
    assert [micro_units(amount, 1e-6) for amount in (0.5, 1.5, 2.5, 3.5)] == [0, 2, 2, 4]


def test_agents_with_few_pulls_pay_their_ceiling_and_the_others_the_rest():
    at_close = board([3000, 400], [0.9, 0.5], horizon=10_000, gone=[1])
    pulls = np.array([[9700, 300], [30, 0], [9000, 0], [9000, 0], [0, 0], [10_000, 0], [10_000, 0]])
    settlement = settlement_for("equal-share-expected", BalancedETC(), 0.1, alone="two-ucb")
    settled = settle(settlement, at_close, pulls)
    ceilings = settled.ceilings
    assert ceilings[4] == 0
    assert 0 < ceilings[1] < settled.common_charge < min(ceilings[0], ceilings[2])
    assert settled.common_charge == pytest.approx((1.1 * 120 - ceilings[1]) / 5)
    assert settled.accounts[1].charge == settled.accounts[1].ceiling == round(ceilings[1] * MICRO)
    assert settled.viable
    assert settled.profit == pytest.approx(12 * MICRO, abs=4)


def test_a_loss_shows_in_the_profit():
    at_close = board([3000, 400], [0.9, 0.5], horizon=10_000, gone=[1])
    settled = settle(settlement_for("equal-share", BalancedETC()), at_close, np.array([[5000, 400], [50, 0]]))
    assert (settled.viable, settled.finished, settled.common_charge) == (False, True, None)
    assert [row.charge for row in settled.accounts] == [row.ceiling for row in settled.accounts]
    assert settled.profit < 0


@pytest.mark.parametrize("name", EQUAL)
def test_an_unfinished_settlement_says_what_it_does_not_cover(name):
    at_close = board([50, 40, 60], [0.6, 0.5, 0.1], horizon=1000, gone=[2])
    pulls = np.array([[40, 5, 30], [20, 60, 0]])
    settled = settle(settlement_for(name, BalancedETC()), at_close, pulls)
    assert not settled.finished
    level, arms = math.log(2 / 0.01), [(50, 0.6), (40, 0.5), (60, 0.1)]
    losses = [mixture_loss(count, count * mean) for count, mean in arms]
    low, high = {}, {}
    for arm, (count, mean) in enumerate(arms):
        spend = level + losses[arm] + max(losses)
        low[arm], high[arm] = (end_by_search(count, mean, spend, side) for side in (-1, 1))
    gaps = [high[1] - low[0], high[0] - low[1]]
    assert settled.uncovered == pytest.approx(max(40 * gaps[0] + 5 * gaps[1], 20 * gaps[0] + 60 * gaps[1]), rel=1e-6)
    assert settled.rates[:2] == (0, 0)
    most = max(gap_by_search(*arms[arm], 60, 0.1, level + losses[arm] + losses[2], 1) for arm in (0, 1))
    assert settled.rates[2] == pytest.approx(most if name == "equal-share" else 0.5, rel=1e-4)


# --- nothing much ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("agents", [0, 1, 3])
@pytest.mark.parametrize(
    "at_close",
    [
        board([0], [0.0]),
        board([5], [0.4], horizon=1),
        board([0, 0], [0.0, 0.0]),
        board([0, 0], [0.0, 0.0], hidden=[0, 1]),
        board([0, 0, 9], [0.0, 0.0, 0.5], hidden=[0], gone=[1]),
        board([9, 9], [1.0, 0.0], gone=[0, 1]),
        board([9, 9], [0.5, 0.5], horizon=1, gone=[1]),
        board([7, 0], [1.0, 0.0], horizon=10**12),
    ],
)
@pytest.mark.parametrize("each", [0, 50])
def test_where_there_is_hardly_anything_to_settle(name, agents, at_close, each):
    pulls = np.full((agents, at_close.arms), each)
    settled = settle(settlement_named(name, 0.1), at_close, pulls)
    assert len(settled.accounts) == agents
    assert sum(row.net for row in settled.accounts) + settled.profit == 0
    if not each or not agents:
        assert all(row.compensation == 0 for row in settled.accounts)
        assert settled.uncovered == 0


def test_with_nothing_broadcast_any_pull_may_have_lost_everything():
    settled = settle(settlement_named("equal-share"), board([0, 0], [0.0, 0.0]), np.array([[3, 4], [1, 0]]))
    assert (settled.finished, settled.uncovered, settled.profit) == (False, 7, 0)


def test_an_eliminated_arm_that_was_never_broadcast_is_not_paid():
    at_close = board([90, 0, 30], [0.9, 0.0, 0.2], horizon=1000, gone=[1, 2])
    for name in ("paper", *EQUAL):
        rates = rates_of(settlement_named(name), at_close)
        assert rates[0] == rates[1] == 0 < rates[2]


def test_an_eliminated_arm_that_is_better_than_those_left():
    """Only late reports could bring a record to this. It is the leader; by the first terms, nobody pays anything."""
    for left in ([20], [20, 20]):
        at_close = board([*left, 500], [*(0.0 for _ in left), 1.0], horizon=10, gone=[len(left)])
        for name in EQUAL:
            settled = settle(settlement_named(name), at_close, np.full((2, at_close.arms), 5))
            assert settled.finished
            assert min(settled.rates[:-1]) > 0.5
            assert settled.rates[-1] == 0
            before = settle(first_terms(settlement_named(name)), at_close, np.full((2, at_close.arms), 5))
            assert set(before.rates) == {0}
            assert before.accounts == (Account(0, 0, 0),) * 2


def test_a_horizon_of_a_trillion_is_settled_in_micro_units():
    at_close = board([10**6, 10**4], [0.9, 0.5], horizon=10**12, gone=[1])
    pulls = np.array([[10**12 - 10**4, 10**4], *[[10**12, 0]] * 99])
    settled = settle(settlement_for("equal-share-expected", BalancedETC()), at_close, pulls, 1e6)
    assert settled.accounts[0].compensation == 4000 * MICRO**2
    assert sum(row.net for row in settled.accounts) + settled.profit == 0

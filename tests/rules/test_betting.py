"""Balanced-GLR with evidence by betting: every decision by hand, the exact expectation, the guarantee, the state."""

import itertools
import json
import math
from copy import deepcopy

import numpy as np
import pytest
from bench.wrong_eliminations import GAMES, wrong_eliminations
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from tests.support.strategies import rewards
from tests.test_betting import parts_by_hand, wealth_by_hand

from partage import BalancedGLR, Bernoulli, Beta, Constant, Game, InputError, Sharing, bernoulli, play, play_run
from partage.board import Board, Pull
from partage.testing import check_rule

RULE = BalancedGLR(evidence="betting")


class Watched:
    """A board that the rule revises, with everything that was told: (arm, reward, the leader just before)."""

    def __init__(self, arms, horizon=10, tie_order=None):
        self.board = Board(horizon, tie_order or list(range(arms)), [True] * arms)
        self.told = []

    def leader(self):
        """The active arm with the highest mean, ties by the tie order; None before any broadcast."""
        board = self.board
        means = {arm: board.record.sums[arm] / board.counts[arm] for arm in board.actives() if board.counts[arm]}
        return min(means, key=lambda arm: (-means[arm], board.rank[arm]), default=None)

    def tell(self, arm, reward):
        self.told.append((arm, reward, self.leader()))
        self.board.broadcast("a1", arm, reward)
        RULE.revise(self.board)

    def rewards_against(self, arm):
        """The rewards of the arm, and those of leaders other than it."""
        own = [reward for told, reward, _ in self.told if told == arm]
        return own, [reward for told, reward, leader in self.told if told == leader != arm]

    def smallest_wealth(self, arm):
        against = self.rewards_against(arm)
        found = optimize.minimize_scalar(lambda q: wealth_by_hand(q, *against), bounds=(0, 1), method="bounded")
        return min(found.fun, wealth_by_hand(0.0, *against), wealth_by_hand(1.0, *against))


@settings(max_examples=60)
@given(
    told=st.lists(st.tuples(st.integers(0, 2), rewards()), max_size=40),
    horizon=st.sampled_from([2, 5, 10]),
    tie_order=st.permutations(range(3)),
)
def test_an_arm_is_eliminated_once_its_wealth_reaches_the_horizon(told, horizon, tie_order):
    """Whatever is told in whatever order: changes of the leader, ties, reports of arms that are gone."""
    watched = Watched(3, horizon, tie_order)
    for arm, reward in told:
        before = set(watched.board.actives())
        watched.tell(arm, reward)
        leader, left = watched.leader(), set(watched.board.actives())
        assert left <= before
        assert leader in left
        assert watched.board.state["leader"] == leader
        for other in before - {leader}:
            wealth = watched.smallest_wealth(other)
            if abs(wealth - math.log(horizon)) > 1e-4:
                assert (other not in left) == (wealth > math.log(horizon))


@settings(max_examples=60)
@given(told=st.lists(st.tuples(st.integers(0, 2), rewards()), min_size=1, max_size=30))
def test_the_pace_goes_by_the_largest_bet_at_the_pooled_mean(told):
    watched = Watched(3, 10**6)
    for arm, reward in told:
        watched.tell(arm, reward)
    board, leader = watched.board, watched.leader()
    of = {arm: [reward for which, reward in told if which == arm] for arm in range(3)}
    for arm in set(board.actives()) - {leader}:
        if of[arm]:
            both = of[arm] + of[leader]
            q = (sum(both) + 0.5) / (len(both) + 1)
            expected = max(0.0, *parts_by_hand(q, of[arm], of[leader]))
            assert board.state["evidence"][arm] == pytest.approx(expected, abs=1e-9)


# --- the guarantee --------------------------------------------------------------------------------------------


def expectations(watched, means, q, steps):
    """Return the expected wealth against arm 0 after some more broadcasts of the rule's own choice."""
    wealth = math.exp(wealth_by_hand(q, *watched.rewards_against(0)))
    pull = RULE.decide(watched.board, {0, 1})
    if steps == 0 or not pull.share:
        return wealth
    expected, at_once = 0.0, 0.0
    for reward, chance in ((1.0, means[pull.arm]), (0.0, 1 - means[pull.arm])):
        after = deepcopy(watched)
        after.tell(pull.arm, reward)
        at_once += chance * math.exp(wealth_by_hand(q, *after.rewards_against(0)))
        expected += chance * expectations(after, means, q, steps - 1)
    assert at_once <= wealth * (1 + 1e-12)  # a supermartingale, on every path
    return expected


@pytest.mark.parametrize("means", [(0.6, 0.6), (0.7, 0.4), (0.9, 0.2)])
def test_the_wealth_against_the_best_arm_is_never_expected_to_grow(means):
    """All rewards of eight broadcasts, for each q between the means: at most 1; and above 1 if the null is wrong."""
    for q in np.linspace(means[1], means[0], 3):
        assert expectations(Watched(2, 1000), means, q, steps=8) <= 1 + 1e-12


def test_the_expectation_would_notice():
    with pytest.raises(AssertionError):
        expectations(Watched(2, 1000), (0.3, 0.8), 0.55, steps=8)


@pytest.mark.parametrize(("horizon", "runs"), [(10, 20_000), (20, 20_000)])
@pytest.mark.parametrize("agents", [1, 3])
@pytest.mark.parametrize("name", ["0.5, 0.5", "0.5, 0.5, 0.5", "0.5, 0.45", "beta(0.1, 0.1) thrice"])
def test_the_best_arm_is_rarely_ever_eliminated(name, horizon, runs, agents):
    wrong = wrong_eliminations(GAMES[name], horizon, agents, runs, rule=RULE)
    assert stats.binomtest(wrong, runs, 1 / horizon, alternative="greater").pvalue > 1e-6


def test_the_measure_of_wrong_eliminations_would_notice():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("partage.engine.balanced_glr.betting_threshold", lambda _: 0.0)
        wrong = wrong_eliminations(GAMES["0.5, 0.5"], 50, 3, 2000, rule=RULE)
    assert stats.binomtest(wrong, 2000, 1 / 50, alternative="greater").pvalue < 1e-6


# --- the state on the board -----------------------------------------------------------------------------------


def told_at_random(seed, arms=3, count=25, horizon=1000):
    generator, watched = np.random.default_rng(seed), Watched(arms, horizon)
    for _ in range(count):
        arm = int(generator.integers(arms))
        watched.tell(arm, float(generator.random() < 0.9 - 0.3 * arm))
    return watched


@pytest.mark.parametrize("seed", range(5))
def test_the_state_is_plain_json_and_enough_to_go_on(seed):
    """As after a restart: the counts, the sums, the active arms and the state are kept, and nothing else."""
    watched = told_at_random(seed)
    again = deepcopy(watched)
    again.board.state = json.loads(json.dumps(watched.board.state))
    again.board.record.latest = again.board.record.latest_reward = None
    for arm, reward in itertools.product(range(3), (0.0, 0.3, 1.0)):
        for each in (watched, again):
            each.tell(arm, reward)
        assert again.board == watched.board
        assert RULE.open_arms(again.board) == RULE.open_arms(watched.board)


def test_a_state_that_was_shown_does_not_change():
    watched = told_at_random(0)
    shown = watched.board.state
    before = deepcopy(shown)
    for arm in range(3):
        watched.tell(arm, 0.3)
    assert shown == before


def test_slack_moves_the_threshold():
    watched = Watched(2, 100)
    while watched.board.actives() == [0, 1]:
        before = deepcopy(watched.board)
        watched.tell(0, 1.0)
        if watched.board.actives() == [0, 1]:
            before = deepcopy(watched.board)
            watched.tell(1, 0.0)
    assert watched.board.actives() == [0]
    arm, reward, _ = watched.told[-1]
    margin = watched.smallest_wealth(1) - math.log(100)
    for slack, left in ((margin - 1e-6, [0]), (margin + 1e-6, [0, 1])):
        board = deepcopy(before)
        board.broadcast("a1", arm, reward)
        RULE.revise(board, slack)
        assert board.actives() == left


def test_an_eliminated_arm_stays_eliminated():
    """Reports of open claims lift its mean above all others; commits still go to the leader."""
    watched = Watched(2, 10)
    for _ in range(10):
        watched.tell(0, 0.6)
        watched.tell(1, 0.0)
    assert watched.board.actives() == [0]
    for _ in range(100):
        watched.tell(1, 1.0)
    assert watched.board.mean(1) > watched.board.mean(0)
    assert watched.board.actives() == [0]
    assert RULE.decide(watched.board, {0, 1}) == Pull(0, share=False)


def test_a_leader_that_nobody_shares_any_more():
    """It cannot be explored, so the others are explored equally often; their own rewards eliminate one of them."""
    watched = Watched(3, 10)
    for _ in range(5):
        watched.tell(0, 1.0)
    watched.board.shared[0] = False
    while watched.board.actives() == [0, 1, 2]:
        pull = RULE.decide(watched.board, {1, 2})
        assert pull.share
        assert watched.board.counts[pull.arm] == min(watched.board.counts[1:])
        watched.tell(pull.arm, 0.0)
    assert watched.leader() == 0
    assert len(watched.told) < 30


def test_a_record_made_by_hand_eliminates_nothing():
    board = Board(10, [0, 1], [True, True])
    board.record.counts, board.record.sums = [100, 100], [90.0, 10.0]
    RULE.revise(board)
    assert board.actives() == [0, 1]
    assert sorted(RULE.open_arms(board)) == [0, 1]


# --- the whole rule -------------------------------------------------------------------------------------------


def test_engine_equals_reference_on_longer_games():
    """Where many bounds on the wealth are used and renewed."""
    for arms, sharing in [
        (bernoulli([0.9, 0.8, 0.5]), Sharing.scarce_best(6, 3)),
        ([Beta(20, 18), Beta(18, 20), Constant(0.4), Bernoulli(0.45)], Sharing.neighbours(4, 4, 2)),
    ]:
        game = Game(arms, sharing.in_shuffled_order(), horizon=1500)
        for seed in range(2):
            assert play_run(game, RULE, seed) == play_run(game, RULE, seed, reference=True)


def test_a_horizon_of_a_trillion():
    game = Game(bernoulli([0.9, 0.5, 0.1]), Sharing.round_robin(agents=1000, arms=3), horizon=10**12)
    tally = play_run(game, RULE)
    assert (tally.explore.sum(axis=1) + tally.commit.sum(axis=1) == 10**12).all()
    assert tally.active.tolist() == [True, False, False]
    assert tally.broadcasts.sum() < 2000


@pytest.mark.parametrize(("concentration", "factor"), [(None, 1.0), (4, 0.5), (50, 0.4)])
def test_fewer_broadcasts_and_less_regret_than_by_likelihood(concentration, factor):
    """The paper's best arms at T = 1e5, paired on common random numbers."""
    means = [0.9, 0.8, 0.7, 0.6, 0.5]
    arms = (
        bernoulli(means)
        if concentration is None
        else [Beta(m * concentration, (1 - m) * concentration) for m in means]
    )
    game = Game(arms, Sharing.round_robin(agents=20, arms=5), horizon=10**5)
    bets, likelihood = (
        play(game, rule, runs=60, settlement="none", baseline=False) for rule in (RULE, BalancedGLR())
    )
    assert bets.overall_regret.mean < factor * likelihood.overall_regret.mean
    assert bets.broadcasts.mean < factor * likelihood.broadcasts.mean


@pytest.mark.parametrize("lead", [1.0, 3.0])
def test_it_keeps_to_the_game(lead):
    check_rule(BalancedGLR(lead, "betting"))


@pytest.mark.parametrize("evidence", ["bets", "", None, 1, ["betting"]])
def test_other_evidence_is_refused(evidence):
    with pytest.raises(InputError, match=r"The evidence is .*it must be likelihood or betting"):
        BalancedGLR(evidence=evidence)

"""Network-GLR: blocks, contrasts, bridges, members who differ, and what all of it may depend on."""

import json
import math
import random
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from partage import BalancedGLR, Game, InputError, NetworkGLR, Sharing, Traits, bernoulli, play, play_run
from partage.board import MOST_LAPSES, Board, Record, total_of
from partage.rules.network_glr import RHO, net_information, pair
from partage.settle import settlement_for
from partage.settle.core import rates_of


def board_with(shares, horizon=1000, arms=None):
    """A board on which these members share these arms."""
    arms = arms or 1 + max(max(one, default=0) for one in shares)
    board = Board(horizon, range(arms), [True] * arms)
    board.shares = {member: frozenset(one) for member, one in enumerate(shares)}
    return board


def explored(board, rule, member):
    """Return the arm that a member explores next; None if it commits."""
    offered = rule.offered(board, member, board.shares[member], rule.open_arms(board))
    pull = rule.decide(board, offered)
    return pull.arm if pull.share else None


def tell_all(board, rule, told):
    """Let members explore in turn, once for each function in `told`, and return what they explored."""
    found = []
    for turn, reward in enumerate(told):
        member = turn % len(board.shares)
        arm = explored(board, rule, member)
        found.append((member, arm))
        if arm is not None:
            board.broadcast(member, arm, reward(member, arm))
            rule.revise(board)
    return found


def closings(board):
    return board.state["told"] if board.state else 0


# --- the proof's assumptions ----------------------------------------------------------------------------------


@st.composite
def sharings(draw):
    arms = draw(st.integers(2, 4))
    members = draw(st.integers(1, 5))
    shares = [draw(st.sets(st.integers(0, arms - 1), min_size=1)) for _ in range(members)]
    return [set(range(arms)), *shares]


@settings(max_examples=60)
@given(sharings(), st.integers(0, 2**32), st.integers(0, 120))
def test_what_is_pulled_in_a_block_does_not_depend_on_its_rewards(shares, seed, turns):
    rule, draw = NetworkGLR(), random.Random(seed)
    board = board_with(shares, horizon=100)
    tell_all(board, rule, [lambda member, arm: float(draw.random() < 0.3 + 0.2 * arm)] * turns)
    # From here on everything that was not counted yet is swapped for other rewards, as well as all that comes.
    other = board.copy()
    for member, record in other.by_member.items():
        counts, sums = (other.state["counted"].get(str(member)) or ([0] * 4, [0.0] * 4)) if other.state else (0, 0)
        for arm in range(other.arms):
            left = record.counts[arm] - counts[arm]
            record.sums[arm] = sums[arm] + left - (record.sums[arm] - sums[arm])
    start = closings(board)
    for turn in range(80):
        member = turn % len(shares)
        arm = explored(board, rule, member)
        assert arm == explored(other, rule, member)
        if arm is not None:
            for one, reward in ((board, 1.0), (other, float(turn % 3 == 0))):
                one.broadcast(member, arm, reward)
                rule.revise(one)
        assert closings(board) == closings(other)
        if closings(board) > start:
            break


@settings(max_examples=30)
@given(sharings(), st.lists(st.sampled_from([0.0, 0.25, -0.25]), min_size=6, max_size=6), st.integers(0, 2**32))
def test_constants_of_members_change_nothing(shares, constants, seed):
    boards = []
    for used in ([0.0] * 6, constants):
        draw = random.Random(seed)
        board = board_with(shares, horizon=50)
        tell = [lambda member, arm, draw=draw, used=used: draw.choice((0.25, 0.5, 0.75)) + used[member]] * 150
        explored_arms = tell_all(board, NetworkGLR(), tell)
        boards.append((explored_arms, board))
    (mine, one), (theirs, other) = boards
    if one.state and one.state["scores"] != pytest.approx(other.state["scores"], abs=1e-6):
        assert mine != theirs  # only where two effects are equal but for rounding
        return
    assert mine == theirs
    assert one.active == other.active


@given(st.floats(0.01, 200), st.floats(0.01, 1000))
def test_the_mixture_is_at_most_that_of_a_half_normal(score, information):
    """The integral of exp(lambda S - lambda^2 I / 2) over lambda > 0 with density of precision rho."""
    mean, spread = score / (information + RHO), 1 / math.sqrt(information + RHO)
    exact = (
        math.log(2 * stats.norm.cdf(mean / spread))
        + mean**2 / (2 * spread**2)
        - math.log((information + RHO) / RHO) / 2
    )
    if exact < 20:
        density = math.sqrt(2 * RHO / math.pi)
        value, _ = integrate.quad(
            lambda at: density * math.exp(at * score - at * at * (information + RHO) / 2),
            0,
            mean + 12 * spread,
            limit=200,
        )
        assert math.log(value) == pytest.approx(exact, abs=1e-6)
    assert net_information(score, information, RHO) <= exact + 1e-9
    assert net_information(score, information, RHO) >= exact - math.log(2)
    assert net_information(-score, information, RHO) == -math.inf


@dataclass(frozen=True)
class _Eager(NetworkGLR):
    """Network-GLR with a threshold that does not depend on T."""

    def revise(self, board, slack=0.0):
        super().revise(board, slack - math.log(board.horizon))


@pytest.mark.extra
def test_the_best_arm_is_eliminated_at_most_so_often():
    """With T = 10 and two equal arms, each may be lost in 1 of 10 runs, and far fewer lose one. Seeds are fixed."""
    traits = [Traits(offset=offset) for offset in np.linspace(-0.4, 0.4, 40)]
    game = Game(bernoulli([0.5, 0.5]), Sharing.everything(40, 2), 10, traits=traits)

    def lost(rule, runs):
        return sum(~play_run(game, rule, 1, run).active for run in range(runs)) / runs

    assert (lost(NetworkGLR(), 200) <= 0.1).all()
    assert (lost(_Eager(), 60) > 0.2).any(), "so many runs are enough to see a threshold that is too low"


# --- decisions ------------------------------------------------------------------------------------------------


def test_nobody_explores_who_cannot_compare():
    board, rule = board_with([{0, 1}, {0}, {1, 2}, set()]), NetworkGLR()
    assert rule.open_arms(board) == [0, 1, 2]
    assert [explored(board, rule, member) is not None for member in range(4)] == [True, False, True, False]


def test_an_eliminated_arm_is_a_bridge_if_nothing_else_connects():
    rule, board = NetworkGLR(), board_with([{0, 1}, {1, 2}])
    tell_all(board, rule, [lambda member, arm: (0.75, 0.25, 0.75)[arm]] * 4)
    board.active[1] = False
    assert rule.open_arms(board) == [0, 1, 2]
    board.shares[2] = frozenset({0, 2})
    assert rule.open_arms(board) == [0, 2], "the members that compare both directly are enough"
    board.active[2] = False
    assert rule.open_arms(board) == []


def test_the_leader_is_explored_more_often():
    rule, board = NetworkGLR(lead=3), board_with([{0, 1}], horizon=10**6)
    draw = random.Random(3)
    tell_all(board, rule, [lambda member, arm: float(draw.random() < (0.75, 0.5)[arm])] * 400)
    assert board.leading == 0
    assert 2.2 < board.counts[0] / board.counts[1] <= 3.5


def test_only_who_connects_goes_on_once_the_record_has_grown():
    rule, board = NetworkGLR(), board_with([{0, 1}, {1, 2}])
    told = []
    for _ in range(30):  # the second member never asks
        arm = explored(board, rule, 0)
        told.append(arm)
        if arm is not None:
            board.broadcast(0, arm, 0.5)
            rule.revise(board)
    assert board.state["told"] == 0
    assert told[-1] is None
    assert sum(arm is not None for arm in told) == 2
    board.lapses[2] = MOST_LAPSES  # nobody waits for a stalled arm
    assert explored(board, rule, 1) is not None
    board.broadcast(0, 0, 0.5)
    rule.revise(board)
    assert board.state["told"] == 3


def test_the_state_is_json_and_small_on_the_board():
    rule, board = NetworkGLR(), board_with([{0, 1}, {0, 1}])
    tell_all(board, rule, [lambda member, arm: 0.5] * 20)
    assert json.loads(json.dumps(board.state)) == board.state
    assert "counted" not in rule.shown(board)
    assert board.state["information"][pair(1, 0)] > 0


def test_bad_input():
    with pytest.raises(InputError, match="Nobody shares both arm 3 and any other arm"):
        play(Game(bernoulli([0.5] * 3), Sharing.lists([[0, 1], [2]], 3), 10), NetworkGLR(), runs=1)
    with pytest.raises(InputError, match="compares 32 at most"):
        play(Game(bernoulli([0.5] * 33), Sharing.everything(1, 33), 10), NetworkGLR(), runs=1)
    with pytest.raises(InputError, match="The lead is 0"):
        NetworkGLR(lead=0)


# --- members who differ ---------------------------------------------------------------------------------------


def test_offsets_mislead_pooled_means_and_not_contrasts():
    """Two members who see everything better share the worse arm only."""
    traits = [Traits(offset=0.3), Traits(offset=0.3), Traits(offset=-0.3)]
    game = Game(bernoulli([0.4, 0.6]), Sharing.lists([[0], [0], [0, 1]], 2), 2000, traits=traits)
    pooled = [play_run(game, BalancedGLR(), 0, run).active[1] for run in range(5)]
    within = [play_run(game, NetworkGLR(), 0, run).active.tolist() for run in range(5)]
    assert not any(pooled)
    assert within == [[False, True]] * 5


def test_who_differs_in_differences_has_a_leader_of_its_own():
    rule, board = NetworkGLR(), board_with([{0, 1}] * 4, horizon=10**6)
    draw = random.Random(5)
    means = {True: (0.6, 0.5), False: (0.1, 0.9)}
    tell_all(board, rule, [lambda member, arm: float(draw.random() < means[member < 3][arm])] * 2000)
    assert rule.own_leaders(board) == {"3": 1}
    assert board.leading == 0
    assert explored(board, rule, 3) is None
    assert explored(board, rule, 0) is not None
    assert board.effects[0] == 0.0
    assert board.effects[1] == pytest.approx(-0.1, abs=0.1)


def test_a_member_on_its_own_commits_to_its_own_arm():
    traits = [Traits(), Traits(), Traits(), Traits(means=[0.1, 0.9])]
    game = Game(bernoulli([0.7, 0.4]), Sharing.everything(4, 2), 1500, traits=traits)
    tally = play_run(game, NetworkGLR(), seed=2)
    assert tally.active.tolist() == [True, False]
    assert tally.commit[3, 1] > 1000
    assert tally.commit[:3, 0].min() > 1000


def test_a_pool_pays_contrasts():
    traits = [Traits(offset=0.2), Traits(offset=-0.2)]
    game = Game(bernoulli([0.7, 0.4]), Sharing.everything(2, 2), 1000, traits=traits)
    tally = play_run(game, NetworkGLR(), seed=3)
    assert tally.effects[0] == 0
    assert tally.effects[1] == pytest.approx(-0.3, abs=0.15)
    result = play(game, NetworkGLR(), runs=1, seed=3, settlement="pool", prepaid=1000)
    assert result.bill.mean == pytest.approx(-tally.effects[1] * tally.told[:, 1].sum())


def test_no_claim_earns_more_than_one():
    """Contrasts add up along a path of members: here to 2, which no two arms can differ by."""
    board, rule = board_with([{0, 1}, {1, 2}], horizon=2), NetworkGLR()
    board.by_member = {0: Record([40, 40, 0], [40.0, 0.0, 0.0]), 1: Record([0, 40, 40], [0.0, 40.0, 0.0])}
    board.record = total_of(board.by_member.values(), board.arms)
    rule.revise(board)
    assert board.effects == pytest.approx([0, -1, -2])
    assert rates_of(settlement_for("pool", rule, prepaid=10), board) == pytest.approx((0, 1, 1))

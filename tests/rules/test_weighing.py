"""What pages show of a rule's test: it must be the test by which the rule eliminates arms."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.sequences import Table, configurations, created, played, sequences
from tests.support.strategies import boards

from partage.board import Board, Record
from partage.evidence import apart, mixture_loss
from partage.rules import BalancedETC, BalancedGLR, live_rules


@settings(max_examples=100, deadline=None)
@given(boards(), st.sampled_from(["ignored", "worst"]))
def test_an_arm_is_out_exactly_if_its_evidence_reaches_the_threshold(board: Board, late: str) -> None:
    rule = BalancedGLR(late=late)
    rule.revise(board)
    found = rule.weigh(board)
    assert found is not None
    assert found.threshold is not None
    for arm in range(board.arms):
        if found.evidence[arm] is not None:
            assert board.active[arm] == (found.evidence[arm] < found.threshold)


@settings(max_examples=30, deadline=None)
@given(configurations(), sequences())
def test_every_live_rule_says_what_it_knows_of_each_arm(create, happens) -> None:
    state = played(create, happens).state
    found, board = state.rule.weigh(state.board), state.board
    if found is None:
        assert not live_rules()[create.rule].eliminates
        return
    assert len(found.evidence) == len(found.more) == board.arms
    assert all(one is None or one >= 0 for one in (*found.evidence, *found.more))
    for arm in range(board.arms):
        if not board.counts[arm]:
            assert found.evidence[arm] is None
            assert found.more[arm] is None


@pytest.mark.parametrize("rule", ["balanced-glr", "kl-etc", "balanced-etc"])
def test_the_estimate_is_about_what_it_takes(rule: str) -> None:
    table = Table(created(horizon=10**4, rule=rule, settlement="none"))
    table.join(0, 1)
    step = [0, 0]

    def reward(arm: int) -> float:  # means of exactly 0.8 and 0.4, over each five
        step[arm] += 1
        return 1.0 if step[arm] % 5 < (4 if arm == 0 else 2) else 0.0

    board = table.state.board
    while board.counts[1] < 15:
        table.work("a1", reward)
    found = table.state.rule.weigh(board)
    assert found is not None
    estimated = found.more[1]
    while board.active[1]:
        table.work("a1", reward)
    assert estimated is not None
    assert 0.5 < (15 + estimated) / board.counts[1] < 2


@settings(deadline=None)
@given(st.integers(1, 400), st.integers(1, 400), st.floats(0, 0.45), st.floats(0.55, 1))
def test_more_broadcasts_suffice_if_the_means_stay(n: int, k: int, low: float, high: float) -> None:
    board = Board(horizon=1000, tie_order=[0, 1], public=[True, True])
    board.record, board.active = Record([k, n], [k * high, n * low]), [True, True]
    found = BalancedGLR(indifference=False).weigh(board)
    assert found is not None
    assert found.threshold is not None
    if (more := found.more[1]) is not None:
        grown = (n + more) / n

        def net(f: float) -> float:
            arm, best = math.ceil(f * n), math.ceil(f * k)
            losses = mixture_loss(arm, arm * low) + mixture_loss(best, best * high)
            return apart(arm, arm * low, best, best * high) - losses

        assert net(1.1 * grown) >= found.threshold


def test_intervals_have_no_evidence_but_an_estimate() -> None:
    board = Board(horizon=1000, tie_order=[0, 1], public=[True, True])
    board.record, board.active = Record([50, 50], [45.0, 25.0]), [True, True]
    found = BalancedETC().weigh(board)
    assert found is not None
    radius = math.sqrt(2 * math.log(1000) / 50)
    assert found.threshold is None
    assert found.evidence == (None, None)
    assert found.more == (None, math.ceil(50 * ((2 * radius / 0.4) ** 2 - 1)))

"""Balanced-GLR that counts rewards which are not told yet at their worst."""

import itertools
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from partage import BalancedGLR, Board, Game, InputError, Sharing, Traits, bernoulli, play_run
from partage.rules.balanced_glr import elimination_threshold, net_evidence, worst_evidence
from partage.traits import Delay

RECORDS = st.tuples(st.integers(1, 60), st.integers(0, 60)).map(lambda one: (one[0], min(one)))


def board_of(records: list[tuple[int, int]], out: list[int]) -> Board:
    """A board with these counts and sums, and with so many rewards out."""
    board = Board(1000, range(len(records)), [True] * len(records))
    for arm, (count, total) in enumerate(records):
        board.record.counts[arm], board.record.sums[arm] = count, float(total)
        board.claimed[arm] = {arm: out[arm]}
    return board


@given(RECORDS, RECORDS, st.integers(0, 3), st.integers(0, 3))
def test_whatever_is_told_later_the_evidence_is_at_least_that(
    arm: tuple[int, int], leader: tuple[int, int], out: int, leaders_out: int
) -> None:
    board = board_of([arm, leader], [out, leaders_out])
    assume(board.mean(0) < board.mean(1))
    least = worst_evidence(board, 0, 1)
    for told, leaders_told in itertools.product(range(out + 1), range(leaders_out + 1)):
        full = board_of([(arm[0] + out, arm[1] + told), (leader[0] + leaders_out, leader[1] + leaders_told)], [0, 0])
        assert least == -math.inf or full.mean(0) < full.mean(1)
        assert net_evidence(full.record, 0, 1) >= least - 1e-9


def test_an_arm_is_eliminated_once_nothing_out_can_save_it() -> None:
    rule = BalancedGLR(late="worst")
    assert net_evidence(board_of([(40, 8), (40, 36)], [0, 0]).record, 0, 1) > elimination_threshold(2, 1000)
    for out, active in (((0, 0), False), ((20, 0), True), ((0, 60), True)):
        board = board_of([(40, 8), (40, 36)], list(out))
        rule.revise(board)
        assert board.active == [active, True]


def test_without_delays_it_is_the_same_rule() -> None:
    game = Game(bernoulli([0.9, 0.5, 0.4]), Sharing.round_robin(6, 3), 400)
    assert play_run(game, BalancedGLR(late="worst")) == play_run(game, BalancedGLR())


def test_late_successes_do_not_eliminate_the_best_arm() -> None:
    late = Traits(delay=Delay("constant", 20, "successes"))
    game = Game(bernoulli([0.6, 0.5]), Sharing.round_robin(20, 2), 100, traits=[late, Traits()] * 10)
    for run in range(6):
        assert play_run(game, BalancedGLR(late="worst", indifference=False), run=run).eliminated_step[0] == -1


@pytest.mark.parametrize("others", [{"tolerate": 1}, {"evidence": "betting"}])
def test_it_needs_likelihoods_of_all_members(others: dict[str, object]) -> None:
    with pytest.raises(InputError, match='it must be "ignored"'):
        BalancedGLR(late="worst", **others)  # type: ignore[arg-type]

"""The stop near ties: when finding out about an arm costs more than it can win."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from partage import BalancedGLR, Board, Game, InputError, Record, Sharing, bernoulli, play
from partage.evidence import apart
from partage.rules.indifference import is_indifferent

COUNTS = st.integers(1, 10**6)
MEANS = st.floats(0.01, 0.99)


@given(COUNTS, COUNTS, MEANS, MEANS, st.floats(1.0, 60.0), st.integers(0, 10**12))
def test_it_weighs_what_is_left_to_win_against_what_finding_out_costs(
    count: int, leads: int, one: float, other: float, needed: float, left: int
) -> None:
    mean, leader = sorted((one, other))
    evidence = apart(count, count * mean, leads, leads * leader)
    assume(evidence < needed)
    stops = is_indifferent(evidence, needed, count, mean, leads, leader, left)
    radius = math.sqrt(needed * (1 / count + 1 / leads) / 2)
    wins, price = (
        (radius - (leader - mean)) * left,
        count * (needed / max(1, evidence) - 1) * (radius + leader - mean),
    )
    assume(not math.isclose(wins, price, rel_tol=1e-6))
    assert stops == (wins < price)


@given(COUNTS, COUNTS, MEANS, MEANS, st.floats(2.0, 60.0))
def test_with_many_pulls_left_it_never_stops_and_with_none_it_does(
    count: int, leads: int, one: float, other: float, needed: float
) -> None:
    """What is left to win is above 0 for every contender: Pinsker's inequality."""
    mean, leader = sorted((one, other))
    evidence = apart(count, count * mean, leads, leads * leader)
    assume(evidence < 0.99 * needed)
    assert not is_indifferent(evidence, needed, count, mean, leads, leader, 10**30)
    assert is_indifferent(evidence, needed, count, mean, leads, leader, 0)


def test_a_board_that_does_not_know_the_pulls_to_come_never_stops() -> None:
    board = Board(100, [0, 1], [True, True])
    board.record = Record([5000, 5000], [3000.0, 2990.0])
    assert BalancedGLR().open_arms(board)
    board.all_pulls, board.clock = 10_400, 10_000
    assert BalancedGLR().open_arms(board) == []
    assert BalancedGLR(indifference=False).open_arms(board)


def test_joining_does_not_hurt_near_ties() -> None:
    """Without the stop, the one who shares the worse arm explores it to the end and loses twice what others do."""
    game = Game(bernoulli([0.6, 0.58]), Sharing.round_robin(10, 2), horizon=2000)
    results = [
        play(game, BalancedGLR(indifference=stop), runs=60, seed=2, settlement="none", baseline=False)
        for stop in (True, False)
    ]
    stopping, exploring = results
    assert stopping.broadcasts.mean < 0.5 * exploring.broadcasts.mean
    assert stopping.max_individual_regret.mean < 0.9 * exploring.max_individual_regret.mean
    spread = math.hypot(stopping.overall_regret.stderr or 0, exploring.overall_regret.stderr or 0)
    assert stopping.overall_regret.mean < exploring.overall_regret.mean + 2 * spread


@pytest.mark.parametrize("wrong", [1, "yes", None])
def test_it_is_on_or_off(wrong: object) -> None:
    with pytest.raises(InputError, match="true or false"):
        BalancedGLR(indifference=wrong)  # type: ignore[arg-type]

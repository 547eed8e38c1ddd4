"""Shared-IMED: its threshold, its open arms, and that it beats what each agent could do alone."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage import IMED, Board, Game, InputError, Pull, Record, SharedIMED, Sharing, Thompson, bernoulli, play
from partage.evidence import kl
from partage.rules.shared_imed import worth_knowing


def board_of(counts: list[int], sums: list[float], clock: int) -> Board:
    board = Board(1000, range(len(counts)), [True] * len(counts))
    board.record, board.clock = Record(list(counts), list(sums)), clock
    return board


@given(st.integers(1, 10**15), st.integers(1, 10**9))
def test_the_threshold(clock: int, count: int) -> None:
    x = math.log(clock) - math.log(count)
    expected = x - (1 + math.log(x)) / 2 if x > 1 else x - 0.5
    assert worth_knowing(clock, count) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(1, 10**12), st.integers(1, 10**6))
def test_later_more_is_worth_knowing_and_of_a_well_known_arm_less(clock: int, count: int) -> None:
    assert worth_knowing(2 * clock, count) > worth_knowing(clock, count)
    assert worth_knowing(clock, 2 * count) < worth_knowing(clock, count)


def test_before_the_first_pull_every_arm_is_open() -> None:
    assert SharedIMED().open_arms(board_of([0, 0, 0], [0, 0, 0], 0)) == [0, 1, 2]


def test_an_arm_opens_when_the_clock_has_grown_enough() -> None:
    """Arm 1 against leader 0, both broadcast 20 times: the evidence is computed here on its own."""
    pooled = (18 + 10) / 40
    evidence = 20 * kl(18 / 20, pooled) + 20 * kl(10 / 20, pooled)
    opens = next(clock for clock in range(20, 10**6) if worth_knowing(clock, 20) >= evidence)
    closed, opened = (
        SharedIMED(lead=1).open_arms(board_of([20, 20], [18, 10], clock)) for clock in (opens - 1, opens)
    )
    assert (1 in closed, 1 in opened) == (False, True)


def test_no_arm_runs_ahead_of_the_leader_and_the_leader_not_too_far() -> None:
    assert 1 not in SharedIMED().open_arms(board_of([20, 21], [18, 18], 10**9))
    assert 0 in SharedIMED(lead=2).open_arms(board_of([20, 10], [18, 1], 10))
    assert 0 not in SharedIMED(lead=2).open_arms(board_of([21, 10], [18, 1], 10))


def test_a_single_arm_needs_no_exploration() -> None:
    assert SharedIMED().open_arms(board_of([0], [0], 100)) == []


def test_own_rewards_choose_what_to_commit_to() -> None:
    board = board_of([40, 10], [30, 7], 100)
    own = Record([0, 5], [0.0, 5.0])
    assert SharedIMED().decide(board, (), own) == Pull(0, share=False)
    assert SharedIMED(own=5).decide(board, (), own) == Pull(1, share=False)


@pytest.mark.parametrize(("agents", "arms"), [(3, [0.9, 0.8, 0.7]), (2, [0.6, 0.4])])
def test_the_group_loses_less_than_each_alone_would(agents: int, arms: list[float]) -> None:
    game = Game(bernoulli(arms), Sharing.dealt(agents, len(arms)), horizon=2000)
    together = play(game, SharedIMED(), runs=300, seed=4, settlement="none", baseline=False).overall_regret
    for rule in (Thompson(), IMED()):
        alone = play(game.alone(), rule, runs=300, seed=5, settlement="none", baseline=False).overall_regret
        spread = math.hypot(together.stderr or 0, agents * (alone.stderr or 0))
        assert together.mean + 4 * spread < agents * alone.mean


@pytest.mark.parametrize(
    "wrong",
    [{"lead": 0.5}, {"lead": math.inf}, {"lead": "x"}, {"clock": 0}, {"clock": math.nan}, {"own": -1}, {"own": 1.5}],
)
def test_wrong_parameters_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        SharedIMED(**wrong)  # type: ignore[arg-type]

"""The clock: powers of 1.25, rounded up to whole pulls."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage import BalancedGLR, Game, Rule, SharedIMED, Sharing, bernoulli, play_run
from partage.clock import TICKS, next_tick, rounded


def test_ticks_are_the_powers_rounded_up() -> None:
    power, expected = Fraction(1), set()
    while power < 2**63:
        expected.add(-(-power.numerator // power.denominator))
        power *= Fraction(5, 4)
    assert list(TICKS) == [*sorted(expected), 2**63 - 1]


@given(st.integers(0, 10**18))
def test_the_clock_is_the_last_tick_and_loses_at_most_a_fifth(pulls: int) -> None:
    clock = rounded(pulls)
    assert clock <= pulls < next_tick(pulls)
    assert clock == 0 or clock in TICKS
    assert pulls < 5 or 5 * (clock + 1) >= 4 * pulls - 5
    assert rounded(next_tick(pulls)) == next_tick(pulls)


@pytest.mark.parametrize("agents", [2, 3, 1_000])
def test_the_longest_games_end_before_the_last_tick(agents: int) -> None:
    longest = (2**63 - 1) // agents - 2
    game = Game(bernoulli([0.9, 0.1]), Sharing.round_robin(agents, 2), longest)
    with pytest.raises(ValueError, match="64 bits"):
        Game(game.arms, game.sharing, longest + 1)
    assert rounded(agents * longest) in TICKS[:-1]
    assert agents * longest < next_tick(agents * longest) == TICKS[-1]


@pytest.mark.parametrize("rule", [SharedIMED(), BalancedGLR(), BalancedGLR(evidence="betting")])
def test_the_clock_ticks_to_the_end_of_the_longest_games(rule: Rule) -> None:
    game = Game(bernoulli([0.9, 0.1]), Sharing.round_robin(10, 2), horizon=9 * 10**17)
    tally = play_run(game, rule, 3)
    assert (tally.explore + tally.commit).sum(axis=1).tolist() == [game.horizon] * 10

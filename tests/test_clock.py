"""The clock: powers of 1.25, rounded up to whole pulls."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from partage.clock import TICKS, next_tick, rounded


def test_ticks_are_the_powers_rounded_up() -> None:
    power, expected = Fraction(1), set()
    while power <= TICKS[-1]:
        expected.add(-(-power.numerator // power.denominator))
        power *= Fraction(5, 4)
    assert list(TICKS) == sorted(expected)
    assert TICKS[-1] < 2**63


@given(st.integers(0, 10**18))
def test_the_clock_is_the_last_tick_and_loses_at_most_a_fifth(pulls: int) -> None:
    clock = rounded(pulls)
    assert clock <= pulls < next_tick(pulls)
    assert clock == 0 or clock in TICKS
    assert pulls < 5 or 5 * (clock + 1) >= 4 * pulls - 5
    assert rounded(next_tick(pulls)) == next_tick(pulls)

"""Every bound against arithmetic written another way: decimals of 40 digits, or numbers worked out by hand."""

import math
from decimal import Decimal, getcontext

import pytest

from partage.theory import bounds
from partage.theory.bounds import Premise

getcontext().prec = 40
GAPS = [Decimal(tenth) / 10 for tenth in range(1, 10)]
K = Decimal("3.5") - Decimal(12).sqrt()  # (sqrt 2 - sqrt 1.5)^2 = 2 + 1.5 - 2 sqrt 3
E = Decimal(1).exp()


def close(value: float, expected: Decimal) -> bool:
    return value == pytest.approx(float(expected), rel=1e-12)


def factor(balance: str) -> Decimal:
    """(1 + sqrt B)^2 = 1 + B + 2 sqrt B."""
    return 1 + Decimal(balance) + 2 * Decimal(balance).sqrt()


def test_k_by_hand() -> None:
    assert close(bounds.K, K)


@pytest.mark.parametrize("balance", ["1", "2", "4", "1.5"])
def test_overall_regret(balance: str) -> None:
    log = Decimal(1000).ln() * 2
    explored = 8 * factor(balance) * log * sum(1 / gap for gap in GAPS)
    committed = 4 * E * 100 * 100 / Decimal("0.1")
    expected = explored + committed + 2 * 100 * 10
    gaps = [0.0, *(float(gap) for gap in GAPS)]
    assert close(bounds.overall_regret(gaps, 100, 10**6, float(balance)), expected)


def test_overall_regret_counts_only_positive_gaps_and_every_arm() -> None:
    twice = bounds.overall_regret([0.0, 0.0, 0.5], 3, 100, 1.0)
    expected = 32 * Decimal(100).ln() / Decimal("0.5") + 4 * E * 3 * 9 / Decimal("0.5") + 2 * 3 * 3
    assert close(twice, expected)


def test_bad_event() -> None:
    assert bounds.bad_event(10, 10**6) == pytest.approx(2e-5, rel=1e-14)
    assert bounds.bad_event_per_broadcast(10, 100, 10**6) == pytest.approx(2e-9, rel=1e-14)
    # 2 / T^3 a broadcast, M T broadcasts an arm, N arms.
    assert bounds.bad_event_per_broadcast(3, 7, 50) == pytest.approx(3 * (7 * 50) * (2 / 50**3), rel=1e-14)


@pytest.mark.parametrize(("agents", "within"), [(1, True), (1000, True), (1001, False)])
def test_per_broadcast_is_within_the_papers_up_to_as_many_agents_as_steps(agents: int, within: bool) -> None:
    assert (bounds.bad_event_per_broadcast(5, agents, 1000) <= bounds.bad_event(5, 1000)) is within


@pytest.mark.parametrize("balance", ["1", "2.25"])
def test_broadcasts(balance: str) -> None:
    exact = 8 * Decimal(10**6).ln() * factor(balance) / Decimal("0.25") ** 2
    assert bounds.broadcasts(0.25, 10**6, float(balance)) == math.ceil(exact)
    # Two arms of gap D, both broadcast n times: 2 rad + 2 rad <= D from n = 32 log T / D^2 on.
    n = bounds.broadcasts(0.25, 10**6, 1.0)
    assert 4 * math.sqrt(2 * math.log(10**6) / n) <= 0.25 < 4 * math.sqrt(2 * math.log(10**6) / (n - 1))


def test_commit_regret() -> None:
    assert close(bounds.commit_regret([0.0, 0.5, 0.25], 20), 4 * E * 20 * 9 * 4)


def test_gap_floor_and_ceiling() -> None:
    log = Decimal(10**4).ln()
    assert close(bounds.gap_floor(50, 10**4), (K * log / 50).sqrt())
    assert close(bounds.gap_ceiling(50, 10**4, 2.0), (8 * factor("2") * log / 50).sqrt())
    assert close(bounds.two_ucb_gap_floor(50, 10**4), (K * log / 200).sqrt())
    assert bounds.gap_floor(0, 10) == bounds.gap_ceiling(0, 10, 1.0) == bounds.two_ucb_gap_floor(0, 10) == math.inf


def test_ceiling_and_broadcasts_agree() -> None:
    n = bounds.broadcasts(0.3, 1000, 1.0)
    assert bounds.gap_ceiling(n, 1000, 1.0) <= 0.3 < bounds.gap_ceiling(n - 1, 1000, 1.0)


# --- premises -----------------------------------------------------------------------------------------------


def test_a_premise_is_strict() -> None:
    assert not Premise(2.0, 2.0).met
    assert Premise(math.nextafter(2.0, 3.0), 2.0).met


def test_premises_of_the_papers_experiments() -> None:
    gaps = [0.0, *(float(gap) for gap in GAPS)]
    first, second = bounds.long_enough(gaps, 10**6), bounds.all_eliminated(gaps, 10**6, 1.0)
    assert (round(first.left), round(first.right), first.met) == (5239, 25000, False)
    assert (round(second.left), round(second.right), second.met) == (72381, 32000, True)
    first, second = bounds.long_enough(gaps, 10**5), bounds.all_eliminated(gaps, 10**5, 1.0)
    assert (round(first.left), first.met) == (754, False)
    assert (round(second.left), second.met) == (8684, False)


def test_all_eliminated_at_its_edge() -> None:
    # N = 2, gap 1, B = 1: (T - 4) / log T > 64.
    flips = next(steps for steps in range(10, 10**4) if steps - 4 > 64 * Decimal(steps).ln())
    assert bounds.all_eliminated([0.0, 1.0], flips, 1.0).met
    assert not bounds.all_eliminated([0.0, 1.0], flips - 1, 1.0).met


def test_long_enough_at_its_edge() -> None:
    # N = 2, gap 1/2: T / log^2 T > 8.
    flips = next(steps for steps in range(10, 10**4) if steps > 8 * Decimal(steps).ln() ** 2)
    assert bounds.long_enough([0.0, 0.5], flips).met
    assert not bounds.long_enough([0.0, 0.5], flips - 1).met


def test_smallest_gap_is_positive() -> None:
    assert bounds.smallest_gap([0.0, 0.0, 0.3, 0.2]) == 0.2
    assert bounds.smallest_gap([0.0, 0.0]) is None
    assert bounds.positive_gaps([0.0, 0.3, 0.0]) == [0.3]


# --- information --------------------------------------------------------------------------------------------


def test_kl() -> None:
    p, q = Decimal("0.8"), Decimal("0.9")
    assert close(bounds.kl(0.8, 0.9), p * (p / q).ln() + (1 - p) * ((1 - p) / (1 - q)).ln())
    assert close(bounds.kl(0.0, 0.5), Decimal(2).ln())
    assert bounds.kl(1.0, 1.0) == 0.0
    assert bounds.kl(0.2, 0.0) == math.inf


def test_information_floor() -> None:
    expected = 1 / bounds.kl(0.5, 0.9) + 1 / bounds.kl(0.0, 0.9)
    assert bounds.information_floor([0.5, 0.9, 0.0, 0.9]) == pytest.approx(expected, rel=1e-14)
    assert bounds.information_floor([0.4, 0.4]) == 0.0
    assert bounds.information_floor([1.0, 0.5]) == 0.0  # one reward below 1 tells the arms apart

"""The bench of a close runs: a collaboration whose members are only in memory is settled and closed."""

from bench.close import Case, measure


def test_a_close_is_measured() -> None:
    found = measure(Case("equal-share", "best", 5, 1000, 4, left=True))
    assert found.seconds > 0
    assert found.pause >= 0

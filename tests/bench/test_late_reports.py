"""Reports that are late by chance are harmless, and reports that are late because of their value are not."""

from bench.late_reports import HORIZON, wrong_eliminations

RUNS = 300


def test_only_a_delay_that_depends_on_the_reward_breaks_the_promise():
    for delay in (0, 5):
        ever, at_the_end = wrong_eliminations(delay, False, RUNS)
        assert at_the_end <= ever <= 5 * RUNS / HORIZON
    ever, _ = wrong_eliminations(5, True, RUNS)
    assert ever > 0.3 * RUNS
    for delay in (5, 10):
        ever, at_the_end = wrong_eliminations(delay, True, RUNS, worst=True)
        assert at_the_end <= ever <= 5 * RUNS / HORIZON


def test_without_a_delay_it_does_not_matter_what_is_late():
    assert wrong_eliminations(0, True, RUNS) == wrong_eliminations(0, False, RUNS)

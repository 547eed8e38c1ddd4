"""Growth and evidence rules: what a run takes by size, and what is said of cases that were not measured."""

import pytest
from bench import evidence_rules, growth
from bench.elsewhere import Failed, NotStarted, TooLong
from bench.rows import MISSED, Chart


def of_rule(results):
    """Return a stand-in for `one_by_one` with these results, in the order of the cases."""

    def stand_in(work, first, cases, *_, **__):
        return [(tuple(case) if isinstance(case, list) else case, results(case)) for case in cases]

    return stand_in


def test_the_recorded_ratio_compares_sizes_that_every_run_has():
    for sizes in (growth.SIZES, growth.LONG_SIZES):
        for axis, (small, large, _) in growth.ENDS.items():
            assert {small, large} <= set(sizes[axis])


def test_ratios_keep_their_names_if_a_line_ends_early(monkeypatch):
    monkeypatch.setattr(growth, "one_by_one", of_rule(lambda case: [1e-3 * case[1], 2e-3 * case[1]]))
    whole = [found for found in growth.measure(rules=("balanced-etc",)) if not isinstance(found, Chart)]
    short = of_rule(lambda case: [1e-3] if case[1] <= 100 else NotStarted("no time"))
    monkeypatch.setattr(growth, "one_by_one", short)
    *rows, _, _, _, chart = growth.measure(rules=("balanced-etc",))
    assert [row.what for row in rows] == [row.what for row in whole]
    found = {row.what: row for row in rows}
    assert found["balanced-etc: a run with N = 100 / 2"].measured == 1
    assert found["balanced-etc: the largest N that was reached"].measured == 100
    assert found["balanced-etc: a run with 1/gap = 1,000 / 10"].measured is None
    assert "over" not in chart.note
    assert "which was not measured: no time" in chart.note
    assert {row.what: row for row in whole}["balanced-etc: a run with N = 100 / 2"].measured == pytest.approx(50)


def test_a_sweep_times_runs_of_each_size():
    warm, *found = growth.sweep("balanced-etc", [("T", 100), ("M", 20)])
    assert warm is True
    assert [len(repeats) for repeats in found] == [3, 3]


@pytest.mark.parametrize("error", [NotStarted("no time"), Failed("broken"), TooLong(0.5)])
def test_a_case_that_was_not_measured_has_no_verdict(error):
    row = evidence_rules.row_of("kl-etc", "near tie", error)
    assert (row.measured, row.goal, row.verdict) == (None, 1, None)
    assert str(error) in row.note


def test_a_near_tie_that_was_stopped_took_longer_than_its_last_repeat():
    row = evidence_rules.row_of("kl-etc", "near tie", TooLong(8.0))
    assert (row.measured, row.above, row.verdict) == (8.0 - evidence_rules.WITHIN, True, MISSED)
    assert evidence_rules.row_of("kl-etc", "10 arms", TooLong(8.0)).measured is None


def test_a_broadcast_is_measured_in_steps_of_the_bare_loop():
    tie = evidence_rules.near_tie(0.5, 2, 200)
    assert len(evidence_rules.times_bare(tie, evidence_rules.RULES["balanced-etc"], runs=2, times=3)) == 3
    assert list(evidence_rules.cases("balanced-etc", [])) == [True]

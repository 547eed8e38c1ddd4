"""Claims and their verdicts."""

from partage.report.judged_claims import JudgedClaim, by_study, judge_claims, summary
from partage.simulate.result import Estimate
from partage.studies import FAILS, HOLDS, UNDECIDED, Claim


def judged(verdict, study="small", **changes):
    claim = Claim("Regret is small", "regret", lambda played: None, at_most=1, **changes)
    return JudgedClaim(study, claim, Estimate(2.0, 0.1), verdict)


def test_a_verdict_is_surprising_if_it_contradicts_the_expected_one():
    assert not judged(HOLDS).surprising
    assert judged(FAILS).surprising
    assert not judged(UNDECIDED).surprising
    assert not judged(FAILS, expected=False).surprising
    assert judged(HOLDS, expected=False).surprising


def test_verdicts_are_counted():
    some = [judged(HOLDS), judged(HOLDS), judged(FAILS), judged(UNDECIDED)]
    assert summary(some) == "2 of 4 claims hold, 1 does not, 1 is undecided."


def test_claims_are_grouped_by_study_in_order():
    some = [judged(HOLDS, "b"), judged(FAILS, "b"), judged(HOLDS, "a")]
    assert by_study(some) == [("b", some[:2]), ("a", some[2:])]


def test_six_runs_already_give_the_expected_verdicts(played_studies):
    assert not [each for each in judge_claims(played_studies) if each.surprising]

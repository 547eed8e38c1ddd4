"""A result is shown in the unit of its game; its numbers stay in units of reward."""

from dataclasses import replace

import polars as pl
import pytest

from partage import Game, InputError, SharedIMED, Sharing, TwoUCB, Unit, bernoulli, compare, play
from partage.simulate.in_unit import comparison_in_unit, frame_in_unit, in_unit

PLAIN = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=4, arms=2), horizon=200)
MINUTES = replace(PLAIN, unit=Unit(worst=60, best=0, name="minutes"))


def test_the_table_is_in_the_unit_and_the_numbers_are_not():
    plain, minutes = (play(game, SharedIMED(), runs=5, settlement="none") for game in (PLAIN, MINUTES))
    assert minutes.overall_regret == plain.overall_regret
    assert minutes.as_dict() | {"seconds": 0} == plain.as_dict() | {"seconds": 0}
    regret = plain.overall_regret.times(60)
    assert regret.cells()[0] in str(minutes)
    assert "in minutes" in str(minutes)
    assert "in minutes" in minutes._repr_html_()
    assert str(regret) in repr(minutes)
    assert "6" in str(minutes).splitlines()[-2].split()  # 0.9 is a mean of 6 minutes
    assert "minutes" not in str(plain)


def test_who_is_worse_off_is_said_in_the_unit():
    alone = play(MINUTES, TwoUCB(), runs=5, settlement="none", alone="best")
    assert alone.worse_off, "2-UCB is worse than the best learner"
    name, by = next(iter(alone.worse_off.items()))
    assert f"{name} by {by.times(60)}" in " ".join(str(alone).split())


def test_pictures_are_in_the_unit():
    result = play(MINUTES, SharedIMED(), runs=5, settlement="pool", prepaid=3.0)
    over_time, agents, _ = result.plot().axes
    assert over_time.get_ylabel() == "mean regret in minutes, with two standard errors"
    assert over_time.lines[0].get_ydata()[-1] == pytest.approx(60 * result.overall_regret.mean)
    assert sum(agents.lines[0].get_ydata()) == pytest.approx(60 * result.overall_regret.mean)
    assert sum(agents.lines[1].get_ydata()) == pytest.approx(60 * result.folded.incentive.sum() / 5)


def test_comparisons_are_in_the_unit():
    found = compare(MINUTES, [SharedIMED(), TwoUCB()], runs=5, settlement="none")
    assert str(found.results["shared-imed"].overall_regret.times(60)) in str(found)
    assert str(found.difference("two-ucb").times(60)) in str(found)
    assert "in minutes" in str(found)
    _, middle, right = found.plot().axes
    assert middle.patches[-1].get_width() == pytest.approx(60 * found.results["shared-imed"].overall_regret.mean)
    assert right.patches[-1].get_width() == pytest.approx(found.results["shared-imed"].broadcasts.mean)
    shown = comparison_in_unit(found.as_dict(), MINUTES.unit)["differences"]["two-ucb"]
    assert shown["overall_regret"]["mean"] == pytest.approx(60 * found.difference("two-ucb").mean)
    assert shown["broadcasts"]["mean"] == found.difference("two-ucb", "broadcasts").mean


def test_frames_are_turned_into_the_unit():
    result = play(MINUTES, SharedIMED(), runs=5, settlement="none")
    for by in ("run", "arm", "agent", "step"):
        plain = result.frame(by)
        shown = frame_in_unit(plain, MINUTES.unit)
        assert shown.columns == plain.columns
        for name in plain.columns:
            factor = 60.0 if "regret" in name or name == "controller_profit" else None
            expected = plain[name] if factor is None else plain[name] * factor
            assert pl.Series(expected).equals(shown[name], null_equal=True), name
    assert frame_in_unit(plain, None) is plain


def test_without_a_unit_nothing_changes():
    figures = play(PLAIN, SharedIMED(), runs=2, settlement="none").as_dict()
    assert in_unit(figures, None) == figures
    assert comparison_in_unit({"results": {}, "differences": {}}, None) == {"results": {}, "differences": {}}
    with pytest.raises(InputError, match=r"The unit is 'minutes'; it must be a partage\.Unit\."):
        replace(PLAIN, unit="minutes")

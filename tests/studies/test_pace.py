"""The study of slow sharers and late reports."""

from dataclasses import replace

from partage import play_run
from partage.report.draw import draw
from partage.report.style import house_style
from partage.simulate.parallel import workers
from partage.studies import HOLDS, find, pace, play_studies


def test_it_runs_only_when_named():
    assert "pace" not in [study.name for study in find([])]
    assert [study.name for study in find(["pace"])] == ["pace"]


def test_all_play_for_the_same_number_of_steps():
    for slower in pace.PLACES:
        game = pace.game(slower)
        assert {game.traits_of(agent).time_of(game.horizon_of(agent)) for agent in range(game.agents)} <= {
            float(pace.HORIZON // slower * slower),
            float(pace.HORIZON),
        }


def test_the_kernel_plays_it_as_the_reference_does():
    game = replace(pace.game(4, delay=3.0), horizon=60)
    rule = pace.STUDY.lines[0].rule
    assert play_run(game, rule, seed=2) == play_run(game, rule, seed=2, reference=True)


def test_slow_sharers_and_late_reports_cost_a_multiple():
    with workers(jobs=1) as spread:
        (played,) = play_studies([pace.STUDY], spread, runs=40, seed=3)
    for claim in pace.STUDY.claims:
        assert claim.verdict(claim.measure(played)) == HOLDS
    assert "times the regret" in pace.STUDY.title(played)
    assert pace.STUDY.text(played).endswith(".")
    with house_style("test"):
        draw(played, False).canvas.draw()

"""The study of how soon a member that differs is noticed."""

from dataclasses import replace

import pytest

from partage.report.draw import draw
from partage.report.style import house_style
from partage.simulate.parallel import workers
from partage.studies import HOLDS, disagreement, find, play_studies
from partage.studies.disagreement import MEMBERS, OFFSETS, Watched, trial


@pytest.fixture(scope="module")
def played():
    """The study with fewer rewards and a few runs."""
    trials = [trial(0, most=2000), *(trial(offset) for offset in OFFSETS)]
    with workers(jobs=1) as spread:
        return play_studies([replace(disagreement.STUDY, trials=trials)], spread, runs=12, seed=5)[0]


def test_it_is_played_with_the_other_studies():
    assert "disagreement" in [study.name for study in find([])]


def test_a_larger_offset_is_noticed_sooner(played):
    found = [disagreement.until(played, offset).mean for offset in OFFSETS]
    assert found == sorted(found, reverse=True)
    assert all(disagreement.by_run(played, offset, "warned").all() for offset in OFFSETS)


def test_equal_members_are_not_warned_of(played):
    assert not disagreement.by_run(played, 0, "warned").any()
    claim = disagreement.STUDY.claims[0]
    assert claim.verdict(claim.measure(played)) == HOLDS


def test_it_ends_with_the_most_rewards():
    assert Watched(0, 10)(0, 0) == (10 * MEMBERS, 0.0, 0.0)


def test_it_says_and_draws_what_it_found(played):
    study = disagreement.STUDY
    assert "is noticed after" in study.title(played)
    assert study.text(played).endswith(".")
    (shown,) = study.tables(played)
    assert len(shown.rows) == 1 + len(OFFSETS)
    for narrow in (False, True):
        with house_style("test"):
            draw(played, narrow).canvas.draw()

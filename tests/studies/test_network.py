"""The study of members who differ by a constant each."""

from dataclasses import replace

import pytest

from partage import play_run
from partage.report.draw import draw
from partage.report.style import house_style
from partage.simulate.parallel import workers
from partage.studies import find, network, play_studies


@pytest.fixture(scope="module")
def played():
    """The study with three runs over a short horizon."""
    with workers(jobs=1) as spread:
        trials = [replace(trial, play=Short(*vars(trial.play).values())) for trial in network.STUDY.trials]
        return play_studies([replace(network.STUDY, trials=trials)], spread, runs=3, seed=3)[0]


class Short(network.Pair):
    """The same on a shorter game, in any process."""

    def __call__(self, seed, run):
        game = replace(network.game(self.offset), horizon=2000)
        tally = play_run(game, network.RULES[self.rule][0], seed=seed, run=run)
        return float(tally.commit[:, 1].sum() > tally.commit[:, 0].sum()), float(tally.explore.sum())


def test_it_runs_only_when_named():
    assert "network" not in [study.name for study in find([])]
    assert [study.name for study in find(["network"])] == ["network"]


def test_members_differ_by_the_offset_in_both_directions():
    game = network.game(50)
    assert [[round(arm.mean, 3) for arm in game.arms_of(agent)] for agent in range(2)] == [[0.65, 0.63], [0.55, 0.53]]


def test_a_trial_plays_its_rule():
    wrong, lost = network.Pair("Network-GLR", 20)(1, 0)
    tally = play_run(network.game(20), network.RULES["Network-GLR"][0], seed=1, run=0)
    assert lost == pytest.approx(0.02 * (tally.explore + tally.commit)[:, 1].sum())
    assert wrong == 0.0


def test_it_says_and_draws_what_it_found(played):
    study = network.STUDY
    assert "times as much as Network-GLR" in study.title(played)
    assert study.text(played).endswith(".")
    shown, smoking = study.tables(played)
    assert len(shown.rows) == 1 + len(network.OFFSETS)
    assert [name for name, _ in smoking.rows] == ["self-help", "individual counselling", "group counselling"]
    with house_style("test"):
        draw(played, False).canvas.draw()

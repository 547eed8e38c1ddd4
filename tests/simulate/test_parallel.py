"""Wherever chunks are played, the figures are the same, bit for bit; what is not there is said in one sentence."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.packages import needed

import partage
from partage.simulate import parallel
from partage.simulate.parallel import compile_rule, cut, parse, ranges, workers
from partage.simulate.play import new_task

GAME = partage.Game(
    partage.bernoulli([0.9, 0.7, 0.4]), partage.Sharing.round_robin(12, 3).in_shuffled_order(), horizon=5000
)
RANDOM = partage.Game([partage.RandomBernoulli()] * 3, partage.Sharing.random(6, 3), horizon=300)


def figures(game, on, jobs=2):
    result = partage.play(game, partage.BalancedETC(), runs=40, seed=7, on=on, jobs=jobs, checkpoints=[10, 200])
    return [*result.folded, np.array(result.two_ucb_regret)]


def same(ours, theirs):
    return all(np.array_equal(mine, other, equal_nan=True) for mine, other in zip(ours, theirs, strict=True))


@given(st.integers(1, 5000))
def test_chunks_cover_every_run_once(runs):
    covered = [run for first, last in ranges(runs) for run in range(first, last)]
    assert covered == list(range(runs))


@pytest.mark.parametrize("game", [GAME, RANDOM], ids=["fixed", "random"])
def test_processes_give_the_figures_of_threads(game):
    assert same(figures(game, "threads", jobs=1), figures(game, "processes"))


def test_a_dask_cluster_gives_the_figures_of_threads():
    distributed = needed("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        for game in (GAME, RANDOM):
            assert same(figures(game, "threads"), figures(game, f"dask={cluster.scheduler_address}"))


def test_a_scheduler_that_is_not_there_is_named(monkeypatch):
    needed("distributed")
    monkeypatch.setattr(parallel, "PATIENCE", 1)
    with pytest.raises(partage.PartageError, match=r"Dask scheduler at tcp://127\.0\.0\.1:1 cannot be reached"):
        partage.play(GAME, partage.BalancedETC(), runs=2, on="dask=tcp://127.0.0.1:1")


@pytest.mark.parametrize("extra", ["dask", "ray"])
def test_a_missing_extra_says_what_to_install(monkeypatch, extra):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(partage.InputError, match=rf"pip install 'partage\[{extra}\]'"):
        partage.play(GAME, partage.BalancedETC(), runs=2, on=f"{extra}=somewhere:1")


def test_a_dead_ray_cluster_is_named(monkeypatch, tmp_path):
    """Ray remembers the last cluster in a file, also after it is gone."""
    kept = tmp_path / "ray" / "ray_current_cluster"
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    assert "Ray cluster at auto cannot be reached" in str(parallel._no_ray("auto"))
    kept.parent.mkdir()
    kept.write_text("127.0.0.1:6379\n")
    sentence = str(parallel._no_ray("auto"))
    assert "127.0.0.1:6379 cannot be reached" in sentence
    assert f"The file {kept} names it" in sentence
    assert str(kept) not in str(parallel._no_ray("127.0.0.1:1"))


@pytest.mark.parametrize("on", ["", "thread", "threads=2", "processes=host", "dask=", "spark=x"])
def test_unknown_places_are_refused(on):
    with pytest.raises(partage.InputError, match="threads, processes, dask"):
        parse(on)


def test_what_is_left_can_be_let_go():
    """As after Ctrl-C: the generator is closed with chunks still to play, without a warning or an error."""
    task = new_task(GAME, partage.BalancedETC(), "default", 0)
    compile_rule(task)
    with workers(jobs=2) as spread:
        finished = spread(cut(task, 64))
        first = next(finished)
        finished.close()
    assert first.seconds > 0


def test_random_games_are_expected_to_take_longest():
    long = new_task(RANDOM, partage.BalancedETC(), "default", 0)
    short = replace(long, game=GAME)
    assert cut(replace(long, game=replace(RANDOM, horizon=10**6)), 10)[0].expected > cut(short, 10)[0].expected


def test_checkpoints_end_at_the_horizon():
    with pytest.raises(partage.InputError, match="at most the horizon"):
        partage.play(GAME, partage.BalancedETC(), runs=2, checkpoints=[5001])

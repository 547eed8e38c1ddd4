"""Sweeps: the figures of `play`, the same bits wherever they are played, and on whatever workers are left."""

import math
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.packages import needed

import partage
from partage import BalancedETC, Game, Sharing, bernoulli, play, sweep
from partage.simulate import sweep as sweeps
from partage.simulate.batch import Sums
from partage.simulate.fold import COLUMNS, FIGURES

GAMES = [
    Game(bernoulli([0.9, 0.9 - gap, 0.3]), Sharing.round_robin(agents, 3), horizon)
    for gap in (0.1, 0.2, 0.4)
    for agents in (3, 10)
    for horizon in (100, 3000)
]


def bits(found):
    return [(one.runs, one.means.tobytes(), one.squares.tobytes(), one.error) for one in found.sums]


def test_a_sweep_has_the_figures_of_play():
    found = sweep(GAMES, BalancedETC(), runs=30, seed=5)
    assert len(found) == len(GAMES)
    for place, game in enumerate(GAMES):
        result = play(game, BalancedETC(), runs=30, seed=5, baseline=False)
        for name in FIGURES:
            assert found[place][name] == pytest.approx(getattr(result, name), rel=1e-12, abs=1e-12)


def test_what_does_not_apply_is_left_out():
    assert "controller_profit" not in sweep(GAMES[:1], BalancedETC(), runs=2, settlement="none")[0]
    assert sweep(GAMES[:1], BalancedETC(), runs=1)[0]["broadcasts"].stderr is None


@settings(max_examples=50)
@given(st.lists(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9), min_size=1, max_size=5))
def test_sums_of_parts_are_those_of_all_runs(parts):
    whole = Sums.of(np.array([[each] for part in parts for each in part]))
    joined = sweeps._joined([Sums.of(np.array(part)[:, None]) for part in parts])
    assert joined.runs == whole.runs
    assert joined.means[0] == pytest.approx(whole.means[0], abs=1e-9)
    assert joined.squares[0] == pytest.approx(whole.squares[0], rel=1e-9, abs=1e-6)


def test_the_games_beside_it_change_no_bit_of_a_game(monkeypatch):
    together = bits(sweep(GAMES, BalancedETC(), runs=7, seed=1))
    assert together == [bits(sweep([game], BalancedETC(), runs=7, seed=1))[0] for game in GAMES]
    monkeypatch.setattr(sweeps, "CHUNKS", 1)
    assert bits(sweep(GAMES, BalancedETC(), runs=7, seed=1)) == together


def test_many_runs_are_played_in_parts(monkeypatch):
    whole = sweep(GAMES[:3], BalancedETC(), runs=25)
    monkeypatch.setattr(sweeps, "RUNS", 10)
    steps = []
    parts = sweep(GAMES[:3], BalancedETC(), runs=25, progress=steps.append)
    for place in range(3):
        assert parts[place]["broadcasts"] == pytest.approx(whole[place]["broadcasts"])
    assert steps[-1] == (3, 0, 0)
    assert all(sum(step) == 3 for step in steps)


class Stumbling(BalancedETC):
    """A rule that fails in games of five steps."""

    kernel = None

    def decide(self, board, shares, own, draws):
        if board.horizon == 5:
            raise ZeroDivisionError("no luck")
        return super().decide(board, shares, own, draws)


def test_a_game_that_fails_does_not_stop_the_others():
    games = [replace(GAMES[0], horizon=horizon) for horizon in (4, 5, 6)]
    steps = []
    found = sweep(games, Stumbling(), runs=2, settlement="none", progress=steps.append)
    assert list(found.errors) == [1]
    assert "no luck" in found.errors[1]
    assert found[1] == {}
    assert found[0]["overall_regret"].mean >= 0
    assert steps[-1] == (2, 0, 1)
    assert found.frame()["error"].is_null().to_list() == [True, False, True]


def test_the_frame_has_one_row_per_game():
    frame = sweep(GAMES[:2], BalancedETC(), runs=3).frame()
    assert frame["horizon"].to_list() == [100, 3000]
    assert {*COLUMNS} < {*frame.columns}
    assert frame["viable"].null_count() == 2


@pytest.mark.parametrize(
    ("games", "more", "sentence"),
    [
        ([], {}, "no games"),
        (5, {}, "must be a list of partage.Game"),
        ([5], {}, "must be a partage.Game"),
        (GAMES[:1], {"runs": 0}, "number of runs"),
        (GAMES[:1], {"progress": 5}, "must be True, False or a function"),
    ],
)
def test_bad_arguments_are_refused(games, more, sentence):
    with pytest.raises(partage.InputError, match=sentence):
        sweep(games, BalancedETC(), **more)


def test_a_bar_tells_done_left_and_failed(monkeypatch):
    class Terminal:
        written = ""
        encoding = "utf-8"

        def isatty(self):
            return True

        def write(self, text):
            self.written += text

        def flush(self):
            pass

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    games = [replace(GAMES[0], horizon=horizon) for horizon in (4, 5, 6)]
    sweep(games, Stumbling(), runs=2, settlement="none", progress=True)
    assert "2 done, 0 left, 1 failed" in terminal.written


def test_a_lost_worker_changes_no_bit():
    """Of two worker processes of a Dask cluster, one is killed when the first part is finished."""
    distributed = needed("distributed")
    games = GAMES * 12
    expected = bits(sweep(games, BalancedETC(), runs=20, seed=3))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:
        with distributed.Client(cluster) as client:
            first, second = client.run(os.getpid).values()
        assert first != second
        steps = []

        def kill_one(progress):
            if not steps and progress.done:
                os.kill(first, signal.SIGKILL)
                steps.append(progress)

        found = sweep(
            games, BalancedETC(), runs=20, seed=3, on=f"dask={cluster.scheduler_address}", progress=kill_one
        )
    assert steps[0].left > 0
    assert bits(found) == expected
    assert all(math.isfinite(found[place]["overall_regret"].mean) for place in range(len(games)))

"""Sweeps: the figures of `play`, the same bits wherever they are played, and on whatever workers are left."""

import os
import pickle
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.packages import needed
from tests.support.patience import PATIENCE

import partage
from partage import BalancedETC, Game, Sharing, bernoulli, play, sweep
from partage.simulate import parallel
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


def on_dask():
    """Start a Dask cluster of two worker processes."""
    return needed("distributed").LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    )


@pytest.fixture(params=["threads", "dask"])
def on(request, monkeypatch):
    """Threads, and a cluster."""
    if request.param == "threads":
        yield "threads"
        return
    monkeypatch.setattr(parallel, "PATIENCE", PATIENCE)
    with on_dask() as cluster:
        yield f"dask={cluster.scheduler_address}"


class Terminal:
    """A terminal that keeps what is written."""

    written = ""
    encoding = "utf-8"

    def isatty(self):
        return True

    def write(self, text):
        self.written += text

    def flush(self):
        pass


def test_a_game_that_fails_does_not_stop_the_others(on):
    games = [replace(GAMES[0], horizon=horizon) for horizon in (4, 5, 6)]
    steps = []
    found = sweep(games, Stumbling(), runs=2, settlement="none", on=on, progress=steps.append)
    assert list(found.errors) == [1]
    assert "no luck" in found.errors[1]
    assert found[1] == {}
    assert found[0]["overall_regret"].mean >= 0
    assert all(sum(step) == 3 for step in steps)
    assert steps[-1] == (2, 0, 1)
    assert found.frame()["error"].is_null().to_list() == [True, False, True]


def test_a_bar_tells_done_left_and_failed(on, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    games = [replace(GAMES[0], horizon=horizon) for horizon in (4, 5, 6)]
    sweep(games, Stumbling(), runs=2, settlement="none", on=on, progress=True)
    assert "2 done, 0 left, 1 failed" in terminal.written


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


MANY = 10_000


@dataclass(frozen=True)
class Deadly(Game):
    """A game that kills the process that is about to play it, once: when the client has heard of other games."""

    folder: str = ""

    def drawn(self, generator):
        heard, killed = Path(self.folder, "heard"), Path(self.folder, "killed")
        if not killed.exists():
            until = time.monotonic() + PATIENCE
            while not heard.exists():
                if time.monotonic() > until:
                    raise TimeoutError("no game was finished")
                time.sleep(0.01)
            killed.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return super().drawn(generator)


def many_games():
    """Return games that all differ."""
    sharing = [Sharing.round_robin(agents, 2) for agents in (3, 10)]
    return [Game(bernoulli([0.9, 0.8 * place / MANY]), sharing[place % 2], 50 + place % 7) for place in range(MANY)]


@contextmanager
def weighed_workers(sizes, *where):
    """Let workers play, and note the bytes of what comes back for each part."""
    with parallel.workers(*where) as spread:

        def spread_and_weigh(chunks):
            for part in spread(chunks):
                sizes.append(len(pickle.dumps(part)))
                yield part

        yield spread_and_weigh


@pytest.mark.extra
def test_a_lost_worker_changes_no_bit_of_ten_thousand_games(monkeypatch, tmp_path):
    """One of two worker processes of a Dask cluster is killed in the middle, and only sums travel.

    The game in the middle kills the worker, so on a machine of any speed this game and others are left then.
    """
    games = many_games()
    expected = bits(sweep(games, BalancedETC(), runs=5, seed=3))
    middle = games[MANY // 2]
    games[MANY // 2] = Deadly(middle.arms, middle.sharing, middle.horizon, folder=str(tmp_path))
    monkeypatch.setattr(parallel, "PATIENCE", PATIENCE)
    steps, sizes = [], []
    monkeypatch.setattr(sweeps, "workers", lambda *where: weighed_workers(sizes, *where))

    def tell(progress):
        steps.append(progress)
        if progress.done:
            (tmp_path / "heard").touch()

    with on_dask() as cluster, needed("distributed").Client(cluster) as client:
        first = {*client.run(os.getpid).values()}
        on = f"dask={cluster.scheduler_address}"
        found = sweep(games, BalancedETC(), runs=5, seed=3, on=on, progress=tell)
        client.wait_for_workers(2, timeout=PATIENCE)  # a cluster that is starting a worker is not stopped
    assert int((tmp_path / "killed").read_text()) in first
    assert len(first) == 2
    assert bits(found) == expected
    assert all(sum(step) == MANY for step in steps)
    assert steps[-1] == (MANY, 0, 0)
    sums = 8 * 2 * len(COLUMNS)  # bytes of a game; its figures of five runs are 2.5 times as many
    assert sums * MANY <= sum(sizes) < 1.5 * sums * MANY

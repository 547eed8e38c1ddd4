"""Every part of the bench runs, at a tiny size: its rows have values, and names of their own."""

import math
import os
import sys
from contextlib import contextmanager
from types import SimpleNamespace

from bench import (
    agents,
    asks,
    close,
    closing,
    clusters,
    engine,
    live_scale,
    places,
    same_problem,
    service,
    settlements,
    starts,
    uneven,
    waiting,
)  # fmt: skip
from bench.rows import Chart, Row, as_row_or_chart

TINY = live_scale.Sizes(
    members=(1, 2),
    collaborations=(1,),
    streams=(2,),
    arms_streams=2,
    processes=(),
    memory=((2, 3, 2),),
    seconds=0.1,
    broadcasts=2,
    pause=0.05,
)


def rows_of(found):
    """Return the rows by name, all of which have a value, and the charts by title."""
    all_of_them = list(map(as_row_or_chart, found))
    rows = [one for one in all_of_them if isinstance(one, Row)]
    charts = [one for one in all_of_them if isinstance(one, Chart)]
    by_name = {row.what: row for row in rows}
    assert len(by_name) == len(rows)
    assert all(row.measured is not None and math.isfinite(row.measured) for row in rows), rows
    return by_name, {chart.title: chart for chart in charts}


def have_no_goal(rows):
    """Whether no row has a goal, so that its part needs no section that explains a missed one."""
    return all(row.goal is None for row in rows)


def test_engine(monkeypatch):
    monkeypatch.setattr(engine, "RUNS", 1)
    rows, _ = rows_of(engine.measure(times=1))
    assert rows["a broadcast / a step of the bare loop"].goal == 8


def test_agents():
    rows, _ = rows_of(agents.measure({100: (1.0, 5.0)}, ("balanced-etc",)))
    memory, waited = rows.values()
    assert memory.verdict == "met"
    assert (memory.goal, waited.goal) == (1.0, 5.0)


def test_settlements():
    rows, _ = rows_of(settlements.measure(runs=1))
    assert len(rows) == len(settlements.CASES)
    assert {row.goal for row in rows.values()} == {10}


def test_uneven():
    rows, charts = rows_of(uneven.measure(horizon=200, repeats=1, most=4))
    assert {name.partition(":")[0] for name in rows} == {"balanced-etc", "balanced-glr", "network-glr"}
    assert len(rows) == 3 * (len(uneven.features(200)) - 1)
    assert have_no_goal(rows.values())
    (chart,) = charts.values()
    assert [len(line.points) for line in chart.lines] == [1, 1, 1]


def test_places():
    found = places.waits([("threads", 1), ("threads", 2)], 4, 2)
    assert {place: len(seconds) for place, seconds in found.items()} == {("threads", 1): 2, ("threads", 2): 2}
    (row,) = places.started("dask", "no_such_package")
    assert row.note == "not measured: no_such_package is not installed"


def test_a_cluster_that_is_started_for_the_runs(monkeypatch):
    threads = {place: [1.0, 2.0] for place in (("threads", 2), ("ray", 2))}
    monkeypatch.setattr(places, "waits", lambda *_: threads)
    rows, _ = rows_of(places.started("ray", "math"))
    assert have_no_goal(rows.values())


def test_fresh_installs(monkeypatch):
    monkeypatch.setattr(starts, "fresh_environment", lambda folder, extra: sys.executable)
    monkeypatch.setattr(starts, "IMPORTS", {"base": ("math",)})
    rows, _ = rows_of(starts.measure_installs(("base",)))
    assert list(rows) == ["a fresh install of base", "import math in a fresh install of base, warm"]
    assert have_no_goal(rows.values())


def test_a_cluster_that_cannot_be_measured_says_why_and_the_next_one_is_measured(monkeypatch):
    @contextmanager
    def here(workers):
        yield "threads", None

    @contextmanager
    def missing(workers):
        raise ModuleNotFoundError("No module named 'distributed'", name="distributed")
        yield

    monkeypatch.setattr(clusters, "FIRST", 2)
    monkeypatch.setattr(clusters, "CLUSTERS", {"Dask": missing, "Ray": here})
    monkeypatch.setattr(clusters, "_differing", lambda cluster, many: 0)
    monkeypatch.setattr(clusters, "_with_ray", lambda many, alone: clusters.measure("Ray", many, alone))
    _, dask, *ray = clusters.measure_all(4)
    assert (dask.what, dask.note) == ("Dask: the rest", "not measured: distributed is not installed")
    assert [row.what.partition(",")[0] for row in ray] == ["Ray"] * 4
    assert all(row.measured is not None for row in ray)


def test_games_of_a_sweep_are_the_same_every_time():
    assert clusters.games(3) == clusters.games(3)


def test_starts():
    rows, _ = rows_of(starts.measure([("nothing", starts.NOTHING, 12, 1)], times=1))
    assert list(rows) == ["start of Python", "nothing, cold", "nothing, warm", "nothing, warm / start of Python"]
    assert (rows["nothing, cold"].goal, rows["nothing, warm"].goal) == (12, 1)


def test_every_command_and_extra_is_started(monkeypatch):
    monkeypatch.setattr(starts, "_installed", lambda extra: True)
    names = [start[0] for start in starts.starts()]
    assert len(set(names)) == len(names)
    assert {"partage simulate --help", "import partage, ray (ray)", "import partage, distributed (dask)"} <= set(
        names
    )


def test_peers(monkeypatch):
    monkeypatch.setattr(same_problem, "of_groups", lambda: ())
    rows, _ = rows_of(same_problem.measure(("plain",), seconds=0.05, steps=50))
    assert {"Thompson sampling: a run of plain Python / of Partage"} <= set(rows)
    assert have_no_goal(rows.values())
    assert same_problem.python_of("plain") == sys.executable


def test_asks_that_end_in_nothing():
    rows, _ = rows_of(asks.measure(members=(10,), rules=("shared-imed",), runs=2, horizon=20))
    nothing, requests = rows.values()
    assert nothing.goal == 0.1
    assert requests.measured >= 2  # a claim and a report


def test_closes_and_collaborations_that_leave_the_memory():
    rows, _ = rows_of(closing.measure((close.Case("equal-share", "best", 5, 1000, 4, left=True),), many=3))
    *closes, until, loaded, after = rows.values()
    assert len(closes) == 2
    assert until.measured > 0
    assert after.measured < loaded.measured
    assert after.note == "3 of 3 left"


def test_the_clock_of_a_process_is_that_of_its_processor_time():
    before = live_scale.processor_seconds(SimpleNamespace(pid=os.getpid()))
    assert live_scale.usage(SimpleNamespace(pid=os.getpid()), lambda: sum(range(10**5))) > 0
    assert before > 0


def test_live_scale():
    rows, charts = rows_of(live_scale.measure(TINY))
    members = "2 members with a stream each"
    assert rows[f"{members}: processor time of an event"].goal == 100
    assert 1 <= rows[f"{members}: boards per stream and broadcast"].measured <= 3
    assert rows[f"{members}, without a pause: asks and tells"].measured > 0
    assert 0 < rows[f"{members}, without a pause: boards per stream and broadcast"].measured <= 3
    assert rows["1,000 arms, 2 streams: bytes of an event, whole board / patch"].measured > 10
    latency = charts["Latency by members without a pause"]
    assert [[point.x for point in line.points] for line in latency.lines] == [[1, 2], [1, 2]]


def test_waiting():
    rows, charts = rows_of(waiting.measure(loads=(0.05, 0.1), seconds=0.1, batches=(1, 4), connections=8))
    (chart,) = charts.values()
    assert have_no_goal(rows.values())
    assert "5% of the most requests: mean latency, measured / queue" in rows
    assert {line.label for line in chart.lines} == {
        "mean, measured", "mean, by the queue", "p99, measured", "p99, by the queue",
    }  # fmt: skip


def test_service():
    with service.tempfile.TemporaryDirectory() as folder, service.server(f"{folder}/partage.db") as (client, port, _):
        empty, both = service.best_of(port, service.agents_of(client, 8), times=1, seconds=0.2)
    assert empty["rate"] > 0
    assert both["rate"] > 0

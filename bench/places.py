"""Threads, processes and clusters on this machine: how long one waits for the same runs."""

import importlib.util
from functools import partial

from bench.elsewhere import elsewhere
from bench.engine import balanced
from bench.environments import with_ray
from bench.rows import Row
from bench.timing import over, repeated, wall_seconds

from partage import BalancedETC, play

ABOUT = (
    "The same runs of the paper's main game with 1,000 agents, spread over threads, processes and clusters. On "
    "two cores, more than two workers would show overhead only. All times are waiting times. Two threads have a "
    "goal, 1.8 of the 2 that two cores allow. Processes and clusters have none here: with so few runs, the row "
    "shows what starting them costs. The goals of clusters are those of sweeps (make bench PART=clusters)."
)


def waits(places, runs, times):
    """Return the waiting time of the same runs in each place (where, jobs), in every repeat."""
    work = partial(play, balanced(1000), BalancedETC(), runs=runs, baseline=False, checkpoints=())
    works = {place: partial(work, on=place[0], jobs=place[1]) for place in places}
    return repeated(works, times, within=25, clock=wall_seconds)


def measure(runs=1024, times=5):
    """Yield the rows of threads and processes, and of a Dask cluster that is started for the runs."""
    places = [("threads", 1), ("threads", 2), ("processes", 2)]
    found = waits(places, runs, times)
    one = found["threads", 1]
    yield Row.of("one thread / two threads, waiting time", over(one, found["threads", 2]), 1.8, more_is_better=True)
    yield Row.of("one thread / two processes, waiting time", over(one, found["processes", 2]), more_is_better=True)
    yield Row.of(f"{runs:,} runs on two threads, waiting time", found["threads", 2], unit="s")
    yield from started("dask", "distributed", runs)


def started(place, module, runs=1024):
    """Yield what a cluster costs that is started for the runs, and stopped after them."""
    what = f"a {place.capitalize()} cluster with two workers / two threads, start included, waiting time"
    if importlib.util.find_spec(module) is None:
        yield Row(what, note=f"not measured: {module} is not installed")
        return
    found = waits([("threads", 2), (place, 2)], runs, 2)
    yield Row.of(what, over(found[place, 2], found["threads", 2]))
    yield Row.of(f"the same {runs:,} runs with the start of the cluster", found[place, 2], unit="s")


def prepare_ray():
    """Install Ray in an environment of its own, unless it is installed."""
    with_ray()
    yield True


def measure_ray():
    """Yield the rows of a Ray cluster, from an environment of its own unless Ray is installed."""
    yield from elsewhere("bench.places:started", "ray", "ray", seconds=90, python=with_ray())

"""The parts of the bench.

To add a part, write a function that yields rows and charts (`bench/rows.py`) and add one line here. `ABOUT` in its
module, if there is one, is shown above its rows.
"""

import importlib
from collections.abc import Iterator
from typing import NamedTuple

from bench.rows import Chart, Row, as_row_or_chart

MOST = 600  # seconds: the limit of all parts of `make bench` together


class Part(NamedTuple):
    """A part of the bench.

    Attributes
    ----------
    name
        Its name, for `make bench PART=name`.
    title
        Its heading on the page.
    work
        The function that measures it, as "package.module:function".
    seconds
        Its time limit. What it has measured by then is kept.
    long
        Whether only `make bench-all` runs it.
    """

    name: str
    title: str
    work: str
    seconds: float
    long: bool = False


PARTS = (
    Part("engine", "Balanced-ETC", "bench.engine:measure", 40),
    Part("evidence", "Rules that decide by evidence", "bench.evidence_rules:measure", 100),
    Part("growth", "Growth in T, M, N and 1/gap", "bench.growth:measure", 60),
    Part("agents", "Ten million agents", "bench.agents:measure", 40),
    Part("settlements", "Settlements", "bench.settlements:measure", 25),
    Part("uneven", "Uneven games", "bench.uneven:measure", 30),
    Part("places", "Threads, processes and Dask", "bench.places:measure", 35),
    Part("starts", "Starts of commands and imports", "bench.starts:measure", 75),
    Part("peers", "Peers, and seconds to 1 %", "bench.same_problem:measure", 90),
    Part("service", "The live controller", "bench.service:measure", 60),
    Part("live-scale", "The live controller by members and streams", "bench.live_scale:measure", 45),
    Part("growth-long", "Growth, all rules and sizes", "bench.growth:measure_long", 1900, long=True),
    Part("ray", "Ray", "bench.places:measure_ray", 300, long=True),
    Part("clusters", "Sweeps of 10,000 games on clusters", "bench.clusters:measure_all", 900, long=True),
    Part("live-scale-long", "The live controller at its largest", "bench.live_scale:measure_long", 1500, long=True),
    Part("installs", "Fresh installs by extra", "bench.starts:measure_installs", 600, long=True),
)


def yielded(work: str) -> Iterator[str | Row | Chart]:
    """Yield what a part is about, and then its rows and charts."""
    name, _, function = work.partition(":")
    module = importlib.import_module(name)
    yield getattr(module, "ABOUT", "")
    yield from map(as_row_or_chart, getattr(module, function)())

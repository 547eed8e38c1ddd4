"""The parts of the bench.

To add a part, write a function that yields rows and charts (`bench/rows.py`) and add one line here. `ABOUT` in its
module, if there is one, is shown above its rows.
"""

import importlib
from collections.abc import Iterator
from typing import NamedTuple

from bench.rows import Chart, Row, as_row_or_chart

MOST = 600  # seconds: the limit of all parts of `make bench` together
MOST_OF_ALL = 1800  # and of `make bench-all`


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
    why
        The section of the docs that explains a goal that was missed, as "page.md#section".
    long
        Whether only `make bench-all` runs it.
    prepare
        A function, written as `work` is, that compiles or installs what the part needs. It runs before the part, and
        its time does not count.
    """

    name: str
    title: str
    work: str
    seconds: float
    why: str = ""
    long: bool = False
    prepare: str = ""


RULES = "bench.evidence_rules:prepare"
PEERS = "bench.same_problem:prepare"
RAY = "bench.places:prepare_ray"
SERVER = "bench.service:prepare"

PARTS = (
    Part("engine", "Balanced-ETC", "bench.engine:measure", 30, "engine.md#what-it-costs", prepare=RULES),
    Part("evidence", "Evidence rules", "bench.evidence_rules:measure", 70, "engine.md#evidence-rules", prepare=RULES),
    Part(
        "growth", "Growth in T, M, N and 1/gap", "bench.growth:measure", 60, "scale.md#growth", prepare=RULES,
    ),
    Part("agents", "Ten million agents", "bench.agents:measure", 30, "scale.md#one-large-game", prepare=RULES),
    Part("settlements", "Settlements", "bench.settlements:measure", 15, "scale.md#settlements"),
    Part("uneven", "Uneven games", "bench.uneven:measure", 15, prepare="bench.uneven:prepare"),
    Part("places", "Threads, processes and Dask", "bench.places:measure", 40, "scale.md#one-machine", prepare=RULES),
    Part("starts", "Starts of commands and imports", "bench.starts:measure", 75, "scale.md#starts"),
    Part("peers", "Peers, and seconds to 1 %", "bench.same_problem:measure", 65, prepare=PEERS),
    Part("service", "The live controller", "bench.service:measure", 75, "deployment.md#capacity", prepare=SERVER),
    Part(
        "live-scale", "The live controller by members and streams", "bench.live_scale:measure", 60,
        "scale-live.md#fan-out", prepare=SERVER,
    ),
    Part("waiting", "Waiting at the live controller", "bench.waiting:measure", 30, prepare=SERVER),
    Part("asks", "Asks that end in nothing", "bench.asks:measure", 20, "scale-live.md#asks-that-find-nothing"),
    Part(
        "closing", "Closes, and collaborations that left the memory", "bench.closing:measure", 15,
        "deployment.md#under-attack",
    ),
    Part(
        "growth-long", "Growth, all rules and sizes", "bench.growth:measure_long", 160, "scale.md#growth",
        long=True, prepare=RULES,
    ),
    Part("ray", "Ray", "bench.places:measure_ray", 100, long=True, prepare=RAY),
    Part(
        "clusters", "Sweeps of 10,000 games on clusters", "bench.clusters:measure_all", 420, "scale.md#many-machines",
        long=True, prepare=RAY,
    ),
    Part(
        "live-scale-long", "The live controller at its largest", "bench.live_scale:measure_long", 400,
        "scale-live.md#fan-out", long=True, prepare=SERVER,
    ),
    Part("installs", "Fresh installs by extra", "bench.starts:measure_installs", 90, long=True),
)  # fmt: skip


def yielded(work: str) -> Iterator[str | Row | Chart]:
    """Yield what a part is about, and then its rows and charts."""
    name, _, function = work.partition(":")
    module = importlib.import_module(name)
    yield getattr(module, "ABOUT", "")
    names = set()
    for found in map(as_row_or_chart, getattr(module, function)()):
        name = found.what if isinstance(found, Row) else found.title
        if name in names:
            raise ValueError(f"two rows or charts are called {name!r}")
        names.add(name)
        yield found

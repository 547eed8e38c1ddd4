"""The parts of the bench. A part is one line here, and a function that yields rows and charts (`bench/rows.py`)."""

from typing import NamedTuple


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
    about
        What the rows show, in a few sentences.
    """

    name: str
    title: str
    work: str
    seconds: float
    long: bool = False
    about: str = ""


PARTS = (
    Part("engine", "Balanced-ETC", "bench.engine:measure", 40),
)

"""Studies: experiments as data.

A study of your own needs no names but these: see docs/studies.md.
"""

from partage.simulate.trial import Trial
from partage.studies.catalogue import STUDIES, find
from partage.studies.results import Played, crossing, largest, quotient, ratio, smallest
from partage.studies.runner import play_studies
from partage.studies.study import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Claim,
    Curve,
    Dots,
    Level,
    Line,
    Mark,
    Panel,
    Path,
    Point,
    Study,
    Table,
)

__all__ = [
    "FAILS",
    "HOLDS",
    "STUDIES",
    "UNDECIDED",
    "Claim",
    "Curve",
    "Dots",
    "Level",
    "Line",
    "Mark",
    "Panel",
    "Path",
    "Played",
    "Point",
    "Study",
    "Table",
    "Trial",
    "crossing",
    "find",
    "largest",
    "play_studies",
    "quotient",
    "ratio",
    "smallest",
]

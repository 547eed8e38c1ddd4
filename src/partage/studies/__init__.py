"""Studies: experiments as data.

The names below are all that a study needs, one of Partage's own or a user's: see docs/studies.md.
"""

from partage.studies.catalogue import STUDIES, find
from partage.studies.results import Played, crossing, largest, quotient, ratio, smallest
from partage.studies.runner import play_studies
from partage.studies.study import FAILS, HOLDS, UNDECIDED, Claim, Curve, Dots, Line, Mark, Panel, Study, Table

__all__ = [
    "FAILS",
    "HOLDS",
    "STUDIES",
    "UNDECIDED",
    "Claim",
    "Curve",
    "Dots",
    "Line",
    "Mark",
    "Panel",
    "Played",
    "Study",
    "Table",
    "crossing",
    "find",
    "largest",
    "play_studies",
    "quotient",
    "ratio",
    "smallest",
]

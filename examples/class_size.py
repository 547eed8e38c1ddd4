"""Do small classes help? 79 schools of the STAR experiment in Tennessee share what they saw of three kinds of class.

Pupils were assigned to classes at random within schools, so classes are compared within schools (`network-glr`).
"""

from pathlib import Path

import polars as pl

from examples.common import DATA, Example, show, worked
from partage.logs import Columns

LIMIT = (
    "The data cannot show what a small class costs: the reward is a score above the median, and a settlement in "
    "scores says nothing about the money for more teachers."
)


def class_size(runs: int, folder: Path) -> Example:
    """Play the schools as a collaboration: a pupil is a pull, and a reward of 1 is a score above the median."""
    table = pl.read_csv(DATA / "class-size.csv")
    columns = Columns("school", "class", "above", "pupils")
    return worked("class-size", table, columns, LIMIT, runs, folder, prepaid=5)


if __name__ == "__main__":
    show(class_size, "class-size")

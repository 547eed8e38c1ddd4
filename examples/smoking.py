"""Which help to stop smoking works? 24 trials share the treatments that they compared.

Hasselblad (1998), 16,740 people. Each trial has two or three of four treatments, and its people differ from those of
the others, so treatments are compared within trials (`network-glr`).
"""

from pathlib import Path

import polars as pl

from examples.common import Example, show, worked
from partage.logs import Columns
from partage.studies.smoking import FILE

LIMIT = (
    "The data cannot show who would have stopped with a treatment that their trial did not offer: for these pairs "
    "the game assumes what the other trials saw, although people differ between trials."
)


def smoking(runs: int, folder: Path) -> Example:
    """Play the trials as a collaboration: a person is a pull, and a reward of 1 is somebody who stopped."""
    trials = pl.read_csv(FILE)
    stopped = trials.select("trial", "treatment", stopped=1, people="successes")
    smoke = trials.select("trial", "treatment", stopped=0, people=pl.col("people") - pl.col("successes"))
    table = pl.concat([stopped, smoke]).with_columns(pl.format("trial {}", pl.col("trial")).alias("trial"))
    columns = Columns("trial", "treatment", "stopped", "people")
    return worked("smoking", table, columns, LIMIT, runs, folder, prepaid=20)


if __name__ == "__main__":
    show(smoking, "smoking")

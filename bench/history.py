"""Ratios by release: `bench/history.csv`, one line for each release."""

import csv
from collections.abc import Collection, Mapping
from pathlib import Path

from bench.rows import Row

FILE = Path(__file__).parent / "history.csv"
VERSION, DATE = "version", "date"
WORSE = 1.25  # a ratio that is worse by more than this factor is marked


def ratios(parts: list[dict]) -> dict[str, Row]:
    """Return the rows that are ratios, by part and name."""
    return {
        f"{part['name']}: {row.what}": row
        for part in parts
        for row in part["rows"]
        if row.unit == "x" and row.measured is not None and not row.above
    }


def read(file: Path = FILE) -> list[dict[str, str]]:
    """Return the lines of the file, oldest release first."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def record(
    version: str, date: str, rows: Mapping[str, Row], file: Path = FILE, *, measured: Collection[str] = ()
) -> None:
    """Write the line of a release. In one that is there for the same version, only `measured` parts are replaced."""
    lines = read(file)
    kept = [line for line in lines if line[VERSION] != version]
    before = next((line for line in lines if line[VERSION] == version), {})
    others = {name: value for name, value in before.items() if value and name.partition(":")[0] not in measured}
    new = {**others, VERSION: version, DATE: date, **{name: f"{row.measured:.4g}" for name, row in rows.items()}}
    columns = list(dict.fromkeys(name for line in (*kept, new) for name in line))
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows([*kept, new])


def drift(rows: Mapping[str, Row], version: str, file: Path = FILE) -> dict:
    """Return a table of the recorded ratios of each release and of this measurement; without rows if there are none.

    The release that is measured may have a line, too: then the table shows what changed since it was recorded.
    """
    lines = read(file)
    found = []
    for name, row in rows.items():
        before = [float(line[name]) if line.get(name) else None for line in lines]
        if not any(before):
            continue
        values = [*before, row.measured]
        worse = [_is_worse(values[:at], value, row.more_is_better) for at, value in enumerate(values)]
        cells = [{"value": value, "worse": flag} for value, flag in zip(values, worse)]
        found.append({"what": name, "cells": cells})
    versions = [f"{line[VERSION]}, recorded on {line[DATE]}" for line in lines]
    return {"versions": [*versions, f"{version}, now"], "rows": found}


def _is_worse(before: list[float | None], value: float | None, more_is_better: bool) -> bool:
    """Whether a ratio is worse than the last one before it by more than `WORSE`."""
    last = next((each for each in reversed(before) if each), None)
    if not value or last is None:
        return False
    return (last / value if more_is_better else value / last) > WORSE

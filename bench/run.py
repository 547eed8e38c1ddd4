"""Speed and memory of Partage: `make bench` writes results/bench.html, and `make bench-all` measures more.

Every part is measured in a process of its own, with a time limit. A part that fails or takes too long becomes a row
that says so; the exit code is 0 in any case.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import re
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
from bench import freezing, history, soak
from bench.elsewhere import Failed, TooLong, elsewhere
from bench.page import goal_of, page, value_of
from bench.parts import PARTS, Part
from bench.rows import MISSED, Chart, Row
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import partage

ALONE = {"freezing": freezing.main, "soak": soak.main}  # with tables of their own; they run only by name
PREPARING = 300.0  # seconds
REST = "the rest of this part"  # what a row is called that says why a part ended early
PACKAGES = ("numpy", "numba", "joblib", "distributed", "ray", "litestar", "uvicorn")


def prepare(work: str) -> None:
    """Compile or install what a part needs. What fails here fails in the part again, which says so."""
    with contextlib.suppress(TooLong, Failed):
        for _ in elsewhere(work, seconds=PREPARING):
            pass


def measured(part: Part, tell=lambda row: None) -> dict:
    """Measure one part. What it yielded before it failed is kept."""
    rows: list[Row] = []
    charts: list[Chart] = []
    about = ""
    started = time.perf_counter()
    try:
        for found in elsewhere("bench.parts:yielded", part.work, seconds=part.seconds):
            if isinstance(found, str):
                about = found
            elif isinstance(found, Chart):
                charts.append(found)
            else:
                rows.append(found)
                tell(found)
    except TooLong:
        rows.append(Row(REST, note=f"stopped at its time limit of {part.seconds:g} s"))
    except Failed as error:
        rows.append(Row(REST, note=f"failed: {error}"))
    seconds = time.perf_counter() - started
    return {
        "name": part.name,
        "title": part.title,
        "about": about,
        "seconds": seconds,
        "why": part.why,
        "rows": rows,
        "charts": charts,
    }


def machine(command: str, seconds: float) -> dict:
    """Return where, when and how it was measured."""
    found = {"partage": partage.__version__, "Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "partage": partage.__version__,
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "versions": ", ".join(f"{name} {number}" for name, number in found.items()),
        "on": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seconds": seconds,
        "command": command,
    }


def processor() -> str:
    """Return the name of the processor."""
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def told(part: dict, limit: float) -> str:
    """Say in one line what a part measured, and in what time."""
    missed = sum(row.verdict == MISSED for row in part["rows"])
    return (
        f"{part['name']}: {len(part['rows'])} rows in {part['seconds']:.0f} s of at most {limit:g} s"
        + (f", {missed} goals missed" if missed else "")
        + "".join(f"; {row.what} {row.note}" for row in part["rows"] if row.what == REST)
    )


def show(part: dict, console: Console) -> None:
    """Print the rows of a part."""
    table = Table(title=part["title"], title_justify="left")
    for column in ("what", "measured", "goal", ""):
        table.add_column(column, justify="left" if column == "what" else "right")
    for row in part["rows"]:
        value = value_of(row) if row.measured is not None else row.note
        table.add_row(row.what, value, "" if row.goal is None else goal_of(row), row.verdict or "")
    console.print(table)


def as_json(about: dict, parts: list[dict]) -> str:
    """Return all that was measured as JSON."""
    return json.dumps({"machine": about, "parts": msgspec.to_builtins(parts)}, indent=2)


def main(arguments=None) -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [part.name for part in PARTS]
    parser.add_argument("part", nargs="?", choices=(*names, *ALONE), help="one part only")
    parser.add_argument("--all", action="store_true", help="also the parts that take long")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the page")
    parser.add_argument("--record", action="store_true", help="write the ratios of this version to bench/history.csv")
    given = parser.parse_args(arguments)
    if given.part in ALONE:
        ALONE[given.part]([])
        return
    chosen = [part for part in PARTS if given.part == part.name or (not given.part and (given.all or not part.long))]
    started = time.perf_counter()
    parts = []
    columns = BarColumn(), TextColumn("{task.completed} of {task.total} parts"), TimeElapsedColumn()
    errors = Console(stderr=True)
    with Progress(*columns, TextColumn("{task.description}"), console=errors, transient=True) as bar:
        task = bar.add_task("", total=len(chosen))
        ready = {""}
        for part in chosen:
            if part.prepare not in ready:
                bar.update(task, description=f"{part.name}: what it needs")
                prepare(part.prepare)
                ready.add(part.prepare)
            bar.update(task, description=part.name)
            parts.append(
                measured(part, lambda row, part=part: bar.update(task, description=f"{part.name}: {row.what}"))
            )
            bar.advance(task)
            errors.print(told(parts[-1], part.seconds), soft_wrap=True, highlight=False)
    command = " ".join(
        ["python -m bench.run", *([given.part] if given.part else []), *(["--all"] if given.all else [])]
    )
    about = machine(command, time.perf_counter() - started)
    ratios = history.ratios(parts)
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / (f"bench-{given.part}.html" if given.part else "bench.html")
    file.write_text(page(about, parts, history.drift(ratios, partage.__version__)), encoding="utf-8")
    if given.record:
        names = [part["name"] for part in parts]
        history.record(partage.__version__, about["on"][:10], ratios, history.FILE, measured=names)
    if given.json:
        print(as_json(about, parts))
        return
    console = Console()
    for part in parts:
        show(part, console)
    console.print(f"{file}, measured in {about['seconds']:.0f} s.", soft_wrap=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""`make crashes`: real crashes of real processes, as many as asked for, and a table of what they left behind."""

import argparse
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.crashes import disk, errors, kills, power, races, starts
from tests.crashes.load import Found
from tests.support.postgres import Cluster, binaries

Row = tuple[str, str, str, bool]  # what, how often, what was found, and whether that is fine
PARTS: dict[str, Callable[[argparse.Namespace, Path], Iterator[Row]]] = {}


def part(work: Callable[[argparse.Namespace, Path], Iterator[Row]]) -> Callable[..., Iterator[Row]]:
    PARTS[work.__name__] = work
    return work


@part
def server(given: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """kill -9 of the server on SQLite."""
    killed = kills.kill_server(folder, given.kills)
    yield (
        "kill -9 of the server (SQLite)",
        _counts(killed.kills),
        _found(killed.found, killed.crashes),
        killed.found.ok,
    )


@part
def database(given: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """kill -9 of PostgreSQL."""
    with _postgres() as (cluster, url):
        killed = kills.kill_postgres(cluster, url, folder, given.kills)
    yield "kill -9 of PostgreSQL", _counts(killed.kills), _found(killed.found, killed.crashes), killed.found.ok


@part
def cuts(given: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Power cuts."""
    if reason := disk.unavailable():
        yield "power cut (SQLite)", "none", reason, True
        return
    recorded = power.record(folder)
    for lying, what in ((False, "power cut (SQLite)"), (True, "the same, on a disk that lies about syncs")):
        done = power.cut(recorded, folder, given.points if not lying else 10, lying=lying)
        for said in [] if lying else [*done.lost, *done.damaged]:
            yield what, "one cut", said, False
        ways = sum(done.cuts.values())
        yield (
            what,
            f"{ways} files after {given.points if not lying else 10} cuts in {done.changes} changes",
            f"{done.acknowledged} acknowledged, {len(done.lost)} files lost some, {len(done.damaged)} damaged",
            lying == bool(done.lost),
        )


@part
def io(given: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """I/O errors."""
    if reason := disk.unavailable():
        yield "I/O errors (SQLite)", "none", reason, True
        return
    done = errors.fail_each_change(folder, checkpoint=given.checkpoint)
    counts = _counts({f"{what} {long}": count for (what, long), count in done.by_what().items()})
    yield (
        "I/O errors in a commit (SQLite)",
        counts,
        f"{done.refused} refused with 503, of which {done.absent} absent and {done.whole} whole; "
        f"{done.answered} struck after the commit; /ready said 503 and then 200, {done.not_ready} times",
        True,  # what is wrong stops the run
    )


@part
def start(given: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """The first start, and the one that migrates an older database."""
    if reason := disk.unavailable():
        yield "crashes of a first start (SQLite)", "none", reason, True
        return
    for older, what in ((None, "a first start"), (starts.OLDER, "the migration of a 0.1 database")):
        counts = starts.run(folder, older=older)
        yield f"I/O errors and kill -9 in {what} (SQLite)", _counts(counts), "the next start worked each time", True


@part
def race(given: argparse.Namespace, folder: Path) -> Iterator[Row]:
    """Four processes on one PostgreSQL."""
    for name, work in (("four servers", races.race_servers), ("four workers", races.race_workers)):
        states = folder / name
        states.mkdir()
        with _postgres() as (_, url):
            done = work(url, states, given.seconds)
        yield (
            f"{name} race on one PostgreSQL",
            f"{done.kills} kills, {done.joined} joined, {done.left} left, {done.closes} close",
            _found(done.found),
            done.found.ok and done.closes == 1,
        )


def _counts(counts: dict[str, int]) -> str:
    return f"{sum(counts.values())}: " + ", ".join(f"{count} {what}" for what, count in counts.items())


def _found(found: Found, crashes: int | None = None) -> str:
    resumed = "" if crashes is None else f"; agents resumed {crashes} times"
    return (
        f"{found.acknowledged} acknowledged, {len(found.lost)} lost, {len(found.doubled)} doubled; "
        f"{found.refused} refused, {len(found.refused_but_there)} there{resumed}"
    )


@contextmanager
def _postgres() -> Iterator[tuple[Cluster, str]]:
    programs = binaries()
    if programs is None:
        raise SystemExit("PostgreSQL's server is not installed (Debian: apt-get install postgresql).")
    cluster = Cluster(programs)
    try:
        with cluster.database() as url:
            yield cluster, url
    finally:
        cluster.remove()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=(*PARTS, []), help="some of the parts (all)")
    parser.add_argument("--kills", type=int, default=50, help="of the server and of PostgreSQL each (50)")
    parser.add_argument("--points", type=int, default=300, help="power cuts, each in up to six ways (300)")
    parser.add_argument(
        "--checkpoint", type=int, default=1000, help="errors, at most, as SQLite moves its log into the database"
    )
    parser.add_argument("--seconds", type=float, default=120, help="that processes race, twice (120)")
    given = parser.parse_args()
    table = Table(title="Real crashes")
    for column in ("what", "how often", "found", ""):
        table.add_column(column)
    fine = True
    for name in given.parts or PARTS:
        folder = Path(tempfile.mkdtemp(prefix="partage-crashes-"))
        try:
            for *row, ok in PARTS[name](given, folder):
                fine &= ok
                row.append("ok" if ok else "WRONG")
                table.add_row(*row)
                print(*row, sep=" | ", flush=True)
        finally:
            shutil.rmtree(folder)
    Console().print(table)
    if not fine:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

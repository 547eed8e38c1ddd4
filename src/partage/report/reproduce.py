"""`partage reproduce`: play studies, judge their claims, write the report and what stands beside it."""

import os
import platform
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from partage.checks import count
from partage.errors import FileError
from partage.report.claims import Judged, judge
from partage.report.draw import write_figures
from partage.report.page import Drawn, Facts, page
from partage.report.tables import write_tables
from partage.simulate.parallel import workers
from partage.studies import Played, find, play_studies
from partage.studies.cache import Store
from partage.studies.runner import CHUNKS, Progress
from partage.theory.audit import Section, paper_audit
from partage.theory.audit import as_dict as audit_as_dict

REPORT = "report.html"
Say = Callable[[str], None]
Advance = Callable[[str, float], None]
AUDIT, DRAWING = 0.25, 0.15  # parts of the time that these take


@dataclass(frozen=True, eq=False)
class Reproduced:
    """What a reproduction found, and the files it wrote."""

    studies: Sequence[Played]
    judged: Sequence[Judged]
    audit: Sequence[Section] | None
    seconds: float
    audit_seconds: float
    runs: int
    seed: int
    files: Sequence[Path]

    @property
    def exit_code(self) -> int:
        """1 if a verdict contradicts what was found at full size when the study was written, else 0."""
        return int(any(each.surprising for each in self.judged))

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "runs": self.runs,
            "seed": self.seed,
            "seconds": self.seconds,
            "studies": [
                {"name": played.study.name, "title": played.study.title(played), "seconds": played.seconds}
                for played in self.studies
            ],
            "claims": [each.as_dict() for each in self.judged],
            "audit": audit_as_dict(list(self.audit), self.seed, self.audit_seconds) if self.audit else None,
            "files": [str(file) for file in self.files],
        }


def reproduce(
    names: Sequence[str] = (),
    runs: int = 100,
    seed: int = 0,
    out: Path = Path("results"),
    on: str = "threads",
    audit: bool | None = None,
    say: Say = lambda sentence: None,
    progress: Advance = lambda what, fraction: None,
) -> Reproduced:
    """Play studies and write the report.

    Parameters
    ----------
    names
        Studies by name, or files of your own; all of Partage's by default.
    runs, seed, on
        As for `partage.play`.
    out
        The folder for the report. Finished chunks of runs are kept in it, and not played again.
    audit
        Whether to audit the paper's theory too; by default if all studies are played.
    say
        Called with a sentence that people should read.
    progress
        Called with what is being done and the fraction of all work that is done.
    """
    started = time.perf_counter()
    studies = find(names)
    runs, seed = count("The number of runs", runs), count("The seed", seed, at_least=0)
    store = Store(out / CHUNKS, say)
    with_audit = not names if audit is None else audit
    bar = _Bar(progress, {"play": 1 - DRAWING - AUDIT * with_audit, "audit": AUDIT * with_audit, "draw": DRAWING})
    auditing = _Beside(lambda: paper_audit(runs, seed, progress=lambda done, of: bar.move("audit", done / of)))

    def moved(far: Progress) -> None:
        bar.move("play", far.work_done / far.work, f"playing {far.done:,} of {far.chunks:,} chunks")
        if with_audit:
            auditing.start()  # now that what both need is compiled

    with workers(on) as spread:
        played = play_studies(studies, spread, runs, seed, store, moved)
    judged = judge(played)
    bar.move("play", 1, "auditing the theory")
    audited = auditing.result() if with_audit else None
    facts = Facts(_command(names, runs, seed), runs, seed, f"{on} ({os.cpu_count()} cores)", 0.0, _versions())
    try:
        files = _write(played, judged, audited, out, facts, started, bar)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(f"The report cannot be written to {out}: {reason}.") from error
    taken = time.perf_counter() - started
    return Reproduced(played, judged, audited, taken, auditing.seconds, runs, seed, files)


class _Bar:
    """Adds up how far the parts of the work are, each weighed by the time it takes."""

    def __init__(self, progress: Advance, parts: dict[str, float]) -> None:
        self._progress, self._parts = progress, parts
        self._done = dict.fromkeys(parts, 0.0)
        self._what = "compiling"

    def move(self, part: str, fraction: float, what: str | None = None) -> None:
        self._done[part], self._what = fraction, what or self._what
        self._progress(self._what, sum(self._parts[each] * done for each, done in self._done.items()))


class _Beside:
    """Does some work on a thread of its own, beside the rest; Ctrl-C does not wait for it."""

    def __init__(self, work: Callable[[], list[Section]]) -> None:
        self.seconds = 0.0
        self._outcome: Future[list[Section]] = Future()
        self._thread: threading.Thread | None = None
        self._work = work

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._do, daemon=True)
            self._thread.start()

    def _do(self) -> None:
        started = time.perf_counter()
        try:
            found = self._work()
        except BaseException as error:
            self._outcome.set_exception(error)
        else:
            self.seconds = time.perf_counter() - started
            self._outcome.set_result(found)

    def result(self) -> list[Section]:
        while not self._outcome.done():
            wait([self._outcome], timeout=0.1)  # a wait without end would not hear Ctrl-C
        return self._outcome.result()


def _write(
    studies: Sequence[Played],
    judged: Sequence[Judged],
    audit: Sequence[Section] | None,
    out: Path,
    facts: Facts,
    started: float,
    bar: _Bar,
) -> list[Path]:
    """Write figures, tables and, at last, the page; return the page first."""
    drawn, files = [], []
    for place, played in enumerate(studies):
        bar.move("draw", place / len(studies), "drawing")
        pictures, wide, narrow = write_figures(played, out)
        beside = [*pictures, *write_tables(played, out)]
        drawn.append(Drawn(wide, narrow, [file.name for file in beside]))
        files += beside
    report = out / REPORT
    facts = facts._replace(seconds=time.perf_counter() - started)
    report.write_text(page(studies, drawn, judged, audit, facts), encoding="utf-8")
    return [report, *files]


def _command(names: Sequence[str], runs: int, seed: int) -> str:
    return " ".join(["partage reproduce", *names, f"--runs {runs} --seed {seed}"])


def _versions() -> dict[str, str]:
    from partage import __version__

    packages = ("numpy", "numba", "scipy", "joblib", "polars", "matplotlib")
    return {"partage": __version__, "Python": platform.python_version()} | {name: version(name) for name in packages}

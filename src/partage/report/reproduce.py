"""`partage reproduce`: simulate studies, judge their claims, write the report, its figures and data files."""

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
from partage.report.csv_and_parquet import write_tables
from partage.report.draw import write_figures
from partage.report.judged_claims import JudgedClaim, judge_claims
from partage.report.page import Provenance, StudyFigure, page
from partage.simulate.parallel import workers
from partage.studies import Played, find, play_studies
from partage.studies.cache import Store
from partage.studies.runner import CHUNKS, Progress
from partage.theory.audit import Section, paper_audit
from partage.theory.audit import as_dict as audit_as_dict

REPORT = "report.html"
Say = Callable[[str], None]
Advance = Callable[[str, float], None]
AUDIT, DRAWING = 0.25, 0.15  # fractions of the total time


@dataclass(frozen=True, eq=False)
class Reproduced:
    """The outcome of a reproduction, and the files it wrote."""

    studies: Sequence[Played]
    judged: Sequence[JudgedClaim]
    audit: Sequence[Section] | None
    seconds: float
    audit_seconds: float
    runs: int
    seed: int
    files: Sequence[Path]

    @property
    def exit_code(self) -> int:
        """1 if a verdict contradicts the one found at full size when the study was written, otherwise 0."""
        return int(any(each.surprising for each in self.judged))

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome for JSON."""
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
    """Simulate studies and write the report.

    Parameters
    ----------
    names
        Names of studies, or paths of study files; by default, those of the paper and `attacks`.
    runs, seed, on
        As for `partage.play`.
    out
        The folder for the report. It also caches finished chunks of runs.
    audit
        Whether to audit the paper's theory as well; by default, only if no study is named.
    say
        Called with each message for the user.
    progress
        Called with the current activity and the completed fraction of all work.
    """
    started = time.perf_counter()
    studies = find(names)
    runs, seed = count("The number of runs", runs), count("The seed", seed, at_least=0)
    store = Store(out / CHUNKS, say)
    with_audit = not names if audit is None else audit
    bar = _Bar(progress, {"play": 1 - DRAWING - AUDIT * with_audit, "audit": AUDIT * with_audit, "draw": DRAWING})
    auditing = _InBackground(lambda: paper_audit(runs, seed, progress=lambda done, of: bar.move("audit", done / of)))

    def moved(far: Progress) -> None:
        bar.move("play", far.work_done / far.work, f"simulating: {far.done:,} of {far.chunks:,} chunks")
        if with_audit:
            auditing.start()  # only now that the code both need is compiled

    with workers(on) as spread:
        played = play_studies(studies, spread, runs, seed, store, moved)
    judged = judge_claims(played)
    bar.move("play", 1, "auditing the theory")
    audited = auditing.result() if with_audit else None
    backend = f"{on} ({os.cpu_count()} cores)"
    provenance = Provenance(_command(names, runs, seed), runs, seed, backend, 0.0, _versions())
    try:
        files = _write(played, judged, audited, out, provenance, started, bar)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(f"The report cannot be written to {out}: {reason}.") from error
    taken = time.perf_counter() - started
    return Reproduced(played, judged, audited, taken, auditing.seconds, runs, seed, files)


class _Bar:
    """The progress of all parts of the work, each weighted by the time it takes."""

    def __init__(self, progress: Advance, parts: dict[str, float]) -> None:
        self._progress, self._parts = progress, parts
        self._done = dict.fromkeys(parts, 0.0)
        self._what = "compiling"

    def move(self, part: str, fraction: float, what: str | None = None) -> None:
        self._done[part], self._what = fraction, what or self._what
        self._progress(self._what, sum(self._parts[each] * done for each, done in self._done.items()))


class _InBackground:
    """Work on a daemon thread, so that Ctrl-C does not wait for it."""

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
            wait([self._outcome], timeout=0.1)  # wait() without a timeout would block Ctrl-C
        return self._outcome.result()


def _write(
    studies: Sequence[Played],
    judged: Sequence[JudgedClaim],
    audit: Sequence[Section] | None,
    out: Path,
    provenance: Provenance,
    started: float,
    bar: _Bar,
) -> list[Path]:
    """Write figures, data files and, last, the page. Return the page first."""
    figures, files = [], []
    for place, played in enumerate(studies):
        bar.move("draw", place / len(studies), "drawing")
        pictures, wide, narrow = write_figures(played, out)
        beside = [*pictures, *write_tables(played, out)]
        figures.append(StudyFigure(wide, narrow, [file.name for file in beside]))
        files += beside
    report = out / REPORT
    provenance = provenance._replace(seconds=time.perf_counter() - started)
    report.write_text(page(studies, figures, judged, audit, provenance), encoding="utf-8")
    return [report, *files]


def _command(names: Sequence[str], runs: int, seed: int) -> str:
    return " ".join(["partage reproduce", *names, f"--runs {runs} --seed {seed}"])


def _versions() -> str:
    from partage import __version__

    packages = ("numpy", "numba", "joblib", "polars", "matplotlib")
    versions = {"partage": __version__, "Python": platform.python_version()}
    versions |= {name: version(name) for name in packages}
    return ", ".join(f"{name} {number}" for name, number in versions.items())

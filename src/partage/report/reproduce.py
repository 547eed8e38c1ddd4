"""`partage reproduce`: play studies, judge their claims, write the report and what stands beside it."""

import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from partage.errors import FileError
from partage.figures.parallel import workers
from partage.report.draw import write_figures
from partage.report.judged import Judged, judge
from partage.report.page import Drawn, Facts, page
from partage.report.tables import write_tables
from partage.sharing import count
from partage.studies import Played, find, play_studies
from partage.studies.pool import CHUNKS, Progress
from partage.studies.store import Store
from partage.theory.audit import Section, paper_audit
from partage.theory.audit import as_dict as audit_as_dict

REPORT = "report.html"
Say = Callable[[str], None]
Advance = Callable[[str, float], None]
AUDIT, DRAWING = 0.15, 0.1  # parts of the time that these take


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
    with_audit = not names if audit is None else audit
    store = Store(out / CHUNKS, say)
    playing = 1 - DRAWING - (AUDIT if with_audit else 0)

    def played_so_far(far: Progress) -> None:
        progress(f"playing {far.done:,} of {far.chunks:,} chunks", playing * far.work_done / far.work)

    with workers(on) as spread:
        played = play_studies(studies, spread, runs, seed, store, played_so_far)
    judged = judge(played)
    audit_started = time.perf_counter()
    audited = None
    if with_audit:
        audited = paper_audit(
            runs, seed, progress=lambda done, of: progress("auditing the theory", playing + AUDIT * done / of)
        )
    audit_seconds = time.perf_counter() - audit_started
    facts = Facts(_command(names, runs, seed), runs, seed, f"{on} ({os.cpu_count()} cores)", 0.0, _versions())
    try:
        files = _write(played, judged, audited, out, facts, started, progress)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(f"The report cannot be written to {out}: {reason}.") from error
    taken = time.perf_counter() - started
    return Reproduced(played, judged, audited, taken, audit_seconds, runs, seed, files)


def _write(
    studies: Sequence[Played],
    judged: Sequence[Judged],
    audit: Sequence[Section] | None,
    out: Path,
    facts: Facts,
    started: float,
    progress: Advance,
) -> list[Path]:
    """Write figures, tables and, at last, the page; return the page first."""
    drawn, files = [], []
    for place, played in enumerate(studies):
        progress("drawing", 1 - DRAWING * (1 - place / len(studies)))
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

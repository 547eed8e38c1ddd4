"""Claims, progress and the list of studies in a terminal."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from partage.report.format import measured
from partage.report.judged_claims import JudgedClaim, by_study, summary
from partage.simulate.estimate import counted
from partage.studies import FAILS, HOLDS, STUDIES
from partage.studies.catalogue import BEYOND, ONLY_IF_NAMED
from partage.studies.study import Study

COLOURS = {HOLDS: "green", FAILS: "bold red"}


def show_claims(judged: Sequence[JudgedClaim], console: Console) -> None:
    """Print the claims with their verdicts."""
    if judged:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        table.add_column("claim")
        table.add_column("measured", no_wrap=True)
        table.add_column("holds if", no_wrap=True)
        table.add_column("verdict", no_wrap=True)
        for study, claims in by_study(judged):
            table.add_section()
            table.add_row(Text(study, style="bold"))
            for each in claims:
                table.add_row(
                    Text(each.claim.says),
                    measured(each.measured, each.claim.percent),
                    each.claim.rule,
                    Text(each.verdict, style=COLOURS.get(each.verdict, "yellow")),
                )
        console.print(table)
    console.print(Text(summary(judged), style="bold"))
    for each in judged:
        if each.surprising:
            found = HOLDS if each.claim.expected else FAILS
            console.print(Text(f"{each.study}: “{each.claim.says}” {each.verdict}; at full size it {found}.", "red"))


@contextmanager
def progress_bar(console: Console) -> Iterator[Callable[[str, float], None]]:
    """Show a progress bar with the remaining time if the console is a terminal."""
    if not console.is_terminal:
        yield lambda what, fraction: None
        return
    columns = BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("compiling", total=1.0)
        yield lambda what, fraction: bar.update(task, completed=fraction, description=what)


def show_studies(console: Console) -> None:
    """Print the available studies."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("study", no_wrap=True)
    table.add_column("question", ratio=1)
    table.add_column("axis", no_wrap=True)
    table.add_column("claims", justify="right")
    for study in [*STUDIES.values(), *(study for group in BEYOND.values() for study in group)]:
        table.add_row(study.name, study.question, _axis(study), str(len(study.claims)))
    console.print(table)
    names = ", ".join(ONLY_IF_NAMED)
    console.print(f"Run only when named: {names} (includes every study with this prefix).")
    console.print("Run studies with: partage reproduce [STUDY ...]. To write your own, see docs/studies.md.")


def _axis(study: Study) -> str:
    """Return what a study varies, from where to where; places that number games are counted."""
    first, last = study.values[0], study.values[-1]
    if study.axis == "game":
        return counted(len(study.values), "game")
    return f"{first:,} {study.axis}" if first == last else f"{first:,} to {last:,} {study.axis}"

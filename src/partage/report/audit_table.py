"""The audit of the theory as a table in a terminal."""

from collections import Counter

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from partage.theory.audit import Section
from partage.theory.audit_row import HOLDS, NO_VERDICT, NOT_APPLICABLE, VIOLATED, AuditRow, number

WIDE = 118  # from this width on, bound and measured value have columns of their own
STYLES = {HOLDS: "green", VIOLATED: "bold red", NOT_APPLICABLE: "yellow", NO_VERDICT: "cyan"}
LEGEND = (
    "E is the good event: at every broadcast, the mean of an arm's broadcasts is within √(1.5 log T / N_i) of its "
    "true mean; E' is the same for the pulls of 2-UCB alone. Δ is the smallest positive gap, c = (1 + √B)² and "
    "k = (√2 − √1.5)². Slack is the factor by which a bound holds; violations count the runs that exceed it. A bound "
    "on an average is judged by the mean and 3 standard errors, one on a probability by its 99 % interval (in "
    "brackets), all others in every run."
)


def show(sections: list[Section], console: Console | None = None) -> None:
    """Print the audit of one or more games."""
    console = console or Console(highlight=False)
    for section in sections:
        console.print(Text(section.title, style="bold underline"))
        plural = "" if section.runs == 1 else "s"
        console.print(Text(f"{section.about}; {section.runs:,} run{plural}"))
        console.print()
        _lines(section.rows, console)
        console.print()
    console.print(Text(LEGEND, style="dim"))
    console.print()
    console.print(Text(summary([row for section in sections for row in section.rows]), style="bold"))


def summary(rows: list[AuditRow]) -> str:
    """Count the verdicts.

    >>> summary([])
    '0 hold, 0 violated, 0 not applicable, 0 without a verdict.'
    """
    of = Counter(row.verdict for row in rows)
    counted = f"{of[HOLDS]} hold, {of[VIOLATED]} violated, {of[NOT_APPLICABLE]} not applicable"
    return f"{counted}, {of[NO_VERDICT]} without a verdict."


def _lines(rows: list[AuditRow], console: Console) -> None:
    """Print one row per promise and, below it at full width, its statement, premise and note."""
    wide = console.width >= WIDE
    table = [_cells(row, wide) for row in rows]
    heads = ("promise", *(("bound", "measured") if wide else ()), "slack", "violations", "verdict")
    widths = [max(len(line[i]) for line in (heads, *table)) for i in range(len(heads))]
    spare = min(console.width, 120) - sum(widths) - 2 * (len(widths) - 1)
    widths[0] += max(0, spare)
    console.print(_line(heads, widths, "dim", "dim"), overflow="crop", no_wrap=True)
    for row, cells in zip(rows, table, strict=True):
        console.print(_line(cells, widths, "bold", STYLES[row.verdict]), overflow="crop", no_wrap=True)
        for text in _says(row, wide):
            console.print(Padding(text, (0, 0, 0, 2)))


def _cells(row: AuditRow, wide: bool) -> tuple[str, ...]:
    violations = "–" if row.violations is None else f"{row.violations:,} of {row.runs:,}"
    slack = "–" if row.slack is None else f"{number(row.slack)}×"
    middle = (row.bound, row.measured) if wide else ()
    return f"{row.number}, {row.label}", *middle, slack, violations, row.verdict


def _line(cells: tuple[str, ...], widths: list[int], first: str, last: str) -> Text:
    """Align cells in columns: slack and violations to the right, the rest to the left."""
    line = Text()
    for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        right = place in (len(cells) - 3, len(cells) - 2)
        style = first if place == 0 else last if place == len(cells) - 1 else first if first == "dim" else ""
        line.append(cell.rjust(width) if right else cell.ljust(width), style)
        line.append("  " if place < len(cells) - 1 else "")
    return line


def _says(row: AuditRow, wide: bool) -> list[Text]:
    """Return the statement of a promise, its premise and its note."""
    says = f"{row.says[0].upper()}{row.says[1:]}"
    numbers = f" Measured {row.measured}; bound {row.bound}." if not wide and row.bound != "–" else ""
    texts = [Text(f"{says}.{numbers}")]
    if row.premise != "–":
        met = {True: "met", False: "not met", None: "open"}[row.premise_met]
        text = Text(f"Premise {met}: ", "yellow" if row.premise_met is False else "dim")
        texts.append(text.append(f"{row.premise}.", "not dim" if row.premise_met is False else "dim"))
    if row.note:
        texts.append(Text(row.note, "yellow" if row.verdict == NOT_APPLICABLE else "dim"))
    return texts

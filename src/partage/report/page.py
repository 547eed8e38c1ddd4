"""The data of the HTML report. The templates turn it into one self-contained file."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from partage.report.format import estimate, measured, number, seconds
from partage.report.judged_claims import JudgedClaim, by_study, summary
from partage.report.style import DARK, LIGHT, inline_svg
from partage.rules.seeing import with_sees
from partage.studies import FAILS, HOLDS, STUDIES, UNDECIDED, Played
from partage.theory.audit import Section
from partage.theory.audit_row import NO_VERDICT, NOT_APPLICABLE, VIOLATED, AuditRow

HERE = Path(__file__).parent
SIGNS = {  # the CSS class and the sign of each verdict
    HOLDS: ("good", "✓"),
    FAILS: ("bad", "✗"),
    VIOLATED: ("bad", "✗"),
    UNDECIDED: ("open", "?"),
    NOT_APPLICABLE: ("open", "–"),
    NO_VERDICT: ("open", "–"),
}
COLUMNS = {
    "overall_regret": "overall regret",
    "average_regret": "average",
    "max_individual_regret": "worst agent",
    "max_incentive_regret": "worst agent, settled",
    "controller_profit": "profit",
    "broadcasts": "broadcasts",
}


class StudyFigure(NamedTuple):
    """A study's figure as SVG, for wide and for narrow pages, and the names of the files written beside the page."""

    wide: str
    narrow: str
    files: Sequence[str]


class Provenance(NamedTuple):
    """How the report was made."""

    command: str
    runs: int
    seed: int
    on: str
    seconds: float
    versions: str


def page(
    studies: Sequence[Played],
    figures: Sequence[StudyFigure],
    judged: Sequence[JudgedClaim],
    audit: Sequence[Section] | None,
    provenance: Provenance,
) -> str:
    """Return the HTML report."""
    of_paper = any(played.study.name in STUDIES for played in studies)
    return TEMPLATES.get_template("report.html").render(
        subject="the paper’s experiments, reproduced" if of_paper else "beyond the paper",
        of_paper=of_paper,
        summary=summary(judged),
        claims=by_study(judged),
        studies=[_study(played, figure) for played, figure in zip(studies, figures, strict=True)],
        audit=audit,
        provenance=provenance,
    )


def _study(played: Played, figure: StudyFigure) -> dict[str, Any]:
    """Return what the template of a study shows."""
    study = played.study
    title = study.title(played)
    return {
        "name": study.name,
        "question": study.question,
        "title": title,
        "text": study.text(played),
        "games": describe_games(played),
        "seconds": played.seconds,
        "wide": Markup(inline_svg(figure.wide, f"{study.name}-wide", title)),
        "narrow": Markup(inline_svg(figure.narrow, f"{study.name}-narrow", title)),
        "files": figure.files,
        "tables": study.tables(played),
        "headings": ("line", study.axis, *COLUMNS.values(), "2-UCB alone"),
        "rows": _rows(played),
    }


def describe_games(played: Played) -> str:
    """Describe the games of a study in a few sentences."""
    study = played.study
    if study.lines and any(panel.rows for panel in study.panels):  # the rows name the games
        return f"{study.sharing} At most {played.runs:,} runs from seed {played.seed}; the table gives the number."
    if not study.lines:
        runs = max(len(values) for values in played.trials.values())
        return f"{study.sharing} {runs:,} runs of each trial from seed {played.seed}."
    runs = max(result.runs for result in played.results.values())
    first, game = played.result(played.first).game, played.result().game
    agents, horizon = _span(first.agents, game.agents), _span(first.horizon, game.horizon)
    return (
        f"The game: {_arms(game.means)}; {agents} agents; horizon {horizon}. {study.sharing} "
        f"The rule: {_rules(played)}. {runs:,} runs from seed {played.seed}."
    )


def _arms(means: NDArray[np.float64]) -> str:
    if np.all(np.isnan(means)):
        return f"{len(means)} arms with random means"
    if len(means) > 3:
        return f"{len(means)} arms with means {means[0]:g}, {means[1]:g} … {means[-1]:g}"
    return f"{len(means)} arms with means {', '.join(f'{mean:g}' for mean in means)}"


def _rules(played: Played) -> str:
    rules = [line.rule for line in played.study.lines]
    names = ", ".join(dict.fromkeys(with_sees(rule.name, getattr(rule, "sees", None)) for rule in rules))
    balances = sorted({float(rule.balance) for rule in rules if hasattr(rule, "balance")})
    if not balances:
        return names
    return f"{names} with B = {', '.join('∞' if math.isinf(balance) else f'{balance:g}' for balance in balances)}"


def _span(first: int, last: int) -> str:
    return f"{last:,}" if first == last else f"{first:,} to {last:,}"


def _rows(played: Played) -> list[list[str]]:
    """Return every figure of merit at every place on the axis."""
    rows = []
    for line in played.study.lines:
        for at in played.study.places(line):
            result = played.result(at, line.name)
            values = (getattr(result, figure) for figure in COLUMNS)
            alone = played.alone(at, line.name).overall_regret
            cells = [estimate(value) if value else "–" for value in (*values, alone)]
            rows.append([line.name, f"{at:,}", *cells])
    return rows


def _premise(row: AuditRow) -> str:
    """Return a premise and whether it is met; empty where a promise needs none."""
    if row.premise == "–":
        return ""
    return {True: "✓ ", False: "✗ ", None: ""}[row.premise_met] + row.premise


def _unbroken(text: str) -> str:
    """Join a sign and its number by a no-break space.

    >>> len(_unbroken("≤ 5 of 7").split(" "))
    3
    """
    return re.sub(r"([≤≥=×]) ", "\\1\N{NO-BREAK SPACE}", text)


TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals.update(
    css=Markup((HERE / "static" / "report.css").read_text(encoding="utf-8")), light=LIGHT, dark=DARK, signs=SIGNS
)
TEMPLATES.filters.update(measured=measured, number=number, seconds=seconds, premise=_premise, unbroken=_unbroken)

"""The report: one page that needs nothing but itself."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from partage.report.claims import Judged, summary
from partage.report.format import estimate, measured, number, seconds
from partage.report.style import DARK, LIGHT, inline_svg
from partage.studies import FAILS, HOLDS, STUDIES, Played, Table
from partage.theory.audit import Section

SIGNS = {HOLDS: "✓", FAILS: "✗"}
COLUMNS = {
    "overall_regret": "overall regret",
    "average_regret": "average",
    "max_individual_regret": "worst agent",
    "max_incentive_regret": "worst, settled",
    "controller_profit": "profit",
    "broadcasts": "broadcasts",
}


class Drawn(NamedTuple):
    """A study's figure as SVG, for wide and narrow pages, and the names of its files beside the page."""

    wide: str
    narrow: str
    files: Sequence[str]


class Facts(NamedTuple):
    """What the page says of how it came about."""

    command: str
    runs: int
    seed: int
    on: str
    seconds: float
    versions: dict[str, str]


def page(
    studies: Sequence[Played],
    drawn: Sequence[Drawn],
    judged: Sequence[Judged],
    audit: Sequence[Section] | None,
    facts: Facts,
) -> str:
    """Return the whole page."""
    body = [
        _head(judged, facts) if any(each.study.name in STUDIES for each in studies) else _own_head(judged, facts),
        claims_table(judged),
        *(_study(played, figure) for played, figure in zip(studies, drawn, strict=True)),
        audit_tables(audit) if audit else "",
        _facts(facts),
    ]
    return _PAGE.format(style=_STYLE, body="\n".join(body))


# --- the claims -----------------------------------------------------------------------------------------------


def _head(judged: Sequence[Judged], facts: Facts) -> str:
    return f"""<header>
<h1>Learning together, sharing little: the paper’s experiments, played again</h1>
<p>The AAMAS 2025 paper on multi-agent bandits with limited shared information lets many agents find the best of
several options while each shares only what she is willing to share. Here is what it claims, what was measured, and
whether it holds. <strong>{escape(summary(judged))}</strong></p>
<p class="quiet">{facts.runs:,} runs of each game from seed {facts.seed}, in {seconds(facts.seconds)}. Values are
means ± one standard error. A claim holds if it does so by two standard errors.</p>
</header>"""


def _own_head(judged: Sequence[Judged], facts: Facts) -> str:
    """Return the head of a page without any study of the paper."""
    return f"""<header>
<h1>Learning together, sharing little: beyond the paper</h1>
<p>What is claimed, what was measured, and whether it holds. <strong>{escape(summary(judged))}</strong></p>
<p class="quiet">Up to {facts.runs:,} runs of each game from seed {facts.seed}, in {seconds(facts.seconds)}. Values
are means ± one standard error. A claim holds if it does so by two standard errors.</p>
</header>"""


def claims_table(judged: Sequence[Judged]) -> str:
    """Return the table of claims, by study."""
    rows, last = [], None
    for each in judged:
        claim = each.claim
        if each.study != last:
            rows.append(f'<tr class="group"><th colspan="5"><a href="#{each.study}">{each.study}</a></th></tr>')
            last = each.study
        note = f'<span class="quiet">{escape(claim.note)}</span>' if claim.note else ""
        source = "not in it" if claim.source == "Partage" else claim.source
        rows.append(
            f'<tr><td class="what">{escape(claim.says)} {note}</td>'
            f'<td data-label="Paper">{escape(source)}</td>'
            f'<td class="value"><strong>{measured(each.measured, claim.percent)}</strong> '
            f'<span class="quiet">{escape(claim.measures)}</span></td>'
            f'<td data-label="Holds if" class="limit">{claim.rule}</td>'
            f'<td class="end">{_verdict(each.verdict)}</td></tr>'
        )
    return _table("claims", ("Claim", "Paper", "Measured", "Holds if", "Verdict"), rows)


def _verdict(verdict: str) -> str:
    kind = {HOLDS: "good", FAILS: "bad", "violated": "bad"}.get(verdict, "open")
    sign = {"violated": "✗"}.get(verdict, SIGNS.get(verdict, "–" if verdict.startswith("no") else "?"))
    return f'<span class="verdict {kind}">{sign} {escape(verdict)}</span>'


def _table(kind: str, headings: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "\n".join(rows)
    return f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>'


# --- a study --------------------------------------------------------------------------------------------------


def _study(played: Played, figure: Drawn) -> str:
    study = played.study
    title, name = escape(study.title(played)), study.name
    tables = "".join(_shown(table) for table in study.tables(played))
    links = " · ".join(f'<a href="{escape(file)}">{escape(file.rpartition(".")[2])}</a>' for file in figure.files)
    return f"""<section id="{name}">
<p class="quiet name">{name}: {escape(study.question)}</p>
<h2>{title}</h2>
<figure>
<div class="wide">{inline_svg(figure.wide, f"{name}-wide", title)}</div>
<div class="narrow">{inline_svg(figure.narrow, f"{name}-narrow", title)}</div>
<figcaption>{escape(study.text(played))}</figcaption>
</figure>
<p class="quiet">{escape(game_in_words(played))} Bands are two standard errors to either side.
{seconds(played.seconds)} of play. {links}</p>
{tables}<details><summary>All figures</summary><div class="scroll">{_figures(played)}</div></details>
</section>"""


def _shown(table: Table) -> str:
    """Return a table of a study."""
    across = len(table.headings)
    rows = [
        f'<tr class="group"><th colspan="{across}">{escape(row[0])}</th></tr>'
        if len(row) == 1
        else "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in table.rows
    ]
    shown = _table("figures", table.headings, rows)
    return f'<h3>{escape(table.title)}</h3><div class="scroll">{shown}</div>\n'


def game_in_words(played: Played) -> str:
    """Return the games of a study, in a few sentences."""
    study = played.study
    runs = f"{played.runs:,} runs from seed {played.seed}"
    if any(panel.rows for panel in study.panels):  # the rows name the games
        return f"{study.sharing} At most {runs}; the table says how many of each."
    runs = f"{max(result.runs for result in played.results.values()):,} runs from seed {played.seed}"
    first, game = played.result(played.first).game, played.result().game
    means = game.means
    if np.all(np.isnan(means)):
        arms = f"{len(means)} arms with random means"
    elif len(means) > 3:
        arms = f"{len(means)} arms with means {means[0]:g}, {means[1]:g} … {means[-1]:g}"
    else:
        arms = f"{len(means)} arms with means {', '.join(f'{mean:g}' for mean in means)}"
    agents, horizon = _span(first.agents, game.agents), _span(first.horizon, game.horizon)
    rules = {line.rule.name: "" for line in study.lines}
    balances = sorted({float(line.rule.balance) for line in study.lines if hasattr(line.rule, "balance")})
    balance = (
        f" with B = {', '.join('∞' if each == float('inf') else f'{each:g}' for each in balances)}"
        if balances
        else ""
    )
    return (
        f"The game: {arms}; {agents} agents; horizon {horizon}. {study.sharing} "
        f"The rule: {', '.join(rules)}{balance}. {runs}."
    )


def _span(first: int, last: int) -> str:
    return f"{last:,}" if first == last else f"{first:,} to {last:,}"


def _figures(played: Played) -> str:
    """Return every figure of merit at every place, as a table."""
    rows = []
    for line in played.study.lines:
        for at in played.study.places(line):
            result = played.result(at, line.name)
            cells = [line.name, f"{at:,}"]
            for figure in COLUMNS:
                value = getattr(result, figure)
                cells.append(estimate(value) if value else "–")
            cells.append(estimate(played.alone(at, line.name).overall_regret))
            rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    return _table("figures", ("line", played.study.axis, *COLUMNS.values(), "2-UCB alone"), rows)


# --- the audit ------------------------------------------------------------------------------------------------


def _cell(label: str, text: str) -> str:
    """Return a cell; an empty one is left out on a phone."""
    return f'<td data-label="{label}">{escape(text)}</td>' if text else '<td class="none">–</td>'


def audit_tables(sections: Sequence[Section]) -> str:
    """Return what became of each promise of the paper's theory, a table for each game."""
    parts = []
    for section in sections:
        rows = []
        for row in section.rows:
            premise = {True: "✓ ", False: "✗ ", None: ""}[row.premise_met] + row.premise
            over = "" if row.violations is None else f"{row.violations:,} of {row.runs:,}"
            note = f'<span class="quiet">{escape(row.note)}</span>' if row.note else ""
            rows.append(
                f'<tr><td class="what">{escape(row.number)}: {escape(row.says)} {note}</td>'
                f"{_cell('Premise', premise.strip('–'))}{_cell('Bound', row.bound)}{_cell('Measured', row.measured)}"
                f"{_cell('Slack', '' if row.slack is None else f'× {number(row.slack)}')}"
                f"{_cell('Passed in', over)}"
                f'<td class="end">{_verdict(row.verdict)}</td></tr>'
            )
        headings = ("Promise", "Premise", "Bound", "Measured", "Slack", "Passed in", "Verdict")
        parts.append(
            f'<h3>{escape(section.title)}</h3><p class="quiet">{escape(section.about)}; {section.runs:,} runs.</p>'
            + _table("claims audit", headings, rows)
        )
    return f"""<section id="audit">
<h2>What the theory promises, checked on played runs</h2>
<p>Each promise with its premise, its bound, what was measured, how many times over the bound is kept (slack), and in
how many runs it was passed. Where a premise is not met nothing is promised, and the table says what happened all the
same.</p>
{"".join(parts)}
</section>"""


# --- how it came about ----------------------------------------------------------------------------------------


def _facts(facts: Facts) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in facts.versions.items())
    return f"""<footer class="quiet">
<p>Made by <code>{escape(facts.command)}</code> on {escape(facts.on)}, in {seconds(facts.seconds)} of wall time.
{escape(versions)}. The same seed gives the same figures, wherever and by however many they are played.</p>
</footer>"""


def _colours(colours: dict[str, str], paper: str) -> str:
    return "".join(f"--{name}:{code};" for name, code in colours.items()) + f"--paper:{paper};"


_STYLE = (
    f":root{{{_colours(LIGHT, '#ffffff')}--good:#00664a;--bad:#a83c00;color-scheme:light dark}}"
    f"@media (prefers-color-scheme:dark){{:root{{{_colours(DARK, '#161616')}--good:#3fcf9f;--bad:#ff8c42}}}}"
    """
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:1.5rem 1rem 3rem;background:var(--paper);color:var(--ink);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:.2em 0 .5em}
h2{font-size:1.3rem;line-height:1.25;margin:.1em 0 .6em}
h3{font-size:1.05rem;margin:2em 0 .2em}
a{color:var(--blue)}
section{margin-top:3.5rem}
.quiet{color:var(--grey);font-size:.875rem}
.name{margin:0}
td .quiet{display:block;font-size:.8rem;line-height:1.35}
table{border-collapse:collapse;width:100%;font-size:.9rem;line-height:1.35;font-variant-numeric:tabular-nums}
th{text-align:left;font-weight:600;color:var(--grey);font-size:.8rem;border-bottom:2px solid var(--faint)}
th,td{padding:.5rem .75rem .5rem 0;vertical-align:top}
td{border-bottom:1px solid var(--faint)}
.claims strong,.limit{white-space:nowrap}
.group th{padding-top:1.4rem;font-size:.95rem;border-bottom:1px solid var(--faint)}
.verdict{font-weight:600;white-space:nowrap}
.good{color:var(--good)}.bad{color:var(--bad)}.open{color:var(--grey)}
figure{margin:0}
figure svg{display:block;width:100%;height:auto;max-width:46rem}
figcaption{margin-top:.6rem;max-width:46rem}
.narrow{display:none}
.scroll{overflow-x:auto}
.figures td,.figures th{white-space:nowrap;padding-right:1.2rem}
summary{cursor:pointer;color:var(--grey);font-size:.875rem}
code{font-size:.9em}
footer{margin-top:4rem;border-top:1px solid var(--faint)}
@media (max-width:46rem){
.wide{display:none}.narrow{display:block}
h1{font-size:1.4rem}
.claims thead{display:none}
.claims tr{display:grid;grid-template-columns:1fr auto;column-gap:1rem;padding:.6rem 0;
border-bottom:1px solid var(--faint)}
.claims .group{display:block;border:0;padding:0}
.claims td{border:0;padding:.05rem 0;grid-column:1/-1}
.claims .what{grid-column:1;font-weight:600}
.claims .end{grid-column:2;grid-row:1}
.claims td[data-label]::before{content:attr(data-label) ": ";color:var(--grey);font-size:.8rem}
.claims td .quiet{font-weight:400}
.claims .none{display:none}
}
@media print{
:root{"""
    + _colours(LIGHT, "#ffffff")
    + """}
body{max-width:none;font-size:10pt}
figure,tr{break-inside:avoid}
h2,h3,.name{break-after:avoid}
details{display:none}
a{color:inherit;text-decoration:none}
}"""
)

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Partage: the paper’s experiments, played again</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""

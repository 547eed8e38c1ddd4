"""The page of the bench, in the style and with the templates of the report."""

import textwrap
from pathlib import Path

import jinja2
from bench.rows import MET, MISSED, Chart, Row, size_of
from markupsafe import Markup
from matplotlib.ticker import FuncFormatter, LogFormatterMathtext

from partage.report.draw import label_end, separate_labels, svg_of
from partage.report.format import number
from partage.report.page import TEMPLATES
from partage.report.style import LIGHT, house_style, inline_svg, new_figure, set_ticks

OPEN = "open"  # there is a goal, and the measurement does not say whether it is met
SIGNS = {MET: ("good", "✓"), MISSED: ("bad", "✗"), OPEN: ("open", "?")}
COLOURS = ("blue", "orange", "green", "purple", "grey", "ink")
SHAPES = ("o", "s", "D", "^", "v", "P")
WIDE, NARROW = (7.6, 3.9), (4.5, 4.0)
MANY_DECADES = 1e5  # from this ratio of the ends on, ticks are powers of 10


def unit_of(row: Row) -> str:
    """Return the unit of a row as it is printed."""
    return "×" if row.unit == "x" else row.unit


def value_of(row: Row) -> str:
    """Return the measured value with its unit.

    >>> value_of(Row("a", 5.4321)), value_of(Row("b", 20, unit="s", above=True))
    ('5.43 ×', 'over 20.0 s')
    >>> value_of(Row("c", 1e15, unit="steps"))
    '10^15 steps'
    """
    if row.measured is None:
        return "not measured"
    short = size_of(row.measured)
    value = short if "^" in short else number(row.measured)
    return f"{'over ' * row.above}{value} {unit_of(row)}".rstrip()


def spread_of(row: Row) -> str:
    """Return the lowest, the highest and the number of repeats."""
    return f"{number(row.low)} to {number(row.high)}, {row.repeats} repeats"


def goal_of(row: Row) -> str:
    """Return the goal.

    >>> goal_of(Row("a", 1, 8)), goal_of(Row("b", 1, 0.5, True, "GiB"))
    ('at most 8 ×', 'at least 0.5 GiB')
    """
    return f"at {'least' if row.more_is_better else 'most'} {row.goal:,g} {unit_of(row)}"


def summary(rows: list[Row]) -> str:
    """Say how many goals are met."""
    verdicts = [row.verdict or OPEN for row in rows if row.goal is not None]
    if not verdicts:
        return "None of these figures has a goal."
    met, missed, unknown = (verdicts.count(each) for each in (MET, MISSED, OPEN))
    text = f"{met} of {len(verdicts)} goals are met"
    text += f", {missed} missed" if missed else ""
    return text + (f", and {unknown} could not be judged." if unknown else ".")


def page(machine: dict, parts: list[dict], drift: dict) -> str:
    """Return the page.

    Parameters
    ----------
    machine
        Where, when and how it was measured.
    parts
        The name, title, about, seconds, rows and charts of each part.
    drift
        The ratios of earlier releases (`bench.history.drift`).
    """
    shown = [
        {**part, "charts": [_chart(chart, f"{part['name']}-{at}") for at, chart in enumerate(part["charts"])]}
        for part in parts
    ]
    return (
        _environment()
        .get_template("bench.html")
        .render(
            machine=machine,
            parts=shown,
            drift=drift,
            summary=summary([row for part in parts for row in part["rows"]]),
            signs=SIGNS,
        )
    )


def _environment() -> jinja2.Environment:
    own = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    found = TEMPLATES.overlay(loader=jinja2.ChoiceLoader([own, TEMPLATES.loader]))
    found.filters = {**TEMPLATES.filters, "value": value_of, "spread": spread_of, "goal": goal_of, "size": size_of}
    return found


def _chart(chart: Chart, name: str) -> dict:
    """Return what the template shows of a chart."""
    with house_style(name):
        wide, narrow = (
            Markup(inline_svg(svg_of(draw(chart, size)), f"{name}-{width}", chart.title))
            for width, size in (("wide", WIDE), ("narrow", NARROW))
        )
    fields = ("title", "x_axis", "y_axis", "lines", "note")
    return {"wide": wide, "narrow": narrow, **{field: getattr(chart, field) for field in fields}}


def draw(chart: Chart, size: tuple[float, float]):
    """Draw a chart: a line with markers for each line, bars from the lowest to the highest, labels at the ends."""
    figure = new_figure(*size)
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.set_yscale("log")
    for at, line in enumerate(chart.lines):
        if not line.points:
            continue
        colour, shape = LIGHT[COLOURS[at % len(COLOURS)]], SHAPES[at % len(SHAPES)]
        x, y = [point.x for point in line.points], [point.y for point in line.points]
        bars = [[point.y - point.low for point in line.points], [point.high - point.y for point in line.points]]
        axes.errorbar(x, y, yerr=bars, color=colour, marker=shape, elinewidth=1)
        label_end(axes, "\n".join(textwrap.wrap(line.label, 16)), x[-1], y[-1], colour)
    axes.set_title(f"{chart.y_axis} (log scale)", color=LIGHT["grey"])
    axes.set_xlabel(chart.x_axis)
    axes.margins(x=0.03)
    set_ticks(axes)
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        many = high / low > MANY_DECADES
        axis.set_major_formatter(LogFormatterMathtext() if many else FuncFormatter(lambda value, _: size_of(value)))
    figure.draw_without_rendering()
    separate_labels(axes)
    return figure

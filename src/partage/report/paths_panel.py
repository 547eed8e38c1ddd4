"""Draw a panel of paths: one figure of merit against another along a parameter, with a legend below."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from partage.report.style import LIGHT, set_scales, set_ticks
from partage.studies import Panel, Played, Point

BAND = 2  # standard errors on either side
WIDE = 6  # inches


def draw_paths(axes: Axes, panel: Panel, played: Played, legend: bool) -> None:
    """Draw the paths and levels of a panel on logarithmic axes, with the parameter at both ends of each path.

    Points without a label have none: where the axis is the parameter, a label would repeat it.
    """
    set_scales(axes, True, True, None)
    for path in panel.paths(played):
        colour, points = LIGHT[path.colour], path.points
        axes.errorbar(
            [point.x.mean for point in points],
            [point.y.mean for point in points],
            xerr=[BAND * (point.x.stderr or 0) for point in points],
            yerr=[min(BAND * (point.y.stderr or 0), 0.95 * point.y.mean) for point in points],
            fmt="o-",
            color=colour,
            markersize=4,
            linewidth=1.4,
            elinewidth=0.8,
            label=path.label,
        )
        for at, label in _ends(points).items():
            axes.annotate(label, at, xytext=(0, 6), textcoords="offset points", color=colour, fontsize=8, ha="center")
    for level in panel.levels(played):
        axes.axhline(level.at.mean, color=LIGHT[level.colour], linewidth=1, linestyle=":", label=level.label)
    axes.set_title(panel.shows, color=LIGHT["grey"], loc="left")
    axes.set_xlabel(f"{panel.across} (log scales)")
    axes.margins(0.08)
    set_ticks(axes)
    axes.xaxis.set_major_formatter(lambda value, place: _short(value))  # several panels leave little room
    figure = axes.get_figure(root=True)
    assert figure is not None
    handles, labels = axes.get_legend_handles_labels()
    if legend and len(handles) > 1:
        wide = figure.get_figwidth() > WIDE
        figure.legend(handles, labels, loc="outside lower left", ncols=3 if wide else 2, frameon=False, fontsize=8.5)


def _short(value: float) -> str:
    """Return a number in few letters.

    >>> [_short(value) for value in (0.02, 500, 2000)]
    ['0.02', '0.5k', '2k']
    """
    return f"{value:g}" if value < 10 else f"{value / 1000:g}k"


def _ends(points: Sequence[Point]) -> dict[tuple[float, float], str]:
    """Return the labels of the first and the last point of a path; one label if they are at the same place."""
    first, last = points[0], points[-1]
    if not first.label:
        return {}
    ends = [((each.x.mean, each.y.mean), each.label) for each in (first, last)]
    return dict(ends) if ends[0][0] != ends[1][0] else {ends[0][0]: f"{first.label} to {last.label}"}

"""Draw the figure of a study: its panels, with error bands and labels beside the curves."""

import io
import textwrap
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from numpy.typing import NDArray

from partage.report.paths_panel import draw_paths
from partage.report.rows_panel import draw_rows
from partage.report.style import LIGHT, house_style, new_figure, set_scales, set_ticks
from partage.studies import Curve, Panel, Played

BAND = 2  # standard errors on either side
WIDE, NARROW = (7.6, 4.3), (4.5, 4.4)
Floats = NDArray[np.float64]


def draw(played: Played, narrow: bool = False, titled: bool = True) -> Figure:
    """Draw the figure of a study, wide for a page or a slide, or narrow for a phone."""
    panels = played.study.panels
    width, height = NARROW if narrow else WIDE
    rows, columns = (len(panels), 1) if narrow else (1, len(panels))
    figure = new_figure(width + (0.9 if columns > 1 else 0), height * (0.85 * rows if rows > 1 else 1))
    for axes, panel in zip(figure.subplots(rows, columns, squeeze=False).flat, panels, strict=True):
        if panel.rows:
            draw_rows(axes, panel, played)
        elif panel.across:
            draw_paths(axes, panel, played, legend=panel is panels[-1])
        else:
            _panel(axes, panel, played)
    if titled:
        title = "\n".join(textwrap.wrap(played.study.title(played), 38 if narrow else 68))
        figure.suptitle(title, x=0.012, ha="left", fontsize=12.5, fontweight="bold")
    figure.draw_without_rendering()
    for axes in figure.axes:
        separate_labels(axes)
    return figure


def write_figures(played: Played, folder: Path) -> tuple[list[Path], str, str]:
    """Write a study's figure as SVG and PNG. Return the files, and a wide and a narrow SVG without a title."""
    name = played.study.name
    with house_style(name):
        titled = draw(played)
        svg, png = folder / f"{name}.svg", folder / f"{name}.png"
        titled.savefig(svg, metadata={"Date": None}, facecolor="white")
        titled.savefig(png, dpi=160, facecolor="white", metadata={"Software": None})
        wide, narrow = (svg_of(draw(played, narrow=narrow, titled=False)) for narrow in (False, True))
    return [svg, png], wide, narrow


def svg_of(figure: Figure) -> str:
    """Return a figure as SVG, transparent."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    return text.getvalue()


def _panel(axes: Axes, panel: Panel, played: Played) -> None:
    """Draw the curves of one panel, its marks and its labels."""
    labels = []
    set_scales(axes, panel.log_x, panel.log_y, panel.linear_to)
    if not panel.log_y:
        axes.axhline(0, color=LIGHT["grey"], linewidth=0.8)
    for curve in panel.curves:
        x, mean, stderr = _series(panel, curve, played)
        colour = LIGHT[curve.colour]
        if panel.log_y:
            mean = np.where(mean > 0, mean, np.nan)
        low, high = mean - BAND * stderr, mean + BAND * stderr
        if panel.log_y:
            low = np.maximum(low, mean / 20)
        axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
        marker = "" if panel.over_time else "o"
        axes.plot(x, mean, marker=marker, linestyle="--" if curve.dashed else "-", color=colour)
        if not np.all(np.isnan(mean)):
            labels.append((curve.label, x[-1], mean[~np.isnan(mean)][-1], colour))
    scale = " (log scale)" if panel.log_y or panel.linear_to else ""
    axes.set_title(f"{panel.shows}{scale}", color=LIGHT["grey"])
    axes.set_xlabel("step" if panel.over_time else played.study.axis)
    axes.margins(x=0.03)
    set_ticks(axes)
    for label, x_end, y_end, colour in labels:
        label_end(axes, label, x_end, y_end, colour)
    _marks(axes, panel, played)


def label_end(axes: Axes, label: str, x: float, y: float, colour: str) -> None:
    """Write a label beside the end of a curve."""
    axes.annotate(
        label,
        (x, y),
        xytext=(7, 0),
        textcoords="offset points",
        color=colour,
        va="center",
        fontweight="bold",
        fontsize=9.5,
        linespacing=1.05,
        annotation_clip=False,
    )


def _series(panel: Panel, curve: Curve, played: Played) -> tuple[Floats, Floats, Floats]:
    """Return the places, means and standard errors of a curve (0 for a single run)."""
    along = played.over_time if panel.over_time else played.along
    estimates = along(curve.figure, curve.line)
    x = played.study.checkpoints if panel.over_time else played.study.values
    means = np.array([estimate.mean for estimate in estimates], dtype=np.float64)
    stderrs = np.array([estimate.stderr or 0.0 for estimate in estimates])
    played_there = ~np.isnan(means)  # a line may skip places on the axis
    return np.array(x, dtype=np.float64)[played_there], means[played_there], stderrs[played_there]


def _marks(axes: Axes, panel: Panel, played: Played) -> None:
    """Mark places on the horizontal axis with a vertical line and a label to its right, at the bottom or the top."""
    marks = [mark for mark in panel.marks(played) if not np.isnan(mark.at)]
    for place, mark in enumerate(reversed(marks)):
        colour = LIGHT[mark.colour]
        axes.axvline(mark.at, color=colour, linewidth=1, linestyle=":")
        if mark.stderr is not None:
            axes.errorbar(mark.at, 0, xerr=BAND * mark.stderr, fmt="o", color=colour, markersize=8, zorder=3)
        axes.annotate(
            mark.label,
            (mark.at, 0.96 - 0.07 * marks.index(mark) if mark.on_top else 0.05 + 0.08 * place),
            xycoords=("data", "axes fraction"),
            xytext=(8, 0),
            textcoords="offset points",
            color=colour,
            fontsize=9.5,
            va="center",
            bbox={"facecolor": "#ffffff", "edgecolor": "none", "pad": 1.5},
        )


def separate_labels(axes: Axes) -> None:
    """Move the labels beside the curves apart until none covers another."""
    labels = [each for each in axes.texts if isinstance(each, Annotation) and each.get_fontweight() == "bold"]
    heights = [each.get_window_extent().height + 2 for each in labels]
    middles = [(each.get_window_extent().y0 + each.get_window_extent().y1) / 2 for each in labels]
    order = sorted(range(len(labels)), key=lambda at: middles[at])
    wanted = dict(enumerate(middles))
    for _ in range(200):  # push neighbours apart evenly
        moved = False
        for below, above in pairwise(order):
            overlap = (heights[below] + heights[above]) / 2 - (wanted[above] - wanted[below])
            if overlap > 0.05:
                wanted[below] -= overlap / 2
                wanted[above] += overlap / 2
                moved = True
        if not moved:
            break
    points = 72 / axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    for at, label in enumerate(labels):
        label.xyann = (7, (wanted[at] - middles[at]) * points)

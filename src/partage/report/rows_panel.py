"""Draw a panel of rows: one dot per estimate, with a legend below."""

import textwrap

import numpy as np
from matplotlib.axes import Axes

from partage.report.style import LIGHT, set_ticks
from partage.studies import Panel, Played

BAND = 2  # standard errors on either side
WIDE = 6  # inches
LONG_LABEL = 32  # letters; with longer ones, a narrow figure has smaller labels
SHAPES = {  # marker, size, whether it is filled, and its z-order
    "dot": ("o", 6, True, 4),
    "ring": ("o", 11, False, 3),
    "square": ("s", 9, False, 3),
    "diamond": ("D", 5, True, 3),
}


def draw_rows(axes: Axes, panel: Panel, played: Played) -> None:
    """Draw rows of dots from the top down, on a logarithmic scale; with `linear_to`, on both sides of 0."""
    signed = panel.linear_to is not None
    if signed:
        axes.set_xscale("symlog", linthresh=panel.linear_to)
    else:
        axes.set_xscale("log")
    heights = np.arange(len(panel.rows))[::-1]
    for kind in panel.dots(played):
        colour = LIGHT[kind.colour]
        shown = [(at, each) for at, each in zip(heights, kind.estimates, strict=True) if each is not None]
        if not shown:
            continue
        means = [each.mean for _, each in shown]
        reach = [BAND * (each.stderr or 0) for _, each in shown]
        if not signed:
            reach = [min(far, 0.95 * mean) for far, mean in zip(reach, means, strict=True)]
        marker, size, filled, height = SHAPES[kind.shape]
        axes.errorbar(
            means,
            [at for at, _ in shown],
            xerr=reach,
            fmt=marker,
            color=colour,
            markersize=size,
            markerfacecolor=colour if filled else "none",
            elinewidth=None if filled else 0,
            label=kind.label,
            zorder=height,
        )
    axes.axvline(0 if signed else 1, color=LIGHT["ink"], linewidth=1, linestyle=":")
    figure = axes.get_figure(root=True)
    assert figure is not None
    wide = figure.get_figwidth() > WIDE
    shows, small = panel.shows, not wide and any(len(label) > LONG_LABEL for label in panel.rows)
    if small:
        shows = textwrap.fill(shows, 26)
        axes.tick_params(axis="y", labelsize=6.5)
    axes.set_yticks(heights, panel.rows)
    axes.set_ylim(-0.6, len(panel.rows) - 0.4)
    scale = f"log scale beyond ±{panel.linear_to:g}" if signed else "log scale"
    explained = f"({scale}; dotted line: {panel.dotted})"
    if small:
        explained = textwrap.fill(explained, 26)
    axes.set_title(f"{shows}\n{explained}", color=LIGHT["grey"], x=0, loc="left")
    ticks = axes.get_yticks(), [label.get_text() for label in axes.get_yticklabels()]
    set_ticks(axes)
    axes.set_yticks(*ticks)
    axes.tick_params(axis="y", length=0, labelcolor=LIGHT["ink"])
    figure.legend(
        loc="outside lower left",
        ncols=4 if wide else 3,
        frameon=False,
        fontsize=8.5,
        handletextpad=0.1,
        columnspacing=1.0,
    )

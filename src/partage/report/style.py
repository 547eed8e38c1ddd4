"""The house style of every figure: few colours that colour-blind eyes can tell apart, little ink, plain numbers."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

# Okabe and Ito's colours on white; on black, the same hues lighter.
LIGHT = {
    "blue": "#0072b2",
    "orange": "#d55e00",
    "green": "#009e73",
    "purple": "#a65590",
    "ink": "#222222",
    "grey": "#6b6b6b",
    "faint": "#e2e2e2",
}
DARK = {
    "blue": "#5ab4f0",
    "orange": "#ff8c42",
    "green": "#3fcf9f",
    "purple": "#e0a0cc",
    "ink": "#ececec",
    "grey": "#a8a8a8",
    "faint": "#3d3d3d",
}

_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": LIGHT["grey"],
    "axes.labelcolor": LIGHT["ink"],
    "axes.titlecolor": LIGHT["ink"],
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titlepad": 9,
    "axes.unicode_minus": True,
    "text.color": LIGHT["ink"],
    "xtick.color": LIGHT["grey"],
    "ytick.color": LIGHT["grey"],
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LIGHT["faint"],
    "grid.linewidth": 0.7,
    "lines.linewidth": 2.0,
    "lines.markersize": 4.5,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "path",  # the same everywhere, whatever fonts there are
}


@contextmanager
def house_style(salt: str) -> Iterator[None]:
    """Draw in the house style; equal figures become equal files."""
    with mpl.rc_context({**_SETTINGS, "svg.hashsalt": salt}):
        yield


def plain(value: float, _: object = None) -> str:
    """Write a tick: 1,000 rather than 10³."""
    text = f"{value:,.0f}" if abs(value) >= 1 or value == 0 else f"{value:g}"
    return text.replace("-", "−")


def set_scales(axes: Axes, log_x: bool, log_y: bool, linear_to: float | None = None) -> None:
    """Set scales; with `linear_to`, the vertical one is linear up to there and logarithmic beyond, on both sides."""
    axes.set_xscale("log" if log_x else "linear")
    if linear_to is None:
        axes.set_yscale("log" if log_y else "linear")
    else:
        axes.set_yscale("symlog", linthresh=linear_to, linscale=0.5)


def set_ticks(axes: Axes) -> None:
    """Set ticks that say plain numbers; on a logarithmic axis of less than two decades, also at 2 and 5."""
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            subs = (1.0,) if high / low > 100 else (1.0, 2.0, 5.0)
            axis.set_major_locator(LogLocator(10, subs=subs, numticks=12))
            axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(plain))


def inline_svg(svg: str, name: str, says: str) -> str:
    """Make an SVG part of a page: its colours are the page's, its names clash with no other's, nothing is linked."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\s(xmlns(:\w+)?|version)="[^"]*"', "", svg)
    svg = re.sub(r'<svg ([^>]*?)(width|height)="[^"]*" ?', r"<svg \1", svg)
    svg = re.sub(r'<svg ([^>]*?)(width|height)="[^"]*" ?', r"<svg \1", svg)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'(xlink:)?href="#([^"]+)"', rf'href="#{name}-\2"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    for colour, code in LIGHT.items():
        svg = svg.replace(code, f"var(--{colour})")
    svg = svg.replace("#ffffff", "var(--paper)")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{says}" ', 1).strip()


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure on a clear ground."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="none")
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.06)
    return figure

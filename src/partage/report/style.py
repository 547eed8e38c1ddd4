"""The style of all figures and the report: colours safe for colour-blind readers, sparse axes, plain numbers."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

# Okabe and Ito's palette for a white background; for a dark one, lighter shades of the same hues.
LIGHT = {
    "blue": "#0072b2",
    "orange": "#d55e00",
    "green": "#009e73",
    "purple": "#a65590",
    "ink": "#222222",
    "grey": "#6b6b6b",
    "faint": "#e2e2e2",
    "good": "#00664a",
    "bad": "#a83c00",
    "paper": "#ffffff",
}
DARK = {
    "blue": "#5ab4f0",
    "orange": "#ff8c42",
    "green": "#3fcf9f",
    "purple": "#e0a0cc",
    "ink": "#ececec",
    "grey": "#a8a8a8",
    "faint": "#3d3d3d",
    "good": "#3fcf9f",
    "bad": "#ff8c42",
    "paper": "#161616",
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
    "svg.fonttype": "path",  # looks the same whatever fonts are installed
}


@contextmanager
def house_style(salt: str) -> Iterator[None]:
    """Draw in this style. Drawing the same figure twice gives identical files."""
    with mpl.rc_context({**_SETTINGS, "svg.hashsalt": salt}):
        yield


def plain(value: float, _: object = None) -> str:
    """Format a tick label: 1,000 rather than 10³."""
    text = f"{value:,.0f}" if abs(value) >= 1 or value == 0 else f"{value:g}"
    return text.replace("-", "−")


def set_scales(axes: Axes, log_x: bool, log_y: bool, linear_to: float | None = None) -> None:
    """Set the scales. With `linear_to`, the vertical one is linear between -linear_to and linear_to."""
    axes.set_xscale("log" if log_x else "linear")
    if linear_to is None:
        axes.set_yscale("log" if log_y else "linear")
    else:
        axes.set_yscale("symlog", linthresh=linear_to, linscale=0.5)


def set_ticks(axes: Axes) -> None:
    """Label ticks with plain numbers. A logarithmic axis of less than two decades also has ticks at 2 and 5."""
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            subs = (1.0,) if high / low > 100 else (1.0, 2.0, 5.0)
            axis.set_major_locator(LogLocator(10, subs=subs, numticks=12))
            axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(plain))


def inline_svg(svg: str, name: str, label: str) -> str:
    """Prepare an SVG for a page: replace its colours by those of the page, prefix its ids and drop links."""
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
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1).strip()


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure with a transparent background."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="none")
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.06)
    return figure

"""The value of sharing, as a table and as a figure."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from partage.report.format import estimate
from partage.report.style import LIGHT, house_style, new_figure
from partage.simulate.estimate import Estimate
from partage.simulate.in_unit import amount
from partage.simulate.value import MORE, Change, Value
from partage.unit import Unit


def show_value(console: Console, found: Value, unit: Unit | None = None) -> None:
    """Print what one arm more, or one fewer, changes, in the user's unit."""
    named = f", in {unit.name}" if unit and unit.name else ""
    shares = ", ".join(found.shares) or "nothing"
    console.print(Text(f"What sharing is worth to {found.agent}, which shares {shares}", style="bold"))
    how = f"{found.rule}; settlement {found.settlement}; {found.runs:,} paired runs from seed {found.seed}"
    console.print(Text(how, style="dim"), "", sep="\n")
    lost = f"{found.agent} loses {_in(unit, found.regret)} now{named}"
    if found.incentive_regret is not None:
        lost += f", and {_in(unit, found.incentive_regret)} after the settlement"
    console.print(Text(f"{lost}. Gains are regret that is avoided; positive is better."), "", sep="\n")

    settled = found.incentive_regret is not None
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("if it shares")
    for who in (f"gain of {found.agent}", "gain of the others together"):
        table.add_column(who, justify="right")
        if settled:
            table.add_column("after settlement", justify="right")
    for change in found.changes:
        own = [change.own, *([change.own_settled] if change.own_settled else [])]
        others = [change.others, *([change.others_settled] if change.others_settled else [])]
        table.add_row(Text(_words(change)), *(_in(unit, gain) for gain in (*own, *others)))
    console.print(table)


def value_figure(found: Value, unit: Unit | None = None) -> Figure:
    """Draw the gains of the agent and of the others, with two standard errors."""
    with house_style("value"):
        figure = new_figure(9, 1.6 + 0.55 * len(found.changes))
        left, right = figure.subplots(1, 2, sharey=True)
        _draw(left, found, unit, "own")
        _draw(right, found, unit, "others")
        left.set_title(f"Gain of {found.agent}")
        right.set_title("Gain of the others together")
        left.set_yticks(range(len(found.changes)), [_words(change) for change in found.changes][::-1])
        if found.incentive_regret is not None:
            left.legend(frameon=False, fontsize=9)
        figure.supxlabel(f"regret avoided{f', {unit.name}' if unit and unit.name else ''}", fontsize=9)
    return figure


def _draw(axes: Axes, found: Value, unit: Unit | None, whose: str) -> None:
    places = np.arange(len(found.changes))[::-1]
    settled = found.incentive_regret is not None
    shift = 0.12 if settled else 0.0
    for name, label, colour, off in (
        (whose, "before settlement", "blue", shift),
        (f"{whose}_settled", "after settlement", "orange", -shift),
    ):
        gains = [getattr(change, name) for change in found.changes]
        if any(gain is None for gain in gains):
            continue
        factor = 1.0 if unit is None else unit.amount(1.0)
        means = [factor * gain.mean for gain in gains]
        errors = [2 * factor * (gain.stderr or 0.0) for gain in gains]
        axes.errorbar(means, places + off, xerr=errors, fmt="o", color=LIGHT[colour], label=label, capsize=2)
    axes.axvline(0, color=LIGHT["ink"], linewidth=1)


def _words(change: Change) -> str:
    return f"{'also' if change.kind == MORE else 'not'} {change.arm}"


def _in(unit: Unit | None, value: Estimate) -> str:
    return estimate(amount(value, unit))

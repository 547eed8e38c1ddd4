"""A replay in a terminal."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from partage.logs.replay import Replayed
from partage.report.format import estimate
from partage.simulate.estimate import Estimate
from partage.unit import Unit


def show_replay(console: Console, found: Replayed, unit: Unit | None = None) -> None:
    """Print a replay: how many events count, and what they paid, in the user's unit."""
    many = f"{found.pulls:,} of {found.events:,} events"
    console.print(Text(f"{found.rule}, replayed: {many} count, {found.broadcasts:,} of them shared", style="bold"))
    console.print(Text("Their number is the effective sample size.", style="dim"), "", sep="\n")
    rewards = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    rewards.add_column(f"mean reward{f', {unit.name}' if unit and unit.name else ''}")
    rewards.add_column("± standard error", justify="right")
    rewards.add_row(f"with {found.rule}", _in(unit, found.reward) if found.pulls else "–")
    rewards.add_row("in the log", _in(unit, found.logged))
    console.print(rewards, "", sep="\n")
    arms = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    arms.add_column("arm")
    arms.add_column("pulls that count", justify="right")
    for name, pulls in found.by_arm.items():
        arms.add_row(Text(name), f"{pulls:,}")
    console.print(arms)


def _in(unit: Unit | None, value: Estimate) -> str:
    if unit is None:
        return estimate(value)
    error = None if value.stderr is None else unit.amount(value.stderr)
    return estimate(Estimate(unit.value(value.mean), error))

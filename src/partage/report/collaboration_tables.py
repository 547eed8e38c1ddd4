"""Tables of live collaborations, for people: the board and the settlement, from the API's JSON."""

from decimal import Decimal
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def new_table(*headings: str, left: int = 1) -> Table:
    """Return an empty table in the house's form: so many columns to the left, and numbers to the right."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < left else "right")
    return table


def board_table(board: dict[str, Any], console: Console) -> Table:
    """Return the board: each arm's mean and its interval as numbers and as a bar."""
    wide, plain = console.width >= 100, console.options.ascii_only
    width = 21 if wide else 15
    table = new_table("arm", "sharers", "broadcasts", "mean", *(["±"] if wide else []))
    table.add_column("0" + " " * (width - 2) + "1", no_wrap=True, min_width=width)
    table.add_column("")
    for arm in board["arms"]:
        mean, radius = arm["mean"], arm["radius"]
        numbers = ("–", "–") if mean is None else (f"{mean:.3f}", f"{radius:.3f}")
        style = "bold" if arm["name"] == board["leader"] else "dim" if arm["public"] and not arm["active"] else ""
        table.add_row(
            Text(arm["name"]),
            str(arm["sharers"]),
            f"{arm['broadcasts']:,}",
            *numbers[: 1 + wide],
            Text(interval(mean, radius, width, plain)),
            _standing(arm, board),
            style=style,
        )
    return table


def interval(mean: float | None, radius: float | None, width: int = 21, plain: bool = False) -> str:
    """Return a bar from 0 to 1 with the mean and its interval on it.

    Examples
    --------
    >>> interval(0.5, 0.25)
    '     ├────●────┤     '
    >>> interval(1.0, 3.0, plain=True)
    '|-------------------o'
    """
    if mean is None or radius is None:
        return " " * width
    line, dot, begin, end = "-o||" if plain else "─●├┤"
    low, at, high = (round(max(0.0, min(1.0, place)) * (width - 1)) for place in (mean - radius, mean, mean + radius))
    signs = [" "] * width
    signs[low : high + 1] = line * (high + 1 - low)
    signs[low], signs[high], signs[at] = begin, end, dot
    return "".join(signs)


def _standing(arm: dict[str, Any], board: dict[str, Any]) -> str:
    if not arm["public"]:
        return "private"
    if not arm["active"]:
        return "ruled out"
    if arm["name"] == board["leader"]:
        return "leads"
    return "unshared" if not arm["sharers"] else "explored" if arm["open"] else ""


def settlement_table(found: dict[str, Any]) -> Table:
    """Return a settlement, amounts in money."""
    rows, amounts = found["rows"], ("compensation", "charge", "net")
    largest = max((abs(row[name]) for row in rows for name in amounts), default=0)
    digits = 2 if largest >= 1_000_000 or not largest else 6
    table = new_table("agent", "explore", "commit", "gets", "pays", "net")
    for row in rows:
        pulls = (f"{row['explore']:,}", f"{row['commit']:,}")
        table.add_row(Text(row["name"]), *pulls, *(money(row[name], digits) for name in amounts))
    if len(rows) > 1:
        table.add_section()
        totals = [sum(row[name] for row in rows) for name in ("explore", "commit", *amounts)]
        table.add_row(
            "together", *(f"{pulls:,}" for pulls in totals[:2]), *(money(total, digits) for total in totals[2:])
        )
        table.add_row("the controller's profit", "", "", "", "", money(found["profit"], digits))
    return table


def money(micro_units: int, digits: int = 6) -> str:
    """Return an amount of micro-units in units.

    Examples
    --------
    >>> money(-1_234_567_890), money(-4_000, 2)
    ('-1,234.567890', '0.00')
    """
    amount = round(Decimal(micro_units).scaleb(-6), digits)
    return f"{amount if amount else abs(amount):,.{digits}f}"


def show_settlement(console: Console, found: dict[str, Any]) -> None:
    """Print a settlement and what there is to say of it."""
    now = "" if found["closed"] else ", if it closed now"
    console.print(Text(f"Settlement {found['settlement']}{now}", style="bold"))
    console.print(settlement_table(found))
    if not found["viable"]:
        console.print("Not viable: everyone pays her ceiling, and the controller bears the rest.")
    if not found["finished"]:
        console.print("More than one arm is left; what was lost on those is not covered.")

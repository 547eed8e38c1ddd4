"""Live collaborations in a terminal: the list, the board, the settlement, and the verdict on a ledger."""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from partage.ledger.messages import ArmOnBoard, BoardView, CollaborationView, SettlementRow, SettlementView
from partage.ledger.terms import amount
from partage.ledger.views import rule_in_words

if TYPE_CHECKING:
    from partage.ledger.verify import Verified


def _new_table(*headings: str, left: int = 1) -> Table:
    """Return an empty table whose first columns are aligned to the left and whose numbers to the right."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < left else "right")
    return table


# --- collaborations -------------------------------------------------------------------------------------------


def collaborations_table(found: Sequence[CollaborationView]) -> Table:
    """Return a table of collaborations."""
    table = _new_table("id", "name", "arms", "agents", "version", "rule", "", left=2)
    for one in found:
        counts = (f"{number:,}" for number in (len(one.arms), one.agents, one.version))
        table.add_row(one.id, Text(one.name), *counts, one.rule, "closed" if one.closed else "open")
    return table


WAITS_LONG = 10  # seconds that a claim is open before it is named


def show_collaboration(console: Console, about: CollaborationView, board: BoardView, now: int) -> None:
    """Print a collaboration's configuration and its board, at this time in milliseconds."""
    broadcasts = sum(arm.broadcasts for arm in board.arms)
    prepaid = "" if about.prepaid is None else f", {f'{amount(about.prepaid)} {about.currency}'.strip()} prepaid"
    config = f"settlement {about.settlement}{prepaid}; horizon {about.horizon:,}"
    console.print(Text(about.name + (", closed" if about.closed else ""), style="bold"))
    console.print(Text(rule_in_words(about.rule, about.balance, about.parameters), style="dim"))
    console.print(Text(f"{config}; {about.agents:,} agents; {broadcasts:,} broadcasts", style="dim"))
    console.print("", board_table(board, console), sep="\n")
    for sentence in sentences(board, now):
        console.print(Text(sentence))


def sentences(board: BoardView, now: int) -> list[str]:
    """Return whom the board waits for at this time, in milliseconds, what is left out of it, and who differs."""
    waited = [(claim, max(0, now - claim.since) // 1000) for claim in board.waiting]
    stalled = [arm for arm in board.arms if arm.stalled and arm.active and not board.closed]
    return [
        *(
            f"Waiting for {claim.name}: {claim.arm}, since {_duration(seconds)}."
            for claim, seconds in waited
            if seconds >= WAITS_LONG
        ),
        *(
            f"No other arm waits for {arm.name}: nobody who shares it has pulls left."
            if arm.used_up
            else f"{arm.name} is left out of the balance until it is reported: "
            f"its last {arm.lapses:,} claims ended without a report."
            for arm in stalled
        ),
        *_ends(board),
        *(f"The operator set the broadcasts of {one.name} aside: {one.reason}" for one in board.set_aside),
        *(one.text for one in board.disagreements),
        *board.notes,
    ]


def _ends(board: BoardView) -> Iterator[str]:
    """Say until when members will go on by the paces that they declared."""
    if board.ends is not None and not board.closed:
        day = f"{datetime.fromtimestamp(board.ends / 1000, UTC):%Y-%m-%d %H:%M} UTC"
        yield f"By the paces that they declared, those who share arms will have made all their pulls by {day}."


def _duration(seconds: int) -> str:
    """Return a time in words.

    >>> _duration(1), _duration(125), _duration(7200)
    ('1 second', '2 minutes', '2 hours')
    """
    unit, length = next(one for one in (("hour", 3600), ("minute", 60), ("second", 0)) if seconds >= one[1])
    number = seconds // max(1, length)
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


# --- the board ------------------------------------------------------------------------------------------------


def board_table(board: BoardView, console: Console) -> Table:
    """Return the board: each arm's mean and its confidence band, as numbers and as a bar."""
    wide, plain = console.width >= 100, console.options.ascii_only
    width = 21 if wide else 15
    table = _new_table("arm", "sharers", "broadcasts", "mean", *(["±"] if wide else []))
    table.add_column("0" + " " * (width - 2) + "1", no_wrap=True, min_width=width)
    table.add_column("")
    for arm in board.arms:
        numbers = ("–", "–") if arm.mean is None else (f"{arm.mean:.3f}", f"{arm.radius:.3f}")
        style = "bold" if arm.name == board.leader else "dim" if arm.public and not arm.active else ""
        table.add_row(
            Text(arm.name),
            str(arm.sharers),
            f"{arm.broadcasts:,}",
            *numbers[: 1 + wide],
            Text(interval(arm.mean, arm.radius, width, plain)),
            _standing(arm, board),
            style=style,
        )
    return table


def interval(mean: float | None, radius: float | None, width: int = 21, plain: bool = False) -> str:
    """Return a bar from 0 to 1 with the mean and its confidence band on it.

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


def _standing(arm: ArmOnBoard, board: BoardView) -> str:
    if not arm.public:
        return "private"
    if not arm.active:
        return "eliminated"
    if arm.name == board.leader:
        return "leads"
    if arm.sharers and not arm.settleable:
        return "too few share it"
    return "unshared" if not arm.sharers else "explored" if arm.open else ""


# --- the settlement -------------------------------------------------------------------------------------------


def show_settlement(console: Console, found: SettlementView, currency: str = "") -> None:
    """Print a settlement in its currency, and say where it is not viable or not finished."""
    now = "" if found.closed else ", if it closed now"
    unit = f", in {currency}" if currency else ""
    console.print(Text(f"Settlement {found.settlement}{unit}{now}", style="bold"))
    console.print(settlement_table(found.rows, found.profit))
    for sentence in _limits(found):
        console.print(sentence)
    if not found.finished:
        console.print("More than one arm is left; what was lost on those is not covered.")
    if found.out is not None:
        console.print(Text(found.out.text))
    for one in found.disagreements:
        console.print(Text(one.text))
    if found.disagreements:
        console.print("Rates are the same for all members, including those who see arms differently.")


def _limits(found: SettlementView) -> Iterator[str]:
    """Yield what limits the amounts, in sentences."""
    if found.prepaid:
        yield f"Everyone prepaid {_short(found.prepaid)} and gets back that and the net; nobody can lose more."
    if found.scale < 1:
        yield f"Not all compensations can be paid: {_percent(found.scale)} of each is."
    elif not found.viable:
        yield "Not viable: every agent pays its ceiling, and the controller pays the rest."
    if found.underwriting is not None:
        done = "keeps" if found.profit >= 0 else "loses"
        most = _short(found.underwriting)
        yield f"The operator {done} {_short(abs(found.profit))}; the most that it can lose is {most}."


def _short(micro_units: int) -> str:
    """Return an amount without zeros at its end.

    >>> _short(60_000_000), _short(1_500_000), _short(3)
    ('60', '1.5', '0.000003')
    """
    return money(micro_units).rstrip("0").rstrip(".")


def _percent(fraction: float) -> str:
    """Return a fraction of compensations: never 100 % unless it is.

    >>> _percent(0.8333), _percent(0.99999)
    ('83.3 %', '99.9 %')
    """
    return f"{math.floor(1000 * fraction) / 10:.1f} %"


def settlement_table(rows: Sequence[SettlementRow], profit: int = 0) -> Table:
    """Return the rows of a settlement, amounts in money; with totals and profit if there are several."""
    amounts = ("compensation", "charge", "net")
    largest = max((abs(getattr(row, name)) for row in rows for name in amounts), default=0)
    digits = 2 if largest >= 1_000_000 or not largest else 6
    table = _new_table("agent", "explore", "commit", "gets", "pays", "net")
    for row in rows:
        made = (f"{row.explore:,}", f"{row.commit:,}")
        table.add_row(Text(row.name), *made, *(money(getattr(row, name), digits) for name in amounts))
    if len(rows) > 1:
        table.add_section()
        totals = [sum(getattr(row, name) for row in rows) for name in ("explore", "commit", *amounts)]
        table.add_row(
            "total", *(f"{pulls:,}" for pulls in totals[:2]), *(money(total, digits) for total in totals[2:])
        )
        table.add_row("the controller's profit", "", "", "", "", money(profit, digits))
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


# --- a ledger -------------------------------------------------------------------------------------------------


def show_verdict(console: Console, file: Path, found: "Verified", settlement: bool = True) -> None:
    """Print what verifying a ledger found, with the settlement or without."""
    if found.problem is not None:
        console.print(Text(f"{file} is not valid. {found.problem}", style="bold"), soft_wrap=True)
        if found.problem.line is not None:
            console.print(f"The {found.lines:,} lines before it are valid.")
        return
    whole = "the whole ledger" if found.whole else "an agent's copy"
    console.print(Text(f"{file} is valid: {whole}, {found.lines:,} lines.", style="bold"), soft_wrap=True)
    for title, sentences in (("Checked:", found.checked), ("Taken on trust:", found.trusted)):
        console.print(title)
        for sentence in sentences:
            console.print(Padding(Text(f"- {sentence}"), (0, 0, 0, 2)))
    if not settlement:
        return
    if found.settlement is not None:
        console.print()
        show_settlement(console, found.settlement)
    elif found.row is not None:
        console.print()
        console.print(settlement_table([found.row]))

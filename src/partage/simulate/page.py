"""Results for people: one page of tables and sentences, as text in a terminal and as HTML in a notebook."""

import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH = 118  # of a page as text, if no terminal says how wide it is


class Grid(NamedTuple):
    """A table: headings, rows, how many columns are words, and the rows that begin a new part."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    parts: Sequence[int] = ()


class Page(NamedTuple):
    """A title, a line below it, and blocks: a table, or sentences that belong together."""

    title: str
    subtitle: str
    blocks: Sequence[Grid | Sequence[str]]

    def show(self, console: "Console") -> None:
        """Print the page."""
        from rich.text import Text

        console.print(Text(self.title, style="bold"))
        console.print(Text(self.subtitle, style="dim"))
        for block in self.blocks:
            console.print()
            if isinstance(block, Grid):
                console.print(_table(block))
            else:
                console.print(*(Text(sentence) for sentence in block), sep="\n")

    def text(self) -> str:
        """Return the page as plain text.

        >>> print(Page("Arms", "of one game", [Grid(("arm", "mean"), [("pens", "0.9")])]).text())
        Arms
        of one game
        <BLANKLINE>
        arm    mean
        ───────────
        pens    0.9
        """
        from rich.console import Console

        console = Console(file=io.StringIO(), width=WIDTH, highlight=False, color_system=None, force_jupyter=False)
        self.show(console)
        printed = console.file.getvalue()  # type: ignore[attr-defined]
        return "\n".join(line.rstrip() for line in printed.splitlines())

    def html(self) -> str:
        """Return the page as HTML, for notebooks; everything in it is escaped.

        >>> Page("Arms", "", [["<b> is a name."]]).html()
        '<div><p><strong>Arms</strong><br></p><p>&lt;b&gt; is a name.</p></div>'
        """
        parts = [f"<p><strong>{escape(self.title)}</strong><br>{escape(self.subtitle)}</p>"]
        for block in self.blocks:
            if isinstance(block, Grid):
                parts.append(_html(block))
            else:
                parts.append(f"<p>{'<br>'.join(escape(sentence) for sentence in block)}</p>")
        return f"<div>{''.join(parts)}</div>"


def _table(grid: Grid) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for place, heading in enumerate(grid.headings):
        table.add_column(Text(heading), justify="left" if place < grid.words else "right")
    for place, row in enumerate(grid.rows):
        if place in grid.parts:
            table.add_section()
        table.add_row(*(Text(cell) for cell in row))
    return table


def _html(grid: Grid) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        aligned = ("left" if place < grid.words else "right" for place in range(len(cells)))
        inside = (
            f'<{tag} style="text-align:{align}">{escape(cell)}</{tag}>'
            for cell, align in zip(cells, aligned, strict=True)
        )
        return f"<tr>{''.join(inside)}</tr>"

    body = "".join(row(cells, "td") for cells in grid.rows)
    return f"<table><thead>{row(grid.headings, 'th')}</thead><tbody>{body}</tbody></table>"

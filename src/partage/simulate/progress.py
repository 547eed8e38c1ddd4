"""The progress bar of a sweep: games that are done, left and failed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from partage.simulate.sweep import SweepProgress


@contextmanager
def sweep_bar() -> Iterator[Callable[["SweepProgress"], None]]:
    """Show a progress bar on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    text = "{task.fields[done]:,} done, {task.fields[left]:,} left, {task.fields[failed]:,} failed"
    columns = TextColumn("playing"), BarColumn(), TextColumn(text), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task("", total=None, done=0, left=0, failed=0)
        yield lambda now: bar.update(shown, completed=now.done + now.failed, total=sum(now), **now._asdict())

"""What all commands share: errors as one sentence, Ctrl-C that is heard, and a bar where it takes a while."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

import typer
from typer.core import TyperGroup

from partage.errors import PartageError

T = TypeVar("T")

PATIENCE = 2.0  # seconds before a progress bar appears
INTERRUPTED = 130  # what a shell expects after Ctrl-C


class OneSentence(TyperGroup):
    """The commands of Partage, with every error as one sentence."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command that is asked for, and exit."""
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
        except PartageError as error:
            code = complain(str(error))
        except typer.TyperException as error:
            context = getattr(error, "ctx", None)
            command = context.command_path if context else "partage"
            code = complain(f"{error.format_message().rstrip('.')} (see {command} --help).")
        except MemoryError:
            code = complain("The game does not fit into memory; it must have fewer agents or shares.")
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)


def complain(sentence: str) -> int:
    """Print an error and return its exit code."""
    typer.echo(" ".join(sentence.split()), err=True)
    return 2


def interruptible(work: Callable[[], T]) -> T:
    """Do the work on a thread of its own: while compiled code plays on the main thread, Ctrl-C would not be heard."""
    outcome: Future[T] = Future()

    def do() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=do, daemon=True).start()
    while not outcome.done():
        wait([outcome], timeout=0.1)  # a wait without end would not hear it either
    return outcome.result()


def load(room: str) -> None:
    """Import a room that computes: in the midst of a compiled module's import, Ctrl-C would be an ImportError."""
    interruptible(lambda: import_module(f"partage.{room}"))


@contextmanager
def progress_bar(doing: str = "playing", then: str = "playing 2-UCB alone") -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error, on a terminal only, once it has taken a while."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(doing, total=None)

    def advance(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total, description=doing if done < total else then)

    timer = threading.Timer(PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield advance
    finally:
        timer.cancel()
        timer.join()
        bar.stop()

"""What all commands share: errors as one sentence, interruptible work, progress bars and JSON."""

import json
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
INTERRUPTED = 130  # the exit code that a shell expects after Ctrl-C
COMPILING = "Compiling the engine; this happens once."


class OneSentence(TyperGroup):
    """Partage's commands, with every error as one sentence."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command and exit."""
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
        except PartageError as error:
            code = complain(str(error))
        except typer.TyperException as error:
            context = getattr(error, "ctx", None)
            command = context.command_path if context else "partage"
            code = complain(f"{error.format_message().rstrip('.')} (see {command} --help).")
        except MemoryError:
            code = complain("The game does not fit into memory; use fewer agents or shares.")
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)


def complain(sentence: str) -> int:
    """Print an error and return its exit code."""
    typer.echo(" ".join(sentence.split()), err=True)
    return 2


def as_json(found: Any) -> str:
    """Return JSON for machines; non-ASCII characters are escaped unless standard output is UTF-8."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return json.dumps(found, indent=2, allow_nan=False, ensure_ascii=not unicode)


def interruptible(work: Callable[[], T]) -> T:
    """Run the work in a separate thread, so that Ctrl-C works while compiled code runs."""
    outcome: Future[T] = Future()

    def do() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=do, daemon=True).start()
    while not outcome.done():
        wait([outcome], timeout=0.1)  # a wait without a timeout would not notice Ctrl-C either
    return outcome.result()


def load(room: str) -> None:
    """Import a room with compiled code; during such an import, Ctrl-C would otherwise become an ImportError."""
    interruptible(lambda: import_module(f"partage.{room}"))


def announce_compilation() -> None:
    """Say on standard error that the engine compiles, if it has not been compiled yet."""
    from partage.compiled import is_cold

    if is_cold():
        typer.echo(COMPILING, err=True)


@contextmanager
def progress_bar(doing: str = "playing", then: str = "playing 2-UCB alone") -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on standard error, if that is a terminal and the work takes a while."""
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

"""The demo: a controller, a street of bakers who play over HTTP, a settlement, and a ledger that is verified."""

import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from partage.cli.terminal import interruptible, load
from partage.errors import FileError, InputError, PartageError

if TYPE_CHECKING:
    from rich.console import Console

    from partage.client.operator import Operator

START = 60.0  # seconds that the controller has to start; it takes one or two


def demo(
    fast: Annotated[
        bool, typer.Option("--fast", help="Do not wait for anybody to watch, and stop at the end.")
    ] = False,
    pace: Annotated[
        float, typer.Option(metavar="P", help="Pulls of each baker per second, while they explore.")
    ] = 1.5,
    minutes: Annotated[
        float, typer.Option(metavar="M", help="The longest time to play, whether all is explored or not.")
    ] = 4.0,
    rule: Annotated[str, typer.Option(metavar="RULE", help="balanced-glr, balanced-etc or kl-etc.")] = "balanced-glr",
    port: Annotated[int, typer.Option(metavar="PORT", help="0 is any that is free.")] = 0,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep database, log and ledgers here; else they are gone at the end."),
    ] = None,
) -> None:
    """Watch a dozen bakers find the best flour supplier together: about three minutes, live in the browser too.

    It starts a controller, plays over HTTP with the real client, closes, settles, and verifies the ledger. Then it
    goes on serving until Ctrl-C.

    [bold]partage demo --pace 3[/bold]
    """
    if not 0 < pace <= 1000 or not 0 < minutes <= 600:
        raise InputError("The pace must be above 0 and at most 1,000, and the minutes above 0 and at most 600.")
    import asyncio

    from rich.console import Console

    console = Console(highlight=False)
    console.print("Starting a controller …")
    with ExitStack() as opened:
        place = _place(opened, folder)
        url, token, process = opened.enter_context(_controller(place, port))
        from partage.client.operator import Operator
        from partage.demo.bakers import NEW, Street

        operator = opened.enter_context(Operator(url, token))
        made = operator.post("/collaborations", {**NEW, "rule": rule})
        logging.getLogger("partage.client").setLevel(logging.ERROR)  # warnings would tear the live table apart
        street = Street(operator, made["id"], place, None if fast else pace, 60 * minutes)
        head, agent = asyncio.run(street.play(console, made["invites"], token))
        _verify(console, operator, made["id"], place, head, agent)
        if not fast:
            console.print(
                f"\nThe controller goes on at {url} until Ctrl-C; its files are in {place}.", soft_wrap=True
            )
            _stay(process)


def _place(opened: ExitStack, folder: Path | None) -> Path:
    """Return an empty folder: a temporary one, or a new one to keep."""
    if folder is None:
        return Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="partage-demo-")))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "partage.db").exists():
            raise InputError(f"The folder {folder} has a demo already; name another.")
    except OSError as error:
        raise FileError(f"The folder {folder} cannot be used: {error.strerror}.") from None
    return folder.resolve()


@contextmanager
def _controller(folder: Path, port: int) -> Iterator[tuple[str, str, "subprocess.Popen[str]"]]:
    """Run a controller as a process of its own: its address, the operator's token, the process."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PARTAGE_")}
    env["PARTAGE_DATABASE"] = str(folder / "partage.db")
    with _told_to_stop(), open(folder / "controller.log", "w+", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "partage.cli", "serve", f"--port={port}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=env,
            start_new_session=True,  # Ctrl-C is for us; then we end it
        )
        try:
            load("demo.bakers")  # in the meantime
            assert process.stdout is not None
            printed = interruptible(lambda: "".join(process.stdout.readline() for _ in range(3)))  # type: ignore[union-attr]
            address, token = (re.search(f"{words} (\\S+)", printed) for words in ("Partage is at", "this once:"))
            if address is None or token is None:
                process.wait(START)
                log.seek(0)
                said = log.read().strip().splitlines()
                raise PartageError(said[-1] if said else "The controller did not start.")
            _wait_until_ready(address[1])
            yield address[1], token[1], process
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _wait_until_ready(url: str) -> None:
    import httpx

    until = time.monotonic() + START
    while time.monotonic() < until:
        try:
            if httpx.get(f"{url}/ready").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise PartageError("The controller did not become ready.")


@contextmanager
def _told_to_stop() -> Iterator[None]:
    """Take a closed terminal and SIGTERM like Ctrl-C: the controller must not stay behind."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] is not signal.SIG_IGN:  # nohup
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, before[number])


def _stay(process: "subprocess.Popen[str]") -> None:
    """Wait until Ctrl-C, which is the good end here."""
    try:
        while process.poll() is None:
            time.sleep(0.2)
    except KeyboardInterrupt:
        return
    raise PartageError("The controller ended by itself.")


# --- the end --------------------------------------------------------------------------------------------------


def _verify(console: "Console", operator: "Operator", id: str, folder: Path, head: str, agent: str) -> None:
    """Verify the operator's ledger and a member's copy, as `partage verify` does."""
    from partage.cli.collaboration import save
    from partage.cli.verify import say, verified

    whole, copy = folder / "operator.ndjson", folder / "morel.ndjson"
    save(operator.lines(f"/collaborations/{id}/ledger"), whole)
    for file, kept, whose in ((whole, None, None), (copy, head, agent)):
        flags = "" if kept is None else f" --head {kept} --agent {whose}"
        console.print(f"\n$ partage verify {file}{flags}", style="dim", markup=False, soft_wrap=True)
        found = verified(file, kept, whose)
        say(console, file, found, settlement=kept is not None)
        if not found.ok:
            raise PartageError("The demo's own ledger does not verify; this is a defect of Partage.")

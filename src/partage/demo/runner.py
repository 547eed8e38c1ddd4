"""The demo: a controller in its own process, bakers that play over HTTP, a settlement, and a verified ledger."""

import asyncio
import logging
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from rich.console import Console

from partage.client import Operator
from partage.demo.bakers import BAKERS, HORIZON, LATE_CLAIMS, NAME, PREPAID, SUPPLIERS, VALUE, Bakers
from partage.environment import for_child
from partage.errors import FileError, InputError, PartageError
from partage.ledger.verify import verify
from partage.report.collaboration_tables import show_verdict

CLAIM_SECONDS = 4.0  # with trouble: how long a claim may take
START = 60.0  # seconds that the controller has to start; it takes one or two


class Controller(NamedTuple):
    """A running controller: its address, the operator's token, and its process."""

    url: str
    token: str
    process: "subprocess.Popen[str]"


def run_demo(
    console: Console,
    *,
    rule: str | None,
    pace: float | None,
    seconds: float,
    port: int,
    folder: Path | None,
    trouble: bool = False,
) -> None:
    """Run the demo: play, close, settle, verify. With a pace, it then keeps serving until Ctrl-C.

    Parameters
    ----------
    console
        Where to print.
    rule
        The rule; None takes the default of a collaboration.
    pace
        Pulls of each baker per second while they explore; None means as fast as possible.
    seconds
        The longest time to play.
    port
        The controller's port; 0 picks a free one.
    folder
        Where database, log and ledgers go; None means a temporary folder.
    trouble
        Whether one baker is late, one differs and one lies.
    """
    console.print("Starting a controller …")
    with ExitStack() as opened:
        place = _place(opened, folder)
        controller = opened.enter_context(_controller(place, port))
        operator = opened.enter_context(Operator(controller.url, controller.token))
        # One more invite, for the person who watches.
        terms: dict[str, Any] = {"rule": rule, "value": VALUE, "prepaid": PREPAID, "invites": len(BAKERS) + 1}
        claim_seconds = CLAIM_SECONDS if pace else CLAIM_SECONDS / 8
        if trouble:
            terms["claim_seconds"] = claim_seconds
        made = operator.create(NAME, list(SUPPLIERS), HORIZON, **terms)
        opened.enter_context(_without_warnings(logging.getLogger("partage.client")))
        late = LATE_CLAIMS * claim_seconds if trouble else None
        bakers = Bakers(operator, made.id, place, pace, seconds, late)
        head, agent = asyncio.run(bakers.play(console, made.invites, controller.token))
        whole = place / "operator.ndjson"
        operator.ledger(made.id, whole)
        _verify(console, whole)
        _verify(console, bakers.copy, head, agent)
        if pace is not None:
            said = f"The controller keeps running at {controller.url} until Ctrl-C; its files are in {place}."
            console.print(f"\n{said}", soft_wrap=True)
            _stay(controller.process)


@contextmanager
def _without_warnings(logger: logging.Logger) -> Iterator[None]:
    """Silence warnings until the end of the block: they would break the live table."""
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _place(opened: ExitStack, folder: Path | None) -> Path:
    """Return an empty folder: a temporary one, or a new one to keep."""
    if folder is None:
        return Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="partage-demo-")))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "partage.db").exists():
            raise InputError(f"The folder {folder} already holds a demo; use another.")
    except OSError as error:
        raise FileError(f"The folder {folder} cannot be used: {error.strerror}.") from None
    return folder.resolve()


# --- the controller -------------------------------------------------------------------------------------------


@contextmanager
def _controller(folder: Path, port: int) -> Iterator[Controller]:
    """Run a controller until the end of the block."""
    with _stop_signals_interrupt(), open(folder / "controller.log", "w+", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "partage.cli", "serve", f"--port={port}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=for_child(DATABASE=str(folder / "partage.db")),
            start_new_session=True,  # Ctrl-C is for this process, which then ends the controller
        )
        try:
            assert process.stdout is not None
            printed = "".join(process.stdout.readline() for _ in range(3))
            address, token = (re.search(f"{words} (\\S+)", printed) for words in ("Partage is at", "once:"))
            if address is None or token is None:
                process.wait(START)
                log.seek(0)
                said = log.read().strip().splitlines()
                raise PartageError(said[-1] if said else "The controller did not start.")
            _wait_until_ready(address[1])
            yield Controller(address[1], token[1], process)
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
    until = time.monotonic() + START
    while time.monotonic() < until:
        try:
            if httpx.get(f"{url}/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise PartageError("The controller did not become ready.")


@contextmanager
def _stop_signals_interrupt() -> Iterator[None]:
    """Treat SIGTERM and a closed terminal like Ctrl-C, so that the controller does not outlive the demo."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] is not signal.SIG_IGN:  # as nohup sets it
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, before[number])


def _stay(process: "subprocess.Popen[str]") -> None:
    """Wait until Ctrl-C, which is the normal way to end here."""
    try:
        while process.poll() is None:
            time.sleep(0.2)
    except KeyboardInterrupt:
        return
    raise PartageError("The controller stopped unexpectedly.")


# --- the ledger -----------------------------------------------------------------------------------------------


def _verify(console: Console, file: Path, head: str | None = None, agent: str | None = None) -> None:
    """Verify a ledger, as `partage verify` does."""
    options = "" if head is None else f" --head {head} --agent {agent}"
    console.print(f"\n$ partage verify {file}{options}", style="dim", markup=False, soft_wrap=True)
    found = verify(file, head, agent=agent)
    show_verdict(console, file, found, settlement=head is not None)
    if not found.ok:
        raise PartageError("The demo's own ledger does not verify; this is a defect of Partage.")

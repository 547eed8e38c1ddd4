"""Starting the server: one process, or several on one PostgreSQL."""

import asyncio
import errno
import gc
import logging
import logging.config
import os
import signal
import socket
import sys
import tempfile
import threading
from ipaddress import ip_address
from types import FrameType
from typing import Any

import numpy as np
import uvicorn
from litestar import Litestar
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from partage.board import Board, Record
from partage.errors import InputError, PartageError
from partage.ledger.state import live_rule, tie_order
from partage.service.http.app import create_app
from partage.service.log import logging_config
from partage.service.metrics import TOGETHER
from partage.service.runtime.controller import Controller
from partage.service.store import open_store
from partage.settle import settlement_for
from partage.settle.money import settle

DATABASE = "PARTAGE_DATABASE"
LOG_LEVEL = "PARTAGE_LOG_LEVEL"
LEVELS = ("debug", "info", "warning", "error", "critical")
MOST_WORKERS = 64
SHORT = 20  # characters below which an operator's own token draws a warning
GRACE = 10  # seconds that open requests have when the server is told to stop


def serve(
    database: str, host: str = "127.0.0.1", port: int = 8000, workers: int = 1, log_level: str = "info"
) -> None:
    """Serve until told to stop, by Ctrl-C or SIGTERM. On first start the operator's token is printed, this once."""
    if log_level.lower() not in LEVELS:
        raise InputError(f"The log level must be one of {', '.join(LEVELS)}.")
    if not 1 <= workers <= MOST_WORKERS:
        raise InputError(f"The number of workers must be between 1 and {MOST_WORKERS}.")
    store = open_store(database)  # says in a sentence what is wrong, before anything starts
    try:
        if workers > 1 and not store.several:
            raise InputError(
                f"SQLite serves one process, and {workers} workers were asked for; "
                "use --workers 1, or PostgreSQL: --database postgresql://…"
            )
        bound = _bound(host, port)  # before the token is made: it is shown only once
        token = Controller.open_to_operator(store)[1]
    finally:
        store.close()
    if 0 < len(os.environ.get("PARTAGE_OPERATOR_TOKEN", "")) < SHORT:
        sys.stderr.write(
            f"The operator's token has fewer than {SHORT} characters and can be guessed; "
            "before others can reach this server, set PARTAGE_OPERATOR_TOKEN to a long random one.\n"
        )
    if token is not None:
        sys.stdout.write(f"The operator's token, shown this once: {token}\n")
    sys.stdout.write(f"Partage is at {_address(host, bound)}\nCtrl-C stops it.\n")
    sys.stdout.flush()
    os.environ[DATABASE] = database
    os.environ[LOG_LEVEL] = log_level
    config = uvicorn.Config(
        "partage.service.serve:application",
        factory=True,
        workers=workers,
        loop="uvloop" if sys.platform != "win32" else "auto",
        http="httptools",
        access_log=False,
        log_config=logging_config(log_level),
        timeout_graceful_shutdown=GRACE,
        server_header=False,
        backlog=4096,
    )
    with bound:
        if workers > 1:
            with tempfile.TemporaryDirectory(prefix="partage-metrics-") as folder:
                os.environ[TOGETHER] = folder
                together = Multiprocess(config, sockets=[bound])
                together.run()
            started = all(process.exitcode != STARTUP_FAILURE for process in together.processes)
        else:
            started = _run(uvicorn.Server(config), bound)
    if not started:
        raise PartageError("The server could not start; its log says why.")


def _run(server: uvicorn.Server, bound: socket.socket) -> bool:
    """Serve in this process; returns whether it started. Being told to stop is no error, by whichever signal."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        server.run(sockets=[bound])
    except KeyboardInterrupt:  # uvicorn has stopped by now, and passes the signal on
        return True
    except SystemExit:
        return False
    return server.started


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket at this address; port 0 is any that is free."""
    if not 0 <= port <= 65535:
        raise InputError("The port must be between 0, which is any free one, and 65535.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise InputError(
            f"The host {host} is not known here; 127.0.0.1 is this machine alone, 0.0.0.0 all."
        ) from None
    bound = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port that was just left is free
        bound.bind(address)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise InputError(
                f"The port {port} of {host} is taken; use another, or --port 0 for any that is free."
            ) from None
        raise InputError(f"The port {port} of {host} cannot be used: {error.strerror}.") from None
    bound.set_inheritable(True)
    return bound


def _address(host: str, bound: socket.socket) -> str:
    """Return the address for people: one that a browser on this machine can open."""
    found, port = bound.getsockname()[:2]
    if ip_address(found).is_unspecified:
        return f"http://127.0.0.1:{port}, and at every other address of this machine"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def application() -> Litestar:
    """Return the application of one process, from the environment that `serve` has set."""
    logging.config.dictConfig(logging_config(os.environ.get(LOG_LEVEL, "info")))
    threading.Thread(target=_warm, daemon=True).start()
    controller = Controller(open_store(os.environ[DATABASE]))
    app = create_app(controller)
    app.on_startup.append(lambda: _end_streams_at_once(controller))
    return app


def _end_streams_at_once(controller: Controller) -> None:
    """End the streams of events when the process is told to stop: uvicorn would wait for them, and they for it."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        controller.stopping.set()
        for book in controller.books.values():
            book.wake()

    for number in (signal.SIGINT, signal.SIGTERM):
        stop: Any = signal.getsignal(number)  # uvicorn's own, which it takes away again

        def heard(number: int, frame: FrameType | None, stop: Any = stop) -> None:
            loop.call_soon_threadsafe(end)
            stop(number, frame)

        if callable(stop) and threading.current_thread() is threading.main_thread():
            signal.signal(number, heard)


def _warm() -> None:
    """Load the compiled code of rules and settlements (on a new machine: compile it), so that no request waits."""
    board = Board(100, tie_order("0" * 32, 2), [True, True])
    board.record = Record([60, 40], [50.0, 10.0])
    rule = live_rule("balanced-glr", None)
    rule.revise(board)
    rule.open_arms(board)
    for settlement in ("equal-share", "equal-share-expected"):
        board.active = [True, False]
        settle(settlement_for(settlement, rule), board, np.full((2, 2), 30))
    # What is loaded now stays: without it the collector has next to nothing to look through, where it would stop
    # the server for a tenth of a second every second or so.
    gc.collect()
    gc.freeze()

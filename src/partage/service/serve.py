"""Starting the server: one process, or several on one PostgreSQL."""

import asyncio
import errno
import gc
import logging
import logging.config
import os
import re
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Sequence
from ipaddress import ip_address
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from partage import environment
from partage.board import Board, Record
from partage.errors import InputError, PartageError, RuleError
from partage.ledger.config import DEFAULTS, PREPAID, live_rule
from partage.ledger.own_rules import load_rules
from partage.service.http.app import create_app
from partage.service.http.limits import IDLE_TIME, Limits
from partage.service.http.protocol import LimitedProtocol
from partage.service.log import logging_config
from partage.service.metrics import Metrics
from partage.service.runtime.controller import Controller
from partage.service.runtime.sessions import set_operator_token
from partage.service.runtime.system import System
from partage.service.store import open_store
from partage.settle import first_terms, settlement_for
from partage.settle.core import MANY_ARMS
from partage.settle.money import settle
from partage.testing import check_live_rule

LEVELS = ("debug", "info", "warning", "error", "critical")
MOST_WORKERS = 64
SHORT = 20  # characters; a shorter operator's token causes a warning
COLLECT_AFTER = 20_000  # new objects after which garbage is collected; every 100th collection is a full one
GRACE = 10  # seconds that open requests have when the server stops
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client's own variable, set for worker processes


def serve(
    database: str,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    log_level: str = "info",
    new_token: bool = False,
    public_url: str = "",
    rules: Sequence[str] = (),
) -> None:
    """Serve until Ctrl-C or SIGTERM.

    The first start prints the operator's token; later ones do not, except with `new_token`.
    """
    if log_level.lower() not in LEVELS:
        raise InputError(f"The log level must be one of {', '.join(LEVELS)}.")
    if not 1 <= workers <= MOST_WORKERS:
        raise InputError(f"The number of workers must be between 1 and {MOST_WORKERS}.")
    public_url = _checked_url(public_url)
    _check_rules(rules)
    Limits.of_environment()  # refuses what is no number
    given = environment.operator_token()
    if new_token and given:
        raise InputError(f"The operator's token is in {environment.OPERATOR_TOKEN}; unset it to make a new one.")
    store = open_store(database)  # fails with a sentence before anything starts
    try:
        if workers > 1 and not store.several:
            raise InputError(
                f"SQLite serves one process, not {workers} workers; "
                "use --workers 1, or PostgreSQL: --database postgresql://…"
            )
        bound = _bound(host, port)  # before a token is made, which is shown only once
        try:
            token = set_operator_token(store, System(), given, new=new_token)[1]
        except BaseException:
            bound.close()
            raise
    finally:
        store.close()
    if 0 < len(given) < SHORT:
        sys.stderr.write(
            f"The operator's token has fewer than {SHORT} characters and can be guessed; "
            f"set {environment.OPERATOR_TOKEN} to a long random one before others can reach this server.\n"
        )
    if token is not None:
        sys.stdout.write(f"The operator's token, shown only once: {token}\n")
    sys.stdout.write(f"Partage is at {_address(host, bound)}\nCtrl-C stops it.\n")
    sys.stdout.flush()
    environment.pass_on(DATABASE=database, LOG_LEVEL=log_level, PUBLIC_URL=public_url, RULES=",".join(rules))
    config = uvicorn.Config(
        "partage.service.serve:application",
        factory=True,
        workers=workers,
        loop="uvloop" if sys.platform != "win32" else "auto",
        http=LimitedProtocol,
        ws="none",
        timeout_keep_alive=IDLE_TIME,
        access_log=False,
        log_config=logging_config(log_level),
        timeout_graceful_shutdown=GRACE,
        server_header=False,
        backlog=4096,
    )
    with bound:
        if workers > 1:
            with tempfile.TemporaryDirectory(prefix="partage-metrics-") as folder:
                os.environ[METRICS_FOLDER] = folder
                processes = Multiprocess(config, sockets=[bound])
                processes.run()
            started = all(process.exitcode != STARTUP_FAILURE for process in processes.processes)
        else:
            started = _run(uvicorn.Server(config), bound)
    if not started:
        raise PartageError("The server could not start; its log says why.")


def _run(server: uvicorn.Server, bound: socket.socket) -> bool:
    """Serve in this process; return whether it started. Being stopped by a signal is not an error."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        server.run(sockets=[bound])
    except KeyboardInterrupt:  # uvicorn has stopped by now and passes the signal on
        return True
    except SystemExit:
        return False
    return server.started


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket bound to this address; port 0 is any free one."""
    if not 0 <= port <= 65535:
        raise InputError("The port must be between 0 (any free one) and 65535.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise InputError(
            f"The host {host} is unknown; use 127.0.0.1 for this machine only, 0.0.0.0 for every address."
        ) from None
    bound = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # reuse a port that was just closed
        bound.bind(address)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise InputError(
                f"The port {port} of {host} is in use; choose another, or --port 0 for any free one."
            ) from None
        raise InputError(f"The port {port} of {host} cannot be used: {error.strerror}.") from None
    bound.set_inheritable(True)
    return bound


def _check_rules(modules: Sequence[str]) -> None:
    """Load rules of the operator's own, and check that each can be played live."""
    if any("," in module for module in modules):
        raise InputError("The name of a module of rules must not contain a comma.")
    for rule in load_rules(*modules):
        try:
            check_live_rule(rule().rule)
        except RuleError as error:
            raise InputError(f"The rule {rule.name} of {rule.module} cannot be served: {error}") from None


def _checked_url(url: str) -> str:
    """Return the public address without a slash at its end; empty if there is none."""
    if url and not re.fullmatch(r"https?://[A-Za-z0-9.\-\[\]:]+/?", url):
        raise InputError("The public URL must be the address that members use, such as https://partage.example.org.")
    return url.rstrip("/")


def _address(host: str, bound: socket.socket) -> str:
    """Return an address that a browser on this machine can open."""
    found, port = bound.getsockname()[:2]
    if ip_address(found).is_unspecified:
        return f"http://127.0.0.1:{port}, and at every other address of this machine"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def application() -> Any:
    """Return the application of one process, as configured by the environment that `serve` sets."""
    logging.config.dictConfig(logging_config(environment.log_level()))
    load_rules(*environment.rules())
    threading.Thread(target=_warm, daemon=True).start()
    controller = Controller(open_store(environment.database()), environment.operator_token())
    metrics = Metrics(together=METRICS_FOLDER in os.environ)
    limits = Limits.of_environment()
    return create_app(
        controller,
        metrics,
        on_startup=lambda: _end_streams_at_once(controller),
        limits=limits,
        public_url=environment.public_url(),
    )


def _end_streams_at_once(controller: Controller) -> None:
    """End event streams as soon as a signal arrives: uvicorn waits for them before it stops anything else."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        stop: Any = signal.getsignal(number)  # uvicorn's own, which it removes again

        def heard(number: int, frame: FrameType | None, stop: Any = stop) -> None:
            loop.call_soon_threadsafe(controller.end_streams)
            stop(number, frame)

        if callable(stop) and threading.current_thread() is threading.main_thread():
            signal.signal(number, heard)


def _warm() -> None:
    """Load the compiled code of settlements (on a new machine: compile it), so that no request waits for it."""
    board = Board(100, [0, 1], [True, True])
    board.record, board.active = Record([60, 40], [50.0, 10.0]), [True, False]
    rule = live_rule(DEFAULTS["rule"], None)
    for name in rule.settlements:
        if name in PREPAID:  # nothing is compiled for these
            continue
        settlement = settlement_for(name, rule, alone="two-ucb")  # the bar whose ceilings are compiled
        for terms in (settlement, first_terms(settlement)):
            settle(terms, board, [[30, 30], [30, 30]])
        many = Board(100, [*range(MANY_ARMS)], [True] * MANY_ARMS)
        many.record = Record([60] * MANY_ARMS, [50.0] + [10.0] * (MANY_ARMS - 1))
        settle(settlement_for(name, rule), many, [[1] * MANY_ARMS])
    # Freeze start-up objects so that the garbage collector skips them; otherwise it stops the server for a tenth of
    # a second every second or so. What open streams keep is not frozen, as they close again: a full collection takes
    # 0.8 s with 10,000 of them, so collections are rare.
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)

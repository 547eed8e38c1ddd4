"""Starting the server: one process, or several on one PostgreSQL."""

import logging
import logging.config
import os
import sys
import threading

import numpy as np
import uvicorn
from litestar import Litestar

from partage.board import Board, Record
from partage.errors import InputError
from partage.service.app import create_app
from partage.service.controller import Controller
from partage.service.log import logging_config
from partage.service.state import live_rule, tie_order
from partage.service.store import open_store
from partage.settle import settlement_for
from partage.settle.money import settle

DATABASE = "PARTAGE_DATABASE"
LOG_LEVEL = "PARTAGE_LOG_LEVEL"
GRACE = 10  # seconds that open requests have when the server is told to stop


def serve(
    database: str, host: str = "127.0.0.1", port: int = 8000, workers: int = 1, log_level: str = "info"
) -> None:
    """Serve until told to stop. On first start the operator's token is printed, this once."""
    store = open_store(database)  # says in a sentence what is wrong, before anything starts
    several = store.several
    try:
        if workers > 1 and not several:
            raise InputError(
                f"SQLite serves one process, and {workers} workers were asked for; "
                "use --workers 1, or PostgreSQL: --database postgresql://…"
            )
        token = Controller.open_to_operator(store)[1]
    finally:
        store.close()
    if token is not None:
        sys.stdout.write(f"The operator's token, shown this once: {token}\n")
    sys.stdout.write(f"Partage is at http://{host}:{port}\n")
    sys.stdout.flush()
    os.environ[DATABASE] = database
    os.environ[LOG_LEVEL] = log_level
    uvicorn.run(
        "partage.service.serve:application",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        loop="uvloop" if sys.platform != "win32" else "auto",
        http="httptools",
        access_log=False,
        log_config=logging_config(log_level),
        timeout_graceful_shutdown=GRACE,
        server_header=False,
        backlog=4096,
    )


def application() -> Litestar:
    """Return the application of one process, from the environment that `serve` has set."""
    logging.config.dictConfig(logging_config(os.environ.get(LOG_LEVEL, "info")))
    threading.Thread(target=_warm, daemon=True).start()
    return create_app(Controller(open_store(os.environ[DATABASE])))


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

"""Structured logs: one line of JSON per record, without rewards or tokens, and the same warning only now and then."""

import json
import logging
import threading
import time
from typing import Any

INTERVAL = 10.0  # seconds in which the same warning or error is written once
MOST_KINDS = 1000  # different warnings and errors that are told apart in an interval

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the extra fields of the record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        return _json({"time": stamp, **_said(record)})


class SeldomRepeated(logging.StreamHandler[Any]):
    """Writes each different warning or error at once, and its repetitions once per interval, with their number.

    Otherwise anybody could fill the disk with requests that fail.
    """

    def __init__(self, stream: Any = None, interval: float = INTERVAL) -> None:
        super().__init__(stream)
        self._interval = interval
        self._repeated: dict[str, tuple[int, logging.LogRecord]] = {}  # by what was said in this interval
        self._timer: threading.Timer | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or count it."""
        if record.levelno >= logging.WARNING:
            kind = _json(_said(record))
            if kind in self._repeated:
                self._repeated[kind] = self._repeated[kind][0] + 1, record
                return
            if len(self._repeated) < MOST_KINDS:
                self._repeated[kind] = 0, record
            self._start()
        super().emit(record)

    def _start(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(self._interval, self._interval_over)
            self._timer.daemon = True
            self._timer.start()

    def _interval_over(self) -> None:
        with self.lock or threading.RLock():
            self._timer = None
            self.write_repetitions()
            if self._repeated:
                self._start()

    def write_repetitions(self) -> None:
        """Write what was repeated, and forget what was not."""
        repeated, self._repeated = self._repeated, {}
        for kind, (times, record) in repeated.items():
            if times:
                self._repeated[kind] = 0, record
                counted = logging.makeLogRecord(vars(record) | {"repeated": times})
                super().emit(counted)

    def close(self) -> None:
        """Write what was repeated, and stop."""
        with self.lock or threading.RLock():
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self.write_repetitions()
        super().close()


def _said(record: logging.LogRecord) -> dict[str, Any]:
    """Return what a record says. Exceptions appear by type, without the message, which may hold values."""
    said: dict[str, Any] = {
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
    }
    said |= {name: value for name, value in vars(record).items() if name not in _PLAIN}
    if record.exc_info and record.exc_info[0] is not None:
        said["error"] = record.exc_info[0].__name__
    return said


def _json(line: dict[str, Any]) -> str:
    return json.dumps(line, default=str, ensure_ascii=False)


def logging_config(level: str) -> dict[str, Any]:
    """Return the logging configuration of the server: JSON lines on standard error."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "partage.service.log.JsonLines"}},
        "handlers": {
            "stderr": {
                "class": "partage.service.log.SeldomRepeated",
                "formatter": "json",
                "stream": "ext://sys.stderr",
            }
        },
        "loggers": {
            "partage": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
            "uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        },
    }

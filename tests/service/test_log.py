"""The log: lines of JSON, and the same warning only now and then."""

import io
import json
import logging
import logging.config
from typing import Any

import pytest

from partage.service import log
from partage.service.log import JsonLines, SeldomRepeated, logging_config


@pytest.fixture
def written() -> Any:
    """A logger, and what it wrote so far."""
    stream = io.StringIO()
    handler = SeldomRepeated(stream, interval=3600)  # ended by hand
    handler.setFormatter(JsonLines())
    logger = logging.Logger("test")
    logger.addHandler(handler)

    def lines() -> list[dict[str, Any]]:
        return [json.loads(line) for line in stream.getvalue().splitlines()]

    yield logger, handler, lines
    handler.close()


def test_a_repeated_warning_is_written_once_and_then_counted(written: Any) -> None:
    logger, handler, lines = written
    for _ in range(1000):
        logger.error("database failed", extra={"reason": "The disk is full."})
        logger.warning("log-in failed", extra={"address": "192.0.2.1"})
    assert [line["message"] for line in lines()] == ["database failed", "log-in failed"]
    logger.warning("log-in failed", extra={"address": "192.0.2.2"})  # from elsewhere: another line
    assert len(lines()) == 3
    handler._interval_over()
    assert [(line["message"], line["repeated"]) for line in lines()[3:]] == [
        ("database failed", 999),
        ("log-in failed", 999),
    ]
    logger.error("database failed", extra={"reason": "The disk is full."})  # it goes on: still counted
    assert len(lines()) == 5
    handler._interval_over()
    handler._interval_over()  # nothing for a whole interval: the next is news again
    logger.error("database failed", extra={"reason": "The disk is full."})
    assert [line.get("repeated") for line in lines()[5:]] == [1, None]


def test_what_is_no_warning_is_always_written(written: Any) -> None:
    logger, _, lines = written
    for _ in range(3):
        logger.info("agent joined", extra={"agent": "a1"})
    assert len(lines()) == 3


def test_repetitions_are_written_at_the_end(written: Any) -> None:
    logger, handler, lines = written
    for _ in range(3):
        logger.error("unexpected error", extra={"error": "KeyError"})
    handler.close()
    assert [line.get("repeated") for line in lines()] == [None, 2]


def test_different_warnings_cost_no_memory_without_end(written: Any) -> None:
    logger, handler, lines = written
    for number in range(log.MOST_KINDS + 50):
        logger.warning("odd", extra={"number": number})
    assert len(lines()) == log.MOST_KINDS + 50
    assert len(handler._repeated) == log.MOST_KINDS


def test_the_servers_log_uses_it() -> None:
    assert logging_config("info")["handlers"]["stderr"]["class"] == "partage.service.log.SeldomRepeated"

"""The event stream: turns lines into boards."""

import random
from typing import Any

import msgspec

from partage.ledger.patches import Replace, patched

_JITTER = random.Random()  # the module's own state belongs to the program that uses the client


class Garbled(Exception):
    """The stream brought something that is no board and fits none; open it again."""


class BoardLines:
    """Parses server-sent events line by line, and keeps the board up to date with the patches.

    Examples
    --------
    >>> lines = BoardLines()
    >>> [lines.read(line) for line in ("event: board", 'data: {"version": 1}', "")]
    [None, None, {'version': 1}]
    >>> [lines.read(line) for line in ("event: patch", 'data: [{"op":"replace","path":"/version","value":2}]', "")]
    [None, None, {'version': 2}]
    """

    def __init__(self) -> None:
        self._event = ""
        self._data: list[str] = []
        self._board: Any = None

    def read(self, line: str) -> Any:
        """Take one line without its line break; returns the board, decoded, if the line completes an event."""
        if not line:
            event, data = self._event, "\n".join(self._data)
            self._event, self._data = "", []
            return self._take(event, data) if data and event in ("board", "patch", "") else None
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        return None

    def _take(self, event: str, data: str) -> Any:
        try:
            if event == "patch":
                self._board = patched(self._board, msgspec.json.decode(data, type=list[Replace]))
            else:
                self._board = msgspec.json.decode(data)
        except (msgspec.DecodeError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise Garbled from error
        return self._board


def pause(failures: int) -> float:
    """Return how long to wait before reopening the stream, after this many failures in a row."""
    return _JITTER.uniform(0.2, 1.0) * min(2.0**failures, 30.0)

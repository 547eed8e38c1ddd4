"""The event stream: turns lines into boards."""

import random


class BoardLines:
    """Parses server-sent events line by line.

    Examples
    --------
    >>> lines = BoardLines()
    >>> [lines.read(line) for line in ("event: board", 'data: {"version": 1}', "")]
    [None, None, '{"version": 1}']
    """

    def __init__(self) -> None:
        self._event = ""
        self._data: list[str] = []

    def read(self, line: str) -> str | None:
        """Take one line without its line break; returns a board's JSON if the line completes one."""
        if not line:
            board = "\n".join(self._data) if self._data and self._event in ("board", "") else None
            self._event, self._data = "", []
            return board
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        return None


def pause(failures: int) -> float:
    """Return how long to wait before reopening the stream, after this many failures in a row."""
    return random.uniform(0.2, 1.0) * min(2.0**failures, 30.0)

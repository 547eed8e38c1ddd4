"""Effects: the actions that the client's protocol requests, as data. `Agent` and `AsyncAgent` carry them out."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request; the reply is an `Answer` or `Lost`. The headers hold the token, so the repr leaves them out."""

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait this many seconds; with `news`, only until the event stream brings a board."""

    seconds: float
    news: bool = False


@dataclass(frozen=True, slots=True)
class Save:
    """Write this to the state file, and to disk, before doing anything else."""

    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """The controller's answer to a request."""

    status: int
    body: bytes
    etag: str | None = None
    retry_after: float | None = None  # seconds


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer came; the request may or may not have arrived."""

    why: str


T = TypeVar("T")
Steps = Generator[Send | Wait | Save, Answer | Lost | None, T]

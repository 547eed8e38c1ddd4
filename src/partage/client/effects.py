"""Steps: what the client's logic wants done, as data. `Agent` and `AsyncAgent` do it, each in its own way."""

import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from partage.client.errors import Refused, Unreachable
from partage.ledger import messages as wire

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 8.0  # seconds before the first retry, and before any
PASSING = (429, 502, 503, 504)  # statuses that may be gone a moment later


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request; the reply is an `Answer`, or `Lost`. Headers stay out of its repr: one is the token."""

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait so many seconds; with `news`, only until the stream of events brings a board."""

    seconds: float
    news: bool = False


@dataclass(frozen=True, slots=True)
class Save:
    """Put this into the state file, and on disk, before anything else is done."""

    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the controller answered."""

    status: int
    body: bytes
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer came. Whether the request arrived, nobody knows."""

    why: str


T = TypeVar("T")
Steps = Generator[Send | Wait | Save, Answer | Lost | None, T]


def sent(request: Send, url: str, patience: float, clock: Callable[[], float]) -> Steps[Answer]:
    """Send a request until it is answered: the very same one, with growing random pauses, for so many seconds."""
    begun, longest = clock(), FIRST_PAUSE
    while True:
        reply = yield request
        if isinstance(reply, Answer) and reply.status not in PASSING:
            if reply.status >= 400:
                raise refusal(reply)
            return reply
        pause = random.uniform(0, longest)
        if clock() + pause - begun > patience:
            why = reply.why if isinstance(reply, Lost) else f"it answered {reply.status}" if reply else "no reply"
            raise Unreachable(
                f"The controller at {url} could not be reached for {patience:g} seconds ({why}). "
                "What was on its way is kept and sent again with the next call."
            )
        longest = min(2 * longest, LONGEST_PAUSE)
        yield Wait(pause)


def refusal(answer: Answer) -> Refused:
    """Return what the controller refused, in its own sentence."""
    try:
        error = msgspec.json.decode(answer.body, type=wire.Error)
    except msgspec.DecodeError:  # something between us and the controller answered
        return Refused(answer.status, f"The controller answered with status {answer.status} and no sentence.")
    return Refused(answer.status, error.error, error.field)

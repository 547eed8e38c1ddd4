"""Calls to the controller: each request is repeated until it is answered, and answers become structs."""

import secrets
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from partage.client.effects import Answer, Lost, Send, Steps, Wait
from partage.client.errors import Forked, Refused, Unreachable
from partage.client.statefile import AgentState, new_request

S = TypeVar("S")

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 8.0  # seconds before the first retry, and before any later one
PASSING = (429, 502, 503, 504)  # statuses worth a retry


class Calls:
    """Requests of one agent to its collaboration.

    Parameters
    ----------
    saved
        The agent: its controller, collaboration and token.
    patience
        Seconds to keep trying when no answer comes.
    clock
        The time in seconds.
    random_bytes
        Returns this many unpredictable bytes, for the ids of requests and for pauses.
    """

    def __init__(
        self,
        saved: AgentState,
        patience: float,
        clock: Callable[[], float],
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._saved, self._patience, self._clock, self._random_bytes = saved, patience, clock, random_bytes

    def new_request(self) -> str:
        """Return an id for a request."""
        return new_request(self._random_bytes)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        bearer: str = "",
        headers: Mapping[str, str] | None = None,
        patience: float | None = None,
    ) -> Steps[Answer]:
        """Send a request until it is answered; raises `Refused` or `Unreachable`, and `Forked` once it was raised."""
        self.check_forked()
        all_headers = self.headers(bearer) | dict(headers or {})
        if body is not None:
            all_headers["Content-Type"] = "application/json"
        content = None if body is None else msgspec.json.encode(body)
        request = Send(method, self.path(path), all_headers, content)
        return (yield from self._repeat(request, self._patience if patience is None else patience))

    def check_forked(self) -> None:
        """Raise `Forked` again if it was raised before."""
        if self._saved.forked:
            raise Forked(self._saved.forked, self._saved.evidence)

    def fetch(self, kind: type[S], method: str, path: str, body: Any = None, bearer: str = "") -> Steps[S]:
        """Send a request and return its answer as a struct of this kind."""
        return self.decode(kind, (yield from self.send(method, path, body, bearer)))

    def path(self, path: str) -> str:
        """Return the full path of a call within the collaboration."""
        return f"/v1/collaborations/{self._saved.collaboration}{path}"

    def headers(self, bearer: str = "") -> dict[str, str]:
        """Return the headers that identify the agent, or the bearer of another secret."""
        return {"Authorization": f"Bearer {bearer or self._saved.token}"}

    def decode(self, kind: type[S], answer: Answer) -> S:
        """Return an answer as a struct of this kind."""
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except msgspec.DecodeError:
            raise not_a_controller(self._saved.url) from None

    def _repeat(self, request: Send, patience: float) -> Steps[Answer]:
        """Repeat the same request, with growing random pauses, until an answer comes."""
        began, longest = self._clock(), FIRST_PAUSE
        while True:
            reply = yield request
            if isinstance(reply, Answer) and reply.status not in PASSING:
                if reply.status >= 300 and reply.status != 304:  # 304 answers a request with an ETag
                    raise refusal(reply.status, reply.body)
                return reply
            pause = longest * int.from_bytes(self._random_bytes(4)) / 2**32
            if isinstance(reply, Answer):  # the pause comes on top, so that all who were told the same do not meet
                pause += reply.retry_after or 0.0
            if self._clock() + pause - began > patience:
                raise self._unreachable(reply, patience)
            longest = min(2 * longest, LONGEST_PAUSE)
            yield Wait(pause)

    def _unreachable(self, reply: Answer | Lost | None, patience: float) -> Unreachable:
        why = reply.why if isinstance(reply, Lost) else f"status {reply.status}" if reply else "no reply"
        rest = "Check the address."
        if self._saved.token:
            rest = "Pending reports are kept and sent with the next call."
        return Unreachable(
            f"The controller at {self._saved.url} did not answer for {patience:g} seconds ({why}). {rest}"
        )


class _Refusal(msgspec.Struct):
    """The body of a refusal; release 0.1 sent no code."""

    error: str
    code: str = ""
    field: str | None = None


def refusal(status: int, body: bytes) -> Refused:
    """Return a refusal from the controller's answer.

    Examples
    --------
    >>> refused = refusal(409, b'{"error": "The collaboration is closed.", "code": "closed"}')
    >>> refused.code, str(refused)
    ('closed', 'The collaboration is closed.')
    """
    if 300 <= status < 400:
        sentence = f"The server redirects to another address (status {status}); give the controller's own address."
        return Refused(status, "", sentence)
    try:
        found = msgspec.json.decode(body, type=_Refusal)
    except msgspec.DecodeError:  # a proxy answered, not the controller
        return Refused(status, "", f"The controller answered with status {status} and no explanation.")
    return Refused(status, found.code, found.error, found.field)


def not_a_controller(url: str) -> Unreachable:
    """Return the error for an address where something else answers."""
    return Unreachable(f"The server at {url} is not a Partage controller; check the address.")

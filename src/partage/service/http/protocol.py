"""The connection: limits on the size of a request's headers, and on the time that it takes to arrive.

uvicorn's protocol reads headers of any size, and waits for them for ever. Its parser joins the parts of an unfinished
header again with each packet, so that one header of many megabytes keeps the whole process busy.
"""

from asyncio import TimerHandle, Transport

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from partage.ledger.messages import Error
from partage.service.http.limits import BODY_TIME, HEAD_TIME, LARGEST_HEAD

BETWEEN, HEAD, BODY = "between", "head", "body"  # the parts of a connection
PER_BYTE = 8  # bytes on the wire for each byte of a body: with chunks of one byte there are six
LINGER = 2.0  # seconds for which a refused client may still send, so that it reads the answer before the end


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with limits.

    The parts of a connection are heads (first line and headers), bodies, and what comes between requests. The parser
    says when one begins.
    """

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Wait for the first request, not for ever."""
        super().connection_made(transport)
        self._parts = 0  # so many have begun
        self._part = BETWEEN
        self._refused = False
        self._received = self._body = 0  # bytes of this part, and those that the application gets
        self._timer: TimerHandle | None = self.loop.call_later(HEAD_TIME, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_timer()
        super().connection_lost(exc)

    # What the parser says.

    def on_message_begin(self) -> None:
        """Begin a head."""
        super().on_message_begin()
        self._begin(HEAD)

    def on_headers_complete(self) -> None:
        """Begin a body."""
        super().on_headers_complete()
        self._begin(BODY)

    def on_body(self, body: bytes) -> None:
        """Count what the application gets."""
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for the next request; uvicorn limits that time itself."""
        super().on_message_complete()
        self._begin(BETWEEN)

    def _begin(self, part: str) -> None:
        self._parts += 1
        self._part = part
        self._received = self._body = 0
        self._stop_timer()

    # What the network says.

    def data_received(self, data: bytes) -> None:
        """Parse what came, piece by piece, and refuse a request whose head does not end."""
        if self._refused:
            return
        for start in range(0, len(data), LARGEST_HEAD):
            before = self._parts
            super().data_received(data[start : start + LARGEST_HEAD] if len(data) > LARGEST_HEAD else data)
            if self.transport.is_closing():
                return
            if self._parts == before:  # otherwise it is not known where in the piece the part began
                self._received += min(LARGEST_HEAD, len(data) - start)
            if self._received >= LARGEST_HEAD + PER_BYTE * self._body:
                self._refuse_size()
                return
        if self._timer is None and (self._part != BETWEEN or self._received):
            self._timer = self.loop.call_later(BODY_TIME if self._part == BODY else HEAD_TIME, self._too_slow)

    def _refuse_size(self) -> None:
        if self._part == BODY:  # trailers or chunk extensions without end: nothing that we wait for
            self.transport.abort()
        else:
            sentence = f"The address and the headers are too large; the limit is {LARGEST_HEAD:,} bytes."
            self._refuse(431, Error(sentence, "headers_too_large"))

    def _too_slow(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self._part == BODY:
            self.transport.abort()
        else:
            self._refuse(408, Error("The request did not arrive in time.", "invalid_body"))

    def _refuse(self, status: int, error: Error) -> None:
        """Answer, if no other answer is under way, and end the connection."""
        self._refused = True
        self._stop_timer()
        self._unset_keepalive_if_required()
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()
            return
        body = msgspec.json.encode(error)
        head = (
            b"content-type: application/json\r\ncache-control: no-store\r\nx-content-type-options: nosniff\r\n"
            b"connection: close\r\ncontent-length: %d\r\n\r\n"
        )
        self.transport.write(STATUS_LINE[status] + head % len(body) + body)
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self._timer = self.loop.call_later(LINGER, self.transport.abort)
        else:
            self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

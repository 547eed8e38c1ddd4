"""How a refused or failed request is answered: `{error, code, field?}`, with nothing of what was sent."""

import logging
import math
import traceback
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from litestar import Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.types import Message, Receive, Scope, Send

from partage.ledger import messages
from partage.ledger.fields import LARGEST_BODY
from partage.ledger.refusals import Refused
from partage.service.http.auth import AnyRequest
from partage.service.store import StoreError

T = TypeVar("T")

log = logging.getLogger("partage.service")

# What the framework itself refuses, by status.
FRAMEWORK = {
    400: ("invalid_body", "This request cannot be read."),
    404: ("not_found", "There is nothing at this address; /schema lists what there is."),
    405: ("method_not_allowed", "This address does not take this method; /schema lists the ones it takes."),
    413: ("too_large", f"The body is too large; the limit is {LARGEST_BODY:,} bytes."),
}


# Answers are not read as anything but what they say they are, and not kept by anybody on the way.
JSON = (b"content-type", b"application/json")
CAREFUL = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


class Encoded(Response[T]):
    """An answer in JSON of the calls that come most often, without what the framework does for any kind of answer."""

    def __init__(self, content: T, status_code: int = 200) -> None:
        self.content, self.status_code = content, status_code

    def to_asgi_response(self, *_: Any, **__: Any) -> Any:
        """Return what sends the answer."""
        body = b"" if self.status_code == 204 else msgspec.json.encode(self.content)
        headers = [] if self.status_code == 204 else [JSON, (b"content-length", str(len(body)).encode())]
        start: Any = {"type": "http.response.start", "status": self.status_code, "headers": headers}

        async def send_it(scope: Scope, receive: Receive, send: Send) -> None:
            await send(start)
            await send({"type": "http.response.body", "body": body, "more_body": False})

        return send_it


async def careful(message: Message, scope: Scope) -> None:
    """Add the headers that every answer has, unless it has its own."""
    if message["type"] == "http.response.start":
        headers = list(message.get("headers", ()))
        if scope.get("method") == "OPTIONS":  # the framework names only the methods of one of several handlers
            methods = scope["litestar_app"].state.methods.get(scope.get("path_template"))
            if methods:
                headers = [header for header in headers if header[0].lower() != b"allow"]
                headers.append((b"allow", ", ".join(sorted(methods)).encode()))
        given = {name.lower() for name, _ in headers}
        message["headers"] = headers + [header for header in CAREFUL if header[0] not in given]


def refused(_: AnyRequest, error: Refused, headers: Mapping[str, str] | None = None) -> Response[messages.Error]:
    """Answer a refusal."""
    body = messages.Error(error.sentence, error.code, error.field)
    return Response(body, status_code=error.status, headers={**headers_of(error), **(headers or {})})


def headers_of(error: Refused) -> dict[str, str]:
    """Return the headers of a refusal: which kind of token is needed, and when to try again."""
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    return headers


def invalid_body(request: AnyRequest, error: ValidationException) -> Response[messages.Error]:
    """Answer a body that does not have the expected fields."""
    extra: Any = error.extra
    first = extra[0] if isinstance(extra, list) and extra else {}
    data = request.route_handler.parsed_data_field
    field = first.get("key", "data")
    place = "" if field == "data" else f" - at `$.{field}`"
    found = messages.refusal_of(f"{first.get('message', '')}{place}", data.annotation if data else None)
    return refused(request, found)


def http_error(request: AnyRequest, error: HTTPException) -> Response[messages.Error]:
    """Answer what the framework refuses, in our words."""
    code, sentence = FRAMEWORK.get(error.status_code, ("invalid_body", "This request cannot be served."))
    headers = {"Allow": error.headers["allow"]} if error.headers and "allow" in error.headers else None
    return refused(request, Refused(error.status_code, code, sentence), headers)


def store_failed(request: AnyRequest, error: StoreError) -> Response[messages.Error]:
    """Answer that the database does not work; the log says why."""
    log.error("database failed", extra={"reason": str(error)})
    sentence = "The database does not answer; try again later."
    return refused(request, Refused(503, "database_unavailable", sentence))


def failed(request: AnyRequest, error: Exception) -> Response[messages.Error]:
    """Answer an internal error. The log says where it occurred, not what was sent."""
    where = traceback.extract_tb(error.__traceback__)[-6:]
    places = [f"{frame.name}:{frame.lineno}" for frame in where]
    log.error("unexpected error", extra={"error": type(error).__name__, "where": places})
    sentence = "The controller failed to handle this request; its log says where."
    return refused(request, Refused(500, "internal", sentence))


FAILURES: dict[Any, Any] = {
    Refused: refused,
    ValidationException: invalid_body,
    HTTPException: http_error,
    StoreError: store_failed,
    Exception: failed,
}

"""How a request that is refused, or fails, is answered: a status and a sentence, and nothing of what was sent."""

import logging
import traceback
from typing import Any

from litestar import Response
from litestar.exceptions import HTTPException, ValidationException

from partage.ledger import messages as wire
from partage.ledger.refusals import Refused
from partage.service.http.auth import AnyRequest
from partage.service.store import StoreError

log = logging.getLogger("partage.service")


def refused(_: AnyRequest, error: Refused) -> Response[wire.Error]:
    """Answer a refusal."""
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
    return Response(wire.Error(error.sentence, error.field), status_code=error.status, headers=headers)


def invalid_body(request: AnyRequest, error: ValidationException) -> Response[wire.Error]:
    """Answer a body that is not what it must be."""
    extra: Any = error.extra
    first = extra[0] if isinstance(extra, list) and extra else {}
    data = request.route_handler.parsed_data_field
    field = first.get("key", "data")
    place = "" if field == "data" else f" - at `$.{field}`"
    return refused(request, wire.refusal_of(f"{first.get('message', '')}{place}", data.annotation if data else None))


def http_error(request: AnyRequest, error: HTTPException) -> Response[wire.Error]:
    """Answer what the framework refuses, in our words."""
    sentence = {
        400: "This request cannot be read.",
        404: "There is nothing at this address; /schema lists what there is.",
        405: "This address does not take this method; /schema lists what it takes.",
        413: f"The body is too large; at most {wire.LARGEST_BODY:,} bytes are taken.",
    }.get(error.status_code, "This request cannot be served.")
    return Response(wire.Error(sentence), status_code=error.status_code)


def store_failed(_: AnyRequest, error: StoreError) -> Response[wire.Error]:
    """Answer that the database cannot be used now; the operator's log says why."""
    log.error("database failed", extra={"reason": str(error)})
    return Response(wire.Error("The database does not answer; try again later."), status_code=503)


def failed(_: AnyRequest, error: Exception) -> Response[wire.Error]:
    """Answer a defect of ours. The log says where, and not what was sent."""
    where = traceback.extract_tb(error.__traceback__)[-6:]
    places = [f"{frame.name}:{frame.lineno}" for frame in where]
    log.error("unexpected error", extra={"error": type(error).__name__, "where": places})
    return Response(wire.Error("Something is wrong with the controller; its log says where."), status_code=500)


FAILURES: dict[Any, Any] = {
    Refused: refused,
    ValidationException: invalid_body,
    HTTPException: http_error,
    StoreError: store_failed,
    Exception: failed,
}

"""What /schema says of a call, where the framework cannot know it."""

from dataclasses import dataclass
from typing import Any

from litestar.openapi import ResponseSpec
from litestar.openapi.spec import (
    OpenAPIHeader,
    OpenAPIResponse,
    OpenAPIType,
    Operation,
    Parameter,
    RequestBody,
    Schema,
)

from partage.ledger import messages

ERRORS = {
    400: "The body is not JSON, or no object.",
    401: "No token, or one that is not known.",
    403: "Not this token's to do.",
    404: "It is not there.",
    409: "Not now.",
    413: "The body is too large.",
    422: "A field is missing, unknown or out of range.",
    503: "The database does not answer, or the controller is very busy: try again.",
}
READS = (401, 403, 404, 503)
WRITES = (400, 401, 403, 409, 413, 422, 503)


@dataclass
class Call(Operation):
    """A call. The framework takes any that has an id in its address for one that may be 400."""

    def __post_init__(self) -> None:
        if self.request_body is None and self.responses is not None:
            self.responses.pop("400", None)


@dataclass
class BareCall(Call):
    """A call that may be made without a body."""

    def __post_init__(self) -> None:
        assert isinstance(self.request_body, RequestBody)
        self.request_body.required = False


@dataclass
class TaggedCall(Call):
    """A call whose answer has an ETag."""

    def __post_init__(self) -> None:
        super().__post_init__()
        text = Schema(type=OpenAPIType.STRING)
        for status in ("200", "304"):
            answer = (self.responses or {})[status]
            assert isinstance(answer, OpenAPIResponse)
            answer.headers = {"ETag": OpenAPIHeader(schema=text, description="It covers every change.")}
        known = Parameter(
            name="If-None-Match", param_in="header", schema=text, description="An ETag: 304 if it holds."
        )
        self.parameters = [*(self.parameters or ()), known]


def described(
    *errors: int,
    kind: type[Operation] = Call,
    bearer: str | None = "token",
    answers: dict[int, ResponseSpec] | None = None,
) -> dict[str, Any]:
    """Return what /schema says of a call: how it may be refused, what it needs, and answers of no type of ours."""
    found = {status: ResponseSpec(messages.Error, False, ERRORS[status]) for status in sorted(errors)}
    security: list[dict[str, list[str]]] = [] if bearer is None else [{bearer: []}]
    return {"operation_class": kind, "responses": {**(answers or {}), **found}, "security": security}


def answer_of(data: Any, description: str, media_type: str = "application/json") -> ResponseSpec:
    """Return how an answer is described."""
    return ResponseSpec(data, False, description, media_type)

"""The parts of the OpenAPI document that the framework cannot derive."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from litestar.openapi import ResponseSpec
from litestar.openapi.spec import (
    OpenAPI,
    OpenAPIHeader,
    OpenAPIResponse,
    OpenAPIType,
    Operation,
    Parameter,
    RequestBody,
    Schema,
)

from partage.ledger import messages
from partage.ledger.receipts import HEADER
from partage.ledger.refusals import CODES
from partage.rules import live_rules
from partage.settle import SETTLEMENTS

ERRORS = {
    400: "The body is not a JSON object.",
    401: "The token is missing or unknown.",
    403: "Not permitted.",
    404: "Not found.",
    409: "Conflicts with the current state.",
    413: "The body is too large.",
    422: "A field is missing, unknown or out of range.",
    429: "Too many requests, or open event streams; the header Retry-After says after how many seconds to try again.",
    431: "The address and the headers are too large.",
    500: "The controller has a defect; its log says where.",
    501: "The collaboration was created by a newer release of Partage.",
    503: "The database does not answer, or the controller is busy; try again.",
}
RECEIPTED = ("/{id}/agents", "/agents/me", "/ask", "/tell", "/commits")  # calls whose answer has a receipt
READS = (401, 403, 404, 500, 501, 503)
WRITES = (400, 401, 403, 409, 413, 422, 500, 501, 503)


@dataclass
class Call(Operation):
    """A call. The framework adds a 400 to every call with an id in its path; ours answer 404."""

    def __post_init__(self) -> None:
        if self.request_body is None and self.responses is not None:
            self.responses.pop("400", None)


@dataclass
class BareCall(Call):
    """A call whose body is optional."""

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
            answer.headers = {
                "ETag": OpenAPIHeader(schema=text, description="It changes with every change of the board.")
            }
        known = Parameter(
            name="If-None-Match",
            param_in="header",
            schema=text,
            description="An ETag; the answer is 304 if it still matches.",
        )
        self.parameters = [*(self.parameters or ()), known]


@dataclass
class ProofCall(Call):
    """A call with either of two pairs of query parameters, which the framework cannot express."""

    def __post_init__(self) -> None:
        super().__post_init__()
        number = Schema(type=OpenAPIType.INTEGER, minimum=0)
        texts = {
            "from": "The rows of the smaller checkpoint.",
            "to": "The rows of the larger checkpoint.",
            "row": "The number of a row.",
            "size": "The rows of a checkpoint.",
        }
        found = [
            Parameter(name=name, param_in="query", schema=number, description=text, required=False)
            for name, text in texts.items()
        ]
        self.parameters = [*(self.parameters or ()), *found]


def described(
    *errors: int,
    kind: type[Operation] = Call,
    bearer: str | None = "token",
    answers: dict[int, ResponseSpec] | None = None,
) -> dict[str, Any]:
    """Return what the document says of a call: its refusals, its token, and answers that are not a struct of ours."""
    limits = (431,) if bearer is None else (429, 431)
    found = {status: ResponseSpec(messages.Error, False, ERRORS[status]) for status in sorted({*errors, *limits})}
    security: list[dict[str, list[str]]] = [] if bearer is None else [{bearer: []}]
    return {"operation_class": kind, "responses": {**(answers or {}), **found}, "security": security}


def answer_of(data: Any, description: str, media_type: str = "application/json") -> ResponseSpec:
    """Return the description of an answer."""
    return ResponseSpec(data, False, description, media_type)


def add_facts(document: OpenAPI) -> None:
    """Add the codes of refusals, the rules and settlements to choose from, and the header that receipts continue."""
    for path, item in (document.paths or {}).items():
        for operation in (item.post, item.patch):
            if operation is not None and (path.endswith(RECEIPTED)):
                operation.parameters = [*(operation.parameters or ()), _seen()]
    allowed: dict[str, dict[str, Iterable[str]]] = {
        "Error": {"code": CODES},
        "NewCollaboration": {"rule": live_rules(), "settlement": SETTLEMENTS},
    }
    for struct, fields in allowed.items():
        properties = document.components.schemas[struct].properties or {}
        for field, values in fields.items():
            schema = properties[field]
            assert isinstance(schema, Schema)
            for part in [schema, *(schema.one_of or ())]:
                if isinstance(part, Schema) and part.type == OpenAPIType.STRING:
                    part.enum = list(values)


def _seen() -> Parameter:
    """Return the description of the header that names the last checkpoint."""
    return Parameter(
        name=HEADER,
        param_in="header",
        schema=Schema(type=OpenAPIType.INTEGER, minimum=0),
        description="The rows of the last checkpoint that you have; the receipt proves that its own continues it.",
        required=False,
    )

"""The parts of the OpenAPI document that the framework cannot derive."""

import inspect
from collections.abc import Mapping
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
    Tag,
)

from partage.ledger import messages
from partage.ledger.fields import ENUMS, LIMITS, allowed
from partage.ledger.receipts import HEADER, Receipt
from partage.ledger.refusals import CODES

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
LONGEST_WAIT = 1.0  # seconds that an ask may wait for a claim
# Calls whose answer has a receipt.
RECEIPTED = ("/{id}/agents", "/agents/me", "/ask", "/tell", "/commits", "/history")
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
class WaitingCall(BareCall):
    """A call that may wait for a claim."""

    def __post_init__(self) -> None:
        super().__post_init__()
        text = "With explore_only: the seconds that the request may wait for a claim if there is none now."
        seconds = Schema(type=OpenAPIType.NUMBER, minimum=0, maximum=LONGEST_WAIT, default=0)
        found = Parameter(name="wait", param_in="query", schema=seconds, description=text)
        self.parameters = [*(self.parameters or ()), found]


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
class StreamCall(Call):
    """A call whose stream may consist of patches."""

    def __post_init__(self) -> None:
        super().__post_init__()
        text = "With true, the first event is the board, and the later ones are what changed."
        found = Parameter(name="patches", param_in="query", schema=Schema(type=OpenAPIType.BOOLEAN), description=text)
        self.parameters = [*(self.parameters or ()), found]


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


# The keywords of JSON Schema that apply to a type; a limit is stated for the types that it is about.
_KEYWORDS = {
    OpenAPIType.STRING: ("min_length", "max_length", "pattern", "enum"),
    OpenAPIType.NUMBER: ("minimum", "maximum", "exclusive_minimum", "exclusive_maximum"),
    OpenAPIType.INTEGER: ("minimum", "maximum", "exclusive_minimum", "exclusive_maximum"),
    OpenAPIType.ARRAY: ("min_items", "max_items", "unique_items"),
}


# The name and the group of each call in the document, by the name of its handler.
OPERATIONS = {
    "create": ("create_collaboration", "collaborations"),
    "collaborations": ("list_collaborations", "collaborations"),
    "collaboration": ("read_collaboration", "collaborations"),
    "close": ("close_collaboration", "collaborations"),
    "add_arm": ("add_arm", "collaborations"),
    "agents": ("list_agents", "members"),
    "set_aside": ("set_agent_aside", "members"),
    "remove": ("remove_agent", "members"),
    "renew": ("renew_agent_token", "members"),
    "revoke_token": ("revoke_agent_token", "members"),
    "invite": ("create_invites", "invites"),
    "invites": ("list_invites", "invites"),
    "revoke": ("revoke_invite", "invites"),
    "join": ("join", "members"),
    "me": ("read_me", "members"),
    "consent": ("change_shares", "members"),
    "rotate": ("rotate_token", "members"),
    "leave": ("leave", "members"),
    "ask": ("ask", "play"),
    "tell": ("tell", "play"),
    "commits": ("report_commits", "play"),
    "attach": ("attach_history", "play"),
    "draw": ("read_draw", "play"),
    "reveal": ("reveal_nonce", "play"),
    "board": ("read_board", "play"),
    "events": ("follow_board", "play"),
    "settlement": ("read_settlement", "settlement"),
    "account": ("read_account", "settlement"),
    "ledger": ("read_ledger", "ledger"),
    "checkpoint": ("read_checkpoint", "ledger"),
    "proof": ("read_proof", "ledger"),
    "cosign": ("cosign", "ledger"),
    "cosignatures": ("list_cosignatures", "ledger"),
    "health": ("read_health", "monitoring"),
    "ready": ("read_ready", "monitoring"),
}

# A body that each call takes as it is, once its names and numbers are those of the collaboration.
EXAMPLES: dict[str, dict[str, Any]] = {
    "NewCollaboration": {"name": "Bakers", "arms": ["Moulin A", "Moulin B"], "horizon": 2000, "prepaid": 20.0},
    "NewArm": {"name": "Moulin C"},
    "NewInvites": {"invites": 3, "hours": 48.0},
    "NewAgent": {"name": "Morel", "shares": ["Moulin A"], "request": "morel-joins"},
    "Ask": {"request": "morel-17"},
    "Tell": {"pull": 17, "reward": 0.75},
    "Commits": {"request": "morel-18", "runs": [{"version": 12, "arm": "Moulin A", "pulls": 40}]},
    "Attach": {"arm": "Moulin A", "rewards": [0.75, 1.0, 0.5], "request": "morel-history-a"},
    "Consent": {"shares": ["Moulin A", "Moulin B"]},
    "SetAside": {"reason": "The scales were broken in May."},
    "Remove": {"reason": "Closed their bakery."},
    "Reveal": {"nonce": "00112233445566778899aabbccddeeff"},
}
_COUNTS = (
    *("broadcasts", "attached", "sharers", "claims", "lapses", "agents", "version", "clock"),
    *("explore", "commit", "pulls"),
)
_PLACES = {"id": "The collaboration's id.", "agent": "An agent's id.", "invite_id": "An invite's id."}


def operation_id(handler: Any, method: Any, path: Any) -> str:
    """Return the name of a call, from which generators make the name of a function."""
    return OPERATIONS[handler.handler_name][0]


def add_facts(document: OpenAPI) -> None:
    """Add what generators and readers want to know: names, groups, limits, descriptions, examples, codes."""
    groups = dict(OPERATIONS.values())
    document.tags = [Tag(name=name) for name in dict.fromkeys(groups.values())]
    for item in (document.paths or {}).values():
        for operation in (item.get, item.post, item.put, item.patch, item.delete):
            if operation is not None:
                operation.tags = [groups[operation.operation_id or ""]]
                for parameter in operation.parameters or ():
                    if isinstance(parameter, Parameter) and parameter.param_in == "path":
                        parameter.description = _PLACES[parameter.name]
    for path, item in (document.paths or {}).items():
        for operation in (item.post, item.patch):
            if operation is not None and (path.endswith(RECEIPTED)):
                operation.parameters = [*(operation.parameters or ()), _seen()]
    schemas = document.components.schemas
    for schema in schemas.values():
        for field in (schema.properties or {}).values():
            _whole_numbers_are_numbers(field)
    _limit(schemas["Error"], "Error", {"code": {"enum": list(CODES)}})
    for name, schema in schemas.items():
        kind = getattr(messages, name, None) or Receipt
        schema.description = " ".join(inspect.cleandoc(kind.__doc__ or "").split("\n\nAttributes")[0].split())
        schema.examples = [EXAMPLES[name]] if name in EXAMPLES else None
        if name.endswith("View"):
            _limit(schema, name, ENUMS)
        _limit(schema, name, {count: {"minimum": 0} for count in _COUNTS})
        if isinstance(horizon := (schema.properties or {}).get("horizon"), Schema) and not horizon.one_of:
            horizon.type = OpenAPIType.INTEGER
        if kind is not None and kind.__struct_config__.forbid_unknown_fields:  # a request
            schema.additional_properties = False
            _limit(schema, name, LIMITS)
            for key, part in (schema.properties or {}).items():
                if isinstance(part, Schema):
                    part.description = _described(key)


def _described(field: str) -> str | None:
    """Return what a field must be, as a sentence."""
    try:
        text = allowed(field)
    except KeyError:
        return None
    return f"{text[0].upper()}{text[1:]}."


def _seen() -> Parameter:
    """Return the description of the header that names the last checkpoint."""
    return Parameter(
        name=HEADER,
        param_in="header",
        schema=Schema(type=OpenAPIType.INTEGER, minimum=0),
        description="The rows of the last checkpoint that you have; the receipt proves that its own continues it.",
        required=False,
    )


def _limit(schema: Schema, struct: str, limits: Mapping[str, Mapping[str, Any]]) -> None:
    for name, field in (schema.properties or {}).items():
        _apply(field, limits.get(f"{struct}.{name}") or limits.get(name, {}), limits.get(f"{name}[]", {}))


def _apply(schema: Any, limits: Mapping[str, Any], of_items: Mapping[str, Any]) -> None:
    """Add the limits that fit the type of a field, also where it is one of several."""
    if not isinstance(schema, Schema):
        return
    for part in schema.one_of or ():
        _apply(part, limits, of_items)
    if isinstance(schema.type, OpenAPIType):
        for keyword in _KEYWORDS.get(schema.type, ()):
            if keyword in limits:
                setattr(schema, keyword, limits[keyword])
    _apply(schema.items, of_items, {})


def _whole_numbers_are_numbers(schema: Any) -> None:
    """Leave out `integer` beside `number`: a whole number is both, and `oneOf` allows only one."""
    if isinstance(schema, Schema) and schema.one_of:
        types = [part.type if isinstance(part, Schema) else None for part in schema.one_of]
        if OpenAPIType.NUMBER in types:
            kept = [part for part, type in zip(schema.one_of, types, strict=True) if type != OpenAPIType.INTEGER]
            if len(kept) > 1:
                schema.one_of = kept
            else:
                schema.one_of, schema.type = None, OpenAPIType.NUMBER
    if isinstance(schema, Schema):
        _whole_numbers_are_numbers(schema.additional_properties)
        _whole_numbers_are_numbers(schema.items)

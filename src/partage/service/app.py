"""The API: paths, who may use them, and how refusals look. `create_app` puts it together with the pages."""

import logging
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from litestar import Litestar, MediaType, Request, Response, Router, delete, get, patch, post
from litestar.connection import ASGIConnection
from litestar.datastructures import State as AppState
from litestar.exceptions import HTTPException, ValidationException
from litestar.openapi import OpenAPIConfig, ResponseSpec
from litestar.openapi.plugins import JsonRenderPlugin, YamlRenderPlugin
from litestar.openapi.spec import (
    Components,
    OpenAPIHeader,
    OpenAPIResponse,
    OpenAPIType,
    Operation,
    Parameter,
    RequestBody,
    Schema,
    SecurityScheme,
)
from litestar.params import FromPath, JSONBody
from litestar.response import Stream
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from partage import __version__
from partage.service import access, wire
from partage.service.access import Who
from partage.service.accounts import own_view
from partage.service.book import Book, agent_views, clock, collaboration_view, expiring
from partage.service.controller import Controller
from partage.service.metrics import Metrics
from partage.service.refusal import Refused
from partage.service.store import StoreError

log = logging.getLogger("partage.service")

COOKIE = "partage_session"
AnyRequest = Request[Any, Any, AppState]
Connection = ASGIConnection[Any, Any, Any, AppState]


class StrictRequest(Request[Any, Any, AppState]):
    """A request whose JSON is read as what its handler takes, and strictly: "0.5" is no number."""

    async def json(self) -> Any:
        """Return the body as the handler's type."""
        data = self.route_handler.parsed_data_field
        kind = data.annotation if data else Any
        try:
            return msgspec.json.decode(await self.body() or b"null", type=kind)
        except msgspec.ValidationError as error:
            raise wire.refusal_of(str(error), kind) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise wire.not_json() from None


# who speaks


def bearer(connection: Connection) -> str | None:
    """Return the token of the Authorization header."""
    for name, value in connection.scope["headers"]:
        if name == b"authorization":
            kind, _, token = value.decode("latin-1").partition(" ")
            return token.strip() if kind.lower() == "bearer" and token.strip() else None
    return None


def csrf_token(session: str) -> str:
    """Return what a page must send along with its session, which no other site can know."""
    return access.derived("", session, "csrf")


async def identify(connection: Connection) -> Who:
    """Find out who speaks, by token or by a browser's session, before anything else is looked at."""
    controller: Controller = connection.app.state.controller
    token = bearer(connection)
    if token is not None:
        secret, who = token, await controller.who(token)
    else:
        session = connection.cookies.get(COOKIE)
        if session is None:
            raise Refused(401, "This needs a token: send the header Authorization: Bearer TOKEN.")
        secret, who = session, await controller.session(session)
        safe = connection.scope.get("method") in ("GET", "HEAD")
        if not safe and connection.headers.get("x-csrf-token") != csrf_token(session):
            raise Refused(403, "The page's token is missing or old; reload the page.")
    connection.scope["partage"] = (secret, who)  # type: ignore[typeddict-unknown-key]
    return who


def who_of(request: AnyRequest) -> Who:
    """Return who speaks, as `identify` found."""
    who: Who = request.scope["partage"][1]  # type: ignore[typeddict-item]
    return who


def secret_of(request: AnyRequest) -> str:
    """Return the secret that was shown."""
    secret: str = request.scope["partage"][0]  # type: ignore[typeddict-item]
    return secret


def controller_of(request: AnyRequest) -> Controller:
    """Return the controller of this process."""
    controller: Controller = request.app.state.controller
    return controller


# These stand before a handler as middleware: the framework's guards would cost a fifth of an ask.


def operator_only(app: ASGIApp) -> ASGIApp:
    """Refuse all but the operator."""
    return _only(lambda who, _: access.needs_operator(who), app)


def member_only(app: ASGIApp) -> ASGIApp:
    """Refuse all but agents of this collaboration."""
    return _only(access.needs_agent, app)


def readers_only(app: ASGIApp) -> ASGIApp:
    """Refuse all but the operator and agents of this collaboration."""
    return _only(access.needs_reader, app)


def bearers_only(app: ASGIApp) -> ASGIApp:
    """Refuse whoever shows nothing; whether it is an invite that may be used, joining tells."""

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        if bearer(ASGIConnection(scope)) is None:
            raise Refused(401, "Joining needs an invite: send the header Authorization: Bearer INVITE.")
        await app(scope, receive, send)

    return asgi


def _only(check: Callable[[Who, str], object], app: ASGIApp) -> ASGIApp:
    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        who = await identify(ASGIConnection(scope))
        check(who, scope["path_params"].get("id", ""))
        await app(scope, receive, send)

    return asgi


async def own_book(request: AnyRequest, id: str) -> tuple[Controller, Book, str]:
    """Return the controller, the agent's collaboration, and the agent."""
    controller = controller_of(request)
    agent = who_of(request).agent
    assert agent is not None
    return controller, controller.books.get(id) or await controller.book(id), agent


# what /schema says of a call, where the framework cannot know it

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
    found = {status: ResponseSpec(wire.Error, False, ERRORS[status]) for status in sorted(errors)}
    security: list[dict[str, list[str]]] = [] if bearer is None else [{bearer: []}]
    return {"operation_class": kind, "responses": {**(answers or {}), **found}, "security": security}


def answer_of(data: Any, description: str, media_type: str = "application/json") -> ResponseSpec:
    """Return how an answer is described."""
    return ResponseSpec(data, False, description, media_type)


# the operator's calls


@post(
    "/collaborations",
    middleware=[operator_only],
    summary="Create a collaboration",
    **described(*WRITES),
)
async def create(request: AnyRequest, data: JSONBody[wire.NewCollaboration]) -> wire.Created:
    """Create a collaboration, with invites for its first agents."""
    controller, began = controller_of(request), clock()
    id, codes = await controller.create(secret_of(request), data)
    if controller.books[id].state.config.time >= began:  # and not by an earlier request
        log.info("collaboration created", extra={"collaboration": id})
    return wire.Created(id, codes)


@get(
    "/collaborations",
    middleware=[operator_only],
    summary="List the collaborations",
    **described(401, 403, 503),
)
async def collaborations(request: AnyRequest) -> list[wire.CollaborationView]:
    """Return all collaborations, the oldest first."""
    return [collaboration_view(book.state) for book in await controller_of(request).collaborations()]


@get(
    "/collaborations/{id:str}",
    middleware=[readers_only],
    summary="The configuration and the tie order",
    **described(*READS),
)
async def collaboration(request: AnyRequest, id: FromPath[str]) -> wire.CollaborationView:
    """Return a collaboration's configuration."""
    return collaboration_view((await controller_of(request).fresh(id)).state)


@get(
    "/collaborations/{id:str}/agents",
    middleware=[operator_only],
    summary="List the agents",
    **described(*READS),
)
async def agents(request: AnyRequest, id: FromPath[str]) -> list[wire.AgentView]:
    """Return the agents in order of joining."""
    return agent_views((await controller_of(request).fresh(id)).state)


@post(
    "/collaborations/{id:str}/invites",
    middleware=[operator_only],
    summary="Make more invites",
    **described(*WRITES, 404, kind=BareCall),
)
async def invite(
    request: AnyRequest,
    id: FromPath[str],
    data: JSONBody[wire.NewInvites] = wire.NewInvites(),  # noqa: B008
) -> wire.Created:
    """Make invites, each for one agent."""
    return wire.Created(id, await controller_of(request).invite(secret_of(request), id, data))


@get(
    "/collaborations/{id:str}/invites",
    middleware=[operator_only],
    summary="List the invites that may be used",
    **described(*READS),
)
async def invites(request: AnyRequest, id: FromPath[str]) -> list[wire.InviteView]:
    """Return the invites that nobody used and that have not expired; their codes are not kept."""
    controller = controller_of(request)
    found = expiring(await controller.invites(id), (await controller.fresh(id)).state, clock())
    return [wire.InviteView(invite.id, invite.created, invite.expires) for invite in found]


@delete(
    "/collaborations/{id:str}/invites/{invite_id:str}",
    middleware=[operator_only],
    summary="Revoke an invite",
    **described(*READS),
)
async def revoke(request: AnyRequest, id: FromPath[str], invite_id: FromPath[str]) -> None:
    """Let an invite not be used any more."""
    await controller_of(request).revoke(id, invite_id)


@post(
    "/collaborations/{id:str}/close",
    middleware=[operator_only],
    status_code=200,
    summary="Close and settle",
    **described(*READS),
)
async def close(request: AnyRequest, id: FromPath[str]) -> wire.SettlementView:
    """Close a collaboration and return its settlement; again, the same."""
    controller = controller_of(request)
    before = (await controller.fresh(id)).state.closed
    view = await controller.close(id)
    if before is None:
        log.info("collaboration closed", extra={"collaboration": id})
    return view


# what both may read


@get(
    "/collaborations/{id:str}/board",
    middleware=[readers_only],
    summary="The board",
    **described(
        *READS,
        kind=TaggedCall,
        answers={
            200: answer_of(wire.BoardView, "The board."),
            304: answer_of(None, "The board is as If-None-Match says."),
        },
    ),
)
async def board(request: AnyRequest, id: FromPath[str]) -> Response[bytes]:
    """Return the board, with an ETag that covers every change."""
    body, etag = (await controller_of(request).fresh(id)).board()
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    known = request.headers.get("if-none-match", "").split(",")  # a proxy that packs answers marks its own with W/
    if not {etag, "*"}.isdisjoint(one.strip().removeprefix("W/") for one in known):
        return Response(b"", status_code=304, headers=headers)
    return Response(body, media_type=MediaType.JSON, headers=headers)


@get(
    "/collaborations/{id:str}/events",
    middleware=[readers_only],
    summary="The board, live (server-sent events)",
    **described(
        *READS,
        answers={200: answer_of(str, "Events named board, each with the board as its data.", "text/event-stream")},
    ),
)
async def events(request: AnyRequest, id: FromPath[str]) -> Stream:
    """Send the board now and after each change, coalesced."""
    controller = controller_of(request)
    await controller.book(id)

    async def boards() -> AsyncIterator[bytes]:
        last = b""
        async for book in controller.watch(id):
            if book is None:
                yield b": still here\n\n"
                continue
            body, _ = book.board()
            if body != last:
                last = body
                yield b"event: board\ndata: " + body + b"\n\n"

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Stream(boards(), media_type="text/event-stream", headers=headers)


@get(
    "/collaborations/{id:str}/settlement",
    middleware=[readers_only],
    summary="The settlement",
    **described(*READS),
)
async def settlement(request: AnyRequest, id: FromPath[str]) -> wire.SettlementView:
    """Return the settlement, before the close as if it closed now: to an agent her own row and the totals."""
    view = await controller_of(request).settlement(id)
    agent = who_of(request).agent
    return view if agent is None else own_view(view, agent)


@get(
    "/collaborations/{id:str}/ledger",
    middleware=[readers_only],
    summary="The ledger (NDJSON)",
    **described(*READS, answers={200: answer_of(str, "A line of JSON an event.", "application/x-ndjson")}),
)
async def ledger(request: AnyRequest, id: FromPath[str]) -> Stream:
    """Return the ledger, a line an event: to an agent with the commit pulls of others as salted hashes."""
    lines = await controller_of(request).ledger(id, who_of(request).agent)
    return Stream(lines, media_type="application/x-ndjson")


# the agents' calls


@post(
    "/collaborations/{id:str}/agents",
    middleware=[bearers_only],
    summary="Join, with an invite as the bearer",
    **described(*WRITES, bearer="invite"),
)
async def join(request: AnyRequest, id: FromPath[str], data: JSONBody[wire.NewAgent]) -> wire.Joined:
    """Join a collaboration with the arms to share; the token is shown this once."""
    code = bearer(request)
    assert code is not None
    controller, began = controller_of(request), clock()
    agent, token = await controller.join(id, code, data)
    member = controller.books[id].state.members.get(agent)
    if member is None or member.since >= began:  # and not by an earlier request
        log.info("agent joined", extra={"collaboration": id, "agent": agent})
    return wire.Joined(agent, token)


@post(
    "/collaborations/{id:str}/ask",
    middleware=[member_only],
    status_code=200,
    summary="What to pull next",
    **described(
        *WRITES,
        kind=BareCall,
        answers={
            200: answer_of(wire.Pull, "The pull to make."),
            204: answer_of(None, "With explore_only: there is nothing to explore."),
        },
    ),
)
async def ask(
    request: AnyRequest,
    id: FromPath[str],
    data: JSONBody[wire.Ask] = wire.Ask(),  # noqa: B008
) -> Response[wire.Pull | None]:
    """Return the agent's next pull: a claim to tell, or a commit pull; 204 in place of it with explore_only."""
    controller, book, agent = await own_book(request, id)
    pull = await controller.ask(book, agent, wire.checked_request(data.request), data.explore_only)
    return Response(pull, status_code=200 if pull is not None else 204)


@post(
    "/collaborations/{id:str}/tell",
    middleware=[member_only],
    status_code=200,
    summary="Report a claim's reward",
    **described(*WRITES, 404),
)
async def tell(request: AnyRequest, id: FromPath[str], data: JSONBody[wire.Tell]) -> wire.Told:
    """Broadcast the reward of a claim. It is on disk when this is answered."""
    controller, book, agent = await own_book(request, id)
    return await controller.tell(book, agent, data.pull, data.reward)


@post(
    "/collaborations/{id:str}/commits",
    middleware=[member_only],
    status_code=200,
    summary="Report commit pulls",
    **described(*WRITES),
)
async def commits(request: AnyRequest, id: FromPath[str], data: JSONBody[wire.Commits]) -> wire.Told:
    """Count commit pulls that the client decided by itself."""
    controller, book, agent = await own_book(request, id)
    return await controller.commits(book, agent, data)


@get(
    "/collaborations/{id:str}/agents/me",
    middleware=[member_only],
    summary="Yourself",
    **described(401, 403, 503),
)
async def me(request: AnyRequest, id: FromPath[str]) -> wire.AgentView:
    """Return the agent's own entry."""
    agent = who_of(request).agent
    views = agent_views((await controller_of(request).fresh(id)).state)
    return next(view for view in views if view.agent == agent)


@patch(
    "/collaborations/{id:str}/agents/me",
    middleware=[member_only],
    summary="Change what you share",
    **described(*WRITES),
)
async def consent(request: AnyRequest, id: FromPath[str], data: JSONBody[wire.Consent]) -> wire.AgentView:
    """Share these arms and no others from now on; claims on arms that are withdrawn are cancelled."""
    controller, book, agent = await own_book(request, id)
    await controller.consent(book, agent, data.shares, data.request)
    return next(view for view in agent_views(book.state) if view.agent == agent)


@delete(
    "/collaborations/{id:str}/agents/me",
    middleware=[member_only],
    summary="Leave",
    **described(401, 403, 409, 503),
)
async def leave(request: AnyRequest, id: FromPath[str]) -> None:
    """Leave; what was broadcast stays, and so does the agent's row of the settlement."""
    controller, agent = controller_of(request), who_of(request).agent
    assert agent is not None
    book = await controller.fresh(id)
    before = book.state.members[agent].left
    await controller.leave(book, agent)
    if not before:
        log.info("agent left", extra={"collaboration": id, "agent": agent})


# the operator's machinery


@get(
    "/health",
    summary="Whether this process answers",
    **described(bearer=None),
)
async def health() -> dict[str, str]:
    """Say that the process is alive."""
    return {"status": "ok", "version": __version__}


@get(
    "/ready",
    summary="Whether the database answers too",
    **described(503, bearer=None),
)
async def ready(request: AnyRequest) -> dict[str, str]:
    """Say that requests can be served."""
    controller = controller_of(request)
    await controller.reading(controller.store.ready)
    return {"status": "ready"}


@get("/metrics", media_type=MediaType.TEXT, summary="Metrics for Prometheus", include_in_schema=False)
async def metrics(request: AnyRequest) -> Response[bytes]:
    """Return counters and latencies in Prometheus's text format."""
    found: Metrics = request.app.state.metrics
    return Response(found.text(controller_of(request)), media_type="text/plain; version=0.0.4; charset=utf-8")


# refusals


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


# together


def measured(app: ASGIApp) -> ASGIApp:
    """Count each request and its time."""

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        if str(scope["type"]) != "http":
            await app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def watching(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await app(scope, receive, watching)
        except Refused as error:  # of the middleware; it is answered further out
            status = error.status
            raise
        except StoreError:
            status = 503
            raise
        finally:
            scope["litestar_app"].state.metrics.count(scope, status, time.perf_counter() - began)

    return asgi


def create_app(controller: Controller) -> Litestar:
    """Return the application of a controller."""
    from partage.service.pages import page_routes

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncIterator[None]:
        await controller.start()
        log.info("started", extra={"version": __version__})
        yield
        await controller.stop()
        log.info("stopped")

    calls: list[Any] = [create, collaborations, collaboration, agents, invite, invites, revoke, close]
    calls += [board, events, settlement, ledger, join, ask, tell, commits, me, consent, leave]
    schemes = {
        "token": SecurityScheme(type="http", scheme="bearer", description="The operator's token, or an agent's."),
        "invite": SecurityScheme(type="http", scheme="bearer", description="The code of an invite."),
    }
    return Litestar(
        [Router("/v1", route_handlers=calls), health, ready, metrics, *page_routes()],
        lifespan=[lifespan],
        state=AppState({"controller": controller, "metrics": Metrics()}),
        request_class=StrictRequest,
        request_max_body_size=wire.LARGEST_BODY,
        middleware=[measured],
        exception_handlers={
            Refused: refused,
            ValidationException: invalid_body,
            HTTPException: http_error,
            StoreError: store_failed,
            Exception: failed,
        },
        openapi_config=OpenAPIConfig(
            title="Partage",
            version=__version__,
            description="The live controller: many parties learn together which option is best.",
            path="/schema",
            render_plugins=[JsonRenderPlugin(path=["/openapi.json", "/"]), YamlRenderPlugin()],
            components=Components(security_schemes=dict(schemes)),
        ),
        logging_config=None,
    )

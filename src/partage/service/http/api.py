"""The API's calls, one function each: who may make it, what it takes and what it answers."""

import logging
from collections.abc import AsyncIterator
from typing import Any

from litestar import MediaType, Response, delete, get, patch, post
from litestar.params import FromPath, JSONBody
from litestar.response import Stream

from partage import __version__
from partage.ledger import messages as wire
from partage.ledger.settlement import own_view
from partage.ledger.views import agent_views, collaboration_view
from partage.service.http.auth import (
    AnyRequest,
    bearer,
    bearers_only,
    controller_of,
    member_only,
    operator_only,
    readers_only,
    secret_of,
    who_of,
)
from partage.service.http.schema import READS, WRITES, BareCall, TaggedCall, answer_of, described
from partage.service.metrics import Metrics
from partage.service.runtime.book import Book, clock
from partage.service.runtime.controller import Controller
from partage.service.runtime.invites import expiring

log = logging.getLogger("partage.service")


async def own_book(request: AnyRequest, id: str) -> tuple[Controller, Book, str]:
    """Return the controller, the agent's collaboration, and the agent."""
    controller = controller_of(request)
    agent = who_of(request).agent
    assert agent is not None
    return controller, controller.books.get(id) or await controller.book(id), agent


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


API: list[Any] = [create, collaborations, collaboration, agents, invite, invites, revoke, close]
API += [board, events, settlement, ledger, join, ask, tell, commits, me, consent, leave]

"""The API's calls, one function each: who may make it, what it takes and what it returns."""

import logging
import math
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from litestar import MediaType, Response, delete, get, patch, post
from litestar.params import FromPath, JSONBody
from litestar.response import Stream

from partage import __version__
from partage.ledger import messages, signatures
from partage.ledger.fields import checked_request
from partage.ledger.refusals import forbidden, invalid
from partage.ledger.settlement import own_view
from partage.ledger.terms import warnings_of
from partage.ledger.views import collaboration_view
from partage.service.http.auth import (
    AnyRequest,
    address_of,
    agent_only,
    bearer,
    bearer_only,
    controller_of,
    costly,
    downloading,
    guard_of,
    operator_only,
    reader_only,
    secret_of,
    streaming,
    who_of,
)
from partage.service.http.responses import Encoded
from partage.service.http.schema import (
    LONGEST_WAIT,
    READS,
    WRITES,
    BareCall,
    StreamCall,
    TaggedCall,
    WaitingCall,
    answer_of,
    described,
)
from partage.service.http.transparency import TRANSPARENCY, seen_by
from partage.service.metrics import Metrics
from partage.service.runtime.book import Book
from partage.service.runtime.controller import Controller
from partage.service.runtime.readiness import Readiness
from partage.service.runtime.sessions import By

log = logging.getLogger("partage.service")


async def own_book(request: AnyRequest, id: str) -> tuple[Controller, Book, str]:
    """Return the controller, the agent's collaboration, and the agent."""
    controller = controller_of(request)
    agent = who_of(request).agent
    assert agent is not None
    return controller, await controller.library.book(id), agent


def by_whom(request: AnyRequest) -> By:
    """Return what else came with the request of a member: its signature, and the epoch of its token."""
    found = request.scope.get("partage")  # not where an invite is the bearer token
    epoch = None if found is None else who_of(request).epoch
    value = request.headers.get(signatures.HEADER)
    if value is None:
        return By(None, epoch)
    signed = signatures.read_header(value)
    if signed is None:
        sentence = f"The header {signatures.HEADER} must be the request's number, a space, and 64 bytes in base64."
        raise invalid(signatures.HEADER, sentence)
    return By(signed, epoch)


def seconds_of(request: AnyRequest) -> float:
    """Return how long an ask may wait for a claim."""
    if not request.scope["query_string"]:
        return 0.0
    given = request.query_params.get("wait", "0")
    try:
        found = float(given)
    except ValueError:
        found = math.nan
    if not 0 <= found <= LONGEST_WAIT:
        raise invalid("wait", f"The parameter wait must be a number of seconds from 0 to {LONGEST_WAIT:g}.")
    return found


def created_with(book: Book, invites: int) -> list[str]:
    """Return the warnings about a new collaboration. A single invite says little about how many will join."""
    return warnings_of(msgspec.structs.asdict(book.state.config), max(2, invites))


# the operator's calls


@post(
    "/collaborations",
    middleware=[operator_only],
    summary="Create a collaboration",
    **described(*WRITES),
)
async def create(request: AnyRequest, data: JSONBody[messages.NewCollaboration]) -> messages.Created:
    """Create a collaboration, with invites for its first agents."""
    controller = controller_of(request)
    began = controller.library.timekeeper.now()
    id, codes = await controller.create(secret_of(request), data)
    if controller.library.books[id].state.config.time >= began:  # not a repeated request
        log.info("collaboration created", extra={"collaboration": id})
    return messages.Created(id, codes, created_with(controller.library.books[id], data.invites))


@get(
    "/collaborations",
    middleware=[operator_only],
    summary="List the collaborations",
    **described(401, 403, 500, 503),
)
async def collaborations(request: AnyRequest) -> list[messages.CollaborationView]:
    """Return all collaborations, the oldest first."""
    controller = controller_of(request)
    key = controller.secret.key.public
    return await controller.library.all(lambda book: collaboration_view(book.state, key))


@get(
    "/collaborations/{id:str}",
    middleware=[reader_only],
    summary="Read the configuration and the tie order",
    **described(*READS),
)
async def collaboration(request: AnyRequest, id: FromPath[str]) -> messages.CollaborationView:
    """Return a collaboration's configuration."""
    controller = controller_of(request)
    return collaboration_view((await controller.library.fresh(id)).state, controller.secret.key.public)


@get(
    "/collaborations/{id:str}/agents",
    middleware=[operator_only],
    summary="List the agents",
    **described(*READS),
)
async def agents(request: AnyRequest, id: FromPath[str]) -> list[messages.AgentView]:
    """Return the agents in order of joining."""
    controller = controller_of(request)
    return controller.agents(await controller.library.fresh(id))


@post(
    "/collaborations/{id:str}/agents/{agent:str}/set-aside",
    middleware=[operator_only],
    status_code=200,
    summary="Set an agent's broadcasts aside",
    **described(*WRITES, 404),
)
async def set_aside(
    request: AnyRequest, id: FromPath[str], agent: FromPath[str], data: JSONBody[messages.SetAside]
) -> messages.AgentView:
    """Take an agent's broadcasts out of the record, for a reason that all members read. This cannot be undone."""
    controller = controller_of(request)
    await controller.set_aside(id, agent, data.reason)
    log.info("broadcasts set aside", extra={"collaboration": id, "agent": agent})
    return controller.agent(await controller.library.fresh(id), agent)


@post(
    "/collaborations/{id:str}/agents/{agent:str}/remove",
    middleware=[operator_only],
    status_code=200,
    summary="Remove an agent",
    **described(*WRITES, 404),
)
async def remove(
    request: AnyRequest, id: FromPath[str], agent: FromPath[str], data: JSONBody[messages.Remove]
) -> messages.AgentView:
    """End a membership, for a reason that all members read. Broadcasts and the settlement's row stay."""
    controller = controller_of(request)
    await controller.remove(id, agent, data.reason)
    log.info("agent removed", extra={"collaboration": id, "agent": agent})
    return controller.agent(await controller.library.fresh(id), agent)


@post(
    "/collaborations/{id:str}/agents/{agent:str}/token",
    middleware=[operator_only],
    status_code=200,
    summary="Make a new token for an agent",
    **described(*WRITES, 404, kind=BareCall),
)
async def renew(
    request: AnyRequest,
    id: FromPath[str],
    agent: FromPath[str],
    data: JSONBody[messages.Renew] = messages.Renew(),  # noqa: B008
) -> messages.NewToken:
    """Make a new token for an agent that lost its own, which ends. Its key stays."""
    made = await controller_of(request).renew(id, agent, secret_of(request), data.request)
    log.info("token renewed", extra={"collaboration": id, "agent": agent})
    return made


@delete(
    "/collaborations/{id:str}/agents/{agent:str}/token",
    middleware=[operator_only],
    summary="Revoke an agent's token",
    **described(*READS, 409),
)
async def revoke_token(request: AnyRequest, id: FromPath[str], agent: FromPath[str]) -> None:
    """End an agent's token and its browser sessions, at once."""
    await controller_of(request).revoke(id, agent)
    log.info("token revoked", extra={"collaboration": id, "agent": agent})


@post(
    "/collaborations/{id:str}/arms",
    middleware=[operator_only],
    status_code=200,
    summary="Add an arm",
    **described(*WRITES, 404),
)
async def add_arm(
    request: AnyRequest, id: FromPath[str], data: JSONBody[messages.NewArm]
) -> messages.CollaborationView:
    """Add an arm, up to the number that was declared at creation. Nobody shares it until they say so."""
    controller = controller_of(request)
    book = await controller.add_arm(id, data.name)
    log.info("arm added", extra={"collaboration": id})
    return collaboration_view(book.state, controller.secret.key.public)


@post(
    "/collaborations/{id:str}/invites",
    middleware=[operator_only],
    summary="Make more invites",
    **described(*WRITES, 404, kind=BareCall),
)
async def invite(
    request: AnyRequest,
    id: FromPath[str],
    data: JSONBody[messages.NewInvites] = messages.NewInvites(),  # noqa: B008
) -> messages.Created:
    """Make invites, each for one agent."""
    return messages.Created(id, await controller_of(request).invites.add(secret_of(request), id, data))


@get(
    "/collaborations/{id:str}/invites",
    middleware=[operator_only],
    summary="List the invites that can still be used",
    **described(*READS),
)
async def invites(request: AnyRequest, id: FromPath[str]) -> list[messages.InviteView]:
    """Return the invites that can still be used; their codes are not stored."""
    found = await controller_of(request).invites.usable(id)
    return [messages.InviteView(invite.id, invite.created, invite.expires) for invite in found]


@delete(
    "/collaborations/{id:str}/invites/{invite_id:str}",
    middleware=[operator_only],
    summary="Revoke an invite",
    **described(*READS),
)
async def revoke(request: AnyRequest, id: FromPath[str], invite_id: FromPath[str]) -> None:
    """Revoke an invite."""
    await controller_of(request).invites.revoke(id, invite_id)


@post(
    "/collaborations/{id:str}/close",
    middleware=[operator_only, costly("close")],
    status_code=200,
    summary="Close and settle",
    **described(*READS),
)
async def close(request: AnyRequest, id: FromPath[str]) -> messages.SettlementView:
    """Close a collaboration and return its settlement; closing it again returns the same."""
    controller = controller_of(request)
    before = (await controller.library.fresh(id)).state.closed
    view = await controller.settlements.close(id)
    if before is None:
        log.info("collaboration closed", extra={"collaboration": id})
    return view


# what operator and agents may read


@get(
    "/collaborations/{id:str}/board",
    middleware=[reader_only],
    summary="Read the board",
    **described(
        *READS,
        kind=TaggedCall,
        answers={
            200: answer_of(messages.BoardView, "The board."),
            304: answer_of(None, "The board has not changed since If-None-Match."),
        },
    ),
)
async def board(request: AnyRequest, id: FromPath[str]) -> Response[bytes]:
    """Return the board, with an ETag that covers every change."""
    body, etag = (await controller_of(request).library.fresh(id)).board()
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    known = request.headers.get("if-none-match", "").split(
        ","
    )  # a proxy that compresses answers marks their tags with W/
    if not {etag, "*"}.isdisjoint(one.strip().removeprefix("W/") for one in known):
        return Response(b"", status_code=304, headers=headers)
    return Response(body, media_type=MediaType.JSON, headers=headers)


@get(
    "/collaborations/{id:str}/events",
    middleware=[reader_only, streaming],
    summary="Follow the board (server-sent events)",
    **described(
        *READS,
        422,
        kind=StreamCall,
        answers={200: answer_of(str, "Events named board, each with the board as its data.", "text/event-stream")},
    ),
)
async def events(request: AnyRequest, id: FromPath[str]) -> Stream:
    """Send the board now and after each change, as a patch if asked for; several changes may be sent as one."""
    controller, who = controller_of(request), who_of(request)
    patches = request.query_params.get("patches", "false")
    if patches not in ("true", "false"):
        raise invalid("patches", "The parameter patches must be true or false.")
    await controller.library.book(id)

    async def boards() -> AsyncIterator[bytes]:
        known = 0
        async for book in controller.watch(id, who):
            if book is None:
                yield b": still here\n\n"
                continue
            frames = book.shown()
            if frames.last != known:
                event, known = frames.event(known if patches == "true" else 0), frames.last
                yield event

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Stream(boards(), media_type="text/event-stream", headers=headers)


@get(
    "/collaborations/{id:str}/settlement",
    middleware=[reader_only, costly("settlement")],
    summary="Read the settlement",
    **described(*READS),
)
async def settlement(request: AnyRequest, id: FromPath[str]) -> messages.SettlementView:
    """Return the settlement; before the close, what it would be now. An agent gets its own row and the totals."""
    view = await controller_of(request).settlements.view(id)
    agent = who_of(request).agent
    return view if agent is None else own_view(view, agent)


@get(
    "/collaborations/{id:str}/agents/{agent:str}/account",
    middleware=[reader_only, costly("settlement")],
    summary="Read how an agent's amounts come about",
    **described(*READS),
)
async def account(request: AnyRequest, id: FromPath[str], agent: FromPath[str]) -> messages.AccountView:
    """Explain an agent's part of the settlement, arm by arm. An agent may read its own only."""
    reader = who_of(request).agent
    if reader is not None and agent != reader:
        raise forbidden("not_permitted", "You may read only your own account.")
    return await controller_of(request).settlements.account(id, agent)


@get(
    "/collaborations/{id:str}/ledger",
    middleware=[reader_only, downloading],
    summary="Read the ledger (NDJSON)",
    **described(*READS, answers={200: answer_of(str, "One line of JSON per event.", "application/x-ndjson")}),
)
async def ledger(request: AnyRequest, id: FromPath[str]) -> Stream:
    """Return the ledger, one line per event. An agent gets other agents' commit pulls as salted hashes."""
    lines = await controller_of(request).ledger(id, who_of(request).agent)
    return Stream(lines, media_type="application/x-ndjson")


# the agents' calls


@post(
    "/collaborations/{id:str}/agents",
    middleware=[bearer_only],
    summary="Join, with an invite as the bearer token",
    **described(*WRITES, bearer="invite"),
)
async def join(request: AnyRequest, id: FromPath[str], data: JSONBody[messages.NewAgent]) -> messages.Joined:
    """Join a collaboration and share some arms; the token is shown only here."""
    code = bearer(request)
    assert code is not None
    controller = controller_of(request)
    began, seen = controller.library.timekeeper.now(), seen_by(request)
    with guard_of(request.scope).guess(address_of(request.scope)):
        agent, token = await controller.join(id, code, data, by_whom(request))
    book = await controller.library.book(id)
    member = book.state.members[agent]
    if member.since >= began:  # not a repeated request
        log.info("agent joined", extra={"collaboration": id, "agent": agent})
    receipt = await controller.receipts.of(book, member.joined, seen)
    return messages.Joined(agent, token, receipt, member.name, collaboration_view(book.state).terms)


@post(
    "/collaborations/{id:str}/ask",
    middleware=[agent_only],
    status_code=200,
    summary="Ask what to pull next",
    **described(
        *WRITES,
        kind=WaitingCall,
        answers={
            200: answer_of(messages.Pull, "The pull to make."),
            204: answer_of(None, "With explore_only: nothing to explore."),
        },
    ),
)
async def ask(
    request: AnyRequest,
    id: FromPath[str],
    data: JSONBody[messages.Ask] = messages.Ask(),  # noqa: B008
) -> Response[messages.Pull | None]:
    """Return the agent's next pull: a claim to report, or a commit pull (with explore_only: 204 instead)."""
    wait = seconds_of(request)
    controller, book, agent = await own_book(request, id)
    pull = await controller.ask(
        book, agent, checked_request(data.request), data.explore_only, seen_by(request), by_whom(request), wait
    )
    return Encoded(pull, 200 if pull is not None else 204)


@get(
    "/collaborations/{id:str}/draw",
    middleware=[reader_only],
    summary="Read the draw of the tie order",
    **described(*READS),
)
async def draw(request: AnyRequest, id: FromPath[str]) -> messages.DrawView:
    """Return the draw of the tie order: whose nonces count, and for whom it waits."""
    return await controller_of(request).draw(id, seen_by(request))


@post(
    "/collaborations/{id:str}/reveal",
    middleware=[agent_only],
    status_code=200,
    summary="Reveal your nonce for the tie order",
    **described(*WRITES),
)
async def reveal(request: AnyRequest, id: FromPath[str], data: JSONBody[messages.Reveal]) -> messages.Revealed:
    """Reveal the nonce that the agent committed to on joining, once the tie order is being drawn."""
    controller, book, agent = await own_book(request, id)
    return await controller.reveal(book, agent, data.nonce, seen_by(request), by_whom(request))


@post(
    "/collaborations/{id:str}/tell",
    middleware=[agent_only],
    status_code=200,
    summary="Report the reward of a claim",
    **described(*WRITES, 404),
)
async def tell(request: AnyRequest, id: FromPath[str], data: JSONBody[messages.Tell]) -> Response[messages.Told]:
    """Broadcast the reward of a claim. It is on disk before the answer is sent."""
    controller, book, agent = await own_book(request, id)
    return Encoded(await controller.tell(book, agent, data.pull, data.reward, seen_by(request), by_whom(request)))


@post(
    "/collaborations/{id:str}/commits",
    middleware=[agent_only],
    status_code=200,
    summary="Report commit pulls",
    **described(*WRITES),
)
async def commits(
    request: AnyRequest, id: FromPath[str], data: JSONBody[messages.Commits]
) -> Response[messages.Told]:
    """Count commit pulls that the client decided itself."""
    controller, book, agent = await own_book(request, id)
    return Encoded(await controller.commits(book, agent, data, seen_by(request), by_whom(request)))


@post(
    "/collaborations/{id:str}/history",
    middleware=[agent_only, costly("history")],
    status_code=200,
    summary="Attach past rewards of an arm",
    **described(*WRITES),
)
async def attach(request: AnyRequest, id: FromPath[str], data: JSONBody[messages.Attach]) -> messages.Told:
    """Add past rewards of an arm to the record, before the agent's first pull. They are evidence and not paid."""
    controller, book, agent = await own_book(request, id)
    return await controller.attach(book, agent, data, seen_by(request), by_whom(request))


@get(
    "/collaborations/{id:str}/agents/me",
    middleware=[agent_only],
    summary="Your own entry",
    **described(401, 403, 500, 501, 503),
)
async def me(request: AnyRequest, id: FromPath[str]) -> messages.AgentView:
    """Return the agent's own entry."""
    controller, agent = controller_of(request), who_of(request).agent
    assert agent is not None
    return controller.agent(await controller.library.fresh(id), agent)


@patch(
    "/collaborations/{id:str}/agents/me",
    middleware=[agent_only, costly("consent")],
    summary="Change what you share",
    **described(*WRITES),
)
async def consent(request: AnyRequest, id: FromPath[str], data: JSONBody[messages.Consent]) -> messages.AgentView:
    """Share exactly these arms from now on; open claims on withdrawn arms are cancelled."""
    controller, book, agent = await own_book(request, id)
    receipt = await controller.consent(book, agent, data.shares, data.request, seen_by(request), by_whom(request))
    view = controller.agent(book, agent)
    view.receipt = receipt
    return view


@post(
    "/collaborations/{id:str}/agents/me/token",
    middleware=[agent_only, costly("token")],
    status_code=200,
    summary="Get a new token",
    **described(*WRITES, kind=BareCall),
)
async def rotate(
    request: AnyRequest,
    id: FromPath[str],
    data: JSONBody[messages.Rotate] = messages.Rotate(),  # noqa: B008
) -> messages.NewToken:
    """Get a new token, which ends the old one at once, and bring a new key, signed by the old one."""
    controller, book, agent = await own_book(request, id)
    made = await controller.rotate(book, agent, secret_of(request), data, seen_by(request), by_whom(request))
    log.info("token rotated", extra={"collaboration": id, "agent": agent})
    return made


@delete(
    "/collaborations/{id:str}/agents/me",
    middleware=[agent_only],
    summary="Leave",
    **described(401, 403, 409, 500, 501, 503),
)
async def leave(request: AnyRequest, id: FromPath[str]) -> None:
    """Leave. Broadcasts stay, and so does the agent's row in the settlement."""
    controller, agent = controller_of(request), who_of(request).agent
    assert agent is not None
    book = await controller.library.fresh(id)
    before = book.state.members[agent].left
    await controller.leave(book, agent, by_whom(request))
    if not before:
        log.info("agent left", extra={"collaboration": id, "agent": agent})


# monitoring


@get(
    "/health",
    summary="Whether the process is alive",
    **described(bearer=None),
)
async def health() -> dict[str, str]:
    """Report that the process is alive."""
    return {"status": "ok", "version": __version__}


@get(
    "/ready",
    summary="Whether requests can be served",
    **described(503, bearer=None),
)
async def ready(request: AnyRequest) -> dict[str, str]:
    """Report that the database takes writes, as of a few seconds ago at most."""
    readiness: Readiness = request.app.state.readiness
    await readiness.check()
    return {"status": "ready"}


@get("/metrics", media_type=MediaType.TEXT, summary="Metrics for Prometheus", include_in_schema=False)
async def metrics(request: AnyRequest) -> Response[bytes]:
    """Return counters and latencies in Prometheus's text format."""
    found: Metrics = request.app.state.metrics
    return Response(found.text(controller_of(request)), media_type="text/plain; version=0.0.4; charset=utf-8")


API: list[Any] = [
    create,
    collaborations,
    collaboration,
    agents,
    set_aside,
    remove,
    renew,
    revoke_token,
    add_arm,
    invite,
    invites,
    revoke,
    close,
]
API += [
    board,
    events,
    settlement,
    account,
    ledger,
    join,
    draw,
    reveal,
    ask,
    tell,
    commits,
    attach,
    me,
    consent,
    rotate,
    leave,
]
API += TRANSPARENCY

"""The pages' routes. They call the same methods of the controller as the API, for whoever the session belongs to."""

import csv
import io
import re
import secrets
from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Response, Router, get, post
from litestar.datastructures import Cookie
from litestar.params import FromPath, JSONBody
from litestar.response import Redirect, Stream

from partage.ledger import messages as wire
from partage.ledger.refusals import Refused, forbidden, missing
from partage.service.http.auth import COOKIE, AnyRequest, bearer, controller_of, csrf_token, readers_only
from partage.service.http.responses import refused
from partage.service.pages import forms, live
from partage.service.pages.html import HEADERS, STATIC, page
from partage.service.runtime import secrets as access
from partage.service.runtime.book import Book, clock
from partage.service.runtime.controller import SESSION_TIME, Controller
from partage.service.runtime.invites import expiring
from partage.service.runtime.secrets import Who, needs_operator

YEAR = 365 * 24 * 3600
LOGIN_COOKIE, LOGIN_TIME = "partage_login", 3600  # seconds that a page may be open before one logs in on it
STREAM = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}


# who looks


async def seen(request: AnyRequest) -> tuple[str, Who]:
    """Return the browser's session and whose it is, or refuse with 401."""
    session = request.cookies.get(COOKIE)
    if session is None:
        raise Refused(401, "Log in first.")
    return session, await controller_of(request).session(session)


async def maybe_seen(request: AnyRequest) -> tuple[str, Who] | None:
    """Return the browser's session, or None if there is none that is valid."""
    try:
        return await seen(request)
    except Refused:
        return None


async def operator(request: AnyRequest) -> str:
    """Return the operator's session, or refuse."""
    session, who = await seen(request)
    needs_operator(who)
    return session


async def posted(request: AnyRequest) -> tuple[str, Who, dict[str, str]]:
    """Return session, who it is, and the form. Only our own pages know the token that must come with it."""
    session, who = await seen(request)
    form = await fields(request)
    given = request.headers.get("x-csrf-token") or form.get("csrf", "")
    if not secrets.compare_digest(given.encode(), csrf_token(session).encode()):
        raise forbidden("The page's token is missing or old; reload the page.")
    return session, who, form


async def fields(request: AnyRequest) -> dict[str, str]:
    """Return a form's fields."""
    return {name: value for name, value in (await request.form()).items() if isinstance(value, str)}


def secure(request: AnyRequest) -> bool:
    """Whether the browser came over https, to us or to the proxy before us."""
    return (request.headers.get("x-forwarded-proto") or request.url.scheme).split(",")[0].strip() == "https"


def cookie(request: AnyRequest, value: str, seconds: int, key: str = COOKIE) -> Cookie:
    """Return the session's cookie, or another that is as closed."""
    flags: dict[str, Any] = {"httponly": True, "samesite": "strict", "secure": secure(request)}
    return Cookie(key=key, value=value, max_age=seconds, path="/", **flags)


def safe_next(address: str) -> str:
    """Return an address of ours to go on to; any other becomes the first page."""
    return address if re.fullmatch(r"/(me|c/[0-9A-Za-z_-]+)?", address) else "/"


# coming and going


def login_token(secret: str) -> str:
    """Return what a form for logging in must send along with its cookie, which no other site can know."""
    return access.derived("", secret, "login")


def login_page(request: AnyRequest, template: str = "login.html", status: int = 200, **given: Any) -> Response[str]:
    """Return a page on which one can log in. Several that are open in one browser share its cookie."""
    secret = request.cookies.get(LOGIN_COOKIE) or access.fresh("")
    answer = page(template, status, csrf=None, login=login_token(secret), **given)
    answer.set_cookie(cookie(request, secret, LOGIN_TIME, LOGIN_COOKIE))
    return answer


@post("/login", status_code=303)
async def login(request: AnyRequest) -> Response[Any]:
    """Begin a session with a token, the operator's or an agent's."""
    # A page elsewhere must not log a browser in as somebody else; browsers say where a form came from.
    if request.headers.get("sec-fetch-site") not in (None, "same-origin", "none"):
        raise forbidden("Log in from this site's own page.")
    form = await fields(request)
    next_page = safe_next(form.get("next", "/"))
    secret, given = request.cookies.get(LOGIN_COOKIE), form.get("login", "")
    if not secret or not secrets.compare_digest(given.encode(), login_token(secret).encode()):
        sentence = "This page was open for too long, or the browser keeps no cookies. Log in here."
        return login_page(request, status=403, next=next_page, error=sentence)
    try:
        session, who = await controller_of(request).log_in(form.get("token", "").strip())
    except Refused:
        sentence = "This token is not known here. Check that you copied all of it."
        return login_page(request, status=401, next=next_page, error=sentence)
    if before := request.cookies.get(COOKIE):  # whoever this browser was before, it is not any more
        await controller_of(request).log_out(before)
    if not who.operator:
        next_page = "/me"
    elif next_page == "/me":
        next_page = "/"
    answer = Redirect(next_page, status_code=303)
    answer.set_cookie(cookie(request, session, SESSION_TIME // 1000))
    return answer


@post("/logout", status_code=303)
async def logout(request: AnyRequest) -> Response[Any]:
    """End the session."""
    session, _, _ = await posted(request)
    await controller_of(request).log_out(session)
    answer = Redirect("/", status_code=303)
    answer.set_cookie(cookie(request, "", 0))
    return answer


# the operator's pages


@get("/")
async def home(request: AnyRequest) -> Response[Any]:
    """Show the operator's collaborations; send a member to her page, and others to log in."""
    found = await maybe_seen(request)
    if found is None:
        return login_page(request, next="/", error=None)
    session, who = found
    if not who.operator:
        return Redirect("/me", status_code=303)
    return page("home.html", csrf=csrf_token(session), rows=await rows_of(controller_of(request)), **create_form({}))


async def rows_of(controller: Controller) -> list[dict[str, Any]]:
    """Return the collaborations as the list shows them, the newest first."""
    return [_row(book) for book in reversed(await controller.collaborations())]


def _row(book: Book) -> dict[str, Any]:
    state = book.state
    board, leader = state.board, state.target() if state.version else None
    return {
        "id": book.id,
        "name": state.config.name,
        "closed": state.closed is not None,
        "leader": None if leader is None else state.config.arms[leader],
        "mean": None if leader is None or not board.counts[leader] else board.mean(leader),
        "arms": board.arms,
        "active": len(board.actives()),
        "agents": len(state.members),
        "broadcasts": state.version,
        "created": state.config.time,
    }


def create_form(form: Mapping[str, str], errors: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what the form for a new collaboration shows. Sent twice, its request is still one."""
    values = {**forms.DEFAULTS, "request": secrets.token_hex(8), **form}
    return {"values": values, "errors": errors or {}, "rules": forms.RULES, "settlements": forms.SETTLEMENTS}


@post("/collaborations", status_code=200)
async def create(request: AnyRequest) -> Response[Any]:
    """Create a collaboration and show its invites, this once."""
    session, who, form = await posted(request)
    needs_operator(who)
    try:
        id, codes = await controller_of(request).create(session, forms.new_collaboration(form))
    except Refused as refusal:
        return page("create.html", 422, csrf=csrf_token(session), **create_form(form, forms.at_field(refusal)))
    links = [link(request, id, code) for code in codes]
    rows = await rows_of(controller_of(request))  # the list beside it has one more now
    return page("created.html", id=id, name=form["name"].strip(), links=links, rows=rows, fresh=True)


def link(request: AnyRequest, id: str, code: str) -> str:
    """Return an invite's link. The code stands in the fragment, which browsers do not send."""
    scheme = "https" if secure(request) else "http"
    return f"{scheme}://{request.headers.get('host', 'localhost')}/join#{id}.{code}"


@get("/c/{id:str}")
async def collaboration(request: AnyRequest, id: FromPath[str]) -> Response[Any]:
    """Show a collaboration to the operator, live."""
    session = await operator(request)
    controller = controller_of(request)
    book = await controller.fresh(id)
    given = await invites_of(controller, book)
    return page("collaboration.html", csrf=csrf_token(session), config=book.state.config, state=book.state, **given)


async def invites_of(controller: Controller, book: Book) -> dict[str, Any]:
    """Return what the section of the invites shows."""
    usable = expiring(await controller.invites(book.id), book.state, clock())
    return {"invites": usable, "id": book.id, "closed": book.state.closed is not None}


@get("/c/{id:str}/invites")
async def invites(request: AnyRequest, id: FromPath[str]) -> Response[Any]:
    """Return the list of the invites that may be used, as it is now."""
    await operator(request)
    controller = controller_of(request)
    return page("invite_list.html", **await invites_of(controller, await controller.fresh(id)))


@post("/c/{id:str}/invites", status_code=200)
async def invite(request: AnyRequest, id: FromPath[str]) -> Response[Any]:
    """Make more invites, and show them this once."""
    session, who, form = await posted(request)
    needs_operator(who)
    controller = controller_of(request)
    codes, error = [], None
    try:
        count = forms.number({"invites": form.get("count", "")}, "invites")
        codes = await controller.invite(session, id, wire.NewInvites(invites=int(count)))
    except Refused as refusal:
        error = refusal.sentence
    given = await invites_of(controller, await controller.fresh(id))
    links = [link(request, id, code) for code in codes]
    return page("invited.html", links=links, error=error, fresh=True, **given)


@post("/c/{id:str}/invites/{invite_id:str}/revoke", status_code=200)
async def revoke(request: AnyRequest, id: FromPath[str], invite_id: FromPath[str]) -> Response[Any]:
    """Let an invite not be used any more."""
    _, who, _ = await posted(request)
    needs_operator(who)
    controller = controller_of(request)
    await controller.revoke(id, invite_id)
    return page("invite_list.html", **await invites_of(controller, await controller.fresh(id)))


@get("/c/{id:str}/events")
async def events(request: AnyRequest, id: FromPath[str]) -> Stream:
    """Send the operator's snapshots."""
    await operator(request)
    controller = controller_of(request)
    book = await controller.fresh(id)
    stream = live.live(controller, book, live.operator_snapshot, None)
    return Stream(stream, media_type="text/event-stream", headers=STREAM)


@get("/c/{id:str}/history", middleware=[readers_only])
async def history(request: AnyRequest, id: FromPath[str]) -> Response[bytes]:
    """Return broadcasts per arm over time, for the chart."""
    controller = controller_of(request)
    found = await live.history(controller, await controller.fresh(id))
    return Response(msgspec.json.encode(found), media_type="application/json", headers={"Cache-Control": "no-store"})


@get("/c/{id:str}/settlement.json")
async def settlement_json(request: AnyRequest, id: FromPath[str]) -> Response[bytes]:
    """Return the settlement as the API does, as a file."""
    await operator(request)
    view = await controller_of(request).settlement(id)
    return download(msgspec.json.encode(view), "application/json", f"settlement-{id}.json")


@get("/c/{id:str}/settlement.csv")
async def settlement_csv(request: AnyRequest, id: FromPath[str]) -> Response[bytes]:
    """Return the settlement as a table in micro-units: the agents, then the controller; net sums to zero."""
    await operator(request)
    view = await controller_of(request).settlement(id)
    text = io.StringIO(newline="")
    table = csv.writer(text)
    columns = ("agent", "name", "explore", "commit", "compensation", "charge", "net")
    table.writerow(columns)
    for row in view.rows:
        table.writerow([plain(getattr(row, column)) for column in columns])
    table.writerow(["controller", "", "", "", view.charge, view.compensation, view.profit])
    return download(text.getvalue().encode(), "text/csv", f"settlement-{id}.csv")


def plain(cell: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula.

    >>> plain("=1+1"), plain("Pens"), plain(-3)
    ("'=1+1", 'Pens', -3)
    """
    return "'" + cell if isinstance(cell, str) and cell.lstrip()[:1] in ("=", "+", "-", "@", "|") else cell


def download(body: bytes, kind: str, name: str) -> Response[bytes]:
    """Return a file to keep."""
    return Response(
        body, media_type=kind, headers={**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    )


# members


@get("/join")
async def join(request: AnyRequest) -> Response[Any]:
    """Show the page that an invite's link opens. Its script reads the code, which stands in the fragment."""
    found = await maybe_seen(request)
    return login_page(request, "join.html", known=found is not None)


@post("/join", status_code=200)
async def look(request: AnyRequest, data: JSONBody[dict[str, str]]) -> dict[str, Any]:
    """Return what an invite, as the bearer, is for. It is not used up by that."""
    controller, code = controller_of(request), bearer(request)
    if code is None:
        raise Refused(401, "This needs an invite.")
    found = await controller.invited(data.get("collaboration", ""), code)
    book = await controller.fresh(found.collaboration)
    state = book.state
    return {
        "name": state.config.name,
        "arms": list(state.config.arms),
        "horizon": state.config.horizon,
        "settlement": state.config.settlement,
        "agents": sum(not member.left for member in state.members.values()),
        "closed": state.closed is not None,
        "used": found.id in state.invites,
        "expires": found.expires,
    }


@get("/me")
async def me(request: AnyRequest) -> Response[Any]:
    """Show a member her page."""
    session, who = await seen(request)
    if who.collaboration is None or who.agent is None:
        return Redirect("/", status_code=303)
    book = await controller_of(request).fresh(who.collaboration)
    member = book.state.members[who.agent]
    return page("me.html", csrf=csrf_token(session), config=book.state.config, state=book.state, member=member)


@get("/me/events")
async def my_events(request: AnyRequest) -> Stream:
    """Send a member's snapshots: the board, and herself."""
    controller, book, agent = await own(request)
    stream = live.live(controller, book, lambda book, earlier: live.member_snapshot(book, earlier, agent), agent)
    return Stream(stream, media_type="text/event-stream", headers=STREAM)


@post("/me/consent", status_code=200)
async def consent(request: AnyRequest) -> Response[Any]:
    """Share one arm from now on, or share it no more."""
    _, _, form = await posted(request)
    controller, book, agent = await own(request)
    arms, member = book.state.config.arms, book.state.members[agent]
    place = form.get("arm", "")
    if not place.isascii() or not place.isdigit() or int(place) >= len(arms):
        raise missing("There is no such arm.")
    changed = member.shares | {int(place)} if form.get("shared") else member.shares - {int(place)}
    if changed != member.shares:
        await controller.consent(book, agent, [arms[arm] for arm in sorted(changed)])
    return page("consent.html", config=book.state.config, state=book.state, member=book.state.members[agent])


async def own(request: AnyRequest) -> tuple[Controller, Book, str]:
    """Return the controller, a member's collaboration, and the member."""
    _, who = await seen(request)
    if who.collaboration is None or who.agent is None:
        raise forbidden("This is for members; log in with the token that joining gave you.")
    controller = controller_of(request)
    return controller, await controller.fresh(who.collaboration), who.agent


# files


@get("/static/{name:path}")
async def static(request: AnyRequest, name: FromPath[str]) -> Response[bytes]:
    """Return a file that pages load."""
    found = STATIC.files.get(str(name).lstrip("/"))
    if found is None:
        raise missing("There is no such file.")
    body, kind, tag = found
    etag = f'"{tag}"'
    kept = f"public, max-age={YEAR}, immutable" if request.query_params.get("v") == tag else "no-cache"
    headers = {"ETag": etag, "Cache-Control": kept, "X-Content-Type-Options": "nosniff"}
    if request.headers.get("if-none-match") == etag:
        return Response(b"", status_code=304, headers=headers)
    return Response(body, media_type=kind, headers=headers)


# refusals


def refused_page(request: AnyRequest, refusal: Refused) -> Response[Any]:
    """Answer a refusal: to a person with a page, to a script with JSON."""
    for_script = request.headers.get("hx-request") or "text/html" not in request.headers.get("accept", "")
    if for_script:
        return refused(request, refusal)
    if refusal.status == 401:
        return login_page(request, status=401, next=safe_next(request.url.path), error=None)
    return page("refused.html", refusal.status, csrf=None, sentence=refusal.sentence)


def routes() -> list[Any]:
    """Return all of them."""
    handlers = [home, login, logout, create, collaboration, invite, invites, revoke, events, history]
    handlers += [settlement_json, settlement_csv, join, look, me, my_events, consent, static]
    return [Router("/", route_handlers=handlers, include_in_schema=False, exception_handlers={Refused: refused_page})]

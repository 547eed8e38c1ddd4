"""The routes of the pages. They call the same methods of the controller as the API, for the owner of the session."""

import csv
import io
import logging
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Response, Router, get, post
from litestar.datastructures import Cookie
from litestar.params import FromPath, JSONBody
from litestar.response import Redirect, Stream

from partage.ledger import terms
from partage.ledger.messages import NewInvites, SettlementView
from partage.ledger.refusals import Refused, forbidden, missing
from partage.ledger.settlement import csv_lines, own_view
from partage.ledger.views import collaboration_view, rule_in_words
from partage.service.http.auth import (
    COOKIE,
    AnyRequest,
    address_of,
    bearer,
    check_csrf,
    controller_of,
    csrf_token,
    guard_of,
    reader_only,
    require_operator,
    streaming,
)
from partage.service.http.responses import headers_of, refused
from partage.service.pages import forms, live
from partage.service.pages.api_page import documented
from partage.service.pages.html import HEADERS, STATIC, page
from partage.service.pages.proposal import Proposed, proposed
from partage.service.runtime.book import Book
from partage.service.runtime.controller import Controller
from partage.service.runtime.secrets import derived, fresh, same
from partage.service.runtime.sessions import SESSION_TIME, By, Who
from partage.service.store import Invite
from partage.settle import ALONE, COVERAGE

log = logging.getLogger("partage.service")

YEAR = 365 * 24 * 3600
LOGIN_COOKIE, LOGIN_TIME = "partage_login", 3600  # seconds that a login form stays valid
STREAM = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}


# the session


async def seen(request: AnyRequest) -> tuple[str, Who]:
    """Return the browser's session and who it belongs to."""
    session = request.cookies.get(COOKIE)
    if session is None:
        raise Refused(401, "no_token", "Log in first.")
    who = await controller_of(request).sessions.session(session)
    await controller_of(request).admit(who)
    return session, who


async def maybe_seen(request: AnyRequest) -> tuple[str, Who] | None:
    """Return the browser's session, or None if it has none that is valid."""
    try:
        return await seen(request)
    except Refused:
        return None


async def operator(request: AnyRequest) -> str:
    """Return the operator's session."""
    session, who = await seen(request)
    require_operator(who)
    return session


async def posted(request: AnyRequest) -> tuple[str, Who, dict[str, str]]:
    """Return the session, who it belongs to, and the form, which must contain the CSRF token."""
    session, who = await seen(request)
    form = await fields(request)
    check_csrf(session, request.headers.get("x-csrf-token") or form.get("csrf", ""))
    return session, who, form


async def fields(request: AnyRequest) -> dict[str, str]:
    """Return the fields of a form."""
    return {name: value for name, value in (await request.form()).items() if isinstance(value, str)}


def secure(request: AnyRequest) -> bool:
    """Whether the browser uses https, to us or to the proxy before us."""
    return (request.headers.get("x-forwarded-proto") or request.url.scheme).split(",")[0].strip() == "https"


def cookie(request: AnyRequest, value: str, seconds: int, key: str = COOKIE) -> Cookie:
    """Return the session's cookie, or another one as protected."""
    flags: dict[str, Any] = {"httponly": True, "samesite": "strict", "secure": secure(request)}
    return Cookie(key=key, value=value, max_age=seconds, path="/", **flags)


def safe_next(address: str) -> str:
    """Return the address to continue at, if it is one of ours; else the first page."""
    return address if re.fullmatch(r"/(me|c/[0-9A-Za-z_-]+)?", address) else "/"


# logging in and out


def login_token(secret: str) -> str:
    """Return the CSRF token of a login form, which no other site can know."""
    return derived("", secret, "login")


def login_page(request: AnyRequest, template: str = "login.html", status: int = 200, **given: Any) -> Response[str]:
    """Return a page with a login form. Several such pages in one browser share its cookie."""
    secret = request.cookies.get(LOGIN_COOKIE) or fresh("", controller_of(request).system.random_bytes)
    answer = page(template, status, csrf=None, login=login_token(secret), **given)
    answer.set_cookie(cookie(request, secret, LOGIN_TIME, LOGIN_COOKIE))
    return answer


@post("/login", status_code=303)
async def login(request: AnyRequest) -> Response[Any]:
    """Begin a session with the operator's token or an agent's."""
    # Another site must not log a browser in as someone else; browsers say where a form came from.
    if request.headers.get("sec-fetch-site") not in (None, "same-origin", "none"):
        raise forbidden("csrf", "Log in from this site's own page.")
    form = await fields(request)
    next_page = safe_next(form.get("next", "/"))
    secret, given = request.cookies.get(LOGIN_COOKIE), form.get("login", "")
    if not secret or not same(given, login_token(secret)):
        sentence = "This page was open for too long, or the browser blocks cookies. Log in here."
        return login_page(request, status=403, next=next_page, error=sentence)
    try:
        with guard_of(request.scope).log_in(address_of(request.scope)):
            token = form.get("token", "").strip()
            await controller_of(request).admit(await controller_of(request).sessions.who(token))
            session, who = await controller_of(request).sessions.log_in(token)
    except Refused as refusal:
        log.warning("log-in failed", extra={"address": address_of(request.scope), "code": refusal.code})
        if refusal.status != 401:
            raise
        sentence = "This token is unknown. Check that you copied all of it."
        return login_page(request, status=401, next=next_page, error=sentence)
    if before := request.cookies.get(COOKIE):  # the browser's earlier session ends
        await controller_of(request).sessions.log_out(before)
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
    await controller_of(request).sessions.log_out(session)
    answer = Redirect("/", status_code=303)
    answer.set_cookie(cookie(request, "", 0))
    return answer


# the operator's pages


@get("/")
async def home(request: AnyRequest) -> Response[Any]:
    """Show the operator all collaborations; send members to their page and everyone else to the login form."""
    found = await maybe_seen(request)
    if found is None:
        return login_page(request, next="/", error=None)
    session, who = found
    if not who.operator:
        return Redirect("/me", status_code=303)
    return page(
        "home.html", csrf=csrf_token(session), rows=await rows_of(controller_of(request)), **create_form(request, {})
    )


async def rows_of(controller: Controller) -> list[dict[str, Any]]:
    """Return the collaborations as the list shows them, newest first."""
    return (await controller.library.all(_row))[::-1]


def _row(book: Book) -> dict[str, Any]:
    state = book.state
    board, leader = state.board, state.target() if any(state.board.counts) else None
    return {
        "id": book.id,
        "name": state.config.name,
        "closed": state.closed is not None,
        "leader": None if leader is None else state.arms[leader],
        "mean": None if leader is None or not board.counts[leader] else board.mean(leader),
        "arms": len(state.arms),
        "active": len(board.actives()),
        "agents": len(state.members),
        "broadcasts": sum(board.counts),
        "created": state.config.time,
    }


def create_form(
    request: AnyRequest, form: Mapping[str, str], errors: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return what the create form shows. It has a request id, so sending it twice creates one collaboration."""
    id = controller_of(request).system.random_bytes(8).hex()
    return {
        "values": {**forms.defaults(), "request": id, **form},
        "errors": errors or {},
        "rules": forms.rule_options(),
        "settlements": forms.settlement_options(),
        "parameters": forms.parameter_fields(),
        "text_of": forms.text_of,
        "default_settlement": forms.defaults()["settlement"],
        "alone": ALONE,
        "default_coverage": COVERAGE,
        "prepay": terms.FORM,
        "books": terms.BOOKS,
    }


@post("/collaborations", status_code=200)
async def create(request: AnyRequest) -> Response[Any]:
    """Create a collaboration and show its invite links, only once."""
    session, who, form = await posted(request)
    require_operator(who)
    try:
        id, codes = await controller_of(request).create(session, forms.new_collaboration(form))
    except Refused as refusal:
        return page(
            "create.html", 422, csrf=csrf_token(session), **create_form(request, form, forms.at_field(refusal, form))
        )
    links = [link(request, id, code) for code in codes]
    rows = await rows_of(controller_of(request))  # the list beside it has one more
    config = controller_of(request).library.books[id].state.config
    warnings = terms.warnings_of(msgspec.structs.asdict(config), max(2, len(codes)))
    name = form["name"].strip()
    return page("created.html", id=id, name=name, links=links, warnings=warnings, rows=rows, fresh=True)


@post("/prepaid", status_code=200)
async def prepaid(request: AnyRequest) -> Response[Any]:
    """Propose what every member should prepay, for a form that is not sent yet."""
    _, who, form = await posted(request)
    require_operator(who)
    try:
        found = await proposed(controller_of(request).system, form)
    except Refused as refusal:
        found = Proposed(None, refusal.sentence)
    return page("proposal.html", found=found)


def link(request: AnyRequest, id: str, code: str) -> str:
    """Return an invite link. The code is in the fragment, which browsers do not send.

    Without a public address it is relative, and the page completes it with the address that the browser uses. The
    Host header is not used: whoever can set it could make members send their invites elsewhere.
    """
    return f"{request.app.state.public_url}/join#{id}.{code}"


@get("/c/{id:str}")
async def collaboration(request: AnyRequest, id: FromPath[str]) -> Response[Any]:
    """Show a collaboration to the operator, live."""
    session = await operator(request)
    controller = controller_of(request)
    book = await controller.library.fresh(id)
    given = await invites_of(controller, book)
    return page("collaboration.html", csrf=csrf_token(session), **facts(book), **given)


def facts(book: Book) -> dict[str, Any]:
    """Return what the templates show of a collaboration."""
    config = book.state.config
    view = collaboration_view(book.state)
    return {
        "config": config,
        "state": book.state,
        "rule": rule_in_words(view.rule, view.balance, view.parameters),
        "prepaid": None if view.prepaid is None else terms.amount(view.prepaid),
        "claim_interval": f"{view.claim_interval:g}" if view.claim_interval else None,
        "terms": view.terms,
        "by_intervals": book.state.rule.by_intervals,
        "eliminates": book.state.rule.eliminates,
        "currency": view.currency,
        "tolerate": book.state.rule.tolerate,
    }


async def invites_of(controller: Controller, book: Book) -> dict[str, Any]:
    """Return what the invites section shows."""
    usable = await controller.invites.usable(book.id)
    return {"invites": usable, "id": book.id, "closed": book.state.closed is not None}


@get("/c/{id:str}/invites")
async def invites(request: AnyRequest, id: FromPath[str]) -> Response[Any]:
    """Return the list of the invites that can still be used."""
    await operator(request)
    controller = controller_of(request)
    return page("invite_list.html", **await invites_of(controller, await controller.library.fresh(id)))


@post("/c/{id:str}/invites", status_code=200)
async def invite(request: AnyRequest, id: FromPath[str]) -> Response[Any]:
    """Make more invites, and show them only once."""
    session, who, form = await posted(request)
    require_operator(who)
    controller = controller_of(request)
    codes, error = [], None
    try:
        count = forms.number({"invites": form.get("count", "")}, "invites")
        codes = await controller.invites.add(session, id, NewInvites(invites=int(count)))
    except Refused as refusal:
        error = refusal.sentence
    given = await invites_of(controller, await controller.library.fresh(id))
    links = [link(request, id, code) for code in codes]
    return page("invited.html", links=links, error=error, fresh=True, **given)


@post("/c/{id:str}/invites/{invite_id:str}/revoke", status_code=200)
async def revoke(request: AnyRequest, id: FromPath[str], invite_id: FromPath[str]) -> Response[Any]:
    """Revoke an invite."""
    _, who, _ = await posted(request)
    require_operator(who)
    controller = controller_of(request)
    await controller.invites.revoke(id, invite_id)
    return page("invite_list.html", **await invites_of(controller, await controller.library.fresh(id)))


@post("/c/{id:str}/arms", status_code=200)
async def add_arm(request: AnyRequest, id: FromPath[str]) -> Response[Any]:
    """Add an arm."""
    _, who, form = await posted(request)
    require_operator(who)
    controller, error = controller_of(request), None
    try:
        await controller.add_arm(id, form.get("name", ""))
    except Refused as refusal:
        error = refusal.sentence
    return page("arms.html", error=error, **facts(await controller.library.fresh(id)))


@get("/c/{id:str}/events", middleware=[streaming])
async def events(request: AnyRequest, id: FromPath[str]) -> Stream:
    """Send the operator's snapshots."""
    await operator(request)
    controller = controller_of(request)
    book = await controller.library.fresh(id)
    stream = live.live(controller, book, live.operator_snapshot, Who())
    return Stream(stream, media_type="text/event-stream", headers=STREAM)


@get("/c/{id:str}/history", middleware=[reader_only])
async def history(request: AnyRequest, id: FromPath[str]) -> Response[bytes]:
    """Return broadcasts per arm over time, for the chart."""
    controller = controller_of(request)
    found = await live.history(controller, await controller.library.fresh(id))
    return Response(msgspec.json.encode(found), media_type="application/json", headers={"Cache-Control": "no-store"})


@get("/c/{id:str}/settlement.json")
async def settlement_json(request: AnyRequest, id: FromPath[str]) -> Response[bytes]:
    """Return the settlement as a JSON file."""
    await operator(request)
    view = await controller_of(request).settlements.view(id)
    return download(msgspec.json.encode(view), "application/json", f"settlement-{id}.json")


@get("/c/{id:str}/settlement.csv")
async def settlement_csv(request: AnyRequest, id: FromPath[str]) -> Response[bytes]:
    """Return the settlement as a CSV file in micro-units: the agents, then the controller; net sums to zero."""
    await operator(request)
    return csv_file(await controller_of(request).settlements.view(id), f"settlement-{id}.csv")


def csv_file(view: SettlementView, name: str) -> Response[bytes]:
    """Return a settlement as a CSV file to download."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(csv_lines(view))
    return download(text.getvalue().encode(), "text/csv", name)


def download(body: bytes, kind: str, name: str) -> Response[bytes]:
    """Return a file to download."""
    return Response(
        body, media_type=kind, headers={**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    )


# members


@get("/join")
async def join(request: AnyRequest) -> Response[Any]:
    """Show the page that an invite link opens. Its script reads the code from the fragment."""
    found = await maybe_seen(request)
    return login_page(request, "join.html", known=found is not None)


async def shown_invite(request: AnyRequest, data: Mapping[str, str]) -> Invite:
    """Return the invite that is the bearer token of a request; it is not used up."""
    controller, code = controller_of(request), bearer(request)
    if code is None:
        raise Refused(401, "no_token", "This needs an invite.")
    with guard_of(request.scope).guess(address_of(request.scope)):
        return await controller.invites.of_code(data.get("collaboration", ""), code)


@post("/join", status_code=200)
async def look(request: AnyRequest, data: JSONBody[dict[str, str]]) -> dict[str, Any]:
    """Return what an invite (the bearer token) is for, without using it."""
    found = await shown_invite(request, data)
    book = await controller_of(request).library.fresh(found.collaboration)
    state, view = book.state, collaboration_view(book.state)
    return {
        "name": state.config.name,
        "arms": list(state.arms),
        "horizon": state.config.horizon,
        "settlement": state.config.settlement,
        "terms": view.terms,
        "books": None if view.settlement == "none" else terms.BOOKS,
        "claim_interval": view.claim_interval,
        "signed": view.signed,
        "format": view.format,
        "agents": sum(not member.left for member in state.members.values()),
        "closed": state.closed is not None,
        "used": found.id in state.invites,
        "expires": found.expires,
    }


@post("/join/forecast", status_code=200)
async def forecast(request: AnyRequest, data: JSONBody[dict[str, str]]) -> Response[Any]:
    """Show what a member can expect, to the holder of an invite; no content if there is no forecast."""
    shown = await shown_invite(request, data)
    guard_of(request.scope).costly("forecast", (shown.collaboration, shown.id))
    controller, forecasts = controller_of(request), request.app.state.forecasts
    book, found = await controller.library.fresh(shown.collaboration), None
    if book.state.closed is None:
        found = await forecasts.of(book, invited=len(await controller.invites.usable(shown.collaboration)))
    return Response("", status_code=204) if found is None else page("forecast.html", found=found)


@get("/me")
async def me(request: AnyRequest) -> Response[Any]:
    """Show a member their page."""
    session, who = await seen(request)
    if who.collaboration is None or who.agent is None:
        return Redirect("/", status_code=303)
    book = await controller_of(request).library.fresh(who.collaboration)
    member = book.state.members[who.agent]
    return page("me.html", csrf=csrf_token(session), member=member, **facts(book))


@get("/me/events", middleware=[streaming])
async def my_events(request: AnyRequest) -> Stream:
    """Send a member's snapshots: the board, and their own pulls."""
    _, who = await seen(request)
    controller, book, agent = await own(request)
    stream = live.live(controller, book, lambda book, earlier: live.member_snapshot(book, earlier, agent), who)
    return Stream(stream, media_type="text/event-stream", headers=STREAM)


@get("/me/settlement.json")
async def my_settlement_json(request: AnyRequest) -> Response[bytes]:
    """Return a member's part of the settlement as a JSON file."""
    controller, book, agent = await own(request)
    view = own_view(await controller.settlements.view(book.id), agent)
    return download(msgspec.json.encode(view), "application/json", f"settlement-{book.id}-{agent}.json")


@get("/me/settlement.csv")
async def my_settlement_csv(request: AnyRequest) -> Response[bytes]:
    """Return a member's part of the settlement, and the controller's totals, as a CSV file in micro-units."""
    controller, book, agent = await own(request)
    view = own_view(await controller.settlements.view(book.id), agent)
    return csv_file(view, f"settlement-{book.id}-{agent}.csv")


@post("/me/consent", status_code=200)
async def consent(request: AnyRequest) -> Response[Any]:
    """Start or stop sharing one arm."""
    _, who, form = await posted(request)
    controller, book, agent = await own(request)
    arms, member = book.state.arms, book.state.members[agent]
    place = form.get("arm", "")
    if not place.isascii() or not place.isdigit() or int(place) >= len(arms):
        raise missing("not_found", "There is no such arm.")
    changed = member.shares | {int(place)} if form.get("shared") else member.shares - {int(place)}
    if changed != member.shares:
        guard_of(request.scope).costly("consent", (book.id, agent))
        by = By(epoch=who.epoch)
        await controller.consent(book, agent, [arms[arm] for arm in sorted(changed)], by=by)
    return page("consent.html", config=book.state.config, state=book.state, member=book.state.members[agent])


async def own(request: AnyRequest) -> tuple[Controller, Book, str]:
    """Return the controller, a member's collaboration, and the member."""
    _, who = await seen(request)
    if who.collaboration is None or who.agent is None:
        raise forbidden("not_permitted", "This page is for members; log in with the token you got when you joined.")
    controller = controller_of(request)
    return controller, await controller.library.fresh(who.collaboration), who.agent


# for everyone


@get("/help")
async def help(request: AnyRequest) -> Response[Any]:
    """Say what the words and pages mean."""
    return await public_page(request, "help.html")


@get("/privacy")
async def privacy(request: AnyRequest) -> Response[Any]:
    """Say who sees what."""
    return await public_page(request, "privacy.html")


@get("/verify")
async def verify(request: AnyRequest) -> Response[Any]:
    """Show the page that verifies a ledger in the browser; nothing is uploaded."""
    return await public_page(request, "verify.html")


@get("/api")
async def api(request: AnyRequest) -> Response[Any]:
    """Show the OpenAPI document to people, without a script."""
    document = request.app.openapi_schema.to_schema()
    found = await maybe_seen(request)
    return page("api.html", csrf=None if found is None else csrf_token(found[0]), **documented(document))


async def public_page(request: AnyRequest, template: str) -> Response[Any]:
    """Return a page that anybody may read."""
    found = await maybe_seen(request)
    return page(template, csrf=None if found is None else csrf_token(found[0]))


# files


@get("/static/{name:path}")
async def static(request: AnyRequest, name: FromPath[str]) -> Response[bytes]:
    """Return a file that pages load."""
    found = STATIC.files.get(str(name).lstrip("/"))
    if found is None:
        raise missing("not_found", "There is no such file.")
    body, kind, tag = found
    etag = f'"{tag}"'
    kept = f"public, max-age={YEAR}, immutable" if request.query_params.get("v") == tag else "no-cache"
    headers = {"ETag": etag, "Cache-Control": kept, "X-Content-Type-Options": "nosniff"}
    if request.headers.get("if-none-match") == etag:
        return Response(b"", status_code=304, headers=headers)
    return Response(body, media_type=kind, headers=headers)


# refusals


def refused_page(request: AnyRequest, refusal: Refused) -> Response[Any]:
    """Answer a refusal: with a page for a person, with JSON for a script."""
    for_script = request.headers.get("hx-request") or "text/html" not in request.headers.get("accept", "")
    if for_script:
        return refused(request, refusal)
    if refusal.status == 401:
        return login_page(request, status=401, next=safe_next(request.url.path), error=None)
    return page("refused.html", refusal.status, headers_of(refusal), csrf=None, sentence=refusal.sentence)


def routes() -> list[Any]:
    """Return the routes of all pages."""
    handlers = [home, login, logout, create, prepaid, collaboration, invite, invites, revoke, events, history]
    handlers += [add_arm, settlement_json, settlement_csv, join, look, forecast, me, my_events]
    handlers += [my_settlement_json, my_settlement_csv, consent, help, privacy, verify, api, static]
    return [Router("/", route_handlers=handlers, include_in_schema=False, exception_handlers={Refused: refused_page})]

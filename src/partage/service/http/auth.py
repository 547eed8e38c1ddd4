"""Authentication and permissions, by token or browser session: checked before anything else is read."""

from collections.abc import Callable
from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import State as AppState
from litestar.types import ASGIApp, Receive, Scope, Send

from partage.ledger.refusals import Refused, forbidden
from partage.service.http.limits import Guard, network_of
from partage.service.runtime import secrets
from partage.service.runtime.controller import Controller
from partage.service.runtime.sessions import Who

COOKIE = "partage_session"
AnyRequest = Request[Any, Any, AppState]
Connection = ASGIConnection[Any, Any, Any, AppState]


# authentication


def bearer(connection: Connection) -> str | None:
    """Return the token of the Authorization header."""
    for name, value in connection.scope["headers"]:
        if name == b"authorization":
            kind, _, token = value.decode("latin-1").partition(" ")
            return token.strip() if kind.lower() == "bearer" and token.strip() else None
    return None


def csrf_token(session: str) -> str:
    """Return the CSRF token of a session, which no other site can know."""
    return secrets.derived("", session, "csrf")


def check_csrf(session: str, given: str) -> None:
    """Refuse a request without the CSRF token of its session."""
    if not secrets.same(given, csrf_token(session)):
        raise forbidden("csrf", "The page's token is missing or out of date; reload the page.")


def guard_of(scope: Scope) -> Guard:
    """Return the limits of this process."""
    guard: Guard = scope["litestar_app"].state.guard
    return guard


def address_of(scope: Scope) -> str:
    """Return the address that a request comes from; of all IPv6 addresses of one network, the same."""
    client = scope.get("client")
    return network_of(client[0]) if client else "unknown"


async def identify(connection: Connection) -> Who:
    """Return who makes the request, by token or browser session."""
    controller: Controller = connection.app.state.controller
    token = bearer(connection)
    admits = connection.scope.get("method") in ("GET", "HEAD", "PUT")  # what else writes checks it as it writes
    if token is not None:
        known = controller.sessions.known(token)
        if known is None:
            with guard_of(connection.scope).guess(address_of(connection.scope)):
                known = await controller.sessions.who(token)
                if admits:  # a token that has ended is a wrong one
                    await controller.admit(known)
        secret, who = token, known
    else:
        session = connection.cookies.get(COOKIE)
        if session is None:
            raise Refused(401, "no_token", "This call needs a token: send the header Authorization: Bearer TOKEN.")
        secret, who = session, await controller.sessions.session(session)
        safe = connection.scope.get("method") in ("GET", "HEAD")
        if not safe:
            check_csrf(session, connection.headers.get("x-csrf-token", ""))
    if admits:
        await controller.admit(who)
    connection.scope["partage"] = (secret, who)  # type: ignore[typeddict-unknown-key]
    return who


def who_of(request: AnyRequest) -> Who:
    """Return who makes the request, as `identify` found."""
    who: Who = request.scope["partage"][1]  # type: ignore[typeddict-item]
    return who


def secret_of(request: AnyRequest) -> str:
    """Return the token or session of the request."""
    secret: str = request.scope["partage"][0]  # type: ignore[typeddict-item]
    return secret


def controller_of(request: AnyRequest) -> Controller:
    """Return the controller of this process."""
    controller: Controller = request.app.state.controller
    return controller


# permissions


def require_operator(who: Who, collaboration: str = "") -> None:
    """Require the operator."""
    if not who.operator:
        raise forbidden("not_permitted", "Only the operator may do this.")


def require_agent(who: Who, collaboration: str) -> None:
    """Require an agent of this collaboration."""
    if who.agent is None:
        raise forbidden("not_permitted", "Only agents may do this: use the token you got when you joined.")
    require_reader(who, collaboration)


def require_reader(who: Who, collaboration: str) -> None:
    """Require the operator or an agent of this collaboration."""
    if not who.operator and who.collaboration != collaboration:
        raise forbidden("other_collaboration", "Your token is for another collaboration.")


# These run before a handler as middleware. As guards they would cost more: the framework copies a guarded handler at
# every request, which takes as long as the check itself.


def operator_only(app: ASGIApp) -> ASGIApp:
    """Let only the operator through."""
    return _only(require_operator, app)


def agent_only(app: ASGIApp) -> ASGIApp:
    """Let only agents of this collaboration through."""
    return _only(require_agent, app)


def reader_only(app: ASGIApp) -> ASGIApp:
    """Let only the operator and agents of this collaboration through."""
    return _only(require_reader, app)


def bearer_only(app: ASGIApp) -> ASGIApp:
    """Require a bearer token; joining checks whether it is an invite that can be used."""

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        if bearer(ASGIConnection(scope)) is None:
            raise Refused(401, "no_token", "Joining needs an invite: send the header Authorization: Bearer INVITE.")
        await app(scope, receive, send)

    return asgi


def _only(require: Callable[[Who, str], None], app: ASGIApp) -> ASGIApp:
    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        who = await identify(ASGIConnection(scope))
        require(who, scope["path_params"].get("id", ""))
        if who.agent is not None:
            guard_of(scope).request((who.collaboration, who.agent))  # a new token is no new caller
        await app(scope, receive, send)

    return asgi


# limits, for calls whose permissions were checked


def costly(kind: str) -> Callable[[ASGIApp], ASGIApp]:
    """Limit calls of a kind that costs more than others."""

    def limited(app: ASGIApp) -> ASGIApp:
        async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
            guard_of(scope).costly(kind, _caller(scope))
            await app(scope, receive, send)

        return asgi

    return limited


def downloading(app: ASGIApp) -> ASGIApp:
    """Limit downloads of the ledger, and how many of them there are at once."""

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        guard, caller = guard_of(scope), _caller(scope)
        guard.costly("ledger", caller)
        with guard.ledger(caller):
            await app(scope, receive, send)

    return asgi


def streaming(app: ASGIApp) -> ASGIApp:
    """Limit the event streams that are open at once."""

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        if "partage" not in scope:
            await identify(ASGIConnection(scope))
        with guard_of(scope).stream(_caller(scope)):
            await app(scope, receive, send)

    return asgi


def _caller(scope: Scope) -> tuple[str | None, str | None]:
    """Return the collaboration and the agent of a request; None is the operator."""
    who: Who = scope["partage"][1]  # type: ignore[typeddict-item]
    return who.collaboration or scope["path_params"].get("id"), who.agent

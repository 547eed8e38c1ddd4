"""Who speaks: by a token or by a browser's session, found out before a call looks at anything else."""

from collections.abc import Callable
from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.datastructures import State as AppState
from litestar.types import ASGIApp, Receive, Scope, Send

from partage.ledger.refusals import Refused
from partage.service.runtime import secrets as access
from partage.service.runtime.controller import Controller
from partage.service.runtime.secrets import Who

COOKIE = "partage_session"
AnyRequest = Request[Any, Any, AppState]
Connection = ASGIConnection[Any, Any, Any, AppState]


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


# These stand before a handler as middleware: for a guard the framework copies the handler at every request, which
# costs as much as the check.


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

"""The application: the API and the pages, with metrics."""

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from litestar import Litestar, Request, Router
from litestar.datastructures import State as AppState
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, YamlRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from partage import __version__
from partage.ledger import messages
from partage.ledger.fields import LARGEST_BODY
from partage.ledger.refusals import Refused
from partage.service.http import api
from partage.service.http.gate import Gate
from partage.service.http.limits import Guard, Limits
from partage.service.http.responses import FAILURES, careful
from partage.service.http.schema import add_facts, operation_id
from partage.service.metrics import Metrics
from partage.service.pages import page_routes
from partage.service.pages.forecasts import Forecasts
from partage.service.runtime.controller import Controller
from partage.service.runtime.readiness import Readiness
from partage.service.store import StoreError

log = logging.getLogger("partage.service")


class StrictRequest(Request[Any, Any, AppState]):
    """A request whose JSON is decoded strictly as the type its handler takes: "0.5" is not a number."""

    async def json(self) -> Any:
        """Return the body as the handler's type."""
        data = self.route_handler.parsed_data_field
        kind = data.annotation if data else Any
        try:
            return msgspec.json.decode(await self.body() or b"null", type=kind)
        except msgspec.ValidationError as error:
            raise messages.refusal_of(str(error), kind) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise messages.not_json() from None


def measured(app: ASGIApp) -> ASGIApp:
    """Count each request and measure its time."""

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
            if scope["path"].endswith("/events"):
                await scope["litestar_app"].state.gate.enter()
            await app(scope, receive, watching)
        except Refused as error:  # raised by middleware, and answered further out
            status = error.status
            raise
        except StoreError:
            status = 503
            raise
        finally:
            scope["litestar_app"].state.metrics.count(scope, status, time.perf_counter() - began)

    return asgi


def create_app(
    controller: Controller,
    metrics: Metrics | None = None,
    on_startup: Callable[[], None] | None = None,
    limits: Limits | None = None,
    public_url: str = "",
) -> Litestar:
    """Return the application of a controller.

    Parameters
    ----------
    controller
        What it serves.
    metrics
        Where requests are counted.
    on_startup
        Called in the running event loop.
    limits
        How much one caller may ask for.
    public_url
        The address of the server in invite links, without a slash at the end; empty: they are relative.
    """
    limits = limits or Limits()
    forecasts = Forecasts(controller.system, limits.forecast_seconds)

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncIterator[None]:
        controller.start()
        if on_startup is not None:
            on_startup()
        log.info("started", extra={"version": __version__})
        yield
        await forecasts.stop()
        await controller.stop()
        log.info("stopped")

    schemes = {
        "token": SecurityScheme(type="http", scheme="bearer", description="The operator's token, or an agent's."),
        "invite": SecurityScheme(type="http", scheme="bearer", description="The code of an invite."),
    }
    app = Litestar(
        [Router("/v1", route_handlers=api.API), api.health, api.ready, api.metrics, *page_routes()],
        lifespan=[lifespan],
        state=AppState(
            {
                "controller": controller,
                "metrics": metrics or Metrics(),
                "gate": Gate(),
                "public_url": public_url,
                "methods": {},
                "guard": Guard(limits, controller.system.clock),
                "forecasts": forecasts,
                "readiness": Readiness(controller.store, controller.system),
            }
        ),
        request_class=StrictRequest,
        request_max_body_size=LARGEST_BODY,
        middleware=[measured],
        exception_handlers=FAILURES,
        before_send=[careful],
        openapi_config=OpenAPIConfig(
            title="Partage",
            version=__version__,
            description="The live controller: many parties learn together which option is best.",
            path="/schema",
            operation_id_creator=operation_id,
            render_plugins=[JsonRenderPlugin(path=["/openapi.json", "/"]), YamlRenderPlugin()],
            components=Components(security_schemes=dict(schemes)),
        ),
        logging_config=None,
    )
    for route in app.routes:
        app.state.methods.setdefault(route.path_format, set()).update(getattr(route, "methods", ()))
    add_facts(app.openapi_schema)
    return app

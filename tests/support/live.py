"""The real application without a network: the client speaks to it over ASGI, on a clock that tests set."""

import asyncio
import contextlib
import random
import secrets
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import httpx
import msgspec
from tests.support.patience import PATIENCE
from tests.support.sequences import TRUTHFUL

from partage.client import Agent, AsyncAgent, Operator
from partage.client.effects import Wait
from partage.ledger import moves
from partage.ledger.refusals import Refused
from partage.ledger.state import State
from partage.ledger.ties import REVEAL_SECONDS
from partage.ledger.views import board_view
from partage.service.http.app import create_app
from partage.service.http.limits import Limits
from partage.service.runtime.controller import Controller
from partage.service.runtime.system import System
from partage.service.store import open_store

T = TypeVar("T")

URL = "http://controller"
GENEROUS = Limits(requests=1e6, wrong_tokens=1e6, costly=1000)  # time may stand still for a whole test
TOKEN = "pt_op_the-token-of-all-these-tests"  # not a secret: it opens an app that lives for one module
BEFORE, AFTER = "before", "after"  # when a request is lost: before it arrives, or its answer

Fault = str | int | httpx.Response | None


class App:
    """The application, on an event loop in a thread of its own. `now` is its time in seconds."""

    def __init__(self, folder: Path, random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self._random_bytes = random_bytes
        self.now = 1_700_000_000.0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="app", daemon=True)
        self._thread.start()
        self.controller, self._asgi = self.run(self._open(folder))
        self.operator = Operator(URL, TOKEN, transport=Bridge(self))

    async def _open(self, folder: Path) -> tuple[Controller, httpx.ASGITransport]:
        def clock() -> int:
            return int(self.now * 1000)

        system = System(clock=clock, monotonic=clock, random_bytes=self._random_bytes)
        controller = Controller(open_store(f"{folder}/partage.db"), TOKEN, system)
        return controller, httpx.ASGITransport(create_app(controller, limits=GENEROUS))

    def close(self) -> None:
        self.operator.disconnect()
        self.run(self.controller.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the app's loop, from another thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the app's loop, from another loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def serve(self, request: httpx.Request) -> httpx.Response:
        """Answer a request, on the app's loop."""
        sent = httpx.Request(request.method, request.url, headers=request.headers, content=request.content)
        response = await self._asgi.handle_async_request(sent)
        content = await response.aread()
        return httpx.Response(response.status_code, headers=response.headers, content=content)


class Bridge(httpx.BaseTransport):
    """Carries requests of a blocking client to the app."""

    def __init__(self, app: App) -> None:
        self._app = app

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        return self._app.run(self._app.serve(request))


class Live:
    """One collaboration of the app, and what its agents' programs requested.

    `fault(request)` may lose a request (`BEFORE`, `AFTER`), answer it with a status or a response, or raise. If it is
    `ordered`, the tie order is fixed as soon as an arm is shared, so that agents need not draw it.
    """

    def __init__(
        self, app: App, arms: Sequence[str], horizon: int = 1000, ordered: bool = True, **config: Any
    ) -> None:
        # Commits are paid, so that they are reported by arm and version; most tests look at these.
        config = {"rule": "balanced-etc", "settlement": "equal-share", "underwriting": 0} | config
        if config["settlement"] not in TRUTHFUL:
            del config["underwriting"]
        self.app, self.ordered = app, ordered
        created = app.operator.create("Live", arms, horizon, invites=20, **config)
        self.id = created.id
        self._codes = created.invites
        self._invites: dict[str, str] = {}
        self.tokens: dict[str, str] = {}
        self.requests: list[httpx.Request] = []
        self.fault: Callable[[httpx.Request], Fault] = lambda request: None
        self.transport = _Recorded(self)
        self.async_transport = _AsyncRecorded(self)

    # time

    @property
    def now(self) -> float:
        return self.app.now

    def sleep(self, seconds: float) -> None:
        self.app.now += seconds

    # what the controller knows

    @property
    def state(self) -> State:
        return self.app.controller.library.books[self.id].state

    def board(self) -> Any:
        """The board as the event stream would bring it, decoded."""
        return msgspec.json.decode(msgspec.json.encode(board_view(self.state)))

    # what was requested

    def names(self, method: str = "") -> list[str]:
        """Return what was requested, as in "POST ask"."""
        made = [f"{one.method} {one.url.path.rpartition(self.id)[2].strip('/')}".strip() for one in self.requests]
        return [name for name in made if name.startswith(method)]

    def bodies(self) -> bytes:
        return b"\n".join(request.content for request in self.requests)

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Let the app answer a request, whatever `fault` says."""
        return self.noted(request, self.app.run(self.app.serve(request)))

    def noted(self, request: httpx.Request, response: httpx.Response) -> httpx.Response:
        """Keep the token of an agent that joined."""
        if request.method == "POST" and request.url.path.endswith("/agents") and response.is_success:
            joined = response.json()
            self.tokens[joined["agent"]] = joined["token"]
        return response

    # what others do

    def invite(self, label: str) -> str:
        """Return the invite of this label; the same label gets the same invite."""
        if label not in self._invites:
            if not self._codes:
                self._codes = self.app.operator.invite(self.id, 20).invites
            self._invites[label] = self._codes.pop()
        return self._invites[label]

    def call(self, bearer: str, method: str, path: str, body: Any = None) -> Any:
        """Make a request that is not recorded and must succeed."""
        request = httpx.Request(
            method,
            f"{URL}/v1/collaborations/{self.id}{path}",
            headers={"Authorization": f"Bearer {bearer}"},
            json=body,
        )
        response = self.answer(request)
        assert response.is_success, response.text
        return response.json() if response.content else None

    def join(self, *shares: str) -> str:
        """Let another agent join; returns its id."""
        name = f"other {len(self._invites)}"
        joined: str = self.call(self.invite(name), "POST", "/agents", {"name": name, "shares": list(shares)})["agent"]
        self._fix_order()
        return joined

    def _fix_order(self) -> None:
        """Fix the tie order if it can be, without the nonces of those who joined."""

        async def move() -> None:
            await self.app.controller.library.put(self.app.controller.library.books[self.id], moves.order)

        if self.ordered and any(self.state.board.public) and not self.state.ordered:
            with contextlib.suppress(Refused):  # the draw has begun
                self.app.run(move())
                return
            self.sleep(REVEAL_SECONDS)
            self.app.run(move())

    def claim(self, agent: str) -> Any:
        """Let this agent ask for a claim."""
        return self.call(self.tokens[agent], "POST", "/ask", {"explore_only": True})

    def broadcast(self, agent: str, reward: float) -> None:
        """Let this agent explore at once."""
        pull = self.claim(agent)["pull"]
        self.call(self.tokens[agent], "POST", "/tell", {"pull": pull, "reward": reward})

    def consent(self, agent: str, *shares: str) -> None:
        """Let this agent share these arms from now on, as its page would."""
        self.call(self.tokens[agent], "PATCH", "/agents/me", {"shares": list(shares)})

    def leave(self, agent: str) -> None:
        self.call(self.tokens[agent], "DELETE", "/agents/me")

    def close(self) -> None:
        self.app.operator.close(self.id)

    def open_to(self, agent: str) -> bool:
        """Whether an arm that this agent shares is open now."""
        opened = self.state.rule.open_arms(self.state.board)
        return not self.state.members[agent].shares.isdisjoint(opened)

    # the agents under test

    def joined(self, *shares: str, invite: str = "invite", **options: Any) -> "Timed":
        """Return an agent that joined, on the app's time."""
        code = self.invite(invite)
        agent = self.agents.join(URL, self.id, code, f"Shop {invite}", shares, **self.options, **options)
        self._fix_order()
        return agent

    def resumed(self, state: Path) -> "Timed":
        """Return the agent of a state file, on the app's time."""
        return self.agents.resume(state, **self.options)

    def from_token(self, agent: str) -> "Timed":
        """Return the agent of a token, on the app's time."""
        return self.agents(URL, self.id, self.tokens[agent], **self.options)

    @property
    def options(self) -> dict[str, Any]:
        return {"transport": self.transport, "listen": False}

    def _members(self) -> dict[str, Any]:
        """Return what agents take from here: the app's time, and randomness that a test can seed."""
        return {
            "live": self,
            "_clock": staticmethod(lambda: self.app.now),
            "_random_bytes": staticmethod(lambda count: random.randbytes(count)),
        }

    @property
    def agents(self) -> type["Timed"]:
        return type("Timed", (Timed,), self._members())

    @property
    def async_agents(self) -> type["AsyncTimed"]:
        return type("AsyncTimed", (AsyncTimed,), self._members())


class New(Protocol):
    """Creates a collaboration."""

    def __call__(self, arms: Sequence[str], horizon: int = 1000, **config: Any) -> Live: ...


class _Recorded(httpx.BaseTransport):
    """Carries requests of a blocking client, records them, and lets `fault` interfere."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        interfered = _before(self._live, request)
        if isinstance(interfered, httpx.Response):
            return interfered
        return _after(request, interfered, self._live.answer(request))


class _AsyncRecorded(httpx.AsyncBaseTransport):
    """The same for asyncio."""

    def __init__(self, live: Live) -> None:
        self._live = live

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        interfered = _before(self._live, request)
        if isinstance(interfered, httpx.Response):
            return interfered
        answered = await self._live.app.run_async(self._live.app.serve(request))
        return _after(request, interfered, self._live.noted(request, answered))


def _before(live: Live, request: httpx.Request) -> Fault:
    live.requests.append(request)
    fault = live.fault(request)
    if fault == BEFORE:
        raise httpx.ConnectError("lost", request=request)
    return httpx.Response(fault) if isinstance(fault, int) else fault


def _after(request: httpx.Request, fault: Fault, response: httpx.Response) -> httpx.Response:
    if fault == AFTER:
        raise httpx.ReadError("lost", request=request)
    return response


class Timed(Agent):
    """An agent that lives on the app's time."""

    live: ClassVar[Live]

    def _do(self, step: Any) -> Any:
        if isinstance(step, Wait):
            self.live.sleep(step.seconds)
            return None
        return super()._do(step)


class AsyncTimed(AsyncAgent):
    """The same for asyncio."""

    live: ClassVar[Live]

    async def _do(self, step: Any) -> Any:
        if isinstance(step, Wait):
            self.live.sleep(step.seconds)
            return None
        return await super()._do(step)


def explore_to_the_end(live: Live) -> None:
    """Let two others explore the arms a and b until b is eliminated."""
    first, second = live.join("a"), live.join("b")
    while all(live.state.board.active):
        if live.open_to(first):
            live.broadcast(first, 1.0)
        else:
            live.broadcast(second, 0.0)

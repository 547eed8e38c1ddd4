"""The simulated servers: processes of the real application that crash and start again, and the network to them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import msgspec
from tests.simulator.disk import Disk, SimulatedStore
from tests.simulator.world import Crashed, Machine, World

from partage.client.effects import Answer, Lost, Send
from partage.client.stream import BoardLines
from partage.ledger.messages import BoardView
from partage.service.http.app import create_app
from partage.service.http.limits import Guard, Limits
from partage.service.runtime.controller import Controller
from partage.service.runtime.damage import Damaged
from partage.service.runtime.readiness import Readiness
from partage.service.runtime.system import System
from partage.service.store import StoreError

OPERATOR = "the operator's token"
TIMEOUT = 10.0  # seconds that a client waits for an answer
_apps: list[Any] = []  # made once: that takes longer than a whole simulation


@dataclass(frozen=True)
class NetworkFaults:
    """How often each fault happens, per request."""

    request: float = 0.0  # a request is lost
    answer: float = 0.0  # an answer is lost
    double: float = 0.0  # a request arrives twice
    late: float = 0.0  # a request takes seconds
    hang_up: float = 0.0  # the caller hangs up, and the server cancels what it does
    cut: float = 0.0  # a stream of events is cut, per event


class Handled:
    """A request that a server handles, and what it answers."""

    __slots__ = ("answer", "began", "floor", "process", "request", "token")

    def __init__(self, request: Send, process: int, began: float) -> None:
        self.request, self.process, self.began = request, process, began
        self.token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.answer = Answer(0, b"")
        self.floor: dict[str, int] = {}  # rows on disk when it began


class Watch:
    """Who hears of every request and answer of the servers, and of every board that a stream sends."""

    def begins(self, handled: Handled) -> None:
        """Take a request that a server begins to handle."""

    def answered(self, handled: Handled) -> None:
        """Take its answer."""

    def streamed(self, collaboration: str, process: int, body: bytes) -> None:
        """Take a board from a stream."""


class Server:
    """A process of the service, on a machine of its own; it starts again after each crash."""

    def __init__(self, world: World, disk: Disk, number: int, snapshot_every: int) -> None:
        self.world, self.disk, self.number, self.snapshot_every = world, disk, number, snapshot_every
        self.machine = Machine(world, f"server {number}")
        self.machine.alive = False
        self.controller: Controller | None = None
        self.store: SimulatedStore | None = None
        while len(_apps) <= number:
            _apps.append(create_app(SimpleNamespace(store=None, system=System())))  # type: ignore[arg-type]
        self.app = _apps[number]

    @property
    def up(self) -> bool:
        """Whether it serves requests."""
        return self.controller is not None and self.machine.alive

    async def run(self) -> None:
        """Start, and start again after each crash."""
        while True:
            if not self.up:
                await self.start()
            await asyncio.sleep(0.1 + self.world.delay(1.0))

    async def start(self) -> None:
        """Start a new process, if the database lets it."""
        self.put_away()
        skew, self.machine = self.machine.skew, Machine(self.world, self.machine.name)
        self.machine.skew = skew
        store = self.store = self.disk.store(self.machine)
        try:
            controller = await self.machine.spawn(self._open(store))
        except (StoreError, Crashed, asyncio.CancelledError):
            self.world.counts["failed start"] += 1
            self.machine.kill()
            return
        self.app.state.controller = self.controller = controller
        self.app.state.readiness = Readiness(store, controller.system)
        self.app.state.guard = Guard(Limits(), controller.system.clock)
        self.world.counts["start"] += 1
        self.world.note(self.machine.name, "started")

    async def _open(self, store: SimulatedStore) -> Controller:
        controller = Controller(store, OPERATOR, self.machine.system(), snapshot_every=self.snapshot_every)
        controller.start()
        return controller

    def crash(self) -> None:
        """Die at once."""
        if self.up:
            self.world.note(self.machine.name, "crashed")
            self.machine.kill()
        self.put_away()

    def put_away(self) -> None:
        """Let the database forget a process that is no more."""
        self.controller = None
        if self.store is not None:
            self.disk.forget(self.store)
            self.store = None

    async def stop(self) -> None:
        """Stop in order, as for an upgrade: requests that run are answered."""
        if self.up and self.controller is not None:
            self.world.note(self.machine.name, "stops")
            controller, self.controller = self.controller, None
            await asyncio.wait([self.machine.spawn(controller.stop())])
            self.machine.kill()
            self.put_away()


class Network:
    """What is between the clients and the servers."""

    def __init__(self, world: World, servers: list[Server], faults: NetworkFaults, watch: Watch) -> None:
        self.world, self.servers, self.faults, self.watch = world, servers, faults, watch

    async def send(self, request: Send, to: Server | None = None) -> Answer | Lost:
        """Send a request to a server, any one by default, and return the answer if it arrives in time."""
        world, faults = self.world, self.faults
        server = to or world.random.choice(self.servers)
        if world.fault("request doubled", faults.double):
            again = world.random.choice(self.servers)
            _background(world, self._later(again, request, world.random.uniform(0.0, 4.0)))
        if world.fault("request late", faults.late):
            _background(world, self._later(server, request, world.random.uniform(1.0, 15.0)))
            await asyncio.sleep(world.delay(TIMEOUT))
            return Lost("ReadTimeout")
        await asyncio.sleep(world.delay())
        if world.fault("request lost", faults.request) or not server.up:
            return Lost("ConnectError")
        arriving = asyncio.ensure_future(self._handle(server, request))
        if world.fault("hung up", faults.hang_up):
            await asyncio.sleep(world.delay())
            arriving.cancel()
        done, _ = await asyncio.wait([arriving], timeout=TIMEOUT)
        if not done:
            world.counts["timeout"] += 1
            return Lost("ReadTimeout")
        answer = None if arriving.cancelled() else arriving.result()
        await asyncio.sleep(world.delay())
        if answer is None or world.fault("answer lost", faults.answer):
            return Lost("ReadError")
        return answer

    async def _later(self, server: Server, request: Send, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if server.up:
            await self._handle(server, request)

    async def _handle(self, server: Server, request: Send) -> Answer | None:
        """Let a server answer a request; None if it died."""
        handled = Handled(request, server.number, self.world.loop.time())
        self.watch.begins(handled)
        sent: list[Any] = []
        over = asyncio.Event()

        async def send(message: Any) -> None:
            sent.append(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                over.set()

        work = server.machine.spawn(server.app(scope_of(request), _receive(request.body or b"", over), send))
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:  # the caller hung up
            work.cancel()
            raise
        if work.cancelled() or isinstance(work.exception(), Crashed) or not server.machine.alive:
            return None
        error = work.exception()
        if error is not None:
            if sent and _caused_by_the_database(error):  # in the middle of a stream
                self.world.counts["stream broke off"] += 1
            else:
                self.world.fail(error)
            return None
        head = next(message for message in sent if message["type"] == "http.response.start")
        body = b"".join(message.get("body", b"") for message in sent)
        headers = dict(head["headers"])
        etag = headers.get(b"etag")
        handled.answer = Answer(head["status"], body, None if etag is None else etag.decode())
        try:
            self.watch.answered(handled)
        except Exception as error:
            self.world.fail(error)
        return handled.answer

    async def stream(self, request: Send) -> AsyncIterator[bytes]:
        """Yield the parts of a stream of events until it ends or is cut."""
        server = self.world.random.choice(self.servers)
        await asyncio.sleep(self.world.delay())
        if not server.up:
            return
        parts: asyncio.Queue[bytes | None] = asyncio.Queue()
        collaboration = request.path.split("/")[3]
        status, lines = 0, BoardLines()

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            body = message.get("body", b"")
            try:
                for line in body.decode().split("\n")[:-1] if status == 200 else ():
                    if (board := lines.read(line)) is not None:  # a patch makes a whole board too
                        whole = msgspec.json.encode(msgspec.convert(board, BoardView))
                        self.watch.streamed(collaboration, server.number, whole)
            except Exception as error:
                self.world.fail(error)
            parts.put_nowait(body)

        work = server.machine.spawn(server.app(scope_of(request), _receive(b"", asyncio.Event()), send))
        work.add_done_callback(lambda _: parts.put_nowait(None))
        try:
            while (part := await parts.get()) is not None:
                if status >= 400 or self.world.fault("stream cut", self.faults.cut):
                    return
                await asyncio.sleep(self.world.delay())
                yield part
        finally:
            work.cancel()


def _background(world: World, work: Any) -> None:
    world.loop.create_task(work)


def _caused_by_the_database(error: BaseException | None) -> bool:
    if error is None:
        return False
    parts = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return isinstance(error, StoreError | Damaged) or any(map(_caused_by_the_database, (error.__cause__, *parts)))


def _receive(body: bytes, over: asyncio.Event) -> Callable[[], Any]:
    came = False

    async def receive() -> dict[str, Any]:
        nonlocal came
        if came:
            await over.wait()  # the caller does not disconnect before the answer is complete
            return {"type": "http.disconnect"}
        came = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def scope_of(request: Send) -> dict[str, Any]:
    """Return a request as a server's application gets it."""
    headers = [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
    if request.body is not None:
        headers.append((b"content-length", str(len(request.body)).encode()))
    path, _, query = request.path.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("member", 1),
        "server": ("server", 80),
    }

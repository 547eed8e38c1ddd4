"""A simulated world: an event loop with its own time, randomness, processes that crash, and a trace of what happens.

Nothing waits: the loop jumps to the next moment at which something happens. Nothing runs beside the loop: work for a
thread runs at a later moment of it. So one seed plays one history, bit for bit, on any machine.
"""

import asyncio
import contextvars
import functools
import hashlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from tests.support import simulation
from tests.support.simulation import START

from partage.service.runtime.system import System

T = TypeVar("T")


class Crashed(BaseException):
    """The process died at this point. Not an `Exception`: no code of the process handles it."""


class Blocked(Exception):
    """A thread must wait for a lock: its work is tried again a little later."""


class Violation(AssertionError):
    """Something happened that must never happen."""


class Loop(simulation.Loop):
    """The simulated loop, which also knows its tasks in the order of their creation."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: dict[asyncio.Task[Any], None] = {}  # in order, which a set would not keep


class Machine:
    """What a process runs on: a clock that may be wrong, threads, and the tasks that die with the process."""

    def __init__(self, world: "World", name: str) -> None:
        self.world, self.name = world, name
        self.skew = 0  # how far the wall clock is off, in ms
        self.alive = True
        self.tasks: dict[asyncio.Task[Any], None] = {}

    def system(self) -> System:
        """Return the clock, threads and randomness for a controller."""
        return System(self.clock, self.in_thread, self.world.random.randbytes, self.monotonic)

    def clock(self) -> int:
        """Return the wall clock's time in ms."""
        return START + round(1000 * self.world.loop.time()) + self.skew

    def monotonic(self) -> int:
        """Return the milliseconds since the world began, by a clock that nobody can set."""
        return round(1000 * self.world.loop.time())

    def in_thread(self, work: Callable[..., T], *given: Any) -> Awaitable[T]:
        """Run a blocking function a little later. As in a thread, it runs even if nobody waits for it any more."""
        loop, delay = self.world.loop, self.world.delay
        outcome: asyncio.Future[T] = loop.create_future()
        if not self.alive:
            outcome.set_exception(Crashed())
            return outcome
        context = contextvars.copy_context()

        def run() -> None:
            if not self.alive:
                return
            try:
                answer = functools.partial(outcome.set_result, context.run(work, *given))
            except Blocked:
                loop.call_later(0.001 + delay(), run)
                return
            except Crashed:
                return
            except Exception as error:
                answer = functools.partial(outcome.set_exception, error)
            loop.call_later(delay(), lambda: None if outcome.done() else answer())

        loop.call_later(delay(), run)
        return outcome

    def spawn(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Start a task of this process; it and all that it starts die with the process."""
        return self.world.loop.create_task(work, context=self._context())

    def call(self, work: Callable[..., Any], *given: Any) -> None:
        """Call a function of this process, if it lives."""
        if self.alive:
            self._context().run(work, *given)

    def _context(self) -> contextvars.Context:
        context = contextvars.copy_context()
        context.run(_here.set, self)
        return context

    def kill(self) -> None:
        """End the process at once."""
        self.alive = False
        current = asyncio.current_task(self.world.loop)
        for task in list(self.tasks):
            if task is not current:
                task.cancel()


_here: contextvars.ContextVar[Machine | None] = contextvars.ContextVar("here", default=None)


class World:
    """Time, randomness and the trace of one simulation.

    Attributes
    ----------
    random
        Every choice of the simulation is drawn from it.
    counts
        How often each thing happened: faults, requests and answers by kind.
    steps
        The number of things in the trace.
    calm
        Whether no more faults may happen.
    """

    def __init__(self, seed: int, tell: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.loop = Loop()
        self.loop.set_task_factory(_make_task)
        self.loop.set_exception_handler(self._failed)
        self.counts: Counter[str] = Counter()
        self.steps = 0
        self.calm = False
        self.damaged = False  # whether the disk changed what was written
        self.failure: BaseException | None = None
        self._tell = tell
        self._digest = hashlib.blake2b(digest_size=16)

    # what happens

    def note(self, *what: Any) -> None:
        """Add something to the trace."""
        self.steps += 1
        line = f"{self.loop.time():.6f} {' '.join(map(str, what))}"
        self._digest.update(line.encode())
        if self._tell is not None:
            self._tell(line)

    @property
    def trace(self) -> str:
        """The hash of everything that happened so far."""
        return self._digest.hexdigest()

    def fault(self, kind: str, rate: float) -> bool:
        """Return whether a fault of this kind happens now; it is counted."""
        if self.calm or rate <= 0 or self.random.random() >= rate:
            return False
        self.counts[f"fault: {kind}"] += 1
        return True

    def delay(self, longest: float = 0.02) -> float:
        """Return a random time in seconds, often 0."""
        draw = self.random.random()
        return 0.0 if draw < 0.4 else longest * (draw - 0.4) / (6.0 if draw < 0.7 else 0.6)

    # running

    def run(self, scenario: Coroutine[Any, Any, T], at_most: float = 3600.0) -> T:
        """Play a scenario to its end, within this many simulated seconds."""
        asyncio.set_event_loop(None)
        loop = self.loop
        main = loop.create_task(scenario)
        loop.call_later(at_most, main.cancel)
        self._main = main
        try:
            loop.run_until_complete(main)
        except asyncio.CancelledError:
            raise (self.failure or Violation(f"It did not end within {at_most:g} seconds.")) from None
        finally:
            loop.run_until_complete(_end(loop.tasks))
            loop.close()
        if self.failure is not None:
            raise self.failure
        return main.result()

    def fail(self, error: BaseException) -> None:
        """End the simulation with this error, if it is the first."""
        if self.failure is None:
            self.failure = error
            self._main.cancel()

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take an error that nothing waited for: only a crash may cause one."""
        error = context.get("exception")
        if isinstance(error, Crashed) or error is None:
            return
        self.fail(error)


async def _end(tasks: dict[asyncio.Task[Any], None]) -> None:
    """End the tasks that are left."""
    left = [task for task in tasks if task is not asyncio.current_task()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left)
    for task in left:  # an error that nobody waits for any more
        if not task.cancelled():
            task.exception()


def _make_task(loop: Loop, work: Any, **given: Any) -> "asyncio.Task[Any]":
    task = asyncio.Task(work, loop=loop, **given)
    loop.tasks[task] = None
    task.add_done_callback(lambda done: loop.tasks.pop(done, None))
    context = given.get("context")
    machine = _here.get() if context is None else context.get(_here)
    if machine is not None:
        machine.tasks[task] = None
        task.add_done_callback(lambda done: machine.tasks.pop(done, None))
        if not machine.alive:
            task.cancel()
    return task

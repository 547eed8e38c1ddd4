"""A simulated machine: an event loop, a clock, threads and randomness that all follow from one seed.

Nothing waits: the loop jumps to the next moment at which something happens. Nothing runs beside the loop: work for a
thread runs at a later moment of it. So the same seed plays the same simulation, bit for bit, on any machine:

    machine = Machine(seed)
    machine.run(scenario(machine))

A controller lives in it with `Controller(store, system=machine.system())`.
"""

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from partage.service.runtime.system import System

T = TypeVar("T")

START = 1_700_000_000_000  # the wall clock at the beginning, in ms


class Loop(asyncio.BaseEventLoop):
    """An event loop with a time of its own, which runs ahead whenever there is nothing to do.

    It has no sockets and no threads. Callbacks run in the order of their time, and of their scheduling where the
    times are equal.
    """

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._clock_resolution = 1e-6
        self._selector = self  # the base class only calls `select` on it

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        """Wait for events: none ever come from outside, so move the time."""
        if timeout is None:
            raise RuntimeError("The simulation is stuck: every task waits, and nothing is scheduled.")
        self._now += timeout
        return []

    def _process_events(self, events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        raise RuntimeError("A simulation has no threads: use the system's in_thread.")


class Machine:
    """A machine whose time, threads and randomness follow from one seed.

    Attributes
    ----------
    random
        Every choice of the simulation is drawn from it.
    skew
        How far the wall clock is off, in ms; set it to make the clock jump.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.loop = Loop()
        self.skew = 0

    def run(self, scenario: Coroutine[Any, Any, T], at_most: float = 3600.0) -> T:
        """Play a scenario to its end, within this many simulated seconds; a failure names the seed."""
        try:
            with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
                return runner.run(asyncio.wait_for(scenario, at_most))
        except BaseException as error:
            error.add_note(f"The seed of this simulation is {self.seed}.")
            raise

    # the machine of a process

    def system(self) -> System:
        """Return the clock, threads and randomness for a controller."""
        return System(self.clock, self.in_thread, self.random.randbytes, self.monotonic)

    def clock(self) -> int:
        """Return the wall clock's time in ms."""
        return START + round(1000 * self.loop.time()) + self.skew

    def monotonic(self) -> int:
        """Return the time since the start in ms, whatever the wall clock says."""
        return round(1000 * self.loop.time())

    def in_thread(self, work: Callable[..., T], *given: Any) -> Awaitable[T]:
        """Run a blocking function a little later. As in a thread, it runs even if nobody waits for it any more."""
        outcome: asyncio.Future[T] = self.loop.create_future()

        def run() -> None:
            try:
                answer = functools.partial(outcome.set_result, work(*given))
            except Exception as error:
                answer = functools.partial(outcome.set_exception, error)
            self.loop.call_later(self.delay(), lambda: None if outcome.done() else answer())

        self.loop.call_later(self.delay(), run)
        return outcome

    def delay(self, longest: float = 0.02) -> float:
        """Return a random time in seconds, often 0."""
        return self.random.choice((0.0, self.random.uniform(0, longest / 10), self.random.uniform(0, longest)))

"""The agent for asyncio: the same names and the same protocol as `Agent`."""

import asyncio
import contextlib
import inspect
import os
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, Unpack

import httpx

from partage.client.base import (
    READABLE,
    STREAM_TIMEOUT,
    TIMEOUT,
    BaseAgent,
    Options,
    answer_of,
    first_patience,
    lost_by,
    request_of,
    resumed,
    saved_or_new,
)
from partage.client.effects import Answer, Lost, Save, Send, Steps, Wait
from partage.client.errors import Closed, Forked, HorizonReached, Unreachable
from partage.client.protocol import Protocol
from partage.client.pulls import Played, Pull
from partage.client.statefile import AgentState
from partage.client.stream import BoardLines, Garbled, pause
from partage.errors import InputError
from partage.files import write_atomically
from partage.ledger.messages import BoardView, SettlementView

T = TypeVar("T")

IN_A_ROW = 100  # local pulls before other tasks of the loop, such as the listener, can run


class AsyncAgent(BaseAgent):
    """An agent of a live collaboration, for asyncio; see `Agent`.

    agent = await AsyncAgent.join(url, collaboration, invite, name="Shop 3", shares=["Supplier A"])
    for _ in range(1000):
        pull = await agent.ask()
        reward = await my_reward(pull.arm)
        await agent.tell(pull, reward)
    """

    def __init__(self, url: str, collaboration: str, token: str, **options: Unpack[Options]) -> None:
        self._set_up(saved_or_new(url, collaboration, options, token=token), options)

    @classmethod
    async def join(
        cls,
        url: str,
        collaboration: str,
        invite: str,
        name: str,
        shares: Collection[str],
        *,
        horizon: int | None = None,
        pace: float | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Join a collaboration; if the state file already holds this agent, resume it and share these arms.

        An agent that will make fewer pulls than the collaboration's horizon can declare its own `horizon`, and its
        `pace` in pulls per hour. The pace limits nothing: it lets all members see how long exploration may last.
        """
        saved = saved_or_new(url, collaboration, options, name, shares, declared=(horizon, pace))
        agent = cls._from(saved, options)
        try:
            agent._protocol.check_forked()
            if not agent._protocol.saved.token:
                await agent._run(agent._protocol.join(invite, first_patience(options)))
            elif set(shares) != set(agent.shares):
                await agent.share(shares)
        except BaseException:
            await agent._disconnect()
            raise
        return agent

    @classmethod
    async def resume(cls, path: str | os.PathLike[str], *, token: str = "", **options: Unpack[Options]) -> Self:
        """Resume the agent of this state file, with a new token if the operator had to make one."""
        options["state"] = path
        return cls._from(resumed(path, token), options)

    @classmethod
    def _from(cls, saved: AgentState, options: Options) -> Self:
        agent = cls.__new__(cls)
        agent._set_up(saved, options)
        return agent

    def _set_up(self, saved: AgentState, options: Options) -> None:
        BaseAgent.__init__(self, saved, options)
        transport = options.get("transport")
        if transport is not None and not isinstance(transport, httpx.AsyncBaseTransport):
            raise InputError("The transport must be an httpx.AsyncBaseTransport.")
        self._client = httpx.AsyncClient(base_url=saved.url, timeout=TIMEOUT, transport=transport)
        self._listener: AsyncListener | None = None
        self._saving: asyncio.Future[None] | None = None
        self._in_a_row = 0

    # pulls

    async def ask(self) -> Pull:
        """Return what to pull next. A claim that was neither told nor deferred is returned again."""
        self._in_a_row += 1
        if self._in_a_row >= IN_A_ROW:
            self._in_a_row = 0
            await asyncio.sleep(0)
        pull = self._protocol.at_once()
        if pull is None:
            if self._listener is None and self._listens:
                self._listener = AsyncListener(self._client, self._protocol)
            pull = await self._run(self._protocol.ask())
        return pull

    async def tell(self, pull: Pull, reward: float) -> None:
        """Report what a pull paid, a number from 0 to 1. Only the reward of a claim is sent."""
        if pull.share:
            await self._run(self._protocol.tell(pull, reward))
        else:
            self._protocol.keep_private(pull, reward)

    async def defer(self, pull: Pull) -> None:
        """Go on without the reward of a claim, which comes later; then `tell` takes it, after a restart too.

        Meanwhile `ask` returns commit pulls.
        """
        await self._run(self._protocol.defer(pull))

    async def play(self, pull_arm: Callable[[str], float | Awaitable[float]], steps: int) -> Played:
        """Ask, pull and tell this many times, or until the horizon or the close; then report all commit pulls."""
        played = Played()
        try:
            for _ in range(steps):
                pull = await self.ask()
                found = pull_arm(pull.arm)
                reward = await found if inspect.isawaitable(found) else found
                played.add(pull)
                await self.tell(pull, reward)
        except (Closed, HorizonReached) as end:
            played.ended = end.sentence
        await self.flush()
        return played

    async def flush(self) -> None:
        """Report every commit pull not yet reported."""
        await self._run(self._protocol.flush())

    # consent

    async def share(self, shares: Collection[str]) -> None:
        """Share these arms and no others from now on; a claim on a withdrawn arm is cancelled."""
        await self._run(self._protocol.share(shares))

    async def attach(self, arm: str, rewards: Collection[float]) -> None:
        """Attach all past rewards of an arm that the agent shares, in their order, before its first pull."""
        await self._run(self._protocol.attach(arm, rewards))

    async def leave(self) -> None:
        """Leave the collaboration; what was broadcast stays, and so does the agent's row of the settlement."""
        await self._run(self._protocol.leave())

    async def rotate(self) -> None:
        """Get a new token and a new key, and end the old ones at once: for an agent whose state file may be known."""
        await self._run(self._protocol.rotate())

    # reading

    async def board(self) -> BoardView:
        """Return the board as it is now."""
        return await self._run(self._protocol.board())

    async def settlement(self) -> SettlementView:
        """Return the agent's row of the settlement and the totals; before the close, as if it closed now."""
        return await self._run(self._protocol.settlement())

    async def ledger(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger, as the agent may see it, to a file for `partage verify`."""
        write_atomically(Path(path), await self._run(self._protocol.ledger()), READABLE)

    async def compare(self, note: str) -> int:
        """Compare another member's checkpoint with this agent's, and return its number of rows.

        Raises `Forked` if the two are not of one ledger, and `InputError` if the ledger's key did not sign it.
        """
        return await self._run(self._protocol.compare(note))

    # closing

    async def close(self) -> None:
        """Report all commit pulls, save, and close the connection. The agent stays in the collaboration.

        It also cosigns the newest checkpoint, and compares it with those of other members.
        """
        try:
            await self._run(self._protocol.close())
        finally:
            await self._disconnect()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Unreachable | Forked):  # a flush would only wait for the controller again, or be refused
            await self._run(self._protocol.save())
            await self._disconnect()
        else:
            await self.close()

    async def _disconnect(self) -> None:
        await self._stop_listening()
        await self._client.aclose()

    async def _stop_listening(self) -> None:
        self._listens = False
        if self._listener is not None:
            await self._listener.stop()
            self._listener = None

    # carrying out effects

    async def _run(self, steps: Steps[T]) -> T:
        reply: Answer | Lost | None = None
        while True:
            try:
                step = steps.send(reply)
            except StopIteration as end:
                found: T = end.value
                return found
            except Forked:
                await self._stop_listening()
                raise
            reply = await self._do(step)

    async def _do(self, step: Send | Wait | Save) -> Answer | Lost | None:
        if self._saving is not None and not self._saving.done():  # a call was cancelled while its thread wrote
            await asyncio.shield(self._saving)
        if isinstance(step, Send):
            try:
                return answer_of(await self._client.send(request_of(self._client, step)))
            except httpx.TransportError as error:
                return lost_by(error)
        if isinstance(step, Save):
            self._saving = asyncio.ensure_future(asyncio.to_thread(self._write, step.content))
            await asyncio.shield(self._saving)
        elif step.news and self._listener is not None:
            await self._listener.wait(step.seconds)
        else:
            await asyncio.sleep(step.seconds)
        return None


class AsyncListener:
    """A task that keeps the event stream open and hands the newest board to the protocol."""

    def __init__(self, client: httpx.AsyncClient, protocol: Protocol) -> None:
        self._client, self._protocol = client, protocol
        self._following = protocol.following
        self._came = asyncio.Event()
        self._task = asyncio.create_task(self._listen())

    async def wait(self, seconds: float) -> None:
        """Wait until a board comes, this many seconds at most."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._came.wait(), seconds)
        self._came.clear()

    async def stop(self) -> None:
        """End the task."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _listen(self) -> None:
        failures = 0
        while True:
            path, headers = self._protocol.events()  # the token may have changed
            try:
                async with self._client.stream("GET", path, headers=headers, timeout=STREAM_TIMEOUT) as response:
                    if 400 <= response.status_code < 500:
                        return  # calls report the error, and read the board instead
                    response.raise_for_status()
                    await self._follow(response)
                    failures = 0
            except (httpx.HTTPError, httpx.StreamError, Garbled):
                failures += 1
            finally:
                self._following.streaming = False
            await asyncio.sleep(pause(failures))

    async def _follow(self, response: httpx.Response) -> None:
        lines = BoardLines()
        self._following.streaming = True
        async for line in response.aiter_lines():
            if self._following.hear(lines.read(line)):
                self._came.set()

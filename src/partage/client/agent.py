"""The agent: the client in plain, blocking Python."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Collection
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


class Agent(BaseAgent):
    """An agent of a live collaboration.

        agent = Agent.join(url, collaboration, invite, name="Shop 3", shares=["Supplier A"], state="shop3.json")
        for _ in range(1000):
            pull = agent.ask()
            reward = my_reward(pull.arm)
            agent.tell(pull, reward)

    Call `tell` for every pull; it sends only the rewards of claims (`pull.share`). With a state file you can simply
    rerun a program that crashed. Use an agent from one thread only; it is not thread-safe.

    A crash can lose commit pulls of the last seconds (they do not count in the settlement), and the last few rewards
    of the agent's own record. It never loses a reward passed to `tell`, and never counts
    anything twice.

    Parameters
    ----------
    url, collaboration, token
        The controller's address, the collaboration's id, and the token that joining returned.
    state
        The state file. Without one, a crash loses the open claim and whatever was not reported. The file holds the
        token, so only its owner may read it; if there are arms that nobody shares, or with `own_rewards`, it also
        holds sums of private rewards.
    max_pulls_per_board
        Local pulls per board (10) while somebody may still explore an arm. After those it waits for a fresh board, at
        most one second.
    own_rewards
        How many of its own private rewards of each arm the agent uses when it commits (0). It then pulls the arm with
        the highest mean of the broadcasts and these rewards, and reports such pulls without their arm: nobody learns
        it, and they are not compensated. If nobody shares some arm, own rewards count for such arms alone.
    patience
        Seconds to keep trying when the controller does not answer (60).
    listen
        Whether to keep an event stream open (yes); without it the board is read up to once a second.
    rules
        The module of the collaboration's rule, if that is not one of Partage's: its path or its name, or several. The
        agent plays only if it is the file whose hash the ledger states.
    transport
        An httpx transport, for proxies and tests.
    """

    def __init__(self, url: str, collaboration: str, token: str, **options: Unpack[Options]) -> None:
        self._set_up(saved_or_new(url, collaboration, options, token=token), options)

    @classmethod
    def join(
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
                agent._run(agent._protocol.join(invite, first_patience(options)))
            elif set(shares) != set(agent.shares):
                agent.share(shares)
        except BaseException:
            agent._disconnect()
            raise
        return agent

    @classmethod
    def resume(cls, path: str | os.PathLike[str], *, token: str = "", **options: Unpack[Options]) -> Self:
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
        if transport is not None and not isinstance(transport, httpx.BaseTransport):
            raise InputError("The transport must be an httpx.BaseTransport.")
        self._client = httpx.Client(base_url=saved.url, timeout=TIMEOUT, transport=transport)
        self._listener: Listener | None = None

    # pulls

    def ask(self) -> Pull:
        """Return what to pull next. A claim that was neither told nor deferred is returned again."""
        pull = self._protocol.at_once()
        if pull is None:
            if self._listener is None and self._listens:
                self._listener = Listener(self._client, self._protocol)
            pull = self._run(self._protocol.ask())
        return pull

    def tell(self, pull: Pull, reward: float) -> None:
        """Report what a pull paid, a number from 0 to 1. Only the reward of a claim is sent."""
        if pull.share:
            self._run(self._protocol.tell(pull, reward))
        else:
            self._protocol.keep_private(pull, reward)

    def defer(self, pull: Pull) -> None:
        """Go on without the reward of a claim, which comes later; then `tell` takes it, after a restart too.

        Meanwhile `ask` returns commit pulls.
        """
        self._run(self._protocol.defer(pull))

    def play(self, pull_arm: Callable[[str], float], steps: int) -> Played:
        """Ask, pull and tell this many times, or until the horizon or the close; then report all commit pulls."""
        played = Played()
        try:
            for _ in range(steps):
                pull = self.ask()
                reward = pull_arm(pull.arm)
                played.add(pull)
                self.tell(pull, reward)
        except (Closed, HorizonReached) as end:
            played.ended = end.sentence
        self.flush()
        return played

    def flush(self) -> None:
        """Report every commit pull not yet reported."""
        self._run(self._protocol.flush())

    # consent

    def share(self, shares: Collection[str]) -> None:
        """Share these arms and no others from now on; a claim on a withdrawn arm is cancelled."""
        self._run(self._protocol.share(shares))

    def attach(self, arm: str, rewards: Collection[float]) -> None:
        """Attach all past rewards of an arm that the agent shares, in their order, before its first pull.

        They count as evidence for all members and are not paid. Each arm's are attached once; calling this again with
        the same rewards changes nothing. The collaboration must take histories (`docs/histories.md`).
        """
        self._run(self._protocol.attach(arm, rewards))

    def leave(self) -> None:
        """Leave the collaboration; what was broadcast stays, and so does the agent's row of the settlement."""
        self._run(self._protocol.leave())

    def rotate(self) -> None:
        """Get a new token and a new key, and end the old ones at once: for an agent whose state file may be known."""
        self._run(self._protocol.rotate())

    # reading

    def board(self) -> BoardView:
        """Return the board as it is now."""
        return self._run(self._protocol.board())

    def settlement(self) -> SettlementView:
        """Return the agent's row of the settlement and the totals; before the close, as if it closed now."""
        return self._run(self._protocol.settlement())

    def ledger(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger, as the agent may see it, to a file for `partage verify`."""
        write_atomically(Path(path), self._run(self._protocol.ledger()), READABLE)

    def compare(self, note: str) -> int:
        """Compare another member's checkpoint with this agent's, and return its number of rows.

        Raises `Forked` if the two are not of one ledger, and `InputError` if the ledger's key did not sign it.
        """
        return self._run(self._protocol.compare(note))

    # closing

    def close(self) -> None:
        """Report all commit pulls, save, and close the connection. The agent stays in the collaboration.

        It also cosigns the newest checkpoint, and compares it with those of other members.
        """
        try:
            self._run(self._protocol.close())
        finally:
            self._disconnect()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Unreachable | Forked):  # a flush would only wait for the controller again, or be refused
            self._run(self._protocol.save())
            self._disconnect()
        else:
            self.close()

    def _disconnect(self) -> None:
        self._stop_listening()
        self._client.close()

    def _stop_listening(self) -> None:
        self._listens = False
        if self._listener is not None:
            self._listener.stop()
            self._listener = None

    # carrying out effects

    def _run(self, steps: Steps[T]) -> T:
        reply: Answer | Lost | None = None
        while True:
            try:
                step = steps.send(reply)
            except StopIteration as end:
                found: T = end.value
                return found
            except Forked:
                self._stop_listening()
                raise
            reply = self._do(step)

    def _do(self, step: Send | Wait | Save) -> Answer | Lost | None:
        if isinstance(step, Send):
            try:
                return answer_of(self._client.send(request_of(self._client, step)))
            except httpx.TransportError as error:
                return lost_by(error)
        if isinstance(step, Save):
            self._write(step.content)
        elif step.news and self._listener is not None:
            self._listener.wait(step.seconds)
        else:
            time.sleep(step.seconds)
        return None


class Listener:
    """A thread that keeps the event stream open and hands the newest board to the protocol."""

    def __init__(self, client: httpx.Client, protocol: Protocol) -> None:
        self._client, self._protocol = client, protocol
        self._following = protocol.following
        self._came = threading.Event()
        self._stopping = threading.Event()
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._listen, name="partage-listener", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until a board comes, this many seconds at most."""
        self._came.wait(seconds)
        self._came.clear()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # nothing else wakes a thread that reads
        self._thread.join(timeout=5.0)

    def _listen(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            path, headers = self._protocol.events()  # the token may have changed
            try:
                with self._client.stream("GET", path, headers=headers, timeout=STREAM_TIMEOUT) as response:
                    if 400 <= response.status_code < 500:
                        return  # calls report the error, and read the board instead
                    response.raise_for_status()
                    self._follow(response)
                    failures = 0
            except (httpx.HTTPError, httpx.StreamError, Garbled):
                failures += 1
            except RuntimeError:  # the client was closed meanwhile
                return
            finally:
                self._socket = None
                self._following.streaming = False
            self._stopping.wait(pause(failures))

    def _follow(self, response: httpx.Response) -> None:
        network = response.extensions.get("network_stream")
        self._socket = None if network is None else network.get_extra_info("socket")
        lines = BoardLines()
        self._following.streaming = True
        for line in response.iter_lines():
            if self._stopping.is_set():
                return
            if self._following.hear(lines.read(line)):
                self._came.set()

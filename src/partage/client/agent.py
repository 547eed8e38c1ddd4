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

from partage.client import statefile as files
from partage.client.base import STREAM_TIMEOUT, TIMEOUT, Both, Options, answer_of, known, lost_by, request_of, resumed
from partage.client.effects import Answer, Lost, Save, Send, Steps, Wait
from partage.client.errors import Closed, HorizonReached, Unreachable
from partage.client.protocol import Logic
from partage.client.pulls import Played, Pull
from partage.client.statefile import Kept
from partage.client.stream import BoardLines, pause
from partage.ledger import messages as wire

T = TypeVar("T")


class Agent(Both):
    """An agent of a live collaboration.

        agent = Agent.join(url, collaboration, invite, name="Shop 3", shares=["Supplier A"], state="shop3.json")
        for _ in range(1000):
            pull = agent.ask()
            reward = my_reward(pull.arm)
            agent.tell(pull, reward)

    `tell` is called for every pull; it sends the reward of a claim (`pull.share`) and no other. With a state file, a
    crashed loop just runs again. One agent is for one loop: it is not made for several threads at a time.

    A crash can lose commit pulls of the last seconds (they are not counted for the settlement), and from her own
    record of arms that nobody shares the last few rewards. It never loses a reward that was told, and never counts
    anything twice.

    Parameters
    ----------
    url, collaboration, token
        Where the controller is, which collaboration, and the token that joining gave.
    state
        The state file; without one, a crash loses the claim that is open and what was not reported. It has the token,
        so only its owner may read it; and where there are arms that nobody shares, sums of private rewards.
    max_pulls_per_board
        While exploration of an arm she shares may still come, she pulls so often by herself on one board (10), then
        waits for a fresh one, a second at most.
    patience
        Seconds to go on trying when the controller does not answer (60).
    listen
        Whether to keep a stream of events open (yes); without it the board is read up to once a second.
    transport
        One of httpx's, for proxies and tests.
    """

    def __init__(self, url: str, collaboration: str, token: str, **options: Unpack[Options]) -> None:
        self._set_up(known(url, collaboration, options, token=token), options)

    @classmethod
    def join(
        cls,
        url: str,
        collaboration: str,
        invite: str,
        name: str,
        shares: Collection[str],
        **options: Unpack[Options],
    ) -> Self:
        """Join a collaboration; where the state file has this agent already, go on as her, sharing these arms."""
        agent = cls._of(known(url, collaboration, options, name, shares), options)
        try:
            if not agent._logic.kept.token:
                agent._run(agent._logic.join(invite))
            elif set(shares) != set(agent.shares):
                agent.share(shares)
        except BaseException:
            agent._let_go()
            raise
        return agent

    @classmethod
    def resume(cls, path: str | os.PathLike[str], **options: Unpack[Options]) -> Self:
        """Go on as the agent of this state file."""
        options["state"] = path
        return cls._of(resumed(path), options)

    @classmethod
    def _of(cls, kept: Kept, options: Options) -> Self:
        agent = cls.__new__(cls)
        agent._set_up(kept, options)
        return agent

    def _set_up(self, kept: Kept, options: Options) -> None:
        Both.__init__(self, kept, options)
        transport = options.get("transport")
        assert transport is None or isinstance(transport, httpx.BaseTransport)
        self._client = httpx.Client(base_url=kept.url, timeout=TIMEOUT, transport=transport)
        self._listener: Listener | None = None

    # pulls

    def ask(self) -> Pull:
        """Return what to pull next. A claim that was not told yet comes again."""
        pull = self._logic.at_once()
        if pull is None:
            if self._listener is None and self._listens:
                self._listener = Listener(self._client, self._logic)
            pull = self._run(self._logic.ask())
        return pull

    def tell(self, pull: Pull, reward: float) -> None:
        """Say what a pull gave, a number from 0 to 1. Only the reward of a claim is sent."""
        if pull.share:
            self._run(self._logic.tell(pull, reward))
        else:
            self._logic.keep_private(pull, reward)

    def play(self, pull_arm: Callable[[str], float], steps: int) -> Played:
        """Ask, pull and tell so many times, or until the horizon or the close; then report what was not."""
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
        """Report every commit pull that was not reported yet."""
        self._run(self._logic.flush())

    # consent

    def share(self, shares: Collection[str]) -> None:
        """Share these arms and no others from now on; a claim on an arm that is withdrawn is cancelled."""
        self._run(self._logic.share(shares))

    def leave(self) -> None:
        """Leave the collaboration; what was broadcast stays, and so does the row of the settlement."""
        self._run(self._logic.leave())

    # what can be read

    def board(self) -> wire.BoardView:
        """Return the board as it is now."""
        return self._run(self._logic.board())

    def settlement(self) -> wire.SettlementView:
        """Return her row of the settlement and the totals; before the close, as if it closed now."""
        return self._run(self._logic.settlement())

    def ledger(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger, as she may see it, to a file for `partage verify`."""
        files.write(Path(path), self._run(self._logic.ledger()), mode=0o644)

    # the end

    def close(self) -> None:
        """Report what was not, save, and let go of the network. She does not leave by that."""
        try:
            self.flush()
        finally:
            self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Unreachable):  # it would only be waited for once more
            self._run(self._logic.save())
            self._let_go()
        else:
            self.close()

    def _let_go(self) -> None:
        if self._listener is not None:
            self._listener.stop()
        self._client.close()

    # doing what the logic says

    def _run(self, steps: Steps[T]) -> T:
        reply: Answer | Lost | None = None
        while True:
            try:
                step = steps.send(reply)
            except StopIteration as end:
                found: T = end.value
                return found
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
    """A thread that keeps the stream of events open and hands the newest board to the logic."""

    def __init__(self, client: httpx.Client, logic: Logic) -> None:
        self._client, self._logic = client, logic
        self._came = threading.Event()
        self._stopping = threading.Event()
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._listen, name="partage-listener", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until a board comes, so many seconds at most."""
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
        path, headers = self._logic.events()
        failures = 0
        while not self._stopping.is_set():
            try:
                with self._client.stream("GET", path, headers=headers, timeout=STREAM_TIMEOUT) as response:
                    if 400 <= response.status_code < 500:
                        return  # the calls themselves say what is wrong, and read the board instead
                    response.raise_for_status()
                    self._follow(response)
                    failures = 0
            except (httpx.HTTPError, httpx.StreamError):
                failures += 1
            except RuntimeError:  # the client was closed meanwhile
                return
            finally:
                self._socket = None
                self._logic.streaming = False
            self._stopping.wait(pause(failures))

    def _follow(self, response: httpx.Response) -> None:
        network = response.extensions.get("network_stream")
        self._socket = None if network is None else network.get_extra_info("socket")
        lines = BoardLines()
        self._logic.streaming = True
        for line in response.iter_lines():
            if self._stopping.is_set():
                return
            if self._logic.hear(lines.read(line)):
                self._came.set()

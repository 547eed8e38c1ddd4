"""The simulated members: the real client's protocol over the simulated network, and members that lie."""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any

import msgspec
from tests.simulator.servers import Network
from tests.simulator.witness import Witness, must
from tests.simulator.world import Machine, World

from partage.client.calls import refusal
from partage.client.effects import Answer, Lost, Save, Send, Steps, Wait
from partage.client.errors import Closed, HorizonReached, Refused, Unreachable
from partage.client.protocol import Protocol
from partage.client.pulls import Pull
from partage.client.signing import asked_by
from partage.client.statefile import AgentState
from partage.client.stream import BoardLines
from partage.ledger import messages
from partage.ledger.keys import Key
from partage.ledger.messages import CommitRun
from partage.ledger.signatures import HEADER, header_of, sign

URL = "http://simulated"

# Refusals that an honest member may get: something happened that it could not know of.
UNLUCKY = {"closed", "left", "claim_cancelled", "set_aside", "horizon_used", "no_public_arm", "too_many_pulls"}
UNLUCKY |= {"token_ended", "removed"}


@dataclass(frozen=True)
class Habits:
    """How a member behaves: how often it does each thing, per pull or per step of its client."""

    pause: float = 0.5  # longest pause between two pulls, in seconds
    lag: float = 0.0  # it takes so long over a pull that the claim lapses
    crash: float = 0.0  # its program crashes, and resumes from its state file
    consent: float = 0.0
    leave: float = 0.0
    read: float = 0.05  # it reads ledger, settlement or board
    listens: bool = False
    patience: float = 5.0
    horizon: int | None = None  # that it declares
    past: int = 0  # how many past rewards of each arm it attaches


class Down(Exception):
    """The member's program crashed."""


class Member:
    """An honest member: a program that asks, pulls and tells, and that may crash at any effect of its client."""

    def __init__(self, world: World, network: Network, witness: Witness, name: str, habits: Habits) -> None:
        self.world, self.network, self.witness, self.name, self.habits = world, network, witness, name, habits
        self.machine = Machine(world, name)  # with a clock of its own
        self.file: bytes | None = None  # the state file
        self.protocol: Protocol | None = None
        self.news = asyncio.Event()
        self.listener: asyncio.Task[None] | None = None
        self.over = ""
        self.crashes = 0
        self.asking = False
        self.committed = 0  # commit pulls that the client handed out, or may have counted before a crash
        self.passed: dict[int, float] = {}  # rewards that `tell` took, by pull
        self.saved_told: dict[int, float] = {}  # rewards that are in the state file

    # its life

    async def live(self, collaboration: str, invite: str, shares: list[str], arms: list[str], steps: int) -> None:
        """Join, and pull until the end."""
        self.collaboration, self.invite, self.shares, self.arms = collaboration, invite, shares, arms
        while not self.over:
            try:
                await self._run(steps)
                return
            except Down:
                self.crashes += 1
                self.committed += self.asking
                self.asking = False
                self.protocol = None
                await self._stop_listening()
                await asyncio.sleep(self.world.delay(3.0))
            except Unreachable:
                self.world.counts["gave up for now"] += 1
                await asyncio.sleep(self.world.delay(2.0))
            except (Closed, HorizonReached) as end:
                self.over = type(end).__name__
            except Refused as refused:
                must(refused.code in UNLUCKY, f"{self.name}, who is honest, was refused: {refused.code}.")
                self.world.counts[f"honest member refused: {refused.code}"] += 1
                if refused.code in ("left", "closed", "set_aside", "token_ended", "removed"):
                    self.over = refused.code
        await self._stop_listening()

    async def _run(self, steps: int) -> None:
        """Run the program once, from its state file."""
        protocol = self._resume()
        if not protocol.saved.token:
            await self.drive(protocol.join(self.invite))
        for arm in sorted(self.shares) if self.habits.past else ():  # again after each crash
            await self.drive(protocol.attach(arm, [round(0.1 * place, 1) for place in range(self.habits.past)]))
        if self.habits.listens and self.listener is None:
            self.listener = asyncio.ensure_future(self._listen(protocol))
        while protocol.saved.used < steps:
            await asyncio.sleep(self.world.delay(self.habits.pause))
            await self._step(protocol)
        await self.drive(protocol.flush())

    async def _step(self, protocol: Protocol) -> None:
        world, habits = self.world, self.habits
        draw = world.random.random()
        if draw < habits.read:
            call = world.random.choice((protocol.ledger, protocol.settlement, protocol.board))
            await self.drive(call())
            return
        if draw < habits.read + habits.consent:
            await self.drive(
                protocol.share(world.random.sample(self.arms, world.random.randrange(len(self.arms) + 1)))
            )
            return
        if draw < habits.read + habits.consent + habits.leave:
            await self.drive(protocol.leave())
            self.over = "left"
            return
        pull = protocol.at_once()
        if pull is None:
            self.asking = True  # the client counts a commit pull before it returns it
            pull = await self.drive(protocol.ask())
            self.asking = False
        self.committed += not pull.share and not pull.hidden  # at once: the member may be stopped at any time
        if world.fault("member lags", habits.lag):
            await asyncio.sleep(world.random.uniform(1.0, 8.0))
        await self._tell(protocol, pull)

    async def _tell(self, protocol: Protocol, pull: Pull) -> None:
        place = self.arms.index(pull.arm) if pull.arm in self.arms else len(self.arms)  # it was just added
        reward = round(self.world.random.random() ** (1 + place), 3)
        if not pull.share:
            protocol.keep_private(pull, reward)
            return
        assert pull.number is not None
        must(pull.number not in self.saved_told, f"{self.name} was told to pull {pull.number} again.")
        self._telling = (pull.number, reward)
        await self.drive(protocol.tell(pull, reward))
        self.passed[pull.number] = reward

    def _resume(self) -> Protocol:
        """Start the program: a new agent, or the one of the state file."""
        if self.protocol is None:
            bytes_of = self.world.random.randbytes
            if self.file is None:
                saved = AgentState(url=URL, collaboration=self.collaboration, name=self.name, shares=self.shares)
                saved.join, saved.asking = bytes_of(16).hex(), bytes_of(16).hex()
                saved.horizon = self.habits.horizon
            else:
                saved = msgspec.json.decode(self.file, type=AgentState)
            self.protocol = Protocol(
                saved,
                saves=True,
                patience=self.habits.patience,
                clock=self.world.loop.time,
                wall_clock=lambda: self.machine.clock() / 1000,
                random_bytes=bytes_of,
            )
        return self.protocol

    async def finish(self) -> None:
        """Send what is left, once nothing fails any more."""
        protocol = self._resume()
        if not protocol.saved.token:
            return
        try:
            await self.drive(protocol.flush())
        except (Closed, HorizonReached):
            pass
        except Refused as refused:
            must(refused.code in UNLUCKY, f"{self.name}, who is honest, was refused: {refused.code}.")
            self.over = self.over or refused.code

    # its effects

    async def drive(self, steps: Steps[Any]) -> Any:
        """Carry out the effects of the protocol; the program may crash before and after each."""
        reply: Answer | Lost | None = None
        while True:
            try:
                step = steps.send(reply)
            except StopIteration as end:
                return end.value
            self._perhaps_crash()
            reply = None
            if isinstance(step, Send):
                reply = await self.network.send(step)
            elif isinstance(step, Save):
                self.file = step.content
                telling = msgspec.json.decode(step.content, type=AgentState).telling
                if telling is not None:
                    self.saved_told[telling[0]] = telling[1]
            elif isinstance(step, Wait):
                await self._wait(step)
            self._perhaps_crash()

    async def _wait(self, step: Wait) -> None:
        if step.news and self.listener is not None:
            self.news.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.news.wait(), step.seconds)
        else:
            await asyncio.sleep(step.seconds)

    def _perhaps_crash(self) -> None:
        if self.world.fault("member crashes", self.habits.crash):
            raise Down

    # its stream

    async def _listen(self, protocol: Protocol) -> None:
        path, headers = protocol.events()
        following = protocol.following
        while True:
            lines = BoardLines()
            following.streaming = True
            async for part in self.network.stream(Send("GET", path, headers)):
                for text in part.decode().split("\n")[:-1]:
                    if following.hear(lines.read(text)):
                        self.news.set()
            following.streaming = False
            await asyncio.sleep(0.2 + self.world.delay(1.0))

    async def _stop_listening(self) -> None:
        if self.listener is not None:
            self.listener.cancel()
            await asyncio.wait([self.listener])
            self.listener = None


class Liar:
    """A member without a client: it sends what it likes, also what is not its own."""

    LIE = 0.123456  # what it reports for pulls that are not its own, which must never be in the ledger

    def __init__(self, world: World, network: Network, witness: Witness, name: str) -> None:
        self.world, self.network, self.witness, self.name = world, network, witness, name
        self.token = self.agent = ""
        self.key: Key | None = None
        self.number = 0
        self.pulls: dict[int, float] = {}
        self.sent: list[Send] = []

    async def live(self, collaboration: str, invite: str, shares: list[str], arms: list[str], steps: int) -> None:
        """Join, and do what is and what is not allowed."""
        self.path, self.arms = f"/v1/collaborations/{collaboration}", arms
        self.id, self.invite = collaboration, invite
        body: dict[str, Any] = {"name": self.name, "shares": shares, "request": "join"}
        if self._truth().events[0].signed is True:
            self.key = Key(self.world.random.randbytes(32))
            body["key"] = self.key.public
        while not self.token:
            answer = await self.send("POST", "/agents", body, invite)
            if answer is not None:
                self.token = answer["token"]
                self.agent = answer["agent"]
            await asyncio.sleep(self.world.delay(1.0))
        if self._truth().events[0].histories:
            await self.invent(f"{self.name} invents")
        for step in range(steps):
            await asyncio.sleep(self.world.delay(1.0))
            deed = self.world.random.choice(DEEDS)
            await deed(self, f"{self.name} {step}")
        if self._truth().events[0].histories:
            await self.invent(f"{self.name} invents again")

    async def send(self, method: str, path: str, body: Any = None, token: str = "") -> Any:
        """Send a request once; return the answer, or None if it was lost or refused."""
        headers = {"Authorization": f"Bearer {token or self.token}"}
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = msgspec.json.encode(body)
        wrong = self._sign(headers, path, content or b"{}", self.world.random.random())
        request = Send(method, self.path + path, headers, content)
        self.sent.append(request)
        found = self._read(await self.network.send(request))
        must(not wrong or found is None, f"{method} {path} was accepted with a wrong signature.")
        return found

    def _sign(self, headers: dict[str, str], path: str, content: bytes, draw: float) -> bool:
        """Sign a request, if members do; return whether the signature is wrong on purpose."""
        kind = SIGNED.get(path) if content != b"{}" or path == "/ask" else None
        if self.key is None or kind is None:
            return False
        given = msgspec.json.decode(content, type=kind)
        if isinstance(given, messages.NewAgent):
            stated = {"name": given.name, "shares": sorted(given.shares), "key": given.key, "tie_commitment": None}
            asked: Any = ("join", stated)
        else:
            asked = asked_by(given)
            asked[1]["agent"] = self.agent
        self.number += 1
        number, key = self.number, self.key
        if draw < 0.05:  # without a signature
            return True
        if draw < 0.1:  # by a key that is not its own
            key = Key(self.world.random.randbytes(32))
        if draw < 0.15 and kind is not messages.NewAgent:  # of something else
            asked[1]["agent"] = "a99"
        headers[HEADER] = header_of(sign(key, asked[0], self.id, number, **asked[1]))
        return draw < 0.1 or (draw < 0.15 and kind is not messages.NewAgent)

    def _read(self, answer: Answer | Lost) -> Any:
        if isinstance(answer, Lost) or answer.status >= 400 or not answer.body:
            return None
        try:
            return msgspec.json.decode(answer.body)
        except msgspec.DecodeError:
            return None

    # what it does

    async def ask(self, request: str) -> None:
        """Ask, perhaps twice with one request."""
        for _ in range(self.world.random.choice((1, 1, 2))):
            answer = await self.send("POST", "/ask", {"request": request})
            if answer is not None and answer["share"]:
                self.pulls.setdefault(answer["pull"], round(self.world.random.random(), 3))

    async def tell(self, request: str) -> None:
        """Report a made-up reward, perhaps twice."""
        if self.pulls:
            pull = self.world.random.choice(list(self.pulls))
            for _ in range(self.world.random.choice((1, 1, 2))):
                await self.send("POST", "/tell", {"pull": pull, "reward": self.pulls[pull]})

    async def tell_again(self, request: str) -> None:
        """Report another reward for a pull that was reported."""
        told = [event for event in self._truth().told.values() if event.agent == self.agent]
        if told:
            pull = self.world.random.choice(told).pull
            must(
                await self.send("POST", "/tell", {"pull": pull, "reward": self.LIE}) is None, "A reward was changed."
            )

    async def meddle(self, request: str) -> None:
        """Report a reward for another agent's pull, or for one that does not exist."""
        events = self._truth().events
        others = [event.seq for event in events if getattr(event, "agent", self.agent) != self.agent]
        pull = self.world.random.choice([*others, 10**9, 0, -1])
        found = await self.send("POST", "/tell", {"pull": pull, "reward": self.LIE})
        must(found is None, "A reward for another agent's pull was accepted.")

    async def boast(self, request: str) -> None:
        """Report commits: some that may be right, some that cannot be."""
        state, random = self._truth().state, self.world.random
        assert state is not None
        version = state.version + random.choice((0, 0, 0, 1, -1, -5))
        pulls = random.choice((1, 2, 2, 10**6))
        target = state.target()
        arm = random.choice(self.arms) if target is None else state.arms[target]
        run = CommitRun(version=max(0, version), arm=arm, pulls=pulls)
        named = state.names_commits and random.random() < 0.8
        body = {"request": request, "runs": [run]} if named else {"request": request, "unnamed": pulls}
        for _ in range(random.choice((1, 2))):
            found = await self.send("POST", "/commits", body)
            must(found is None or pulls <= state.config.horizon, "More commits than the horizon were accepted.")

    async def invent(self, request: str) -> None:
        """Attach made-up rewards: twice, too many, of any arm, and after pulls."""
        random, most = self.world.random, self._truth().events[0].histories
        for count in (most + 1, most, most, 1):
            body = {"arm": random.choice(self.arms), "rewards": [1.0] * count, "request": request}
            found = await self.send("POST", "/history", body)
            must(found is None or count <= most, "More past rewards were accepted than the collaboration takes.")

    async def consent(self, request: str) -> None:
        """Share other arms, with or without the id of a request."""
        shares = self.world.random.sample(self.arms, self.world.random.randrange(len(self.arms) + 1))
        body: dict[str, Any] = {"shares": shares}
        if self.world.random.random() < 0.7:
            body["request"] = request
        await self.send("PATCH", "/agents/me", body)

    async def withdraw(self, request: str) -> None:
        """Withdraw every arm, and report a claim on one of them all the same."""
        await self.send("PATCH", "/agents/me", {"shares": [], "request": request})
        told = self._truth().told
        for pull in [pull for pull in self.pulls if pull not in told][:2]:
            await self.send("POST", "/tell", {"pull": pull, "reward": self.pulls[pull]})

    async def exhaust(self, request: str) -> None:
        """Use the whole horizon, and ask for more."""
        state = self._truth().state
        left = state.members[self.agent].horizon_left
        target = state.target()
        if target is None or left < 1 or self.world.random.random() < 0.7:
            return
        run = CommitRun(version=state.version, arm=state.arms[target], pulls=left)
        named = {"request": request, "runs": [run]} if state.names_commits else {"request": request, "unnamed": left}
        await self.send("POST", "/commits", named)
        for _ in range(3):
            await self.send("POST", "/ask", {})

    async def join_again(self, request: str) -> None:
        """Use the invite again."""
        found = await self.send("POST", "/agents", {"name": request, "shares": [], "request": request}, self.invite)
        must(found is None, "An invite was used twice.")

    async def replay(self, request: str) -> None:
        """Send an earlier request again, byte for byte."""
        if self.sent:
            answer = await self.network.send(self.world.random.choice(self.sent))
            if isinstance(answer, Answer) and answer.status >= 400:
                refusal(answer.status, answer.body)

    async def pose(self, request: str) -> None:
        """Use a token that was never given out."""
        found = await self.send("POST", "/ask", {}, "pt_ag_" + self.world.random.randbytes(16).hex())
        must(found is None, "A made-up token was accepted.")

    async def read(self, request: str) -> None:
        """Read what members may read, and what they may not."""
        path = self.world.random.choice(
            ("/board", "/settlement", "/ledger", "/agents/me", "", "/agents", "/invites", "/checkpoint")
        )
        found = await self.send("GET", path)
        must(found is None or path not in ("/agents", "/invites"), "A member read what only the operator may read.")

    def _truth(self) -> Any:
        return self.witness.truths[self.id]


SIGNED = {
    "/agents": messages.NewAgent,
    "/ask": messages.Ask,
    "/tell": messages.Tell,
    "/commits": messages.Commits,
    "/history": messages.Attach,
    "/agents/me": messages.Consent,
}

DEEDS = [Liar.ask] * 4 + [Liar.tell] * 5 + [Liar.tell_again] + [Liar.meddle] + [Liar.boast] * 2
DEEDS += [Liar.consent, Liar.replay, Liar.replay, Liar.pose, Liar.read, Liar.withdraw, Liar.exhaust, Liar.join_again]

"""A controller without a network, for tests of the client: the real state and moves, on a clock of its own."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import msgspec

from partage.ledger import messages as wire
from partage.ledger import moves
from partage.ledger.events import Claim, Run, Tell
from partage.ledger.refusals import Refused
from partage.ledger.state import State
from partage.ledger.views import agent_views, board_view, collaboration_view

URL = "http://controller"
ID = "c1"
BEFORE, AFTER = "before", "after"  # when a request is lost: before it arrived, or its answer


class Fake:
    """One collaboration. `fault(request)` may lose a request, answer it with a status, or raise."""

    def __init__(self, arms: Sequence[str], horizon: int = 1000, **config: Any) -> None:
        asked = wire.NewCollaboration(name="fake", arms=list(arms), horizon=horizon, **config)
        self.now = 1000.0
        self.state = State(moves.create(self.milliseconds(), collaboration=ID, **wire.checked_config(asked)))
        self.requests: list[httpx.Request] = []
        self.told: dict[int, Tell] = {}
        self.handed: dict[int, Claim] = {}
        self.fault: Callable[[httpx.Request], str | int | None] = lambda request: None

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self.handle)

    def milliseconds(self) -> int:
        return int(self.now * 1000)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def turn(self) -> moves.Turn:
        return moves.Turn(self.state, self.milliseconds())

    def names(self, method: str = "") -> list[str]:
        """Return what was requested, as in "POST ask"."""
        made = [f"{r.method} {r.url.path.rpartition(ID)[2].strip('/')}".strip() for r in self.requests]
        return [name for name in made if name.startswith(method)]

    def bodies(self) -> bytes:
        return b"\n".join(request.content for request in self.requests)

    # what others do

    def join(self, *shares: str) -> str:
        numbers = [self.state.config.arms.index(name) for name in shares]
        joined = moves.join(self.turn(), "other", numbers, f"i{self.state.seq}")
        return joined.agent

    def broadcast(self, agent: str, reward: float) -> None:
        """Let this agent explore at once."""
        answered = moves.ask(self.turn(), agent, None, True)
        assert answered is not None
        moves.tell(self.turn(), agent, answered.seq, reward)

    def consent(self, agent: str, *shares: str) -> None:
        """Let this agent share these arms from now on, as her page would."""
        moves.consent(self.turn(), agent, [self.state.config.arms.index(name) for name in shares])

    def close(self) -> None:
        from partage.ledger.settlement import settlement_of

        moves.close(self.turn(), settlement_of(self.state))

    # what the client sees

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        fault = self.fault(request)
        if fault == BEFORE:
            raise httpx.ConnectError("lost", request=request)
        if isinstance(fault, int):
            return httpx.Response(fault)
        try:
            answer = self._answer(request)
        except Refused as refused:
            answer = httpx.Response(
                refused.status, content=msgspec.json.encode(wire.Error(refused.sentence, refused.field))
            )
        if fault == AFTER:
            raise httpx.ReadError("lost", request=request)
        return answer

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix(f"/v1/collaborations/{ID}").strip("/")
        bearer = request.headers["authorization"].removeprefix("Bearer ")
        found = self._call(f"{request.method} {path}".strip(), bearer, request)
        if isinstance(found, httpx.Response):
            return found
        return httpx.Response(200, content=msgspec.json.encode(found))

    def _call(self, call: str, bearer: str, request: httpx.Request) -> Any:
        state, turn = self.state, self.turn()
        if call == "POST agents":
            new = msgspec.json.decode(request.content, type=wire.NewAgent)
            if bearer not in state.invites:
                shares = wire.checked_arms("shares", new.shares, self._arms())
                moves.join(turn, new.name, shares, bearer)
            agent = state.invites[bearer]
            return wire.Joined(agent, f"secret-{agent}")
        agent = bearer.removeprefix("secret-")
        if agent not in state.members:
            raise Refused(401, "This token is not known here.")
        member = next(view for view in agent_views(state) if view.agent == agent)
        if call == "GET":
            return collaboration_view(state)
        if call == "GET agents/me":
            return member
        if call == "GET board":
            moves.lapse(turn)
            body = msgspec.json.encode(board_view(state))
            etag = hashlib.sha256(body).hexdigest()
            if request.headers.get("if-none-match") == etag:
                return httpx.Response(304)
            return httpx.Response(200, content=body, headers={"ETag": etag})
        if call == "POST ask":
            ask = msgspec.json.decode(request.content, type=wire.Ask)
            answered = moves.ask(turn, agent, ask.request, ask.explore_only)
            if answered is None:
                return httpx.Response(204)
            if answered.seq not in self.handed:
                self.handed[answered.seq] = Claim(seq=answered.seq, time=turn.now, agent=agent, arm=answered.arm)
            return wire.Pull(answered.seq, state.config.arms[answered.arm], answered.share, answered.version)
        if call == "POST tell":
            tell = msgspec.json.decode(request.content, type=wire.Tell)
            try:
                told = self.told[tell.pull] = moves.tell(turn, agent, tell.pull, tell.reward)
            except moves.NotOpen:
                row = self.handed.get(tell.pull)
                told = moves.not_open(agent, self.told.get(tell.pull), row, tell.reward)
            return wire.Told(told.version, f"head-{told.seq}")
        if call == "POST commits":
            sent = msgspec.json.decode(request.content, type=wire.Commits)
            runs = [Run(run.version, self._arms()[run.arm], run.pulls) for run in sent.runs]
            answered = moves.commits(turn, agent, sent.request, runs)
            return wire.Told(answered.version, f"head-{answered.seq}")
        if call == "PATCH agents/me":
            consent = msgspec.json.decode(request.content, type=wire.Consent)
            moves.consent(turn, agent, wire.checked_arms("shares", consent.shares, self._arms()), consent.request)
            return next(view for view in agent_views(state) if view.agent == agent)
        if call == "DELETE agents/me":
            moves.leave(turn, agent)
            return httpx.Response(204)
        raise Refused(404, "There is nothing at this address.")

    def _arms(self) -> dict[str, int]:
        return {name: arm for arm, name in enumerate(self.state.config.arms)}

"""A controller in one thread, over a table: it signs what it writes, keeps several histories, and lies on demand.

It has the calls that the client makes, and no more. `fork` returns a second one with the same history and key, which
goes on by itself: an operator who shows two members different ledgers.
"""

import copy
from collections.abc import Callable
from typing import Any

import httpx
import msgspec
from tests.support.log import Log
from tests.support.sequences import Table, created

from partage.ledger import messages, moves
from partage.ledger.checkpoints import read_checkpoint
from partage.ledger.keys import Key
from partage.ledger.receipts import HEADER, encoded_proof
from partage.ledger.refusals import Refused
from partage.ledger.views import agent_views, board_view, collaboration_view

ID = "c1"
Lie = Callable[[httpx.Request, Any], Any]


class FakeController(httpx.BaseTransport):
    """A controller of one collaboration. `lie(request, answer)` may change an answer before it is sent.

    By default the collaboration has format 4, in which members draw no tie order and sign no requests; receipts and
    checkpoints are the same. Where `receipts` is false it behaves as release 0.1, which has no keys, receipts and
    relay.
    """

    def __init__(self, key: bytes = b"\x07" * 32, receipts: bool = True, **config: Any) -> None:
        config = {"arms": ["a", "b"], "horizon": 1000, "format": 4} | config
        self.table = Table(created(**config))
        self.log = Log(self.table, Key(key))
        self.receipts = receipts
        self.lie: Lie = lambda request, answer: answer
        self.requests: list[str] = []
        self.cosignatures: dict[str, str] = {}

    def fork(self) -> "FakeController":
        """Return another controller with the same history so far, and the same relay."""
        other = copy.copy(self)
        other.table = copy.deepcopy(self.table)
        other.log = Log(other.table, self.log.key)
        other.requests = []
        return other

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        path = request.url.path.partition(ID)[2]
        self.requests.append(f"{request.method} {path.strip('/')}".strip())
        try:
            answer = self.lie(request, self._answer(request, path))
        except Refused as refused:
            body = messages.Error(refused.sentence, refused.code, refused.field)
            return httpx.Response(refused.status, content=msgspec.json.encode(body))
        if isinstance(answer, httpx.Response):
            return answer
        if answer is None:
            return httpx.Response(204)
        return httpx.Response(200, content=msgspec.json.encode(answer))

    def _answer(self, request: httpx.Request, path: str) -> Any:
        calls: dict[str, Callable[[httpx.Request, str], Any]] = {
            "GET ": self._config,
            "GET /board": self._board,
            "GET /agents/me": self._me,
            "POST /agents": self._join,
            "POST /ask": self._ask,
            "POST /tell": self._tell,
            "POST /commits": self._commits,
            "PATCH /agents/me": self._consent,
            "GET /proof": self._proof,
            "PUT /cosignature": self._cosignature,
            "GET /cosignatures": self._cosignatures,
        }
        call = calls.get(f"{request.method} {path}")
        if call is None or (not self.receipts and call in (self._proof, self._cosignature, self._cosignatures)):
            raise Refused(404, "not_found", "There is nothing at this address.")
        return call(request, request.headers["Authorization"].removeprefix("Bearer "))

    # the calls

    def _config(self, request: httpx.Request, agent: str) -> Any:
        view = collaboration_view(self.table.state)
        view.key = self.log.key.public if self.receipts else ""
        return view

    def _board(self, request: httpx.Request, agent: str) -> Any:
        return board_view(self.table.state)

    def _me(self, request: httpx.Request, agent: str) -> Any:
        return next(view for view in agent_views(self.table.state, self.table.now) if view.agent == agent)

    def _join(self, request: httpx.Request, invite: str) -> Any:
        body = json_of(request)
        if not self.receipts and "key" in body:
            raise Refused(422, "", "Unknown field.", "key")
        before = [event for event in self.table.events if getattr(event, "invite", None) == invite]
        joined = (
            before[0] if before else self.table.move(moves.join, body["name"], self._arms(body["shares"]), invite)
        )
        return messages.Joined(joined.agent, joined.agent, self._receipt(request, joined.seq))

    def _ask(self, request: httpx.Request, agent: str) -> Any:
        body = json_of(request)
        found = self.table.ask(agent, body["request"], body["explore_only"])
        if found is None:
            return None
        arm = self.table.state.config.arms[found.arm]
        return messages.Pull(found.seq, arm, found.share, found.version, self._receipt(request, found.seq))

    def _tell(self, request: httpx.Request, agent: str) -> Any:
        body = json_of(request)
        told = self.table.tell(agent, body["pull"], body["reward"])
        return messages.Told(told.version, self.table.head, self._receipt(request, told.seq))

    def _commits(self, request: httpx.Request, agent: str) -> Any:
        body = json_of(request)
        names = self.table.state.config.arms
        runs = [(run["version"], names.index(run["arm"]), run["pulls"]) for run in body.get("runs", [])]
        done = self.table.commits(agent, body["request"], *runs, unnamed=body.get("unnamed", 0))
        return messages.Told(done.version, self.table.head, self._receipt(request, done.seq))

    def _consent(self, request: httpx.Request, agent: str) -> Any:
        body = json_of(request)
        self.table.move(moves.consent, agent, self._arms(body["shares"]), body["request"])
        seq = self.table.rows[-1].seq
        view = msgspec.to_builtins(self._me(request, agent))
        return view if not self.receipts else view | {"receipt": self._receipt(request, seq)}

    def _proof(self, request: httpx.Request, agent: str) -> Any:
        small, large = int(request.url.params["from"]), int(request.url.params["to"])
        if large > self.log.tree.size:
            raise Refused(409, "checkpoint_ahead", "The ledger has fewer rows.")
        return {"consistency": encoded_proof(self.log.tree.consistency(small, large))}

    def _cosignature(self, request: httpx.Request, agent: str) -> Any:
        note = json_of(request)["checkpoint"]
        assert read_checkpoint(note, ID, self.log.key.public) is not None
        self.cosignatures[agent] = note

    def _cosignatures(self, request: httpx.Request, agent: str) -> Any:
        return [{"agent": other, "name": other, "checkpoint": note} for other, note in self.cosignatures.items()]

    def _arms(self, names: list[str]) -> list[int]:
        return [self.table.state.config.arms.index(name) for name in names]

    def _receipt(self, request: httpx.Request, seq: int) -> Any:
        if not self.receipts:
            return None
        seen = request.headers.get(HEADER)
        if seen is not None and int(seen) > self.log.tree.size:
            raise Refused(409, "checkpoint_ahead", "The ledger has fewer rows.")
        return self.log.receipt(seq, None if seen is None else int(seen))


def json_of(request: httpx.Request) -> Any:
    """Return the body of a request."""
    return msgspec.json.decode(request.content)

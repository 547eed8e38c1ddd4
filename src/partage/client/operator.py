"""The operator's client: create collaborations, invite agents, read boards, close and settle."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import msgspec

from partage.client.address import checked_url
from partage.client.base import OWNER_ONLY
from partage.client.calls import not_a_controller, refusal
from partage.client.errors import Unreachable
from partage.client.pulls import checked_names
from partage.errors import InputError
from partage.files import write_atomically
from partage.ledger.messages import (
    AccountView,
    AgentView,
    BoardView,
    CollaborationView,
    Created,
    InviteView,
    NewToken,
    SettlementView,
)

S = TypeVar("S")

TIMEOUT = httpx.Timeout(10.0, read=120.0)  # a close that measures ceilings may take a while


class Operator:
    """The operator of a controller.

        with Operator("http://127.0.0.1:8000", token) as operator:
            made = operator.create("Bakers", ["Moulin A", "Moulin B"], horizon=2000, invites=12)
            links = [operator.link(made.id, code) for code in made.invites]

    Every method makes one request. It raises `Refused` if the controller refuses, and `Unreachable` if no controller
    answers. Requests are not repeated; `create` and `invite` are safe to repeat with the same `request`.

    Parameters
    ----------
    url
        The controller's address.
    token
        The operator's token, which `partage serve` prints at its first start.
    transport
        An httpx transport, for proxies and tests.
    """

    def __init__(self, url: str, token: str, *, transport: httpx.BaseTransport | None = None) -> None:
        self.url = checked_url(url)
        if token == "":
            raise InputError("The operator's token is empty; give the one that partage serve printed.")
        if not isinstance(token, str):
            raise InputError("The operator's token must be a string, as partage serve printed it.")
        if not token.isascii() or not token.isprintable() or " " in token:
            raise InputError(
                "The operator's token contains an invalid character; it is one word, as partage serve printed it."
            )
        headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(base_url=self.url, headers=headers, timeout=TIMEOUT, transport=transport)

    # collaborations

    def create(
        self,
        name: str,
        arms: Sequence[str],
        horizon: int,
        *,
        rule: str | None = None,
        balance: float | str | None = None,
        parameters: Mapping[str, bool | int | float | str] | None = None,
        settlement: str | None = None,
        fee: float | None = None,
        prepaid: float | None = None,
        underwriting: float | None = None,
        alone: str | None = None,
        coverage: float | None = None,
        value: float | None = None,
        claim_seconds: float | None = None,
        claim_interval: float | None = None,
        signed: bool | None = None,
        currency: str | None = None,
        histories: int | None = None,
        most_arms: int | None = None,
        invites: int | None = None,
        request: str | None = None,
    ) -> Created:
        """Create a collaboration with invites for its first agents. For None, the controller's default is used.

        Parameters
        ----------
        name, arms, horizon
            The display name, the names of the arms, and the pulls per agent.
        rule, balance, parameters
            The rule that decides each pull, its balance if it takes one (at least 1, or "inf"), and its other
            parameters by name, e.g. `{"evidence": "betting"}`.
        settlement, fee
            Who gets and pays what, and the controller's fee as a fraction of all compensations. By default "pool"
            with `prepaid`, otherwise "none".
        prepaid, underwriting
            The money that every member prepays, which is the most that it can lose, and the most money that the
            operator can lose. Partage keeps the books; the money itself moves elsewhere.
        alone, coverage
            The learner that agents could play alone instead ("two-ucb", "kl-ucb", "imed", "thompson" or "best"), and
            the probability with which an equal share covers.
        value
            Money per unit of reward.
        claim_seconds
            How long an explore pull may take.
        claim_interval
            The least seconds between two explore pulls of one member.
        signed
            Whether members sign their requests, so that nobody else can make them in their names. They then need
            Partage's client, or another program with a key: a browser is not enough.
        currency
            What amounts of money are in, e.g. "EUR" or "hours"; pages and tables show it.
        histories
            How many past rewards of each arm that it shares a member may attach before its first pull.
        most_arms
            The largest number of arms, if some may be added later (`add_arm`).
        invites
            How many agents may join.
        request
            An id of this request: repeated with the same id, it returns the same collaboration.
        """
        body = {
            "name": name,
            "arms": checked_names("arms", arms),
            "horizon": horizon,
            "rule": rule,
            "balance": balance,
            "parameters": None if parameters is None else dict(parameters),
            "settlement": settlement,
            "fee": fee,
            "prepaid": prepaid,
            "underwriting": underwriting,
            "alone": alone,
            "coverage": coverage,
            "value": value,
            "claim_seconds": claim_seconds,
            "claim_interval": claim_interval,
            "signed": signed,
            "currency": currency,
            "histories": histories,
            "most_arms": most_arms,
            "invites": invites,
            "request": request,
        }
        return self._call(Created, "POST", "", body)

    def add_arm(self, id: str, name: str) -> CollaborationView:
        """Add an arm to a collaboration that declared room for it. Nobody shares it until they say so."""
        return self._call(CollaborationView, "POST", _path(id, "/arms"), {"name": name})

    def collaborations(self) -> list[CollaborationView]:
        """Return all collaborations, oldest first."""
        return self._call(list[CollaborationView], "GET", "")

    def collaboration(self, id: str) -> CollaborationView:
        """Return a collaboration's configuration and progress."""
        return self._call(CollaborationView, "GET", _path(id))

    def board(self, id: str) -> BoardView:
        """Return a collaboration's board."""
        return self._call(BoardView, "GET", _path(id, "/board"))

    def agents(self, id: str) -> list[AgentView]:
        """Return a collaboration's agents in the order they joined."""
        return self._call(list[AgentView], "GET", _path(id, "/agents"))

    def set_aside(self, id: str, agent: str, reason: str) -> AgentView:
        """Take an agent's broadcasts out of the record, permanently, for a reason that all members read.

        Which arms are eliminated is computed again without them. The agent gets no more claims; what it told before
        is still compensated.
        """
        path = _path(id, f"/agents/{_word('agent', agent)}/set-aside")
        return self._call(AgentView, "POST", path, {"reason": reason})

    def token(self, id: str, agent: str, *, request: str | None = None) -> NewToken:
        """Make a new token for an agent that lost its own, which ends at once. Its key stays.

        With a `request`, an id of this request, it is safe to repeat: it returns the same token.
        """
        return self._call(NewToken, "POST", _path(id, f"/agents/{_word('agent', agent)}/token"), {"request": request})

    def revoke_token(self, id: str, agent: str) -> None:
        """End an agent's token and its browser sessions, at once; `token` makes another."""
        self._send("DELETE", _path(id, f"/agents/{_word('agent', agent)}/token"))

    def remove(self, id: str, agent: str, reason: str) -> AgentView:
        """End a membership, permanently, for a reason that all members read.

        The agent's claims are cancelled. Its broadcasts and its row of the settlement stay.
        """
        return self._call(AgentView, "POST", _path(id, f"/agents/{_word('agent', agent)}/remove"), {"reason": reason})

    # invites

    def invite(self, id: str, count: int = 1, *, hours: float | None = None, request: str | None = None) -> Created:
        """Create more invites, each for one agent and valid for this many hours (a week by default)."""
        body = {"invites": count, "hours": hours, "request": request}
        return self._call(Created, "POST", _path(id, "/invites"), body)

    def invites(self, id: str) -> list[InviteView]:
        """Return the invites that can still be used. The controller does not store their codes."""
        return self._call(list[InviteView], "GET", _path(id, "/invites"))

    def revoke(self, id: str, invite: str) -> None:
        """Revoke an invite by its id, as `invites` lists it."""
        self._send("DELETE", _path(id, f"/invites/{_word('invite', invite)}"))

    def link(self, id: str, invite: str) -> str:
        """Return the link with which an agent joins. The part after # is never sent, so no server logs the invite."""
        return f"{self.url}/join#{id}.{invite}"

    # closing

    def settlement(self, id: str) -> SettlementView:
        """Return who gets and pays what; before the close, as if it closed now."""
        return self._call(SettlementView, "GET", _path(id, "/settlement"))

    def account(self, id: str, agent: str) -> AccountView:
        """Return how the amounts of an agent come about, arm by arm."""
        return self._call(AccountView, "GET", _path(id, f"/agents/{_word('agent', agent)}/account"))

    def close(self, id: str) -> SettlementView:
        """Close a collaboration permanently and return its settlement; closing it again returns the same."""
        return self._call(SettlementView, "POST", _path(id, "/close"))

    def ledger(self, id: str, path: str | os.PathLike[str]) -> int:
        """Write the ledger to a file for `partage verify`, one line per event, and return the number of lines.

        Only the file's owner may read it, because it shows every agent's commit pulls.
        """
        lines = 0

        def counted() -> Iterator[bytes]:
            nonlocal lines
            for part in self.ledger_parts(id):
                lines += part.count(b"\n")
                yield part

        write_atomically(Path(path), counted(), OWNER_ONLY)
        return lines

    def ledger_parts(self, id: str) -> Iterator[bytes]:
        """Yield the ledger in parts, as they arrive."""
        path = f"/v1/collaborations{_path(id, '/ledger')}"
        with self._reached(), self._client.stream("GET", path) as response:
            if response.status_code >= 300:
                raise refusal(response.status_code, response.read())
            yield from response.iter_bytes()

    # the connection

    def disconnect(self) -> None:
        """Close the connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.disconnect()

    def _call(self, kind: type[S], method: str, path: str, body: dict[str, Any] | None = None) -> S:
        content = self._send(method, path, body)
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.DecodeError:
            raise not_a_controller(self.url) from None

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        given = None if body is None else {key: value for key, value in body.items() if value is not None}
        with self._reached():
            response = self._client.request(method, f"/v1/collaborations{path}", json=given)
        if response.status_code >= 300:
            raise refusal(response.status_code, response.content)
        return response.content

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Turn network failures into a sentence."""
        try:
            yield
        except httpx.TimeoutException:
            raise Unreachable(f"The controller at {self.url} took too long to answer; try again.") from None
        except httpx.RequestError:
            raise Unreachable(
                f"No controller answers at {self.url}; check the address, or start one with partage serve."
            ) from None


def _path(id: str, rest: str = "") -> str:
    return f"/{_word('collaboration', id)}{rest}"


def _word(what: str, id: str) -> str:
    """Return an id, after checking that it cannot change the path of a request."""
    if not id.isascii() or not id.isalnum():
        raise InputError(f"The id of the {what} must be one word of letters and digits.")
    return id

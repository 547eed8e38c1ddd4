"""What tests of the API share: a session with a server, and agents that ask and tell over HTTP."""

import glob
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
from tests.support.patience import PATIENCE
from tests.support.server import Server

from partage.ledger.refusals import CODES

TOKEN = "pt_op_the-token-of-all-these-tests"  # not a secret: it opens servers that live for a test
# Tests read a ledger after each step, and try many wrong tokens from one address.
GENEROUS = {"PARTAGE_COSTLY_FACTOR": "1000", "PARTAGE_WRONG_TOKENS_PER_MINUTE": "100000"}
OPERATOR = {"PARTAGE_OPERATOR_TOKEN": TOKEN, **GENEROUS}

# Commits are paid with this settlement, so they are reported by arm and version.
NAMED: dict[str, Any] = {"settlement": "equal-share-expected", "underwriting": 0}

_connections: dict[str, httpx.Client] = {}  # by the server's address


@contextmanager
def serving(database_url: str, **given: Any) -> Iterator[Server]:
    """Start a server whose operator has the token above; at the end, stop it and close all connections to it."""
    with Server(database_url, env=OPERATOR, **given) as server:
        try:
            yield server
        finally:
            hang_up(server.url)


def hang_up(url: str) -> None:
    """Close all connections to a server."""
    if url in _connections:
        _connections.pop(url).close()


def connected(url: str) -> httpx.Client:
    """The connections to a server, which all callers share."""
    if url not in _connections:
        limits = httpx.Limits(max_connections=100)
        _connections.setdefault(url, httpx.Client(base_url=url, timeout=PATIENCE, limits=limits))
    return _connections[url]


class Speaker:
    """A caller with a token, or without one."""

    def __init__(self, url: str, token: str | None, collaboration: str = "") -> None:
        self.url, self.token, self.collaboration = url, token, collaboration
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def call(self, method: str, path: str = "", body: Any = None, **given: Any) -> httpx.Response:
        """Make a call of the API; `path` is within the collaboration, if there is one."""
        if body is not None:
            given["json"] = body
        given["headers"] = self.headers | given.get("headers", {})
        return connected(self.url).request(method, self.path(path), **given)

    def path(self, path: str) -> str:
        """Return the path of a call."""
        return f"/v1/collaborations/{self.collaboration}{path}" if self.collaboration else f"/v1/collaborations{path}"

    def ok(self, method: str, path: str = "", body: Any = None, **given: Any) -> Any:
        """Make a call that must succeed, and return what was answered."""
        answer = self.call(method, path, body, **given)
        assert answer.is_success, (method, path, answer.status_code, answer.text)
        return answer.json() if answer.headers.get("content-type") == "application/json" else None

    def refused(
        self, status: int, method: str, path: str = "", body: Any = None, code: str | None = None, **given: Any
    ) -> dict[str, Any]:
        """Make a call that must be refused with this status (and code); return the refusal."""
        answer = self.call(method, path, body, **given)
        assert answer.status_code == status, (method, path, answer.status_code, answer.text)
        refusal = sentence_of(answer)
        assert code in (None, refusal["code"]), refusal
        return refusal

    def board(self) -> dict[str, Any]:
        """Read the board."""
        board: dict[str, Any] = self.ok("GET", "/board")
        return board

    def ledger(self) -> list[dict[str, Any]]:
        """Read the ledger."""
        answer = self.call("GET", "/ledger")
        assert answer.status_code == 200
        return [json.loads(line) for line in answer.text.splitlines()]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Read the events of this kind in the ledger."""
        return [line["row"] for line in self.ledger() if line.get("row", {}).get("kind") == kind]


class Host(Speaker):
    """The operator, with a new collaboration that agents join."""

    def __init__(self, url: str, token: str = TOKEN, **config: Any) -> None:
        super().__init__(url, token)
        config = {"name": "Trial", "arms": ["a", "b"], "horizon": 100, **config}
        created = self.ok("POST", "", config)
        self.invites: list[str] = created["invites"]
        self.collaboration: str = created["id"]
        self.joined = 0

    def invite(self, **given: Any) -> str:
        """Return the code of an invite that nobody used."""
        if self.invites and not given:
            return self.invites.pop()
        code: str = self.ok("POST", "/invites", given or None)["invites"][0]
        return code

    def join(self, *shares: str, name: str | None = None, url: str | None = None) -> "Member":
        """Let an agent join; by default with a name that no other has."""
        self.joined += 1
        name = f"Agent {self.joined}" if name is None else name
        invited = Speaker(url or self.url, self.invite(), self.collaboration)
        joined = invited.ok("POST", "/agents", {"name": name, "shares": list(shares)})
        return Member(url or self.url, joined["token"], self.collaboration, joined["agent"])


class Member(Speaker):
    """An agent of a collaboration."""

    def __init__(self, url: str, token: str, collaboration: str, agent: str) -> None:
        super().__init__(url, token, collaboration)
        self.agent = agent

    def ask(self, **given: Any) -> Any:
        """Ask what to pull."""
        return self.ok("POST", "/ask", given)

    def tell(self, pull: int, reward: float) -> Any:
        """Report a reward."""
        return self.ok("POST", "/tell", {"pull": pull, "reward": reward})

    def work(self, reward: float = 0.5) -> Any:
        """Ask, and tell at once what is to be told."""
        pull = self.ask()
        if pull["share"]:
            self.tell(pull["pull"], reward)
        return pull


def plain(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without its receipt, which is that of the ledger as it is now."""
    return {name: value for name, value in answer.items() if name != "receipt"}


def sentence_of(answer: httpx.Response) -> dict[str, Any]:
    """Return a refusal: a sentence, a code, and perhaps a field."""
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text)
    refusal: dict[str, Any] = answer.json()
    assert {"error", "code"} <= set(refusal) <= {"error", "code", "field"}, refusal
    assert refusal["code"] in CODES, refusal
    sentence = refusal["error"]
    assert sentence[0].isupper(), sentence
    assert sentence.endswith("."), sentence
    assert "Traceback" not in sentence
    return refusal


def stored(database_url: str) -> bytes:
    """Return everything a database holds: SQLite's files as they are, PostgreSQL's tables value by value."""
    if database_url.startswith("sqlite"):
        files = sorted(glob.glob(database_url.removeprefix("sqlite:///") + "*"))
        return b"".join(Path(file).read_bytes() for file in files)
    parts: list[bytes] = []
    with psycopg.connect(database_url.replace("postgresql+psycopg", "postgresql")) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        for (name,) in names:
            for row in connection.execute(psycopg.sql.SQL("SELECT * FROM {}").format(psycopg.sql.Identifier(name))):
                parts += [bytes(value) if isinstance(value, bytes) else str(value).encode() for value in row]
    assert parts
    return b"\n".join(parts)

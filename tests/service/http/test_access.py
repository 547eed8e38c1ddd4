"""Who may do what: every call with every kind of bearer; secrets stay secret; an invite lets one agent in."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.support.api import NAMED, TOKEN, Host, Speaker, hang_up, sentence_of, serving, stored
from tests.support.server import Server

READING, OPERATING, WORKING, JOINING = "reading", "operating", "working", "joining"

CALLS: list[tuple[str, str, str, Any]] = [
    (OPERATING, "GET", "/agents", None),
    (OPERATING, "GET", "/invites", None),
    (OPERATING, "POST", "/invites", {}),
    (OPERATING, "DELETE", "/invites/i123", None),
    (READING, "GET", "", None),
    (READING, "GET", "/board", None),
    (READING, "GET", "/settlement", None),
    (READING, "GET", "/ledger", None),
    (READING, "GET", "/events", None),
    (READING, "GET", "/checkpoint", None),
    (READING, "GET", "/proof?from=1&to=2", None),
    (READING, "GET", "/cosignatures", None),
    (READING, "GET", "/draw", None),
    (OPERATING, "POST", "/agents/a1/token", {}),
    (OPERATING, "DELETE", "/agents/a1/token", None),
    (OPERATING, "POST", "/agents/a1/remove", {"reason": "It is a test."}),
    (WORKING, "GET", "/agents/me", None),
    (WORKING, "POST", "/ask", {}),
    (WORKING, "POST", "/tell", {"pull": 4, "reward": 0.5}),
    (WORKING, "POST", "/commits", {"request": "r", "runs": [{"version": 0, "arm": "a", "pulls": 1}]}),
    (WORKING, "PUT", "/cosignature", {"checkpoint": "none"}),
    (WORKING, "POST", "/reveal", {"nonce": "0" * 32}),
    (WORKING, "POST", "/agents/me/token", {}),
    (WORKING, "PATCH", "/agents/me", {"shares": ["a"]}),
    (WORKING, "DELETE", "/agents/me", None),
    (JOINING, "POST", "/agents", {"name": "Eve", "shares": ["a"]}),
    (OPERATING, "POST", "/close", None),
]

# Refused or endless, for reasons of their own, or the end of the tokens that this test uses.
NOT_NOW = ("/events", "/commits", "/cosignature", "/invites/i123", "/draw", "/reveal")
NOT_NOW += ("/agents/me/token", "/agents/a1/token", "/agents/a1/remove")
ALLOWED = {"operator": {READING, OPERATING}, "agent": {READING, WORKING}, "invite": {JOINING}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on SQLite."""
    with serving(f"sqlite:///{tmp_path_factory.mktemp('access')}/partage.db") as running:
        yield running


def status(bearer: str, kind: str) -> int:
    """Return the status of a call that this bearer may not make."""
    if bearer in ("none", "garbage"):
        return 401
    if kind == JOINING:
        return 401 if bearer in ("operator", "agent", "agent elsewhere") else 403
    return 401 if "invite" in bearer else 403


def test_every_call_with_every_bearer(server: Server) -> None:
    host, elsewhere = Host(server.url), Host(server.url)
    used = host.invite()
    joined = Speaker(server.url, used, host.collaboration).ok(
        "POST", "/agents", {"name": "Ann", "shares": ["a", "b"]}
    )
    pull = Speaker(server.url, joined["token"], host.collaboration).ok("POST", "/ask", {})["pull"]
    revoked, before = host.invite(), host.ok("GET", "/invites")
    assert len(before) == 1
    assert host.call("DELETE", f"/invites/{before[0]['id']}").status_code == 204
    assert host.ok("GET", "/invites") == []
    bearers = {
        "none": None,
        "garbage": "pt_ag_" + "x" * 43,
        "operator": TOKEN,
        "agent": joined["token"],
        "agent elsewhere": elsewhere.join("a").token,
        "used invite": used,
        "revoked invite": revoked,
        "expired invite": host.invite(hours=1e-6),
        "invite elsewhere": elsewhere.invite(),
        "invite": host.invite(),
    }
    length, boards = len(host.ledger()), (host.board(), elsewhere.board())
    told = []
    for bearer, token in bearers.items():
        speaker = Speaker(server.url, token, host.collaboration)
        for kind, method, path, body in CALLS:
            if kind in ALLOWED.get(bearer, ()):
                continue
            if path == "/tell":
                body = {"pull": pull, "reward": 0.5}
            answer = speaker.call(method, path, body)
            assert answer.status_code == status(bearer, kind), (bearer, method, path, answer.text)
            assert (answer.status_code == 401) == ("www-authenticate" in answer.headers)
            sentence_of(answer)
            told.append(answer.text)
        anywhere = Speaker(server.url, token)
        for method in () if bearer == "operator" else ("GET", "POST"):
            refused = anywhere.call(method, "", {"name": "Eve's", "arms": ["a"], "horizon": 9})
            assert refused.status_code == (403 if bearer.startswith("agent") else 401)
            sentence_of(refused)
            told.append(refused.text)
    # None of this left a trace, and no answer repeats a secret.
    assert len(host.ledger()) == length
    assert (host.board(), elsewhere.board()) == boards
    for token in filter(None, bearers.values()):
        assert not any(token in text for text in told)
    # The calls that are allowed work; the close comes last.
    for kind, method, path, body in CALLS:
        for bearer, token in bearers.items():
            if kind in ALLOWED.get(bearer, ()) and path not in NOT_NOW:
                speaker = Speaker(server.url, token, host.collaboration)
                speaker.ok(method, path, {"pull": pull, "reward": 0.5} if path == "/tell" else body)


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Basic dXNlcjpwYXNz", TOKEN, f"Token {TOKEN}", f"Bearer {TOKEN} x", "Bearer \xff\xfe"],
)
def test_other_headers(server: Server, header: str) -> None:
    answer = Speaker(server.url, None).call("GET", headers={"Authorization": header.encode("latin-1")})
    assert answer.status_code == 401
    assert TOKEN not in answer.text


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"shares": 1}'])
def test_a_missing_token_is_refused_before_the_body_is_read(server: Server, body: bytes) -> None:
    nobody = Speaker(server.url, None, Host(server.url).collaboration)
    for method, path in [(method, path) for _, method, path, sent in CALLS if sent is not None]:
        answer = nobody.call(method, path, content=body)
        assert answer.status_code == 401, (method, path)
        assert answer.headers["www-authenticate"] == "Bearer"
        assert sentence_of(answer)["code"] == "no_token"


def test_a_token_in_the_address_opens_nothing(server: Server) -> None:
    nobody = Speaker(server.url, None)
    for name in ("token", "access_token", "authorization", "bearer"):
        nobody.refused(401, "GET", f"?{name}={TOKEN}")
    assert nobody.call("GET", headers={"Cookie": f"partage_session={TOKEN}"}).status_code == 401


def test_an_agent_reads_nothing_of_others(server: Server) -> None:
    host = Host(server.url, **NAMED)
    ann, bob = host.join("a", "b", name="Ann"), host.join(name="Bob")
    ann.work()
    bob.ok(
        "POST", "/commits", {"request": "bobs", "runs": [{"version": 1, "arm": host.board()["leader"], "pulls": 9}]}
    )
    assert ann.ok("GET", "/agents/me")["name"] == "Ann"
    assert [row["agent"] for row in ann.ok("GET", "/settlement")["rows"]] == ["a1"]
    assert "bobs" not in ann.call("GET", "/ledger").text
    for path in ("/agents/a2", "/agents/a1", "/settlement/a2"):
        assert ann.call("GET", path).status_code in (403, 404, 405)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_invite_lets_one_in_and_no_secret_is_kept(
    kind: str, tmp_path: Any, request: pytest.FixtureRequest
) -> None:
    database = f"sqlite:///{tmp_path}/partage.db" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    with serving(database) as server:
        host = Host(server.url, invites=3)
        secrets = [TOKEN, *host.invites]
        code = host.invite()
        invited = Speaker(server.url, code, host.collaboration)

        def join(number: int) -> Any:
            return invited.call("POST", "/agents", {"name": f"Racer {number}", "shares": ["a", "b"]})

        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(join, range(20)))
        assert sorted(answer.status_code for answer in answers) == [201] + [403] * 19
        assert len(host.ok("GET", "/agents")) == 1
        token = next(answer.json()["token"] for answer in answers if answer.is_success)
        ann = Speaker(server.url, token, host.collaboration)
        ann.ok("POST", "/ask", {})
        bob = host.join("a")
        secrets += [token, bob.token]
        invited.refused(403, "POST", "/agents", {"name": "Late", "shares": []})
        Speaker(server.url, code[:-1], host.collaboration).refused(401, "POST", "/ask", {})
        assert len(host.ok("GET", "/invites")) == 1
        hang_up(server.url)
        kept = stored(database)
        server.stop()
        kept += stored(database)
        assert host.collaboration.encode() in kept
        for secret in filter(None, secrets):
            assert secret.encode() not in kept
            assert secret not in server.output

"""Bad requests get a 4xx with a sentence that does not repeat what was sent, and the server goes on."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.api import TOKEN, Host, Member, Speaker, connected, sentence_of, serving
from tests.support.patience import PATIENCE
from tests.support.server import Server

from partage.ledger.fields import LARGEST_BODY
from partage.rules import live_rules

SENT = "Zq9"  # part of all that is sent and wrong, and of no sentence


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on SQLite; bad requests leave no error in its log."""
    with serving(f"sqlite:///{tmp_path_factory.mktemp('bad')}/partage.db") as running:
        yield running
        assert '"level": "error"' not in running.output
        assert "Traceback" not in running.output
        assert SENT not in running.output


@pytest.fixture(scope="module")
def ann(server: Server) -> Member:
    """An agent with an open claim; nothing that is tried here may change the ledger."""
    host = Host(server.url)
    member = host.join("a", "b")
    member.ask()
    return member


@pytest.fixture(autouse=True)
def _serves_on(server: Server, ann: Member) -> Iterator[None]:
    before = ann.call("GET", "/ledger").content
    yield
    assert ann.call("GET", "/ledger").content == before
    assert connected(server.url).get("/ready").status_code == 200


def send(speaker: Speaker, path: str, content: Any, method: str = "POST", **given: Any) -> Any:
    headers = {"Content-Type": "application/json"} | given.pop("headers", {})
    return speaker.call(method, path, content=content, headers=headers, **given)


# rewards


REWARDS = [
    "NaN",
    "nan",
    "Infinity",
    "-Infinity",
    "1e999",
    "-1e999",
    "1.0000001",
    "-0.0000001",
    '"0.7391"',
    "true",
    "false",
    "null",
    "[0.7391]",
    '{"reward":0.7391}',
    "0.7391.1",
    "0,7391",
    "2",
    "-1",
    "1e16",
    "'0.7391'",
    '"NaN"',
    "0x1",
    "1e",
    "+0.7391",
    ".7391",
]


@pytest.mark.parametrize("reward", [*REWARDS, "", "9" * 10_000])
def test_rewards(ann: Member, reward: str) -> None:
    pull = ann.ask()["pull"]
    answer = send(ann, "/tell", f'{{"pull": {pull}, "reward": {reward}}}')
    refusal = sentence_of(answer)
    assert answer.status_code in (400, 422)
    assert answer.status_code == 400 or refusal["field"] == "reward"
    if len(reward) > 3 and reward not in ("true", "null", "false"):
        assert reward not in answer.text
    assert "7391" not in answer.text


@pytest.mark.parametrize("pull", ["0.5", '"3"', "null", "true", "[]", "{}", "1e999", "9" * 10_000, "-1", "10" * 20])
def test_pulls(ann: Member, pull: str) -> None:
    answer = send(ann, "/tell", f'{{"pull": {pull}, "reward": 0.5}}')
    assert sentence_of(answer)["field"] == "pull"


# configurations

GOOD = {"name": "Trial", "arms": ["a", "b"], "horizon": 100}
LONG = SENT + "x" * 98

BAD = [
    ("name", ""),
    ("name", "   "),
    ("name", LONG),
    ("name", f"{SENT}\n"),
    ("name", f"{SENT}\x00"),
    ("name", f"\x1b[31m{SENT}"),
    ("name", 7),
    ("name", None),
    ("name", [SENT]),
    ("arms", []),
    ("arms", [f"{SENT}{number}" for number in range(1001)]),
    ("arms", [f"{SENT}{number}" for number in range(10_000)]),
    ("arms", [SENT, SENT]),
    ("arms", SENT),
    ("arms", [1, 2]),
    ("arms", [None]),
    ("arms", None),
    ("arms", {SENT: 1}),
    ("arms", ["a", ""]),
    ("arms", ["a", LONG]),
    ("arms", ["a", f"{SENT}\r"]),
    ("horizon", 1),
    ("horizon", 0),
    ("horizon", -5),
    ("horizon", 1.5),
    ("horizon", 1e16),
    ("horizon", 10**400),
    ("horizon", "100"),
    ("horizon", True),
    ("horizon", None),
    ("rule", SENT),
    ("rule", "two-ucb"),
    ("rule", "full-sharing"),
    ("rule", "no-protocol"),
    ("rule", 1),
    ("rule", None),
    ("balance", 0.5),
    ("balance", -1),
    ("balance", "2"),
    ("balance", SENT),
    ("balance", [1]),
    ("settlement", SENT),
    ("settlement", 3),
    ("fee", -0.1),
    ("fee", "0.1"),
    ("alone", SENT),
    ("alone", 3),
    ("coverage", 0.4),
    ("coverage", 1),
    ("coverage", "0.9"),
    ("value", 0),
    ("value", -1),
    ("value", 1e300),
    ("value", "1"),
    ("claim_seconds", 0),
    ("claim_seconds", -1),
    ("claim_seconds", 1e9),
    ("claim_seconds", "60"),
    ("invites", -1),
    ("invites", 1001),
    ("invites", 1.5),
    ("invites", "1"),
    ("invites", 10**400),
    ("request", ""),
    ("request", LONG),
    ("request", f"{SENT}\x00"),
    ("request", 5),
]


@pytest.mark.parametrize(("field", "value"), BAD, ids=[f"{f} {str(v)[:12]!r}" for f, v in BAD])
def test_configurations(server: Server, field: str, value: Any) -> None:
    operator = Speaker(server.url, TOKEN)
    answer = send(operator, "", json.dumps(GOOD | {field: value}))
    if answer.status_code == 413:  # 10,000 arms with their names may already be too large a body
        assert field == "arms"
        return
    assert answer.status_code == 422
    assert sentence_of(answer)["field"].startswith(field)
    assert SENT not in answer.text
    assert GOOD["name"] in {view["name"] for view in operator.ok("GET")}


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"rule": "balanced-glr", "balance": 2}, "balance"),
        ({"rule": "balanced-glr", "settlement": "paper"}, "settlement"),
        ({"rule": "balanced-etc", "balance": "inf", "settlement": "paper"}, "settlement"),
        ({"rule": "balanced-etc", "settlement": "paper", "fee": 0.1}, "fee"),
        ({"settlement": "none", "fee": 0.1}, "fee"),
        ({"settlement": "none", "coverage": 0.9}, "coverage"),
    ],
)
def test_configurations_that_do_not_fit_together(server: Server, config: dict[str, Any], field: str) -> None:
    assert Speaker(server.url, TOKEN).refused(422, "POST", "", GOOD | config)["field"] == field


def test_the_widest_that_is_allowed(server: Server) -> None:
    names = [
        "x",
        "x" * 100,
        "🦜" * 100,
        "<script>alert('Zq')</script>",
        "日本 עברית",
        '"; DROP TABLE events; --',
        "$.a",
    ]
    arms = names + [f"arm {number}" for number in range(1000 - len(names))]
    for rule in live_rules():
        if rule == "network-glr":  # it compares fewer arms
            continue
        host = Host(server.url, name=names[3], arms=arms, horizon=1e15, rule=rule, claim_seconds=7 * 24 * 3600)
        assert (host.ok("GET")["name"], host.ok("GET")["arms"]) == (names[3], arms)
    answer = host.call("GET", "/board")
    assert answer.headers["content-type"] == "application/json"
    assert [arm["name"] for arm in answer.json()["arms"]] == arms
    member = host.join(*names, name=names[2])
    assert member.ok("GET", "/agents/me")["name"] == names[2]
    assert member.ok("GET", "/agents/me")["shares"] == names
    assert member.ask()["arm"] in names


# joining and sharing


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "Eve", "shares": ["a", "Zq9"]}, "shares"),
        ({"name": "Eve", "shares": ["a", "a"]}, "shares"),
        ({"name": "Eve", "shares": [0]}, "shares"),
        ({"name": "Eve", "shares": "a"}, "shares"),
        ({"name": "Eve", "shares": None}, "shares"),
        ({"name": "Eve"}, "shares"),
        ({"shares": ["a"]}, "name"),
        ({"name": "", "shares": ["a"]}, "name"),
        ({"name": "Zq9" * 40, "shares": ["a"]}, "name"),
        ({"name": "Eve\x07", "shares": ["a"]}, "name"),
        ({"name": "Eve", "shares": [], "request": "\n"}, "request"),
    ],
)
def test_joining(server: Server, ann: Member, body: dict[str, Any], field: str) -> None:
    host = Speaker(server.url, TOKEN, ann.collaboration)
    code = host.ok("POST", "/invites", {"request": "for bad requests"})["invites"][0]
    answer = Speaker(server.url, code, ann.collaboration).call("POST", "/agents", body)
    assert (answer.status_code, SENT in answer.text) == (422, False)
    assert sentence_of(answer)["field"].startswith(field)
    if field == "shares":
        answer = ann.call("PATCH", "/agents/me", {"shares": body.get("shares", 1)})
        assert (answer.status_code, SENT in answer.text) == (422, False)
        assert sentence_of(answer)["field"].startswith("shares")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"runs": []}, "request"),
        ({"request": "r"}, "runs"),
        ({"request": "r", "runs": []}, "runs"),
        ({"request": "r", "runs": [], "unnamed": 0}, "runs"),
        ({"request": "r", "unnamed": -1}, "unnamed"),
        ({"request": "r", "unnamed": 1.5}, "unnamed"),
        ({"request": "r", "unnamed": "1"}, "unnamed"),
        ({"request": "r", "unnamed": True}, "unnamed"),
        ({"request": "r", "runs": {}}, "runs"),
        ({"request": "r", "runs": [{"version": 0, "arm": "a", "pulls": 1}] * 1001}, "runs"),
        ({"request": "r", "runs": [1]}, "runs"),
        ({"request": "r", "runs": [{}]}, "runs"),
        ({"request": "r", "runs": [{"version": 0, "arm": "Zq9", "pulls": 1}]}, "runs[0].arm"),
        ({"request": "r", "runs": [{"version": 0, "arm": 0, "pulls": 1}]}, "runs"),
        ({"request": "r", "runs": [{"version": -1, "arm": "a", "pulls": 1}]}, "runs[0].version"),
        ({"request": "r", "runs": [{"version": 0.5, "arm": "a", "pulls": 1}]}, "runs"),
        ({"request": "r", "runs": [{"version": 0, "arm": "a", "pulls": 0}]}, "runs[0].pulls"),
        ({"request": "r", "runs": [{"version": 0, "arm": "a", "pulls": "1"}]}, "runs"),
        ({"request": "r", "runs": [{"version": 0, "arm": "a", "pulls": 1, "reward": 0.7391}]}, "runs"),
    ],
)
def test_commit_pulls(ann: Member, body: dict[str, Any], field: str) -> None:
    answer = ann.call("POST", "/commits", body)
    assert (answer.status_code, SENT in answer.text, "7391" in answer.text) == (422, False, False)
    assert sentence_of(answer)["field"].startswith(field)


def test_counts_beyond_all_bounds(ann: Member) -> None:
    for version, pulls in ((10**400, 1), (0, 10**400), (2**63, 1), (0, 2**63)):
        answer = ann.call(
            "POST", "/commits", {"request": "r", "runs": [{"version": version, "arm": "a", "pulls": pulls}]}
        )
        assert answer.status_code in (409, 422)
        sentence_of(answer)


def test_invites(server: Server, ann: Member) -> None:
    host = Speaker(server.url, TOKEN, ann.collaboration)
    for field, value in (("invites", 0), ("invites", 1001), ("invites", "1"), ("hours", 0), ("hours", -1)):
        assert host.refused(422, "POST", "/invites", {field: value})["field"] == field
    for field, value in (("hours", 1e9), ("hours", "1"), ("request", ""), ("request", 7)):
        assert host.refused(422, "POST", "/invites", {field: value})["field"] == field


# bodies

BODIES: list[bytes] = [
    b"",
    b"null",
    b"[]",
    b"7",
    b'"Zq9"',
    b"{",
    b'{"Zq9": 1}',
    b'{"pull": 3, "reward": 0.5, "Zq9": 1}',
    b'{"pull": 3, "reward": 0.5} Zq9',
    b"{'pull': 3, 'reward': 0.5}",
    b"pull=3&reward=0.7391",
    b"\xff\xfe\x00",
    b'{"pull": 3, "reward": "\xff\xfe"}',
    b'{"\xff": 3}',
    b'{"pull": 3, "reward": "\\ud800"}',
    b"[" * 100_000,
    b'{"pull": ' + b"[" * 100_000,
    b'{"pull": 3, "reward": ' + b'{"a":' * 40_000,
    b'{"Zq9": ' + b"[" * 100_000,
    b"[" * 100_000 + b"]" * 100_000,
    b"<xml>Zq9</xml>",
    b"\x00" * 1000,
    b"\xef\xbb\xbf{}",
]


@pytest.mark.parametrize("content", BODIES, ids=[repr(body[:20]) for body in BODIES])
@pytest.mark.parametrize("path", ["/tell", "/commits"])
def test_bodies(ann: Member, content: bytes, path: str) -> None:
    answer = send(ann, path, content)
    assert answer.status_code in (400, 422)
    sentence_of(answer)
    assert SENT not in answer.text
    assert "7391" not in answer.text


@pytest.mark.parametrize(
    "kind",
    ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain", "application/msgpack", "Zq9", ""],
)
def test_other_content_types(ann: Member, kind: str) -> None:
    """JSON is read as JSON whatever its content type; anything else is refused."""
    assert send(ann, "/ask", b"{}", headers={"Content-Type": kind}).status_code == 200
    for content in (b"pull=3&reward=0.7391", b"\x82\xa4pull\x03\xa6reward\xcb?\xe7"):
        answer = send(ann, "/tell", content, headers={"Content-Type": kind})
        assert answer.status_code in (400, 422)
        assert "7391" not in str(sentence_of(answer))


@pytest.mark.parametrize("path", ["", "/tell", "/agents"])
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("size", [LARGEST_BODY + 1, 10_000_000])
def test_a_large_body(server: Server, ann: Member, path: str, chunked: bool, size: int) -> None:
    whole = b'{"name": "' + b"x" * (size - 12) + b'"}'
    parts = (whole[start : start + 65536] for start in range(0, size, 65536))
    speaker = ann if path else Speaker(server.url, TOKEN)
    answer = send(speaker, path, parts if chunked else whole)
    assert answer.status_code == 413
    refusal = sentence_of(answer)
    assert (refusal["code"], "262,144" in refusal["error"]) == ("too_large", True)


# addresses, methods, and what is no HTTP


ADDRESSES = [
    "/Zq9",
    "/v1",
    "/v1/Zq9",
    "/v2/collaborations",
    "/v1/collaborations/%00",
    "/v1/collaborations/%ff%fe/board",
    "/..%5c..%5cetc",
    "/v1/collaborations/../../../../etc/passwd",
    "/v1/collaborations/..%2f..%2f..%2fetc%2fpasswd",
    "/static/..%2f..%2f..%2f..%2fetc%2fpasswd",
    "/static/%2e%2e/%2e%2e/app.py",
    "/static//etc/passwd",
    "/v1/collaborations/'%20OR%201=1--",
]


@pytest.mark.parametrize("path", [*ADDRESSES, "/v1/collaborations/" + "Zq9" * 2000])
def test_addresses(server: Server, path: str) -> None:
    answer = connected(server.url).get(path, headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 404
    sentence_of(answer)
    assert SENT not in answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "GET", "TRACE"])
def test_methods(ann: Member, method: str) -> None:
    ann.refused(405, method, "/ask", code="method_not_allowed")


@pytest.mark.parametrize(
    "sent",
    [
        b"Zq9\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"POST /v1/collaborations HTTP/1.1\r\nHost: x\r\nContent-Length: Zq9\r\n\r\n",
        b"POST /v1/collaborations HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/collaborations HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZq9\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nZq9\r\n\r\n",
        b"BREW /health HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_no_http(server: Server, sent: bytes) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(sent)
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 4")
    assert SENT.encode() not in answer


def test_a_body_that_never_comes(server: Server, ann: Member) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    head = f"POST {ann.path('/tell')} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ann.token}\r\n"
    for _ in range(20):
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(f'{head}Content-Length: 500\r\n\r\n{{"pull": 3'.encode())
    assert ann.call("GET", "/board").status_code == 200


# anything at all

NAMES = [
    "name",
    "arms",
    "horizon",
    "balance",
    "rule",
    "settlement",
    "fee",
    "alone",
    "coverage",
    "value",
    "claim_seconds",
    "invites",
    "hours",
]
NAMES += ["request", "shares", "explore_only", "pull", "reward", "runs", "version", "arm", "pulls", "unnamed"]

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.sampled_from(["a", "b", "inf", *live_rules()]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def eve(server: Server) -> Member:
    """An agent for random requests."""
    return Host(server.url, horizon=1e9).join("a", "b")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.dictionaries(st.sampled_from(NAMES), values, max_size=6) | values)
def test_any_json_at_every_address(server: Server, eve: Member, body: Any) -> None:
    calls = {
        ("POST", "/tell"): ("pull", "reward"),
        ("POST", "/commits"): ("request", "runs", "unnamed"),
        ("PATCH", "/agents/me"): ("shares",),
        ("POST", "/agents"): ("name", "shares", "request"),
        ("POST", "/ask"): ("request", "explore_only"),
        ("POST", "/invites"): ("invites", "hours", "request"),
        ("POST", ""): tuple(NAMES[:10]),
    }
    for (method, path), known in calls.items():
        fitting = {name: body[name] for name in known if name in body} if isinstance(body, dict) else body
        for sent in (body, fitting):
            speaker = eve
            if path in ("", "/invites"):
                speaker = Speaker(server.url, TOKEN, eve.collaboration if path else "")
            answer = send(speaker, path, json.dumps(sent).encode(), method)
            assert answer.status_code < 500, (path, sent, answer.text)
            if answer.status_code >= 400:
                sentence_of(answer)

"""The server answers as its OpenAPI document says."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from tests.support.api import NAMED, TOKEN, Host, Speaker, connected, serving

from partage.ledger import messages as wire
from partage.ledger.fields import LARGEST_BODY, LIMITS
from partage.ledger.refusals import CODES
from partage.ledger.ties import commitment_to
from partage.rules import live_rules
from partage.settle import SETTLEMENTS

ONE = "/v1/collaborations/{id}"
REQUESTS = (
    "NewCollaboration",
    "NewInvites",
    "NewAgent",
    "Ask",
    "Tell",
    "Commits",
    "CommitRun",
    "Consent",
    "Attach",
    "NewArm",
)
REQUESTS += ("SetAside", "Reveal")
LIMITED = {429, 431}
READING = {401, 403, 404, 500, 501, 503} | LIMITED
WRITING = {400, 401, 403, 409, 413, 422, 500, 501, 503} | LIMITED

CALLS: dict[tuple[str, str], set[int]] = {
    ("post", "/v1/collaborations"): {201} | WRITING,
    ("get", "/v1/collaborations"): {200, 401, 403, 500, 503} | LIMITED,
    ("get", ONE): {200} | READING,
    ("get", f"{ONE}/agents"): {200} | READING,
    ("post", f"{ONE}/agents"): {201} | WRITING,
    ("post", f"{ONE}/agents/{{agent}}/set-aside"): {200, 404} | WRITING,
    ("post", f"{ONE}/agents/{{agent}}/remove"): {200, 404} | WRITING,
    ("post", f"{ONE}/agents/{{agent}}/token"): {200, 404} | WRITING,
    ("delete", f"{ONE}/agents/{{agent}}/token"): {204, 409} | READING,
    ("post", f"{ONE}/agents/me/token"): {200} | WRITING,
    ("get", f"{ONE}/draw"): {200} | READING,
    ("post", f"{ONE}/reveal"): {200} | WRITING,
    ("get", f"{ONE}/invites"): {200} | READING,
    ("post", f"{ONE}/invites"): {201, 404} | WRITING,
    ("delete", f"{ONE}/invites/{{invite_id}}"): {204} | READING,
    ("post", f"{ONE}/close"): {200} | READING,
    ("get", f"{ONE}/board"): {200, 304} | READING,
    ("get", f"{ONE}/events"): {200, 422} | READING,
    ("get", f"{ONE}/settlement"): {200} | READING,
    ("get", f"{ONE}/agents/{{agent}}/account"): {200} | READING,
    ("get", f"{ONE}/ledger"): {200} | READING,
    ("post", f"{ONE}/ask"): {200, 204} | WRITING,
    ("post", f"{ONE}/tell"): {200, 404} | WRITING,
    ("post", f"{ONE}/commits"): {200} | WRITING,
    ("post", f"{ONE}/history"): {200} | WRITING,
    ("post", f"{ONE}/arms"): {200, 404} | WRITING,
    ("get", f"{ONE}/agents/me"): {200, 401, 403, 500, 501, 503} | LIMITED,
    ("patch", f"{ONE}/agents/me"): {200} | WRITING,
    ("get", f"{ONE}/checkpoint"): {200} | READING,
    ("get", f"{ONE}/proof"): {200, 409, 422} | READING,
    ("put", f"{ONE}/cosignature"): {204} | WRITING,
    ("get", f"{ONE}/cosignatures"): {200} | READING,
    ("delete", f"{ONE}/agents/me"): {204, 401, 403, 409, 500, 501, 503} | LIMITED,
    ("get", "/health"): {200, 431},
    ("get", "/ready"): {200, 431, 503},
}

TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on SQLite."""
    with serving(f"sqlite:///{tmp_path_factory.mktemp('schema')}/partage.db") as server:
        yield server.url


@pytest.fixture
def schema(url: str) -> dict[str, Any]:
    """The OpenAPI document."""
    found: dict[str, Any] = connected(url).get("/schema").json()
    return found


def resolved(kind: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in kind:
        found: dict[str, Any] = schema["components"]["schemas"][kind["$ref"].rsplit("/", 1)[1]]
        return found
    return kind


def fits(value: Any, kind: dict[str, Any], schema: dict[str, Any]) -> bool:
    """Whether a value matches a schema, without unnamed fields."""
    kind = resolved(kind, schema)
    if "oneOf" in kind:
        return any(fits(value, one, schema) for one in kind["oneOf"])
    if not kind:  # anything
        return True
    if not isinstance(value, TYPES[kind["type"]]) or (isinstance(value, bool) and kind["type"] != "boolean"):
        return False
    if isinstance(value, list):
        return all(fits(one, kind["items"], schema) for one in value)
    if isinstance(value, dict) and "properties" in kind:
        named = set(kind.get("required", ())) <= set(value) <= set(kind["properties"])
        return named and all(fits(one, kind["properties"][name], schema) for name, one in value.items())
    return True


def assert_described(answer: httpx.Response, path: str, schema: dict[str, Any]) -> None:
    """Check that an answer has a documented status, media type and content."""
    answers = schema["paths"][path][answer.request.method.lower()]["responses"]
    said = answers[str(answer.status_code)]
    if not answer.content:
        assert "content" not in said
        return
    ((media_type, content),) = said["content"].items()
    assert answer.headers["content-type"].split(";")[0] == media_type
    if media_type == "application/json":
        assert fits(answer.json(), content["schema"], schema), answer.text


def test_every_call_says_how_it_may_be_answered(schema: dict[str, Any]) -> None:
    told = {
        (method, path): set(map(int, call["responses"]))
        for path, calls in schema["paths"].items()
        for method, call in calls.items()
    }
    assert told == CALLS


def test_all_errors_look_alike(schema: dict[str, Any]) -> None:
    for calls in schema["paths"].values():
        for call in calls.values():
            for status, answer in call["responses"].items():
                if int(status) >= 400:
                    assert answer["content"] == {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}
                    }
    error = schema["components"]["schemas"]["Error"]
    assert (set(error["properties"]), error["required"]) == ({"error", "code", "field"}, ["code", "error"])


def test_codes_are_the_same_in_the_schema_the_page_and_the_code(schema: dict[str, Any]) -> None:
    assert schema["components"]["schemas"]["Error"]["properties"]["code"]["enum"] == list(CODES)
    page = (Path(__file__).parents[3] / "docs" / "api.md").read_text()
    table = dict(re.findall(r"^\| `(\w+)` \| \d{3} \| (.+) \|$", page, re.MULTILINE))
    assert table == CODES


def test_every_call_of_the_api_tells_of_the_statuses_on_the_page(schema: dict[str, Any]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "api.md").read_text()
    statuses = set(re.findall(r"^\| `\w+` \| (\d{3}) \| .+ \|$", page, re.MULTILINE))
    told = {status for calls in schema["paths"].values() for call in calls.values() for status in call["responses"]}
    assert statuses - told == {"405"}  # for a method that is not in the document


def test_rules_settlements_and_defaults(schema: dict[str, Any]) -> None:
    fields = schema["components"]["schemas"]["NewCollaboration"]["properties"]
    assert (fields["rule"]["enum"], fields["rule"]["default"]) == (list(live_rules()), "shared-imed")
    assert fields["settlement"]["oneOf"][0]["enum"] == list(SETTLEMENTS)


def test_the_limits_of_fields(schema: dict[str, Any]) -> None:
    kinds = schema["components"]["schemas"]
    new = kinds["NewCollaboration"]["properties"]
    assert (new["horizon"]["type"], new["horizon"]["minimum"], new["horizon"]["maximum"]) == ("integer", 2, 10**15)
    assert (new["arms"]["minItems"], new["arms"]["maxItems"], new["arms"]["uniqueItems"]) == (1, 1000, True)
    assert (new["arms"]["items"]["minLength"], new["arms"]["items"]["maxLength"]) == (1, 100)
    reward = kinds["Tell"]["properties"]["reward"]
    assert (reward["type"], reward["minimum"], reward["maximum"]) == ("number", 0, 1)
    assert kinds["Commits"]["properties"]["runs"]["maxItems"] == 1000
    assert kinds["NewInvites"]["properties"]["invites"]["minimum"] == 1
    named = {name for kind in REQUESTS for name in kinds[kind]["properties"]}
    assert {field.rpartition(".")[2].removesuffix("[]") for field in LIMITS} <= named
    for kind in REQUESTS:
        assert kinds[kind]["additionalProperties"] is False


def test_every_limit_is_one_that_the_server_keeps(url: str, schema: dict[str, Any]) -> None:
    """A number beyond the limit that the document states for it is refused, and the limit itself is not."""
    operator, good = Speaker(url, TOKEN), {"name": "x", "arms": ["a"], "horizon": 9, "invites": 0}
    config = {"settlement": "equal-share", "rule": "balanced-etc", "underwriting": 0}
    for name, kind in schema["components"]["schemas"]["NewCollaboration"]["properties"].items():
        for part in kind.get("oneOf", [kind]):
            for limit, beyond in (("minimum", -1), ("maximum", 1), ("exclusiveMinimum", 0), ("exclusiveMaximum", 0)):
                if limit in part:
                    refusal = operator.refused(422, "POST", "", good | config | {name: part[limit] + beyond})
                    assert refusal["field"] == name
                if (
                    limit in ("minimum", "maximum")
                    and limit in part
                    and name not in ("prepaid", "balance", "most_arms")
                ):
                    operator.ok("POST", "", good | config | {name: part[limit]})


def test_who_may_call(schema: dict[str, Any]) -> None:
    assert "security" not in schema
    for path, calls in schema["paths"].items():
        for method, call in calls.items():
            expected: Any = None if path in ("/health", "/ready") else [{"token": []}]
            if (method, path) == ("post", f"{ONE}/agents"):
                expected = [{"invite": []}]
            assert call.get("security") == expected, (method, path)
    assert set(schema["components"]["securitySchemes"]) == {"token", "invite"}


def test_bodies_that_may_be_left_out(url: str, schema: dict[str, Any]) -> None:
    bodies = {
        (method, path): call["requestBody"]["required"]
        for path, calls in schema["paths"].items()
        for method, call in calls.items()
        if "requestBody" in call
    }
    assert {call for call, required in bodies.items() if not required} == {
        ("post", f"{ONE}/ask"),
        ("post", f"{ONE}/invites"),
        ("post", f"{ONE}/agents/me/token"),
        ("post", f"{ONE}/agents/{{agent}}/token"),
    }
    host = Host(url)
    agent = host.join("a")
    agent.ok("POST", "/ask")
    agent.ok("POST", "/agents/me/token")
    host.ok("POST", f"/agents/{agent.agent}/token")
    host.ok("POST", "/invites")
    Speaker(url, TOKEN).refused(400, "POST")


def test_the_board_and_its_tag(schema: dict[str, Any]) -> None:
    call = schema["paths"][f"{ONE}/board"]["get"]
    assert call["responses"]["200"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/BoardView"
    }
    board = schema["components"]["schemas"]["BoardView"]
    assert set(board["properties"]) == set(wire.BoardView.__struct_fields__)
    for status in ("200", "304"):
        assert call["responses"][status]["headers"]["ETag"]["schema"] == {"type": "string"}
    assert {parameter["name"]: parameter["in"] for parameter in call["parameters"]} == {
        "id": "path",
        "If-None-Match": "header",
    }


def test_answers_are_what_the_schema_says(url: str, schema: dict[str, Any]) -> None:
    seen: set[tuple[str, str, int]] = set()

    def see(who: Speaker, method: str, path: str, body: Any = None, **given: Any) -> httpx.Response:
        answer = who.call(method, path, body, **given)
        template = (ONE if who.collaboration else "/v1/collaborations") + path
        if "/invites/" in path:
            template = f"{ONE}/invites/{{invite_id}}"
        elif "?" in path:
            template = template.partition("?")[0]
        elif path.startswith("/agents/a"):
            template = f"{ONE}/agents/{{agent}}/{path.rsplit('/', 1)[-1]}"
        assert_described(answer, template, schema)
        seen.add((method.lower(), template, answer.status_code))
        return answer

    operator, nobody = Speaker(url, TOKEN), Speaker(url, None)
    see(operator, "POST", "", {"name": "x", "arms": ["a"], "horizon": 9})
    see(operator, "POST", "", {"name": "x"})
    see(nobody, "GET", "")
    host = Host(url, horizon=100, **NAMED)
    see(operator, "GET", "")
    see(Speaker(url, TOKEN, "c000000000000"), "GET", "/board")
    invited = Speaker(url, host.invite(), host.collaboration)
    see(invited, "POST", "/agents", content=b"{")
    nonce = bytes(16)
    new = {"name": "Ann", "shares": ["a", "b"], "tie_commitment": commitment_to(nonce)}
    joined = see(invited, "POST", "/agents", new).json()
    see(invited, "POST", "/agents", {"name": "Eve", "shares": []})
    see(Speaker(url, None, host.collaboration), "POST", "/agents", {})
    ann = Speaker(url, joined["token"], host.collaboration)
    see(ann, "GET", "/board")
    see(ann, "POST", "/ask")
    see(ann, "GET", "/draw")
    see(ann, "POST", "/reveal", {"nonce": nonce.hex()})
    pull = see(ann, "POST", "/ask").json()
    see(ann, "POST", "/tell", {"pull": 10**9, "reward": 0.5})
    see(ann, "POST", "/tell", {"pull": pull["pull"], "reward": 0.5})
    see(ann, "POST", "/tell", {"pull": pull["pull"], "reward": 0.6})
    see(ann, "POST", "/tell", content=b" " * (LARGEST_BODY + 1))
    see(ann, "PATCH", "/agents/me", {"shares": []})
    see(ann, "POST", "/ask", {"explore_only": True})
    board = see(ann, "GET", "/board")
    see(ann, "GET", "/board", headers={"If-None-Match": board.headers["etag"]})
    see(ann, "GET", "/board", headers={"If-None-Match": "*"})
    run = {"version": board.json()["version"], "arm": board.json()["leader"], "pulls": 3}
    see(ann, "POST", "/commits", {"request": "r", "runs": [run]})
    see(Host(url, most_arms=3), "POST", "/arms", {"name": "c"})
    see(Host(url, histories=3).join("a"), "POST", "/history", {"arm": "a", "rewards": [1, 0.5]})
    see(ann, "GET", "/agents/me")
    see(ann, "GET", "/settlement")
    see(ann, "GET", "/ledger")
    note = see(ann, "GET", "/checkpoint").text
    see(ann, "GET", "/proof?from=1&to=2")
    see(ann, "GET", "/proof?from=2&to=1")
    see(ann, "PUT", "/cosignature", {"checkpoint": note})
    see(ann, "GET", "/cosignatures")
    see(ann, "GET", "/agents")
    see(host, "GET", "")
    see(host, "GET", "/agents")
    see(host, "POST", "/invites")
    unused = see(host, "GET", "/invites").json()
    see(host, "DELETE", f"/invites/{unused[0]['id']}")
    with connected(url).stream("GET", host.path("/events"), headers=host.headers) as events:
        assert events.headers["content-type"].split(";")[0] == "text/event-stream"
    assert set(schema["paths"][f"{ONE}/events"]["get"]["responses"]["200"]["content"]) == {"text/event-stream"}
    see(host, "POST", "/agents/a1/set-aside", {"reason": "Its scale was broken."})
    see(host, "POST", "/agents/a9/set-aside", {"reason": "It is unknown."})
    token = see(ann, "POST", "/agents/me/token").json()["token"]
    ann = Speaker(url, token, host.collaboration)
    see(ann, "DELETE", "/agents/me")
    bob = host.join("a", name="Bob")
    see(host, "POST", f"/agents/{bob.agent}/token")
    see(host, "DELETE", f"/agents/{bob.agent}/token")
    see(host, "POST", f"/agents/{bob.agent}/remove", {"reason": "It joined by mistake."})
    see(host, "GET", "/agents/a1/account")
    see(host, "POST", "/close")
    see(ann, "POST", "/ask")
    for path in ("/health", "/ready"):
        assert_described(connected(url).get(path), path, schema)
    well = {(method, path, status) for (method, path), known in CALLS.items() for status in known if status < 400}
    left = {
        ("put", f"{ONE}/cosignature", 204),
        ("get", "/health", 200),
        ("get", "/ready", 200),
        ("get", f"{ONE}/events", 200),
    }
    assert well - left <= seen
    assert {status for _, _, status in seen} >= {400, 401, 403, 404, 409, 413, 422}


def test_every_call_has_a_name_a_group_and_a_description(schema: dict[str, Any]) -> None:
    calls = [call for item in schema["paths"].values() for call in item.values()]
    ids = [call["operationId"] for call in calls]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", one) for one in ids)
    groups = {tag["name"] for tag in schema["tags"]}
    assert all(len(call["tags"]) == 1 and call["tags"][0] in groups and call["summary"] for call in calls)
    assert all(one["description"] for call in calls for one in call.get("parameters", ()))


def test_every_object_and_every_field_of_a_request_is_described(schema: dict[str, Any]) -> None:
    for name, kind in schema["components"]["schemas"].items():
        assert kind["description"].endswith("."), name
        if kind.get("additionalProperties") is False:
            for field, part in kind["properties"].items():
                assert "$ref" in part or part.get("description"), (name, field)


def test_examples_are_requests(schema: dict[str, Any]) -> None:
    found = {name: kind["examples"] for name, kind in schema["components"]["schemas"].items() if "examples" in kind}
    assert {"NewCollaboration", "NewAgent", "Tell"} <= set(found)
    for name, (example,) in found.items():
        msgspec.convert(example, getattr(wire, name))
        assert fits(example, schema["components"]["schemas"][name], schema), name


def test_answers_name_the_values_that_a_field_can_have(schema: dict[str, Any]) -> None:
    kinds = schema["components"]["schemas"]
    for name in ("CollaborationView", "BoardView"):
        assert kinds[name]["properties"]["rule"]["enum"] == list(live_rules())
    assert kinds["SettlementView"]["properties"]["settlement"]["enum"] == list(SETTLEMENTS)

"""Every call of the API, over HTTP, on both databases."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.api import NAMED, TOKEN, Host, Member, Speaker, connected, plain, serving
from tests.support.patience import PATIENCE

from partage.client.stream import BoardLines
from partage.ledger.verify import verify
from partage.rules import live_rules


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on a database of this module's own."""
    if request.param == "sqlite":
        with serving(f"sqlite:///{tmp_path_factory.mktemp('api')}/partage.db") as server:
            yield server.url
    else:
        with request.getfixturevalue("postgres").database() as database, serving(database) as server:
            yield server.url


def finished(url: str, **config: Any) -> tuple[Host, list[Member]]:
    """A collaboration whose arm b was eliminated, so that everyone commits to a."""
    host = Host(url, horizon=100, **{**NAMED, **config})
    members = [host.join("a", "b"), host.join("a"), host.join()]
    for _ in range(100):
        pull = members[0].ask(explore_only=True)
        if pull is None:
            return host, members
        members[0].tell(pull["pull"], 1.0 if pull["arm"] == "a" else 0.0)
    raise AssertionError("arm b was never eliminated")


def operator(url: str) -> Speaker:
    return Speaker(url, TOKEN)


# creating and reading


def test_defaults(url: str) -> None:
    host = Host(url, name="A dozen shops", arms=["x", "y", "z"], horizon=1e6)
    assert len(host.invites) == 1
    view = host.ok("GET")
    assert view | {"created": 0, "tie_seed": "", "tie_order": [], "key": ""} == {
        "id": host.collaboration,
        "name": "A dozen shops",
        "arms": ["x", "y", "z"],
        "horizon": 1_000_000,
        "rule": "shared-imed",
        "balance": None,
        "settlement": "none",
        "fee": 0.0,
        "alone": "best",
        "coverage": None,
        "value": 1.0,
        "currency": "",
        "claim_seconds": 60.0,
        "created": 0,
        "tie_seed": "",
        "tie_order": [],
        "agents": 0,
        "version": 0,
        "closed": False,
        "parameters": {"lead": 4.0},
        "format": 7,
        "prepaid": None,
        "underwriting": None,
        "claim_interval": 0.0,
        "named_commits": False,
        "signed": False,
        "key": "",
        "terms": "No money moves.",
        "rule_source": "",
        "histories": 0,
        "most_arms": 3,
    }
    assert len(view["key"]) == 44
    assert (view["tie_seed"], view["tie_order"]) == (None, [])
    host.join("x").ask()  # fixes the order, since no member committed to a nonce
    view = host.ok("GET")
    assert len(view["tie_seed"]) == 32
    assert sorted(view["tie_order"]) == ["x", "y", "z"]
    assert view["tie_order"] == host.board()["tie_order"]


@pytest.mark.parametrize(
    ("config", "settlement"),
    [
        *(({"rule": rule}, "none") for rule in live_rules()),
        *(({"rule": rule, "prepaid": 5}, "pool") for rule in live_rules()),
        ({"rule": "balanced-etc", "balance": "inf", "prepaid": 5}, "pool"),
        ({"rule": "balanced-etc", "balance": 3, "settlement": "paper", "underwriting": 0}, "paper"),
        ({"settlement": "equal-share", "fee": 0.1, "underwriting": 7.5}, "equal-share"),
        ({"settlement": "dues", "prepaid": 5}, "dues"),
        ({"settlement": "none"}, "none"),
    ],
)
def test_settlements(url: str, config: dict[str, Any], settlement: str) -> None:
    assert Host(url, **config).ok("GET")["settlement"] == settlement


def test_lists(url: str) -> None:
    first, second = Host(url, name="first"), Host(url, name="second", invites=3)
    second.join("a", name="Ann")
    second.join(name="Bob")
    listed = {view["id"]: view for view in operator(url).ok("GET")}
    assert list(listed).index(first.collaboration) < list(listed).index(second.collaboration)
    assert (listed[first.collaboration]["agents"], listed[second.collaboration]["agents"]) == (0, 2)
    seen = [(view["agent"], view["name"], view["shares"], view["left"]) for view in second.ok("GET", "/agents")]
    assert seen == [("a1", "Ann", ["a"], False), ("a2", "Bob", [], False)]


def test_a_board_before_anything_happened(url: str) -> None:
    host = Host(url)
    board = host.board()
    assert (board["version"], board["closed"], board["leader"]) == (0, False, None)
    for arm in board["arms"]:
        nothing = {"broadcasts": 0, "mean": None, "radius": None, "active": False, "public": False, "claims": 0}
        assert arm.items() >= nothing.items()


def test_an_unknown_collaboration(url: str) -> None:
    nobody = Speaker(url, TOKEN, "c000000000000")
    for path in ("", "/agents", "/board", "/settlement", "/ledger", "/invites", "/events"):
        nobody.refused(404, "GET", path)
    nobody.refused(404, "POST", "/close")
    nobody.refused(404, "POST", "/invites", {})
    Speaker(url, TOKEN, "%00").refused(404, "GET", "/board")
    Speaker(url, TOKEN, "%00").refused(404, "DELETE", "/invites/i1")
    Host(url).refused(404, "DELETE", "/invites/%00")


# request ids


def test_creating_again(url: str) -> None:
    config = {"name": "Once", "arms": ["a"], "horizon": 10, "invites": 2, "request": f"create {time.time_ns()}"}
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: operator(url).ok("POST", "", config), range(4)))
    assert all(answer == answers[0] for answer in answers)
    assert operator(url).ok("POST", "", config) == answers[0]
    created = Speaker(url, TOKEN, answers[0]["id"])
    assert len(created.ok("GET", "/invites")) == 2
    for code in answers[0]["invites"]:
        Speaker(url, code, answers[0]["id"]).ok("POST", "/agents", {"name": code[:20], "shares": []})
    operator(url).refused(409, "POST", "", config | {"horizon": 11})
    operator(url).refused(409, "POST", "", config | {"invites": 3})  # two of them would not exist


def test_inviting_again(url: str) -> None:
    host = Host(url, invites=0)
    more = {"invites": 3, "request": "more"}
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: host.ok("POST", "/invites", more), range(6)))
    first = answers[0]
    assert all(answer == first for answer in answers)
    assert host.ok("POST", "/invites", more) == first
    assert len(set(first["invites"])) == len(host.ok("GET", "/invites")) == 3
    assert not set(host.ok("POST", "/invites", {"invites": 3})["invites"]) & set(first["invites"])


def test_joining_again(url: str) -> None:
    host = Host(url)
    invite = host.ok("GET", "/invites")[0]["id"]
    invited = Speaker(url, host.invite(), host.collaboration)
    body = {"name": "Ann", "shares": ["a"], "request": "join"}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: invited.ok("POST", "/agents", body), range(8)))
    assert all(answer == answers[0] for answer in answers)
    host.ok("DELETE", f"/invites/{invite}")
    assert invited.ok("POST", "/agents", body) == answers[0]
    invited.refused(403, "POST", "/agents", body | {"request": "another"})
    invited.refused(403, "POST", "/agents", {"name": "Ann", "shares": ["a"]})
    assert len(host.events("join")) == 1


def test_asking_again(url: str) -> None:
    host = Host(url)
    ann, bob = host.join("a", "b"), host.join()
    claim = ann.ask(request="r1")
    assert claim == ann.ask(request="r1") == ann.ask() == ann.ask(request="r2")  # the open claim
    assert (claim["share"], claim["version"]) == (True, 0)
    ann.tell(claim["pull"], 0.5)
    assert plain(ann.ask(request="r1")) == plain(claim)
    commit = bob.ask(request="r1")  # request ids belong to one agent
    assert commit == bob.ask(request="r1")
    assert commit["share"] is False
    assert bob.ask(request="r2")["pull"] != commit["pull"]
    assert [event["request"] for event in host.events("commit")] == ["r1", "r2"]
    assert len(host.events("claim")) == 1
    bob.refused(409, "POST", "/commits", {"request": "r1", "runs": [{"version": 1, "arm": "a", "pulls": 1}]})


# pulls


def test_a_pull_and_its_report(url: str) -> None:
    host = Host(url)
    ann = host.join("a", "b")
    pull = ann.ask()
    board = host.board()
    assert sum(arm["claims"] for arm in board["arms"]) == 1
    told = ann.tell(pull["pull"], 0.25)
    assert told["version"] == 1
    assert told["head"] == host.ledger()[-1]["head"]
    arm = next(arm for arm in host.board()["arms"] if arm["name"] == pull["arm"])
    assert (arm["broadcasts"], arm["mean"], arm["claims"]) == (1, 0.25, 0)
    assert host.board()["leader"] == pull["arm"]
    later = ann.ask()
    ann.tell(later["pull"], 1)
    assert plain(ann.tell(pull["pull"], 0.25)) == plain(told)  # again, the same, head included
    assert ann.refused(409, "POST", "/tell", {"pull": pull["pull"], "reward": 0.26})["field"] == "reward"
    assert [event["reward"] for event in host.events("tell")] == [0.25, 1]


def test_pulls_that_may_not_be_told(url: str) -> None:
    host = Host(url)
    ann, bob = host.join("a", "b"), host.join()
    claim, commit = ann.ask(), bob.ask()
    length = len(host.ledger())
    for pull in (claim["pull"], commit["pull"]):
        for member in (ann, bob):
            if (pull, member) != (claim["pull"], ann):
                member.refused(403, "POST", "/tell", {"pull": pull, "reward": 0.5})
    for pull in (0, -1, 1, 2, 10**6, 2**63, 10**30):
        assert ann.refused(404, "POST", "/tell", {"pull": pull, "reward": 0.5})["field"] == "pull"
    assert len(host.ledger()) == length


def test_explore_only(url: str) -> None:
    host = Host(url)
    ann, bob = host.join("a", "b"), host.join()
    answer = bob.call("POST", "/ask", {"explore_only": True})
    assert (answer.status_code, answer.content) == (204, b"")
    assert ann.ask(explore_only=True)["share"] is True
    assert host.events("commit") == []
    assert host.ok("GET", "/agents")[1]["horizon_left"] == 100


def test_the_horizon(url: str) -> None:
    host = Host(url, horizon=3, **NAMED)
    ann, bob = host.join("a", "b"), host.join()
    for _ in range(3):
        ann.work()
    ann.refused(409, "POST", "/ask", {})
    version = host.board()["version"]
    runs = [{"version": version, "arm": host.board()["leader"], "pulls": 4}]
    assert bob.refused(409, "POST", "/commits", {"request": "r1", "runs": runs})["field"] == "runs"
    bob.ok("POST", "/commits", {"request": "r1", "runs": [runs[0] | {"pulls": 3}]})
    bob.refused(409, "POST", "/ask", {})
    assert [row["horizon_left"] for row in host.ok("GET", "/agents")] == [0, 0]


def test_a_claim_uses_the_horizon_and_a_lapse_does_not_give_it_back(url: str) -> None:
    host = Host(url, horizon=2, claim_seconds=0.05)
    ann = host.join("a", "b")
    first = ann.ask()
    wait_for(lambda: host.events("lapse"))
    second = ann.ask()
    assert second["pull"] != first["pull"]
    wait_for(lambda: len(host.events("lapse")) == 2)
    ann.refused(409, "POST", "/ask", {})
    assert sum(arm["claims"] for arm in host.board()["arms"]) == 0
    told = ann.tell(first["pull"], 0.5)  # late, and still a true sample
    assert (told["version"], ann.tell(first["pull"], 0.5)) == (1, told)
    assert ann.tell(second["pull"], 0.5)["version"] == 2


def wait_for(found: Any) -> None:
    until = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_no_public_arm(url: str) -> None:
    host = Host(url)
    ann = host.join()
    ann.refused(409, "POST", "/ask", {}, code="no_public_arm")
    bob = host.join("a")
    assert ann.ask()["arm"] == "a"
    bob.ok("PATCH", "/agents/me", {"shares": []})
    assert [arm["sharers"] for arm in host.board()["arms"]] == [0, 0]


# consent


def test_a_withdrawn_arm(url: str) -> None:
    host = Host(url)
    ann = host.join("a", "b")
    pull = ann.ask()
    other = "b" if pull["arm"] == "a" else "a"
    view = ann.ok("PATCH", "/agents/me", {"shares": [other]})
    assert (view["shares"], view["horizon_left"]) == ([other], 99)
    length = len(host.ledger())
    ann.refused(403, "POST", "/tell", {"pull": pull["pull"], "reward": 0.5})
    assert len(host.ledger()) == length
    assert host.board()["version"] == 0
    arm = next(arm for arm in host.board()["arms"] if arm["name"] == pull["arm"])
    assert (arm["claims"], arm["sharers"], arm["public"]) == (0, 0, True)
    again = ann.ok("PATCH", "/agents/me", {"shares": [other]})
    assert again == view | {"receipt": None}  # nothing new, nothing written
    assert len(host.ledger()) == length


def test_leaving(url: str) -> None:
    host = Host(url)
    ann, bob = host.join("a", "b"), host.join("a", "b")
    told = ann.work(1.0)
    pull = ann.ask()
    assert ann.call("DELETE", "/agents/me").status_code == 204
    assert ann.call("DELETE", "/agents/me").status_code == 204
    assert len(host.events("leave")) == 1
    ann.refused(403, "POST", "/tell", {"pull": pull["pull"], "reward": 0.5})
    for path, body in (("/ask", {}), ("/commits", {"request": "r", "runs": [run("a", 1)]})):
        ann.refused(409, "POST", path, body)
    ann.refused(409, "PATCH", "/agents/me", {"shares": ["a"]})
    assert ann.ok("GET", "/agents/me")["left"] is True
    assert next(arm for arm in bob.board()["arms"] if arm["name"] == told["arm"])["broadcasts"] == 1
    assert [(row["agent"], row["explore"]) for row in host.ok("POST", "/close")["rows"]] == [("a1", 1), ("a2", 0)]


def run(arm: str, version: int, pulls: int = 1) -> dict[str, Any]:
    return {"version": version, "arm": arm, "pulls": pulls}


# commit pulls that the client decided


def test_reporting_commit_pulls(url: str) -> None:
    host, (_, bob, _) = finished(url)
    version = host.board()["version"]
    body = {"request": "r1", "runs": [run("a", version, 7)]}
    told = bob.ok("POST", "/commits", body)
    assert told == bob.ok("POST", "/commits", body)
    assert plain(told) == {"version": version, "head": host.ledger()[-1]["head"]}
    bob.ok("POST", "/commits", {"request": "r2", "runs": [run("a", version, 2), run("a", version, 1)]})
    assert [(row["explore"], row["commit"]) for row in host.ok("GET", "/agents")] == [(version, 0), (0, 10), (0, 0)]
    assert len(host.events("commit")) == 2
    # What the board cannot have told the agent:
    for runs, field in (
        ([run("b", version)], "runs[0].arm"),
        ([run("a", version + 1)], "runs[0].version"),
        ([run("a", version), run("a", version - 1)], "runs[1].version"),
        ([run("a", version - 1)], "runs[0].version"),  # below an earlier report
        ([run("a", version, 91)], "runs"),
    ):
        assert bob.refused(409, "POST", "/commits", {"request": "bad", "runs": runs})["field"] == field
    assert len(host.events("commit")) == 2


def test_an_agent_commits_while_an_arm_it_shares_is_open_only_if_it_has_a_claim(url: str) -> None:
    host = Host(url, horizon=100, **NAMED)
    other, agent = host.join("a", "b"), host.join("a", "b")
    other.tell(other.ask(explore_only=True)["pull"], 1.0)
    board = host.board()
    body = {"request": "r1", "runs": [run(board["leader"], board["version"])]}
    assert "runs[0]" in agent.refused(409, "POST", "/commits", body)["field"]
    assert agent.ask(explore_only=True) is not None
    agent.ok("POST", "/commits", body)


def test_commit_pulls_on_a_board_long_gone(url: str) -> None:
    host = Host(url, claim_seconds=0.05, **NAMED)
    ann, bob = host.join("a", "b"), host.join()
    first = ann.work()
    bob.ok("POST", "/commits", {"request": "r1", "runs": [run(first["arm"], 1)]})
    ann.work()
    time.sleep(0.1)
    ann.work()
    body = {"request": "r2", "runs": [run(first["arm"], 1)]}
    refusal = bob.refused(409, "POST", "/commits", body, code="version_expired")
    assert refusal["field"] == "runs[0].version"
    assert "0.05 seconds" in refusal["error"]


# closing and settling


def test_closing(url: str) -> None:
    host, (ann, bob, eve) = finished(url, value=1234.5, rule="balanced-etc", settlement="paper")
    for member in (ann, bob, eve):
        assert member.ask()["share"] is False
    late = Host(url, claim_seconds=0.05)
    dan = late.join("a", "b")
    pull = dan.ask()
    wait_for(lambda: late.events("lapse"))
    late.ok("POST", "/close")
    dan.refused(409, "POST", "/tell", {"pull": pull["pull"], "reward": 0.5})

    would = host.ok("GET", "/settlement")
    assert (would["closed"], would["settlement"]) == (False, "paper")
    with ThreadPoolExecutor(4) as pool:
        closed = list(pool.map(lambda _: host.ok("POST", "/close"), range(4)))
    settlement = closed[0]
    assert all(again == settlement for again in closed)
    assert host.ok("POST", "/close") == host.ok("GET", "/settlement") == settlement
    assert len(host.events("close")) == 1
    assert settlement["closed"] is True
    assert [row["agent"] for row in settlement["rows"]] == ["a1", "a2", "a3"]
    for row in settlement["rows"]:
        assert all(isinstance(row[part], int) for part in ("compensation", "charge", "net"))
        assert row["net"] == row["compensation"] - row["charge"]
    assert sum(row["net"] for row in settlement["rows"]) + settlement["profit"] == 0
    assert settlement["rows"][0]["compensation"] > 0
    assert host.board()["closed"] is True

    length = len(host.ledger())
    for member in (ann, bob):
        member.refused(409, "POST", "/ask", {})
        member.refused(409, "POST", "/commits", {"request": "late", "runs": [run("a", 1)]})
        member.refused(409, "PATCH", "/agents/me", {"shares": ["b"]})
        member.refused(409, "DELETE", "/agents/me")
    host.refused(409, "POST", "/invites", {})
    assert len(host.ledger()) == length


def test_an_agent_sees_its_own_row_and_the_totals(url: str) -> None:
    host, members = finished(url, settlement="equal-share", fee=0.1)
    for member in members:
        member.ask()
    for method, path in (("GET", "/settlement"), ("POST", "/close")):
        whole = host.ok(method, path)
        for place, member in enumerate(members):
            own = member.ok("GET", "/settlement")
            assert own["rows"] == [whole["rows"][place]]
            assert own | {"rows": [], "salts": {}} == whole | {"rows": [], "salts": {}}


# the ledger


def test_the_ledger(url: str) -> None:
    host, (ann, bob, eve) = finished(url)
    for member in (ann, bob, eve):
        member.ask()
    host.ok("POST", "/close")
    answer = host.call("GET", "/ledger")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert verify(answer.content.splitlines(keepends=True)).ok
    whole = host.ledger()
    assert [line["row"]["seq"] for line in whole] == list(range(1, len(whole) + 1))
    commits = {line["row"]["seq"]: line["row"]["agent"] for line in whole if line["row"]["kind"] == "commit"}
    assert sorted(commits.values()) == ["a1", "a2", "a3"]
    for member in (ann, bob, eve):
        copy = member.call("GET", "/ledger")
        hidden = [line["seq"] for line in map(json.loads, copy.text.splitlines()) if "row" not in line]
        assert hidden == [seq for seq, agent in commits.items() if agent != member.agent]
        assert [line["head"] for line in member.ledger()] == [line["head"] for line in whole]
        assert verify(copy.content.splitlines(keepends=True)).ok
        assert sum(line.get("row", {}).get("kind") == "commit" for line in member.ledger()) == 1


# changes of the board


def test_the_etag_covers_every_change(url: str) -> None:
    host = Host(url)
    ann = host.join("a", "b")
    pull: dict[str, Any] = {}

    def claim() -> None:
        pull.update(ann.ask())

    changes: list[Any] = [
        lambda: None,
        claim,
        lambda: ann.tell(pull["pull"], 0.5),
        lambda: ann.ok("PATCH", "/agents/me", {"shares": ["a"]}),
        lambda: host.join("a"),
        lambda: ann.call("DELETE", "/agents/me"),
        lambda: host.ok("POST", "/close"),
    ]
    seen: list[str] = []
    for change in changes:
        change()
        answer = ann.call("GET", "/board", headers={"If-None-Match": seen[-1] if seen else '"none"'})
        assert answer.status_code == 200
        seen.append(answer.headers["etag"])
        same = ann.call("GET", "/board", headers={"If-None-Match": seen[-1]})
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", seen[-1])
        packed = ann.call("GET", "/board", headers={"If-None-Match": f'"other", W/{seen[-1]}'})
        assert packed.status_code == 304
    assert host.call("GET", "/board").headers["etag"] == seen[-1]


@contextmanager
def stream(speaker: Speaker) -> Iterator[Iterator[dict[str, Any]]]:
    """The boards of a stream of server-sent events."""
    with connected(speaker.url).stream("GET", speaker.path("/events"), headers=speaker.headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield (json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: "))


def test_events(url: str) -> None:
    host = Host(url)
    ann = host.join("a", "b")
    with stream(host) as boards, stream(ann) as anns:
        assert next(boards) == next(anns) == host.board()
        for _ in range(5):
            ann.work()
        board = host.board()
        for seen in (boards, anns):
            assert next(view for view in seen if view["version"] == 5) == board
        host.ok("POST", "/close")
        for seen in (boards, anns):
            assert next(view for view in seen if view["closed"]) == host.board()


def test_an_ask_may_wait_for_a_claim(url: str) -> None:
    host = Host(url, rule="balanced-etc", balance=1)
    ann, bob, cyd = host.join("a"), host.join("a"), host.join("b")
    ann.ok("POST", "/ask", {"explore_only": True})
    assert bob.call("POST", "/ask?wait=0.01", {"explore_only": True}).status_code == 204
    with ThreadPoolExecutor() as pool:
        asking = pool.submit(bob.ok, "POST", "/ask?wait=1", {"explore_only": True})
        assert cyd.ok("POST", "/ask", {"explore_only": True})["arm"] == "b"  # which opens the other arm
        pull = asking.result() or bob.ok("POST", "/ask?wait=1", {"explore_only": True})
    assert pull["arm"] == "a"
    for wait in ("2", "-1", "nan", "soon"):
        ann.refused(422, "POST", f"/ask?wait={wait}", {"explore_only": True}, code="invalid_field")


def test_events_as_patches(url: str) -> None:
    host = Host(url)
    ann = host.join("a", "b")
    path, kinds, lines, boards = ann.path("/events?patches=true"), [], BoardLines(), []
    with connected(ann.url).stream("GET", path, headers=ann.headers) as answer:
        for line in answer.iter_lines():
            if line.startswith("event: "):
                kinds.append(line[7:])
            if (board := lines.read(line)) is None:
                continue
            boards.append(board)
            if board["closed"]:
                break
            if board["version"] < 5:
                ann.work()
            else:
                host.ok("POST", "/close")
    assert kinds == ["board"] + ["patch"] * (len(boards) - 1)
    assert len(boards) > 2
    assert boards[-1] == host.board()
    ann.refused(422, "GET", "/events?patches=perhaps", code="invalid_field")


# the machinery


def test_health_readiness_and_metrics(url: str) -> None:
    host = Host(url)
    host.refused(404, "GET", "/nothing-here")
    assert connected(url).get("/health").json()["status"] == "ok"
    assert connected(url).get("/ready").json() == {"status": "ready"}
    answer = connected(url).get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert 'partage_requests_total{path="/v1/collaborations",status="201"}' in answer.text
    assert host.collaboration not in answer.text  # neither ids nor tokens become labels
    assert TOKEN not in answer.text


def test_the_log_says_once_what_happened_once(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/partage.db") as server:
        host = Host(server.url, request="create")
        again = operator(server.url).ok(
            "POST", "", {"name": "Trial", "arms": ["a", "b"], "horizon": 100, "request": "create"}
        )
        assert again["id"] == host.collaboration
        invited = Speaker(server.url, host.invite(), host.collaboration)
        ann, same = (
            invited.ok("POST", "/agents", {"name": "Ann", "shares": [], "request": "join"}) for _ in range(2)
        )
        assert ann == same
        for _ in range(2):
            Speaker(server.url, ann["token"], host.collaboration).ok("DELETE", "/agents/me")
        for _ in range(2):
            host.ok("POST", "/close")
    said = [json.loads(line) for line in server.output.splitlines() if line.startswith("{")]
    told = [line["message"] for line in said if line.get("collaboration") == host.collaboration]
    assert told == ["collaboration created", "agent joined", "agent left", "collaboration closed"]


def test_the_schema(url: str) -> None:
    schema = connected(url).get("/schema").json()
    assert schema["openapi"].startswith("3.")
    calls = {(path, method) for path, methods in schema["paths"].items() for method in methods}
    one = "/v1/collaborations/{id}"
    assert calls >= {
        ("/v1/collaborations", "post"),
        ("/v1/collaborations", "get"),
        (one, "get"),
        (f"{one}/agents", "get"),
        (f"{one}/agents", "post"),
        (f"{one}/invites", "post"),
        (f"{one}/ask", "post"),
        (f"{one}/tell", "post"),
        (f"{one}/commits", "post"),
        (f"{one}/board", "get"),
        (f"{one}/events", "get"),
        (f"{one}/agents/me", "patch"),
        (f"{one}/agents/me", "delete"),
        (f"{one}/close", "post"),
        (f"{one}/settlement", "get"),
        (f"{one}/ledger", "get"),
        ("/health", "get"),
        ("/ready", "get"),
    }
    assert set(schema["components"]["schemas"]["Tell"]["properties"]) == {"pull", "reward", "request"}

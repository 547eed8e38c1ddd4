"""Several processes on one PostgreSQL give the same guarantees as one; SQLite refuses a second process."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.api import NAMED, OPERATOR, Host, Member, Speaker, connected, plain, serving
from tests.support.patience import PATIENCE
from tests.support.postgres import Cluster
from tests.support.server import Server

from partage.ledger.ties import commitment_to
from partage.ledger.verify import verify

AGENTS, ROUNDS = 8, 12


def worked(member: Member, urls: list[str], place: int) -> dict[str, Any]:
    """Work for some rounds, each request to another process; return what was acknowledged."""
    tells: dict[int, tuple[float, dict[str, Any]]] = {}
    commits: dict[str, Any] = {}
    asked: dict[str, Any] = {}
    for number in range(ROUNDS):
        request = f"{place} {number}"
        member.url = urls[number % len(urls)]
        pull = asked[request] = member.ask(request=request)
        member.url = urls[(number + place) % len(urls)]
        if pull["share"]:
            tells[pull["pull"]] = (number / ROUNDS, member.tell(pull["pull"], number / ROUNDS))
        member.url = urls[(number + 1) % len(urls)]
        assert plain(member.ask(request=request)) == plain(pull)  # the other process answers the same
        if pull["share"]:
            assert plain(member.tell(pull["pull"], number / ROUNDS)) == plain(tells[pull["pull"]][1])
        elif place % 4 == 3:
            board = member.board()
            run = {"version": board["version"], "arm": board["leader"], "pulls": 2}
            body = {"request": f"{request} more", "runs": [run]}
            commits[body["request"]] = member.ok("POST", "/commits", body)
            member.url = urls[number % len(urls)]
            assert plain(member.ok("POST", "/commits", body)) == plain(commits[body["request"]])
    return {"agent": member.agent, "tells": tells, "commits": commits, "asked": asked}


def play(urls: list[str]) -> int:
    """Let agents join and work on all processes at once, and check the result; return the number of reports."""
    host = Host(urls[0], horizon=1e6, arms=["a", "b", "c"], invites=AGENTS, **NAMED)
    codes = list(host.invites)

    def whole_life(place: int) -> dict[str, Any]:
        url = urls[place % len(urls)]
        shares = [] if place % 4 == 3 else ["a", "b", "c"][: 1 + place % 3]
        body = {"name": f"Agent {place}", "shares": shares, "request": "join"}
        joined = Speaker(url, codes[place], host.collaboration).ok("POST", "/agents", body)
        other = urls[(place + 1) % len(urls)]
        again = Speaker(other, codes[place], host.collaboration).ok("POST", "/agents", body)
        assert plain(again) == plain(joined)
        member = Member(url, joined["token"], host.collaboration, joined["agent"])
        until = time.monotonic() + PATIENCE
        while member.board()["version"] == 0 and not shares:  # nobody has told anything yet
            assert time.monotonic() < until
            time.sleep(0.02)
        return worked(member, urls, place)

    with ThreadPoolExecutor(AGENTS) as pool:
        lives = list(pool.map(whole_life, range(AGENTS)))

    assert sorted(life["agent"] for life in lives) == sorted(f"a{number + 1}" for number in range(AGENTS))
    copies = []
    for url in urls:
        host.url = url
        copies.append((host.board(), host.ledger(), host.ok("GET", "/agents"), host.ok("GET")))
        assert verify(host.call("GET", "/ledger").content.splitlines(keepends=True)).ok
    assert all(copy == copies[0] for copy in copies)
    ledger = [line["row"] for line in copies[0][1]]
    heads = {line["head"] for line in copies[0][1]}
    assert [row["seq"] for row in ledger] == list(range(1, len(ledger) + 1))
    told = Counter((row["agent"], row["pull"], row["reward"]) for row in ledger if row["kind"] == "tell")
    acknowledged = [(life["agent"], pull, reward) for life in lives for pull, (reward, _) in life["tells"].items()]
    assert told == Counter(acknowledged)
    assert copies[0][0]["version"] == len(acknowledged) > AGENTS
    asked = Counter(row["request"] for row in ledger if row["kind"] in ("claim", "commit"))
    expected = [request for life in lives for request in (*life["asked"], *life["commits"])]
    assert asked == Counter(expected)
    for life in lives:
        answers = [answer for _, answer in life["tells"].values()] + list(life["commits"].values())
        assert {answer["head"] for answer in answers} <= heads
    # One closes, and everywhere it is closed.
    host.url = urls[0]
    settlement = host.ok("POST", "/close")
    for url in urls:
        host.url = url
        assert host.ok("POST", "/close") == host.ok("GET", "/settlement") == settlement
        host.refused(409, "POST", "/invites", {})
        assert next(view for view in Speaker(url, host.token).ok("GET") if view["id"] == host.collaboration)["closed"]
    assert len(host.events("close")) == 1
    return len(acknowledged)


def test_two_servers_on_one_database(postgres_url: str) -> None:
    with serving(postgres_url) as first, serving(postgres_url) as second:
        play([first.url, second.url])
        heard_elsewhere(first.url, second.url)
        one_invite_one_agent(first.url, second.url)
        one_order(first.url, second.url)
        ended_everywhere(first.url, second.url)


def one_order(first: str, second: str) -> None:
    """The tie order is drawn once, whichever process a member asks."""
    host = Host(first)
    nonces = [bytes([number]) * 16 for number in (1, 2)]
    members = []
    for number, nonce in enumerate(nonces):
        body = {"name": f"Agent {number}", "shares": ["a", "b"], "tie_commitment": commitment_to(nonce)}
        joined = Speaker(second, host.invite(), host.collaboration).ok("POST", "/agents", body)
        members.append(Member((first, second)[number], joined["token"], host.collaboration, joined["agent"]))
    one, two = members
    one.refused(409, "POST", "/ask", {}, code="order_pending")
    assert two.ok("GET", "/draw")["waiting"] == [one.agent, two.agent]
    two.ok("POST", "/reveal", {"nonce": nonces[1].hex()})
    one.ok("POST", "/reveal", {"nonce": nonces[0].hex()})
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(Member.ask, members))
    assert len(host.events("draw")) == len(host.events("order")) == 1
    assert host.events("order")[0]["skipped"] == []
    assert verify(host.call("GET", "/ledger").content.splitlines(keepends=True)).ok


def ended_everywhere(first: str, second: str) -> None:
    """A token that one process ended is refused by the other at once, though it served it before."""
    host = Host(first)
    member = host.join("a", "b", url=second)
    member.work()
    made = Member(first, member.token, host.collaboration, member.agent).ok("POST", "/agents/me/token", {})
    for method, path, body in (("GET", "/board", None), ("POST", "/ask", {}), ("GET", "/ledger", None)):
        member.refused(401, method, path, body, code="token_ended")
    new = Member(second, made["token"], host.collaboration, member.agent)
    new.work()
    host.ok("DELETE", f"/agents/{member.agent}/token")
    for method, path, body in (("POST", "/ask", {}), ("GET", "", None)):
        new.refused(401, method, path, body, code="token_ended")


def heard_elsewhere(first: str, second: str) -> None:
    """A stream of one process sends what another process wrote."""
    host = Host(first)
    ann = host.join("a", "b")
    seen: list[dict[str, Any]] = []
    woken = threading.Event()

    def listen() -> None:
        path = host.path("/events")
        with connected(second).stream("GET", path, headers=host.headers) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    seen.append(json.loads(line[6:]))
                    woken.set()
                    if seen[-1]["closed"]:
                        return

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    assert woken.wait(PATIENCE)
    ann.work(0.25)
    until = time.monotonic() + PATIENCE
    while seen[-1]["version"] != 1 and time.monotonic() < until:
        time.sleep(0.02)
    assert seen[-1]["version"] == 1
    host.ok("POST", "/close")
    listener.join(PATIENCE)
    assert seen[-1]["closed"]
    assert seen[-1] == host.board()


def one_invite_one_agent(first: str, second: str) -> None:
    """An invite used on both processes at the same moment lets one agent in."""
    host = Host(first)
    code = host.invite()

    def join(place: int) -> int:
        invited = Speaker((first, second)[place % 2], code, host.collaboration)
        return invited.call("POST", "/agents", {"name": f"Agent {place}", "shares": []}).status_code

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(join, range(20)))
    assert sorted(answers) == [201] + [403] * 19


def test_two_workers(postgres_url: str) -> None:
    with serving(postgres_url, workers=2) as server:
        told = play([server.url])
        assert server.output.count('"message": "started"') == 2
        # They count together, whichever is asked.
        counted = f'partage_requests_total{{path="/v1/collaborations/{{id}}/tell",status="200"}} {2 * told:.1f}'
        for _ in range(5):
            answer = httpx.get(f"{server.url}/metrics", timeout=PATIENCE)  # a new connection each time
            assert counted in answer.text.splitlines()


def test_a_database_that_goes_away_and_comes_back(postgres: Cluster, postgres_url: str) -> None:
    with serving(postgres_url) as server:
        host = Host(server.url, horizon=1e6, claim_seconds=600)
        members = [host.join("a", "b") for _ in range(3)]
        told: dict[int, tuple[Member, float, Any]] = {}
        failures: Counter[int] = Counter()
        over = threading.Event()

        def sent(member: Member, path: str, body: dict[str, Any]) -> Any:
            """Send the same request until it succeeds."""
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until:
                answer = member.call("POST", path, body)
                if answer.is_success:
                    return answer.json()
                assert answer.status_code == 503, answer.text
                assert answer.json()["code"] in ("database_unavailable", "busy")
                failures[answer.status_code] += 1
                time.sleep(0.02)
            raise AssertionError("the database never came back")

        def work(place: int) -> None:
            member, number = members[place], 0
            while not over.is_set():
                number += 1
                pull = sent(member, "/ask", {"request": f"{place} {number}"})
                if not pull["share"]:
                    continue
                reward = 0.5 + number / 1e6  # about the same, so no arm is eliminated and exploration goes on
                told[pull["pull"]] = (member, reward, sent(member, "/tell", {"pull": pull["pull"], "reward": reward}))

        def wait_for(found: Callable[[], bool]) -> None:
            until = time.monotonic() + PATIENCE
            while not found():
                for life in lives:
                    if life.done():
                        life.result()  # its error says more than the lack of progress
                assert time.monotonic() < until, (len(told), failures)
                time.sleep(0.01)

        def progress(more: int) -> None:
            goal = len(told) + more
            wait_for(lambda: len(told) >= goal)

        def failure() -> None:
            before = failures[503]
            wait_for(lambda: failures[503] > before)

        with ThreadPoolExecutor(len(members)) as pool:
            lives = [pool.submit(work, place) for place in range(len(members))]
            try:
                for _ in range(2):
                    progress(15)
                    postgres.stop("immediate")
                    try:
                        wait_for(lambda: connected(server.url).get("/ready").status_code == 503)
                        assert connected(server.url).get("/health").status_code == 200
                        failure()
                    finally:
                        postgres.start()
                progress(15)
            finally:
                over.set()
            for life in lives:
                life.result(PATIENCE)
        wait_for(lambda: connected(server.url).get("/ready").status_code == 200)  # it looks every few seconds
        assert verify(host.call("GET", "/ledger").content.splitlines(keepends=True)).ok
        ledger = {line["row"]["pull"]: line for line in host.ledger() if line["row"]["kind"] == "tell"}
        assert len(ledger) == len(host.events("tell")) == len(told) == host.board()["version"]
        for pull, (member, reward, answer) in told.items():
            assert (ledger[pull]["row"]["agent"], ledger[pull]["row"]["reward"]) == (member.agent, reward)
            assert (ledger[pull]["row"]["version"], ledger[pull]["head"]) == (answer["version"], answer["head"])


@pytest.mark.extra
def test_a_server_warns_of_a_database_that_is_not_durable(postgres: Cluster, postgres_url: str) -> None:
    warning = "a power cut may undo what was acknowledged"
    with serving(postgres_url) as server:
        assert warning not in server.output
    with postgres.set(fsync="off", synchronous_commit="off"), serving(postgres_url) as server:
        (line,) = (json.loads(line) for line in server.output.splitlines() if warning in line)
    assert (line["level"], line["settings"]) == ("warning", "fsync = off, synchronous_commit = off")


def test_sqlite_serves_one_process(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/partage.db"
    with pytest.raises(RuntimeError) as error:
        Server(database, workers=2, env=OPERATOR)
    assert "SQLite serves one process, not 2 workers" in str(error.value)
    assert "Traceback" not in str(error.value)
    with serving(database) as first:
        with pytest.raises(RuntimeError) as error:
            Server(database, env=OPERATOR)
        assert "Another process has the SQLite file partage.db open" in str(error.value)
        assert "Traceback" not in str(error.value)
        assert Host(first.url).board()["version"] == 0

"""Tokens that end: at once, for every call, and answers that carry a token can be repeated."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.support.api import Host, Member, Speaker, serving
from tests.support.patience import PATIENCE
from tests.support.server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on SQLite."""
    with serving(f"sqlite:///{tmp_path_factory.mktemp('tokens')}/partage.db") as running:
        yield running


@pytest.fixture
def host(server: Server) -> Host:
    return Host(server.url, invites=2)


def rotated(member: Member, **body: Any) -> Member:
    answer = member.ok("POST", "/agents/me/token", body)
    assert answer["agent"] == member.agent
    assert answer["receipt"]["row"]["kind"] == "rotate"
    return Member(member.url, answer["token"], member.collaboration, member.agent)


def ended(member: Member) -> None:
    """Check that a token does nothing any more."""
    for method, path, body in (
        ("GET", "", None),
        ("GET", "/board", None),
        ("GET", "/events", None),
        ("GET", "/ledger", None),
        ("GET", "/settlement", None),
        ("GET", "/agents/me", None),
        ("POST", "/ask", {}),
        ("POST", "/tell", {"pull": 3, "reward": 1}),
        ("POST", "/commits", {"request": "r", "unnamed": 1}),
        ("PATCH", "/agents/me", {"shares": []}),
        ("POST", "/agents/me/token", {}),
        ("DELETE", "/agents/me", None),
    ):
        member.refused(401, method, path, body, code="token_ended")


def test_a_new_token_ends_the_old_one(host: Host) -> None:
    member = host.join("a", "b")
    pull = member.ask()
    new = rotated(member)
    ended(member)
    assert new.ask()["pull"] == pull["pull"]
    new.tell(pull["pull"], 0.5)
    assert new.token != member.token


def test_a_lost_answer_can_be_asked_for_again(host: Host) -> None:
    member = host.join("a", "b")
    new = rotated(member, request="one")
    assert rotated(member, request="one").token == new.token
    member.refused(401, "POST", "/agents/me/token", {"request": "two"}, code="token_ended")
    newer = rotated(new, request="one")
    assert newer.token != new.token
    member.refused(401, "POST", "/agents/me/token", {"request": "one"}, code="token_ended")
    assert len(host.events("rotate")) == 2


def test_the_operator_makes_tokens_and_ends_them(host: Host) -> None:
    member = host.join("a", "b")
    first = host.ok("POST", f"/agents/{member.agent}/token", {"request": "lost"})
    assert host.ok("POST", f"/agents/{member.agent}/token", {"request": "lost"})["token"] == first["token"]
    ended(member)
    new = Member(member.url, first["token"], member.collaboration, member.agent)
    new.ask()
    host.ok("DELETE", f"/agents/{member.agent}/token")
    host.ok("DELETE", f"/agents/{member.agent}/token")
    ended(new)
    assert [entry["revoked"] for entry in host.ok("GET", "/agents")] == [True]
    second = host.ok("POST", f"/agents/{member.agent}/token")
    Member(member.url, second["token"], member.collaboration, member.agent).ask()
    for method, path in (("POST", "/agents/a9/token"), ("DELETE", "/agents/a9/token")):
        host.refused(404, method, path, code="no_such_agent")


def test_only_the_operator_removes_and_renews(host: Host) -> None:
    member, other = host.join("a", "b", name="One"), host.join("a", name="Two")
    member.refused(403, "POST", f"/agents/{other.agent}/token", code="not_permitted")
    member.refused(403, "DELETE", f"/agents/{other.agent}/token", code="not_permitted")
    member.refused(403, "POST", f"/agents/{other.agent}/remove", {"reason": "Why not."}, code="not_permitted")
    Speaker(host.url, None, host.collaboration).refused(401, "POST", f"/agents/{other.agent}/token")


def test_a_removed_member_reads_and_does_nothing_else(host: Host) -> None:
    member, other = host.join("a", "b", name="One"), host.join("a", "b", name="Two")
    pull = member.ask()
    host.refused(422, "POST", f"/agents/{member.agent}/remove", {"reason": " "})
    view = host.ok("POST", f"/agents/{member.agent}/remove", {"reason": "It made results up."})
    assert (view["left"], view["removed"]) == (True, "It made results up.")
    member.refused(409, "POST", "/tell", {"pull": pull["pull"], "reward": 1}, code="removed")
    member.refused(409, "POST", "/ask", {}, code="removed")
    member.refused(409, "PATCH", "/agents/me", {"shares": ["a"]}, code="removed")
    assert member.board()["removed"] == [{"agent": member.agent, "name": "One", "reason": "It made results up."}]
    assert member.ledger()
    other.work()
    host.refused(409, "POST", f"/agents/{member.agent}/remove", {"reason": "Again."}, code="removed")


def test_a_browsers_session_ends_with_its_token(host: Host) -> None:
    member = host.join("a", "b")
    with httpx.Client(base_url=host.url, timeout=PATIENCE) as browser:

        def log_in(token: str | None) -> int:
            found = re.search(r'name="login" value="(\w{64})"', browser.get("/join").text) or re.search(
                r'data-login="(\w{64})"', browser.get("/join").text
            )
            assert found
            return browser.post("/login", data={"token": token or "", "login": found[1]}).status_code

        assert log_in(member.token) == 303
        assert browser.get("/me").status_code == 200
        new = rotated(member)
        assert browser.get("/me").status_code != 200
        assert browser.get(f"/v1/collaborations/{host.collaboration}/board").status_code == 401
        assert log_in(member.token) != 303, "an ended token opens no session"
        assert log_in(new.token) == 303
        assert browser.get("/me").status_code == 200


def test_the_pages_of_a_signed_collaboration_say_that_it_needs_a_program(server: Server) -> None:
    host = Host(server.url, signed=True)
    invited = Speaker(server.url, host.invite(), host.collaboration)
    look = httpx.post(
        f"{server.url}/join", headers=invited.headers, json={"collaboration": host.collaboration}, timeout=PATIENCE
    )
    assert look.json()["signed"] is True
    assert 'id="join-signed"' in httpx.get(f"{server.url}/join", timeout=PATIENCE).text
    invited.refused(403, "POST", "/agents", {"name": "Ann", "shares": []}, code="signature_required")

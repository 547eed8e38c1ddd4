"""Every answer to a member has a receipt: its own row, in a signed checkpoint that continues the last one."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from tests.support.api import NAMED, Host, Member, Speaker, serving

from partage.ledger.checkpoints import Checkpoint
from partage.ledger.events import Claim, Commit, Consent, Join, Tell
from partage.ledger.receipts import HEADER, Checked, Receipt, check_receipt


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on a database of this module's own."""
    if request.param == "sqlite":
        with serving(f"sqlite:///{tmp_path_factory.mktemp('receipts')}/partage.db") as server:
            yield server.url
    else:
        with request.getfixturevalue("postgres").database() as database, serving(database) as server:
            yield server.url


class Witness:
    """A member that checks every receipt against the last checkpoint it has."""

    def __init__(self, host: Host, member: Member) -> None:
        self.key = host.ok("GET")["key"]
        self.member = member
        self.seen: Checkpoint | None = None

    def do(self, method: str, path: str, body: Any) -> tuple[dict[str, Any], Checked]:
        """Make a request, and check the receipt of its answer."""
        headers = {} if self.seen is None else {HEADER: str(self.seen.size)}
        answer = self.member.ok(method, path, body, headers=headers)
        return answer, self.check(answer)

    def check(self, answer: dict[str, Any]) -> Checked:
        """Check the receipt of an answer, and keep its checkpoint."""
        receipt = msgspec.json.decode(msgspec.json.encode(answer["receipt"]), type=Receipt)
        checked = check_receipt(receipt, self.member.collaboration, self.key, self.seen)
        self.seen = checked.checkpoint
        return checked


def joined(host: Host, *shares: str) -> Witness:
    """Let a member join, and check the receipt of the join."""
    invited = Speaker(host.url, host.invite(), host.collaboration)
    name = f"Member {len(host.ok('GET', '/agents')) + 1}"
    body = {"name": name, "shares": list(shares), "request": "join"}
    answers = [invited.ok("POST", "/agents", body) for _ in range(2)]  # the second time repeated
    member = Member(host.url, answers[0]["token"], host.collaboration, answers[0]["agent"])
    witness = Witness(host, member)
    for answer in answers:
        event = witness.check(answer).event
        assert isinstance(event, Join)
        assert (event.agent, event.name) == (member.agent, body["name"])
        witness.seen = None
    witness.check(answers[1])
    return witness


def test_every_change_has_one(url: str) -> None:
    host = Host(url, horizon=1000, invites=2, **NAMED)
    ann, bob = joined(host, "a", "b"), joined(host)
    pull, checked = ann.do("POST", "/ask", {"request": "r1"})
    assert isinstance(checked.event, Claim)
    assert (checked.event.seq, checked.event.agent, checked.event.request) == (pull["pull"], "a1", "r1")
    again, checked = ann.do("POST", "/ask", {})  # the open claim, handed out again
    assert (again["pull"], checked.event.seq) == (pull["pull"], pull["pull"])

    for _ in range(2):  # the second time repeated, from the ledger
        told, checked = ann.do("POST", "/tell", {"pull": pull["pull"], "reward": 0.75})
        assert isinstance(checked.event, Tell)
        assert (checked.event.pull, checked.event.reward, checked.event.version) == (pull["pull"], 0.75, 1)
        assert told["version"] == 1
    _, checked = ann.do("POST", "/ask", {"request": "r1"})
    assert checked.event.seq == pull["pull"]

    commit, checked = bob.do("POST", "/ask", {"request": "r1"})
    assert isinstance(checked.event, Commit)
    assert (checked.event.seq, checked.event.asked) == (commit["pull"], True)
    runs = [{"version": 1, "arm": pull["arm"], "pulls": 3}]
    for _ in range(2):
        told, checked = bob.do("POST", "/commits", {"request": "r2", "runs": runs})
        assert isinstance(checked.event, Commit)
        assert (checked.event.agent, checked.event.request) == ("a2", "r2")
        row = next(line for line in host.ledger() if line["row"]["seq"] == checked.event.seq)
        assert row["head"] == told["head"]

    for _ in range(2):
        _, checked = ann.do("PATCH", "/agents/me", {"shares": ["a"], "request": "r3"})
        assert isinstance(checked.event, Consent)
        assert (checked.event.agent, checked.event.shares) == ("a1", (0,))
    assert ann.member.ok("PATCH", "/agents/me", {"shares": ["a"]})["receipt"] is None  # nothing was written
    assert host.ok("GET", "/agents")[0]["receipt"] is None


def test_they_continue_over_many_rows(url: str) -> None:
    """More rows than the tree keeps a block for, with two members whose checkpoints lag in turn."""
    host = Host(url, horizon=10**6, invites=2)
    ann, bob = joined(host, "a", "b"), joined(host, "a", "b")
    first = ann.do("POST", "/ask", {})[0]
    ann.do("POST", "/tell", {"pull": first["pull"], "reward": 1.0})
    for step in range(300):
        bob.member.ok("POST", "/commits", {"request": f"r{step}", "unnamed": 1})
        if step % 37 == 0:
            ann.do("POST", "/tell", {"pull": first["pull"], "reward": 1.0})
    bob.do("POST", "/commits", {"request": "last", "unnamed": 1})
    assert bob.seen is not None
    assert bob.seen.size > 300


@pytest.mark.parametrize("size", ["", "x", "-1", "1.5", "٣", "1" * 40, "0x1"])
def test_a_size_that_is_none(url: str, size: str) -> None:
    host = Host(url)
    ann = host.join("a", "b")
    length = len(host.ledger())
    headers = {HEADER.encode(): size.encode()}
    refusal = ann.refused(422, "POST", "/ask", {}, headers=headers)
    assert refusal["field"] == HEADER
    assert len(host.ledger()) == length


def test_a_checkpoint_of_more_rows_than_there_are(url: str) -> None:
    host = Host(url)
    ann = host.join("a", "b")
    length = len(host.ledger())
    for method, path, body in (
        ("POST", "/ask", {}),
        ("POST", "/tell", {"pull": 1, "reward": 1}),
        ("POST", "/commits", {"request": "r", "unnamed": 1}),
        ("PATCH", "/agents/me", {"shares": []}),
    ):
        headers = {HEADER: str(length + 1)}
        ann.refused(409, method, path, body, code="checkpoint_ahead", headers=headers)
    assert len(host.ledger()) == length  # refused before anything is written
    assert ann.ok("POST", "/ask", {}, headers={HEADER: str(length)})["receipt"]["consistency"]

"""Checkpoints, proofs, and the relay of cosigned checkpoints."""

import asyncio
import base64
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.api import NAMED, Host, Member, Speaker, serving
from tests.support.faulty_store import Remote

from partage.ledger.chain import row_hash
from partage.ledger.checkpoints import (
    LONGEST,
    LONGEST_COSIGNED,
    Checkpoint,
    cosigned,
    origin_of,
    read_checkpoint,
    read_cosignature,
    signed_checkpoint,
)
from partage.ledger.keys import Key, encoded
from partage.ledger.merkle import Tree, leaf_hash, proves_consistency, proves_inclusion
from partage.ledger.messages import NewAgent, NewCollaboration
from partage.ledger.refusals import Refused
from partage.service.runtime.controller import Controller
from partage.service.store import Created, Store, open_store


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on a database of this module's own."""
    if request.param == "sqlite":
        with serving(f"sqlite:///{tmp_path_factory.mktemp('transparency')}/partage.db") as server:
            yield server.url
    else:
        with request.getfixturevalue("postgres").database() as database, serving(database) as server:
            yield server.url


def hashes(proof: list[str]) -> list[bytes]:
    return [base64.b64decode(step) for step in proof]


def checkpoint_of(member: Member | Host) -> Checkpoint:
    """Read the checkpoint, and check its signature."""
    note = member.call("GET", "/checkpoint")
    assert note.headers["content-type"] == "text/plain; charset=utf-8"
    found = read_checkpoint(note.text, member.collaboration, member.ok("GET")["key"])
    assert found is not None
    return found


def tree_of(host: Host) -> tuple[Tree, list[bytes]]:
    """Build the tree of the ledger's file."""
    lines = host.call("GET", "/ledger").content.splitlines()
    found = []
    for line in lines:
        body = line.partition(b',"row":')[2].rpartition(b',"salt":"')[0]
        salt = bytes.fromhex(line.rpartition(b'"salt":"')[2].partition(b'"')[0].decode())
        found.append(row_hash(salt, body))
    return Tree(entries=found), found


def test_checkpoints_and_proofs(url: str) -> None:
    host = Host(url, **NAMED)
    ann, bob = host.join("a", "b", name="Ann"), host.join(name="Bob")
    first = checkpoint_of(ann)
    for _ in range(5):
        ann.work()
    commit = bob.ask()["pull"]
    last = checkpoint_of(bob)
    assert last == checkpoint_of(host)
    tree, rows = tree_of(host)
    assert (last.size, last.root) == (tree.size, tree.root())
    assert (first.size, first.root) == (first.size, tree.root(first.size))
    for old in range(last.size + 1):
        for new in (old, last.size):
            proof = ann.ok("GET", f"/proof?from={old}&to={new}")["consistency"]
            assert proves_consistency(hashes(proof), old, tree.root(old), new, tree.root(new))
    for row in range(1, last.size + 1):
        proof = host.ok("GET", f"/proof?row={row}&size={last.size}")["inclusion"]
        assert proves_inclusion(hashes(proof), leaf_hash(rows[row - 1]), row - 1, last.size, last.root)
        if row == commit:
            assert bob.ok("GET", f"/proof?row={row}&size={last.size}")["inclusion"] == proof
            ann.refused(403, "GET", f"/proof?row={row}&size={last.size}", code="hidden_row")
        else:
            assert ann.ok("GET", f"/proof?row={row}&size={last.size}")["inclusion"] == proof


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?from=1",
        "?to=1",
        "?from=2&to=1",
        "?from=-1&to=1",
        "?from=x&to=1",
        "?row=0&size=1",
        "?row=1",
        "?row=2&size=1",
        "?from=%D9%A1&to=1",
        "?from=1&to=1111111111111111",
    ],
)
def test_proofs_of_nothing(url: str, query: str) -> None:
    Host(url).refused(422, "GET", f"/proof{query}", code="invalid_field")


def test_proofs_of_rows_that_are_not_there(url: str) -> None:
    host = Host(url)
    for query in ("from=0&to=2", "from=1&to=2", "from=2&to=2", "row=1&size=2", "row=2&size=2"):
        host.refused(409, "GET", f"/proof?{query}", code="checkpoint_ahead")


def test_a_member_without_a_key_cosigns_nothing(url: str) -> None:
    host = Host(url)
    ann = host.join("a")
    ann.refused(409, "PUT", "/cosignature", {"checkpoint": ann.call("GET", "/checkpoint").text}, code="no_key")
    assert ann.ok("GET", "/cosignatures") == []


def test_a_member_with_a_key_cosigns(url: str) -> None:
    host = Host(url)
    key = Key(b"k" * 32)
    joined = Speaker(url, host.invite(), host.collaboration).ok(
        "POST", "/agents", {"name": "Ann", "shares": ["a"], "key": key.public}
    )
    ann = Member(url, joined["token"], host.collaboration, joined["agent"])
    note = cosigned(ann.call("GET", "/checkpoint").text, host.collaboration, ann.agent, key, 1_700_000_000)
    assert ann.call("PUT", "/cosignature", {"checkpoint": note}).status_code == 204
    assert host.ok("GET", "/cosignatures") == [{"agent": ann.agent, "name": "Ann", "checkpoint": note}]
    assert host.call("GET", "/checkpoint").text == note


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with closing(open_store(database_url)) as opened:
        yield opened


def test_the_store_keeps_the_newest_of_each_member(store: Store) -> None:
    with store.begin({}) as writing:
        writing.commit({}, created=[Created("one", 1, None), Created("two", 1, None)])
    assert store.cosignatures("one") == {}
    for size, note in ((5, "five"), (4, "four"), (5, "five again"), (2, "two")):
        store.keep_cosignature("one", "a1", size, note)
    store.keep_cosignature("one", "a2", 1, "one")
    assert store.cosignatures("one") == {"a1": "five again", "a2": "one"}
    assert store.cosignatures("two") == {}


def test_cosigned_checkpoints_are_checked_and_relayed(tmp_path: Path) -> None:
    async def scenario() -> None:
        controller = Controller(open_store(str(tmp_path / "partage.db")))
        new = NewCollaboration(name="Trial", arms=["a", "b"], horizon=100, invites=2)
        id, codes = await controller.create("secret", new)
        keys = {}
        for code, name in zip(codes, ("Ann", "Bob"), strict=True):
            key = Key(name.ljust(32).encode())
            agent, _ = await controller.join(id, code, NewAgent(name=name, shares=["a", "b"]))
            keys[agent] = key
            (await controller.library.book(id)).state.members[agent].key = key.public
        book = await controller.library.book(id)
        witnesses, log_key = controller.witnesses, controller.secret.key
        plain = await witnesses.checkpoint(id)
        note = cosigned(plain, id, "a1", keys["a1"], 1_700_000_000)
        many = cosigned(note, id, "a2", keys["a2"], 1_700_000_001)
        ahead = cosigned(signed_checkpoint(Checkpoint(origin_of(id), 9, bytes(32)), log_key), id, "a1", keys["a1"], 1)
        forged = cosigned(
            signed_checkpoint(Checkpoint(origin_of(id), 2, bytes(32)), keys["a2"]), id, "a1", keys["a1"], 1
        )
        for wrong, code in (
            ("", "invalid_field"),
            ("x" * LONGEST * 2, "invalid_field"),
            (forged, "invalid_field"),
            (note + note.splitlines(keepends=True)[-2], "invalid_field"),
            (note + f"— other {'A' * LONGEST_COSIGNED}\n", "invalid_field"),
            (plain, "not_cosigned"),
            (cosigned(plain, id, "a1", keys["a2"], 1), "not_cosigned"),
            (cosigned(plain, id, "a2", keys["a2"], 1), "not_cosigned"),
            (ahead, "checkpoint_ahead"),
        ):
            with pytest.raises(Refused) as refused:
                await witnesses.keep(book, "a1", wrong)
            assert refused.value.code == code
        assert await witnesses.cosignatures(id) == []
        await witnesses.keep(book, "a1", many)
        (kept,) = await witnesses.cosignatures(id)
        assert (kept.agent, kept.name, kept.checkpoint) == (
            "a1",
            "Ann",
            note,
        )  # only the log's and their own signature
        await witnesses.keep(book, "a2", many)
        together = await witnesses.checkpoint(id)
        for agent, key in keys.items():
            assert read_cosignature(together, id, agent, key.public) is not None
        await controller.ask(book, "a1", None, False)
        later = await witnesses.checkpoint(id)
        assert read_checkpoint(later, id, encoded(base64.b64decode(log_key.public))) is not None
        assert read_cosignature(later, id, "a1", keys["a1"].public) is None  # of another checkpoint
        await witnesses.keep(book, "a1", cosigned(later, id, "a1", keys["a1"], 1_700_000_002))
        await witnesses.keep(book, "a1", note)  # an older one changes nothing
        sizes = [read_checkpoint(one.checkpoint, id, log_key.public) for one in await witnesses.cosignatures(id)]
        assert [found and found.size for found in sizes] == [book.durable, 3]
        await controller.stop()

    asyncio.run(scenario())


def test_a_process_takes_the_cosignature_of_a_member_that_joined_at_another(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Remote(tmp_path / "partage.db")
        first, second = (Controller(store, "token") for _ in range(2))
        new = NewCollaboration(name="Trial", arms=["a", "b"], horizon=100, invites=1)
        id, (code,) = await first.create("secret", new)
        book = await second.library.book(id)
        agent, _ = await first.join(id, code, NewAgent(name="Ann", shares=["a"]))
        with pytest.raises(Refused) as refused:
            await second.witnesses.keep(book, agent, "")
        assert refused.value.code == "no_key"
        await first.stop()

    asyncio.run(scenario())

"""Checkpoints and a ledger: those of its tree belong to it, and no others."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.test_verify import a_game
from tests.support.command_line import partage
from tests.support.log import Log
from tests.support.sequences import Table, created

from partage.errors import InputError
from partage.ledger.chain import line, seal
from partage.ledger.checkpoints import Checkpoint, cosigned, signed_checkpoint, verifier_key
from partage.ledger.keys import Key, encoded
from partage.ledger.verify import verify

KEY, OTHER = Key(b"\x01" * 32), Key(b"\x02" * 32)


def a_log(format: int | None = None) -> Log:
    return Log(a_game() if format is None else a_game(format=format), KEY)


@given(st.data())
def test_a_checkpoint_of_any_size_belongs_to_every_copy(data: st.DataObject) -> None:
    log = a_log()
    size = data.draw(st.integers(0, len(log.rows)))
    reader = data.draw(st.sampled_from([None, "a1", "a4"]))
    found = verify(log.table.lines(reader)[: max(size, 1)], checkpoints=[log.note(size)], key=KEY.public)
    assert found.problem is None
    assert [(one.size, one.signed) for one in found.checkpoints] == [(size, True)]
    assert found.root == encoded(log.tree.root(max(size, 1)))
    assert any(f"checkpoint after {size:,} lines belongs to this ledger" in sentence for sentence in found.checked)
    assert not any("No saved head" in sentence for sentence in found.trusted)


def other_root(log: Log) -> Checkpoint:
    return log.checkpoint(50)._replace(root=bytes(32))


@pytest.mark.parametrize(
    ("note", "words"),
    [
        (lambda log: signed_checkpoint(other_root(log), KEY), "history was rewritten: the first 50 lines"),
        (lambda log: signed_checkpoint(log.checkpoint(50)._replace(size=49), KEY), "history was rewritten"),
        (lambda log: signed_checkpoint(log.checkpoint()._replace(size=10**6), KEY), "The ledger was cut"),
        (lambda log: signed_checkpoint(log.checkpoint(50), OTHER), "not signed by the ledger's key"),
        (lambda log: signed_checkpoint(Checkpoint("partage/c2", 1, bytes(32)), KEY), "another ledger, partage/c2"),
        (lambda log: log.note(50).replace("\n50\n", "\n51\n"), "not signed by the ledger's key"),
    ],
)
def test_any_other_checkpoint_is_a_problem(note: object, words: str) -> None:
    log = a_log()
    assert callable(note)
    found = verify(log.table.lines(), checkpoints=[log.note(50), note(log)], key=KEY.public)
    assert found.problem is not None
    assert found.problem.line is None
    assert words in found.problem.sentence


def test_a_rewritten_ledger_has_other_roots() -> None:
    """All heads are computed again, so that only a checkpoint shows it."""
    table = a_game()
    head, lines = "0" * 64, []
    for event in table.events[:-1]:
        row = seal(event, head)
        head = row.head
        lines.append(line(row, event, None))
    assert verify(lines).ok
    assert "history was rewritten" in str(verify(lines, checkpoints=[a_log().note(50)], key=KEY.public).problem)


def test_a_cut_ledger_is_found() -> None:
    log = a_log()
    assert verify(log.table.lines()[:-1]).ok
    assert "The ledger was cut" in str(verify(log.table.lines()[:-1], checkpoints=[log.note()]).problem)


def test_without_a_key_the_root_is_checked_and_the_signature_trusted() -> None:
    """Earlier formats do not state the key."""
    log = a_log(format=4)
    found = verify(log.table.lines(), checkpoints=[signed_checkpoint(log.checkpoint(), OTHER)])
    assert found.ok
    assert any("no signature was checked" in sentence for sentence in found.trusted)
    assert not verify(log.table.lines(), checkpoints=[signed_checkpoint(other_root(log), OTHER)]).ok


def test_the_key_of_the_first_line_counts() -> None:
    create = msgspec.structs.replace(created(), key=KEY.public)
    table = Table(create)
    table.work(table.join(0, 1), lambda arm: 0.5)
    log = Log(table, KEY)
    assert verify(table.lines(), checkpoints=[log.note()]).ok
    assert verify(table.lines(), checkpoints=[log.note()], key=verifier_key("c1", KEY.public)).ok
    assert "not signed" in str(
        verify(table.lines(), checkpoints=[signed_checkpoint(log.checkpoint(), OTHER)]).problem
    )
    assert "another key" in str(verify(table.lines(), key=OTHER.public).problem)


@pytest.mark.parametrize("wrong", ["", "no note", 5])
def test_what_is_no_checkpoint_or_key_is_an_error(wrong: object) -> None:
    with pytest.raises(InputError, match="must be a signed note"):
        verify(a_log().table.lines(), checkpoints=[wrong])  # type: ignore[list-item]
    with pytest.raises(InputError, match="public Ed25519 key"):
        verify(a_log().table.lines(), key="AAAA")


def test_what_remains_on_trust_is_a_short_list() -> None:
    for table in (a_game(), a_game(closed=False), a_game("pool"), a_game("paper")):
        for reader in (None, "a1"):
            for sentence in verify(table.lines(reader)).trusted:
                assert len(sentence) <= 120, sentence
                assert "\n" not in sentence


def test_rows_that_no_member_signed_are_counted() -> None:
    table = Table(created())
    table.work(table.join(0, 1), lambda arm: 0.5)  # a join, a claim and a tell
    assert any(sentence.startswith("3 rows of members are not signed") for sentence in verify(table.lines()).trusted)


def test_the_command_line_takes_checkpoints(tmp_path: Path) -> None:
    log = a_log()
    ledger, good, bad = tmp_path / "ledger.ndjson", tmp_path / "good.txt", tmp_path / "bad.txt"
    ledger.write_bytes(b"".join(log.table.lines("a1")))
    good.write_text(cosigned(log.note(40), "c1", "a1", OTHER, 100), encoding="utf-8")
    bad.write_text(signed_checkpoint(other_root(log), KEY), encoding="utf-8")
    arguments = ["verify", str(ledger), "--key", KEY.public, "--checkpoint", str(good)]
    ended = partage(*arguments)
    assert ended.code == 0
    assert "checkpoint after 40 lines belongs" in " ".join(ended.out.split())
    found = json.loads(partage(*arguments, "--json").out)
    assert found["checkpoints"] == [{"size": 40, "signed": True, "cosigned": []}]
    ended = partage(*arguments, "--checkpoint", str(bad))
    assert ended.code == 1
    assert "history was rewritten" in ended.out
    ended = partage("verify", str(ledger), "--checkpoint", str(tmp_path / "none.txt"))
    assert ended.code == 2

"""Checkpoints, keys and receipts: published notes open, what we sign opens again, and nothing else does."""

import hashlib

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.log import Log
from tests.support.sequences import Table, created

from partage.ledger import checkpoints, keys
from partage.ledger.chain import Row
from partage.ledger.checkpoints import (
    COSIGNATURE,
    PLAIN,
    Checkpoint,
    cosigned,
    cosigned_at,
    read_checkpoint,
    read_cosignature,
    signed_alone,
    signed_by_log,
    signed_checkpoint,
    verifier_key,
)
from partage.ledger.events import Tell, decode
from partage.ledger.keys import Key, decoded, encoded, signed_by
from partage.ledger.receipts import BadReceipt, Receipt, check_consistency, check_receipt, encoded_proof

KEY, OTHER, MEMBER = Key(b"\x01" * 32), Key(b"\x02" * 32), Key(b"\x03" * 32)
ROOT = hashlib.sha256(b"root").digest()
CHECKPOINT = Checkpoint("partage/c1", 1841, ROOT)
NOTE = signed_checkpoint(CHECKPOINT, KEY)

# --- what others published ------------------------------------------------------------------------------------

# A public log and a public witness, with their verifier keys. The log also signs by a key of another kind.
ORIGIN = "arche2025h1.staging.ct.transparency.dev"
PUBLIC_NOTE = f"""\
{ORIGIN}
1432088532
U7WM79jrzyhGZ5/GUBTpM7NzwdyfFx61t3RovgcC4Ro=

— {ORIGIN} zTM8sQAAAZ5W0WdjBAMARjBEAiBjW5IQf9pvsYLfQFX6hoGREPMHbdQ3urbllzalApkptQIgIpwtEroeW2BXaHAI4kJXFbon5Ch9MNL5zRNZ55lvGt0=
— {ORIGIN} ui8GwCF1+kWqZrxGdhj4aX3gcw7XUlXQQabg/27lefwhUkzbC3NygNI75MdhL1bfTW9g8Ei59RA23oHP7Ry1k3ZFWwQ=
— remora.n621.de 2net5wAAAABqEiEgPlfF3V06o0Y+fHM+J5J9s27wgxxcOVSpZ/2g/KSiXCg9DEZI+aVCIobWX9sXTynk5XeU/zZ0WBxtqB0DrAWfBw==
"""  # noqa: E501
LOG_KEY = "ba2f06c0", PLAIN, "AU0vHmlGCS/PdN8b2OaGmKprLI8HKM+dJ472xgFYh15f"
WITNESS_KEY = "da77ade7", COSIGNATURE, "BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2"


def public_of(name: str, key: tuple[str, bytes, str]) -> str:
    """Return the public key of a published verifier key, whose id must follow from it."""
    id, kind, content = key
    raw = decoded(content, 33)
    assert raw is not None
    assert raw[:1] == kind
    assert checkpoints._key_id(name, kind, raw[1:]).hex() == id
    return encoded(raw[1:])


def test_a_published_checkpoint_and_its_cosignature_open() -> None:
    log, witness = public_of(ORIGIN, LOG_KEY), public_of("remora.n621.de", WITNESS_KEY)
    found = signed_by_log(PUBLIC_NOTE, ORIGIN, log)
    assert found is not None
    assert (found.size, encoded(found.root)) == (1432088532, "U7WM79jrzyhGZ5/GUBTpM7NzwdyfFx61t3RovgcC4Ro=")
    assert cosigned_at(PUBLIC_NOTE, "remora.n621.de", witness) == 0x6A122120
    changed = PUBLIC_NOTE.replace("1432088532", "1432088533")
    assert signed_by_log(changed, ORIGIN, log) is None
    assert cosigned_at(changed, "remora.n621.de", witness) is None


def test_the_example_of_the_specification_of_notes_is_signed() -> None:
    public = public_of("example.com/foo", ("530d903a", PLAIN, "AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"))
    line = "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM="
    content = decoded(line, 68)
    assert content is not None
    assert content[:4].hex() == "530d903a"
    assert signed_by(public, content[4:], b"This is an example message.\n")
    assert not signed_by(public, content[4:], b"This is an example message.")


def test_a_published_private_key_signs_as_published() -> None:
    """The example of golang.org/x/mod/sumdb/note: Ed25519 has one signature for a text."""
    secret = decoded("AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz", 33)
    assert secret is not None
    key = Key(secret[1:])
    assert key.public == public_of(
        "PeterNeumann", ("c74f20a3", PLAIN, "ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
    )
    text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
    signature = "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
    assert checkpoints._line("PeterNeumann", PLAIN, key, key.sign(text.encode())) == f"— PeterNeumann {signature}\n"


# --- what we sign ---------------------------------------------------------------------------------------------


def test_a_signed_checkpoint_opens_with_its_key_alone() -> None:
    assert read_checkpoint(NOTE, "c1", KEY.public) == CHECKPOINT
    assert read_checkpoint(NOTE, "c1", OTHER.public) is None
    assert read_checkpoint(NOTE, "c2", KEY.public) is None
    assert read_checkpoint(NOTE, "c1", "") is None
    name, id, content = verifier_key("c1", KEY.public).split("+", 2)
    assert (name, public_of(name, (id, PLAIN, content))) == ("partage/c1", KEY.public)


def test_a_cosignature_is_added_replaced_and_read() -> None:
    note = cosigned(NOTE, "c1", "a1", MEMBER, 100)
    note = cosigned(note, "c1", "a2", OTHER, 150)
    assert read_checkpoint(note, "c1", KEY.public) == CHECKPOINT
    assert read_cosignature(note, "c1", "a1", MEMBER.public) == ("a1", 100)
    again = cosigned(note, "c1", "a1", MEMBER, 200)
    assert again.count("— ") == 3
    assert read_cosignature(again, "c1", "a1", MEMBER.public) == ("a1", 200)
    assert read_cosignature(again, "c1", "a2", OTHER.public) == ("a2", 150)
    for agent, public in (("a2", MEMBER.public), ("a1", OTHER.public), ("a1", ""), ("a3", MEMBER.public)):
        assert read_cosignature(again, "c1", agent, public) is None
    assert read_cosignature(NOTE, "c1", "a1", MEMBER.public) is None
    with pytest.raises(ValueError):  # noqa: PT011 - it has no sentence, since callers read the note first
        cosigned("no note", "c1", "a1", MEMBER, 100)


def test_a_member_cannot_sign_for_the_log_nor_the_log_cosign_for_a_member() -> None:
    """The kind of a signature is part of its key's id and of what is signed."""
    forged = (
        f"{CHECKPOINT.text}\n{checkpoints._line('partage/c1', COSIGNATURE, KEY, KEY.sign(CHECKPOINT.text.encode()))}"
    )
    assert read_checkpoint(forged, "c1", KEY.public) is None
    assert read_cosignature(NOTE.replace("— partage/c1 ", "— partage/c1/a1 "), "c1", "a1", KEY.public) is None


def test_signatures_of_other_keys_are_ignored_and_a_bad_one_of_the_key_spoils_the_note() -> None:
    text = CHECKPOINT.text
    same_name = checkpoints._line("partage/c1", PLAIN, OTHER, OTHER.sign(text.encode()))
    other_name = checkpoints._line("example.com", PLAIN, KEY, KEY.sign(b"something else"))
    good = checkpoints._line("partage/c1", PLAIN, KEY, KEY.sign(text.encode()))
    bad = checkpoints._line("partage/c1", PLAIN, KEY, KEY.sign(b"something else"))
    assert read_checkpoint(f"{text}\n{same_name}{other_name}{good}", "c1", KEY.public) == CHECKPOINT
    assert read_checkpoint(f"{text}\n{same_name}{other_name}", "c1", KEY.public) is None
    assert read_checkpoint(f"{text}\n{good}{bad}", "c1", KEY.public) is None


def test_a_note_with_two_signatures_of_one_key_is_refused_before_any_is_verified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = NOTE.split("\n\n")[1]
    twice = cosigned(NOTE, "c1", "a1", MEMBER, 100)
    twice += twice.splitlines(keepends=True)[-1]
    monkeypatch.setattr(checkpoints, "signed_by", lambda *_: pytest.fail("a signature was verified"))
    assert read_checkpoint(NOTE + 400 * line, "c1", KEY.public) is None
    assert read_cosignature(twice, "c1", "a1", MEMBER.public) is None


def test_a_note_alone_has_one_line_of_the_log_and_one_of_the_member() -> None:
    note = cosigned(NOTE, "c1", "a1", MEMBER, 100)
    more = cosigned(note, "c1", "a2", OTHER, 100)
    more += checkpoints._line("partage/c1/a1", COSIGNATURE, OTHER, bytes(72))
    more += checkpoints._line("partage/c1", PLAIN, OTHER, bytes(64))
    assert signed_alone(more, "c1", KEY.public, "a1", MEMBER.public) == note
    assert signed_alone(more, "c1", KEY.public) == NOTE


def signed_text(text: str) -> str:
    """Any text, signed by the log's key."""
    return f"{text}\n{checkpoints._line('partage/c1', PLAIN, KEY, KEY.sign(text.encode()))}"


@pytest.mark.parametrize(
    "text",
    [
        "partage/c1\n1841\n",
        f"partage/c1\n1841\n{encoded(ROOT)}",
        f"partage/c1\n01841\n{encoded(ROOT)}\n",
        f"partage/c1\n-1\n{encoded(ROOT)}\n",
        f"partage/c1\n1e3\n{encoded(ROOT)}\n",
        f"partage/c1\n\u0661\n{encoded(ROOT)}\n",
        f"partage/c1\n{10**19}\n{encoded(ROOT)}\n",
        f"partage/c1\n1841\n{encoded(ROOT[:31])}\n",
        f"partage/c1\n1841\n{encoded(ROOT)[:-2]}9=\n",
        f"partage/c1\n1841\n{encoded(ROOT)}\nan extension\n",
        f"partage/c1 \n1841\n{encoded(ROOT)}\n",
        f"partage/c2\n1841\n{encoded(ROOT)}\n",
        f"\n1841\n{encoded(ROOT)}\n",
        "\n",
    ],
)
def test_a_signed_text_that_is_no_checkpoint_of_this_ledger_is_refused(text: str) -> None:
    assert read_checkpoint(signed_text(text), "c1", KEY.public) is None


@pytest.mark.parametrize(
    "note",
    [
        "",
        "\n\n",
        CHECKPOINT.text,
        NOTE[:-1],
        NOTE + "\n",
        NOTE.replace("\n\n", "\n"),
        NOTE.replace("— ", "- "),
        NOTE.replace("\n", "\r\n"),
        NOTE + "— a b c\n",
        NOTE + "— a\x00 AAAA\n",
        NOTE + "— a\ud800 AAAA\n",
        "\ud800" + NOTE,
        NOTE + f"— a {'A' * 70_000}\n",
        NOTE.replace("1841", "1842"),
    ],
)
def test_a_malformed_note_is_refused_and_never_an_error(note: str) -> None:
    assert read_checkpoint(note, "c1", KEY.public) is None
    assert read_cosignature(note, "c1", "a1", MEMBER.public) is None


@given(st.integers(0, len(NOTE) - 1), st.characters())
@example(0, "\ud800")
def test_a_note_with_one_changed_character_is_refused(place: int, character: str) -> None:
    changed = NOTE[:place] + character + NOTE[place + 1 :]
    assert changed == NOTE or read_checkpoint(changed, "c1", KEY.public) is None


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert read_checkpoint(text, "c1", KEY.public) is None
    assert not signed_by(text, b"", b"")
    assert decoded(text, 32) is None or len(text) == 44


def test_keys_do_not_show_their_secrets() -> None:
    assert encoded(b"\x01" * 32) not in repr(KEY)
    assert KEY.public in repr(KEY)
    assert not signed_by(KEY.public, KEY.sign(b"a")[:63], b"a")
    assert decoded("AA", 1) is None  # without padding
    assert decoded("AB==", 1) is None  # with bits that say nothing
    assert len(decoded(KEY.public, 32) or b"") == keys.KEY_BYTES


# --- receipts -------------------------------------------------------------------------------------------------


def a_log(pulls: int = 5) -> Log:
    """The log of a collaboration with some reports."""
    table = Table(created())
    ada = table.join(0, 1)
    for number in range(pulls):
        table.work(ada, lambda arm, number=number: number / 10)
    return Log(table, KEY)


def place_of_tell(log: Log, number: int = 0) -> int:
    """The seq of a report."""
    return [row.seq for row in log.table.rows if isinstance(decode(row.body), Tell)][number]


def test_a_receipt_proves_its_row_and_continues_what_was_seen() -> None:
    log = a_log()
    for size in range(1, len(log.table.rows) + 1):
        seen = log.checkpoint(size)
        for seq in range(1, len(log.table.rows) + 1):
            receipt = log.receipt(seq, seen.size)
            travelled = msgspec.json.decode(msgspec.json.encode(receipt), type=Receipt)
            checked = check_receipt(travelled, "c1", KEY.public, seen)
            assert checked.event == log.table.events[seq - 1]
            assert checked.checkpoint == log.checkpoint(len(log.table.rows))


def changed(receipt: Receipt, **fields: object) -> Receipt:
    return msgspec.structs.replace(receipt, **fields)


def test_a_receipt_with_anything_changed_proves_nothing() -> None:
    log = a_log()
    seq, seen = place_of_tell(log), log.checkpoint(3)
    good, other = log.receipt(seq, 3), log.receipt(place_of_tell(log, 1), 3)
    row = bytes(good.row)
    bad = [
        changed(good, row=msgspec.Raw(row.replace(b'"reward":0.0', b'"reward":0.5'))),
        changed(good, row=msgspec.Raw(row.replace(b":", b": ", 1))),
        changed(good, row=other.row),
        changed(good, row=msgspec.Raw(b"{}")),
        changed(good, row=msgspec.Raw(b'{"format":9}')),
        changed(good, salt=other.salt),
        changed(good, salt="not hex"),
        changed(good, inclusion=other.inclusion),
        changed(good, inclusion=good.inclusion[:-1]),
        changed(good, inclusion=[*good.inclusion[:-1], "not base64"]),
        changed(good, consistency=[]),
        changed(good, consistency=good.consistency[::-1]),
        changed(good, checkpoint=signed_checkpoint(log.checkpoint(len(log.table.rows)), OTHER)),
        changed(good, checkpoint=signed_checkpoint(log.checkpoint(seq - 1), KEY)),  # older than the row
    ]
    check_receipt(good, "c1", KEY.public, seen)
    for receipt in bad:
        with pytest.raises(BadReceipt):
            check_receipt(receipt, "c1", KEY.public, seen)


def test_a_receipt_of_another_history_is_refused() -> None:
    log, rewritten = a_log(), a_log(pulls=6)
    seq = place_of_tell(log)
    with pytest.raises(BadReceipt, match="does not continue"):
        check_receipt(rewritten.receipt(seq, 3), "c1", KEY.public, log.checkpoint(3))
    check_receipt(rewritten.receipt(seq, 3), "c1", KEY.public, None)  # whoever saw nothing cannot notice


@given(st.data())
def test_checkpoints_fit_if_and_only_if_they_are_of_one_ledger(data: st.DataObject) -> None:
    fork = data.draw(st.integers(1, 11))
    log = _LOG
    rows = [Row(row.seq, row.body, bytes(16), row.head, row.pull) for row in log.table.rows[fork:]]
    other = Log(log.table, KEY, [*log.table.rows[:fork], *rows])
    first, second = data.draw(st.integers(1, 11)), data.draw(st.integers(1, 11))
    small, large = sorted((first, second))
    proof = encoded_proof(other.tree.consistency(small, large))
    one, two = log.checkpoint(first), other.checkpoint(second)
    if first <= fork or second <= fork:
        shared = other if first <= fork else log
        check_consistency(two, encoded_proof(shared.tree.consistency(small, large)), one)
    else:
        with pytest.raises(BadReceipt):
            check_consistency(two, proof, one)


_LOG = a_log()

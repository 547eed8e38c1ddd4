"""Checkpoints of a ledger, as signed notes: how many rows it has, and the root of its tree.

The forms are C2SP's: signed-note, tlog-checkpoint, and tlog-cosignature for the members who witness one. Only what a
signature covers may be believed, so a checkpoint is read together with the key that must have signed it.
"""

import base64
import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from partage.ledger.keys import KEY_BYTES, SIGNATURE_BYTES, Key, decoded, encoded, public_bytes, signed_by

PLAIN, COSIGNATURE = b"\x01", b"\x04"  # kinds of signatures
LONGEST = 64 * 1024  # characters of a note
LONGEST_COSIGNED = 2048  # characters of a note with the signatures of the log and of one member

_TEXT = re.compile(r"([^\s+]+)\n(0|[1-9][0-9]{0,17})\n([A-Za-z0-9+/]{43}=)\n")
_UNFIT = re.compile(r"[\x00-\x09\x0b-\x1f\ud800-\udfff]")  # control characters, and what is not UTF-8
_LINE = re.compile(r"— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})")


class Checkpoint(NamedTuple):
    """The state of a log: its origin, its number of rows, and the root of its tree."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """What is signed."""
        return f"{self.origin}\n{self.size}\n{encoded(self.root)}\n"


class Cosigned(NamedTuple):
    """A member that witnessed a checkpoint, and when, in seconds since 1970."""

    agent: str
    time: int


def origin_of(collaboration: str) -> str:
    """Return the origin of a collaboration's log, which is also the name of its key."""
    return f"partage/{collaboration}"


def name_of(collaboration: str, agent: str) -> str:
    """Return the name of a member's key."""
    return f"{origin_of(collaboration)}/{agent}"


def signed_checkpoint(checkpoint: Checkpoint, key: Key) -> str:
    """Return a checkpoint with the log's signature."""
    line = _line(checkpoint.origin, PLAIN, key, key.sign(checkpoint.text.encode()))
    return f"{checkpoint.text}\n{line}"


def cosigned(note: str, collaboration: str, agent: str, key: Key, time: int) -> str:
    """Return a signed checkpoint with a member's cosignature in place of an earlier one of its own.

    Raises
    ------
    ValueError
        It is not a note.
    """
    text, lines = _parts(note)
    name = name_of(collaboration, agent)
    stamp = time.to_bytes(8, "big")
    added = _line(name, COSIGNATURE, key, stamp + key.sign(_cosigned_text(text, time)))
    kept = [f"— {other} {content}\n" for other, content in lines if other != name]
    return f"{text}\n{''.join(kept)}{added}"


def with_cosignatures(note: str, others: Iterable[str]) -> str:
    """Return a signed checkpoint with the cosignatures of those other notes that have the same text."""
    text, _ = _parts(note)
    origin = text.split("\n", 1)[0]
    for other in others:
        same, lines = _parts(other)
        if same == text:
            note += "".join(f"— {name} {content}\n" for name, content in lines if name != origin)
    return note


def signed_alone(note: str, collaboration: str, public: str, agent: str = "", key: str = "") -> str:
    """Return a note with only the signature of the log's key, and of one member's key if it is given."""
    text, lines = _parts(note)
    signers = [(origin_of(collaboration), PLAIN, public)]
    if agent:
        signers.append((name_of(collaboration, agent), COSIGNATURE, key))
    wanted = {(name, _key_id(name, kind, decoded(one, KEY_BYTES) or b"")) for name, kind, one in signers}
    kept = [f"— {name} {content}\n" for name, content in lines if (name, _stated_id(content)) in wanted]
    return f"{text}\n{''.join(kept)}"


def read_checkpoint(note: str, collaboration: str, public: str) -> Checkpoint | None:
    """Return the checkpoint of this collaboration that the log's key signed; None if it is anything else."""
    return signed_by_log(note, origin_of(collaboration), public)


def read_cosignature(note: str, collaboration: str, agent: str, public: str) -> Cosigned | None:
    """Return when a member cosigned this checkpoint; None if it did not."""
    time = cosigned_at(note, name_of(collaboration, agent), public)
    return None if time is None else Cosigned(agent, time)


def stated_checkpoint(note: str) -> Checkpoint | None:
    """Return what a note says, whoever signed it; None if it is not a checkpoint."""
    try:
        found = _TEXT.fullmatch(_parts(note)[0])
    except ValueError:
        return None
    root = None if found is None else decoded(found[3], 32)
    return None if found is None or root is None else Checkpoint(found[1], int(found[2]), root)


def signed_by_log(note: str, origin: str, public: str) -> Checkpoint | None:
    """Return the checkpoint of this origin that this key signed; None if it is anything else."""
    stated = stated_checkpoint(note)
    if stated is None or stated.origin != origin:
        return None
    text, lines = _parts(note)
    made = _signatures(lines, origin, PLAIN, public, SIGNATURE_BYTES)
    # As signed-note asks, one bad signature of the key spoils the note.
    if not made or not all(signed_by(public, signature, text.encode()) for signature in made):
        return None
    return stated


def cosigned_at(note: str, name: str, public: str) -> int | None:
    """Return when the key of this name cosigned a note, in seconds since 1970; None if it did not."""
    try:
        text, lines = _parts(note)
    except ValueError:
        return None
    made = _signatures(lines, name, COSIGNATURE, public, 8 + SIGNATURE_BYTES)
    times = [int.from_bytes(content[:8], "big") for content in made]
    right = [
        signed_by(public, content[8:], _cosigned_text(text, time)) for content, time in zip(made, times, strict=True)
    ]
    return max(times) if times and all(right) else None


def verifier_key(collaboration: str, public: str) -> str:
    """Return the log's public key in the form that other tools of C2SP take."""
    name = origin_of(collaboration)
    raw = decoded(public, KEY_BYTES)
    assert raw is not None
    return f"{name}+{_key_id(name, PLAIN, raw).hex()}+{encoded(PLAIN + raw)}"


def public_key(text: str) -> str | None:
    """Return a public key in base64, from that or from the form that `verifier_key` returns; None otherwise."""
    raw = decoded(text.split("+", 2)[-1], 1 + KEY_BYTES)
    found = text if raw is None or raw[:1] != PLAIN else encoded(raw[1:])
    return None if public_bytes(found) is None else found


def _parts(note: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the text of a note, and its signature lines: name and content."""
    text, separator, lines = note.rpartition("\n\n")
    if not separator or not lines.endswith("\n") or len(note) > LONGEST or _UNFIT.search(note):
        raise ValueError
    found = [_LINE.fullmatch(line) for line in lines[:-1].split("\n")]
    if not all(found):
        raise ValueError
    signatures = [(line[1], line[2]) for line in found if line is not None]
    # One signature of each key, or a reader would verify as many as fit into a note.
    if len({(name, _stated_id(content)) for name, content in signatures}) < len(signatures):
        raise ValueError
    return text + "\n", signatures


def _signatures(lines: list[tuple[str, str]], name: str, kind: bytes, public: str, length: int) -> list[bytes]:
    """Return the contents of the signatures that this key may have made."""
    raw = decoded(public, KEY_BYTES)
    if raw is None:
        return []
    wanted = _key_id(name, kind, raw)
    found = [decoded(content, 4 + length) for other, content in lines if other == name]
    return [content[4:] for content in found if content is not None and content[:4] == wanted]


def _line(name: str, kind: bytes, key: Key, signature: bytes) -> str:
    raw = decoded(key.public, KEY_BYTES)
    assert raw is not None
    return f"— {name} {encoded(_key_id(name, kind, raw) + signature)}\n"


def _key_id(name: str, kind: bytes, raw: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + kind + raw).digest()[:4]


def _stated_id(content: str) -> bytes:
    """Return the id of the key that a signature line states; raises ValueError if it is not base64."""
    return base64.b64decode(content[:8])[:4]


def _cosigned_text(text: str, time: int) -> bytes:
    return f"cosignature/v1\ntime {time}\n{text}".encode()

"""The hash chain of a ledger: the hash of each line covers its row and all lines before it.

    row_hash = SHA-256(salt, body)             with 16 random bytes of salt for each row
    head     = SHA-256(previous head, row_hash)

A hidden row shows only its row_hash: readers can still follow the chain, and the salt keeps them from guessing the
row.
"""

import hashlib
import secrets
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from partage.ledger.events import AnyEvent, Close, Commit, Tell, decode, encode

GENESIS = "0" * 64  # the head before the first line


class Row(NamedTuple):
    """One row of a collaboration's ledger.

    Attributes
    ----------
    seq
        Its number: 1, 2, 3, … without gaps.
    body
        The canonical JSON of the event.
    salt
        16 random bytes.
    head
        The hash of the line, 64 hex digits.
    pull
        The pull that the row reports, which is unique in a collaboration; None if it is not a tell.
    """

    seq: int
    body: bytes
    salt: bytes
    head: str
    pull: int | None


def row_hash(salt: bytes, body: bytes) -> bytes:
    """Return the hash of a row."""
    return hashlib.sha256(salt + body).digest()


def next_head(head: str, hashed: bytes) -> str:
    """Return the head after a row with this hash."""
    return hashlib.sha256(bytes.fromhex(head) + hashed).hexdigest()


def seal(event: AnyEvent, head: str, salt: bytes | None = None) -> Row:
    """Return the event as the row that follows this head, with this salt of 16 bytes or a random one."""
    body, salt = encode(event), secrets.token_bytes(16) if salt is None else salt
    pull = event.pull if isinstance(event, Tell) else None
    return Row(event.seq, body, salt, next_head(head, row_hash(salt, body)), pull)


def hidden(event: AnyEvent, reader: str | None) -> bool:
    """Whether an agent may not see an event: other agents' commit pulls. The operator (None) sees everything."""
    return reader is not None and isinstance(event, Commit) and event.agent != reader


def line(row: Row, event: AnyEvent, reader: str | None, salts: Mapping[str, bytes] | None = None) -> bytes:
    """Return a row as a line of the ledger's file, for the operator (None) or for an agent.

    An agent sees everything but the other agents' commit pulls, of which it sees the hashes. Beside the tallies of a
    close event, the operator sees the `salts` of all members, and an agent its own.
    """
    if hidden(event, reader):
        return _hidden(row)
    return _shown(row, reader, (salts or {}) if isinstance(event, Close) and event.tallies else {})


def line_of(row: Row, reader: str | None, salts: Mapping[str, bytes] | None = None) -> bytes:
    """Return the same line without decoding the event: only its kind and its agent are looked at."""
    seen = _GLANCE.decode(row.body)
    if reader is not None and seen.kind == "commit" and seen.agent != reader:
        return _hidden(row)
    return line(row, decode(row.body), reader, salts) if seen.kind == "close" else _shown(row, reader, {})


class _Glance(msgspec.Struct):
    kind: str
    agent: str | None = None


_GLANCE = msgspec.json.Decoder(_Glance)


def _hidden(row: Row) -> bytes:
    hashed = row_hash(row.salt, row.body).hex()
    return f'{{"head":"{row.head}","row_hash":"{hashed}","seq":{row.seq}}}\n'.encode()


def _shown(row: Row, reader: str | None, salts: Mapping[str, bytes]) -> bytes:
    shown = b'{"head":"%b","row":%b,"salt":"%b"' % (row.head.encode(), row.body, row.salt.hex().encode())
    if salts:
        seen = {agent: salt.hex() for agent, salt in salts.items() if reader in (None, agent)}
        shown += b',"tally":' + msgspec.json.encode(seen)
    return shown + b"}\n"

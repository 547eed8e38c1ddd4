"""The ledger's chain: each line's hash covers its row and all lines before it.

    row_hash = SHA-256(salt, body)             with 16 random bytes of salt a row
    head     = SHA-256(previous head, row_hash)

A hidden row shows its row_hash alone: the chain can still be followed, and the salt keeps the row from being guessed.
"""

import hashlib
import secrets
from typing import NamedTuple

from partage.ledger.events import AnyEvent, Commit, encode

GENESIS = "0" * 64  # the head before the first line


class Row(NamedTuple):
    """One line of a collaboration's ledger."""

    seq: int  # 1, 2, 3, … without gaps
    body: bytes  # the canonical JSON of the event
    salt: bytes  # 16 bytes
    head: str  # the line's hash, 64 hex digits
    pull: int | None  # the pull that this row tells of, once in a collaboration; else None


def row_hash(salt: bytes, body: bytes) -> bytes:
    """Return the hash of a row."""
    return hashlib.sha256(salt + body).digest()


def next_head(head: str, hashed: bytes) -> str:
    """Return the head after a row with this hash."""
    return hashlib.sha256(bytes.fromhex(head) + hashed).hexdigest()


def seal(event: AnyEvent, head: str, salt: bytes | None = None) -> Row:
    """Return the event as the row that follows this head, with this salt or a random one."""
    body, salt = encode(event), secrets.token_bytes(16) if salt is None else salt
    pull = getattr(event, "pull", None) if event.__struct_config__.tag == "tell" else None
    return Row(event.seq, body, salt, next_head(head, row_hash(salt, body)), pull)


def line(row: Row, event: AnyEvent, reader: str | None) -> bytes:
    """Return a row as a line of the ledger's file, for the operator (None) or an agent.

    An agent sees everything but the commit pulls of others, whose rows stand there as hashes.
    """
    if reader is not None and isinstance(event, Commit) and event.agent != reader:
        hashed = row_hash(row.salt, row.body).hex()
        return f'{{"head":"{row.head}","row_hash":"{hashed}","seq":{row.seq}}}\n'.encode()
    return b'{"head":"%b","row":%b,"salt":"%b"}\n' % (row.head.encode(), row.body, row.salt.hex().encode())

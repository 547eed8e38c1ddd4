"""Receipts: what the controller signs for each request of a member, and how the member checks it.

A receipt shows the member's own row, that a signed checkpoint covers it, and that this checkpoint continues the one
that the member had.
"""

import msgspec
from msgspec import Struct

from partage.ledger.chain import row_hash
from partage.ledger.checkpoints import Checkpoint, read_checkpoint
from partage.ledger.events import AnyEvent, decode
from partage.ledger.keys import decoded, encoded
from partage.ledger.merkle import leaf_hash, proves_consistency, proves_inclusion
from partage.ledger.refusals import Refused

HEADER = "Partage-Checkpoint"  # a request's header: the size of the checkpoint that the client has


class Receipt(Struct, frozen=True):
    """A signed receipt.

    Attributes
    ----------
    row, salt
        The member's row, byte for byte as it is in the ledger, and its salt in hex.
    checkpoint
        A signed checkpoint that covers the row.
    inclusion
        The proof that the row is in the checkpoint's tree, each hash in base64.
    consistency
        The proof that this tree continues the one whose size the request named; empty if it named none.
    """

    row: msgspec.Raw
    salt: str
    checkpoint: str
    inclusion: list[str]
    consistency: list[str] = []


class Receipted(Struct):
    """The commit pulls that an agent has receipts for: by the name of their arm, and those without one."""

    commits: dict[str, int] = msgspec.field(default_factory=dict)
    unnamed: int = 0

    @property
    def pulls(self) -> int:
        """How many they are in all."""
        return sum(self.commits.values()) + self.unnamed


class BadReceipt(Exception):
    """A receipt does not prove what it must. The argument is a sentence that says what is wrong."""


class Checked(Struct, frozen=True):
    """What a receipt proves: the event of the row, and the checkpoint that covers it."""

    event: AnyEvent
    checkpoint: Checkpoint


def check_receipt(receipt: Receipt, collaboration: str, public: str, seen: Checkpoint | None) -> Checked:
    """Return what a receipt proves, to a member that has seen this checkpoint.

    Raises
    ------
    BadReceipt
        It proves nothing, or the checkpoint does not continue the one seen.
    """
    found = read_checkpoint(receipt.checkpoint, collaboration, public)
    if found is None:
        raise BadReceipt("The checkpoint of the receipt is not signed by the ledger's key.")
    check_consistency(found, receipt.consistency, seen)
    body = bytes(receipt.row)
    try:
        event, salt = decode(body), bytes.fromhex(receipt.salt)
    except (msgspec.MsgspecError, ValueError, Refused):
        raise BadReceipt("The row of the receipt cannot be read.") from None
    leaf = leaf_hash(row_hash(salt, body))
    if not proves_inclusion(_hashes(receipt.inclusion), leaf, event.seq - 1, found.size, found.root):
        raise BadReceipt("The receipt does not prove that its row is in the ledger.")
    return Checked(event, found)


def check_consistency(found: Checkpoint, proof: list[str], seen: Checkpoint | None) -> None:
    """Check that a checkpoint continues the one seen, or is continued by it.

    Raises
    ------
    BadReceipt
        They do not belong to one ledger, or the proof does not show that they do.
    """
    if seen is None:
        return
    old, new = (seen, found) if seen.size <= found.size else (found, seen)
    if not proves_consistency(_hashes(proof), old.size, old.root, new.size, new.root):
        raise BadReceipt(
            f"The ledger with {found.size:,} rows does not continue the one with {seen.size:,} rows that was signed "
            "before."
        )


def encoded_proof(proof: list[bytes]) -> list[str]:
    """Return a proof as it travels."""
    return [encoded(step) for step in proof]


def _hashes(proof: list[str]) -> list[bytes]:
    """Return the hashes of a proof; one that cannot be read proves nothing."""
    return [decoded(step, 32) or b"" for step in proof]

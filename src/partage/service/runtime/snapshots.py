"""Snapshots: a state with its place in the ledger, so that a restart need not replay every row.

A snapshot is only a cache. One that is damaged, or does not fit the rows, is ignored.
"""

import hashlib

import msgspec
from msgspec import Struct

from partage.ledger.merkle import Tree
from partage.ledger.state import SNAPSHOT_FORMAT, State
from partage.service.store import Corrupt, Store

CHECKSUM_BYTES = 32


class Snapshot(Struct, frozen=True):
    """A state, the ledger's head after its last event, and the tree of the rows so far."""

    state: bytes
    head: str
    blocks: bytes
    leaves: bytes


def dumped(state: State, head: str, tree: Tree) -> bytes:
    """Return a snapshot as it is stored: with a checksum in front."""
    content = msgspec.msgpack.encode(Snapshot(state.dump(), head, *tree.dump()))
    return hashlib.sha256(content).digest() + content


def last_snapshot(store: Store, collaboration: str) -> tuple[State, str, Tree] | None:
    """Return the state, head and tree of the last snapshot; None if there is none that fits the ledger."""
    try:
        found = store.snapshot(collaboration, SNAPSHOT_FORMAT)
        row = None if found is None else store.row(collaboration, found[0])
    except Corrupt:  # if it is a row, the load will say so
        return None
    if found is None or row is None or not isinstance(found[1], bytes):
        return None
    seq, stored = found
    content = stored[CHECKSUM_BYTES:]
    if hashlib.sha256(content).digest() != stored[:CHECKSUM_BYTES]:
        return None
    try:
        kept = msgspec.msgpack.decode(content, type=Snapshot)
        state, tree = State.load(kept.state), Tree.load(kept.blocks, kept.leaves)
    except (msgspec.MsgspecError, LookupError, ValueError):
        return None
    if state.config.collaboration != collaboration or not state.seq == tree.size == seq:
        return None
    return (state, kept.head, tree) if row.head == kept.head else None

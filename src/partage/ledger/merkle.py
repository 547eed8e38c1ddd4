"""The Merkle tree over the rows of a ledger, as in RFC 6962: roots, inclusion proofs and consistency proofs.

A node is named by its level and its index in it: leaves have level 0, and the node (level, index) is above the leaves
from index * 2^level on. Only full nodes exist; what a root or a proof needs beyond them is computed from them.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence

DEPTH = 8
BLOCK = 1 << DEPTH  # leaves below which the tree keeps no nodes for long: they are computed from the rows again
RECENT = 64  # blocks whose nodes stay in memory

Node = Callable[[int, int], bytes]


class Unknown(Exception):
    """A proof needs the leaves of a block that are not in memory: call `Tree.recall` with them and try again."""

    def __init__(self, block: int) -> None:
        super().__init__(block)
        self.block = block


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash of a leaf."""
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node above two others."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """The tree of a ledger: it grows by one leaf per row.

    It has all nodes from level 8 up, and the nodes below for the last blocks. Those of other blocks are computed from
    their row hashes when a proof needs them (see `Unknown`).
    """

    def __init__(self, blocks: bytes = b"", entries: Iterable[bytes] = ()) -> None:
        self.size = 0
        self._upper: list[list[bytes]] = [[]]  # from level 8 up
        self._lower: dict[int, list[list[bytes]]] = {}  # by block: the nodes of levels 0 to 7
        for start in range(0, len(blocks), 32):
            self.size += BLOCK
            self._push(blocks[start : start + 32])
        for entry in entries:
            self.append(entry)

    def dump(self) -> tuple[bytes, bytes]:
        """Return the nodes of level 8, and the leaf hashes above the last full block."""
        last = self._lower.get(self.size >> DEPTH)
        return b"".join(self._upper[0]), b"" if last is None else b"".join(last[0])

    @classmethod
    def load(cls, blocks: bytes, leaves: bytes) -> "Tree":
        """Return the tree that `dump` returned."""
        tree = cls(blocks)
        for start in range(0, len(leaves), 32):
            tree._add(leaves[start : start + 32])
        return tree

    def append(self, entry: bytes) -> None:
        """Add a leaf: the hash of the next row."""
        self._add(leaf_hash(entry))

    def root(self, size: int | None = None) -> bytes:
        """Return the root, of the whole tree or of its first `size` leaves."""
        return root(self.size if size is None else size, self.node)

    def inclusion(self, index: int, size: int) -> list[bytes]:
        """Return the proof that a leaf is in the tree of the first `size` leaves."""
        assert 0 <= index < size <= self.size
        return _inclusion(index, size, self.node)

    def consistency(self, old: int, new: int) -> list[bytes]:
        """Return the proof that the tree of `old` leaves is the beginning of the tree of `new` leaves."""
        assert 0 <= old <= new <= self.size
        return [] if old in (0, new) else _consistency(old, 0, new, True, self.node)

    def node(self, level: int, index: int) -> bytes:
        """Return a full node."""
        if level >= DEPTH:
            return self._upper[level - DEPTH][index]
        block = (index << level) >> DEPTH
        if block not in self._lower:
            raise Unknown(block)
        return self._lower[block][level][index - (block << DEPTH >> level)]

    def recall(self, block: int, entries: Sequence[bytes]) -> bool:
        """Take the row hashes of a full block into memory; return whether they are the ones that were added."""
        levels = _levels(map(leaf_hash, entries))
        if len(entries) != BLOCK or node_hash(*levels[-1]) != self._upper[0][block]:
            return False
        self._keep(block, levels)
        return True

    def _add(self, leaf: bytes) -> None:
        block = self.size >> DEPTH
        if block not in self._lower:
            self._keep(block, [[] for _ in range(DEPTH)])
        levels = self._lower[block]
        self.size += 1
        node = leaf
        for level in levels:
            level.append(node)
            if len(level) % 2:
                return
            node = node_hash(level[-2], level[-1])
        self._push(node)

    def _push(self, node: bytes) -> None:
        """Add a node of level 8, and those above that it completes."""
        for level in self._upper:
            level.append(node)
            if len(level) % 2:
                return
            node = node_hash(level[-2], level[-1])
        self._upper.append([node])

    def _keep(self, block: int, levels: list[list[bytes]]) -> None:
        self._lower[block] = levels
        if len(self._lower) > RECENT:
            last = self.size >> DEPTH
            del self._lower[next(kept for kept in self._lower if kept != last)]


def _levels(leaves: Iterable[bytes]) -> list[list[bytes]]:
    """Return the nodes of a full block, from level 0 to 7."""
    levels = [list(leaves)]
    while len(levels) < DEPTH:
        below = levels[-1]
        levels.append([node_hash(below[at], below[at + 1]) for at in range(0, len(below) - 1, 2)])
    return levels


# --- roots and proofs, from nodes -----------------------------------------------------------------------------


def root(size: int, node: Node) -> bytes:
    """Return the root of the tree of `size` leaves with these nodes."""
    return hashlib.sha256().digest() if size == 0 else _subtree(0, size, node)


def _subtree(start: int, end: int, node: Node) -> bytes:
    """Return the hash above the leaves from `start` to before `end`."""
    size = end - start
    if size & (size - 1) == 0:
        level = size.bit_length() - 1
        return node(level, start >> level)
    middle = start + _split(size)
    return node_hash(_subtree(start, middle, node), _subtree(middle, end, node))


def _split(size: int) -> int:
    """Return the largest power of two below a size."""
    return 1 << (size - 1).bit_length() - 1


def _inclusion(index: int, size: int, node: Node) -> list[bytes]:
    """Return the hashes beside the way from a leaf to the root, from below: a receipt needs them for every answer."""
    proof, place, last, level = [], index, size - 1, 0
    while last:
        beside = place ^ 1
        if beside < last:
            proof.append(node(level, beside))
        elif beside == last:  # it may not be full
            proof.append(_subtree(beside << level, size, node))
        place, last, level = place >> 1, last >> 1, level + 1
    return proof


def _consistency(old: int, start: int, end: int, whole: bool, node: Node) -> list[bytes]:
    if old == end:
        return [] if whole else [_subtree(start, end, node)]
    middle = start + _split(end - start)
    if old <= middle:
        return [*_consistency(old, start, middle, whole, node), _subtree(middle, end, node)]
    return [*_consistency(old, middle, end, False, node), _subtree(start, middle, node)]


# --- checking proofs (RFC 9162, sections 2.1.3.2 and 2.1.4.2) ------------------------------------------------


def proves_inclusion(proof: Sequence[bytes], leaf: bytes, index: int, size: int, root: bytes) -> bool:
    """Whether the proof shows that this leaf hash is in the tree of this size and root."""
    if not 0 <= index < size:
        return False
    place, last, found = index, size - 1, leaf
    for step in proof:
        if last == 0:
            return False
        if place & 1 or place == last:
            found = node_hash(step, found)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = node_hash(found, step)
        place, last = place >> 1, last >> 1
    return last == 0 and found == root


def proves_consistency(proof: Sequence[bytes], old: int, old_root: bytes, new: int, new_root: bytes) -> bool:
    """Whether the proof shows that the tree of `old` leaves is the beginning of the tree of `new` leaves."""
    if not 0 <= old <= new:
        return False
    if old == new:
        return not proof and old_root == new_root
    if old == 0:
        return not proof and old_root == root(0, lambda level, index: b"")
    steps = [old_root, *proof] if old & (old - 1) == 0 else list(proof)
    if not steps:
        return False
    place, last = old - 1, new - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    before = after = steps[0]
    for step in steps[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            before, after = node_hash(step, before), node_hash(step, after)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            after = node_hash(after, step)
        place, last = place >> 1, last >> 1
    return last == 0 and before == old_root and after == new_root

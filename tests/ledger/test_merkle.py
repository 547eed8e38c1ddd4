"""The Merkle tree: the vectors of certificate transparency, and a second one by the RFC's definitions."""

import hashlib
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partage.ledger import merkle
from partage.ledger.merkle import BLOCK, RECENT, Tree, Unknown, leaf_hash, proves_consistency, proves_inclusion

# --- the published vectors: eight leaves, with the roots after each, and some proofs --------------------------

LEAVES = [
    bytes.fromhex(leaf)
    for leaf in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
A, B, C, D, E, F = (
    "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
    "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
)
INCLUSION = [  # index, size, proof
    (0, 1, []),
    (0, 8, [A, B, C]),
    (5, 8, [D, E, ROOTS[3]]),
    (2, 3, [ROOTS[1]]),
    (1, 5, [ROOTS[0], B, D]),
]
CONSISTENCY = [  # old size, new size, proof
    (1, 1, []),
    (1, 8, [A, B, C]),
    (6, 8, [F, E, ROOTS[3]]),
    (2, 5, [B, D]),
]


def published() -> Tree:
    return Tree(entries=LEAVES)


def test_roots_are_the_published_ones() -> None:
    tree = published()
    assert tree.root(0).hex() == Tree().root().hex() == EMPTY
    assert [tree.root(size).hex() for size in range(1, 9)] == ROOTS
    assert [Tree(entries=LEAVES[:size]).root().hex() for size in range(1, 9)] == ROOTS


@pytest.mark.parametrize(("index", "size", "proof"), INCLUSION)
def test_inclusion_proofs_are_the_published_ones(index: int, size: int, proof: list[str]) -> None:
    found = published().inclusion(index, size)
    assert [step.hex() for step in found] == proof
    assert proves_inclusion(found, leaf_hash(LEAVES[index]), index, size, bytes.fromhex(ROOTS[size - 1]))


@pytest.mark.parametrize(("old", "new", "proof"), CONSISTENCY)
def test_consistency_proofs_are_the_published_ones(old: int, new: int, proof: list[str]) -> None:
    found = published().consistency(old, new)
    assert [step.hex() for step in found] == proof
    roots = [bytes.fromhex(ROOTS[size - 1]) for size in (old, new)]
    assert proves_consistency(found, old, roots[0], new, roots[1])


# --- the oracle: RFC 6962, sections 2.1 to 2.1.2, word for word ------------------------------------------------


def mth(leaves: Sequence[bytes]) -> bytes:
    """MTH(D[n])."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    k = split(len(leaves))
    return hashlib.sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def split(n: int) -> int:
    """The largest power of two smaller than n."""
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def path(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    """PATH(m, D[n])."""
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if m < k:
        return [*path(m, leaves[:k]), mth(leaves[k:])]
    return [*path(m - k, leaves[k:]), mth(leaves[:k])]


def subproof(m: int, leaves: Sequence[bytes], complete: bool) -> list[bytes]:
    """SUBPROOF(m, D[n], b); PROOF(m, D[n]) is SUBPROOF(m, D[n], true)."""
    n = len(leaves)
    if m == n:
        return [] if complete else [mth(leaves)]
    k = split(n)
    if m <= k:
        return [*subproof(m, leaves[:k], complete), mth(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), mth(leaves[:k])]


def grown(size: int, salt: int = 0) -> list[bytes]:
    """Different leaves, as long as row hashes."""
    return [hashlib.sha256(b"%d %d" % (salt, number)).digest() for number in range(size)]


sizes = st.one_of(st.integers(1, 70), st.sampled_from([BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 3, 700]))


@given(st.data(), sizes)
@settings(max_examples=80)
def test_proofs_are_those_of_the_definitions_and_prove_what_is_true(data: st.DataObject, size: int) -> None:
    leaves = grown(size)
    tree = Tree(entries=leaves)
    index, old = data.draw(st.integers(0, size - 1)), data.draw(st.integers(1, size))
    assert tree.root() == mth(leaves)
    assert tree.root(old) == mth(leaves[:old])
    inclusion, consistency = tree.inclusion(index, size), tree.consistency(old, size)
    assert inclusion == path(index, leaves)
    assert consistency == subproof(old, leaves, True)
    assert proves_inclusion(inclusion, leaf_hash(leaves[index]), index, size, tree.root())
    assert proves_consistency(consistency, old, tree.root(old), size, tree.root())
    assert proves_consistency([], 0, tree.root(0), size, tree.root())


def damaged(data: st.DataObject, proof: list[bytes]) -> list[bytes]:
    """A proof with something changed: a bit, its length, its order."""
    bad = list(proof)
    kind = data.draw(st.sampled_from(["flip", "cut", "longer", "swap", "short", "repeat"] if bad else ["longer"]))
    at = data.draw(st.integers(0, len(bad) - 1)) if bad else 0
    if kind == "flip":
        bit = data.draw(st.integers(0, 255))
        bad[at] = (int.from_bytes(bad[at], "big") ^ 1 << bit).to_bytes(32, "big")
    elif kind == "cut":
        del bad[at]
    elif kind == "longer":
        bad.insert(at, data.draw(st.sampled_from([*proof, bytes(32), b""])))
    elif kind == "swap":
        bad.reverse()
    elif kind == "short":
        bad[at] = bad[at][:31]
    else:
        bad.append(bad[-1])
    return bad


@given(st.data(), st.integers(1, 70))
@settings(max_examples=150)
def test_a_damaged_proof_proves_nothing(data: st.DataObject, size: int) -> None:
    leaves = grown(size)
    tree = Tree(entries=leaves)
    index, old = data.draw(st.integers(0, size - 1)), data.draw(st.integers(1, size))
    inclusion, consistency = tree.inclusion(index, size), tree.consistency(old, size)
    bad = damaged(data, inclusion)
    assert bad == inclusion or not proves_inclusion(bad, leaf_hash(leaves[index]), index, size, tree.root())
    bad = damaged(data, consistency)
    assert bad == consistency or not proves_consistency(bad, old, tree.root(old), size, tree.root())


@given(st.data(), st.integers(2, 70))
@settings(max_examples=150)
def test_no_proof_of_another_statement_proves_a_false_one(data: st.DataObject, size: int) -> None:
    """Every proof that the two ledgers offer is tried on statements that are not true."""
    fork = data.draw(st.integers(0, size - 1))  # where the other ledger begins to differ
    leaves = grown(size)
    other = leaves[:fork] + grown(size - fork, salt=1)
    trees = Tree(entries=leaves), Tree(entries=other)
    index, wrong = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size - 1))
    old = data.draw(st.integers(fork + 1, size))
    for tree in trees:
        proof = tree.inclusion(index, size)
        for place, leaf, root in [
            (wrong, leaves[index], trees[0].root()),
            (index, leaves[wrong], trees[0].root()),
            (index, other[index], trees[0].root()),
        ]:
            true = leaves[place] == leaf
            assert true or not proves_inclusion(proof, leaf_hash(leaf), place, size, root)
        for first, second in (trees, trees[::-1]):
            steps = tree.consistency(old, size)
            assert not proves_consistency(steps, old, first.root(old), size, second.root())
            assert not proves_consistency(steps, size, second.root(), old, first.root(old))


@given(st.data(), st.integers(1, 70))
@settings(max_examples=100)
def test_wrong_sizes_are_refused(data: st.DataObject, size: int) -> None:
    """A proof for one size is one for another only where the definitions give the same proof for both."""
    leaves = grown(size + 8)
    tree = Tree(entries=leaves)
    index, old = data.draw(st.integers(0, size - 1)), data.draw(st.integers(1, size))
    for claimed in range(1, size + 8):
        true = claimed == size
        inclusion = tree.inclusion(index, size)
        found = proves_inclusion(inclusion, leaf_hash(leaves[index]), index, claimed, tree.root(claimed))
        assert found == (true or (index < claimed and inclusion == tree.inclusion(index, claimed)))
        consistency = tree.consistency(old, size)
        found = proves_consistency(consistency, old, tree.root(old), claimed, tree.root(claimed))
        assert found == (true or (old <= claimed and consistency == tree.consistency(old, claimed)))


@pytest.mark.parametrize(("index", "size"), [(-1, 4), (4, 4), (0, 0), (5, 4)])
def test_an_index_outside_the_tree_is_not_in_it(index: int, size: int) -> None:
    tree = Tree(entries=LEAVES)
    assert not proves_inclusion([], leaf_hash(LEAVES[0]), index, size, tree.root(size))


@pytest.mark.parametrize(("old", "new"), [(-1, 4), (5, 4)])
def test_sizes_that_cannot_be_are_not_consistent(old: int, new: int) -> None:
    tree = published()
    assert not proves_consistency([], old, tree.root(4), new, tree.root(4))


def test_an_empty_tree_is_the_beginning_of_every_tree_and_needs_no_proof() -> None:
    tree = published()
    assert tree.consistency(0, 8) == []
    assert not proves_consistency([bytes(32)], 0, tree.root(0), 8, tree.root())
    assert not proves_consistency([], 0, bytes(32), 8, tree.root())
    assert not proves_consistency([], 3, tree.root(3), 8, tree.root())


# --- blocks: what is not in memory is asked for, dumped and loaded ---------------------------------------------


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK - 1, 5 * BLOCK + 17])
def test_a_tree_that_was_dumped_and_loaded_goes_on_alike(size: int) -> None:
    leaves = grown(size + 300)
    tree = Tree(entries=leaves[:size])
    again = Tree.load(*tree.dump())
    assert (again.size, again.root(), again.dump()) == (size, tree.root(), tree.dump())
    for leaf in leaves[size:]:
        tree.append(leaf)
        again.append(leaf)
    assert again.root() == tree.root() == mth(leaves)
    assert again.dump() == tree.dump()


def asked(tree: Tree, leaves: list[bytes], index: int, size: int) -> list[bytes]:
    """Return a proof, giving the blocks that the tree asks for."""
    for _ in range(4):
        try:
            return tree.inclusion(index, size)
        except Unknown as unknown:
            block = unknown.block
        assert tree.recall(block, leaves[block * BLOCK : (block + 1) * BLOCK])
    raise AssertionError("the tree asks for ever")


def test_blocks_that_were_forgotten_are_asked_for() -> None:
    leaves = grown((RECENT + 3) * BLOCK + 5)
    tree = Tree(entries=leaves)
    assert len(tree._lower) <= RECENT
    with pytest.raises(Unknown):
        tree.inclusion(0, len(leaves))
    everything = Tree.load(*tree.dump())
    for index in (0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 7, len(leaves) - 6, len(leaves) - 1):
        proof = asked(everything, leaves, index, len(leaves))
        assert proof == path(index, leaves)
    old = 2 * BLOCK + 3
    with pytest.raises(Unknown) as caught:
        Tree.load(*tree.dump()).consistency(old, len(leaves))
    assert caught.value.block == 2


def test_other_rows_than_were_added_are_not_taken_back() -> None:
    leaves = grown(3 * BLOCK)
    tree = Tree.load(*Tree(entries=leaves).dump())
    block = leaves[BLOCK : 2 * BLOCK]
    assert not tree.recall(0, block)
    assert not tree.recall(1, block[:-1])
    assert not tree.recall(1, [*block, block[0]])
    assert not tree.recall(1, [*block[:-1], bytes(32)])
    assert not tree.recall(1, [])
    with pytest.raises(Unknown):
        tree.inclusion(BLOCK, 3 * BLOCK)
    assert tree.recall(1, block)
    assert tree.inclusion(BLOCK, 3 * BLOCK) == path(BLOCK, leaves)


def test_a_leaf_is_never_a_node() -> None:
    """The prefixes keep the two apart: an entry that looks like two nodes does not become their parent."""
    left, right = leaf_hash(b"a"), leaf_hash(b"b")
    assert leaf_hash(left + right) != merkle.node_hash(left, right)
    assert merkle.node_hash(left, right) != merkle.node_hash(right, left)

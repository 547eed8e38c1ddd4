"""Public keys with which one signature can be right for every message are refused, wherever a key comes from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage.errors import InputError
from partage.ledger.checkpoints import PLAIN, public_key
from partage.ledger.fields import checked_key
from partage.ledger.keys import Key, encoded, public_bytes, signed_by
from partage.ledger.refusals import Refused
from partage.ledger.verify import verify

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # of -1

Point = tuple[int, int]


def add(one: Point, two: Point) -> Point:
    """The sum of two points of the curve, by RFC 8032."""
    (a, b), (c, d) = one, two
    twist = D * a * b * c * d
    return (a * d + b * c) * pow(1 + twist, -1, P) % P, (b * d + a * c) * pow(1 - twist, -1, P) % P


def point(y: int) -> Point | None:
    """A point with this y, if there is one."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    for found in (x, x * ROOT % P):
        if found * found % P == square:
            return found, y
    return None


def small_points() -> set[Point]:
    """All eight points whose order divides 8: the multiples of what any point is times the large prime order."""
    order = 2**252 + 27742317777372353535851937790883648493
    for y in range(2, 100):
        if (start := point(y)) is None:
            continue
        found: Point = (0, 1)
        for bit in bin(order)[2:]:
            found = add(found, found)
            if bit == "1":
                found = add(found, start)
        multiples, at = {(0, 1)}, found
        while at != (0, 1):
            multiples.add(at)
            at = add(at, found)
        if len(multiples) == 8:
            return multiples
    raise AssertionError


def written(y: int, sign: int) -> str:
    return encoded((y | sign << 255).to_bytes(32, "little"))


WEAK = sorted({written(y, sign) for _, y in small_points() for sign in (0, 1)})
NOT_CANONICAL = [written(y, sign) for y in range(P, 2**255) for sign in (0, 1)]


def test_there_are_five_small_ones_apart_from_the_sign() -> None:
    assert len(small_points()) == 8
    assert len(WEAK) == 2 * 5


@pytest.mark.parametrize("public", WEAK + NOT_CANONICAL)
def test_weak_keys_are_refused(public: str) -> None:
    assert public_bytes(public) is None
    assert public_key(public) is None
    with pytest.raises(Refused, match="key"):
        checked_key(public)
    with pytest.raises(InputError, match="key"):
        verify([], key=public)


def test_the_signature_that_is_right_for_every_message_is_refused() -> None:
    identity = written(1, 0)
    everything = (1).to_bytes(32, "little") + bytes(32)
    assert not signed_by(identity, everything, b"one message")
    assert not signed_by(identity, everything, b"another")


@given(st.binary(min_size=32, max_size=32))
def test_keys_of_members_are_taken(secret: bytes) -> None:
    key = Key(secret)
    assert public_bytes(key.public) is not None
    assert checked_key(key.public) == public_key(key.public) == key.public
    raw = public_bytes(key.public) or b""
    assert public_key(f"partage/c1+00000000+{encoded(PLAIN + raw)}") == key.public
    assert signed_by(key.public, key.sign(b"message"), b"message")

"""Signed requests: what a member signs with its own key, so that nobody else can ask for something in its name.

The signature (Ed25519) is over these bytes:

    partage/request/v1 NEWLINE JSON

The JSON is canonical: keys sorted, no spaces, no escapes but those that JSON needs, numbers as the ledger has them (a
reward of one is 1.0). Every statement has `collaboration`, `kind` and `number`; all but `join` have the `agent`. Arms
are named, lists of arms are sorted, and what was left out of a request is null. The other fields are, by kind:

======== ================================================================
join     name, shares, key, tie_commitment; horizon, pace if declared
ask      request, explore_only
tell     pull, reward
commits  request, runs (a list of {arm, pulls, version}), unnamed
consent  request, shares
attach   request, arm, rewards
leave
reveal   nonce
rotate   key
======== ================================================================

A request carries number and signature in the header `Partage-Signature: NUMBER BASE64`, and the row of the ledger has
both, with everything that was signed. The number grows with each signed request of a member.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from partage.ledger.events import Run
from partage.ledger.keys import Key, decoded, encoded, signed_by

HEADER = "Partage-Signature"
LARGEST_NUMBER = 2**53 - 1  # every JSON reader keeps whole numbers of this size exact

_SIGNATURE_BYTES = 64
_FIELD = re.compile(r"([1-9][0-9]{0,15}) ([A-Za-z0-9+/]{86}==)")


class Signed(NamedTuple):
    """The number and the signature, in base64, of a request."""

    number: int
    signature: str


def statement(kind: str, collaboration: str, number: int, /, **contents: Any) -> bytes:
    r"""Return the bytes that a member signs.

    >>> statement("tell", "c1", 7, agent="a1", pull=3, reward=1.0)
    b'partage/request/v1\n{"agent":"a1","collaboration":"c1","kind":"tell","number":7,"pull":3,"reward":1.0}'
    """
    stated = {"kind": kind, "collaboration": collaboration, "number": number, **contents}
    return b"partage/request/v1\n" + msgspec.json.encode(stated, order="deterministic")


def sign(private: Key, kind: str, collaboration: str, number: int, /, **contents: Any) -> Signed:
    """Return the signature of a request."""
    return Signed(number, encoded(private.sign(statement(kind, collaboration, number, **contents))))


def is_signed(public: str, signed: Signed, kind: str, collaboration: str, /, **contents: Any) -> bool:
    """Whether the owner of this public key signed this request."""
    signature = decoded(signed.signature, _SIGNATURE_BYTES)
    if signature is None or not 0 < signed.number <= LARGEST_NUMBER:
        return False
    return signed_by(public, signature, statement(kind, collaboration, signed.number, **contents))


def named(shares: Iterable[int], arms: Sequence[str]) -> list[str]:
    """Return arms as a statement has them."""
    return sorted(arms[arm] for arm in shares)


def named_runs(runs: Iterable[Run], arms: Sequence[str]) -> list[dict[str, Any]]:
    """Return commit pulls as a statement has them."""
    return [{"version": run.version, "arm": arms[run.arm], "pulls": run.pulls} for run in runs]


def header_of(signed: Signed) -> str:
    """Return the header's value."""
    return f"{signed.number} {signed.signature}"


def read_header(value: str) -> Signed | None:
    """Return what the header says; None if it is not of its form."""
    found = _FIELD.fullmatch(value)
    return None if found is None else Signed(int(found[1]), found[2])

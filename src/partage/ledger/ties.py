"""The tie order, drawn together: commitments, and the key that follows from what they hide (format 5).

The operator and the members each commit to 16 random bytes, its *seed* and their *nonces*, by their SHA-256. All of
them are revealed only when nobody can choose theirs any more:

    tie_seed = SHA-256("partage/tie/v1", seed, nonces in order of joining), the first 16 bytes
"""

import hashlib
import re
from collections.abc import Iterable

REVEAL_SECONDS = 2.0  # how long the draw waits for the members who have not revealed their nonces
PART_BYTES = 16  # of a seed or a nonce

_PART = re.compile("[0-9a-f]{32}")
_COMMITMENT = re.compile("[0-9a-f]{64}")


def commitment_to(part: bytes) -> str:
    """Return the commitment to a seed or a nonce: its SHA-256, in hex."""
    return hashlib.sha256(part).hexdigest()


def tie_seed_of(seed: bytes, nonces: Iterable[bytes]) -> str:
    """Return the key of the tie order, in hex.

    >>> tie_seed_of(bytes(16), [bytes(16)])
    '8dfcc1111b0b4ffd24439a7e90d1b806'
    """
    return hashlib.sha256(b"partage/tie/v1" + seed + b"".join(nonces)).hexdigest()[: 2 * PART_BYTES]


def is_part(text: object) -> bool:
    """Whether a text is a seed or a nonce in hex."""
    return isinstance(text, str) and _PART.fullmatch(text) is not None


def is_commitment(text: object) -> bool:
    """Whether a text is a commitment in hex."""
    return isinstance(text, str) and _COMMITMENT.fullmatch(text) is not None

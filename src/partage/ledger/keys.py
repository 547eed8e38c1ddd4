"""Ed25519 keys (RFC 8032). Public keys, private keys and signatures travel in base64."""

import base64
import binascii

# `cryptography` is imported where it is used: that takes 20 ms, which commands without keys save.

KEY_BYTES, SIGNATURE_BYTES = 32, 64

_PRIME = 2**255 - 19
_OF_ORDER_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
_SMALL = {0, 1, _PRIME - 1, _OF_ORDER_8, _PRIME - _OF_ORDER_8}  # y of the points whose order divides 8


class Key:
    """A private key. Its repr does not show it."""

    def __init__(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key = Ed25519PrivateKey.from_private_bytes(secret)
        self.public = encoded(self._key.public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"Key(public={self.public!r})"


def signed_by(public: str, signature: bytes, message: bytes) -> bool:
    """Whether the owner of a public key signed this message."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    raw = public_bytes(public)
    if raw is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def public_bytes(public: str) -> bytes | None:
    """Return the 32 bytes of a public key in base64; None if it is none, or proves nothing about who signed.

    If the point's order is small, one signature can be right for every message, so such keys are refused, and so are
    other encodings of a point than its own.
    """
    raw = decoded(public, KEY_BYTES)
    if raw is None:
        return None
    y = int.from_bytes(raw, "little") % 2**255  # the highest bit is the sign of x
    return None if y >= _PRIME or y in _SMALL else raw


def encoded(content: bytes) -> str:
    """Return bytes in base64."""
    return binascii.b2a_base64(content, newline=False).decode()


def decoded(text: str, length: int) -> bytes | None:
    """Return this many bytes from base64; None if the text is anything else."""
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return content if len(content) == length and encoded(content) == text else None

"""Secrets: how tokens, invite codes and sessions are made. The store has only their hashes."""

import base64
import hashlib
import hmac
from collections.abc import Callable

OPERATOR, AGENT, INVITE, SESSION = "pt_op_", "pt_ag_", "pt_in_", "pt_se_"


def fresh(prefix: str, random_bytes: Callable[[int], bytes]) -> str:
    """Return a new secret of 256 bits; the prefix shows what it is for."""
    return prefix + base64.urlsafe_b64encode(random_bytes(32)).rstrip(b"=").decode()


def derived(prefix: str, secret: str, *parts: str) -> str:
    """Return the secret of a request: the same for everyone who knows `secret`, so an answer can be repeated."""
    digest = hmac.digest(secret.encode(), "\n".join(parts).encode(), "sha256")
    return prefix + digest.hex()


def same(given: str, expected: str) -> bool:
    """Whether two secrets are the same, in a time that does not say where they differ.

    >>> same("pt_op_x", "pt_op_x"), same("é", "pt_op_x")
    (True, False)
    """
    return hmac.compare_digest(given.encode(), expected.encode())


def hashed(secret: str) -> str:
    """Return the hash that is stored. The secret has 256 random bits, so a plain hash cannot be reversed."""
    return hashlib.sha256(secret.encode()).hexdigest()

"""The server's secret: from it follow the key of all checkpoints, tie orders, tokens and the salts of a close."""

import hashlib
import hmac

from partage.ledger.keys import Key
from partage.service.runtime import secrets
from partage.service.runtime.system import System
from partage.service.store import Store, StoreError

BYTES, CHECK_BYTES = 32, 4


class ServerSecret:
    """The secret of a store, made at the first start and the same in every process.

    Attributes
    ----------
    key
        Signs the checkpoints of every collaboration.
    """

    def __init__(self, store: Store, system: System) -> None:
        made = system.random_bytes(BYTES)
        stored = store.set_meta_once("secret", (made + _check(made)).hex())
        self._secret = _read(stored)
        self.key = Key(self._derived("partage/log-key/v1"))

    def tie_seed(self, collaboration: str) -> bytes:
        """Return the operator's part of a collaboration's tie order: 16 bytes."""
        return self._derived(f"partage/tie-seed/v1\n{collaboration}")[:16]

    def tallies(self, collaboration: str) -> bytes:
        """Return what the salts of a collaboration's tallies follow from, at its close."""
        return self._derived(f"partage/tallies/v1\n{collaboration}")

    def token(self, secret: str, *request: str) -> str:
        """Return the agent's token that a request with this secret makes, the same if it is repeated.

        Who knows the secret and the request, but not the server's secret, cannot compute it.
        """
        key = self._derived(f"partage/token/v1\n{secrets.hashed(secret)}")
        return secrets.derived(secrets.AGENT, key.hex(), *request)

    def _derived(self, purpose: str) -> bytes:
        return hmac.digest(self._secret, purpose.encode(), "sha256")


def _read(stored: str) -> bytes:
    """Return the secret. A damaged one must not be used: members would take its signatures for a fork."""
    try:
        content = bytes.fromhex(stored)
    except ValueError:
        content = b""
    secret = content[:BYTES]
    if len(secret) != BYTES or content[BYTES:] != _check(secret):
        raise StoreError("The server's secret in the database is damaged; restore the database from a backup.")
    return secret


def _check(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()[:CHECK_BYTES]

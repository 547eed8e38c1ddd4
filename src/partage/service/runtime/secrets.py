"""Who may do what: tokens, invites and sessions. Only their hashes are kept."""

import hashlib
import hmac
import secrets
from typing import NamedTuple

from partage.ledger.refusals import Refused, forbidden, missing

OPERATOR, AGENT, INVITE, SESSION = "pt_op_", "pt_ag_", "pt_in_", "pt_se_"


class Who(NamedTuple):
    """Who speaks: the operator, or an agent of a collaboration."""

    collaboration: str | None = None
    agent: str | None = None

    @property
    def operator(self) -> bool:
        """Whether it is the operator."""
        return self.agent is None


def fresh(prefix: str) -> str:
    """Return a new secret of 256 bits; the prefix tells people what it opens."""
    return prefix + secrets.token_urlsafe(32)


def derived(prefix: str, secret: str, *parts: str) -> str:
    """Return the secret of a request, the same for whoever shows `secret` again: an answer can be repeated."""
    digest = hmac.digest(secret.encode(), "\n".join(parts).encode(), "sha256")
    return prefix + digest.hex()


def hashed(secret: str) -> str:
    """Return what is kept of a secret. It has 256 random bits, so a plain hash cannot be guessed back."""
    return hashlib.sha256(secret.encode()).hexdigest()


def needs_operator(who: Who) -> None:
    """Refuse all but the operator."""
    if not who.operator:
        raise forbidden("Only the operator may do this.")


def needs_agent(who: Who, collaboration: str) -> str:
    """Return the agent of this collaboration, or refuse."""
    if who.agent is None:
        raise forbidden("Only an agent of this collaboration may do this: use the token that joining gave you.")
    if who.collaboration != collaboration:
        raise forbidden("Your token is for another collaboration.")
    return who.agent


def needs_reader(who: Who, collaboration: str) -> None:
    """Refuse all but the operator and the agents of this collaboration."""
    if not who.operator and who.collaboration != collaboration:
        raise forbidden("Your token is for another collaboration.")


def no_such_collaboration() -> Refused:
    """Return the refusal of an id that nothing has."""
    return missing("There is no such collaboration.")

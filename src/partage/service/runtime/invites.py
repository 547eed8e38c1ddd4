"""Invites: single-use codes that let an agent join."""

from partage.ledger.state import State
from partage.service.store import Invite


def expiring(invites: list[Invite], state: State, now: int) -> list[Invite]:
    """Return the invites that may still be used."""
    return [i for i in invites if not i.revoked and i.expires > now and i.id not in state.invites]

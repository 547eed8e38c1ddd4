"""Errors of the client.

PartageError
├── Refused                 the controller refused a request: `status`, `code`, `sentence`, `field`
│   ├── Closed              the collaboration is closed
│   └── HorizonReached      the agent has no pulls left
└── Unreachable             the controller did not answer, despite retries
"""

from partage.errors import PartageError
from partage.ledger.refusals import Refused

__all__ = ["Closed", "HorizonReached", "Refused", "Unreachable"]


class Closed(Refused):
    """The collaboration is closed: no agent can pull any more."""

    def __init__(self) -> None:
        sentence = "This collaboration is closed; its board, settlement and ledger can still be read."
        super().__init__(409, "closed", sentence)


class HorizonReached(Refused):
    """The agent has used all pulls of its horizon."""

    def __init__(self, horizon: int) -> None:
        super().__init__(409, "horizon_used", f"All {horizon:,} pulls of the horizon are used.")


class Unreachable(PartageError):
    """The controller did not answer."""

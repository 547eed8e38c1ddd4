"""What can go wrong for a client, beyond what its own input can.

PartageError
├── Refused                 the controller said no; the sentence says why, and `status` is HTTP's
│   ├── Closed              the collaboration is closed
│   └── HorizonReached      she has no pull left
└── Unreachable             no answer, though it was tried again and again
"""

from partage.errors import PartageError
from partage.ledger.refusals import Refused

__all__ = ["Closed", "HorizonReached", "Refused", "Unreachable"]


class Closed(Refused):
    """The collaboration is closed: nobody pulls any more."""

    def __init__(self) -> None:
        super().__init__(409, "This collaboration is closed; its board, settlement and ledger can still be read.")


class HorizonReached(Refused):
    """All pulls of the horizon are used."""

    def __init__(self, horizon: int) -> None:
        super().__init__(409, f"All {horizon:,} pulls of the horizon are used.")


class Unreachable(PartageError):
    """The controller gave no answer for longer than the client's patience."""

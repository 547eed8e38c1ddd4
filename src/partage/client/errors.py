"""Errors of the client.

PartageError
├── Refused                 the controller refused a request: `status`, `code`, `sentence`, `field`
│   ├── Closed              the collaboration is closed
│   └── HorizonReached      the agent has no pulls left
├── Unreachable             the controller did not answer, despite retries
└── Forked                  the controller does not keep the ledger that it signed
"""

from collections.abc import Sequence

from partage.errors import PartageError
from partage.ledger.refusals import Refused

__all__ = ["Closed", "Forked", "HorizonReached", "Refused", "Unreachable"]


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


class Forked(PartageError):
    """The controller does not keep the ledger that it signed. The agent sends nothing more.

    Attributes
    ----------
    sentence
        What was promised and what was shown.
    evidence
        The checkpoint that the agent kept, and the one it was shown, as the controller sent them.
    """

    def __init__(self, sentence: str, evidence: Sequence[str] = ()) -> None:
        super().__init__(
            f"{sentence} This agent sends nothing more. Its state file has the checkpoints in question as evidence: "
            "keep it, compare yours with those of other members (partage agent compare), and ask the operator."
        )
        self.sentence, self.evidence = sentence, list(evidence)

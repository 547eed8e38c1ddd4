"""A turn: the state that a move reads and changes, the time, and the events that it wrote."""

from collections.abc import Callable
from typing import TypeVar

from partage.ledger.events import AnyEvent, Event
from partage.ledger.refusals import Refused, conflict
from partage.ledger.signatures import Signed
from partage.ledger.state import State

_E = TypeVar("_E", bound=Event)


def order_pending(sentence: str) -> Refused:
    """Return the refusal of a pull before the tie order is fixed."""
    return conflict("order_pending", sentence)


def _no_seed() -> bytes:
    raise order_pending("The tie order is not fixed yet.")


class Turn:
    """A move in progress: the state that it reads and changes, the time, and the events that it wrote.

    `seed` returns the operator's part of the tie order, which the first event commits to. `signed` is the signature
    of the member's request, if it signed it.
    """

    signed: Signed | None = None

    def __init__(self, state: State, now: int, seed: Callable[[], bytes] = _no_seed) -> None:
        self.state = state
        self.seed = seed
        self.now = max(now, state.time)  # the ledger's time never decreases, even if the clock does
        self.events: list[AnyEvent] = []

    def write(self, kind: type[_E], **fields: object) -> _E:
        """Write an event and add it to the state."""
        state = self.state
        event = kind(seq=state.seq + 1, time=self.now, format=state.config.format, **fields)
        written = state.record(event)  # type: ignore[arg-type]
        self.events.append(written)
        return written  # type: ignore[return-value]

    def write_asked(self, kind: type[_E], **fields: object) -> _E:
        """Write the event that a member asked for, with its signature."""
        if self.signed is not None and self.state.format > 4:
            fields |= {"number": self.signed.number, "signature": self.signed.signature}
        return self.write(kind, **fields)

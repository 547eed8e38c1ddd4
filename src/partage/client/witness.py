"""Witnessing: an agent cosigns the checkpoint it keeps, and compares it with those of the other members.

The controller relays the cosigned checkpoints. It is not trusted with them: only what the ledger's key signed counts,
and an operator who shows two members different ledgers must keep their checkpoints apart for ever.
"""

import logging
import math
from collections.abc import Callable

import msgspec

from partage.client.calls import Calls
from partage.client.effects import Steps
from partage.client.errors import Refused, Unreachable
from partage.client.receipts import Receipts
from partage.client.statefile import AgentState
from partage.ledger.checkpoints import cosigned

log = logging.getLogger("partage.client")

EVERY = 60.0  # seconds between two exchanges
MOST = 8  # checkpoints of others that are compared in one exchange, chosen at random


def cosigned_note(saved: AgentState, time: float) -> str:
    """Return the checkpoint that an agent keeps, cosigned by it if it has a key; empty if it keeps none."""
    key = saved.private_key
    if not saved.checkpoint or key is None:
        return saved.checkpoint
    return cosigned(saved.checkpoint, saved.collaboration, saved.agent, key, int(time))


class Relayed(msgspec.Struct):
    """The newest checkpoint that a member cosigned."""

    agent: str
    name: str
    checkpoint: str


class Witness:
    """An agent as a witness of the ledger.

    Parameters
    ----------
    saved, calls, receipts
        The agent, its calls to the controller, and the checkpoint it keeps.
    clock, wall_clock
        The time in seconds: since some moment, and since 1970.
    random_bytes
        Returns this many unpredictable bytes.
    """

    def __init__(
        self,
        saved: AgentState,
        calls: Calls,
        receipts: Receipts,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._saved, self._calls, self._receipts = saved, calls, receipts
        self._clock, self._wall_clock, self._random_bytes = clock, wall_clock, random_bytes
        self._due = -math.inf
        self._relays = True  # whether the controller has a relay
        self._given = ""  # the last checkpoint that was given to it
        self._compared: dict[str, str] = {}  # by member: the last checkpoint that was compared

    def note(self) -> str:
        """Return the kept checkpoint, cosigned by the agent if it has a key; empty if there is none."""
        return cosigned_note(self._saved, self._wall_clock())

    def exchange_if_due(self) -> Steps[None]:
        """Exchange checkpoints with the other members, if that was not done for a minute."""
        if self._clock() >= self._due:
            yield from self.exchange()

    def exchange(self) -> Steps[None]:
        """Give the controller the kept checkpoint, and compare it with those of the other members.

        A controller that does not answer is no reason to stop; one that shows two ledgers is.
        """
        self._due = self._clock() + EVERY
        if not self._saved.checkpoint or not self._relays:
            return
        try:
            yield from self._give()
            if self._relays:
                yield from self._compare()
        except Unreachable as error:
            log.debug("Checkpoints were not exchanged: %s", error)
        except Refused as refused:
            log.warning("The controller did not let members compare their checkpoints: %s", refused)

    def _give(self) -> Steps[None]:
        note = self._saved.checkpoint
        if note == self._given or not self._saved.key:
            return
        try:
            yield from self._calls.send("PUT", "/cosignature", {"checkpoint": self.note()}, patience=0.0)
        except Refused as refused:
            yield from self._receipts.check_ahead(refused)
            self._relays = refused.status not in (404, 405)  # an earlier release has no relay
            log.debug("The controller did not take the cosigned checkpoint: %s", refused)
        else:
            self._given = note

    def _compare(self) -> Steps[None]:
        answer = yield from self._calls.send("GET", "/cosignatures", patience=0.0)
        others = [
            one
            for one in self._calls.decode(list[Relayed], answer)
            if one.agent != self._saved.agent and self._compared.get(one.agent) != one.checkpoint
        ]
        for _ in range(min(MOST, len(others))):
            one = others.pop(int.from_bytes(self._random_bytes(4)) % len(others))
            yield from self._receipts.compare(one.checkpoint, f"{one.name} (agent {one.agent})")
            self._compared[one.agent] = one.checkpoint

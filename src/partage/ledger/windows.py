"""Which commits the board allowed: what led and what was open, at each version that can still be reported on."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import msgspec
from msgspec import Struct

Moment = tuple[int, int, str]
Consents = Sequence[tuple[int, str]]  # (seq, arms as bits), in order


class Window(Struct, gc=False):
    """One version of the board: every change of the leader and of the open arms while it lasted.

    A moment is (seq of the event that made the change, the arm that a commit pulls or -1, the open arms as bits).
    `until` is when the next version came.
    """

    version: int
    moments: list[Moment] = msgspec.field(default_factory=list)
    until: int | None = None


class Lookup:
    """What is known of the commits that one window allows.

    A member can change its consent, and with it the open arms, as often as it likes within one version. What a window
    has recorded never changes, so each moment is looked at once for each agent and arm, however often it is asked.
    """

    def __init__(self) -> None:
        self._listed = 0
        self._led: dict[int, list[int]] = {}  # the moments in which each arm led
        self._seen: dict[tuple[str, int], tuple[int, int]] = {}  # moments and events without success
        self._allowed: set[tuple[str, int]] = set()

    def allows(self, window: Window, end: int, agent: str, consents: Consents, arm: int) -> bool:
        """Whether the agent was ever to commit to this arm, in a window that lasts up to before event `end`."""
        moments = window.moments
        for place in range(self._listed, len(moments)):
            self._led.setdefault(moments[place][1], []).append(place)
        self._listed = len(moments)
        if (agent, arm) in self._allowed:
            return True
        led = self._led.get(arm, [])
        first, seen = self._seen.get((agent, arm), (0, 0))
        for index in range(first, len(led)):
            start, _, opened = moments[led[index]]
            over = moments[led[index] + 1][0] if led[index] + 1 < len(moments) else end
            blocking = int(opened, 16)
            if any(not blocking & int(shares, 16) for shares in _shared(consents, max(start, seen), over)):
                self._allowed.add((agent, arm))
                return True
            # The last moment may go on, and the agent may change its consent in it.
            self._seen[agent, arm] = index, over
        return False


def _shared(consents: Consents, start: int, end: int) -> list[str]:
    """Return what an agent shared at some moment from event `start` up to before event `end`, each as bits."""
    if start >= end:
        return []
    first = bisect_right(consents, start, key=_seq) - 1  # what it shared at the start, if it had joined
    last = bisect_left(consents, end, key=_seq)
    return [shares for _, shares in consents[max(0, first) : last]]


def _seq(consent: tuple[int, str]) -> int:
    return consent[0]

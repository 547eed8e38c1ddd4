"""Frames: the boards that the watchers of a collaboration get, each encoded once for all of them."""

from collections import deque

import msgspec

from partage.ledger.messages import BoardView
from partage.ledger.patches import patch_of

KEPT = 64  # patches; a watcher that is further behind gets the whole board


class Frames:
    """The boards that were shown one after another, and the patch from each to the next.

    Attributes
    ----------
    last
        The number of the newest frame; 0 before the first.
    seq
        The event after which the newest frame was taken.
    sent
        The bytes that watchers got; whoever counts resets it.
    """

    def __init__(self) -> None:
        self.last = self.seq = self.sent = 0
        self._view: BoardView | None = None
        self._whole: bytes | None = None
        self._patches: deque[bytes] = deque(maxlen=KEPT)  # the last of them makes the newest frame

    def take(self, seq: int, view: BoardView) -> None:
        """Make the board after this event the newest frame, if it differs from the one before."""
        self.seq = seq
        patch = [] if self._view is None else patch_of(self._view, view)
        if self._view is not None and not patch:
            return
        self.last += 1
        self._patches.append(msgspec.json.encode(patch))
        self._view, self._whole = view, None

    @property
    def whole(self) -> bytes:
        """The newest board as JSON."""
        if self._whole is None:
            self._whole = b"" if self._view is None else msgspec.json.encode(self._view)
        return self._whole

    def event(self, known: int = 0) -> bytes:
        """Return the events that bring a watcher to the newest frame: patches, or the whole board if that is less.

        `known` is the frame that the watcher has; with 0, it gets the whole board.
        """
        patches = self.patches(known)
        if patches is None:
            found = b"event: board\ndata: " + self.whole + b"\n\n"
        else:
            found = b"".join(b"event: patch\ndata: " + patch + b"\n\n" for patch in patches)
        self.sent += len(found)
        return found

    def patches(self, known: int) -> list[bytes] | None:
        """Return the patches from a frame to the newest; None if they are not kept, or longer than the board."""
        missing = self.last - known
        if not known or missing > len(self._patches):
            return None
        patches = [self._patches[place] for place in range(-missing, 0)]
        if missing > 1 and sum(map(len, patches)) >= len(self.whole):
            return None
        return patches

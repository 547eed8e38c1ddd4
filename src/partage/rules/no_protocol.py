"""Sharing without a protocol: what a user would otherwise do."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from partage.board import Board, Pull, Record
from partage.rules.two_ucb import highest_index


def seen_by(board: Board, own: Record) -> Record:
    """Return all that an agent has seen: the broadcasts and her own private pulls."""
    return Record(
        [public + private for public, private in zip(board.record.counts, own.counts, strict=True)],
        [public + private for public, private in zip(board.record.sums, own.sums, strict=True)],
    )


@dataclass(frozen=True)
class NoProtocol:
    """Each agent runs 2-UCB on her own pulls plus all broadcasts, and broadcasts whatever she happens to share."""

    name: ClassVar[str] = "no-protocol"
    private: ClassVar[bool] = True

    def decide(self, board: Board, shares: Collection[int], own: Record) -> Pull:
        """Pull the arm with the highest index by all she has seen; broadcast if she shares that arm."""
        arm = highest_index(board, range(board.arms), seen_by(board, own))
        return Pull(arm, share=arm in shares)

    def revise(self, board: Board) -> None:
        """Nothing is ever ruled out."""

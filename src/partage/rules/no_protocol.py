"""Sharing without a protocol: a baseline."""

from collections.abc import Collection
from dataclasses import dataclass

from partage.board import Board, Pull, Record
from partage.rules.rule import BuiltIn
from partage.rules.seeing import seen_by
from partage.rules.two_ucb import highest_index
from partage.tape import Draws


@dataclass(frozen=True)
class NoProtocol(BuiltIn):
    """Each agent runs 2-UCB on its own pulls plus all broadcasts, and broadcasts every pull of an arm it shares."""

    name = "no-protocol"
    summary = "2-UCB on everything an agent sees; every pull of a shared arm is broadcast."
    private = True
    kernel = "no_protocol"

    def decide(self, board: Board, shares: Collection[int], own: Record, draws: Draws | None = None) -> Pull:
        """Pull the arm with the highest index over all the agent has seen; broadcast if it shares that arm."""
        arm = highest_index(board, range(board.arms), seen_by(board, own))
        return Pull(arm, share=arm in shares)

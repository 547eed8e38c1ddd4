"""What rules that explore and commit have in common."""

import math
from collections.abc import Collection, Iterable

from partage.board import Board, Pull, Record
from partage.checks import number_from
from partage.rules.rule import Parameter
from partage.rules.seeing import seen_by
from partage.rules.two_ucb import highest_index


def commit(board: Board, own: Record | None = None) -> Pull:
    """Pull the leader and share nothing.

    Where nobody shares some arm, an agent that keeps its `own` record plays 2-UCB over such arms and the leader
    instead: its private record counts for those arms, and the public record plus its private pulls for the leader.
    """
    active = board.actives()
    leader = [board.leader()] if active else []
    if own is None:
        return Pull(leader[0], share=False)
    # An eliminated arm stays eliminated, even after its last sharer has left.
    hidden = [arm for arm in range(board.arms) if not board.shared[arm] and board.active[arm] >= board.public[arm]]
    if not hidden:
        return Pull(leader[0], share=False)
    return Pull(highest_index(board, hidden + leader, seen_by(board, own)), share=False)


def explore_or_commit(board: Board, shares: Collection[int], own: Record | None, opened: Iterable[int]) -> Pull:
    """Explore the least-broadcast open arm that the agent shares; commit if it shares none."""
    mine = [arm for arm in opened if arm in shares]
    return Pull(board.least(mine), share=True) if mine else commit(board, own)


def within_balance(board: Board, balance: float) -> list[int]:
    """Return the open arms: broadcast at most `balance` times as often as the least-broadcast active arm.

    Stalled arms do not hold the others back as long as two arms are left to compare. If only one is left, more of
    its rewards would decide nothing, so it waits.
    """
    standing = board.standing()
    if len(standing) < 2:
        return []
    if math.isinf(balance):
        return standing
    handed = [count + claims for count, claims in zip(board.counts, board.claims, strict=True)]
    most = balance * min(handed[arm] for arm in board.awaited(standing, at_least=2))
    return [arm for arm in standing if handed[arm] <= most]


def checked_balance(balance: object) -> float:
    """Return the balance as a float."""
    return number_from("The balance", balance, low=1, finite=False)


BALANCE = Parameter(
    name="balance",
    default=1.0,
    summary="how much more often than the least-broadcast active arm an arm may be broadcast and still be explored",
    allowed="a number of at least 1, or inf",
    check=checked_balance,
)

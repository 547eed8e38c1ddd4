"""Balanced-ETC: Algorithm 1 of the paper."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar

from partage.board import Board, Pull, Record
from partage.errors import InputError
from partage.game import Game
from partage.rules.no_protocol import seen_by
from partage.rules.two_ucb import highest_index
from partage.sharing import Sharing


def commit(board: Board, own: Record | None = None) -> Pull:
    """Pull the leader in silence.

    Where there are arms that nobody shares, an agent who keeps her `own` record plays 2-UCB over those and the
    leader instead: her private record for those, for the leader the public record plus her private pulls of it.
    """
    active = board.actives()
    leader = [board.best(active)] if active else []
    if own is None:
        return Pull(leader[0], share=False)
    # Eliminated stays eliminated, though its last sharer be gone.
    hidden = [arm for arm in range(board.arms) if not board.shared[arm] and board.active[arm] >= board.public[arm]]
    if not hidden:
        return Pull(leader[0], share=False)
    return Pull(highest_index(board, hidden + leader, seen_by(board, own)), share=False)


def explore_or_commit(board: Board, shares: Collection[int], own: Record | None, opened: Iterable[int]) -> Pull:
    """Explore the least-broadcast open arm she shares; with none, commit."""
    mine = [arm for arm in opened if arm in shares]
    return Pull(board.least(mine), share=True) if mine else commit(board, own)


def within_balance(board: Board, balance: float) -> list[int]:
    """Return the open arms: broadcast at most `balance` times as often as the least-broadcast one in play."""
    standing = board.standing()
    if len(standing) < 2:
        return []
    if math.isinf(balance):
        return standing
    most = balance * min(board.handed(arm) for arm in standing)
    return [arm for arm in standing if board.handed(arm) <= most]


def checked_balance(balance: object) -> float:
    """Return the balance as a float, or say what is allowed."""
    if isinstance(balance, bool) or not isinstance(balance, (int, float)) or not balance >= 1:
        raise InputError(f"The balance is {balance!r}; it must be a number of at least 1, or inf.")
    return float(balance)


@dataclass(frozen=True)
class BalancedETC:
    """Explore the least-broadcast arm one shares while that keeps broadcasts balanced; else commit to the leader.

    Parameters
    ----------
    balance
        How much more often than the least-broadcast active arm an arm may have been broadcast and still be
        explored (the paper's B): at least 1, `math.inf` for no balancing.

    >>> from partage import BalancedETC, Game, Sharing, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=4, arms=2), horizon=10_000)
    >>> result = play(game, BalancedETC(balance=1), runs=10, seed=0)
    >>> result.arms[1].eliminated
    1.0
    """

    balance: float = 1.0
    name: ClassVar[str] = "balanced-etc"
    private: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "balance", checked_balance(self.balance))

    def revise(self, board: Board) -> None:
        """Take out every arm whose upper bound is at most the highest lower bound of all arms (Eq. 1)."""
        active = board.actives()
        highest = max(board.lower(arm) for arm in range(board.arms))
        leaving = [arm for arm in active if board.upper(arm) <= highest]
        if len(leaving) == len(active):
            leaving.remove(board.best(active))
        for arm in leaving:
            board.active[arm] = False

    def decide(self, board: Board, shares: Collection[int], own: Record | None = None) -> Pull:
        """Explore if an arm she shares is open, otherwise commit (Algorithm 1, lines 6 to 12)."""
        return explore_or_commit(board, shares, own, self.open_arms(board))

    def open_arms(self, board: Board) -> list[int]:
        """Return the arms that may be explored; none where a single one is left."""
        return within_balance(board, self.balance)


@dataclass(frozen=True)
class FullSharing(BalancedETC):
    """Balanced-ETC where every agent shares every arm: the best that sharing could do."""

    name: ClassVar[str] = "full-sharing"

    def prepare(self, game: Game) -> Game:
        """Return the game in which everyone shares everything."""
        sharing = Sharing.everything(game.agents, len(game.arms)).in_shuffled_order(game.sharing.shuffled)
        return game.with_sharing(sharing)

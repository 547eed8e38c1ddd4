"""KL-ETC: Balanced-ETC with Eq. 1 replaced by likelihood ratios, for comparison."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar

from partage.board import Board, Pull, Record
from partage.evidence import apart, mixture_loss
from partage.rules.balanced_etc import checked_balance, explore_or_commit, within_balance
from partage.rules.balanced_glr import ruled_out_from


@dataclass(frozen=True)
class KLETC:
    """Balanced-ETC that eliminates an arm once the record tells its mean from a better one's.

    >>> from partage import KLETC, Game, Sharing, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=4, arms=2), horizon=10_000)
    >>> play(game, KLETC(), runs=10).arms[1].eliminated
    1.0
    """

    balance: float = 1.0
    name: ClassVar[str] = "kl-etc"
    private: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "balance", checked_balance(self.balance))

    def revise(self, board: Board) -> None:
        """Take out every arm that some arm, active or not, is seen to be better than."""
        active = board.actives()
        seen = [arm for arm in range(board.arms) if board.counts[arm]]
        latest = board.record.latest
        if latest is None:
            leaving = [arm for arm in active if board.counts[arm] and self._beaten(board, arm, seen)]
        else:  # nothing else has changed since the last time, and all pairs would be too many on a wide board
            others = [arm for arm in active if arm != latest and board.counts[arm]]
            leaving = [arm for arm in others if self._beats(board, latest, arm)]
            if board.active[latest] and self._beaten(board, latest, seen):
                leaving.append(latest)
        if len(leaving) == len(active):
            leaving.remove(board.best(active))
        for arm in leaving:
            board.active[arm] = False

    def decide(self, board: Board, shares: Collection[int], own: Record | None = None) -> Pull:
        """Explore if an arm she shares is open, otherwise commit, as in Balanced-ETC."""
        return explore_or_commit(board, shares, own, self.open_arms(board))

    def open_arms(self, board: Board) -> list[int]:
        """Return the arms that may be explored; none where a single one is left."""
        return within_balance(board, self.balance)

    def _beaten(self, board: Board, arm: int, by: Iterable[int]) -> bool:
        """Whether one of these arms is seen to be better."""
        return any(self._beats(board, other, arm) for other in by)

    def _beats(self, board: Board, other: int, arm: int) -> bool:
        """Whether the record tells that `other` has a higher mean than `arm`."""
        if board.mean(other) <= board.mean(arm):
            return False
        counts, sums = board.record.counts, board.record.sums
        losses = [float(mixture_loss(counts[i], sums[i])) for i in (arm, other)]
        evidence = float(apart(counts[arm], sums[arm], counts[other], sums[other]))
        return evidence - losses[0] - losses[1] >= ruled_out_from(board.arms, board.horizon)

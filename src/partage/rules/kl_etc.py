"""KL-ETC: Balanced-ETC with Eq. 1 replaced by likelihood ratios, for comparison."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from partage.board import Board, Pull, Record
from partage.rules.balanced_glr import elimination_threshold, net_evidence
from partage.rules.exploring import BALANCE, checked_balance, explore_or_commit, within_balance
from partage.rules.rule import BuiltIn
from partage.tape import Draws


@dataclass(frozen=True)
class KLETC(BuiltIn):
    """Balanced-ETC that eliminates an arm once the record separates its mean from a higher one.

    >>> from partage import KLETC, Game, Sharing, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=4, arms=2), horizon=10_000)
    >>> play(game, KLETC(), runs=10).arms[1].eliminated
    1.0
    """

    balance: float = 1.0

    name = "kl-etc"
    summary = "The paper's order of exploration, with a sharper test for eliminating arms."
    parameters = (BALANCE,)
    live = True
    kernel = "kl_etc"
    eliminates = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "balance", checked_balance(self.balance))

    def revise(self, board: Board, slack: float = 0.0) -> None:
        """Eliminate every arm that the record shows to be worse than some other arm, active or not."""
        active = board.actives()
        seen = [arm for arm in range(board.arms) if board.counts[arm]]
        latest = board.record.latest
        threshold = elimination_threshold(board.arms, board.horizon) + slack
        if latest is None:
            leaving = [arm for arm in active if board.counts[arm] and _beaten(board, arm, seen, threshold)]
        else:  # only this arm's record has changed since the last time; all pairs would be too many on a wide board
            others = [arm for arm in active if arm != latest and board.counts[arm]]
            leaving = [arm for arm in others if _beats(board, latest, arm, threshold)]
            if board.active[latest] and _beaten(board, latest, seen, threshold):
                leaving.append(latest)
        if len(leaving) == len(active):
            leaving.remove(board.best(active))
        for arm in leaving:
            board.active[arm] = False

    def decide(
        self, board: Board, shares: Collection[int], own: Record | None = None, draws: Draws | None = None
    ) -> Pull:
        """Explore if the agent shares an open arm, otherwise commit, as in Balanced-ETC."""
        return explore_or_commit(board, shares, own, self.open_arms(board))

    def open_arms(self, board: Board, slack: float = 0.0) -> list[int]:
        """Return the arms that may be explored; none if a single one is left."""
        return within_balance(board, self.balance)


def _beaten(board: Board, arm: int, by: Iterable[int], threshold: float) -> bool:
    """Whether the record shows one of these arms to be better."""
    return any(_beats(board, other, arm, threshold) for other in by)


def _beats(board: Board, other: int, arm: int, threshold: float) -> bool:
    """Whether the record shows that `other` has a higher mean than `arm`."""
    return board.mean(other) > board.mean(arm) and net_evidence(board.record, arm, other) >= threshold

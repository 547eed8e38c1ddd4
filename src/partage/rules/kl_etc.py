"""KL-ETC: Balanced-ETC with Eq. 1 replaced by likelihood ratios, for comparison."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from partage.board import Board, Pull, Record
from partage.rules.balanced_glr import elimination_threshold, net_evidence, weigh_by_likelihood
from partage.rules.exploring import BALANCE, checked_balance, explore_or_commit, within_balance
from partage.rules.influence import (
    TOLERATE,
    ToleratesLiars,
    best_trimmed,
    can_be_settled,
    checked_tolerate,
    is_beaten,
    reporters,
)
from partage.rules.weighing import Weighed
from partage.tape import Draws


@dataclass(frozen=True)
class KLETC(ToleratesLiars):
    """Balanced-ETC that eliminates an arm once the record separates its mean from a higher one.

    `tolerate` members may lie without misleading the others (docs/bounded-influence.md).

    >>> from partage import KLETC, Game, Sharing, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=4, arms=2), horizon=10_000)
    >>> play(game, KLETC(), runs=10).arms[1].eliminated
    1.0
    """

    balance: float = 1.0
    tolerate: int = 0

    name = "kl-etc"
    summary = "The paper's order of exploration, with a sharper test for eliminating arms."
    parameters = (BALANCE, TOLERATE)
    live = True
    kernel = "kl_etc"
    eliminates = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "balance", checked_balance(self.balance))
        object.__setattr__(self, "tolerate", checked_tolerate(self.tolerate))

    def revise(self, board: Board, slack: float = 0.0) -> None:
        """Eliminate every arm that the record shows to be worse than some other arm, active or not."""
        active = board.actives()
        seen = [arm for arm in range(board.arms) if board.counts[arm]]
        latest = board.record.latest
        threshold = elimination_threshold(board.arms, board.horizon) + slack
        if latest is None:
            leaving = [arm for arm in active if board.counts[arm] and self._beaten(board, arm, seen, threshold)]
        else:  # only this arm's record has changed since the last time; all pairs would be too many on a wide board
            others = [arm for arm in active if arm != latest and board.counts[arm]]
            leaving = [arm for arm in others if self._beats(board, latest, arm, threshold)]
            if board.active[latest] and self._beaten(board, latest, seen, threshold):
                leaving.append(latest)
        if leaving and len(leaving) == len(active):
            leaving.remove(best_trimmed(board, active, self.tolerate) if self.tolerate else board.best(active))
        for arm in leaving:
            board.active[arm] = False
        board.leading = self.leading(board)

    def weigh(self, board: Board) -> Weighed | None:
        """Return the evidence that each arm is worse than the one with the highest mean."""
        seen = [arm for arm in range(board.arms) if board.counts[arm]]
        leader = board.best(seen) if seen else None
        return weigh_by_likelihood(board, leader, self.tolerate)

    def decide(
        self, board: Board, shares: Collection[int], own: Record | None = None, draws: Draws | None = None
    ) -> Pull:
        """Explore if the agent shares an open arm, otherwise commit, as in Balanced-ETC."""
        return explore_or_commit(board, shares, own, self.open_arms(board))

    def open_arms(self, board: Board, slack: float = 0.0) -> list[int]:
        """Return the arms that may be explored; none if a single one is left.

        Where members may lie, arms that too few of them have broadcast yet do not hold up the others.
        """
        if not self.tolerate:
            return within_balance(board, self.balance)
        standing = [arm for arm in board.standing() if can_be_settled(board, arm, self.tolerate)]
        if len(standing) < 2:
            return []
        seen = [arm for arm in standing if reporters(board, arm) > self.tolerate]
        most = self.balance * min((board.handed(arm) for arm in seen), default=1 + self.tolerate)
        return [arm for arm in standing if board.handed(arm) <= most]

    def _beaten(self, board: Board, arm: int, by: Iterable[int], threshold: float) -> bool:
        """Whether the record shows one of these arms to be better."""
        return any(self._beats(board, other, arm, threshold) for other in by)

    def _beats(self, board: Board, other: int, arm: int, threshold: float) -> bool:
        """Whether the record shows that `other` has a higher mean than `arm`."""
        if self.tolerate:
            return is_beaten(board, arm, other, self.tolerate, threshold)
        return board.mean(other) > board.mean(arm) and net_evidence(board.record, arm, other) >= threshold

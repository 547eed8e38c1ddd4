"""Successive halving: a rule of one's own, simulated with `partage.play` and served with `partage serve --rules`."""

from partage.board import Pull


class Halving:
    """Explore the active arms equally often, and drop the worse half after each round."""

    name = "halving"
    private = False  # decides from the board and the agent's shares alone
    eliminates = True  # `revise` may make arms inactive
    compiled = True  # numba compiles `decide` and `revise` as they are

    def __init__(self, rounds: int = 20) -> None:
        self.rounds = rounds

    def decide(self, board, shares, own):
        """Explore the agent's least-broadcast arm of this round, or else commit to the best active arm."""
        standing = board.standing()
        if len(standing) > 1:
            goal = self.rounds * board.arms // len(standing)
            mine = [arm for arm in standing if arm in shares and board.handed(arm) < goal]
            if len(mine) > 0:
                return Pull(board.least(mine), share=True)
        active = board.actives()
        return Pull(board.best(active) if len(active) > 0 else board.tie_order[0], share=False)

    def revise(self, board):
        """Drop the worse half once every active arm has its broadcasts of this round."""
        standing = board.standing()
        if len(standing) < 2:
            return
        goal = self.rounds * board.arms // len(standing)
        if min([board.counts[arm] for arm in standing]) < goal:
            return
        for _ in range(len(standing) // 2):
            worst = standing[0]
            for arm in standing:
                if board.active[arm] and (
                    not board.active[worst]
                    or board.mean(arm) < board.mean(worst)
                    or (board.mean(arm) == board.mean(worst) and board.rank[arm] > board.rank[worst])
                ):
                    worst = arm
            board.active[worst] = False

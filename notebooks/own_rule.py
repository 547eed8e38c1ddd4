# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A rule of your own
#
# A rule says what an agent pulls next and whether it tells the reward. It is one class with `decide` and
# `revise`. The plain reference plays it, so use small games; a rule with `compiled = True` plays at the engine's
# speed, and `partage serve --rules` serves the same class live (docs/own-rules.md).

# %%
import partage
from partage.testing import check_rule

game = partage.Game(
    arms=partage.bernoulli([0.8, 0.6, 0.4]),
    sharing=partage.Sharing.round_robin(agents=6, arms=3),
    horizon=500,
)

# %% [markdown]
# ## Successive halving
#
# Explore all arms equally often. After each round, drop the worse half; when one arm is left, follow it.
# What the rule must remember is in `board.active`, which `revise` sets after every broadcast.


# %%
class Halving:
    """Explore the active arms equally often, and drop the worse half after each round."""

    name = "halving"
    private = False  # decides from the board alone

    def __init__(self, rounds=20):
        self.rounds = rounds

    def decide(self, board, shares, own, draws):
        wanted = [arm for arm in board.standing() if board.counts[arm] < self._goal(board)]
        mine = [arm for arm in wanted if arm in shares]
        if mine:
            return partage.Pull(board.least(mine), share=True)
        return partage.Pull(board.best(board.actives() or range(board.arms)), share=False)

    def revise(self, board):
        active = board.standing()
        if len(active) > 1 and all(board.counts[arm] >= self._goal(board) for arm in active):
            ranked = sorted(active, key=lambda arm: (-board.mean(arm), board.rank[arm]))
            for arm in ranked[(len(active) + 1) // 2 :]:
                board.active[arm] = False

    def _goal(self, board):
        """Return how often an active arm must be broadcast before the worse half is dropped."""
        left = sum(board.active)
        return self.rounds * board.arms // left if left > 1 else 0


check_rule(Halving())

# %% [markdown]
# `check_rule` found no fault. How does it compare? All rules see the same rewards, since they have the same
# seed.

# %%
for rule in (Halving(), Halving(rounds=60), partage.SharedIMED(), partage.BalancedGLR(), partage.Thompson()):
    result = partage.play(game, rule, runs=40, seed=0, settlement="none", baseline=False)
    name = f"halving, {rule.rounds} rounds" if isinstance(rule, Halving) else rule.name
    regret, shared = result.overall_regret, result.broadcasts
    print(f"{name:20} {regret.mean:6.1f} ± {regret.stderr:4.1f}, {shared.mean:6.1f} broadcasts")

# %% [markdown]
# ## Randomness
#
# A randomised rule takes its randomness from `draws`, never from `random` or numpy. Then the same seed
# gives the same play, on any machine, and two rules still see the same rewards.


# %%
class Sometimes:
    """Explore an arm that the agent shares one time in ten, otherwise follow the leader."""

    name = "sometimes"
    private = False

    def decide(self, board, shares, own, draws):
        if shares and (draws.uniform() < 0.1 or not any(board.counts)):
            return partage.Pull(sorted(shares)[draws.integer(len(shares))], share=True)
        return partage.Pull(board.best(range(board.arms)), share=False)

    def revise(self, board):
        pass


first, second = (
    partage.play(game, Sometimes(), runs=10, seed=7, settlement="none", baseline=False) for _ in range(2)
)
print(first.overall_regret.mean == second.overall_regret.mean, round(first.overall_regret.mean, 1))

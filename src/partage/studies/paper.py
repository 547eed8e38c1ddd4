"""What the paper's studies have in common: arms, horizon, rule and curves."""

from collections.abc import Callable

from partage.arms import bernoulli
from partage.game import Game
from partage.rules import BalancedETC
from partage.sharing import Sharing
from partage.studies.study import TWO_UCB, Curve, Panel

ARMS = bernoulli([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])
HORIZON = 10**6
RULE = BalancedETC(balance=1)
AGENTS = (10, 20, 50, 100, 200, 500, 1000)


def on_the_arms(pattern: Callable[[int, int], Sharing]) -> Callable[[int], Game]:
    """Return the games on the paper's arms with this sharing pattern, by number of agents."""
    return lambda agents: Game(ARMS, pattern(agents, len(ARMS)), HORIZON)


REGRETS = Panel(
    curves=(
        Curve("overall_regret", "overall", "green"),
        Curve("max_individual_regret", "worst agent", "orange"),
        Curve(TWO_UCB, "2-UCB alone", "ink"),
        Curve("average_regret", "average", "blue"),
        Curve("max_incentive_regret", "worst agent,\nsettled", "orange", dashed=True),
    ),
)

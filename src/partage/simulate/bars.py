"""Bars: what learners alone cost every agent, on its own arms and for as many pulls as it makes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.game import Game
from partage.settle import ALONE
from partage.simulate.estimate import Estimate

LEARNERS = tuple(name for name in ALONE if name != "best")  # what agents may play alone; 2-UCB first


class Lone(NamedTuple):
    """The games of agents alone. Agents with the same arms and as many pulls are of one class and have one game.

    Attributes
    ----------
    games
        The game of each class.
    class_of
        The class of each agent.
    """

    games: tuple[Game, ...]
    class_of: NDArray[np.int64]

    @property
    def pulls(self) -> int:
        """The pulls in all these games together."""
        return sum(game.horizon for game in self.games)


def lone_games(game: Game) -> Lone | None:
    """Return the games of the agents of a game alone; None if its arms change, where no learner alone is a bar."""
    if game.changes:
        return None
    if game.traits is None:
        return Lone((game.alone(),), np.zeros(game.agents, np.int64))
    games: dict[object, Game] = {}
    place_of = {}
    for traits in dict.fromkeys(game.traits):
        lone = game.alone_with(traits)
        games.setdefault((lone.arms, lone.horizon), lone)
        place_of[traits] = [*games].index((lone.arms, lone.horizon))
    return Lone(tuple(games.values()), np.array([place_of[traits] for traits in game.traits], np.int64))


class Bars(NamedTuple):
    """What each learner that was played costs alone, by class of agents.

    Attributes
    ----------
    class_of
        The class of each agent.
    regret
        The regret of each learner alone, by class.
    """

    class_of: NDArray[np.int64]
    regret: Mapping[str, Sequence[Estimate]]

    def of(self, alone: str) -> list[Estimate] | None:
        """Return what a learner costs each class, or the one that is best for the class; None if not played."""
        if alone != "best":
            return list(self.regret[alone]) if alone in self.regret else None
        if not all(name in self.regret for name in LEARNERS):
            return None
        return [min(each, key=lambda estimate: estimate.mean) for each in zip(*self.regret.values(), strict=True)]


def bars_of(lone: Lone, played: Mapping[str, Sequence[NDArray[np.float64]]]) -> tuple[Bars, dict[str, Estimate]]:
    """Return the bars, and each learner's regret averaged over agents.

    `played` has the regret of each learner in every run, by class. Runs of the same number have the same key, so they
    are averaged before anything else.
    """
    weights = np.bincount(lone.class_of, minlength=len(lone.games)) / len(lone.class_of)
    means = {
        learner: Estimate.of(sum((weight * runs for weight, runs in zip(weights, classes, strict=True)), np.zeros(1)))
        for learner, classes in played.items()
    }
    regret = {learner: [Estimate.of(runs) for runs in classes] for learner, classes in played.items()}
    return Bars(lone.class_of, regret), means

"""In how many runs the reports show that agents see arms differently, and who is named."""

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.agreement import Disagreement, disagreements
from partage.agreement.words import who_and_what
from partage.board import Record
from partage.engine.tally import Tally
from partage.game import Game
from partage.simulate.estimate import Estimate

MOST_AGENTS = 3  # that are kept of those that are named together
MOST_NAMED = 5  # lines about who is named most often
COLUMNS = ("run", "arm", "against", "difference", *("agent",) * MOST_AGENTS)


def found_in(tally: Tally, run: int) -> list[list[float]]:
    """Return what the reports of a run show, one row per disagreement; -1 where there is no arm or no agent."""
    return [
        [run, one.arm, -1 if one.against is None else one.against, one.difference, *_first(one.members)]
        for one in disagreements(told_by(tally), len(tally.broadcasts))
    ]


def told_by(tally: Tally) -> dict[int, Record]:
    """Return who told what in a game whose agents differ."""
    assert tally.told is not None
    assert tally.told_sums is not None
    both = zip(tally.told.tolist(), tally.told_sums.tolist(), strict=True)
    return {agent: Record(counts, sums) for agent, (counts, sums) in enumerate(both)}


def _first(members: Iterable[Any]) -> list[int]:
    return [*members, *[-1] * MOST_AGENTS][:MOST_AGENTS]


class Named(NamedTuple):
    """Who is named, on what, in how many runs, and the difference in these runs.

    `text` says who differs on what.
    """

    arm: str
    against: str | None
    agents: list[str]
    runs: int
    difference: Estimate
    text: str


class Disagreeing(NamedTuple):
    """What the reports show at the end of runs.

    Attributes
    ----------
    compared
        Runs in which two agents told the same arm: in others nothing can be compared.
    warned
        Runs in which the reports show that agents disagree.
    named
        Who is named in most runs, at most five.
    """

    compared: int
    warned: int
    named: list[Named]

    def as_dict(self) -> dict[str, Any]:
        """Return the part of the public JSON object."""
        named = [one._asdict() | {"difference": one.difference._asdict()} for one in self.named]
        return {"compared": self.compared, "warned": self.warned, "named": named}


def summed_up(game: Game, rows: NDArray[np.float64], compared: int) -> Disagreeing:
    """Return what the rows of all runs show together."""
    by_name: dict[tuple[int, ...], list[float]] = {}
    for row in rows:
        name = (int(row[1]), int(row[2]), *(int(agent) for agent in row[4:] if agent >= 0))
        by_name.setdefault(name, []).append(float(row[3]))
    most = sorted(by_name.items(), key=lambda item: (-len(item[1]), item[0]))[:MOST_NAMED]
    return Disagreeing(compared, len(np.unique(rows[:, 0])), [_named(game, *one) for one in most])


def _named(game: Game, name: tuple[int, ...], differences: list[float]) -> Named:
    arm, other, *agents = name
    against, arms = None if other < 0 else other, game.arm_names
    names: dict[Hashable, str] = {agent: game.agent_name(agent) for agent in agents}
    difference = Estimate.of(np.array(differences))
    one = Disagreement(arm, against, tuple(agents), difference.mean, -1.0, 1.0, 0.0)
    return Named(
        arms[arm],
        None if against is None else arms[against],
        list(names.values()),
        len(differences),
        difference,
        who_and_what(one, lambda agent: names[agent], arms),
    )

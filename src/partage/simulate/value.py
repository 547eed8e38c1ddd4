"""The value of sharing: what one arm more, or one fewer, changes for an agent and for the others, by paired runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partage.checks import count
from partage.errors import InputError
from partage.game import Game
from partage.rules.rule import Rule
from partage.sharing import Sharing
from partage.simulate.chunk import Task
from partage.simulate.estimate import Estimate
from partage.simulate.parallel import Chunk, compile_rule, workers
from partage.simulate.play import new_task

MORE, FEWER = "more", "fewer"


@dataclass(frozen=True)
class Change:
    """What it changes if an agent shares one arm more, or one fewer.

    Gains are regret that is avoided, in units of reward: positive is better. They are differences between two plays
    of the same runs.

    Attributes
    ----------
    arm
        The name of the arm.
    kind
        "more" if the agent does not share the arm today, "fewer" if it does.
    own, own_settled
        The agent's gain, before and after the settlement; None without a settlement.
    others, others_settled
        That of all other agents together.
    """

    arm: str
    kind: str
    own: Estimate
    own_settled: Estimate | None
    others: Estimate
    others_settled: Estimate | None

    def as_dict(self) -> dict[str, Any]:
        """Return the public JSON object."""
        gains = {
            name: None if value is None else value._asdict()
            for name, value in (
                ("own", self.own),
                ("own_settled", self.own_settled),
                ("others", self.others),
                ("others_settled", self.others_settled),
            )
        }
        return {"arm": self.arm, "kind": self.kind, **gains}


@dataclass(frozen=True)
class Value:
    """What the shares of an agent are worth.

    Attributes
    ----------
    agent
        The name of the agent.
    shares
        The arms that it shares.
    regret, incentive_regret
        What it loses now, before and after the settlement; None without a settlement.
    changes
        One for each arm.
    rule, settlement, runs, seed
        What was played.
    """

    agent: str
    shares: tuple[str, ...]
    regret: Estimate
    incentive_regret: Estimate | None
    changes: tuple[Change, ...]
    rule: str
    settlement: str
    runs: int
    seed: int

    def as_dict(self) -> dict[str, Any]:
        """Return the public JSON object."""
        return {
            "agent": self.agent,
            "shares": list(self.shares),
            "rule": self.rule,
            "settlement": self.settlement,
            "runs": self.runs,
            "seed": self.seed,
            "regret": self.regret._asdict(),
            "incentive_regret": None if self.incentive_regret is None else self.incentive_regret._asdict(),
            "changes": [change.as_dict() for change in self.changes],
        }


def value_of_sharing(
    game: Game,
    rule: Rule,
    agent: int | str,
    *,
    runs: int = 100,
    seed: int = 0,
    settlement: str = "default",
    fee: float = 0.0,
    alone: str | None = None,
    coverage: float | None = None,
    prepaid: float | None = None,
    underwriting: float | None = None,
    broadcast_price: float = 0.0,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Value:
    """Return what sharing one arm more, or one fewer, changes for an agent and for the others.

    The game is played as it is, and once for each arm with that arm added to the agent's shares or taken from them.
    All plays have the same seed, so differences are between the same runs.

    Parameters
    ----------
    game
        The game. Its sharing must be fixed, as each play changes it.
    agent
        The agent: its name, or its number, counted from 0.
    rule, runs, seed, settlement, fee, alone, coverage, prepaid, underwriting, broadcast_price, jobs, progress
        As for `partage.play`.

    Raises
    ------
    InputError
        If an argument is not allowed.

    Examples
    --------
    >>> from partage import Game, SharedIMED, Sharing, bernoulli, value_of_sharing
    >>> game = Game(bernoulli([0.9, 0.6]), Sharing.lists([[0, 1], [0]], arms=2), horizon=1000)
    >>> found = value_of_sharing(game, SharedIMED(), agent="agent 1", runs=20, settlement="none")
    >>> [(change.arm, change.kind) for change in found.changes]
    [('arm 1', 'fewer'), ('arm 2', 'fewer')]
    """
    runs, at = count("The number of runs", runs), agent_number(game, agent)
    if not isinstance(game.sharing, Sharing):
        raise InputError("The sharing is drawn for each run; it must be fixed to change what one agent shares.")
    mine = game.sharing.of(at)
    terms = (fee, alone, coverage, broadcast_price, prepaid, underwriting)
    tasks = [
        new_task(one, rule, settlement, seed, (), *terms)
        for one in (game, *(_with_shares(game, at, _toggled(mine, arm)) for arm in range(len(game.arms))))
    ]
    now, *others = _played(tasks, runs, jobs, progress)
    settled = tasks[0].settlement.name != "none"
    names = game.arm_names
    return Value(
        game.agent_name(at),
        tuple(names[arm] for arm in mine),
        Estimate.of(now.regret[:, at]),
        Estimate.of(now.incentive[:, at]) if settled else None,
        tuple(
            _change(names[arm], FEWER if arm in mine else MORE, at, now, then, settled)
            for arm, then in enumerate(others)
        ),
        rule.name,
        tasks[0].settlement.name,
        runs,
        tasks[0].seed,
    )


def agent_number(game: Game, agent: int | str) -> int:
    """Return the number of an agent, given its number or its name."""
    if not isinstance(agent, str):
        return game.checked_agent(agent)
    names = [game.agent_name(one) for one in range(game.agents)]
    if agent not in names:
        listed = ", ".join(map(repr, names[:10])) + (f" and {len(names) - 10:,} more" if len(names) > 10 else "")
        raise InputError(f"The agent is {agent!r}; it must be one of {listed}.")
    return names.index(agent)


@dataclass(frozen=True)
class _Runs:
    """Regret before and after the settlement, by run and agent."""

    regret: NDArray[np.float64]
    incentive: NDArray[np.float64]


def _played(
    tasks: Sequence[Task], runs: int, jobs: int | None, progress: Callable[[int, int], None] | None
) -> list[_Runs]:
    """Play the same runs of every task. Chunks have one run each, as sums over runs could not be paired."""
    agents = tasks[0].game.agents
    found = [_Runs(np.zeros((runs, agents)), np.zeros((runs, agents))) for _ in tasks]
    chunks = [Chunk(task, run, run + 1) for task in tasks for run in range(runs)]
    with workers("threads", jobs) as spread:
        for task in tasks:
            compile_rule(task)
        for done, part in enumerate(spread(chunks), start=1):
            which, run = divmod(part.place, runs)
            found[which].regret[run], found[which].incentive[run] = part.folded.regret, part.folded.incentive
            if progress:
                progress(done, len(chunks))
    return found


def _change(arm: str, kind: str, at: int, now: _Runs, then: _Runs, settled: bool) -> Change:
    before, after = now.regret - then.regret, now.incentive - then.incentive
    rest = np.arange(before.shape[1]) != at
    return Change(
        arm,
        kind,
        Estimate.of(before[:, at]),
        Estimate.of(after[:, at]) if settled else None,
        Estimate.of(before[:, rest].sum(axis=1)),
        Estimate.of(after[:, rest].sum(axis=1)) if settled else None,
    )


def _toggled(shares: Sequence[int], arm: int) -> list[int]:
    return [one for one in shares if one != arm] if arm in shares else [*shares, arm]


def _with_shares(game: Game, agent: int, shares: Sequence[int]) -> Game:
    """Return the game in which one agent shares these arms instead."""
    sharing = game.sharing
    assert isinstance(sharing, Sharing)
    rows = [shares if other == agent else sharing.of(other) for other in range(game.agents)]
    return game.with_sharing(Sharing.lists(rows, sharing.arms).in_shuffled_order(sharing.shuffled))

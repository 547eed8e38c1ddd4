"""`Result`: the figures of merit of many runs, with standard errors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partage.engine import by_reference
from partage.game import Game
from partage.rules.rule import Rule, changed_parameters
from partage.settle import EQUAL_SHARE, NONE, Settlement
from partage.settle.noiseless import lower_bound
from partage.sharing import Sharing
from partage.simulate.bars import LEARNERS, Bars
from partage.simulate.by_agent import by_agent
from partage.simulate.disagreement import Disagreeing, summed_up
from partage.simulate.estimate import Estimate
from partage.simulate.fold import COLUMNS, FIGURES, Folded
from partage.simulate.in_unit import amount, in_unit
from partage.simulate.page import Page
from partage.simulate.summary import summary

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["LEARNERS", "ArmFigures", "Estimate", "Result"]


class ArmFigures(NamedTuple):
    """Figures of one arm: its broadcasts, and the fraction of runs in which it was eliminated.

    `mean` is the expected reward; None if it is drawn for each run.
    """

    name: str
    mean: float | None
    broadcasts: Estimate
    eliminated: float


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Figures of merit of one rule on one game.

    Figures are `Estimate`s: `result.overall_regret.mean`, `result.overall_regret.stderr`. Regret is pseudo-regret:
    pulls times gaps. `max_...` is the largest value over agents in each run, averaged over runs. To see the same runs
    under another settlement, `play` again with the same seed.

    Attributes
    ----------
    game, rule, settlement, runs, seed
        What was played.
    seconds
        How long the play took, without the baseline.
    folded
        Figures by run, and sums over runs for each agent.
    checkpoints
        Steps up to which `curve` gives the overall regret.
    alone_regret
        Regret of one agent that plays a learner alone, for the learners that were played; where agents differ,
        averaged over them.
    broadcast_price
        What each broadcast adds to the regret of its agent.
    bars
        The same for every agent, where agents differ; None if no learner alone was played for them.

    Examples
    --------
    >>> from partage import BalancedETC, Game, Sharing, bernoulli, play
    >>> game = Game(bernoulli([0.9, 0.5]), Sharing.round_robin(agents=4, arms=2), horizon=10_000)
    >>> result = play(game, BalancedETC(), runs=10, seed=0)
    >>> result.arms[1].name, result.arms[1].eliminated
    ('arm 2', 1.0)
    """

    game: Game
    rule: Rule
    settlement: Settlement
    runs: int
    seed: int
    seconds: float
    folded: Folded = field(repr=False)
    checkpoints: NDArray[np.int64] = field(repr=False)
    alone_regret: Mapping[str, Estimate]
    broadcast_price: float = 0.0
    bars: Bars | None = field(default=None, repr=False)

    # --- figures of merit -----------------------------------------------------------------------------------

    @property
    def overall_regret(self) -> Estimate:
        """Regret of all agents together."""
        return self._figure("overall_regret")

    @property
    def average_regret(self) -> Estimate:
        """Overall regret per agent."""
        return self._figure("average_regret")

    @property
    def max_individual_regret(self) -> Estimate:
        """Regret of the agent with the highest regret."""
        return self._figure("max_individual_regret")

    @property
    def max_incentive_regret(self) -> Estimate | None:
        """Regret less compensation plus charge, of the agent for which it is highest; None without a settlement."""
        return self._figure("max_incentive_regret") if self.settled else None

    @property
    def explore_regret(self) -> Estimate:
        """Overall regret of explore pulls."""
        return self._figure("explore_regret")

    @property
    def commit_regret(self) -> Estimate:
        """Overall regret of commit pulls."""
        return self._figure("commit_regret")

    @property
    def controller_profit(self) -> Estimate | None:
        """Charges less compensations; None without a settlement."""
        return self._figure("controller_profit") if self.settled else None

    @property
    def broadcasts(self) -> Estimate:
        """Broadcasts of all agents together."""
        return self._figure("broadcasts")

    @property
    def viable(self) -> float | None:
        """Fraction of runs in which an equal share, a pool or dues were viable; None for other settlements.

        A pool and dues are viable if they pay all compensations in full.
        """
        return self._fraction("viable")

    @property
    def finished(self) -> float | None:
        """Fraction of runs in which an equal share, a pool or dues were finished; None for other settlements."""
        return self._fraction("finished")

    @property
    def uncovered(self) -> Estimate | None:
        """The most that an agent may have lost on the arms left; None unless the settlement is `equal-share`."""
        return self._figure("uncovered") if self.settlement.kind == EQUAL_SHARE else None

    @property
    def bill(self) -> Estimate | None:
        """All compensations together, as if they were paid in full; None without a settlement."""
        return self._figure("bill") if self.settled else None

    @property
    def scale(self) -> Estimate | None:
        """The fraction of all compensations that is paid; None unless the controller's loss is limited."""
        return self._figure("scale") if self.settlement.underwriting is not None else None

    @property
    def pooled_charge(self) -> Estimate | None:
        """What every agent of a pool pays; with dues, what it prepaid. None for other settlements."""
        return self._figure("charge") if self.settlement.is_prepaid else None

    @property
    def covered(self) -> Estimate | None:
        """Compensations as a fraction of the regret of told claims (explore pulls), both over all runs.

        None unless the settlement is a pool or dues, and if there was no such regret. It may exceed 1: rates are
        differences of means in the record.
        """
        paid, lost = (self.per_run(name) for name in ("compensation", "explore_regret"))
        if not self.settlement.is_prepaid or lost.sum() == 0:
            return None
        ratio = float(paid.sum() / lost.sum())
        spread = Estimate.of(paid - ratio * lost).stderr  # of a ratio of two means, to first order
        return Estimate(ratio, None if spread is None else spread / float(lost.mean()))

    @property
    def out(self) -> Estimate | None:
        """Explore pulls whose reward was never told; None in the paper's game, in which all are told."""
        return self._figure("out") if self.game.uneven else None

    @property
    def settled(self) -> bool:
        """Whether there is a settlement."""
        return self.settlement.kind != NONE

    @cached_property
    def arms(self) -> list[ArmFigures]:
        """Figures of each arm."""
        means = self.game.means
        return [
            ArmFigures(
                name,
                None if math.isnan(means[arm]) else float(means[arm]),
                Estimate.of(self.folded.broadcasts[:, arm].astype(np.float64)),
                float(np.mean(self.folded.eliminated_step[:, arm] >= 0)),
            )
            for arm, name in enumerate(self.game.arm_names)
        ]

    @cached_property
    def curve(self) -> list[Estimate]:
        """Overall regret up to each checkpoint."""
        return [Estimate.of(column) for column in self.folded.curves.T]

    def individual_regret(self, agent: int | str) -> Estimate:
        """Regret of one agent, by its name or its number, counted from 0."""
        at, folded = self.game.checked_agent(agent), self.folded
        return Estimate.of_sums(folded.regret[at], folded.regret_squares[at], self.runs)

    def incentive_regret(self, agent: int | str) -> Estimate:
        """Regret less compensation plus charge of one agent; its regret if there is no settlement.

        Give the agent's name or its number, counted from 0.
        """
        at, folded = self.game.checked_agent(agent), self.folded
        return Estimate.of_sums(folded.incentive[at], folded.incentive_squares[at], self.runs)

    @property
    def worst_agent(self) -> int:
        """The agent with the highest mean incentive regret; where agents differ, compared with its bar."""
        bars = self._bars(self.settlement.alone) if self.bars else None
        if bars is None:
            return int(np.argmax(self.folded.incentive))
        return int(np.argmax(self.folded.incentive / self.runs - bars))

    # --- compared with playing alone ------------------------------------------------------------------------

    @property
    def two_ucb_regret(self) -> Estimate | None:
        """Regret of one agent that plays 2-UCB alone; None if it was not played."""
        return self.alone_regret.get("two-ucb")

    @property
    def best_alone(self) -> str | None:
        """The learner that costs least alone, over all agents; None unless all were played."""
        if not all(name in self.alone_regret for name in LEARNERS):
            return None
        return min(LEARNERS, key=lambda name: self.alone_regret[name].mean)

    @property
    def best_alone_at_least(self) -> float | None:
        """The least that any of these learners costs alone, by formula.

        None if the means are drawn for each run, change, or differ between agents.
        """
        means, best = self.game.means, int(np.argmax(self.game.means))
        if np.isnan(means).any() or self.game.changes or self.game.traits:
            return None
        mean, gaps = float(means[best]), np.delete(means[best] - means, best).tolist()
        return lower_bound("best", mean, mean, gaps, gaps, self.game.horizon)

    @property
    def bar(self) -> Estimate | None:
        """Regret of the learner alone that agents are compared with (`settlement.alone`); None if not played.

        Where agents differ, it is averaged over them; `bar_of` has every agent's own.
        """
        return self.bar_of(self.settlement.alone)

    def bar_of(self, alone: str, agent: int | str | None = None) -> Estimate | None:
        """Return the regret of a learner alone, one of `partage.settle.ALONE`; None if it was not played.

        With `agent`, a name or a number counted from 0, it is the regret on that agent's own arms, for as many pulls
        as it makes. The best learner may then be another one for every agent.
        """
        if agent is not None and self.bars is not None:
            classes = self.bars.of(alone)
            return None if classes is None else classes[self.bars.class_of[self.game.checked_agent(agent)]]
        name = self.best_alone if alone == "best" else alone
        return None if name is None else self.alone_regret.get(name)

    @property
    def individually_rational(self) -> bool | None:
        """Whether every agent's mean incentive regret is at most its bar; None if that was not played."""
        return self.rational_against(self.settlement.alone)

    @property
    def worse_off(self) -> dict[str, Estimate] | None:
        """The agents whose mean incentive regret is above their bar, by name, and by how much; the worst is first.

        None if the bar was not played. The standard error takes both means for independent.
        """
        alone = self.settlement.alone
        bars = self._bars(alone)
        if bars is None:
            return None
        excess = self.folded.incentive / self.runs - bars
        worse = [int(agent) for agent in np.argsort(-excess, kind="stable") if excess[agent] > 0]
        found = {}
        for agent in worse:
            bar = self.bar_of(alone, agent)
            assert bar is not None
            found[self.game.agent_name(agent)] = self.incentive_regret(agent) - bar
        return found

    def rational_against(self, alone: str) -> bool | None:
        """Whether every agent's mean incentive regret is at most what a learner alone costs; None if not played."""
        bars = self._bars(alone)
        return None if bars is None else bool((self.folded.incentive / self.runs <= bars).all())

    def _bars(self, alone: str) -> NDArray[np.float64] | None:
        """Return what a learner alone costs each agent."""
        if self.bars is None:
            bar = self.bar_of(alone)
            return None if bar is None else np.full(self.game.agents, bar.mean)
        classes = self.bars.of(alone)
        return None if classes is None else np.array([bar.mean for bar in classes])[self.bars.class_of]

    def per_run(self, name: str) -> NDArray[np.float64]:
        """Return one figure of every run, such as "overall_regret"."""
        return self.folded.figures[:, COLUMNS.index(name)]

    def _figure(self, name: str) -> Estimate:
        return Estimate.of(self.per_run(name))

    def _fraction(self, name: str) -> float | None:
        told = self.settlement.has_ceilings or self.settlement.is_prepaid
        return self._figure(name).mean if told else None

    # --- tables, figures, JSON --------------------------------------------------------------------------------

    def frame(self, by: str = "run") -> "pl.DataFrame":
        """Return a Polars data frame.

        It has one row per run, per run and arm (`by="arm"`), per agent (`by="agent"`), or per checkpoint of the
        regret over time (`by="step"`).
        """
        from partage.simulate.frames import frame

        return frame(self, by)

    def to_pandas(self, by: str = "run") -> "pd.DataFrame":
        """Return the same as `frame` as a pandas data frame. This needs pandas, and not pyarrow."""
        from partage.simulate.frames import to_pandas

        return to_pandas(self.frame(by))

    def plot(self) -> "Figure":
        """Draw the regret over time, each agent's regret and each arm's broadcasts."""
        from partage.simulate.plot import plot

        return plot(self)

    def __str__(self) -> str:
        """Return the figures of merit as a table, as `partage simulate` prints them."""
        return self._page().text()

    def __repr__(self) -> str:
        return f"<Result of {self._page().title}; overall regret {amount(self.overall_regret, self.game.unit)}>"

    def _repr_html_(self) -> str:
        """Return the same table for notebooks."""
        return self._page().html()

    def _page(self) -> Page:
        return summary(in_unit(self.as_dict(), self.game.unit))

    @property
    def too_few_sharers(self) -> list[str]:
        """The arms that cannot be settled, because no more agents share them than may lie (`tolerate`)."""
        tolerate, sharing = getattr(self.rule, "tolerate", 0), self.game.sharing
        if not tolerate or not isinstance(sharing, Sharing):
            return []
        return [arm.name for arm, sharers in zip(self.arms, sharing.sharers(), strict=True) if sharers <= tolerate]

    @cached_property
    def disagreement(self) -> Disagreeing | None:
        """In how many runs reports show that agents see arms differently, and who is named; None if all are equal."""
        if not self.game.uneven:
            return None
        return summed_up(self.game, self.folded.disagreements, int(np.count_nonzero(self.per_run("compared"))))

    def as_dict(self, rule: str | None = None) -> dict[str, Any]:
        """Return the stable public JSON object.

        An equal share, a pool and dues add their fee, their coverage, and the fractions of runs in which they were
        viable and finished. A limit on the controller's loss adds that limit and the `scale` of compensations; a pool
        and dues also what is prepaid, what is charged, how much of the regret of told claims is covered, and the
        comparison with both bars. Parameters of the rule, apart from the balance, are listed if they are not the
        default. `worse_off` lists the agents that are above their bar, the worst first, if there are any; `by_agent`
        what every agent is like and lost, if agents differ or have names. A game that is not the paper's adds the
        explore pulls that were never told (`out`), and whether the reference played it.

        Parameters
        ----------
        rule
            The name under which the rule was requested; by default its own name.
        """

        def estimate(value: Estimate | None) -> dict[str, float | None] | None:
            return None if value is None else {"mean": value.mean, "stderr": value.stderr}

        changes: list[list[dict[str, float]]] = [[] for _ in self.game.arms]
        for step, place, to in self.game.changes:
            changes[place].append({"step": step, "mean": to.mean})
        balance = getattr(self.rule, "balance", None)
        changed = changed_parameters(self.rule)
        equal_share = {
            "fee": self.settlement.fee,
            "coverage": self.settlement.coverage,
            "viable": self.viable,
            "finished": self.finished,
        }
        limited = {
            "underwriting": self.settlement.underwriting,
            "scale": estimate(self.scale),
        }
        prepaid = {
            "prepaid": self.settlement.prepaid,
            "pooled_charge": estimate(self.pooled_charge),
            "covered": estimate(self.covered),
            "individually_rational_against": {name: self.rational_against(name) for name in ("best", "two-ucb")},
        }
        uneven = (
            {
                "out": estimate(self.out),
                "claim_steps": self.game.claim_steps,
                "by_reference": by_reference(self.game, self.rule),
            }
            if self.game.uneven
            else {}
        )
        agents = by_agent(self) if self.game.uneven or self.game.agent_names else None
        worse_off = [{"agent": name, "by": estimate(by)} for name, by in (self.worse_off or {}).items()]
        return {
            "rule": rule or self.rule.name,
            "settlement": self.settlement.name,
            "runs": self.runs,
            "seed": self.seed,
            "horizon": self.game.horizon,
            "balance": "inf" if balance == math.inf else balance,
            "agents": self.game.agents,
            "seconds": self.seconds,
            "metrics": {name: estimate(getattr(self, name)) for name in FIGURES},
            "two_ucb_regret": estimate(self.two_ucb_regret),
            "alone": self.settlement.alone,
            "alone_regret": {name: estimate(regret) for name, regret in self.alone_regret.items()},
            "best_alone": self.best_alone,
            "best_alone_at_least": self.best_alone_at_least,
            "individually_rational": self.individually_rational,
            "arms": [
                {
                    "name": arm.name,
                    "mean": arm.mean,
                    "broadcasts": estimate(arm.broadcasts),
                    "eliminated": arm.eliminated,
                    **({"changes": changes[place]} if changes[place] else {}),
                }
                for place, arm in enumerate(self.arms)
            ],
            **(equal_share if self.viable is not None else {}),
            **(limited if self.scale is not None else {}),
            **(prepaid if self.settlement.is_prepaid else {}),
            **({"parameters": changed} if changed else {}),
            **({"too_few_sharers": self.too_few_sharers} if self.too_few_sharers else {}),
            **({"disagreement": self.disagreement.as_dict()} if self.disagreement else {}),
            **({"broadcast_price": self.broadcast_price} if self.broadcast_price else {}),
            **uneven,
            **({"by_agent": agents} if agents else {}),
            **({"worse_off": worse_off} if worse_off else {}),
        }
